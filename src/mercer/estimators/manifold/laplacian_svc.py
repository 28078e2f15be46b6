"""LaplacianSVC: support vector machines for partly labelled samples, by manifold regularisation."""

from __future__ import annotations

from math import isnan
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from mercer._sklearn_compat import Interval
from mercer.erm.kernel_matrix import check_room
from mercer.estimators.base import keep_parameters
from mercer.estimators.least_squares.one_vs_rest import OneVsRestMixin, label_columns, predicted_codes
from mercer.estimators.loss_minimiser import LossMinimiser
from mercer.estimators.manifold.neighbour_graph import deformation, neighbour_graph, normalised_laplacian
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data, product
from mercer.kernels import Precomputed
from mercer.kernels.features import Vector
from mercer.losses import Hinge
from mercer.problems.clock import Clock
from mercer.svm.solve import solve_problem
from mercer.validation import check_weighted_classes, class_codes, class_weights

UNLABELLED = -1


class LaplacianSVC(OneVsRestMixin, LossMinimiser):
    """Laplacian SVM: minimise ½|f|² + s/2 f'Lᵖf + Σ Cᵢ max(0, 1 − yᵢ(f(xᵢ) + b)) over labelled and unlabelled samples.

    The losses are those of the labelled samples; f'Lᵖf, with the Laplacian L of a graph of nearest neighbours and f at
    all samples, makes f smooth where samples are dense (Belkin, Niyogi & Sindhwani, JMLR 7, 2006). That is a support
    vector machine on the labelled samples with a deformed kernel; its function is a sum over all samples, so that new
    ones can be predicted. Several classes are one against the rest.

    It solves a system with an n × n matrix: n is limited by memory and by time, which grows like n³.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses of the labelled samples. Finite.
    smoothness : float, default=100.0
        s ≥ 0, the weight of f'Lᵖf; 0 is ``SVC``, one against the rest, on the labelled samples.
    n_neighbors : int, default=7
        Neighbours of each sample in the graph, by distance in the feature space of the kernel.
    power : int, default=1
        p; larger powers are smoother.
    kernel, degree, gamma, coef0 : as in ``SVC``.
    fit_intercept, class_weight, tol, max_iter : as in ``SVC``; class weights are those of the labelled samples.
    cache_size : float or "auto", default="auto"
        Memory for three kernel matrices in MB; "auto" is half of the available memory. A larger problem is an error.
    n_jobs, time_limit, verbose : as in ``SVC``; the limit of time applies to the machines, not to the deformed kernel.

    Attributes
    ----------
    certificate_, certificates_ : Certificate and list of Certificate
        Of the machine with the deformed kernel, for all classes together and for each. ``mercer.certify`` recomputes
        the first from the coefficients, the data and the graph.
    transduction_ : ndarray of shape (n_samples,)
        The predicted labels of all samples of fit.
    labelled_ : ndarray of shape (n_labelled,)
        The indices of the labelled samples.
    dual_coef_ : ndarray of shape (1, n_support) or (n_classes, n_support)
        Coefficients of the kernel itself at all samples.
    intercept_, rkhs_norm_ : ndarray of shape (1,) or (n_classes,)
        The intercepts b and the norms |f| of the kernel itself.
    support_, support_vectors_, n_iter_, classes_, class_weight_, coef_, function_, trace_, kernel_evaluations_,
    fit_status_, shape_fit_, n_features_in_, feature_names_in_ : as in ``KernelLogisticRegression``.

    Examples
    --------
    Two moons with one label each; −1 means unlabelled, as in scikit-learn:

    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from mercer import LaplacianSVC
    >>> X, y = make_moons(200, noise=0.05, random_state=0)
    >>> given = np.full(200, -1)
    >>> for c in (0, 1):
    ...     given[np.flatnonzero(y == c)[0]] = c
    >>> model = LaplacianSVC(C=100.0, gamma=5.0).fit(X, given)
    >>> float(model.score(X, y))
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{key: value for key, value in LossMinimiser._parameter_constraints.items() if key != "warm_start"},
        "smoothness": [Interval(Real, 0.0, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "power": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        smoothness: float = 100.0,
        n_neighbors: int = 7,
        power: int = 1,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int = -1,
        cache_size: Any = "auto",
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: Any = False,
    ) -> None:
        keep_parameters(self, locals())

    # ---- fit -------------------------------------------------------------------------------------------------

    def _validate(self, X: Any, y: Any, reset: bool) -> tuple[Any, Any]:
        labels = [] if y is None else np.asarray(y, dtype=object).ravel().tolist()
        missing = [i for i, label in enumerate(labels) if label is None or (isinstance(label, float) and isnan(label))]
        if missing:
            raise InvalidInputError(
                f"y contains {len(missing)} missing labels (None or NaN), the first in row {missing[0]}. Unlabelled "
                "samples have the label -1: use y.astype(object).fillna(-1) for a pandas Series."
            )
        return super()._validate(X, y, reset)

    def _validate_targets(self, y: Any, weight: Vector) -> Vector:
        labels = np.asarray(y)
        known = is_labelled(labels)
        if not (known & (weight > 0)).any():
            raise InvalidInputError(
                "y has no labelled sample with positive weight: -1 means unlabelled. Label at least one sample of each "
                "of two classes."
            )
        found = set(labels[known].tolist())
        if len(found) == 1 and not known.all():
            raise InvalidInputError(
                f"All {int(known.sum())} labelled samples are of the class {found.pop()!r}; -1 means unlabelled. Label "
                "samples of two classes. If -1 is one of your classes, give it another name, such as 0."
            )
        self.classes_, codes = class_codes(labels[known])
        self.class_weight_ = class_weights(self.class_weight, self.classes_, codes, weight[known])
        check_weighted_classes(codes, weight[known], self.class_weight_)
        targets = np.full(len(labels), float(UNLABELLED))
        targets[known] = codes
        return targets

    def _solve(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> None:
        options, loss, fits = self._options(), Hinge(), bool(self.fit_intercept)
        used = np.flatnonzero(weight > 0)
        part = data if len(used) == data.n else data.take(used)
        check_room(part.n, options.budget, 2 * part.n**2)
        codes = y[used].astype(np.intp)
        factors = np.where(codes >= 0, weight[used] * self.class_weight_[codes], 0.0)
        labelled = np.flatnonzero(factors > 0)
        K = part.matrix(np.float64, options.n_threads)
        laplacian = normalised_laplacian(neighbour_graph(K, int(self.n_neighbors)))
        P = deformation(K, laplacian, int(self.power), float(self.smoothness), labelled)
        deformed = K[labelled] @ P
        machine = Data(Precomputed(), 0.5 * (deformed + deformed.T), len(labelled), part.psd)
        found = []
        for k, labels in enumerate(label_columns(codes[labelled], len(self.classes_)).T):
            with clock.share_of_time(1.0 / (max(1, len(self.classes_) - k))):
                C = float(self.C) * factors[labelled]
                found.append(solve_problem(machine, loss, labels, C, fits, options, clock, None))
        beta = P @ np.column_stack([s.beta for s in found])
        F = K @ beta
        intercept = np.array([float(s.thresholds.sum()) for s in found])
        several = f"{len(found)} classes against the rest" if len(found) > 1 else None
        self._publish_expansion(data, used, found, beta, F, intercept, several)
        self.transduction_, self.labelled_ = np.empty(data.n, self.classes_.dtype), used[labelled]
        self.transduction_[used] = self.classes_[predicted_codes(F + intercept)]
        left_out = np.flatnonzero(weight <= 0)
        if len(left_out):
            values = product(data.kernel, data.exact(left_out), data.exact(used), beta, options.n_threads) + intercept
            self.transduction_[left_out] = self.classes_[predicted_codes(values)]


def is_labelled(labels: Vector) -> Vector:
    """Which labels are not -1. Texts are all labelled; objects may mix texts with -1."""
    texts = labels.dtype.kind in "SU"
    return np.array([texts or label != UNLABELLED for label in labels], dtype=bool)
