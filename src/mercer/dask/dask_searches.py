"""Searches over machines on the workers of a cluster, with parts as folds."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

import mercer.selection.linear_cv as linear
import mercer.selection.svc_cv as kernels
from mercer._sklearn_compat import fit_context
from mercer.dask.dask_linear_svc import LinearSVC
from mercer.dask.dask_svc import SVC
from mercer.dask.machine import OnCluster
from mercer.dask.part_folds import PartFolds, score_parts
from mercer.estimators.base import keep_parameters, show_log
from mercer.exceptions import InvalidInputError
from mercer.kernels import Linear
from mercer.problems.clock import Clock
from mercer.selection.search.candidates import Progress, Table
from mercer.selection.search.grids import C_range, values_of
from mercer.selection.search.search_cv import SearchCV


class Absent:
    """A method of the local class that needs the held-out values of all rows in one place."""

    def __set_name__(self, owner: Any, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        raise AttributeError(
            f"{self.name} is not available for rows on several computers: the held-out values stay with their workers. "
            f"Use mercer.{type(instance).__name__} on one of them."
        )


class DaskSearchCV(OnCluster, SearchCV):
    """A search whose folds are parts. Candidates are tried one after the other, each by all workers."""

    predict_proba, predict_log_proba, predict_proba_interval = Absent(), Absent(), Absent()
    predict_set, conformal_p_values, conformalize = Absent(), Absent(), Absent()

    @abstractmethod
    def _candidates(self, sample: Any) -> list[dict[str, Any]]:
        """The parameters of all candidates, in order of C; ``sample`` are some rows."""

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:  # type: ignore[override]
        """Choose the best parameters by cross-validation over parts and fit to all rows.

        Parameters
        ----------
        X : dask array, dask frame or list of delayed parts
            Training samples. Rows should be in no particular order: part i belongs to fold i mod cv.
        y : a collection of the same parts
            Class labels.
        sample_weight : a collection of the same parts, default=None
            Factors of C, one per sample, and weights in the scores.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_supported()
        if self.verbose:
            show_log()
        client = self._find_client()
        folds = PartFolds.of(client, X, y, sample_weight, self.cv)
        with Clock(self.time_limit) as clock:
            table = Table(folds.n_folds)
            for params in self._candidates(folds.sample()):
                table.new(params)
            with clock.ends_inner_fits(limit=True):
                self._try_all(folds, table, clock)
            self.n_splits_, self.cv_results_ = folds.n_folds, table.results()
            self._choose(table, clock)
        for name, value in self.best_params_.items():
            setattr(self, f"{name}_", value)
        if self.refit:
            self._refit(folds.columns.X, folds.columns.y, folds.columns.weight)
            for name in ("classes_", "n_features_in_", "feature_names_in_"):
                if hasattr(self.best_estimator_, name):
                    setattr(self, name, getattr(self.best_estimator_, name))
        return self

    def _try_all(self, folds: PartFolds, table: Table, clock: Clock) -> None:
        """Try all candidates in all folds; edits the table. The machine of a fold starts from its last model."""
        progress: Progress = self._progress(table)
        machines = [self._machine() for _ in range(folds.n_folds)]
        for machine in machines:
            machine._last_models = []
        for candidate in table.candidates:
            for f, machine in enumerate(machines):
                if clock.over() is not None:
                    return
                started, model = time.perf_counter(), None
                try:
                    model = machine.set_params(**candidate.params).fit(*folds.others(f)).to_local()
                except InvalidInputError as error:
                    if "only one class" not in str(error):
                        raise
                if clock.over() is not None:
                    return  # this fit was cut short
                middle = time.perf_counter()
                if model is not None:
                    found = score_parts(folds.client, model, folds.held_out(f), self.scoring)
                    candidate.scores[f] = found.value
                candidate.score_seconds[f] = time.perf_counter() - middle
                candidate.fit_seconds[f] = middle - started
                progress.step()
            table.consider(candidate, [])


class LinearSVCCV(DaskSearchCV, linear.LinearSVCCV):
    """``mercer.dask.LinearSVC`` that chooses C by cross-validation with parts as folds.

    The machine of a fold at a value of C starts from its solution at the previous value.

    Parameters
    ----------
    Cs, penalty, loss, l1_ratio, multi_class, fit_intercept, intercept_scaling, penalize_intercept, class_weight, tol, \
max_iter, scoring, refit, calibration, n_jobs, time_limit, verbose : as in ``mercer.LinearSVCCV``.
        ``calibration`` is not used: probabilities need the held-out values of all rows in one place. A ``scoring``
        other than "accuracy" brings the predictions of the held-out rows to the client.
    cv : int, default=5
        The number of folds: part i of X belongs to fold i mod cv.
    client : distributed.Client or None, default=None
        The client of the cluster; None for the one that was made last. It is not pickled with the model.

    Attributes
    ----------
    best_estimator_ : mercer.dask.LinearSVC
        The best machine, fitted to all rows.
    best_params_, best_score_, best_index_, cv_results_, n_splits_, refit_time_, C_, coef_, intercept_, certificate_, \
classes_, n_features_in_, feature_names_in_ : as in ``mercer.LinearSVCCV``.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **linear.LinearSVCCV._parameter_constraints,
        "client": "no_validation",
    }
    _available: ClassVar[dict[str, Any]] = {"penalty": "l2", "multi_class": "ovr"}

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
        client: Any = None,
    ) -> None:
        keep_parameters(self, locals())

    def _machine(self) -> LinearSVC:
        return LinearSVC(
            loss=self.loss, fit_intercept=self.fit_intercept, intercept_scaling=self.intercept_scaling,
            penalize_intercept=self.penalize_intercept, class_weight=self.class_weight, tol=self.tol,
            max_iter=self.max_iter, client=self.client,
        )  # fmt: skip

    def _candidates(self, sample: Any) -> list[dict[str, Any]]:
        return [{"C": C} for C in values_of("Cs", self.Cs, C_range([Linear()], sample))]


class SVCCV(DaskSearchCV, kernels.SVCCV):
    """``mercer.dask.SVC`` that chooses C and the kernel's parameters by cross-validation with parts as folds.

    Parameters
    ----------
    kernel, Cs, gammas, kernel_grid, degree, coef0, loss, class_weight, scoring, search, prune, refit, calibration, \
tol, cache_size, decision_function_shape, break_ties, fit_intercept, n_jobs, time_limit, verbose, precision : as in \
``mercer.SVCCV``.
        Only search="grid", prune=None and one kernel on vectors are available. ``calibration`` and ``cache_size`` are
        not used. A ``scoring`` other than "accuracy" brings the predictions of the held-out rows to the client.
    cv : int, default=5
        The number of folds: part i of X belongs to fold i mod cv.
    landmarks, landmark_tol, max_landmarks : as in ``mercer.dask.SVC``, for every machine.
    client : distributed.Client or None, default=None
        The client of the cluster; None for the one that was made last. It is not pickled with the model.

    Attributes
    ----------
    best_estimator_ : mercer.dask.SVC
        The best machine, fitted to all rows.
    best_params_, best_score_, best_index_, cv_results_, n_splits_, refit_time_, C_, gamma_, certificate_, classes_, \
n_features_in_, feature_names_in_ : as in ``mercer.SVCCV``.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from mercer.dask import SVCCV
    >>> client = Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0")
    >>> X = da.random.default_rng(0).normal(size=(600, 2), chunks=(200, 2))
    >>> model = SVCCV(Cs=[0.1, 10.0], gammas=[0.5], cv=3).fit(X, X[:, 0] * X[:, 1] > 0)
    >>> model.best_params_
    {'C': 10.0, 'gamma': 0.5}
    >>> client.close()
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **kernels.SVCCV._parameter_constraints,
        **{name: SVC._parameter_constraints[name] for name in ("landmarks", "landmark_tol", "max_landmarks")},
        "client": "no_validation",
    }
    _available: ClassVar[dict[str, Any]] = {"search": "grid", "prune": None}

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        Cs: Any = 8,
        gammas: Any = 8,
        kernel_grid: Any = None,
        degree: int = 3,
        coef0: float = 0.0,
        loss: str = "hinge",
        class_weight: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        search: str = "grid",
        prune: str | None = None,
        refit: bool = True,
        calibration: str = "sigmoid",
        tol: float = 1e-3,
        cache_size: Any = "auto",
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: Any = False,
        precision: str = "auto",
        landmarks: Any = "auto",
        landmark_tol: float = 1e-2,
        max_landmarks: int = 2000,
        client: Any = None,
    ) -> None:
        keep_parameters(self, locals())

    def _machine(self) -> Any:
        return SVC(
            kernel=self.kernel, degree=self.degree, coef0=self.coef0, loss=self.loss, class_weight=self.class_weight,
            tol=self.tol, decision_function_shape=self.decision_function_shape, break_ties=self.break_ties,
            fit_intercept=self.fit_intercept, precision=self.precision, landmarks=self.landmarks,
            landmark_tol=self.landmark_tol, max_landmarks=self.max_landmarks, client=self.client,
        )  # fmt: skip

    def _candidates(self, sample: Any) -> list[dict[str, Any]]:
        if len(self._given_kernels()) != 1 or self._domain() != "vectors":
            raise InvalidInputError(
                f"kernel={self.kernel!r} is not available for rows on several computers: give one kernel on vectors."
            )
        choices = self._kernels(sample)
        settings = self._settings(sample, np.empty(0), choices)
        return [{**setting.params, **choice.params} for setting in settings for choice in choices]
