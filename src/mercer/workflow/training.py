"""Train a model on the samples of a file, and estimate its score on new samples."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import confusion_matrix, get_scorer_names, mean_absolute_error, r2_score, root_mean_squared_error
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import Pipeline

from mercer.exceptions import InvalidInputError
from mercer.io.tables import Samples
from mercer.kernels.features import Vector, take_samples
from mercer.selection.evaluation import Evaluation, evaluate_folds
from mercer.selection.linear_cv import LinearSearchCV, LinearSVCCV
from mercer.selection.search.scoring import predicted_codes, rest_codes
from mercer.selection.search.search_record import SearchRecord
from mercer.workflow.assessment import Assessment, by_evaluation, by_fresh_rows, by_search
from mercer.workflow.job import FIT, JUDGING, SEARCH, Job
from mercer.workflow.preparation import MACHINE, check_classes, detect_task, pipeline_for, prepared, why_linear

# the search of a kernel machine uses at most this many rows; the final fit uses all
SEARCH_ROWS = {"classification": 5000, "regression": 2500}
# folds of the search and of nested cross-validation; random splits of judge="holdout", and the share of test rows
FOLDS, PARTS, TEST_SHARE = 5, 2, 0.2
# the work of the final fit, in fits of the search, which share matrices and solutions
LAST_FIT = 8.0
JUDGES = ("auto", "search", "nested", "holdout", "none")


@dataclass(frozen=True, eq=False)
class Outcome:
    """A trained model, and everything that summaries and reports need.

    Attributes
    ----------
    model : the fitted pipeline.
    samples : the training samples.
    task : "classification" or "regression".
    evaluation : the estimated score on new samples; None if it was not asked for.
    held_out : the prediction of each sample by a machine with the chosen parameters that was fitted without it. Valid
        where ``known`` is true.
    known : a mask of the samples that have a held-out prediction.
    seconds : the times of the search, of the final fit and of the estimation of the score.
    search_rows : the number of rows that the search used.
    interrupted : whether Ctrl-C ended the search, the estimation of the score or the report early.
    messages : warnings, and notes on skipped work.
    rows_on_disk : the number of rows that the model was fitted to, if they were read from disk and ``samples`` are a
    part of them; else 0.
    """

    model: Pipeline
    samples: Samples
    task: str
    evaluation: Assessment | None
    held_out: Vector
    known: Vector
    seconds: dict[str, float]
    search_rows: int
    interrupted: bool = False
    messages: tuple[str, ...] = field(default=())
    rows_on_disk: int = 0

    @property
    def n(self) -> int:
        """The number of rows that the model was fitted to."""
        return self.rows_on_disk or len(self.samples)

    @property
    def search(self) -> Any:
        """The last step of the pipeline, which has searched the parameters."""
        return self.model.named_steps[MACHINE]

    @property
    def machine(self) -> Any:
        """The machine with the chosen parameters, fitted to all rows."""
        return self.search.best_estimator_

    @property
    def tried(self) -> int:
        """The number of candidates that the search has tried in all folds."""
        return int(np.isfinite(self.search.cv_results_["mean_test_score"]).sum())

    @property
    def prepared(self) -> Any:
        """The preprocessed samples."""
        return prepared(self.model, self.samples.X)

    @property
    def classes(self) -> list[Any]:
        """The labels, in order."""
        return list(self.search.classes_.tolist())

    @property
    def confusion(self) -> Any:
        """The confusion matrix of held-out samples: a row per true class, a column per predicted class."""
        y = np.asarray(self.samples.y)[self.known]
        if len(y) == 0:  # the search ended before any fold was completed
            return np.zeros((len(self.search.classes_),) * 2, dtype=np.int64)
        return confusion_matrix(y, self.held_out[self.known], labels=self.search.classes_)

    @property
    def errors(self) -> dict[str, float]:
        """The errors of a regression on held-out samples."""
        y, f = np.asarray(self.samples.y, dtype=np.float64)[self.known], self.held_out[self.known]
        if len(y) == 0:
            return {}
        return {
            "root mean squared error": float(root_mean_squared_error(y, f)),
            "mean absolute error": float(mean_absolute_error(y, f)),
            "R²": float(r2_score(y, f)),
        }

    @property
    def baseline(self) -> float:
        """The score of a constant prediction: the share of the largest class; 0 for R²."""
        if self.task == "regression":
            return 0.0
        _, counts = np.unique(np.asarray(self.samples.y), return_counts=True)
        return float(counts.max() / counts.sum())


def train(
    samples: Samples,
    *,
    task: str | None = None,
    kernel: Any = None,
    missing: str = "impute",
    judge: str = "auto",
    search_rows: int | None = None,
    job: Job | None = None,
    **search: Any,
) -> Outcome:
    """Preprocess, search the parameters, fit, and estimate the score on new samples.

    Parameters
    ----------
    samples : Samples
        With targets.
    task : {"classification", "regression"}, default=None
        None: inferred from the targets.
    kernel, missing, search : as in ``pipeline_for``.
    judge : {"auto", "search", "nested", "holdout", "none"}, default="auto"
        How to estimate the score. "search": by the held-out predictions of the search, corrected for the selection of
        the best candidate, without another fit. "nested": by nested cross-validation, preparation and search repeated
        in five folds. "holdout": the same in two random splits. "auto": "search" or, if the search used only some of
        the rows, one more fit without a part of the other rows, which are then predicted.
    search_rows : int or None, default=None
        The number of rows for the search of a kernel machine; None is 5000, or 2500 for regression. The final fit uses
        all rows.
    job : Job or None, default=None
        Shows progress and handles Ctrl-C; its context must have been entered. None: no progress is shown.

    Returns
    -------
    outcome : Outcome
    """
    if samples.y is None:
        raise InvalidInputError("The samples have no target: name the column to predict.")
    if judge not in JUDGES:
        raise InvalidInputError(f"judge={judge!r} was given: use {', '.join(JUDGES[:-1])} or {JUDGES[-1]}.")
    asked, task = task is not None, task or detect_task(samples.y)
    y = np.asarray(samples.y)
    if task == "regression":
        y = _numbers(y, samples.target)
    else:
        check_classes(samples, asked)
    with nullcontext(job) if job is not None else Job() as running:
        return _Training(samples, task, y, judge, running).run(kernel, missing, search_rows, search)


class _Training:
    """Runs the stages of ``train``."""

    def __init__(self, samples: Samples, task: str, y: Vector, judge: str, job: Job) -> None:
        self.samples, self.task, self.y, self.judge, self.job = samples, task, y, judge, job
        self.record = SearchRecord()
        self.seconds: dict[str, float] = {}

    def run(self, kernel: Any, missing: str, search_rows: int | None, search: dict[str, Any]) -> Outcome:
        samples, y, job = self.samples, self.y, self.job
        given_cv, self.automatic = search.pop("cv", None), kernel is None
        if search.get("scoring") is not None:
            check_scoring_name(search["scoring"])
        if isinstance(search.get("class_weight"), dict):
            search["class_weight"] = weights_of_classes(search["class_weight"], y)
        self.model = pipeline_for(samples, self.task, kernel, missing, cv=None, **search)
        self.search = self.model.named_steps[MACHINE]
        self.rows = self._search_rows(search_rows)
        self.search.set_params(cv=given_cv or inner_folds(y[self.rows], self.task))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self._choose(given_cv)
            with self._timed(FIT):
                self._fit_all()
            with self._timed(JUDGING):
                evaluation, held_out, known = self._judge()
        return Outcome(
            self.model, samples, self.task, evaluation, held_out, known, self.seconds, len(self.rows), job.interrupted,
            (*self._left_out(), *plain_messages(caught)),
        )  # fmt: skip

    @contextmanager
    def _timed(self, stage: str, detail: str = "") -> Iterator[None]:
        self.job.begin(stage, detail)
        started = time.perf_counter()
        yield
        self.seconds[stage] = time.perf_counter() - started

    def _search_rows(self, wanted: int | None) -> Vector:
        """Choose the rows for the search, stratified by class."""
        n = len(self.y)
        most = n if isinstance(self.search, LinearSearchCV) else wanted or SEARCH_ROWS[self.task]
        if n <= most:
            return np.arange(n)
        rows = np.random.default_rng(0).permutation(n)
        if self.task == "regression":
            return np.sort(rows[:most])
        _, codes = np.unique(self.y[rows], return_inverse=True)
        # equally spaced rows in the order of the classes, and at least two rows of each class
        by_class = rows[np.argsort(codes, kind="stable")]
        chosen = by_class[np.linspace(0, n - 1, most).astype(np.intp)]
        found = np.bincount(codes[np.isin(rows, chosen)], minlength=codes.max() + 1)
        rare = [rows[codes == k][:2] for k in np.flatnonzero(found < 2)]
        return np.unique(np.concatenate([chosen, *rare]))

    @property
    def _part(self) -> bool:
        return len(self.rows) < len(self.y)

    def _choose(self, given_cv: Any) -> None:
        """Preprocess all rows and search the parameters."""
        search, job = self.search, self.job
        search._on_step, search._record, search.refit = job.searched, self.record, False
        self._plan(given_cv)
        with (
            self._timed(SEARCH, f"{len(self.rows):,} of {len(self.y):,} rows" if self._part else ""),
            job.ends_inner_fits(),
        ):
            before = self.model[:-1] if len(self.model.steps) > 1 else None
            self.Z = self.samples.X if before is None else before.fit_transform(self.samples.X, self.y)
            try:
                search.fit(take_samples(self.Z, self.rows) if self._part else self.Z, self.y[self.rows])
            except ValueError as error:
                if search.scoring is None or isinstance(error, InvalidInputError):
                    raise
                raise InvalidInputError(
                    f"--scoring {search.scoring} does not fit the target {self.samples.target!r}: {error} For classes "
                    "use for example balanced_accuracy or f1_macro, for numbers r2 or neg_mean_absolute_error."
                ) from None
        search._on_step = search._record = None
        search.refit = True
        for name, empty in (("cv_decision_function_", np.nan), ("cv_fold_", -1)):
            setattr(search, name, self._at_all_rows(getattr(search, name), empty))

    def _plan(self, given_cv: Any) -> None:
        """Set the expected work of each stage, in fits of the search."""
        folds = given_cv if isinstance(given_cv, int) else FOLDS
        fits = 40.0 * folds
        one = LAST_FIT * (len(self.y) / len(self.rows)) ** 2
        judging = {
            "nested": FOLDS * (fits + one), "holdout": PARTS * (fits + one), "none": 0.0, "search": 2.0,
            "auto": one if self._part else 2.0,
        }[self.judge]  # fmt: skip
        self.job.plan(search=fits, final_fit=one, judging=judging)

    def _at_all_rows(self, values: Any, empty: float) -> Any:
        """Expand an array over the rows of the search to all rows."""
        if not self._part:
            return values
        out = np.full((len(self.y), *values.shape[1:]), empty, dtype=values.dtype)
        out[self.rows] = values
        return out

    def _fit_all(self) -> None:
        """Fit the chosen machine to all rows, even after an interrupt."""
        self.search._refit(self.Z, self.y)
        self.machine = self.search.best_estimator_

    # ---- the score on new rows -----------------------------------------------------------------------------------

    def _judge(self) -> tuple[Assessment | None, Vector, Vector]:
        """Return the assessment, the held-out predictions, and a mask of the rows that have one."""
        search, Z, y = self.search, self.Z, self.y
        held_out, known = held_out_predictions(search, self.task)
        if self.judge == "none" or not self.record.kept:
            return None, held_out, known
        if self.judge in ("nested", "holdout") and not self.job.interrupted:
            found = self._evaluate()
            if found is not None:
                parts = "folds" if self.judge == "nested" else "random splits"
                return by_evaluation(found, search, Z, y, parts), held_out, known
        if self.judge == "auto" and self._part and not self.job.interrupted:
            fresh = self._fresh()
            trial = search._machine().set_params(**search.best_params_)
            others = np.setdiff1d(np.arange(len(y)), fresh)
            with self.job.ends_inner_fits():
                trial.fit(take_samples(Z, others), y[others])
            if not self.job.interrupted:
                held_out[fresh] = trial.predict(take_samples(Z, fresh))
                known = np.isin(np.arange(len(y)), fresh)
                return by_fresh_rows(search, trial, fresh, Z, y), held_out, known
        return by_search(self.record, Z, y), held_out, known

    def _fresh(self) -> Vector:
        """Choose rows that the search did not use: a fifth of all rows, or fewer if there are not enough."""
        rest = np.setdiff1d(np.arange(len(self.y)), self.rows)
        most = max(1, min(len(rest), int(TEST_SHARE * len(self.y))))
        return np.sort(np.random.default_rng(1).permutation(rest)[:most])

    def _evaluate(self) -> Evaluation | None:
        """Repeat preparation and search in each part; None if that was interrupted."""
        cv = inner_folds(self.y, self.task) if self.judge == "nested" else _parts(self.task)
        try:
            with self.job.ends_inner_fits():
                found = evaluate_folds(
                    self.model, self.samples.X, self.y, cv, self.search.scoring, look=False, on_fold=self.job.advance
                )
        except KeyboardInterrupt:
            if self.job.second_press:
                raise
            return None
        return None if self.job.interrupted else found

    def _left_out(self) -> list[str]:
        """Return notes on skipped work, each with the option that asks for it."""
        found = []
        linear = why_linear(self.samples) if self.automatic and self.samples.kind != "strings" else ""
        if linear:
            found.append(
                f"The machine is linear because {linear}. A Gaussian kernel may be better, but takes longer: --kernel "
                "rbf."
            )
        if self._part:
            found.append(
                f"The parameters were searched on {len(self.rows):,} of the {len(self.y):,} rows; the model is fitted "
                f"to all rows. To search on more rows: --search-rows {len(self.y)}."
            )
        return found


def check_scoring_name(name: str) -> None:
    """Raise unless scikit-learn has a scorer with this name."""
    known = get_scorer_names()
    if name not in known:
        near = get_close_matches(name, known, 3) or ["accuracy", "balanced_accuracy", "f1_macro", "r2"]
        raise InvalidInputError(
            f"Unknown score {name!r} for --scoring: use the name of a scikit-learn scorer, such as {', '.join(near)}."
        )


def weights_of_classes(given: dict[str, float], y: Vector) -> dict[Any, float]:
    """Convert weights keyed by the text of a label to weights keyed by the label."""
    labels = {str(label): label for label in np.unique(y).tolist()}
    unknown = [name for name in given if name not in labels]
    if unknown:
        raise InvalidInputError(
            f"--class-weight names the class {unknown[0]!r}, but the classes are {', '.join(list(labels)[:10])}"
            + (" and others." if len(labels) > 10 else ".")
        )
    return {labels[name]: weight for name, weight in given.items()}


def plain_messages(caught: list[warnings.WarningMessage]) -> list[str]:
    """Return the warnings that a user of the command can act on, each once, worded for the command."""
    found: dict[str, None] = {}
    for warning in caught:
        text = str(warning.message)
        rare = re.search(r"least populated class in y has only (\d+) members?.*n_splits=(\d+)", text)
        if rare:
            text = (
                f"A class has only {rare[1]} of the rows, fewer than the {rare[2]} folds: some folds do not contain "
                "it. Add rows of this class, or use fewer --folds."
            )
        elif not issubclass(warning.category, UserWarning) or "sklearn" in Path(warning.filename).parts:
            continue  # a warning of a library about its use by mercer
        elif issubclass(warning.category, ConvergenceWarning):
            reached = text.partition("The model is ")[2]
            text = f"A fit ended before the optimum; it is {reached or 'of unknown quality.'}"
        found.setdefault(text)
    return list(found)


def _numbers(y: Vector, target: str) -> Vector:
    try:
        return y.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"The target {target!r} holds names such as {str(y[0])!r}, but regression needs numbers. Use --task "
            "classification."
        ) from None


def inner_folds(y: Vector, task: str) -> Any:
    """Return five folds, fewer if a class has fewer samples; shuffled, because files are often sorted."""
    if task == "regression":
        # R² needs two samples in each fold
        return KFold(max(2, min(FOLDS, len(y) // 2)), shuffle=True, random_state=0)
    _, counts = np.unique(y, return_counts=True)
    if counts.min() < 2:
        return KFold(min(FOLDS, len(y)), shuffle=True, random_state=0)
    return StratifiedKFold(min(FOLDS, int(counts.min())), shuffle=True, random_state=0)


def _parts(task: str) -> Any:
    """Return random splits, for judge="holdout"."""
    kind = ShuffleSplit if task == "regression" else StratifiedShuffleSplit
    return kind(PARTS, test_size=TEST_SHARE, random_state=0)


def held_out_predictions(search: Any, task: str) -> tuple[Vector, Vector]:
    """Return each fold's predictions by the chosen machine fitted to the other folds, and a mask of known ones."""
    values = np.asarray(search.cv_decision_function_)
    known = ~np.isnan(values).any(axis=1)
    if task == "regression":
        return values[:, 0].copy(), known
    codes = np.zeros(len(values), dtype=np.intp)
    by_rest = values.shape[1] == 1 or isinstance(search, LinearSVCCV)
    codes[known] = rest_codes(values[known]) if by_rest else predicted_codes(values[known], len(search.classes_))
    return search.classes_[codes], known
