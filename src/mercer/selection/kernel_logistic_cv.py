"""KernelLogisticRegressionCV: kernel logistic regression that chooses C and the kernel by cross-validation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mercer._sklearn_compat import Interval, StrOptions, available_if, num_samples
from mercer.erm.kernel_matrix import check_room
from mercer.erm.logistic import logistic_sum, solve_logistic
from mercer.erm.sums import probabilities
from mercer.estimators.base import keep_parameters
from mercer.estimators.kernel_logistic import KernelLogisticRegression
from mercer.gram.products import StoredMatrix
from mercer.kernels import Kernel
from mercer.kernels.features import Matrix, Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import Options
from mercer.selection.engine import HeldOut, Report, Survivors
from mercer.selection.matrices import Matrices
from mercer.selection.search.candidates import KernelChoice, SettingChoice, Table
from mercer.selection.search.grids import C_range, values_of
from mercer.selection.search.kernel_search_cv import KernelSearchCV
from mercer.selection.search.scoring import HeldOutOneVsRest, Score, score_models, score_one_vs_rest
from mercer.selection.search.search_cv import DecisionMixin, _is_refitted
from mercer.validation import check_weighted_classes, class_codes, class_weights

# Newton steps at most for each machine of the search
MOST_STEPS = 100


class HeldOutLogistic(HeldOutOneVsRest):
    """Held-out decision values of logistic regression: their probabilities are known, too."""

    def predict_proba(self, X: Any) -> Matrix:
        values = self.decision_function(X)
        return np.column_stack([expit(-values), expit(values)]) if values.ndim == 1 else probabilities(values)


class KernelLogisticRegressionCV(ClassifierMixin, DecisionMixin, KernelSearchCV):  # type: ignore[misc]
    """``KernelLogisticRegression`` that chooses C and the kernel's parameters by cross-validation.

    It gives the scores of ``GridSearchCV(KernelLogisticRegression())`` but shares computations: all gamma share
    distances, all folds and C share the kernel matrix, and each machine starts from the one with the next smaller C.

    Parameters
    ----------
    kernel, gammas, kernel_grid, degree, coef0 : as in ``SVCCV``.
    Cs : int or array-like, default=8
        The values of C, or their number: then they range from 0.01 to 1000 divided by the mean of k(x, x).
    fit_intercept, class_weight : as in ``KernelLogisticRegression``; "balanced" is computed from the training samples
        of each fold.
    cv : int, splitter or iterable, default=5
        The number of (stratified) folds, a splitter, or (train, test) pairs.
    scoring : str or callable, default=None
        A scorer of labels, decision values or probabilities, such as "neg_log_loss"; None is accuracy. Sample weights
        also apply to scores.
    search : {"grid", "local"}, default="grid"
        "grid" tries all combinations. "local" tries a coarse grid and refines it three times around the best candidate.
    refit : bool, default=True
        Whether to fit the best machine to all samples; required for ``predict``.
    tol : float, default=1e-6
        The relative duality gap of every machine.
    cache_size : float or "auto", default="auto"
        Memory in MB for kernel matrices and the parts of them that a fold copies; "auto" is half of the available
        memory. If they do not fit, that is an error.
    n_jobs, time_limit, verbose : as in ``SVCCV``.

    Attributes
    ----------
    best_estimator_ : KernelLogisticRegression
        The best machine, fitted to all samples, with its certificate.
    C_, gamma_ : float
        The values in ``best_params_``.
    cv_decision_function_ : ndarray of shape (n_samples, 1) or (n_samples, n_classes)
        The held-out decision values of the best candidate.
    best_params_, best_score_, best_index_, cv_results_, cv_fold_, n_splits_, refit_time_, certificate_, classes_,
    n_features_in_, feature_names_in_ : as in ``SVCCV``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelLogisticRegressionCV
    >>> X = np.random.default_rng(0).normal(size=(120, 2))
    >>> model = KernelLogisticRegressionCV(Cs=4, gammas=4, scoring="neg_log_loss").fit(X, (X**2).sum(axis=1) > 1.4)
    >>> bool(model.best_score_ > -0.3)
    True
    >>> model.predict_proba(X[:3]).shape
    (3, 2)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{key: value for key, value in KernelSearchCV._parameter_constraints.items() if key != "precision"},
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like", Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        Cs: Any = 8,
        gammas: Any = 8,
        kernel_grid: Any = None,
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        search: str = "grid",
        refit: bool = True,
        tol: float = 1e-6,
        cache_size: Any = "auto",
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: Any = False,
    ) -> None:
        keep_parameters(self, locals())

    def _validate(self, X: Any, y: Any) -> tuple[Any, Vector]:
        X, y = self._validate_samples(X, y)
        self.classes_, codes = class_codes(y)
        self.class_weight_ = class_weights(self.class_weight, self.classes_, codes)
        return X, codes

    def _machine(self) -> KernelLogisticRegression:
        return KernelLogisticRegression(
            kernel=self.kernel, degree=self.degree, coef0=self.coef0, fit_intercept=self.fit_intercept,
            class_weight=self.class_weight, tol=self.tol, cache_size=self.cache_size, n_jobs=self.n_jobs,
        )  # fmt: skip

    def _settings(self, X: Any, y: Vector, kernels: Sequence[KernelChoice]) -> list[SettingChoice]:
        limits = C_range([choice.kernel for choice in kernels], X)
        return [self._setting({"C": C}) for C in values_of("Cs", self.Cs, limits)]

    def _setting(self, params: dict[str, Any]) -> SettingChoice:
        return SettingChoice(float(params["C"]), params)

    def _family(self, folds: Any, y: Vector, weight: Vector) -> Any:
        raise NotImplementedError  # the problems of a fold are not those of support vector machines

    def _search(self, X: Any, y: Vector, weight: Vector, folds: list[tuple[Any, Any]], clock: Clock) -> Table:
        check_weighted_classes(y, weight, self.class_weight_)
        check_room(num_samples(X), self._options(self.cache_size, "float64").budget, _copied(folds))
        return super()._search(X, y, weight, folds, clock)

    def _engine(
        self, samples: Any, movable: bool, y: Vector, weight: Vector, folds: list[tuple[Any, Any]], clock: Clock
    ) -> LogisticEngine:
        options = self._options(self.cache_size, "float64")
        left = options.budget - 8 * _copied(folds)
        options = replace(options, budget=max(left, 8 * len(y) ** 2))  # there is room for one matrix: see _search
        return LogisticEngine(self, samples, y, weight, folds, options, clock)

    def _score(self, X: Any, y: Vector, weight: Vector, folds: list[tuple[Any, Any]]) -> Score:
        if self.scoring in (None, "accuracy"):
            return score_one_vs_rest(y, weight, folds)
        return score_models(self.scoring, self._held_out_model, X, self.classes_[y], weight, folds)

    def _held_out_model(self, values: Matrix) -> HeldOutLogistic:
        return HeldOutLogistic(self.classes_, values)

    def _columns(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _learn(self, y: Vector, weight: Vector) -> None:
        self._publish_names()

    @available_if(_is_refitted)
    def predict_proba(self, X: Any) -> Matrix:
        """The probability of each class, by the best machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        P : ndarray of shape (n_samples, n_classes)
            One column per class, in the order of ``classes_``.
        """
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    @available_if(_is_refitted)
    def predict_log_proba(self, X: Any) -> Matrix:
        """The logarithms of ``predict_proba``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        P : ndarray of shape (n_samples, n_classes)
            One column per class, in the order of ``classes_``.
        """
        check_is_fitted(self)
        return self.best_estimator_.predict_log_proba(X)


def _copied(folds: list[tuple[Any, Any]]) -> int:
    """The values that a fold copies: those between its training samples, and those of its test samples with them."""
    return max(len(train) * (len(train) + len(test)) for train, test in folds)


class LogisticEngine:
    """Held-out values of logistic regressions: kernels × folds × C, with one kernel matrix at a time."""

    def __init__(
        self,
        search: KernelLogisticRegressionCV,
        samples: Any,
        codes: Vector,
        weight: Vector,
        folds: list[tuple[Any, Any]],
        options: Options,
        clock: Clock,
    ) -> None:
        self.search, self.samples, self.codes, self.weight = search, samples, codes.astype(np.intp), weight
        self.folds, self.options, self.clock = folds, options, clock
        self.evaluations = 0

    def run(
        self, kernels: Sequence[Kernel], settings: Sequence[Any], report: Report, survivors: Survivors | None = None
    ) -> None:
        """Solve all settings, values of C in ascending order, with all kernels in all folds, until the time is over."""
        n, options = len(self.codes), self.options
        matrices = Matrices(kernels, self.samples, n, 1, np.float64, options.budget, 1)
        matrices.share()
        for k in range(len(kernels)):
            if self.clock.over() is not None:
                break
            K = matrices.acquire(k, options.n_threads)
            for f in range(len(self.folds)):
                found = self._fold(K, k, f, settings)
                if found is None:
                    break
                report(found)
            matrices.release(k)
        self.evaluations += matrices.evaluations.count

    def _fold(self, K: Matrix, k: int, f: int, settings: Sequence[Any]) -> HeldOut | None:
        """The held-out values of a fold for all C; None if the time was over before."""
        started = time.perf_counter()
        search, (train, test) = self.search, self.folds[f]
        columns = search._columns()
        values = np.full((len(settings), len(test), columns), np.nan)
        codes = self.codes[train]
        present, inner = np.unique(codes, return_inverse=True)
        factors = np.ones(len(search.classes_))
        if isinstance(search.class_weight, dict):
            factors = search.class_weight_
        elif search.class_weight is not None:
            factors[present] = class_weights(search.class_weight, search.classes_[present], inner, self.weight[train])
        weight = self.weight[train] * factors[codes]
        used = np.flatnonzero(weight > 0)
        if len(np.unique(codes[used])) > 1:  # else there is nothing to learn
            rows = train[used]
            gram = StoredMatrix(K[np.ix_(rows, rows)], self.options.n_threads)
            across, start = K[np.ix_(test, rows)], None
            for s, C in enumerate(settings):
                smooth = logistic_sum(codes[used], len(search.classes_), C * weight[used])
                fits, tol = bool(search.fit_intercept), self.options.tol
                solution = solve_logistic(gram, smooth, fits, tol, MOST_STEPS, self.clock, start)
                if self.clock.over() is not None:
                    return None
                values[s] = across @ solution.beta + solution.thresholds
                start = solution.beta
        seconds = (time.perf_counter() - started) / max(1, len(settings))
        return HeldOut(k, f, range(len(settings)), values, seconds)
