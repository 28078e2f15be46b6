"""SVDD: support vector data description, the smallest ball around the samples in feature space."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer._sklearn_compat import Interval, num_samples
from mercer.estimators.base import KernelMachine, keep_parameters
from mercer.estimators.enclosing.region_mixin import RegionMixin
from mercer.estimators.over_parts.rows_on_disk import block_by_block
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data
from mercer.kernels.features import Vector, take_samples
from mercer.kernels.rkhs_function import RKHSFunction
from mercer.losses import Loss
from mercer.losses.smallest_ball import SmallestBall, ball_targets
from mercer.problems.clock import Clock
from mercer.problems.solution import Options, Solution, certificate
from mercer.sources.row_source import RowSource
from mercer.svm.verify import exact_product
from mercer.validation import call_kernel, is_pairwise

# samples whose k(x, x) is computed at once; fewer for a kernel function, which computes their whole block
BATCH, FUNCTION_BATCH = 8192, 256
# samples from which the spread of all is estimated
SPREAD_FROM = 64
# a radius that leaves a larger relative gap is computed anew
SHARP = 1e-5
# diagonals of a kernel matrix that differ by this share of the largest count as equal
CONSTANT = 1e-9


class SVDD(RegionMixin, KernelMachine):
    """Support vector data description: minimise R² + C Σ max(0, |φ(xᵢ) - a|² - R²) over the centre a and radius R.

    Samples beyond the ball pay for their squared distance from it (Tax & Duin 2004). Negative examples, with the label
    -1, pay for being inside; those that decide the ball are on its edge. If k(x, x) is the same for all x, as for the
    Gaussian kernel, and there are no negative examples, the region is that of ``OneClassSVM`` with the same nu; else
    the two differ, and the ball does not depend on the origin of feature space. The problem is convex in a and
    R² - |a|², so that the duality gap certifies it.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1]: an upper bound on the fraction of positive samples outside the ball, and a lower bound on the
        fraction of support vectors; C = 1/(nu n) for n positive samples.
    C : float, default=None
        Weight of the loss, instead of nu. The values C * sample_weight of the positive samples must sum to at least 1.
    kernel, degree, gamma, coef0 : as in ``SVC``.
    tol : float, default=1e-5
        The largest violation of the optimality conditions, in units of half a squared distance; where samples are
        closer together than 1, relative to their squared distances.
    shrinking, cache_size, verbose, max_iter, n_jobs, time_limit, warm_start, precision, solver :
        As in ``SVC``.

    Attributes
    ----------
    radius_ : float
        The radius R.
    center_ : RKHSFunction
        The centre a as a function: a(x) = ⟨a, φ(x)⟩ = Σ βᵢ k(xᵢ, x). Not available for a precomputed kernel.
    offset_ : float
        -R²: ``decision_function = score_samples - offset_``, where a score is minus the squared distance from the
        centre.
    n_negative_ : int
        Number of negative examples.
    certificate_ : Certificate
        Of half the objective, ½(R² + C Σ max(0, …)).
    dual_coef_ : ndarray of shape (1, n_support)
        The coefficients β of the centre, which sum to 1.
    support_, support_vectors_, n_support_, rkhs_norm_, function_, trace_, plan_, kernel_evaluations_, fit_status_,
    shape_fit_, n_iter_, n_features_in_, feature_names_in_ :
        As in ``SVC``; ``rkhs_norm_`` is |a|.

    Examples
    --------
    >>> from mercer import SVDD
    >>> X = [[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [5.0, 5.0]]
    >>> model = SVDD(kernel="linear", C=0.4).fit(X)
    >>> model.predict([[0.5, 0.5], [4.0, 4.0]])
    array([ 1, -1])
    >>> ball = SVDD(kernel="linear", C=10.0).fit(X, [1, 1, 1, 1, -1])
    >>> round(ball.radius_, 3), ball.n_negative_
    (1.0, 1)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{key: value for key, value in KernelMachine._parameter_constraints.items() if key != "fit_intercept"},
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
        "C": [Interval(Real, 0.0, None, closed="neither"), None],
    }
    fit_intercept = True

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float | None = None,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-5,
        shrinking: bool = True,
        cache_size: Any = "auto",
        verbose: Any = False,
        max_iter: int = -1,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        precision: str = "auto",
        solver: str = "auto",
    ) -> None:
        keep_parameters(self, locals())

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SVDD:
        """Find the smallest ball.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,), default=None
            1 for samples that belong inside, -1 for negative examples. A y with any other value is ignored, as
            scikit-learn's detectors do.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of C, one per sample.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        super().fit(X, y, sample_weight=sample_weight)
        return self

    # ---- fit -------------------------------------------------------------------------------------------------

    def _validate(self, X: Any, y: Any, reset: bool) -> tuple[Any, Any]:
        X, _ = super()._validate(X, None, reset)
        return X, y

    def _validate_targets(self, y: Any, weight: Vector) -> Vector:
        labels = ball_labels(y, len(weight))
        used = weight > 0
        self.n_negative_ = int(np.count_nonzero((labels < 0) & used))
        if not np.any((labels > 0) & used):
            raise InvalidInputError(
                f"All {int(used.sum())} weighted samples have the label -1, but the ball needs samples inside: give at "
                "least one sample the label 1 and a positive weight."
            )
        return labels

    def _solve(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> None:
        norms = data.kernel.diagonal(data.features(np.float64))
        spread = float(np.ptp(norms)) <= CONSTANT * float(np.abs(norms).max())
        # for a kernel matrix, k(x, x) of new samples is not known, unless it is the same for all samples
        self._norm = float(norms.mean()) if spread else None
        self._fit_one(data, SmallestBall(), ball_targets(norms, y), weight * ball_price(self, y, weight), clock)

    def _run(
        self, data: Data, loss: Loss, y: Vector, weight: Vector, options: Options, clock: Clock, start: Vector | None
    ) -> Solution:
        options = replace(options, tol=options.tol * min(1.0, spread_of(data)))
        solution = super()._run(data, loss, y, weight, options, clock, start)
        if solution.certificate.relative_gap <= SHARP:
            return solution
        # with a large C samples that tol leaves outside cost much: take the best radius for this centre
        qp = loss.box_qp(y, weight, True)
        F = exact_product(data, qp, solution.beta, options)
        b = loss.best_thresholds(y, F, weight)
        proof = certificate(qp, loss, y, weight, solution.beta, F, b, data.psd)
        better = proof.gap < solution.certificate.gap
        return replace(solution, F=F, thresholds=b, certificate=proof) if better else solution

    def _publish_one(self, data: Data, loss: Loss, used: Vector, solution: Solution) -> None:
        super()._publish_one(data, loss, used, solution)
        squared_radius = max(0.0, 2.0 * float(self._intercept_[0]) + solution.squared_norm)
        self.radius_ = float(np.sqrt(squared_radius))
        self.offset_ = -squared_radius

    @property
    def _unit(self) -> float:
        return 1.0  # the coefficients sum to 1 whatever C is

    # ---- prediction ------------------------------------------------------------------------------------------

    def _squared_norms(self, X: Any, values: Any) -> Vector:
        """k(x, x) of samples; ``values`` are the same samples as `_decide` takes them."""
        if self._norm is not None:
            return np.full(num_samples(X), self._norm)
        function = self._function_samples is not None
        if is_pairwise(self._kernel) and not function:
            raise InvalidInputError(
                "The distance from the centre needs k(x, x) of new samples, which a precomputed kernel does not give, "
                "and the diagonal of the training matrix is not constant. Normalise the kernel matrix to a diagonal of "
                "ones, or fit with the kernel itself."
            )
        n, size = num_samples(X), FUNCTION_BATCH if function else BATCH
        parts = [np.arange(start, min(start + size, n)) for start in range(0, n, size)]
        if function:
            pieces = (take_samples(X, part) for part in parts)
            return np.concatenate([np.diagonal(call_kernel(self.kernel, piece, piece)) for piece in pieces])
        return np.concatenate(
            [self._kernel.diagonal(self._kernel.prepare(take_samples(values, part), np.float64)) for part in parts]
        )

    def _region_values(self, X: Any, labels_only: bool) -> Vector:
        if isinstance(X, RowSource):
            check_is_fitted(self)
            return block_by_block(self, X, lambda block: self._inside(block, self._as_trained(block)))
        return self._inside(X, self._validate_for_predict(X))

    def _inside(self, X: Any, values: Any) -> Vector:
        """R² − |φ(x) − a|² = 2(f(x) + t) − k(x, x) of samples, given and validated."""
        decision: Vector = 2.0 * self._decide(values, False)[:, 0] - self._squared_norms(X, values)
        return decision

    @property
    def center_(self) -> RKHSFunction:
        """The centre a as an ``RKHSFunction``: Σ βᵢ k(xᵢ, ·)."""
        center = self.function_
        assert isinstance(center, RKHSFunction)
        return center


def spread_of(data: Data) -> float:
    """An estimate of the mean squared distance of two samples, from some of them; 1 if these are equal."""
    some = data.take(np.unique(np.linspace(0, data.n - 1, min(SPREAD_FROM, data.n)).astype(np.intp)))
    K = some.matrix(np.float64, 1)
    squares = K.diagonal()[:, None] + K.diagonal() - 2.0 * K
    spread = float(squares.mean())
    # below this it is rounding
    return spread if spread > 64 * np.finfo(float).eps * float(np.abs(K.diagonal()).max()) else 1.0


def ball_labels(y: Any, n: int) -> Vector:
    """±1 for each of n samples: y if it has no other values, else ones."""
    if y is None:
        return np.ones(n)
    labels = np.asarray(y)
    if num_samples(y) != n:
        raise InvalidInputError(f"y has {num_samples(y)} labels, but X has {n} samples: give one label per sample.")
    if labels.shape != (n,) or labels.dtype.kind not in "if" or not np.isin(labels, (-1, 1)).all():
        return np.ones(n)
    return labels.astype(np.float64)


def ball_price(machine: Any, labels: Vector, weight: Vector) -> float:
    """C, or 1/(ν W) for the total weight W of the positive samples."""
    if machine.C is not None:
        return float(machine.C)
    return 1.0 / (float(machine.nu) * float(weight[labels > 0].sum()))
