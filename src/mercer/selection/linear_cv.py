"""LinearSVCCV and LinearSVRCV: linear machines that choose C by cross-validation, warm-started along C."""

from __future__ import annotations

import time
from abc import abstractmethod
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from mercer._compiled.thread_pool import run_tasks
from mercer._sklearn_compat import Interval, StrOptions, num_samples
from mercer.estimators.base import keep_parameters
from mercer.estimators.linear.linear_svc import LinearSVC
from mercer.estimators.linear.linear_svr import LinearSVR
from mercer.kernels import Linear
from mercer.kernels.features import Matrix, Vector, take_samples
from mercer.problems.clock import Clock
from mercer.selection.calibration.class_probabilities import METHODS, Scheme
from mercer.selection.calibration.prediction_mixins import IntervalMixin, ProbabilityMixin
from mercer.selection.search.candidates import Table
from mercer.selection.search.grids import C_range, spread_of, values_of
from mercer.selection.search.scoring import HeldOutOneVsRest, HeldOutRegressor, Score, score_models, score_one_vs_rest
from mercer.selection.search.search_cv import DecisionMixin, SearchCV
from mercer.selection.svr_cv import regression_score
from mercer.validation import class_codes, class_weights, real_targets, thread_count, validate_vectors


class LinearSearchCV(SearchCV):
    """Base of LinearSVCCV and LinearSVRCV: the search over C."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SearchCV._parameter_constraints,
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like", Interval(Real, 0, None, closed="neither")],
        **{
            name: LinearSVC._parameter_constraints[name]
            for name in ("penalty", "l1_ratio", "fit_intercept", "intercept_scaling", "penalize_intercept", "max_iter")
        },
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def n_iter_(self) -> Any:
        """The iterations of the best machine."""
        check_is_fitted(self)
        return self.best_estimator_.n_iter_

    @property
    def coef_(self) -> Any:
        """The weights of the best machine; also used by scikit-learn's feature selection."""
        check_is_fitted(self)
        return self.best_estimator_.coef_

    @property
    def intercept_(self) -> Any:
        """The intercepts of the best machine."""
        check_is_fitted(self)
        return self.best_estimator_.intercept_

    @abstractmethod
    def _score(self, X: Any, y: Vector, weight: Vector, folds: list[tuple[Any, Any]]) -> Score:
        """A function that turns the held-out values of a fold (one matrix per C) into scores."""

    @abstractmethod
    def _values(self, machine: Any, X: Any) -> Matrix:
        """Held-out values of a fitted machine, a row per sample, with the same columns in all folds."""

    def _labels(self, y: Vector) -> Vector:
        """The targets that are passed to the machine."""
        return y

    def _spread(self, y: Vector) -> float:
        return 1.0

    def _search(self, X: Any, y: Vector, weight: Vector, folds: list[tuple[Any, Any]], clock: Clock) -> Table:
        Cs = values_of("Cs", self.Cs, C_range([Linear()], X, self._spread(y)))
        table, score = Table(len(folds)), self._score(X, y, weight, folds)
        candidates = [table.new({"C": C}) for C in Cs]
        kept: list[list[Matrix]] = [[np.empty(0)] * len(folds) for _ in Cs]
        progress = self._progress(table)
        labels = self._labels(y)

        # class_weight="balanced" is computed from the labels of the fold
        machines = [clone(self._machine()).set_params(n_jobs=1, warm_start=True) for _ in folds]

        def one(k: int, f: int) -> None:
            if clock.over() is not None:
                return
            candidate, machine, (train, test) = candidates[k], machines[f], folds[f]
            train = train[weight[train] > 0]
            started = time.perf_counter()
            if len(np.unique(labels[train])) < 2 and hasattr(self, "classes_"):
                values = np.full((len(test), self._columns()), np.nan)
            else:
                with clock.ends_inner_fits(limit=True):
                    machine.set_params(C=candidate.params["C"])
                    machine.fit(take_samples(X, train), labels[train], sample_weight=weight[train])
                if clock.over() is not None:
                    return  # this fit was cut short
                values = self._values(machine, take_samples(X, test))
            middle = time.perf_counter()
            candidate.scores[f] = score(values[None], f)[0]
            candidate.score_seconds[f] = time.perf_counter() - middle
            kept[k][f] = values
            with table.lock:
                candidate.fit_seconds[f] = middle - started
                if candidate.complete:
                    table.consider(candidate, kept[k])
                    kept[k] = []
            progress.step()

        try:
            # all folds for one C before the next C, so a search that ends early has complete candidates
            for k in range(len(Cs)):
                run_tasks(partial(one, k), len(folds), thread_count(self.n_jobs))
        except BaseException:
            clock.interrupted = True  # stop the other threads
            raise
        return table


class LinearSVCCV(ProbabilityMixin, ClassifierMixin, DecisionMixin, LinearSearchCV):  # type: ignore[misc]
    """``LinearSVC`` that chooses C by cross-validation and learns class probabilities.

    Parameters
    ----------
    Cs : int or array-like, default=10
        The values of C, or their number: then they range from 0.01 to 1000 divided by the mean squared norm of samples.
    penalty, loss, l1_ratio, multi_class, fit_intercept, intercept_scaling, penalize_intercept, class_weight, tol,
    max_iter : as in ``LinearSVC``.
    cv, scoring, refit, calibration, n_jobs, time_limit, verbose : as in ``SVCCV``.

    Attributes
    ----------
    best_estimator_ : LinearSVC
        The best machine, fitted to all samples, with its certificate.
    coef_, intercept_ : those of the best estimator.
    C_ : float
        The best C.
    cv_decision_function_ : ndarray of shape (n_samples, 1) or (n_samples, n_classes)
        The held-out decision values of the best C: each sample by the machine that was not trained on it.
    best_params_, best_score_, cv_results_, cv_fold_, certificate_, … : as in ``SVCCV``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import LinearSVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearSVCCV(Cs=[0.1, 1.0, 10.0]).fit(X, y)
    >>> bool(model.best_score_ > 0.9), model.predict_proba(X[:1]).shape
    (True, (1, 3))
    """

    _scheme: ClassVar[Scheme] = Scheme.REST
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LinearSearchCV._parameter_constraints,
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "multi_class": [StrOptions({"ovr", "crammer_singer"})],
        "class_weight": [None, dict, StrOptions({"balanced"})],
        "calibration": [StrOptions(set(METHODS))],
    }

    def __init__(
        self,
        *,
        Cs: Any = 10,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        l1_ratio: float = 0.5,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        penalize_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 1000,
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        calibration: str = "sigmoid",
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: Any = False,
    ) -> None:
        keep_parameters(self, locals())

    def _validate(self, X: Any, y: Any) -> tuple[Any, Vector]:
        X, y = validate_vectors(self, X, y, reset=True)
        self.classes_, codes = class_codes(y)
        return X, codes

    def _labels(self, y: Vector) -> Vector:
        return self.classes_[y]

    def _machine(self) -> LinearSVC:
        return LinearSVC(
            penalty=self.penalty, loss=self.loss, l1_ratio=self.l1_ratio, multi_class=self.multi_class,
            fit_intercept=self.fit_intercept, intercept_scaling=self.intercept_scaling,
            penalize_intercept=self.penalize_intercept, class_weight=self.class_weight, tol=self.tol,
            max_iter=self.max_iter, n_jobs=self.n_jobs,
        )  # fmt: skip

    def _held_out_model(self, values: Matrix) -> HeldOutOneVsRest:
        return HeldOutOneVsRest(self.classes_, values)

    def _columns(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _values(self, machine: Any, X: Any) -> Matrix:
        """Classes that are missing in the fold get a value below all others."""
        found = np.asarray(machine.decision_function(X)).reshape(num_samples(X), -1)
        if len(machine.classes_) == len(self.classes_):
            return found
        values = np.full((len(found), self._columns()), -np.inf)
        place = np.searchsorted(self.classes_, machine.classes_)
        values[:, place] = np.hstack([-found, found]) if found.shape[1] == 1 else found
        values[np.isneginf(values)] = found.min() - 1.0
        return values

    def _score(self, X: Any, y: Vector, weight: Vector, folds: list[tuple[Any, Any]]) -> Score:
        if self.scoring in (None, "accuracy"):
            return score_one_vs_rest(y, weight, folds)
        return score_models(self.scoring, self._held_out_model, X, self.classes_[y], weight, folds)

    def _learn(self, y: Vector, weight: Vector) -> None:
        self.C_ = self.best_params_["C"]
        self.class_weight_ = class_weights(self.class_weight, self.classes_, y, weight)
        self._learn_probabilities(y, weight * self.class_weight_[y])


class LinearSVRCV(IntervalMixin, RegressorMixin, LinearSearchCV):  # type: ignore[misc]
    """``LinearSVR`` that chooses C by cross-validation and learns prediction intervals.

    Parameters
    ----------
    Cs : int or array-like, default=10
        The values of C, or their number: then they range from 0.01 to 1000 times the standard deviation of y, divided
        by the mean squared norm of the samples.
    epsilon, loss, quantile, penalty, l1_ratio, fit_intercept, intercept_scaling, penalize_intercept, tol, max_iter :
        As in ``LinearSVR``.
    cv, scoring, refit, n_jobs, time_limit, verbose : as in ``SVRCV``.

    Attributes
    ----------
    best_estimator_ : LinearSVR
        The best machine, fitted to all samples, with its certificate.
    coef_, intercept_ : those of the best estimator.
    C_ : float
        The best C.
    best_params_, best_score_, cv_results_, cv_decision_function_, cv_fold_, certificate_, … : as in ``SVRCV``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import LinearSVRCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=100)
    >>> bool(LinearSVRCV(Cs=5).fit(X, y).best_score_ > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LinearSearchCV._parameter_constraints,
        **{name: LinearSVR._parameter_constraints[name] for name in ("epsilon", "loss", "quantile")},
    }

    def __init__(
        self,
        *,
        Cs: Any = 10,
        epsilon: float = 0.0,
        loss: str = "epsilon_insensitive",
        quantile: float = 0.5,
        penalty: str = "l2",
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        penalize_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: Any = False,
    ) -> None:
        keep_parameters(self, locals())

    def _validate(self, X: Any, y: Any) -> tuple[Any, Vector]:
        X, y = validate_vectors(self, X, y, reset=True)
        return X, real_targets(y)

    def _spread(self, y: Vector) -> float:
        return spread_of(y)

    def _machine(self) -> LinearSVR:
        return LinearSVR(
            epsilon=self.epsilon, loss=self.loss, quantile=self.quantile, penalty=self.penalty, l1_ratio=self.l1_ratio,
            fit_intercept=self.fit_intercept, intercept_scaling=self.intercept_scaling,
            penalize_intercept=self.penalize_intercept, tol=self.tol, max_iter=self.max_iter, n_jobs=self.n_jobs,
        )  # fmt: skip

    def _values(self, machine: Any, X: Any) -> Matrix:
        return np.asarray(machine.predict(X))[:, None]

    def _held_out_model(self, values: Matrix) -> HeldOutRegressor:
        return HeldOutRegressor(values)

    def _score(self, X: Any, y: Vector, weight: Vector, folds: list[tuple[Any, Any]]) -> Score:
        return regression_score(self.scoring, X, y, weight, folds)

    def _learn(self, y: Vector, weight: Vector) -> None:
        self.C_ = self.best_params_["C"]
        self._learn_intervals(y, weight)
