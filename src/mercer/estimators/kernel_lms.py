"""Least mean squares with kernels: batch gradient descent on the squared error."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from mercer._sklearn_compat import Interval, StrOptions
from mercer.estimators.base import KernelMachine
from mercer.estimators.prediction import Expansion
from mercer.estimators.progress import warn_user
from mercer.exceptions import InvalidInputError
from mercer.gram.memory import budget_bytes
from mercer.gram.operator import product
from mercer.kernels.features import Vector, take_samples
from mercer.solvers.base import Clock, Status, TracePoint
from mercer.solvers.data import Data, check_finite
from mercer.validation import is_pairwise, real_targets, thread_count

# a rise of the error by this part of it is rounding
ROUNDING = 1e-9
# ARPACK needs some room; below this many samples the eigenvalues are computed densely
DENSE_EIGENVALUES = 64
# eigenvalues whose inverse is beyond float64
TOO_SMALL = 1e-300
# of the largest eigenvalue, relatively
EIGENVALUE_TOL = 1e-3
# products that this takes, about, and bytes of a stored matrix that a product reads in a second
EIGENVALUE_PRODUCTS, BYTES_PER_SECOND = 30, 4e9


class KernelLMS(RegressorMixin, KernelMachine):  # type: ignore[misc]
    """Batch gradient descent on ½ Σ (yᵢ - f(xᵢ))² in feature space: β := β + α (y - Kβ).

    The algorithm of [CS229] (5.7) to (5.12), from β = 0. In the direction of an eigenvector of K with eigenvalue μ the
    residual shrinks by 1 - αμ in each step: it converges if and only if α < 2/μ_max, quickly where μ is large. Stopping
    early therefore smooths: after t steps directions with μ ≪ 1/(αt) are still hardly fitted.

    Parameters
    ----------
    kernel, degree, gamma, coef0 : as in ``SVC``.
    learning_rate : float or "auto", default="auto"
        α; "auto" is 1/μ_max, at which every direction shrinks without changing its sign. Values from 2/μ_max on
        diverge and are refused.
    max_iter : int, default=1000
        Steps at most.
    tol : float, default=1e-4
        Stop when a step of the automatic rate would change no fitted value by more than this part of max |y|.
    early_stopping : bool, default=False
        Set a part of the samples aside, stop when their error has not fallen for ``n_iter_no_change`` steps, and take
        the β that was best for them.
    validation_fraction : float, default=0.1
        The part that is set aside.
    n_iter_no_change : int, default=20
        Steps without progress.
    random_state : int, RandomState instance or None, default=None
        Chooses the samples that are set aside.
    cache_size : float or "auto", default="auto"
        MB within which the kernel matrix is computed once; beyond, it is computed anew, tile by tile, in each step.
    verbose, n_jobs, time_limit : as in ``SVC``.

    Attributes
    ----------
    learning_rate_ : float
        α.
    largest_eigenvalue_ : float
        μ_max of the kernel matrix (of W^½ K W^½ with sample weights W).
    n_iter_ : int
        Steps of the model: with early stopping, of the best one.
    loss_curve_ : list of float
        ½ Σ wᵢ (yᵢ - f(xᵢ))² before each step, and at the end.
    validation_curve_ : list of float
        Mean squared error on the samples set aside, with early stopping.
    support_, support_vectors_, dual_coef_, rkhs_norm_, n_features_in_, feature_names_in_ : as in ``SVR``.

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
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.cache_size = cache_size
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.time_limit = time_limit

    def _validate_targets(self, y: Any, weight: Vector) -> Vector:
        return real_targets(y)

    def _solve(self, data: Data, y: Vector, weight: Vector, clock: Clock) -> None:
        used = np.flatnonzero(weight > 0)
        train, held = self._split(used)
        K = _Products(data, np.concatenate([train, held]), self.cache_size, thread_count(self.n_jobs), clock)
        target, w, n = np.concatenate([y[train], y[held]]), weight[train], len(train)
        in_time = clock.over_in(EIGENVALUE_PRODUCTS * K.seconds) is None
        # the trace is never below it, and costs nothing
        self.largest_eigenvalue_ = _largest_eigenvalue(K, np.sqrt(w)) if in_time else float(K.diagonal[:n] @ w)
        alpha = self._rate(self.largest_eigenvalue_, in_time)
        beta, F = np.zeros(n), np.zeros(len(target))
        best, best_error = beta, np.inf
        self.loss_curve_: list[float] = []
        self.validation_curve_: list[float] = []
        self._status, self.n_iter_, stale = Status.MAX_ITER, 0, 0
        largest = float(np.abs(target).max(initial=0.0))
        for step in range(int(self.max_iter) + 1):
            residual = target[:n] - F[:n]
            self.loss_curve_.append(0.5 * float((w * residual**2).sum()))
            if step > 0 and self.loss_curve_[-1] > self.loss_curve_[-2] * (1 + ROUNDING):
                # directions with a negative eigenvalue grow without limit
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
            # by the step of the automatic rate, so that a small rate does not pass for the end
            if self._change <= self.tol * largest * min(1.0, alpha * self.largest_eigenvalue_):
                self._status = Status.CONVERGED
                break
            beta, F = beta + change, F + moved
            clock.report(TracePoint(clock.seconds, step + 1, self._change, -self.loss_curve_[-1], n))
        self.learning_rate_ = alpha
        squared_norm = float(best @ K.product(best)[:n]) if best.any() else 0.0
        self._publish(data, train, best, max(0.0, squared_norm))

    def _split(self, used: Vector) -> tuple[Vector, Vector]:
        """Samples to train on, and those set aside."""
        if not self.early_stopping:
            return used, used[:0]
        n_held = int(np.ceil(self.validation_fraction * len(used)))
        if n_held >= len(used):
            raise InvalidInputError(
                f"early_stopping sets {n_held} of {len(used)} samples aside, which leaves none to train on: give more "
                "samples or a smaller validation_fraction."
            )
        order = check_random_state(self.random_state).permutation(used)
        return np.sort(order[n_held:]), np.sort(order[:n_held])

    def _rate(self, largest: float, known: bool) -> float:
        """The learning rate, if it converges; ``known``: whether the largest eigenvalue is that, or a bound of it."""
        safe = 1.0 / largest if largest > 0 else 1.0
        if isinstance(self.learning_rate, str):
            if 0 < largest < TOO_SMALL:
                raise InvalidInputError(
                    f"The largest eigenvalue of the kernel matrix is {largest:.6g}: the learning rate, one over it, "
                    "would not be a finite number. Scale the samples, for example with StandardScaler."
                )
            return safe
        if not known:
            return min(float(self.learning_rate), safe)
        if self.learning_rate * largest >= 2.0:
            raise InvalidInputError(
                f"learning_rate={self.learning_rate:g} diverges: the largest eigenvalue of the kernel matrix is "
                f"{largest:.6g}, so that it must be below {2.0 / largest:.6g}. Use a smaller one, or 'auto'."
            )
        return float(self.learning_rate)

    def _publish(self, data: Data, train: Vector, beta: Vector, squared_norm: float) -> None:
        inside = np.flatnonzero(beta)
        support = train[inside]
        self.support_ = support.astype(np.int32)
        self.support_vectors_ = np.empty((0, 0)) if is_pairwise(data.kernel) else take_samples(data.samples, support)
        self._n_support = np.array([len(support)], dtype=np.int32)
        self._support = Expansion(data.kernel, self.support_vectors_, self.support_, data.n)
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
            f"Gradient descent ended early ({ended}): the last step still changed a fitted value by "
            f"{getattr(self, '_change', np.inf):.3g}, the squared error is {2 * self.loss_curve_[-1]:.4g} of "
            f"{2 * self.loss_curve_[0]:.4g} at the start. Allow more steps, or use early_stopping=True, which "
            "stops on purpose.",
            ConvergenceWarning,
        )

    def predict(self, X: Any) -> Vector:
        """The predicted value of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples_test, n_samples_train)
            The samples; for a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Σ βᵢ k(xᵢ, x).
        """
        return self._values(X)[:, 0]


class _Products:
    """K[rows, rows of v] @ v, from a stored matrix if memory and time allow it. ``seconds``: of a product, about."""

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
        """Values at all rows of a combination of the first len(v) of them."""
        if self.matrix is not None:
            return self.matrix[:, : len(v)] @ v
        columns = self.features if len(v) == self.n else self.features.take(np.arange(len(v)))
        return product(self.kernel, self.features, columns, v, self.n_threads, self.evaluations)


def _largest_eigenvalue(K: _Products, root: Vector) -> float:
    """Of W^½ K W^½ at the training samples, which come first."""
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
        # never below the largest: the largest sum of absolute values in a row
        return float(max(np.abs(scaled(unit)).sum() for unit in np.eye(n)))
