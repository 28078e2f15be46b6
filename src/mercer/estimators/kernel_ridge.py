"""Kernel ridge regression with a given λ, for one or several targets."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import MultiOutputMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer._sklearn_compat import Interval, StrOptions, num_samples
from mercer.estimators.base import KernelEstimator, keep_parameters, warn_user
from mercer.estimators.exact_updates.updates_mixin import UPDATABLE, UpdatesMixin
from mercer.estimators.landmark_machine import LANDMARK_PARAMETERS, LandmarkMixin
from mercer.estimators.over_parts.rows_on_disk import block_by_block
from mercer.estimators.score_mixins import NumberScoreMixin
from mercer.exceptions import InvalidInputError, NotPositiveSemidefiniteWarning
from mercer.gram.memory import AT_LEAST, available_bytes, budget_bytes
from mercer.gram.operator import Data, product
from mercer.kernels import (
    AdditiveChi2,
    CallableKernel,
    Chi2,
    Cosine,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
)
from mercer.kernels.features import Features, Matrix, Vector, count_samples, take_samples
from mercer.kernels.user_defined import PrecomputedFeatures
from mercer.losses import Squared
from mercer.parts.layout import Parts
from mercer.parts.linear_part import Statement
from mercer.problems.clock import Clock
from mercer.problems.solution import Options, Solution, Status, combine
from mercer.ridge.solver import solve
from mercer.sources.checkpoint import Checkpoint
from mercer.sources.row_source import RowSource, gather
from mercer.validation import (
    domain_of,
    is_pairwise,
    resolve_kernel,
    target_matrix,
    thread_count,
    validate_samples,
    validate_weights,
)

if TYPE_CHECKING:
    from mercer.landmarks.growth import LandmarkSolution

# samples predicted at a time
BATCH = 8192
# fraction of the available memory for the matrix and its factor
SHARE = 0.5


class TrainingSamples:
    """The training samples as prediction needs them; prepared at the first prediction, and not stored in files."""

    def __init__(self, kernel: Kernel, samples: Any) -> None:
        self.kernel = kernel
        self.samples = samples
        self._features: Features | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_features": None}

    def features(self) -> Features:
        """The prepared samples in float64; for a precomputed kernel only the column indices."""
        if self._features is None:
            features = self.kernel.prepare(self.samples, np.float64)
            self._features = features.without_matrix() if isinstance(features, PrecomputedFeatures) else features
        return self._features


class BaseRidge(MultiOutputMixin, NumberScoreMixin, KernelEstimator):  # type: ignore[misc]
    """Base of KernelRidge and KernelRidgeCV: scikit-learn's kernel names, and prediction from all training samples."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelEstimator._parameter_constraints,
        "gamma": [*KernelEstimator._parameter_constraints["gamma"], None],
        "degree": [Interval(Real, 0, None, closed="left")],
        "kernel_params": [dict, None],
        "solver": [StrOptions({"auto", "cholesky", "cg"})],
    }

    def _options(self) -> Options:
        return Options(
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            time_limit=self.time_limit,
            budget=self._budget(),
            n_threads=thread_count(self.n_jobs),
            precision=self.precision,
        )

    def _budget(self) -> int:
        """Bytes for the matrix and its factor."""
        if self.cache_size != "auto":
            return budget_bytes(self.cache_size)
        n = count_samples(getattr(self, "X_fit_", ()))
        # asking for the available memory takes as long as a small fit
        return AT_LEAST if 0 < 24 * n * n <= AT_LEAST else int(SHARE * available_bytes())

    # ---- kernels ---------------------------------------------------------------------------------------------

    def _domain(self) -> str:
        """The type of the samples; kernel functions compare vectors, as in scikit-learn."""
        return domain_of_ridge(self.kernel)

    def _resolve(self, kernel: Any) -> Kernel:
        """The kernel given by scikit-learn's parameters, an expression or a Kernel."""
        return resolve_pairwise(kernel, self)

    # ---- fit -------------------------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, sample_weight: Any, clock: Clock) -> None:
        self._domain_fit = self._domain()
        if isinstance(X, RowSource):
            X, y, sample_weight = gather(X, y, sample_weight, type(self).__name__)
        X, y = validate_samples(self, X, y, reset=True, domain=self._domain_fit, multi_output=True, y_numeric=True)
        n = num_samples(X)
        weight = validate_weights(sample_weight, n, X)
        Y = target_matrix(y)
        self._ravel = np.ndim(y) == 1
        self.X_fit_ = X
        self._fit_targets(X, Y, weight, clock)
        self._training = TrainingSamples(self._kernel, self.X_fit_)
        self._warn_unfinished()

    @abstractmethod
    def _fit_targets(self, X: Any, Y: Matrix, weight: Vector, clock: Clock) -> None:
        """Choose the parameters if necessary, solve and set the fitted attributes."""

    def _solve_system(self, data: Data, Y: Matrix, weight: Vector, alpha: Vector, clock: Clock) -> list[Solution]:
        """The solutions for all targets, over the samples with positive weight."""
        used = np.flatnonzero(weight > 0)
        part = data if len(used) == data.n else data.take(used)
        return solve(part, Y[used], weight[used], alpha, bool(self.fit_intercept), self._options(), clock, self.solver)

    def _publish(self, data: Data, solutions: list[Solution], weight: Vector) -> None:
        coef = np.zeros((data.n, len(solutions)))
        coef[weight > 0] = np.column_stack([s.beta for s in solutions])
        self._publish_function(data, solutions, coef, [length(s) for s in solutions])

    def _publish_function(self, data: Data, solutions: list[Solution], coef: Matrix, sizes: list[float]) -> None:
        """Publish the functions with these coefficients at ``X_fit_`` and these norms."""
        intercept = np.array([float(s.thresholds.sum()) for s in solutions])
        self.dual_coef_ = coef[:, 0] if self._ravel else coef
        self.intercept_: Any = float(intercept[0]) if self._ravel else intercept
        self.rkhs_norm_: Any = sizes[0] if self._ravel else np.array(sizes)
        self.certificates_ = [s.certificate for s in solutions]
        several = None if len(solutions) == 1 else f"{len(solutions)} targets"
        self.certificate_ = combine(self.certificates_, of=several)
        self.trace_ = [point for s in solutions for point in s.trace]
        self.n_iter_ = max(s.steps for s in solutions)
        self._statuses = [s.status for s in solutions]
        self.fit_status_ = int(
            any(s not in (Status.CONVERGED, Status.SINGULAR, Status.INDEFINITE) for s in self._statuses)
        )
        self.kernel_evaluations_ = data.evaluations.count
        # for unverified matrices the spot check has already warned
        self._indefinite_is_news = data.psd or not data.kernel.psd_is_assumed

    def _warn_unfinished(self) -> None:
        """Warn if the solver stopped early, with the distance from the optimum."""
        status = next((s for s in self._statuses if s is not Status.CONVERGED), None)
        if status is None:
            return
        reached = f" The model is {self.certificate_}"
        if status is Status.INDEFINITE:
            if self._indefinite_is_news:
                warn_user(f"The fit ends at a stationary point.{reached}.", NotPositiveSemidefiniteWarning)
            return
        if status is Status.SINGULAR:
            warn_user(
                "Singular matrix in solving dual problem. Using least-squares solution instead."
                f"{reached}. Raise alpha to have a unique solution.",
                UserWarning,
            )
            return
        message = {
            Status.MAX_ITER: f"Solver terminated early (max_iter={self.max_iter}). Raise max_iter, alpha or tol.",
            Status.TIME_LIMIT: f"Solver terminated early (time_limit={self.time_limit} s). Raise time_limit or alpha.",
            Status.INTERRUPTED: "Solver was interrupted; the model fitted so far is usable.",
        }.get(status, "Solver stopped where rounding allows no further progress. Raise alpha, or scale the features.")
        warn_user(f"{message}{reached}; tol is {self.tol:g}.", ConvergenceWarning)

    # ---- prediction ------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Matrix:
        """The predicted values.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples_fitted)
            The samples; for a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,) or (n_samples, n_targets)
            f(x) = Σ βᵢ k(xᵢ, x) + b.
        """
        check_is_fitted(self)
        if isinstance(X, RowSource):
            return block_by_block(self, X, self._predict)
        return self._predict(validate_samples(self, X, None, reset=False, domain=self._domain_fit)[0])

    def _predict(self, X: Any) -> Matrix:
        """The values of validated samples."""
        n, b, threads = count_samples(X), self._training.features(), thread_count(self.n_jobs)
        out = np.empty((n, *self.dual_coef_.shape[1:]))
        for start in range(0, n, BATCH):
            part = X if n <= BATCH else take_samples(X, np.arange(start, min(start + BATCH, n)))
            a = self._kernel.prepare(part, np.float64)
            out[start : start + BATCH] = product(self._kernel, a, b, self.dual_coef_, threads)
        return out + self.intercept_

    def _expansion(self) -> tuple[Kernel, Any, Matrix]:
        return self._kernel, self.X_fit_, self.dual_coef_.T

    def _get_coef(self) -> Any:
        return np.asarray(self.dual_coef_.T @ self.X_fit_)


class KernelRidge(UpdatesMixin, LandmarkMixin, BaseRidge):
    """Kernel ridge regression: minimise λ/2 |f|² + ½ Σ wᵢ (yᵢ − f(xᵢ) − b)², with λ = ``alpha``.

    The solution is f = Σ βᵢ k(xᵢ, ·) with (K + λ/w) β = y − b ([M5] "kernel ridge regression"). For the objective
    λ'|f|² + 1/(2m) Σ (y − f)² of [SSBD] Ex. 16.3 set alpha = 2mλ' (``lambda_to_alpha``). The parameters up to
    ``kernel_params`` are those of scikit-learn.

    Parameters
    ----------
    alpha : float or array-like of shape (n_targets,), default=1.0
        λ ≥ 0, one for all targets or one for each. With 0 the function interpolates the samples if the kernel matrix is
        regular; otherwise the result is the least-squares solution, with a warning.
    kernel : str, Kernel or callable, default="linear"
        A name from scikit-learn ("linear", "poly", "rbf", "laplacian", "sigmoid", "cosine", "chi2", "additive_chi2",
        "precomputed"), a kernel object, an expression such as ``"0.5*gaussian(gamma=0.1) + linear()"``, or a function
        of two samples that returns a number. Samples may be any objects that the kernel compares, for example strings
        for ``Spectrum(3)``. "poly" is (γ⟨x, z⟩ + coef0)^degree, "inhomogeneous" is (1 + ⟨x, z⟩)^degree.
    gamma : float or {"scale", "auto"}, default=None
        Parameter of the named kernels. None is 1 / n_features, and 1 for "chi2".
    degree, coef0 : float, default=3 and 1
        Parameters of the named kernels.
    kernel_params : dict, default=None
        Keyword arguments for a kernel function.
    fit_intercept : bool, default=False
        Whether to fit an unpenalised intercept b.
    solver : {"auto", "cholesky", "cg"}, default="auto"
        "cholesky" factors the kernel matrix. "cg" uses conjugate gradients and never stores the matrix. "auto" is
        "cholesky" if the matrix fits into ``cache_size`` and its factorisation into ``time_limit``.
    tol : float, default=1e-6
        For "cg": the largest residual of the linear system, relative to the largest target. "cholesky" solves the
        system to the rounding error of float64.
    max_iter : int, default=-1
        For "cg": the maximum number of products with the matrix; -1 for no limit.
    cache_size : float or "auto", default="auto"
        Memory for the matrix and its factor in MB; "auto" is half of the available memory.
    precision : {"auto", "float32", "float64"}, default="auto"
        Precision of the factor. A float32 factor takes half the time and is refined to float64 accuracy; if the
        refinement does not converge, a float64 factor is computed.
    n_jobs, time_limit, verbose : as in ``SVC``.
    landmarks, landmark_tol, max_landmarks, polish, checkpoint : as in ``SVC``; landmarks need alpha > 0.
    updatable : bool, default=False
        Whether ``add``, ``remove`` and ``replace`` can change the training samples later. Targets and weights are kept.
        The first update computes the inverse of K + λ, which later ones change in O(n²).

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        The coefficients β; those of the landmarks if there are any.
    X_fit_ : {ndarray, sparse matrix} of shape (n_samples, n_features)
        The training samples in their original precision, or the landmarks; the kernel matrix for a precomputed kernel.
    landmarks_, n_landmarks_, landmark_certificate_, growth_ : as in ``SVC``, if there are landmarks.
    intercept_ : float or ndarray of shape (n_targets,)
        The intercept b.
    certificate_, certificates_ : Certificate and list of Certificate
        Primal value, dual value and gap of the objective above: for all targets together, and for each target.
    rkhs_norm_ : float or ndarray of shape (n_targets,)
        The norm |f|.
    function_ : RKHSFunction, or a list of them
        The function f = Σ βᵢ k(xᵢ, ·); a list if y has two dimensions. Not available for a precomputed kernel.
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        The weights of the features, for a linear kernel.
    n_iter_, trace_, fit_status_, kernel_evaluations_ : as in ``SVC``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> model = KernelRidge(alpha=1e-3, kernel="rbf", gamma=1.0).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.0]])[0] - np.sin(1.0)) < 1e-3)
    True
    >>> model.certificate_.relative_gap < 1e-9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseRidge._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left"), "array-like"],
        **LANDMARK_PARAMETERS,
        **UPDATABLE,
    }

    def __init__(
        self,
        alpha: Any = 1,
        *,
        kernel: Any = "linear",
        gamma: Any = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        fit_intercept: bool = False,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = -1,
        cache_size: Any = "auto",
        precision: str = "auto",
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: Any = False,
        landmarks: Any = None,
        landmark_tol: float = 1e-2,
        max_landmarks: int = 2000,
        polish: bool = False,
        checkpoint: Any = None,
        updatable: bool = False,
    ) -> None:
        keep_parameters(self, locals())

    def _fit_targets(self, X: Any, Y: Matrix, weight: Vector, clock: Clock) -> None:
        alpha = target_alphas(self.alpha, Y.shape[1])
        data = self._bind_kernel(self._resolve(self.kernel), X, X, len(Y))
        self._forget_landmarks()
        if self.landmarks is None or self.polish:
            self._publish(data, self._solve_system(data, Y, weight, alpha, clock), weight)
            if self.updatable:
                from mercer.estimators.exact_updates.system_updates import SystemUpdates

                self._keep_updates(SystemUpdates(Y.copy(), weight.copy(), data.psd))
        else:
            self._fit_landmarks(data, Y, weight, alpha, clock)

    def _fit_landmarks(self, data: Data, Y: Matrix, weight: Vector, alpha: Vector, clock: Clock) -> None:
        """A landmark machine for each target; the objective is λ times that of the squared loss with weights w/λ."""
        self._check_landmark_alpha(bool((alpha > 0).all()))
        from mercer.landmarks.growth import LandmarkSolution

        self._given_pool = self._given_landmarks(data)
        solver, used = self._landmark_solver(), np.flatnonzero(weight > 0)
        part = data if len(used) == data.n else data.take(used)
        pool, found = part if self._given_pool is None else self._given_pool, []
        for y, price in zip(Y[used].T, alpha, strict=True):
            one = solver(
                part, Squared(), y, weight[used] / price, bool(self.fit_intercept), self._options(), clock, None
            )
            assert isinstance(one, LandmarkSolution)
            found.append(scaled_by(one, float(price)))
        taken = np.unique(np.concatenate([s.landmarks for s in found]))
        coef = np.zeros((len(taken), len(found)))
        for t, one in enumerate(found):
            coef[np.searchsorted(taken, one.landmarks), t] = one.coef
        if is_pairwise(data.kernel):  # predictions compare new samples with all training samples
            coef, few = np.zeros((data.n, len(found))), coef
            coef[used[taken]] = few
        else:
            self.X_fit_ = take_samples(pool.own_samples(), taken)
        self._publish_function(data, list(found), coef, [float(np.sqrt(s.size)) for s in found])
        self._publish_growth(list(found), used[taken] if is_pairwise(data.kernel) else self.X_fit_, len(taken))
        self._given_pool = None

    def _fit(self, X: Any, y: Any, sample_weight: Any, clock: Clock) -> None:
        if self.checkpoint is not None:
            self._check_checkpoint(X)
        self.__dict__.pop("_updates", None)
        if self.updatable and (self.landmarks is not None or is_pairwise(self.kernel)):
            raise InvalidInputError(
                "KernelRidge(updatable=True) needs the training samples themselves, but landmarks or a kernel matrix "
                "were given. Use landmarks=None and a kernel object."
            )
        if not isinstance(X, RowSource) or self.landmarks is None:
            super()._fit(X, y, sample_weight, clock)
            return
        self._fit_source(X, y, sample_weight, clock)
        self._warn_unfinished()

    def _parts_kernel(self) -> Kernel:
        return self._resolve(self.kernel)

    def _fit_parts(self, parts: Parts, clock: Clock, checkpoint: Checkpoint | None = None) -> None:
        from mercer.landmarks.growth import LandmarkSolution

        price = float(target_alphas(self.alpha, 1)[0])
        self._check_landmark_alpha(price > 0)
        self._domain_fit = self._domain()
        choice = self._bind_parts(parts)
        # the objective is λ times that of the squared loss with weights w/λ
        statement = Statement(Squared(), 1.0 / price, bool(self.fit_intercept))
        one = self._solve_parts(parts, statement, self._options(), clock, choice, checkpoint)
        assert isinstance(one, LandmarkSolution)
        found = scaled_by(one, price)
        self._forget_landmarks()
        self._ravel, self.X_fit_ = True, one.samples
        data = self._parts_data(self.X_fit_, [one])
        self._publish_function(data, [found], found.coef[:, None], [float(np.sqrt(found.size))])
        self._publish_growth([found], self.X_fit_, data.n)
        self._training = TrainingSamples(self._kernel, self.X_fit_)

    # ---- updates: see estimators/exact_updates/system_updates.py ---------------------------------------------------

    def _domain_of_updates(self) -> str:
        return self._domain_fit

    def _updated_samples(self) -> Any:
        return self.X_fit_

    def _noise_of_updates(self) -> float | None:
        """λ, the diagonal of the system for samples of weight 1; None if no inverse is kept."""
        alpha = target_alphas(self.alpha, self._updates.targets.shape[1])
        return float(alpha[0]) if alpha[0] > 0 and np.all(alpha == alpha[0]) and self.solver != "cg" else None

    def _has_memory(self, n: int) -> bool:
        return 24 * n * n <= self._budget()

    def _right_sides(self, Y: Matrix) -> Matrix:
        return np.column_stack([Y, np.ones(len(Y))]) if self.fit_intercept else Y

    def _refit(self, data: Data, Y: Matrix, weight: Vector, clock: Clock) -> None:
        """Solve the system without an earlier solution."""
        alpha = target_alphas(self.alpha, Y.shape[1])
        self._publish_samples(data, self._solve_system(data, Y, weight, alpha, clock), weight)

    def _publish_update(
        self, data: Data, Y: Matrix, weight: Vector, S: Matrix, product: Matrix, residual: float, log_det: float,
        clock: Clock,
    ) -> None:  # fmt: skip
        """Publish the model of the solutions S of the system, where ``product`` is KS."""
        from mercer.estimators.exact_updates.system_updates import ridge_solutions

        used = weight > 0
        alpha = target_alphas(self.alpha, Y.shape[1])
        found = ridge_solutions(S, product, Y[used], weight[used], alpha, bool(self.fit_intercept), data.psd, clock)
        self._publish_samples(data, found, weight)

    def _publish_samples(self, data: Data, solutions: list[Solution], weight: Vector) -> None:
        self.X_fit_ = data.samples
        self.shape_fit_ = (data.n, *self.shape_fit_[1:])
        self._publish(data, solutions, weight)
        self._training = TrainingSamples(self._kernel, self.X_fit_)
        self._warn_unfinished()

    def _check_landmark_alpha(self, positive: bool) -> None:
        """Raise for parameters without a landmark machine."""
        if not positive or self.solver != "auto":
            raise InvalidInputError(
                f"Landmarks need alpha > 0 and solver='auto', but alpha={self.alpha!r} and solver={self.solver!r}. "
                "Raise alpha, or use landmarks=None."
            )

    def _warn_unfinished(self) -> None:
        super()._warn_unfinished()
        if self.landmarks is not None:
            self._warn_of_few_landmarks()


def scaled_by(solution: LandmarkSolution, factor: float) -> LandmarkSolution:
    """The solution with its objective multiplied by a factor."""
    proofs = [
        replace(c, primal=factor * c.primal, dual=factor * c.dual, gap=factor * c.gap)
        for c in (solution.certificate, solution.landmark_certificate)
    ]
    return replace(solution, certificate=proofs[0], landmark_certificate=proofs[1])


def length(solution: Solution) -> float:
    """|f| = √(β'Kβ), computed without overflow."""
    sizes = [float(np.abs(v).max(initial=0.0)) for v in (solution.beta, solution.F)]
    if 0.0 in sizes:
        return 0.0
    share = float((solution.beta / sizes[0]) @ (solution.F / sizes[1]))
    return float(np.sqrt(max(0.0, share)) * np.sqrt(sizes[0]) * np.sqrt(sizes[1]))


def target_alphas(alpha: Any, n_targets: int) -> Vector:
    """λ for each target, validated."""
    try:
        values = np.atleast_1d(np.asarray(alpha, dtype=np.float64))
    except (TypeError, ValueError):
        raise InvalidInputError(f"alpha={alpha!r} is neither a number nor a list of numbers.") from None
    if values.ndim != 1 or len(values) not in (1, n_targets):
        raise InvalidInputError(
            f"alpha has the shape {values.shape}, but y has {n_targets} target(s): give one number, or one for each."
        )
    if not (np.isfinite(values) & (values >= 0)).all():
        found = values[~(np.isfinite(values) & (values >= 0))][0]
        raise InvalidInputError(f"alpha={found:g} was given: it must be a finite number of at least 0.")
    return np.broadcast_to(values, n_targets)


def domain_of_ridge(kernel: Any) -> str:
    """The domain (type of the samples) of a ridge regression with this kernel."""
    is_function = callable(kernel) and not isinstance(kernel, Kernel | type)
    return "vectors" if is_function or (isinstance(kernel, str) and kernel in SKLEARN_KERNELS) else domain_of(kernel)


def resolve_pairwise(kernel: Any, model: Any) -> Kernel:
    """The kernel for a name of scikit-learn's pairwise kernels, a function of two samples, or an expression.

    ``model`` has the attributes degree, gamma, coef0 and kernel_params.
    """
    if not isinstance(kernel, str | Kernel) and callable(kernel) and not isinstance(kernel, type):
        return CallableKernel(partial(kernel, **model.kernel_params) if model.kernel_params else kernel, pairwise=True)
    gamma = "auto" if model.gamma is None else model.gamma
    if not isinstance(kernel, str) or kernel not in SKLEARN_KERNELS:
        degree = model.degree if float(model.degree).is_integer() else 3
        return resolve_kernel(kernel, int(degree), gamma, model.coef0)
    if kernel in ("poly", "polynomial", "inhomogeneous") and not float(model.degree).is_integer():
        raise InvalidInputError(
            f"degree={model.degree!r} is not a whole number: a polynomial of negative values would not be defined."
        )
    return SKLEARN_KERNELS[kernel](model, gamma)


# scikit-learn's names of pairwise kernels, and one of our own
SKLEARN_KERNELS: dict[str, Any] = {
    "linear": lambda model, gamma: Linear(),
    "poly": lambda model, gamma: Polynomial(int(model.degree), gamma, model.coef0),
    "polynomial": lambda model, gamma: Polynomial(int(model.degree), gamma, model.coef0),
    "inhomogeneous": lambda model, gamma: Polynomial.inhomogeneous(int(model.degree)),
    "rbf": lambda model, gamma: Gaussian(gamma),
    "laplacian": lambda model, gamma: Laplacian(gamma),
    "sigmoid": lambda model, gamma: Sigmoid(gamma, model.coef0),
    "cosine": lambda model, gamma: Cosine(),
    "chi2": lambda model, gamma: Chi2(1.0 if model.gamma is None else gamma),
    "additive_chi2": lambda model, gamma: AdditiveChi2(),
}
