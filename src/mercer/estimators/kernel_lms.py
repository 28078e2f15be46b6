"""KernelLMS: least mean squares in feature space, by batch gradient descent."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from mercer._sklearn_compat import Interval, StrOptions
from mercer.estimators.base import KernelMachine, keep_parameters, warn_user
from mercer.estimators.prediction import Expansion
from mercer.estimators.score_mixins import NumbersMixin
from mercer.exceptions import InvalidInputError
from mercer.gram.memory import budget_bytes
from mercer.gram.operator import Data, check_finite, product
from mercer.kernels.features import Vector, take_samples
from mercer.problems.clock import Clock
from mercer.problems.solution import Status, TracePoint
from mercer.problems.steps import MOST_STEPS, Steps
from mercer.validation import is_pairwise, real_targets, thread_count

# a relative increase of the error up to this size is rounding
ROUNDING = 1e-9
# up to this many samples compute eigenvalues densely instead of by ARPACK
DENSE_EIGENVALUES = 64
# the inverse of smaller eigenvalues overflows
TOO_SMALL = 1e-300
# relative tolerance of the largest eigenvalue
EIGENVALUE_TOL = 1e-3
# products that this eigenvalue takes, roughly; bytes per second of a product with a stored matrix
EIGENVALUE_PRODUCTS, BYTES_PER_SECOND = 30, 4e9


class KernelLMS(NumbersMixin, KernelMachine):
    """Batch gradient descent on ½ Σ (yᵢ - f(xᵢ))² in feature space: β := β + α (y - Kβ).

    The algorithm of [CS229] (5.7) to (5.12), from β = 0. Along an eigenvector of K with eigenvalue μ each step
    multiplies the residual by 1 - αμ. The iteration converges if and only if α < 2/μ_max, fastest where μ is large.
    Early stopping therefore regularises: after t steps directions with μ ≪ 1/(αt) are hardly fitted.

    Parameters
    ----------
    kernel, degree, gamma, coef0 : as in ``SVC``.
    learning_rate : float or "auto", default="auto"
        The step size α; "auto" is 1/μ_max. Values of 2/μ_max or more diverge and raise an error.
    max_iter : int, default=1000
        Maximum number of steps.
    tol : float, default=1e-4
        Stop when a step of size 1/μ_max would change no fitted value by more than tol · max |y|.
    early_stopping : bool, default=False
        Whether to hold out a validation set, to stop when its error has not fallen for ``n_iter_no_change`` steps, and
        to return the β with the smallest validation error.
    validation_fraction : float, default=0.1
        The fraction of samples held out for early stopping.
    n_iter_no_change : int, default=20
        Number of steps without improvement before early stopping.
    random_state : int, RandomState instance or None, default=None
        Seed of the choice of held-out samples.
    cache_size : float or "auto", default="auto"
        Memory for the kernel matrix in MB. If the matrix does not fit, it is recomputed tile by tile in each step.
    verbose, n_jobs, time_limit : as in ``SVC``.
    trace : bool, default=False
        Whether to keep every step in ``steps_``.

    Attributes
    ----------
    steps_ : Steps
        With ``trace``: the number t of each step, ½ Σ wᵢ (yᵢ - f(xᵢ))² before it (error), and the length of the change
        of θ = Σ βᵢ φ(xᵢ), that is √(Δβ' K Δβ) (change).
    learning_rate_ : float
        The step size α.
    largest_eigenvalue_ : float
        μ_max of the kernel matrix (of W^½ K W^½ with sample weights W).
    n_iter_ : int
        Number of steps behind the model; with early stopping, behind the best β.
    loss_curve_ : list of float
        ½ Σ wᵢ (yᵢ - f(xᵢ))² before each step, and at the end.
    validation_curve_ : list of float
        Mean squared error on the held-out samples, with early stopping.
    support_, support_vectors_, dual_coef_, rkhs_norm_, function_, n_features_in_, feature_names_in_ : as in ``SVR``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelLMS
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> model = KernelLMS(max_iter=2000).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.0]])[0] - np.sin(1.0)) < 0.01)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{
            key: KernelMachine._parameter_constraints[key]
            for key in ("kernel", "degree", "gamma", "coef0", "cache_size", "verbose", "n_jobs", "time_limit")
        },
        "learning_rate": [StrOptions({"auto"}), Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0.0, 1.0, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "trace": ["boolean"],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        learning_rate: Any = "auto",
        max_iter: int = 1000,
        tol: float = 1e-4,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 20,
        random_state: Any = None,
        cache_size: Any = "auto",
        verbose: Any = False,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        trace: bool = False,
    ) -> None:
        keep_parameters(self, locals())

    def _validate_targets(self, y: Any, weight: Vector) -> Vector:
        return real_targets(y)

    def _solve(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> None:
        used = np.flatnonzero(weight > 0)
        train, held = self._split(used)
        K = _Products(data, np.concatenate([train, held]), self.cache_size, thread_count(self.n_jobs), clock)
        target, w, n = np.concatenate([y[train], y[held]]), weight[train], len(train)
        in_time = clock.over_in(EIGENVALUE_PRODUCTS * K.seconds) is None
        # if time is short: the trace is an upper bound and costs nothing
        self.largest_eigenvalue_ = _largest_eigenvalue(K, np.sqrt(w)) if in_time else float(K.diagonal[:n] @ w)
        alpha = self._rate(self.largest_eigenvalue_, in_time)
        beta, F = np.zeros(n), np.zeros(len(target))
        best, best_error = beta, np.inf
        self.loss_curve_: list[float] = []
        self.validation_curve_: list[float] = []
        self._status, self.n_iter_, stale = Status.MAX_ITER, 0, 0
        largest = float(np.abs(target).max(initial=0.0))
        lengths: list[float] = []
        for step in range(int(self.max_iter) + 1):
            residual = target[:n] - F[:n]
            self.loss_curve_.append(0.5 * float((w * residual**2).sum()))
            if step > 0 and self.loss_curve_[-1] > self.loss_curve_[-2] * (1 + ROUNDING):
                # K has negative eigenvalues, whose directions diverge
                self._status = Status.STALLED
                break
            if len(held):
                self.validation_curve_.append(float(np.mean((target[n:] - F[n:]) ** 2)))
                stale = stale + 1 if self.validation_curve_[-1] >= best_error else 0
                if stale == 0:
                    best, best_error, self.n_iter_ = beta, self.validation_curve_[-1], step
                elif stale >= self.n_iter_no_change:
                    self._status = Status.CONVERGED
                    break
            else:
                best, self.n_iter_ = beta, step
            over = clock.over_in(2.0 * K.seconds)
            if step == self.max_iter or over is not None:
                self._status = Status.MAX_ITER if over is None else over
                break
            change = alpha * w * residual
            moved = K.product(change)
            self._change = float(np.abs(moved[:n]).max(initial=0.0))
            # compare with the step of size 1/μ_max, so that a small learning rate does not look like convergence
            if self._change <= self.tol * largest * min(1.0, alpha * self.largest_eigenvalue_):
                self._status = Status.CONVERGED
                break
            if self.trace and len(lengths) < MOST_STEPS:
                lengths.append(max(0.0, float(change @ moved[:n])) ** 0.5)
            beta, F = beta + change, F + moved
            clock.report(TracePoint(clock.seconds, step + 1, self._change, -self.loss_curve_[-1], n))
        self.learning_rate_ = alpha
        self._publish_steps(lengths, taken=step)
        squared_norm = float(best @ K.product(best)[:n]) if best.any() else 0.0
        self._publish(data, train, best, max(0.0, squared_norm))

    def _publish_steps(self, lengths: list[float], taken: int) -> None:
        self.__dict__.pop("steps_", None)  # those of an earlier fit
        if self.trace:
            t = np.arange(1, len(lengths) + 1)
            columns = {"t": t, "error": np.array(self.loss_curve_[: len(t)]), "change": np.array(lengths)}
            self.steps_ = Steps("kernel LMS", columns, "error", len(lengths) == taken)

    def _split(self, used: Vector) -> tuple[Vector, Vector]:
        """Indices of the training samples and of the held-out samples."""
        if not self.early_stopping:
            return used, used[:0]
        n_held = int(np.ceil(self.validation_fraction * len(used)))
        if n_held >= len(used):
            raise InvalidInputError(
                f"early_stopping holds out {n_held} of {len(used)} samples, which leaves none to train on: give more "
                "samples or a smaller validation_fraction."
            )
        order = check_random_state(self.random_state).permutation(used)
        return np.sort(order[n_held:]), np.sort(order[:n_held])

    def _rate(self, largest: float, known: bool) -> float:
        """The validated learning rate. ``known`` is False if ``largest`` is only an upper bound of the eigenvalue."""
        safe = 1.0 / largest if largest > 0 else 1.0
        if isinstance(self.learning_rate, str):
            if 0 < largest < TOO_SMALL:
                raise InvalidInputError(
                    f"The largest eigenvalue of the kernel matrix is {largest:.6g}: the learning rate, its inverse, "
                    "would not be a finite number. Scale the samples, for example with StandardScaler."
                )
            return safe
        if not known:
            return min(float(self.learning_rate), safe)
        if self.learning_rate * largest >= 2.0:
            raise InvalidInputError(
                f"learning_rate={self.learning_rate:g} diverges: the largest eigenvalue of the kernel matrix is "
                f"{largest:.6g}, so it must be below {2.0 / largest:.6g}. Use a smaller value, or 'auto'."
            )
        return float(self.learning_rate)

    def _publish(self, data: Data, train: Vector, beta: Vector, squared_norm: float) -> None:
        inside = np.flatnonzero(beta)
        support = train[inside]
        self.support_ = support.astype(np.int32)
        self.support_vectors_ = np.empty((0, 0)) if is_pairwise(data.kernel) else take_samples(data.samples, support)
        self._n_support = np.array([len(support)], dtype=np.int32)
        self._support = Expansion.over(data.kernel, self.support_vectors_, self.support_, data.n)
        self.dual_coef_ = self._dual_coef_ = self._as_coef(beta[inside][None, :])
        self.intercept_ = self._intercept_ = np.zeros(1)
        self.rkhs_norm_ = np.array([np.sqrt(squared_norm)])

    def _warn_unfinished(self) -> None:
        if self._status is Status.CONVERGED:
            return
        ended = {
            Status.MAX_ITER: f"max_iter={self.max_iter}",
            Status.TIME_LIMIT: f"time_limit={self.time_limit} s",
            Status.STALLED: "the error began to grow, as the kernel matrix has negative eigenvalues",
        }.get(self._status, "interrupted")
        warn_user(
            f"Gradient descent ended early ({ended}): the last step changed a fitted value by "
            f"{getattr(self, '_change', np.inf):.3g}; the squared error is {2 * self.loss_curve_[-1]:.4g}, down from "
            f"{2 * self.loss_curve_[0]:.4g}. Allow more steps, or use early_stopping=True to stop on purpose.",
            ConvergenceWarning,
        )


class _Products:
    """Products with the kernel matrix, which is stored if memory and time allow. ``seconds`` estimates one product."""

    def __init__(self, data: Data, rows: Vector, cache_size: Any, n_threads: int, clock: Clock) -> None:
        self.kernel, self.n_threads, self.evaluations = data.kernel, n_threads, data.evaluations
        whole = len(rows) == data.n and np.array_equal(rows, np.arange(data.n))
        part = data if whole else data.take(rows)
        self.features = part.features(np.float64)
        self.diagonal = self.kernel.diagonal(self.features)
        check_finite(self.diagonal)
        self.n = len(rows)
        stored = 8 * self.n**2 <= budget_bytes(cache_size)
        self.seconds = 0.0
        if clock.left < np.inf:
            whole_matrix = part.seconds(self.n, self.n, n_threads)
            stored = stored and 0.5 * whole_matrix <= 0.5 * clock.left
            self.seconds = 8 * self.n**2 / BYTES_PER_SECOND if stored else whole_matrix
        self.matrix = part.matrix(np.float64, n_threads) if stored else None
        if self.matrix is not None:
            check_finite(self.matrix)

    def product(self, v: Vector) -> Vector:
        """K[:, :len(v)] @ v."""
        if self.matrix is not None:
            return self.matrix[:, : len(v)] @ v
        columns = self.features if len(v) == self.n else self.features.take(np.arange(len(v)))
        return product(self.kernel, self.features, columns, v, self.n_threads, self.evaluations)


def _largest_eigenvalue(K: _Products, root: Vector) -> float:
    """The largest eigenvalue of W^½ K W^½ over the training samples, which come first in K."""
    n = len(root)

    def scaled(v: Vector) -> Vector:
        return root * K.product(root * v.ravel())[:n]

    if n <= DENSE_EIGENVALUES:
        matrix = np.column_stack([scaled(unit) for unit in np.eye(n)])
        return max(0.0, float(np.linalg.eigvalsh(matrix)[-1]))
    operator = LinearOperator((n, n), matvec=scaled, dtype=np.float64)
    start = np.random.default_rng(0).uniform(0.5, 1.5, n)
    try:
        found = eigsh(operator, k=1, which="LA", v0=start, tol=EIGENVALUE_TOL, return_eigenvectors=False)
        return max(0.0, float(found[0]))
    except ArpackNoConvergence:
        # upper bound: the largest absolute row sum
        return float(max(np.abs(scaled(unit)).sum() for unit in np.eye(n)))
