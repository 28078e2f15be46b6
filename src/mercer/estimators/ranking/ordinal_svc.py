"""OrdinalSVC: support vector ordinal regression, one function and ordered thresholds between ordered classes."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin

from mercer._sklearn_compat import Interval, StrOptions
from mercer.estimators.base import KernelMachine, keep_parameters, norm, warn_user
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data
from mercer.kernels.features import Matrix, Vector
from mercer.losses import Loss
from mercer.losses.ordinal import ExplicitOrdinal, ImplicitOrdinal, Ordinal
from mercer.ordering.explicit_order import solve_explicit
from mercer.problems.clock import Clock
from mercer.problems.solution import Options, Solution
from mercer.validation import check_weighted_classes, class_codes, class_weights


class OrdinalSVC(ClassifierMixin, KernelMachine):  # type: ignore[misc]
    """Ordinal regression: minimise ½|w|² + Σ Cᵢ Σⱼ max(0, 1 - sᵢⱼ(f(xᵢ) - bⱼ)) over w and b₁ ≤ … ≤ b_{r-1}.

    The classes are ordered, such as ratings. The class of x is the interval between two thresholds bⱼ in which f(x)
    lies; sᵢⱼ is 1 if the class of sample i is above threshold j, else -1 (Chu & Keerthi 2007). Mistakes by several
    classes cost more than those by one. The problem is convex; the duality gap certifies the solution.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss; finite.
    constraints : {"implicit", "explicit"}, default="implicit"
        "implicit": the sum over j is over all thresholds; they are then ordered at the optimum (SVORIM). "explicit":
        only over the two thresholds next to the class of the sample, and the order is a constraint (SVOREX).
    classes : array-like, default=None
        The labels in their order, the lowest first. None: that of the ordered categories of a pandas Series, else
        sorted, texts alphabetically with a warning.
    kernel, degree, gamma, coef0, shrinking, tol, cache_size, class_weight, verbose, max_iter, n_jobs, time_limit,
    warm_start, precision, solver : as in ``SVC``.

    Attributes
    ----------
    thresholds_ : ndarray of shape (n_classes - 1,)
        The thresholds b in ascending order: x is in class j if f(x) is between ``thresholds_[j - 1]`` and
        ``thresholds_[j]``.
    classes_ : ndarray of shape (n_classes,)
        The labels in their order.
    certificate_ : Certificate
        Primal value, dual value and their gap.
    dual_coef_ : ndarray of shape (1, n_support)
        The coefficients β of f = Σ βᵢ k(xᵢ, ·).
    support_, support_vectors_, n_support_, coef_, class_weight_, rkhs_norm_, function_, trace_, plan_,
    kernel_evaluations_, fit_status_, shape_fit_, n_iter_, n_features_in_, feature_names_in_ :
        As in ``SVC``.

    Examples
    --------
    >>> from mercer import OrdinalSVC
    >>> X, y = [[0], [1], [2], [3], [4], [5]], ["low", "low", "mid", "mid", "high", "high"]
    >>> model = OrdinalSVC(kernel="linear", C=10, classes=["low", "mid", "high"]).fit(X, y)
    >>> model.predict([[0.2], [2.6], [9.0]])
    array(['low', 'mid', 'high'], dtype='<U4')
    >>> model.thresholds_.round(2)
    array([3., 7.])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{key: value for key, value in KernelMachine._parameter_constraints.items() if key != "fit_intercept"},
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "constraints": [StrOptions({"implicit", "explicit"})],
        "classes": ["array-like", None],
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }
    fit_intercept = True

    def __init__(
        self,
        *,
        C: float = 1.0,
        constraints: str = "implicit",
        classes: Any = None,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: Any = "auto",
        class_weight: Any = None,
        verbose: Any = False,
        max_iter: int = -1,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        precision: str = "auto",
        solver: str = "auto",
    ) -> None:
        keep_parameters(self, locals())

    # ---- fit -------------------------------------------------------------------------------------------------

    def _validate(self, X: Any, y: Any, reset: bool) -> tuple[Any, Any]:
        if y is not None:
            # pandas knows the order of ordered categories, an array does not
            kind: Any = getattr(y, "dtype", None)
            self._order = kind.categories if self.classes is None and getattr(kind, "ordered", False) else self.classes
        return super()._validate(X, y, reset)

    def _validate_targets(self, y: Any, weight: Vector) -> Vector:
        found, codes = class_codes(y)
        order = self.__dict__.pop("_order", self.classes)
        if order is not None:
            found, codes = in_given_order(found, codes, order)
        elif len(found) > 2 and all(isinstance(label, str) for label in found.tolist()):
            texts = ", ".join(repr(label) for label in found.tolist())
            warn_user(
                f"The classes are texts, and their order is alphabetical: {texts}. If they have another order, give it "
                "in the parameter classes, the lowest class first.",
                UserWarning,
            )
        self.classes_ = found
        self.class_weight_ = class_weights(self.class_weight, found, codes, weight)
        check_weighted_classes(codes, weight, self.class_weight_)
        return codes.astype(np.float64)

    def _solve(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> None:
        factors = self.class_weight_[y.astype(np.intp)]
        self._fit_one(data, ordinal_loss(self), y, float(self.C) * factors * weight, clock)

    def _run(
        self, data: Data, loss: Loss, y: Vector, weight: Vector, options: Options, clock: Clock, start: Vector | None
    ) -> Solution:
        if not isinstance(loss, ExplicitOrdinal):
            return super()._run(data, loss, y, weight, options, clock, start)
        return solve_explicit(data, loss, y, weight, options, clock, None if start is None else self._unit * start)

    def _publish_one(self, data: Data, loss: Loss, used: Vector, solution: Solution) -> None:
        self._publish_function(data, used, solution.coefficients, 0.0, norm(solution), solution)
        # rounding may leave implicit thresholds out of order; sorting them never increases the sum over copies
        self.thresholds_ = np.sort(-solution.thresholds) + 0.0

    # ---- prediction ------------------------------------------------------------------------------------------

    def latent(self, X: Any) -> Vector:
        """f(x), the position of each sample on the common scale of all classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples_test, n_samples_train)
            The samples; for a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        values : ndarray of shape (n_samples,)
            The values, to be compared with ``thresholds_``.
        """
        return self._values(X)[:, 0]

    def decision_function(self, X: Any) -> Matrix:
        """How far f(x) is inside the interval of each class: min(f(x) - b_j, b_{j+1} - f(x)); negative outside.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples_test, n_samples_train)
            The samples; for a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        values : ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            The largest is that of the predicted class; for two classes f(x) - b, positive for the upper one.
        """
        f = self.latent(X)
        if len(self.classes_) == 2:
            return f - self.thresholds_[0]
        edges = np.concatenate([[-np.inf], self.thresholds_, [np.inf]])
        return np.minimum(f[:, None] - edges[:-1], edges[1:] - f[:, None])

    def predict(self, X: Any) -> Vector:
        """The class of each sample: the interval between thresholds in which f(x) lies.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples_test, n_samples_train)
            The samples; for a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            The labels.
        """
        f = self.latent(X)
        return self.classes_[np.searchsorted(self.thresholds_, f)]


def ordinal_loss(machine: Any) -> Ordinal:
    """The loss of a machine that knows its classes."""
    kind = ImplicitOrdinal if machine.constraints == "implicit" else ExplicitOrdinal
    return kind(len(machine.classes_))


def in_given_order(found: Vector, codes: Vector, classes: Any) -> tuple[Vector, Vector]:
    """The classes of y and their codes in the order that ``classes`` gives; classes without samples are left out."""
    order = np.asarray(classes)
    if order.ndim != 1 or len(np.unique(order)) != len(order):
        raise InvalidInputError(f"classes={classes!r} was given, but classes must be a list of different labels.")
    missing = [label for label in found.tolist() if label not in order.tolist()]
    if missing:
        raise InvalidInputError(
            f"y contains the label {missing[0]!r}, which is not in classes={order.tolist()!r}: add it in its place."
        )
    place = np.array([order.tolist().index(label) for label in found.tolist()])
    rank = np.argsort(place)
    position = np.empty_like(rank)
    position[rank] = np.arange(len(rank))
    return found[rank], position[codes]
