"""Gaussian process regression with inducing points, for many samples, and certified bounds of its evidence."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import lapack
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer._compiled.blas import blas_threads
from mercer._sklearn_compat import Interval, StrOptions, fit_context, num_samples
from mercer.estimators.base import KnownParameters, keep_parameters, warn_user
from mercer.estimators.gaussian_process import (
    public,
    resolve_covariance,
    starting_points,
    warn_at_bounds,
    warn_unfinished,
)
from mercer.estimators.inspection.feature_importances import Expansion, ImportancesMixin
from mercer.estimators.parameters import KernelParameters
from mercer.exceptions import InvalidInputError, NotPositiveSemidefiniteWarning
from mercer.gram.operator import product
from mercer.kernels import Kernel, White
from mercer.kernels.features import Matrix, Vector, take_samples
from mercer.problems.clock import Clock
from mercer.problems.solution import Status
from mercer.process.ascent import Ascent, maximise
from mercer.process.inducing_points import InducingEvidence, SparsePosterior
from mercer.validation import domain_of, is_pairwise, real_targets, set_input_tags, thread_count, validate_samples

# the first number of inducing points if it grows, and the factor by which it grows
FIRST, GROWTH = 32, 2
# how often inducing points are chosen if their number is given: at first and for the learnt kernel
ROUNDS = 2
# bounds of the noise variance, as shares of the variance of the targets
LEAST_NOISE, LARGEST_NOISE = 1e-8, 1e3
# bytes of kernel values between new samples and inducing points held at a time
ROWS_BYTES = 64 << 20


class EvidenceBounds(NamedTuple):
    """Bounds of log p(y) for given kernel parameters: lower ≤ log p(y) ≤ upper."""

    lower: float
    upper: float

    @property
    def gap(self) -> float:
        """upper − lower."""
        return self.upper - self.lower


class SparseRound(NamedTuple):
    """A number of inducing points, and the bounds of log p(y) with these."""

    n_inducing: int
    lower: float
    upper: float


class SparseGaussianProcessRegressor(KernelParameters, ImportancesMixin, RegressorMixin, KnownParameters):  # type: ignore[misc]
    """Gaussian process regression through m inducing points: Q = K_nm K_mm⁻¹ K_mn instead of K.

    The variational approximation of Titsias (2009): the posterior given the values of the process at m points, for
    n = 100,000 samples and more. ``fit`` takes O(n m²) and stores no n × n matrix; a prediction takes O(m). The
    kernel's parameters and the noise maximise a lower bound of the log marginal likelihood, with exact gradients. An
    upper bound (Titsias, 2014; Burt, Rasmussen & van der Wilk, 2019) certifies it: the exact evidence of the learnt
    kernel lies in ``evidence_bounds_``. Where the two meet, the process is that of ``GaussianProcessRegressor``.

    Parameters
    ----------
    kernel : kernel, str or callable, default=None
        A kernel of mercer, such as ``2.0 * Gaussian()``, or the same as text; a kernel of
        ``sklearn.gaussian_process.kernels``. None is ``ConstantKernel() * RBF()``. The noise is not part of it.
    n_inducing : int or "auto", default="auto"
        Number of inducing points m. "auto" doubles it until the gap of the bounds is at most ``tol`` per sample.
    noise_variance : float, default=0.1
        The variance σ² of the noise, or where the search for it begins.
    optimizer : {"fmin_l_bfgs_b", None}, default="fmin_l_bfgs_b"
        None keeps the kernel and the noise as they are.
    optimize_locations : bool, default=False
        Whether the points move, too. They begin at samples; by default they stay there.
    n_restarts_optimizer : int, default=0
        Number of additional runs from random kernel parameters within the bounds; the best run is used.
    normalize_y : bool, default=False
        Whether to normalise the targets to mean 0 and variance 1.
    tol : float, default=1e-2
        With ``n_inducing="auto"``, the largest gap of the bounds of log p(y) divided by the number of samples.
    max_inducing : int, default=1000
        The largest m of ``n_inducing="auto"``.
    max_iter : int, default=-1
        Maximum number of iterations of each optimizer run; -1 for no limit.
    time_limit : float, default=None
        Stop the search after this many seconds and use the best parameters so far.
    random_state : int, RandomState instance or None, default=None
        Seed of the restarts, and of the subset from which points are chosen if there are more than 20,000 samples.
    n_jobs : int, default=None
        Number of threads. None uses all cores, or one inside a joblib worker.

    Attributes
    ----------
    kernel_ : the kernel with its learnt parameters, mercer's or scikit-learn's as it was given.
    noise_variance_ : float, the learnt noise variance, in units of normalised targets.
    inducing_points_ : the points, chosen one by one where the variance given the others is largest.
    inducing_index_ : ndarray of int, or None
        Which samples these are; None if they have moved.
    evidence_bounds_ : EvidenceBounds
        ``lower`` and ``upper`` bound of the log marginal likelihood of ``kernel_`` and ``noise_variance_``.
    log_marginal_likelihood_value_ : float, the lower bound.
    growth_ : list of SparseRound, the numbers of inducing points that were tried, with their bounds.
    dual_coef_ : ndarray of shape (n_inducing,), the mean is Σ coefⱼ k(x, zⱼ).
    n_iter_, n_evaluations_ : int, iterations and evaluations of the optimizer.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Notes
    -----
    ``certify`` does not support this class, because the likelihood of the kernel is not concave: no dual value bounds
    its optimum. ``evidence_bounds_`` certifies the approximation for the given kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Gaussian, SparseGaussianProcessRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (2000, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=2000)
    >>> model = SparseGaussianProcessRegressor(1.0 * Gaussian(1.0)).fit(X, y)
    >>> len(model.dual_coef_) < 100, model.evidence_bounds_.gap < 20.0
    (True, True)
    >>> mean, deviation = model.predict([[1.5]], return_std=True)
    >>> mean.round(1), deviation.round(1)
    (array([1.]), array([0.1]))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [None, str, callable, Kernel],
        "n_inducing": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "noise_variance": [Interval(Real, 0, None, closed="neither")],
        "optimizer": [StrOptions({"fmin_l_bfgs_b"}), None],
        "optimize_locations": ["boolean"],
        "n_restarts_optimizer": [Interval(Integral, 0, None, closed="left")],
        "normalize_y": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_inducing": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "time_limit": [Interval(Real, 0, None, closed="left"), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        kernel: Any = None,
        *,
        n_inducing: int | str = "auto",
        noise_variance: float = 0.1,
        optimizer: str | None = "fmin_l_bfgs_b",
        optimize_locations: bool = False,
        n_restarts_optimizer: int = 0,
        normalize_y: bool = False,
        tol: float = 1e-2,
        max_inducing: int = 1000,
        max_iter: int = -1,
        time_limit: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        keep_parameters(self, locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        set_input_tags(tags.input_tags, domain_of(self.kernel))
        tags.input_tags.sparse = tags.input_tags.sparse and not self.optimize_locations
        return tags

    # ---- fit -------------------------------------------------------------------------------------------------

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> SparseGaussianProcessRegressor:
        """Choose inducing points, learn the kernel and the noise, and bound the evidence.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or list of object
            Training samples of any type that the kernel supports.
        y : array-like of shape (n_samples,)
            Target values.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        kernel = resolve_covariance(self.kernel)
        X, y = validate_samples(self, X, y, reset=True, y_numeric=True)
        self._check_kernel(kernel, X)
        y = real_targets(y)
        self._y_train_mean, self._y_train_std = 0.0, 1.0
        if self.normalize_y:
            spread = float(y.std())
            self._y_train_mean = float(y.mean())
            self._y_train_std = spread if spread > 10 * np.finfo(np.float64).eps else 1.0
        evidence = InducingEvidence(X, (y - self._y_train_mean) / self._y_train_std, thread_count(self.n_jobs))
        with Clock(self.time_limit) as clock, blas_threads(1):
            self._grow(kernel.bind(X), evidence, clock)
        return self

    def _check_kernel(self, kernel: Kernel, X: Any) -> None:
        if is_pairwise(kernel):
            raise InvalidInputError(
                "Inducing points need k(x, z) of single samples, which a precomputed matrix does not give for new "
                "points. Pass the kernel, or use GaussianProcessRegressor."
            )
        equal = getattr(kernel, "equal", None)
        leaves = kernel.leaves() if equal is None else equal.kernel.leaves()
        if any(isinstance(leaf, White) for leaf in leaves):
            raise InvalidInputError(
                f"{public(kernel, self.kernel)!r} contains noise, which is the parameter noise_variance here: leave it "
                "out of the kernel."
            )
        if self.optimize_locations and not isinstance(X, np.ndarray):
            raise InvalidInputError(
                "optimize_locations=True moves points in a space of dense vectors, but X is sparse or holds objects: "
                "use optimize_locations=False."
            )

        if not kernel.positive_semidefinite:
            warn_user(
                f"{public(kernel, self.kernel)!r} is not positive semidefinite for all samples, so it is no "
                "covariance: evidence_bounds_ need not bound the evidence, and the variances may be wrong. Choose "
                "another kernel, or see mercer.check_mercer.",
                NotPositiveSemidefiniteWarning,
            )

    def _grow(self, kernel: Kernel, evidence: InducingEvidence, clock: Clock) -> None:
        """Choose, learn and bound, with more points in each round if ``n_inducing="auto"``."""
        random, n = check_random_state(self.random_state), evidence.n
        grows = self.n_inducing == "auto"
        largest = min(n, int(self.max_inducing if grows else self.n_inducing))
        m = min(FIRST, largest) if grows else largest
        noise, self.growth_ = float(self.noise_variance), []
        searches: list[Ascent] = []
        while True:
            points: Any = None
            for _ in range(1 if self.optimizer is None or grows else ROUNDS):
                index = evidence.choose(kernel, m, random)
                points = take_samples(evidence.samples, index)
                if self.optimizer is None:
                    break
                found = self._learn(kernel, noise, points, evidence, random, clock)
                searches.append(found)
                if found.evaluations:
                    size = len(kernel.theta)
                    kernel, noise = kernel.with_theta(found.theta[:size]), float(np.exp(found.theta[size]))
                    if self.optimize_locations:
                        points = found.theta[size + 1 :].reshape(points.shape)
                if clock.over() is not None:
                    break
            posterior = evidence.posterior(kernel, noise, points)
            if posterior is None:
                raise np.linalg.LinAlgError(
                    f"The kernel, {public(kernel, self.kernel)}, is not returning a positive definite matrix of finite "
                    "values at the inducing points. Scale the samples, or bound the kernel's parameters."
                )
            self.growth_.append(SparseRound(len(index), posterior.lower, posterior.upper))
            close = posterior.upper - posterior.lower <= self.tol * n
            # fewer points than were asked for: the others depend on them
            if not grows or close or m >= largest or len(index) < m or clock.over() is not None:
                break
            m = min(largest, GROWTH * m)
        self._publish(kernel, noise, points, index, posterior, searches)

    def _learn(
        self, kernel: Kernel, noise: float, points: Any, evidence: InducingEvidence, random: Any, clock: Clock
    ) -> Ascent:
        """Maximise the lower bound over the kernel's parameters, the noise and perhaps the points."""
        size, moves = len(kernel.theta), bool(self.optimize_locations)
        spread = float(evidence.y.var()) or 1.0
        limits = [min(LEAST_NOISE * spread, noise), max(LARGEST_NOISE * spread, noise)]
        bounds = np.vstack([kernel.bounds, np.log([limits])])
        rest = np.array([np.log(noise)])
        if moves:
            bounds = np.vstack([bounds, np.tile([-np.inf, np.inf], (points.size, 1))])
            rest = np.concatenate([rest, points.ravel()])

        def objective(theta: Vector) -> tuple[float, Vector]:
            place = theta[size + 1 :].reshape(points.shape) if moves else points
            own, variance = kernel.with_theta(theta[:size]), float(np.exp(theta[size]))
            value, by_kernel, by_noise, by_points = evidence.value_and_gradient(own, variance, place, moves)
            tail = [] if by_points is None else [by_points.ravel()]
            return value, np.concatenate([by_kernel, [by_noise], *tail])

        starts = [np.concatenate([theta, rest]) for theta in starting_points(self, kernel, random)]
        return maximise(objective, starts, bounds, clock, int(self.max_iter))

    def _publish(
        self, kernel: Kernel, noise: float, points: Any, index: Vector, found: SparsePosterior, searches: list[Ascent]
    ) -> None:
        self._kernel, self.kernel_, self.noise_variance_ = kernel, public(kernel, self.kernel), noise
        self.inducing_points_ = points
        self.inducing_index_ = None if self.optimize_locations and self.optimizer is not None else index
        self.evidence_bounds_ = EvidenceBounds(found.lower, found.upper)
        self.log_marginal_likelihood_value_ = found.lower
        self.dual_coef_, self._L, self._LB = found.mu, found.L, found.LB
        self.n_iter_ = max(1, sum(search.iterations for search in searches))
        self.n_evaluations_ = max(1, sum(search.evaluations for search in searches))
        if not searches:
            return
        warn_at_bounds(kernel)
        last = searches[-1]
        # near the optimum of a bound that is a sum over many rows, rounding ends the search
        if last.status not in (Status.CONVERGED, Status.STALLED):
            limits = np.tile([-np.inf, np.inf], (len(last.theta), 1))
            warn_unfinished(self, last, limits, found.lower)

    # ---- prediction ------------------------------------------------------------------------------------------

    def _expansion(self) -> Expansion:
        return self._kernel, self.inducing_points_, self._y_train_std * self.dual_coef_

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Predict the mean of the targets, and standard deviations or covariances, with O(m) kernel values per sample.

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
        y_mean : ndarray of shape (n_samples,)
            Means.
        y_std : ndarray of shape (n_samples,), optional
            Standard deviations of targets: they include the noise.
        y_cov : ndarray of shape (n_samples, n_samples), optional
            Covariances of targets.
        """
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std or return_cov can be requested.")
        check_is_fitted(self)
        X, _ = validate_samples(self, X, None, reset=False)
        kernel = self._kernel
        a, b = kernel.prepare(X), kernel.prepare(self.inducing_points_)
        mean = (
            product(kernel, a, b, self.dual_coef_, thread_count(self.n_jobs)) * self._y_train_std + self._y_train_mean
        )
        scale = self._y_train_std**2
        if return_cov:
            V, W = self._solved(a, b)
            covariance = np.asarray(kernel.block(a, a), np.float64) - V.T @ V + W.T @ W
            np.einsum("ii->i", covariance)[...] += self.noise_variance_
            return mean, scale * covariance
        if not return_std:
            return mean
        variance, step = kernel.diagonal(a).astype(np.float64), max(1, ROWS_BYTES // (8 * len(b)))
        for start in range(0, num_samples(X), step):
            part = np.arange(start, min(start + step, num_samples(X)))
            V, W = self._solved(a if len(part) == len(a) else a.take(part), b)
            variance[part] += np.einsum("ij,ij->j", W, W) - np.einsum("ij,ij->j", V, V)
        return mean, np.sqrt(scale * (np.maximum(variance, 0.0) + self.noise_variance_))

    def _solved(self, a: Any, b: Any) -> tuple[Matrix, Matrix]:
        """L⁻¹ k* and L_B⁻¹ L⁻¹ k*, a column for each sample."""
        V, _ = lapack.dtrtrs(self._L, self._kernel.block(a, b).T, lower=1)
        W, _ = lapack.dtrtrs(self._LB, V, lower=1)
        return V, W
