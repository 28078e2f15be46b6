"""Searches over machines on the workers of a cluster, with parts as folds."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

import mercer.selection.linear_cv as linear
import mercer.selection.svc_cv as kernels
from mercer._sklearn_compat import available_if, fit_context
from mercer.dask.collections import predicted
from mercer.dask.dask_linear_svc import LinearSVC
from mercer.dask.dask_svc import SVC
from mercer.dask.machine import OnCluster
from mercer.dask.part_folds import HeldOutRows, PartFolds, held_out_rows, score_parts
from mercer.estimators.base import keep_parameters, show_log
from mercer.exceptions import InvalidInputError
from mercer.kernels import Linear
from mercer.problems.clock import Clock
from mercer.selection.search.candidates import Progress, Table
from mercer.selection.search.grids import C_range, values_of
from mercer.selection.search.search_cv import SearchCV, _is_refitted


class NeedsMemory:
    """A method of the local class whose results have no lazy form."""

    def __set_name__(self, owner: Any, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        raise AttributeError(
            f"{self.name} is not available lazily. Use to_local().{self.name}, for samples in memory, or predict_proba."
        )


class DaskSearchCV(OnCluster, SearchCV):
    """A search whose folds are parts. Candidates are tried one after the other, each by all workers."""

    # the ordinary class with the same parameters
    _local_class: ClassVar[type[Any]]
    _learn_probabilities: Callable[..., None]

    predict_proba_interval, predict_set = NeedsMemory(), NeedsMemory()
    conformal_p_values, conformalize = NeedsMemory(), NeedsMemory()

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
        self._fold_models: list[Any] = []
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
            self._learn_from_parts(folds)
        del self._fold_models
        return self

    def _learn_from_parts(self, folds: PartFolds) -> None:
        """Learn probabilities from the held-out rows of the best candidate."""
        self.class_weight_ = self.best_estimator_.class_weight_
        search = self._local_class()
        search.classes_ = self.classes_
        if self._fold_models:
            found = held_out_rows(folds, self._fold_models, search)
        else:  # the search has ended before a candidate was tried in all folds
            found = HeldOutRows(np.empty((0, search._columns())), np.empty(0, np.intp), np.empty(0))
        self.cv_decision_function_ = found.values
        self._learn_probabilities(found.codes, found.weight * self.class_weight_[found.codes])
        del self.cv_decision_function_

    def _try_all(self, folds: PartFolds, table: Table, clock: Clock) -> None:
        """Try all candidates in all folds; edits the table. The machine of a fold starts from its last model."""
        progress: Progress = self._progress(table)
        machines = [self._machine() for _ in range(folds.n_folds)]
        for machine in machines:
            machine._last_models = []
        for candidate in table.candidates:
            models: list[Any] = []
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
                models.append(model)
                middle = time.perf_counter()
                if model is not None:
                    found = score_parts(folds.client, model, folds.held_out(f), self.scoring)
                    candidate.scores[f] = found.value
                candidate.score_seconds[f] = time.perf_counter() - middle
                candidate.fit_seconds[f] = middle - started
                progress.step()
            table.consider(candidate, [])
            if table.best is candidate:
                self._fold_models = models

    @available_if(_is_refitted)
    def to_local(self) -> Any:
        """The ordinary mercer search with this result: it predicts arrays, saves and exports.

        Returns
        -------
        model : the search of the same name in mercer
            With the same parameters and fitted attributes; ``best_estimator_`` is an ordinary machine, too.
        """
        check_is_fitted(self)
        own, known = self.get_params(deep=False), self._local_class._get_param_names()
        model = self._local_class(**{name: value for name, value in own.items() if name in known})
        for name in set(vars(self)) - set(own):
            setattr(model, name, getattr(self, name))
        model.best_estimator_ = self.best_estimator_.to_local()
        return model

    @available_if(_is_refitted)
    def predict_proba(self, X: Any) -> Any:
        """Class probabilities, computed lazily, part by part; see ``predict_proba`` of the local class.

        Parameters
        ----------
        X : dask array, dask frame or list of delayed parts
            The samples. Data in memory are predicted at once.

        Returns
        -------
        T : a collection of the same kind and parts
            One column per class, in the order of ``classes_``.
        """
        return self._probabilities(X, self._local_class.predict_proba)

    @available_if(_is_refitted)
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of ``predict_proba``, computed lazily, part by part.

        Parameters
        ----------
        X : dask array, dask frame or list of delayed parts
            The samples. Data in memory are predicted at once.

        Returns
        -------
        T : a collection of the same kind and parts
            One column per class, in the order of ``classes_``.
        """
        return self._probabilities(X, self._local_class.predict_log_proba)

    def _probabilities(self, X: Any, function: Callable[..., Any]) -> Any:
        model = self.to_local()
        if model._calibration is None:
            raise InvalidInputError(
                "There are no probabilities, because no held-out row has decision values between all classes: the "
                "search ended before a candidate was tried in all folds, or every fold holds out all rows of a class. "
                "Raise time_limit, or spread the classes over the parts."
            )
        for name in ("_held_out", "_conformal"):  # not needed, and as large as the data
            delattr(model, name)
        return predicted(X, function, model, np.float64, len(self.classes_))


class LinearSVCCV(DaskSearchCV, linear.LinearSVCCV):
    """``mercer.dask.LinearSVC`` that chooses C by cross-validation with parts as folds.

    The machine of a fold at a value of C starts from its solution at the previous value.

    Parameters
    ----------
    Cs, penalty, loss, l1_ratio, multi_class, fit_intercept, intercept_scaling, penalize_intercept, class_weight, tol, \
max_iter, scoring, refit, calibration, n_jobs, time_limit, verbose : as in ``mercer.LinearSVCCV``.
        ``calibration`` learns from held-out decision values that come to the client, at most 16 MB of random rows. A
        ``scoring`` other than "accuracy" brings the predictions of all held-out rows to the client.
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
    _local_class = linear.LinearSVCCV
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
        Only search="grid", prune=None and one kernel on vectors are available. ``cache_size`` is not used.
        ``calibration`` learns from held-out decision values that come to the client, at most 16 MB of random rows. A
        ``scoring`` other than "accuracy" brings the predictions of all held-out rows to the client.
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
    _local_class = kernels.SVCCV
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
