"""The base class of all searches: cross-validate candidates, choose the best, refit."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from mercer._sklearn_compat import Interval, StrOptions, available_if, fit_context, num_samples
from mercer.estimators.base import show_log, warn_user
from mercer.estimators.inspection.notebook_line import NotebookLineMixin
from mercer.exceptions import InvalidInputError
from mercer.gram.memory import available_bytes, budget_bytes
from mercer.kernels.features import Matrix, Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import Options, Status
from mercer.selection.engine import HeldOut, SearchEngine, check_folds
from mercer.selection.search.candidates import (
    Candidate,
    KernelChoice,
    OnStep,
    Progress,
    SettingChoice,
    Table,
    middle_first,
)
from mercer.selection.search.scoring import HeldOutModel
from mercer.selection.search.search_record import SearchRecord
from mercer.validation import thread_count, validate_weights

# fraction of the available memory for all kernel matrices
MEMORY_SHARE = 0.5


def _is_refitted(self: Any) -> bool:
    if not self.refit:
        raise AttributeError(
            f"This {type(self).__name__} has refit=False, so it cannot predict. Fit a model with best_params_."
        )
    return True


class SearchCV(NotebookLineMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Choose parameters by cross-validation, then fit to all samples.

    ``fit`` runs top down: validate, make folds, try candidates, choose, refit, learn probabilities or intervals.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "cv": ["cv_object"],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "refit": ["boolean"],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "time_limit": [Interval(Real, 0, None, closed="left"), None],
        "verbose": ["verbose"],
    }

    # hooks for callers such as `mercer fit`: progress, and the held-out values of all candidates
    _on_step: OnStep | None = None
    _record: SearchRecord | None = None

    best_estimator_: Any
    refit: bool

    # ---- defined by subclasses -------------------------------------------------------------------------------

    @abstractmethod
    def _validate(self, X: Any, y: Any) -> tuple[Any, Vector]:
        """Samples and targets as arrays. Sets related attributes such as ``classes_``."""

    @abstractmethod
    def _search(self, X: Any, y: Vector, weight: Vector, folds: list[tuple[Any, Any]], clock: Clock) -> Table:
        """Try candidates until all are done or time is up."""

    @abstractmethod
    def _machine(self) -> Any:
        """The estimator to search over, with all parameters set that are not searched."""

    @abstractmethod
    def _held_out_model(self, values: Matrix) -> HeldOutModel:
        """An estimator that returns these held-out values as its decision values, for scorers."""

    def _learn(self, y: Vector, weight: Vector) -> None:
        """Learn probabilities or intervals from the held-out values of the best candidate."""

    # ---- fit -------------------------------------------------------------------------------------------------

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Any:
        """Choose the best parameters by cross-validation and fit to all samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training samples; the kernel matrix for ``kernel="precomputed"``; any objects for a kernel on objects.
        y : array-like of shape (n_samples,)
            Class labels or target values.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of C, one per sample, and weights in the scores.
        groups : array-like of shape (n_samples,), default=None
            Groups of samples for the splitter, which keeps them together.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if self.verbose:
            show_log()
        samples, targets = self._validate(X, y)
        n = num_samples(samples)
        weight = validate_weights(sample_weight, n, samples)
        folds = self._folds(samples, y, targets, groups)
        if self._record is not None:
            labels = self.classes_[targets] if hasattr(self, "classes_") else targets
            self._record.start(self, folds, labels)
        with ExitStack() as until_fitted:
            clock = until_fitted.enter_context(Clock(self.time_limit))
            with clock.ends_inner_fits(limit=True):
                table = self._search(samples, targets, weight, folds, clock)
            if not clock.interrupted:
                until_fitted.close()  # the last fit handles Ctrl-C itself; a second Ctrl-C ends everything
            self.n_splits_ = len(folds)
            self.cv_results_ = table.results()
            self._publish_choice(table, folds, n, clock)
            if self.refit:
                self._refit(X, y, sample_weight)
        self._learn(targets, weight)
        return self

    def _refit(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        """Fit the best candidate to all samples."""
        started = time.perf_counter()
        self.best_estimator_ = self._machine().set_params(**self.best_params_)
        with_weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.best_estimator_.fit(X, y, **with_weight)
        self.refit_time_ = time.perf_counter() - started

    def _folds(self, X: Any, y: Any, targets: Vector, groups: Any) -> list[tuple[Any, Any]]:
        n = num_samples(X)
        splits = 5 if self.cv is None else self.cv
        if isinstance(splits, Integral) and n < splits:
            raise InvalidInputError(
                f"cv={splits} folds need at least as many samples, but n_samples={n}. Give a smaller cv, or more "
                "samples."
            )
        splitter = check_cv(splits, None if y is None else targets, classifier=is_classifier(self))
        return check_folds(list(splitter.split(np.zeros(n), None if y is None else targets, groups)), n)

    def _options(self, cache_size: Any, precision: str) -> Options:
        budget = int(MEMORY_SHARE * available_bytes()) if cache_size == "auto" else budget_bytes(cache_size)
        return Options(tol=float(self.tol), budget=budget, n_threads=thread_count(self.n_jobs), precision=precision)

    def _choose(self, table: Table, clock: Clock) -> None:
        """Set the best candidate and its score; warn if the search was cut short."""
        missed = [c for c in table.candidates if not c.complete]
        failed = [c for c in table.candidates if c.complete and not np.isfinite(c.mean)]
        over = clock.over()
        best = table.best
        if best is None and not missed:
            raise InvalidInputError(
                f"None of the {len(table.candidates)} candidates has a score in every fold: a fold has a single class, "
                "or the score is not defined for so few samples. Use fewer folds, or another scoring."
            )
        if best is None and over is Status.INTERRUPTED:
            raise KeyboardInterrupt("The search was interrupted before any candidate was tried in all folds.")
        if best is None:
            best = table.candidates[len(table.candidates) // 2]
        if over is not None and (missed or table.n_tried < table.planned):
            why = "was interrupted" if over is Status.INTERRUPTED else f"ended after time_limit={self.time_limit} s"
            done, planned = table.n_tried, max(len(table.candidates), table.planned)
            chosen = "the best of these is used" if done else "an untried candidate from the middle is used"
            again = "; interrupt again to end without a model" if over is Status.INTERRUPTED and self.refit else ""
            warn_user(
                f"The search {why}: {done} of {planned} candidates were tried in all folds; {chosen}{again}.",
                UserWarning,
            )
        if failed and table.best is not None:
            warn_user(
                f"{len(failed)} of {len(table.candidates)} candidates have no score in some fold and are ignored, for "
                f"example {failed[0].params}.",
                FitFailedWarning,
            )
        self.best_index_ = best.number
        self.best_params_ = dict(best.params)
        self.best_score_ = best.mean

    def _publish_choice(self, table: Table, folds: list[tuple[Any, Any]], n: int, clock: Clock) -> None:
        """Set the best candidate, its score and its held-out values."""
        self._choose(table, clock)
        columns = table.best_values[0].shape[1] if table.best_values else self._columns()
        self.cv_fold_ = np.full(n, -1, np.intp)
        values = np.full((n, columns), np.nan)
        for f, (_, test) in reversed(list(enumerate(folds))):
            self.cv_fold_[test] = f
            if table.best_values:
                values[test] = table.best_values[f]
        self.cv_decision_function_ = self._as_decision(values)

    def _progress(self, table: Table) -> Progress:
        """The progress log of a search with this table; connects ``_record`` to the table."""
        if self._record is not None:
            table.record = self._record.keep
        return Progress(bool(self.verbose), table, self._on_step)

    def _columns(self) -> int:
        """The number of decision values per sample."""
        return 1

    def _as_decision(self, values: Matrix) -> Matrix:
        """Held-out values in the convention of ``cv_decision_function_``."""
        return values

    # ---- prediction ------------------------------------------------------------------------------------------

    @available_if(_is_refitted)
    def predict(self, X: Any) -> Vector:
        """Predict with the best machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            The labels or values.
        """
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @property
    def certificate_(self) -> Any:
        """How far the best machine is from its optimum."""
        check_is_fitted(self)
        return self.best_estimator_.certificate_


class DecisionMixin:
    """Adds ``decision_function`` of the best machine."""

    best_estimator_: Any

    @available_if(_is_refitted)
    def decision_function(self, X: Any) -> Matrix:
        """Decision values of the best machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_columns)
            As in the best machine.
        """
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X)


class GridTask:
    """Tries kernels × settings with an engine and fills the table; one object per search."""

    def __init__(
        self, engine: SearchEngine, table: Table, score: Any, folds: list[tuple[Any, Any]], progress: Progress
    ) -> None:
        self.engine, self.table, self.score, self.folds, self.progress = engine, table, score, folds, progress

    def run(self, kernels: Sequence[KernelChoice], settings: Sequence[SettingChoice]) -> list[Candidate]:
        """Try all combinations; settings vary slowest, which is GridSearchCV's order for C and gamma."""
        place = {
            (k, s): self.table.new({**setting.params, **kernel.params})
            for s, setting in enumerate(settings)
            for k, kernel in enumerate(kernels)
        }
        order = middle_first(len(kernels))
        # held-out values by (kernel, setting) and fold
        kept: dict[tuple[int, int], dict[int, Matrix]] = {key: {} for key in place}

        def report(found: HeldOut) -> None:
            k = order[found.kernel]
            started = time.perf_counter()
            scores = self.score(found.values, found.fold)
            seconds = (time.perf_counter() - started) / max(1, len(found.settings))
            with self.table.lock:
                for i, s in enumerate(found.settings):
                    candidate, parts = place[k, s], kept[k, s]
                    candidate.scores[found.fold] = scores[i]
                    candidate.score_seconds[found.fold] = seconds
                    candidate.fit_seconds[found.fold] = found.seconds
                    parts[found.fold] = found.values[i]
                    if len(parts) == len(self.folds):
                        self.table.consider(candidate, [parts[f] for f in range(len(self.folds))])
                        parts.clear()
            self.progress.step()

        best: list[Candidate | None] = [None]

        def survivors(number: int) -> list[int]:
            """The settings of a kernel that may still beat the best candidate of earlier batches of kernels."""
            k, prune = order[number], self.table.prune
            mine = [place[k, s] for s in range(len(settings))]
            if all(np.all(candidate.fit_seconds < 0) for candidate in mine):
                best[0] = self.table.best
            if best[0] is not None and prune is not None:
                hopeless = [one.given_up or prune.is_hopeless(one, best[0]) for one in mine]
                # each machine starts from the one before, so only the last settings can be dropped without effect
                last = max((s for s, gone in enumerate(hopeless) if not gone), default=-1)
                for s, candidate in enumerate(mine):
                    candidate.given_up = hopeless[s] and (s > last or prune.rule != "bound")
            return [s for s, candidate in enumerate(mine) if not candidate.given_up]

        self.engine.run(
            [kernels[k].kernel for k in order], [s.setting for s in settings], report,
            None if self.table.prune is None else survivors,
        )  # fmt: skip
        return list(place.values())
