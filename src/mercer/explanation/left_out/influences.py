"""Which training rows made a prediction: the exact change of f(x) when each of them is left out."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.fitted_models import RIDGE, Kind, unwrap
from mercer.exceptions import InvalidInputError
from mercer.explanation.decision_functions import function_names, kind_among
from mercer.explanation.left_out.influence_pictures import draw_influence
from mercer.explanation.left_out.left_out_machines import LeftOut, Limits, left_out_machine
from mercer.explanation.left_out.left_out_systems import left_out_process, left_out_ridge
from mercer.kernels.features import Matrix

MACHINES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
PROCESSES = ("GaussianProcessRegressor",)
SUPPORTED = (*MACHINES, *RIDGE, *PROCESSES)


@dataclass(frozen=True, eq=False, repr=False)
class Influence:
    """The result of ``influence``: f₋ᵢ(x) − f(x) for each row x and each training sample i.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_training) or (n_rows, n_training, n_functions)
        The changes. A negative value: with the sample, f(x) is larger than without it.
    functions : tuple of str
        The names of the functions: one, or one for each pair of classes "a / b" (positive values are votes for a) or
        for each target.
    exact : ndarray of shape (n_training,)
        Whether the values of each training sample are exact; False where a limit ended the refits, and where there is
        no machine without the sample: it is the only one of its class, or the margin of a NuSVC is 0.
    n_closed, n_refits : int
        The number of solutions without a sample that the closed form gave, and that were solved anew.
    rows, training, targets : the samples that were given, for pictures; ``targets`` may be None.

    Examples
    --------
    >>> from mercer import SVR, influence
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 0.0, 2.0, 2.0]
    >>> model = SVR(kernel="linear", C=1.0).fit(X, y)
    >>> influence(model, [[1.5]], X, y).values.shape
    (1, 4)
    """

    values: NDArray[np.float64]
    functions: tuple[str, ...]
    exact: NDArray[np.bool_]
    n_closed: int
    n_refits: int
    rows: Any
    training: Any
    targets: Any

    def of(self, function: int = 0) -> Matrix:
        """The changes of one function, of shape (n_rows, n_training)."""
        if not isinstance(function, Integral) or not 0 <= function < len(self.functions):
            raise InvalidInputError(
                f"function={function!r} was given: there are {len(self.functions)} functions, numbered from 0 on."
            )
        return self.values if self.values.ndim == 2 else self.values[:, :, function]

    def top(self, k: int = 10, function: int = 0) -> tuple[NDArray[np.intp], Matrix]:
        """The k training samples of the largest |change| for each row, the largest first: indices and changes."""
        if not isinstance(k, Integral) or k < 1:
            raise InvalidInputError(f"k={k!r} was given: it must be a whole number of at least 1.")
        values = self.of(function)
        order = np.argsort(-np.abs(values), axis=1, kind="stable")[:, : int(k)]
        return order, np.take_along_axis(values, order, axis=1)

    def plot(
        self,
        row: int = 0,
        *,
        k: int = 10,
        function: int = 0,
        image_shape: tuple[int, int] | None = None,
        labels: Any = None,
        ax: Any = None,
    ) -> Any:
        """Draw the most influential training samples for one row.

        Parameters
        ----------
        row : int, default=0
            The row.
        k : int, default=10
            How many training samples.
        function : int, default=0
            Which function, if there are several.
        image_shape : (int, int), default=None
            The samples are pictures of this shape: draw a gallery of them.
        labels : list of str, default=None
            The name of each training sample; None for its text, a description of its graph, or its number.
        ax : matplotlib axes, default=None
            Where to draw; None for a new figure. A gallery is drawn on a figure of its own.

        Returns
        -------
        figure : the matplotlib figure.
        """
        n = len(self.values)
        if not isinstance(row, Integral) or not -n <= row < n:
            raise InvalidInputError(f"row={row!r} was given: there are {n} rows, numbered from 0 on.")
        order, changes = self.top(k, function)
        return draw_influence(self, int(row) % n, order[row], changes[row], function, image_shape, labels, ax)

    def __repr__(self) -> str:
        n_rows, n = self.values.shape[:2]
        nonzero = int(np.count_nonzero(self.values.reshape(n_rows, n, -1).any(axis=(0, 2))))
        several = f", {len(self.functions)} functions" if len(self.functions) > 1 else ""
        limit = "" if self.exact.all() else f"; {int((~self.exact).sum())} training samples estimated"
        head = (
            f"influence of {n} training samples on {n_rows} rows{several}: {nonzero} of them change f "
            f"({self.n_closed} solutions by the closed form, {self.n_refits} by refits{limit})"
        )
        order, changes = self.top(3)
        lines = [
            f"  row {r}: " + ", ".join(f"{i} ({c:+.3g})" for i, c in zip(order[r], changes[r], strict=True))
            for r in range(min(5, n_rows))
        ]
        return "\n".join([head, *lines, *(["  …"] if n_rows > 5 else [])])


def influence(
    model: Any,
    X: Any,
    X_train: Any = None,
    y_train: Any = None,
    sample_weight: Any = None,
    *,
    tol: float = 1e-6,
    max_refits: int | None = None,
    time_limit: float | None = None,
) -> Influence:
    """f₋ᵢ(x) − f(x): the exact change of a prediction when training sample i is left out and the machine refitted.

    A sample with β = 0 changes nothing, if some support vector is free. Where leaving out a support vector changes no
    other sample's state (zero, free, bound), the new solution follows from the inverse of the free support vectors;
    else the problem is solved, starting from there. Ridge regressions and Gaussian processes have a closed form for all
    samples. The sums that ν requires depend on all samples, so that each sample changes a NuSVC, a NuSVR and a
    OneClassSVM. Parameters that depend on the data, such as ``gamma="scale"``, ``class_weight="balanced"``, a
    process's learnt kernel or its ``normalize_y``, keep the values of the fit. Time and memory for the values are those
    of rows × training samples.

    Parameters
    ----------
    model : fitted SVC, NuSVC, SVR, NuSVR, OneClassSVM, KernelRidge, KernelRidgeCV or GaussianProcessRegressor, or a
        pipeline or search that ends in one
        From mercer or scikit-learn.
    X : the samples whose predictions are explained.
        For a pipeline, its input; for a precomputed kernel, their kernel values with all training samples.
    X_train, y_train, sample_weight : the data that the model was fitted to, in the same order.
        A KernelRidge or a GaussianProcessRegressor keeps its samples and needs no targets: leave them out, except for
        weights.
    tol : float, default=1e-6
        Largest violation of the optimality conditions in the solved problems.
    max_refits : int or None, default=None
        At most this many problems are solved; others have the value of the closed form, and ``exact`` is False.
    time_limit : float or None, default=None
        After this many seconds no further problem is solved, with a warning.

    Returns
    -------
    found : Influence

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import SVC, influence
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]
    >>> model = SVC(C=10).fit(X, y)
    >>> found = influence(model, X[:2], X, y)
    >>> found.values.shape, int((found.values != 0).any(axis=0).sum()) <= len(model.support_)
    ((2, 100), True)
    >>> indices, changes = found.top(3)
    >>> indices.shape
    (2, 3)
    """
    _check_limits(tol, max_refits, time_limit)
    machine, inner, _ = unwrap(model, X)
    kind = kind_among(machine, "influence", SUPPORTED, SUPPORTED)
    check_is_fitted(machine)
    inner_train = unwrap(model, X_train).X
    found = _left_out(kind, machine, inner, (inner_train, y_train, sample_weight), Limits(tol, max_refits, time_limit))
    n_functions = found.values.shape[2]
    one = n_functions == 1 and not _several_targets(kind, machine)
    training = X_train
    if training is None:
        training = machine.X_fit_ if kind.name in RIDGE else machine.X_train_
    return Influence(
        found.values[:, :, 0] if one else found.values,
        function_names(machine, n_functions),
        found.exact,
        found.n_closed,
        found.n_refits,
        X,
        training,
        y_train,
    )


def _left_out(kind: Kind, machine: Any, X: Any, training: tuple[Any, Any, Any], limits: Limits) -> LeftOut:
    X_train, y, sample_weight = training
    if kind.name in PROCESSES:
        if sample_weight is not None:
            raise InvalidInputError("A Gaussian process has no sample weights: leave sample_weight out.")
        return left_out_process(machine, X, X_train)
    if kind.name in RIDGE:
        return left_out_ridge(kind, machine, X, X_train, sample_weight)
    if X_train is None:
        raise InvalidInputError(
            f"A fitted {kind.name} keeps only its support vectors, but X_train is None: pass the X, y and "
            "sample_weight that it was fitted to."
        )
    if hasattr(machine, "landmark_certificate_") and not getattr(machine, "polish", False):
        raise InvalidInputError(
            f"This {kind.name} is a landmark machine: its function depends on all samples through a few landmarks. "
            "Fit it with landmarks=None, or with polish=True."
        )
    return left_out_machine(machine, X, X_train, y, sample_weight, limits)


def _check_limits(tol: float, max_refits: int | None, time_limit: float | None) -> None:
    if not isinstance(tol, Real) or not 0 < tol < np.inf:
        raise InvalidInputError(f"tol={tol!r} was given: it must be a positive number.")
    if time_limit is not None and (not isinstance(time_limit, Real) or not time_limit >= 0):
        raise InvalidInputError(f"time_limit={time_limit!r} was given: it must be None or a number of seconds.")
    if max_refits is not None and (not isinstance(max_refits, Integral) or max_refits < 0):
        raise InvalidInputError(f"max_refits={max_refits!r} was given: it must be None or a whole number from 0 on.")


def _several_targets(kind: Kind, machine: Any) -> bool:
    """Whether the model was fitted to a matrix of targets, so that predictions have a column for each."""
    if kind.name in RIDGE:
        return np.ndim(machine.dual_coef_) == 2
    return kind.name in PROCESSES and np.ndim(machine.alpha_) == 2
