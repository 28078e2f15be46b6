"""Gaussian process regression: prior and posterior, and kernel parameters learnt by maximum likelihood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import lapack
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from mercer._compiled.blas import blas_threads
from mercer._sklearn_compat import Interval, StrOptions, fit_context, num_samples
from mercer.estimators.base import KnownParameters, keep_parameters, warn_user
from mercer.estimators.exact_updates.updates_mixin import UPDATABLE, UpdatesMixin
from mercer.estimators.inspection.feature_importances import ImportancesMixin
from mercer.estimators.inspection.model_function import FunctionMixin
from mercer.estimators.parameters import KernelParameters
from mercer.exceptions import InvalidInputError
from mercer.gram.memory import MEGABYTE, available_bytes
from mercer.gram.operator import Data, GramOperator, product
from mercer.kernels import CallableKernel, Kernel, SklearnKernel, parse_kernel
from mercer.kernels.features import Features, Matrix, Vector
from mercer.kernels.sklearn import is_sklearn_kernel
from mercer.problems.clock import Clock
from mercer.problems.solution import Status
from mercer.process.ascent import Ascent, Objective, maximise
from mercer.process.evidence import Evidence, Factor, not_definite
from mercer.svm.interior_qp import factor_seconds
from mercer.validation import (
    check_pairwise_kernel,
    domain_of,
    is_pairwise,
    set_input_tags,
    square_matrix,
    thread_count,
    validate_samples,
)

# use BLAS threads from this many samples on; below, synchronisation costs more than it gains
BLAS_THREADS_FROM = 2000
# warn if the residual of (K + Λ) α = y exceeds this fraction of the largest target
RESIDUAL = 1e-2
# the likelihood with its gradient costs as much as this many factorisations
EVALUATION = 4.0
# do not query the available memory below this size: the query takes a tenth of a small fit
NO_QUESTION = 8 * MEGABYTE
# bytes of kernel values between new and training samples held at a time
ROWS_BYTES = 64 * MEGABYTE


class GaussianProcessRegressor(
    UpdatesMixin,
    KernelParameters,
    ImportancesMixin,
    FunctionMixin,
    MultiOutputMixin,  # type: ignore[misc]
    RegressorMixin,  # type: ignore[misc]
    KnownParameters,
):
    """Gaussian process regression, the Bayesian view of kernel ridge regression ([M5]).

    Under the prior the values h(x) are jointly Gaussian with mean 0 and covariance k(x, z). Targets are y = h(x) +
    noise. The noise variance Λ is ``alpha`` plus the variance of ``White`` in the kernel. The posterior at x* is
    Gaussian, with mean and covariance

        k*' (K + Λ)⁻¹ y        and        k(x*, x*) - k*' (K + Λ)⁻¹ k*,        k* = (k(x*, xᵢ))ᵢ

    so the mean is that of kernel ridge regression with λ = Λ. The positive parameters of the kernel maximise the
    marginal likelihood of the targets; L-BFGS-B optimises their logarithms with exact gradients. ``Fixed`` excludes a
    parameter, ``Bounded`` sets its bounds.

    Parameters
    ----------
    kernel : kernel, str or callable, default=None
        A kernel of mercer, such as ``2.0 * Gaussian() + White(0.1)``, or the same as text; a kernel of
        ``sklearn.gaussian_process.kernels``; a function of two sets of samples. None is scikit-learn's default,
        ``ConstantKernel() * RBF()``.
    alpha : float or ndarray of shape (n_samples,), default=1e-10
        Noise variance added to the diagonal of K; it is not learnt. To learn it, add ``White()`` to the kernel.
    optimizer : "fmin_l_bfgs_b", callable or None, default="fmin_l_bfgs_b"
        None keeps the kernel as it is. A function ``optimizer(obj_func, initial_theta, bounds)`` minimises
        ``obj_func(theta, eval_gradient)`` and returns the best theta and its value.
    n_restarts_optimizer : int, default=0
        Number of additional runs from random points within the bounds; the best run is used.
    normalize_y : bool, default=False
        Whether to normalise the targets to mean 0 and variance 1.
    copy_X_train : bool, default=True
        Whether to keep a copy of the training samples instead of a reference.
    n_targets : int, default=None
        Number of outputs of the prior, before ``fit``.
    random_state : int, RandomState instance or None, default=None
        Seed of the restarts.
    n_jobs : int, default=None
        Number of threads. None uses all cores, or one inside a joblib worker; in scikit-learn None means one job.
    max_iter : int, default=-1
        Maximum number of iterations of each optimizer run; -1 for no limit.
    time_limit : float, default=None
        Stop the search after this many seconds and use the best kernel so far.
    updatable : bool, default=False
        Whether ``add``, ``remove`` and ``replace`` can change the training samples later. They keep the parameters of
        the kernel as ``fit`` has learnt them, as with ``optimizer=None``, and change the inverse of K + Λ in O(n²).
        They need one ``alpha`` for all samples.

    Attributes
    ----------
    kernel_ : the kernel with its learnt parameters, mercer's or scikit-learn's as it was given.
    X_train_, y_train_ : the training samples and the targets, normalised if ``normalize_y``.
    L_ : ndarray of shape (n_samples, n_samples), the lower Cholesky factor of K + Λ.
    alpha_ : ndarray of shape (n_samples,) or (n_samples, n_targets), (K + Λ)⁻¹ y.
    function_ : RKHSFunction
        The posterior mean Σ αᵢ k(xᵢ, ·), without the mean of the targets that ``normalize_y`` adds; a list for several
        targets.
    log_marginal_likelihood_value_ : float, log p(y) of ``kernel_``.
    residual_ : float
        max |y - (K + Λ) α|, with kernel values recomputed independently of the factorisation.
    gradient_ : ndarray of shape (n_parameters,)
        Gradient of log p(y) with respect to ``kernel_.theta``; zero at an optimum inside the bounds, NaN if unknown.
    n_iter_ : int, iterations of all optimizer runs, at least 1.
    n_evaluations_ : int, number of evaluations of log p(y).
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Gaussian, GaussianProcessRegressor, White
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=40)
    >>> model = GaussianProcessRegressor(1.0 * Gaussian() + White()).fit(X, y)
    >>> mean, deviation = model.predict([[1.5], [20.0]], return_std=True)
    >>> mean.round(1), deviation.round(1)
    (array([0.9, 0. ]), array([0.1, 0.8]))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [None, str, callable, Kernel],
        "alpha": [Interval(Real, 0, None, closed="left"), np.ndarray],
        "optimizer": [StrOptions({"fmin_l_bfgs_b"}), callable, None],
        "n_restarts_optimizer": [Interval(Integral, 0, None, closed="left")],
        "normalize_y": ["boolean"],
        "copy_X_train": ["boolean"],
        "n_targets": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "time_limit": [Interval(Real, 0, None, closed="left"), None],
        **UPDATABLE,
    }

    def __init__(
        self,
        kernel: Any = None,
        *,
        alpha: Any = 1e-10,
        optimizer: Any = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        normalize_y: bool = False,
        copy_X_train: bool = True,
        n_targets: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        max_iter: int = -1,
        time_limit: float | None = None,
        updatable: bool = False,
    ) -> None:
        keep_parameters(self, locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        set_input_tags(tags.input_tags, domain_of(self.kernel))
        return tags

    # ---- fit -------------------------------------------------------------------------------------------------

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> GaussianProcessRegressor:
        """Learn the kernel's parameters and condition the process on the targets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or list of object
            Training samples of any type that the kernel supports.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Target values.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        kernel = resolve_covariance(self.kernel)
        self.__dict__.pop("_updates", None)
        if self.updatable and (is_pairwise(kernel) or np.size(self.alpha) != 1):
            raise InvalidInputError(
                "GaussianProcessRegressor(updatable=True) needs a kernel that compares samples and one alpha, but a "
                "kernel matrix or an alpha for each sample was given."
            )
        X, y = validate_samples(self, X, y, reset=True, multi_output=True, y_numeric=True)
        n = num_samples(X)
        check_memory(n)
        if is_pairwise(kernel):
            square_matrix(X)
            check_pairwise_kernel(kernel)
        given = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        y = self._normalised(given)
        variances = self._variances(n)
        self.X_train_ = X.copy() if self.copy_X_train and hasattr(X, "copy") else X
        self.y_train_ = y
        evidence = Evidence(self.X_train_, y.reshape(n, -1), variances, thread_count(self.n_jobs))
        with Clock(self.time_limit) as clock, self._blas_threads(n):
            self._learn(kernel.bind(self.X_train_), evidence, clock)
        if self.updatable:
            from mercer.estimators.exact_updates.system_updates import SystemUpdates

            self._keep_updates(SystemUpdates(given.reshape(n, -1).copy(), np.ones(n), True))
        return self

    def _normalised(self, y: Vector) -> Vector:
        """The targets, normalised if ``normalize_y``. Sets the mean and the scale that undo it."""
        n_targets = y.shape[1] if y.ndim > 1 else 1
        if self.n_targets is not None and n_targets != self.n_targets:
            raise ValueError(
                "The number of targets seen in `y` is different from the parameter "
                f"`n_targets`. Got {n_targets} != {self.n_targets}."
            )
        shape = (n_targets,) if y.ndim > 1 else (1,)
        self._y_train_mean, self._y_train_std = np.zeros(shape), np.ones(shape)
        if not self.normalize_y:
            return y.copy() if self.copy_X_train else y
        self._y_train_mean = y.mean(axis=0)
        spread = y.std(axis=0)
        # a constant target is not scaled
        self._y_train_std = np.where(spread < 10 * np.finfo(np.float64).eps, 1.0, spread)
        return (y - self._y_train_mean) / self._y_train_std

    def _variances(self, n: int) -> Any:
        """alpha as one number or one per sample."""
        alpha = np.asarray(self.alpha, dtype=np.float64)
        if alpha.size == 1:
            alpha = alpha.reshape(())
        elif alpha.shape != (n,):
            raise ValueError(
                f"alpha must be a scalar or an array with same number of entries as y. "
                f"({alpha.shape[0] if alpha.ndim == 1 else alpha.shape} != {n})"
            )
        if not np.all(np.isfinite(alpha)) or np.any(alpha < 0):
            raise InvalidInputError(
                "alpha is the variance of the noise: its entries must be finite and at least 0, but they lie between "
                f"{alpha.min():g} and {alpha.max():g}."
            )
        return alpha

    def _learn(self, kernel: Kernel, evidence: Evidence, clock: Clock) -> None:
        found: Ascent | None = None
        if self.optimizer is not None and len(kernel.theta) > 0:
            own = None if self.optimizer == "fmin_l_bfgs_b" else self.optimizer
            starts, bounds = starting_points(self, kernel), kernel.bounds
            seconds = EVALUATION * factor_seconds(evidence.n)
            found = maximise(
                likelihood(kernel, evidence.value_and_gradient), starts, bounds, clock, int(self.max_iter), own, seconds
            )
            if found.evaluations:
                kernel = kernel.with_theta(found.theta)
                warn_at_bounds(kernel)
        self._condition(kernel, evidence, found)

    def _condition(self, kernel: Kernel, evidence: Evidence, found: Ascent | None) -> None:
        """Condition the process on the targets; ``found`` is the result of the search for the kernel's parameters."""
        factor = evidence.factor(kernel)
        if isinstance(factor, int):
            raise np.linalg.LinAlgError(not_definite(public(kernel, self.kernel), kernel, evidence, factor))
        largest, residual = float(np.abs(self.y_train_).max()), evidence.residual(kernel, factor.alpha)
        if residual > largest:  # worse than α = 0: the smallest pivot is positive by rounding only
            order = 1 + int(np.argmin(np.diagonal(factor.L)))
            raise np.linalg.LinAlgError(not_definite(public(kernel, self.kernel), kernel, evidence, order))
        self._kernel, self.kernel_ = kernel, public(kernel, self.kernel)
        self.L_ = factor.L
        self.alpha_ = factor.alpha.reshape(self.y_train_.shape)
        seen = found if found is not None and found.evaluations > 0 else None
        self.log_marginal_likelihood_value_ = factor.value if seen is None else seen.value
        self.n_evaluations_ = 1 if seen is None else seen.evaluations
        self.n_iter_ = 1 if found is None else max(1, found.iterations)
        self.gradient_ = np.full(len(kernel.theta), np.nan) if seen is None else seen.gradient
        self.residual_ = residual
        if found is not None and found.status is not Status.CONVERGED:
            warn_unfinished(self, found, kernel.bounds, self.log_marginal_likelihood_value_)
        if not self.residual_ <= RESIDUAL * largest:
            warn_user(
                "K is singular to working precision: the residual of (K + alpha) a = y is "
                f"{self.residual_:.2g}, and the largest |y| is {largest:.2g}. Increase alpha, or add White(noise) to "
                "the kernel.",
                ConvergenceWarning,
            )

    # ---- updates: see estimators/exact_updates/system_updates.py ---------------------------------------------------

    def add(self, X: Any, y: Any) -> Self:  # type: ignore[override]  # there are no weights
        """Add training samples: afterwards the process is conditioned on all, with the kernel as it is.

        The model must have been fitted with ``updatable=True``. The parameters of the kernel are not learnt again: the
        model equals a fit of ``kernel_`` with ``optimizer=None``. ``L_`` is computed when it is first needed, which is
        for deviations and covariances. An update that raises an error leaves the model as it was.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features) or list of object
            New samples, which are appended to the training samples.
        y : array-like of shape (n_new,) or (n_new, n_targets)
            Their targets.

        Returns
        -------
        self : object
            The updated model.
        """
        return super().add(X, y)

    def replace(self, index: Any, X: Any, y: Any) -> Self:  # type: ignore[override]
        """Replace training samples by others at the same positions: ``remove`` and ``add`` in one update.

        Parameters
        ----------
        index : int or array-like of int
            Positions among the present training samples.
        X, y :
            The new samples, one for each position, as in ``add``.

        Returns
        -------
        self : object
            The updated model.
        """
        return super().replace(index, X, y)

    def __getattr__(self, name: str) -> Any:
        """L_ after an update, which only predicted deviations need."""
        if name != "L_" or "X_train_" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        factor = self._evidence().factor(self._kernel)
        if isinstance(factor, int):
            message = not_definite(self.kernel_, self._kernel, self._evidence(), factor)
            raise np.linalg.LinAlgError(message)
        self.L_ = factor.L
        return self.L_

    def _evidence(self) -> Evidence:
        n = len(self.y_train_)
        return Evidence(self.X_train_, self.y_train_.reshape(n, -1), self._variances(n), thread_count(self.n_jobs))

    def _domain_of_updates(self) -> str:
        return domain_of(self.kernel)

    def _updated_samples(self) -> Any:
        return self.X_train_

    def _noise_of_updates(self) -> float:
        return float(self._variances(self._updates.n))

    def _has_memory(self, n: int) -> bool:
        check_memory(2 * n)
        return True

    def _right_sides(self, Y: Matrix) -> Matrix:
        return self._normalised(Y)

    def _set_training(self, data: Data, Y: Matrix) -> None:
        """The training samples and targets after an update."""
        self.y_train_ = self._normalised(Y if self.y_train_.ndim > 1 else Y[:, 0])
        self.X_train_ = data.samples
        self.__dict__.pop("L_", None)

    def _refit(self, data: Data, Y: Matrix, weight: Vector, clock: Clock) -> None:
        """Condition on the targets without an earlier solution."""
        self._set_training(data, Y)
        self._condition(self._kernel, self._evidence(), None)

    def _publish_update(
        self, data: Data, Y: Matrix, weight: Vector, S: Matrix, product: Matrix, residual: float, log_det: float,
        clock: Clock,
    ) -> None:  # fmt: skip
        """Publish the process for the solutions S of the system."""
        self._set_training(data, Y)
        n = len(Y)
        self.alpha_ = S.reshape(self.y_train_.shape)
        logarithms = 0.5 * log_det + 0.5 * n * np.log(2.0 * np.pi)
        value = -0.5 * float(np.vdot(self.y_train_, self.alpha_)) - S.shape[1] * logarithms
        self.log_marginal_likelihood_value_, self.residual_ = value, residual
        self.n_evaluations_, self.n_iter_ = 1, 1
        self.gradient_ = np.full(len(self._kernel.theta), np.nan)

    def _blas_threads(self, n: int) -> Any:
        threads = thread_count(self.n_jobs) if n >= BLAS_THREADS_FROM else 1
        return blas_threads(threads)

    # ---- prediction ------------------------------------------------------------------------------------------

    def _expansion(self) -> tuple[Kernel, Any, Matrix]:
        if not hasattr(self, "X_train_"):
            raise AttributeError("function_ is available after fit.")
        return self._kernel, self.X_train_, (self._y_train_std * self.alpha_).T

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Predict the mean of the posterior, or of the prior before ``fit``, and standard deviations or covariances.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or list of object
            Samples.
        return_std : bool, default=False
            Whether to return the standard deviations too.
        return_cov : bool, default=False
            Whether to return the covariances of all pairs of samples too.

        Returns
        -------
        y_mean : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Means.
        y_std : ndarray of shape (n_samples,) or (n_samples, n_targets), optional
            Standard deviations. They include the noise of ``White``, but not ``alpha``.
        y_cov : ndarray of shape (n_samples, n_samples) or (n_samples, n_samples, n_targets), optional
            Covariances.
        """
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std or return_cov can be requested.")
        X, _ = validate_samples(self, X, None, reset=False)
        if (return_std or return_cov) and is_pairwise(self.kernel):
            raise InvalidInputError(
                "Deviations and covariances need k(x, z) between the new samples, which a precomputed matrix does not "
                "contain. Predict the mean only, or pass the kernel instead of its matrix."
            )
        with self._blas_threads(num_samples(X)):
            if not hasattr(self, "X_train_"):
                return prior(resolve_covariance(self.kernel).bind(X), X, self.n_targets or 1, return_std, return_cov)
            known = (self.X_train_, self.L_, self.alpha_, self._y_train_mean, self._y_train_std)
            return Posterior(self._kernel, *known, thread_count(self.n_jobs)).at(X, return_std, return_cov)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Matrix:
        """Draw functions from the posterior (before ``fit`` from the prior) and evaluate them at samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples_X, n_features) or list of object
            Samples.
        n_samples : int, default=1
            Number of functions.
        random_state : int, RandomState instance or None, default=0
            Seed of the draws.

        Returns
        -------
        y_samples : ndarray of shape (n_samples_X, n_samples) or (n_samples_X, n_targets, n_samples)
            The functions' values.
        """
        random = check_random_state(random_state)
        mean, covariance = self.predict(X, return_cov=True)
        if mean.ndim == 1:
            return random.multivariate_normal(mean, covariance, n_samples).T
        drawn = [
            random.multivariate_normal(mean[:, t], covariance[..., t], n_samples).T[:, None]
            for t in range(mean.shape[1])
        ]
        return np.hstack(drawn)

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True) -> Any:
        """The log marginal likelihood log p(y) of the training targets.

        Parameters
        ----------
        theta : array-like of shape (n_parameters,), default=None
            Logarithms of the kernel's parameters, as in ``kernel_.theta``; None for the learnt ones.
        eval_gradient : bool, default=False
            Whether to return the gradient too; requires theta.
        clone_kernel : bool, default=True
            Whether to leave ``kernel_`` unchanged. If False, ``kernel_`` gets these parameters.

        Returns
        -------
        log_likelihood : float
            log p(y); -inf where K + alpha is singular.
        log_likelihood_gradient : ndarray of shape (n_parameters,), optional
            Its gradient with respect to theta.
        """
        if not hasattr(self, "X_train_"):
            raise NotFittedError(
                "log_marginal_likelihood needs the training targets: call fit first, with optimizer=None to keep the "
                "kernel as it is."
            )
        if theta is None:
            if eval_gradient:
                raise ValueError("Gradient can only be evaluated for theta!=None")
            return self.log_marginal_likelihood_value_
        kernel = self._kernel.with_theta(theta)
        if not clone_kernel:
            self.kernel_ = public(kernel, self.kernel)
        n = len(self.y_train_)
        evidence = Evidence(self.X_train_, self.y_train_.reshape(n, -1), self._variances(n), thread_count(self.n_jobs))
        with self._blas_threads(n):
            if eval_gradient:
                return evidence.value_and_gradient(kernel)
            found = evidence.factor(kernel)
        return found.value if isinstance(found, Factor) else -np.inf


# ---- the process at new samples -----------------------------------------------------------------------------------


def prior(kernel: Kernel, X: Any, n_targets: int, return_std: bool, return_cov: bool) -> Any:
    """The prior at X: mean 0 and covariance k for each target, in the same form as `Posterior.at`."""
    features = kernel.prepare(X)
    mean = np.zeros((len(features), n_targets) if n_targets > 1 else len(features))
    if not (return_std or return_cov):
        return mean
    spread = kernel.block(features, features) if return_cov else np.sqrt(kernel.diagonal(features))
    return mean, np.repeat(spread[..., None], n_targets, axis=-1) if n_targets > 1 else spread


@dataclass(frozen=True)
class Posterior:
    """The process conditioned on the targets: K + Λ = LL' and α = (K + Λ)⁻¹ y.

    The targets were shifted by ``shift`` and divided by ``scale`` (one number, or one per target).
    """

    kernel: Kernel
    samples: Any
    L: Matrix
    alpha: Matrix
    shift: Vector
    scale: Vector
    n_threads: int

    def at(self, X: Any, return_std: bool, return_cov: bool) -> Any:
        """Means at X, with standard deviations or covariances on request."""
        a, b = self.kernel.prepare(X), self.kernel.prepare(self.samples)
        # treat a single target as a vector, so that results do not depend on the shape of y
        alpha = self.alpha[:, 0] if self.alpha.ndim > 1 and self.alpha.shape[1] == 1 else self.alpha
        mean = product(self.kernel, a, b, alpha, self.n_threads) * self.scale + self.shift
        if return_cov:
            return mean, self._covariance(a, b)
        return (mean, self._deviation(a, b)) if return_std else mean

    def _covariance(self, a: Features, b: Features) -> Matrix:
        """k(x*, z*) - k*' (K + Λ)⁻¹ k*."""
        V = self._solved(GramOperator(self.kernel, b, self.n_threads), a)
        return self._scaled(GramOperator(self.kernel, a, self.n_threads).dense() - V.T @ V)

    def _deviation(self, a: Features, b: Features) -> Matrix:
        """The square root of the diagonal of the covariance, computed in batches of samples."""
        gram, variance = GramOperator(self.kernel, b, self.n_threads), self.kernel.diagonal(a)
        step = max(1, ROWS_BYTES // (8 * len(b)))
        for start in range(0, len(a), step):
            part = np.arange(start, min(start + step, len(a)))
            V = self._solved(gram, a if len(part) == len(a) else a.take(part))
            variance[part] -= np.einsum("ij,ij->j", V, V)
        if np.any(variance < 0):
            warn_user("Predicted variances smaller than 0. Setting those variances to 0.", UserWarning)
            variance[variance < 0] = 0.0
        return np.sqrt(self._scaled(variance))

    def _solved(self, gram: GramOperator, a: Features) -> Matrix:
        """L⁻¹ k*, one column per new sample."""
        V, _ = lapack.dtrtrs(self.L, gram.rows(a).T, lower=1, overwrite_b=1)
        return V

    def _scaled(self, spread: Matrix) -> Matrix:
        """Variances or covariances in the original units of the targets, one slice per target if there are several."""
        squares = np.square(self.scale)
        return spread * float(squares.item()) if np.size(squares) == 1 else np.multiply.outer(spread, squares)


# ---- the covariance: its parameters, its likelihood, its faults -----------------------------------------------------


def resolve_covariance(kernel: Any) -> Kernel:
    """The kernel given by the parameter ``kernel``."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, type):
        raise InvalidInputError(f"kernel={kernel.__name__} is a class, not a kernel: write {kernel.__name__}().")
    if kernel is None:
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel

        return SklearnKernel(ConstantKernel() * RBF())
    if is_sklearn_kernel(kernel):
        return SklearnKernel(kernel)
    return parse_kernel(kernel) if isinstance(kernel, str) else CallableKernel(kernel)


def likelihood(kernel: Kernel, evaluate: Callable[[Kernel], tuple[float, Vector]]) -> Objective:
    """The function theta → (log p(y), gradient), where ``evaluate`` is that of the kernel."""
    equal = kernel.equal if isinstance(kernel, SklearnKernel) else None
    if equal is None:
        return lambda theta: evaluate(kernel.with_theta(theta))
    # building scikit-learn's kernel objects is slow: evaluate mercer's equal kernel instead
    own, start, powers = equal.kernel, kernel.theta, equal.powers
    origin = own.theta

    def of_equal(theta: Vector) -> tuple[float, Vector]:
        value, gradient = evaluate(own.with_theta(origin + powers * (theta - start)))
        return value, powers * gradient

    return of_equal


def starting_points(estimator: Any, kernel: Kernel, random: Any = None) -> list[Vector]:
    """Starting points: the kernel's own parameters, then ``n_restarts_optimizer`` random ones within the bounds."""
    bounds, restarts = kernel.bounds, estimator.n_restarts_optimizer
    if restarts > 0 and not np.isfinite(bounds).all():
        raise ValueError("Multiple optimizer restarts (n_restarts_optimizer>0) requires that all bounds are finite.")
    random = check_random_state(estimator.random_state) if random is None else random
    return [kernel.theta, *(random.uniform(bounds[:, 0], bounds[:, 1]) for _ in range(restarts))]


def warn_unfinished(estimator: Any, found: Ascent, bounds: Matrix, value: float) -> None:
    """Warn that the search stopped early, with the size of the remaining gradient."""
    reason = {
        Status.MAX_ITER: f"after max_iter={getattr(estimator, 'max_iter', None)} iterations",
        Status.TIME_LIMIT: f"after time_limit={getattr(estimator, 'time_limit', None)} s",
        Status.INTERRUPTED: "because it was interrupted",
    }.get(found.status, "because rounding allows no further progress")
    if found.evaluations == 0:
        warn_user(
            f"The search for the kernel's parameters ended {reason}, before its first step: the given parameters "
            f"are used. The log marginal likelihood is {value:.6g}.",
            ConvergenceWarning,
        )
        return
    warn_user(
        f"The search for the kernel's parameters ended {reason}. The log marginal likelihood is {found.value:.6g}; "
        f"its largest derivative by the logarithm of a parameter is {found.slope(bounds):.2g} (0 at an optimum).",
        ConvergenceWarning,
    )


def public(kernel: Kernel, given: Any) -> Any:
    """The kernel to show to users: scikit-learn's if ``given`` was one of scikit-learn's."""
    return kernel.kernel if isinstance(kernel, SklearnKernel) and not isinstance(given, Kernel) else kernel


def check_memory(n: int, matrices: int = 1, other: str = "SVR, which does not store the matrix") -> None:
    """Raise if this many kernel matrices of n samples do not fit into the available memory."""
    needed = 8 * n * n * matrices
    if needed <= NO_QUESTION:
        return
    available = available_bytes()
    if needed > available:
        most = int(np.sqrt(available / (8 * matrices)))
        raise InvalidInputError(
            f"A Gaussian process needs the whole kernel matrix: {n:,} samples take {needed / 1e9:,.1f} GB, but "
            f"{available / 1e9:,.1f} GB are available, enough for {most:,} samples. Fit it on a random subset of the "
            f"samples, or use {other}."
        )


def warn_at_bounds(kernel: Kernel) -> None:
    """Warn about parameters that ended at their bounds, in scikit-learn's words."""
    close = np.isclose(kernel.bounds, kernel.theta[:, None])
    for parameter, (low, high) in zip(kernel.hyperparameters(), close.tolist(), strict=True):
        if not (low or high) or parameter.lower == parameter.upper:
            continue
        name, _, position = parameter.name.partition("[")
        side, bound, change = (
            ("lower", parameter.lower, "Decreasing") if low else ("upper", parameter.upper, "Increasing")
        )
        warn_user(
            f"The optimal value found for dimension {position.rstrip(']') or 0} of parameter {name} is close to the "
            f"specified {side} bound {bound}. {change} the bound and calling fit again may find a better value.",
            ConvergenceWarning,
        )
