"""Kernel ridge regression that chooses λ and the kernel by cross-validation, from one decomposition per kernel."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.utils import check_scalar

from mercer._compiled.blas import one_blas_thread
from mercer._sklearn_compat import Interval, StrOptions
from mercer.estimators.base import keep_parameters, warn_user
from mercer.estimators.kernel_ridge import BaseRidge, domain_of_ridge
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data, check_finite
from mercer.kernels import Kernel
from mercer.kernels.features import Matrix, Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import Options, Status, TracePoint
from mercer.ridge.reduction import Reduction, of_matrix, reduce
from mercer.ridge.solver import solve

# decompositions reach n³/SPEED seconds; at least this many samples are used for the choice
SPEED, SMALLEST_SUBSET = 8e9, 200


class Identity(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator that returns its input as predictions, so that scikit-learn's scorers can be applied to them."""

    def fit(self, X: Any, y: Any = None) -> Identity:
        return self

    def predict(self, X: Any) -> Any:
        return X


def determination(predictions: Matrix, Y: Matrix, weight: Vector) -> float:
    """R² averaged over targets: 1 − Σ w (y − p)² / Σ w (y − ȳ)²; for a constant target 1 if exact, else 0."""
    if len(Y) < 2:
        raise InvalidInputError(
            "R² is not defined for a fold with 1 test sample. Use cv=None for leave-one-out, or another scoring such "
            "as 'neg_mean_squared_error'."
        )
    total = weight @ (Y - weight @ Y / weight.sum()) ** 2
    left = weight @ (Y - predictions) ** 2
    constant = np.where(left == 0, 0.0, 1.0)
    return float(1.0 - np.mean(np.divide(left, total, out=constant, where=total != 0)))


class KernelScores(NamedTuple):
    """The result for one kernel: scores for each λ (and target), the values behind them, and the decomposition."""

    scores: Matrix
    values: Matrix | None
    reduction: Reduction | None

    @property
    def best(self) -> float:
        """The best score, averaged over targets if each has its own λ."""
        return float(np.mean(np.max(self.scores, axis=0)))


class KernelRidgeCV(BaseRidge):
    """Kernel ridge regression with built-in choice of λ and the kernel, in the style of scikit-learn's RidgeCV.

    By default it tries the linear and the Gaussian kernel. It fits an intercept, as RidgeCV does; ``KernelRidge`` does
    not unless asked to, as in scikit-learn. Scale features of different units first, as for any Gaussian kernel.

    The default is leave-one-out cross-validation in closed form: the residual of sample i without sample i is

        yᵢ − f₋ᵢ(xᵢ) = βᵢ / Hᵢᵢ,      H the inverse of  K + λ/w  (bordered by ones if there is an intercept)

    for all λ from one decomposition of K. Sample weights apply to the loss and to all scores; in scikit-learn they do
    not apply to scores with ``cv``.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), default=(1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3)
        The values of λ to try. They must be positive; with folds in ``cv`` 0 is allowed.
    kernel : str, Kernel or callable, or a list of these, default=("linear", "rbf")
        As in ``KernelRidge``; from a list the best kernel is chosen.
    kernel_grid : dict or list of dict, default=None
        Values of kernel parameters by name, for example ``{"gamma": [0.1, 1.0]}``; all combinations are tried.
    cv : None, "gcv", int, splitter or iterable, default=None
        None is leave-one-out. "gcv" is generalised cross-validation, which replaces each Hᵢᵢ by their mean. A number or
        a splitter is ordinary cross-validation with one decomposition per fold.
    scoring : str or callable, default=None
        The score. None is the negative mean squared error, or R² with folds.
    store_cv_results : bool, default=False
        Whether to keep ``cv_results_``; not with folds.
    alpha_per_target : bool, default=False
        Whether each target has its own λ; not with folds.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised intercept b.
    gamma, degree, coef0, kernel_params, solver, tol, max_iter, cache_size, precision, n_jobs,
    time_limit, verbose : as in ``KernelRidge``.
        The decomposition takes the memory of the matrix, 1.5 times as much for leave-one-out, and less if the rank is
        low. Scores for many samples have a relative error of about 1e-6, or only rounding errors with
        precision="float64". After time_limit no further kernel is tried. If time_limit is too short to decompose the
        matrix of all samples, the choice is made on a random subset.

    Attributes
    ----------
    alpha_ : float or ndarray of shape (n_targets,)
        The best λ.
    best_score_ : float or ndarray of shape (n_targets,)
        Its score.
    kernel_ : Kernel
        The best kernel, with numbers for all its parameters.
    scores_ : ndarray of shape (n_kernels, n_alphas) or (n_kernels, n_alphas, n_targets)
        All scores; the last axis only with ``alpha_per_target``. NaN for kernels that were not tried in time.
    kernels_ : list of Kernel
        The candidate kernels.
    cv_results_ : ndarray of shape (n_samples, n_alphas) or (n_samples, n_targets, n_alphas)
        For the best kernel: the (weighted) squared leave-one-out errors, or with ``scoring`` the leave-one-out
        predictions. Samples without weight have 0 (predictions: NaN), samples left out for time_limit NaN.
    dual_coef_, X_fit_, intercept_, certificate_, certificates_, rkhs_norm_, function_, coef_, … :
        As in ``KernelRidge``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidgeCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, (80, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=80)
    >>> model = KernelRidgeCV(np.logspace(-4, 2, 13), kernel="rbf", kernel_grid={"gamma": [0.01, 0.3, 10.0]}).fit(X, y)
    >>> model.kernel_
    Gaussian(gamma=0.3)
    >>> bool(-model.best_score_ < 0.015)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseRidge._parameter_constraints,
        "alphas": ["array-like", Interval(Real, 0, None, closed="neither")],
        "kernel": [*BaseRidge._parameter_constraints["kernel"], list, tuple],
        "kernel_grid": [dict, list, None],
        "cv": ["cv_object", StrOptions({"gcv"})],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "store_cv_results": ["boolean"],
        "alpha_per_target": ["boolean"],
    }

    def __init__(
        self,
        alphas: Any = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3),
        *,
        kernel: Any = ("linear", "rbf"),
        gamma: Any = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        kernel_grid: Any = None,
        fit_intercept: bool = True,
        scoring: Any = None,
        cv: Any = None,
        store_cv_results: bool = False,
        alpha_per_target: bool = False,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = -1,
        cache_size: Any = "auto",
        precision: str = "auto",
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: Any = False,
    ) -> None:
        keep_parameters(self, locals())

    # ---- candidates ------------------------------------------------------------------------------------------

    @property
    def _has_folds(self) -> bool:
        return self.cv is not None and not isinstance(self.cv, str)

    def _domain(self) -> str:
        given = self.kernel if isinstance(self.kernel, list | tuple) else [self.kernel]
        return domain_of_ridge(given[0]) if len(given) else "vectors"

    def _candidates(self) -> list[Kernel]:
        """All candidate kernels, with all combinations of ``kernel_grid``."""
        given = list(self.kernel) if isinstance(self.kernel, list | tuple) else [self.kernel]
        if not given:
            raise InvalidInputError("kernel is an empty list: give at least one kernel.")
        domains = {domain_of_ridge(kernel) for kernel in given}
        if len(domains) > 1:
            raise InvalidInputError(
                f"The kernels compare samples of different kinds ({', '.join(sorted(domains))}), but there is one X "
                "for all of them."
            )
        kernels = [self._resolve(kernel) for kernel in given]
        if not self.kernel_grid:
            return kernels
        return [kernel.set_params(**params) for kernel in kernels for params in ParameterGrid(self.kernel_grid)]

    def _checked_alphas(self) -> Vector:
        """The validated values of λ; errors use scikit-learn's words."""
        alphas = np.atleast_1d(np.asarray(self.alphas, dtype=np.float64))
        if alphas.ndim != 1 or len(alphas) == 0:
            raise InvalidInputError(f"alphas has the shape {alphas.shape}: give a list of at least one number.")
        for index, alpha in enumerate(alphas):
            name = "alphas" if len(alphas) == 1 else f"alphas[{index}]"
            if not np.isfinite(alpha):
                raise InvalidInputError(f"{name} == {alpha}, must be a finite number.")
            boundaries = "left" if self._has_folds else "neither"
            check_scalar(float(alpha), name, target_type=Real, min_val=0.0, include_boundaries=boundaries)
        return alphas

    # ---- fit -------------------------------------------------------------------------------------------------

    def _fit_targets(self, X: Any, Y: Matrix, weight: Vector, clock: Clock) -> None:
        alphas, kernels = self._checked_alphas(), self._candidates()
        for name in ("store_cv_results", "alpha_per_target"):
            if self._has_folds and getattr(self, name):
                raise ValueError(f"cv!=None and {name}=True are incompatible")
        used, options = np.flatnonzero(weight > 0), self._options()
        if len(used) < 2 and self.fit_intercept:
            raise InvalidInputError(
                f"{len(used)} sample has a weight: with an intercept cross-validation needs at least 2 samples."
            )
        self._weighted = bool((weight[used] != 1).any())
        best, best_kernel, scores = None, None, []
        # a splitter assigns all samples to folds, with weight or without
        candidates = np.arange(len(Y)) if self._has_folds else used
        subset = self._subset(candidates, len(kernels), clock)
        for index, kernel in enumerate(kernels):
            if index > 0 and clock.over() is not None:
                break
            data = self._bind_kernel(kernel, X, X, len(Y))
            part = data if len(subset) == data.n else data.take(subset)
            if self._has_folds:
                tried = self._by_folds(part, Y[subset], weight[subset], alphas, options)
            else:
                tried = self._left_out(part, Y[subset], weight[subset], alphas, options)
            scores.append(tried.scores)
            if best is None or tried.best > best.best:
                best, best_kernel, best_data = tried, self._kernel, data
            clock.report(TracePoint(clock.seconds, index + 1, np.inf, -np.inf, data.n))
        assert best is not None and best_kernel is not None
        self._kernel = self.kernel_ = best_kernel
        self.kernels_ = kernels
        self._publish_choice(best, scores, alphas, subset, weight)
        alpha = np.broadcast_to(self.alpha_, Y.shape[1])
        reduction = best.reduction if len(subset) == len(candidates) else None
        self._refit(best_data, reduction, Y, weight, alpha, options, clock)
        if len(subset) < len(candidates):
            warn_user(
                f"alpha and the kernel were chosen on {len(subset)} of {len(candidates)} samples, drawn at random, "
                f"because time_limit={self.time_limit} s allows no more. The model is fitted to all samples.",
                UserWarning,
            )
        missed = len(kernels) - len(scores)
        if missed:
            warn_user(
                f"Only {len(scores)} of {len(kernels)} kernels were tried within time_limit={self.time_limit} s.",
                UserWarning,
            )

    def _subset(self, candidates: Vector, n_kernels: int, clock: Clock) -> Vector:
        """The samples used for the choice: all, or a random subset that can be decomposed in half of the time."""
        of_its_own = self._has_folds and not isinstance(self.cv, Integral)  # a splitter may depend on all samples
        if clock.left == np.inf or of_its_own:
            return candidates
        n_folds = int(self.cv) if self._has_folds else 1
        most = int(np.cbrt(0.5 * max(0.0, clock.left) * SPEED / (n_kernels * n_folds)))
        most = max(most, SMALLEST_SUBSET)
        if len(candidates) <= most:
            return candidates
        return np.sort(np.random.default_rng(0).permutation(candidates)[:most])

    def _refit(
        self,
        data: Data,
        reduction: Reduction | None,
        Y: Matrix,
        weight: Vector,
        alpha: Vector,
        options: Options,
        clock: Clock,
    ) -> None:
        """Fit all samples. A decomposition, if there is one, serves as preconditioner of conjugate gradients."""
        used = np.flatnonzero(weight > 0)
        part = data if len(used) == data.n else data.take(used)
        known = (part, Y[used], weight[used], alpha, bool(self.fit_intercept), options, clock)
        # with a decomposition the solution is nearly free: no time limit
        unlimited = Clock(None, clock.reports.callback)
        ready = reduction is not None and reduction.definite
        solutions = solve(*known[:6], unlimited, "cg", reduction) if ready else []
        if not solutions or any(s.status is not Status.CONVERGED for s in solutions):
            solutions = solve(*known, self.solver)
        self._publish(data, solutions, weight)

    def _publish_choice(
        self, best: KernelScores, scores: list[Matrix], alphas: Vector, subset: Vector, weight: Vector
    ) -> None:
        """Set alpha_, best_score_, scores_ and cv_results_."""
        chosen = np.argmax(best.scores, axis=0)  # the first of equal scores
        alpha, score = alphas[chosen], best.scores[chosen, np.arange(len(chosen))]
        each = bool(self.alpha_per_target) and not self._ravel
        self.alpha_: Any = alpha if each else float(alpha[0])
        self.best_score_: Any = score if each else float(score[0])
        self.scores_ = np.full((len(self.kernels_), *best.scores.shape), np.nan)
        self.scores_[: len(scores)] = scores
        if not each:
            self.scores_ = self.scores_[:, :, 0]
        if self.store_cv_results and best.values is not None:
            values = np.full((len(weight), *best.values.shape[1:]), np.nan)
            values[weight == 0] = 0.0 if self.scoring is None else np.nan
            values[subset] = best.values
            self.cv_results_ = values[:, 0] if self._ravel else values

    def _left_out(self, data: Data, Y: Matrix, weight: Vector, alphas: Vector, options: Options) -> KernelScores:
        """Leave-one-out and generalised cross-validation with one kernel."""
        reduction = reduce(data, weight, float(alphas.min()), options)
        found = reduction.residuals(Y, alphas, bool(self.fit_intercept), options.n_threads, mean=self.cv == "gcv")
        root = np.sqrt(weight)[:, None]
        errors = found.beta / root / found.inverse[:, :, None]  # of √w y
        check_finite(errors)
        if self.scoring is None:
            values = errors**2
            scores = -values.mean(axis=1)
            scores = scores if self.alpha_per_target else scores.mean(axis=1, keepdims=True)
        else:
            values = Y - errors / root
            scores = np.array([self._score(prediction, Y, weight) for prediction in values])
        return KernelScores(scores, np.moveaxis(values, 0, -1), reduction)

    def _score(self, predictions: Matrix, Y: Matrix, weight: Vector) -> list[float]:
        """The scores of predictions: one, or one per target if each target has its own λ."""
        if self.scoring is None:
            return [determination(predictions, Y, weight)]
        scorer = check_scoring(Identity(), scoring=self.scoring)
        params = {} if not self._weighted else {"sample_weight": weight}
        if self.alpha_per_target and not self._has_folds:
            return [float(scorer(Identity(), p, y, **params)) for p, y in zip(predictions.T, Y.T, strict=True)]
        if self._ravel:
            predictions, Y = predictions[:, 0], Y[:, 0]
        return [float(scorer(Identity(), predictions, Y, **params))]

    def _by_folds(self, data: Data, Y: Matrix, weight: Vector, alphas: Vector, options: Options) -> KernelScores:
        """Cross-validation with one kernel: K is computed once and decomposed for the training samples of each fold."""
        needed = 24 * data.n**2
        if needed > options.budget:
            raise InvalidInputError(
                f"Cross-validation of {data.n} samples needs {needed / 2**30:.3g} GB for the kernel matrix and its "
                f"decomposition, but cache_size allows {options.budget / 2**30:.3g} GB. Use fewer samples, or raise "
                "cache_size."
            )
        K = data.matrix(np.float64, options.n_threads, np.empty((data.n, data.n)))
        check_finite(K)
        scores = []
        y = Y[:, 0] if self._ravel else Y
        for train, test in check_cv(self.cv).split(np.empty((data.n, 1)), y):
            train, test = (part[weight[part] > 0] for part in (np.arange(data.n)[train], np.arange(data.n)[test]))
            if len(test) == 0:
                continue
            if len(train) == 0:
                raise InvalidInputError("A fold of cv has no training sample of positive weight: use fewer folds.")
            with one_blas_thread():
                reduction = of_matrix(K[np.ix_(train, train)], np.sqrt(weight[train]))
            reduction.examine(float(alphas.min()))
            beta, b = reduction.solutions(Y[train], alphas, bool(self.fit_intercept))
            block = K[np.ix_(test, train)]
            scores.append([self._score(block @ beta[k] + b[k], Y[test], weight[test]) for k in range(len(alphas))])
        if not scores:
            raise InvalidInputError("cv gives no fold with test samples: give a splitter with at least one.")
        return KernelScores(np.mean(scores, axis=0), None, None)
