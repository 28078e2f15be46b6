"""Train a model on what was read from a file, and judge it on samples that had no part in it."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix, mean_absolute_error, r2_score, root_mean_squared_error
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import Pipeline

from mercer.exceptions import InvalidInputError
from mercer.io.tables import Samples
from mercer.kernels.features import Vector
from mercer.selection.evaluation import Evaluation, evaluate
from mercer.selection.linear_cv import LinearSVCCV
from mercer.selection.scoring import predicted_codes, rest_codes
from mercer.workflow.preparation import MACHINE, detect_task, pipeline_for, prepared

# up to this many rows the judgement repeats the whole search in each of five folds; beyond, in two random parts
NESTED_UP_TO = 3000
FOLDS, PARTS = 5, 2
TEST_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class Outcome:
    """A trained model and everything that a summary or a report says of it.

    Attributes
    ----------
    model : the fitted pipeline.
    samples : what it was fitted to.
    task : "classification" or "regression".
    evaluation : scores on samples that had no part in fit or search; None if it was not asked for.
    held_out : the prediction of each sample by the chosen machine of the fold that it was held out of; where there is
        one, see ``known``.
    known : which samples have such a prediction.
    seconds : of the search and the last fit, and of the evaluation.
    messages : warnings given on the way.
    """

    model: Pipeline
    samples: Samples
    task: str
    evaluation: Evaluation | None
    held_out: Vector
    known: Vector
    seconds: dict[str, float]
    messages: tuple[str, ...] = field(default=())

    @property
    def search(self) -> Any:
        """The last step, which has chosen the parameters."""
        return self.model.named_steps[MACHINE]

    @property
    def machine(self) -> Any:
        """The machine that was fitted with the chosen parameters."""
        return self.search.best_estimator_

    @property
    def prepared(self) -> Any:
        """The samples as the machine sees them."""
        return prepared(self.model, self.samples.X)

    @property
    def classes(self) -> list[Any]:
        """Labels in order."""
        return list(self.search.classes_.tolist())

    @property
    def confusion(self) -> Any:
        """Rows are true classes, columns predicted ones, of held-out samples."""
        y = np.asarray(self.samples.y)[self.known]
        if len(y) == 0:  # the search ended before any fold did
            return np.zeros((len(self.search.classes_),) * 2, dtype=np.int64)
        return confusion_matrix(y, self.held_out[self.known], labels=self.search.classes_)

    @property
    def errors(self) -> dict[str, float]:
        """Of a regression, on held-out samples."""
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
        """What a constant prediction scores: the share of the largest class; 0 for R²."""
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
    **search: Any,
) -> Outcome:
    """Prepare, search, fit and judge.

    Parameters
    ----------
    samples : Samples
        With targets.
    task : {"classification", "regression"}, default=None
        None to go by the targets.
    kernel, missing, search : as in ``pipeline_for``.
    judge : {"auto", "nested", "holdout", "none"}, default="auto"
        How the model is judged: the whole search repeated in five folds, in two random parts, or not at all. "auto" is
        "nested" up to 3000 rows.

    Returns
    -------
    outcome : Outcome
    """
    if samples.y is None:
        raise InvalidInputError("There is no target to learn. Name the column that holds it.")
    task = task or detect_task(samples.y)
    y = np.asarray(samples.y)
    if task == "regression":
        y = _numbers(y, samples.target)
    elif len(np.unique(y)) == 1:
        raise InvalidInputError(
            f"The target {samples.target!r} is {str(y[0])!r} in all {len(y)} rows: there is nothing to learn. Choose "
            "another column with --target."
        )
    elif len(np.unique(y)) == len(y):
        raise InvalidInputError(
            f"The target {samples.target!r} has a different value in each of the {len(y)} rows: no class can be "
            "learnt. Choose another column with --target."
        )
    began = time.perf_counter()
    cv = search.pop("cv", None) or inner_folds(y, task)
    model = pipeline_for(samples, task, kernel, missing, cv=cv, **search)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(samples.X, y)
        fitted = time.perf_counter()
        evaluation = None if judge == "none" else evaluate(model, samples.X, y, cv=_outer(len(y), y, task, judge))
    shown = (str(warning.message) for warning in caught if issubclass(warning.category, UserWarning))
    messages = tuple(dict.fromkeys(shown))
    held_out, known = _held_out(model.named_steps[MACHINE], task)
    seconds = {"fit": fitted - began, "judgement": time.perf_counter() - fitted}
    return Outcome(model, samples, task, evaluation, held_out, known, seconds, messages)


def _numbers(y: Vector, target: str) -> Vector:
    try:
        return y.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"The target {target!r} holds names such as {str(y[0])!r}: a regression needs numbers. "
            "Use --task classification."
        ) from None


def inner_folds(y: Vector, task: str) -> Any:
    """Five folds, fewer where a class has fewer samples; shuffled, as files are often sorted."""
    if task == "regression":
        # R² needs two samples in each
        return KFold(max(2, min(FOLDS, len(y) // 2)), shuffle=True, random_state=0)
    _, counts = np.unique(y, return_counts=True)
    if counts.min() < 2:
        return KFold(min(FOLDS, len(y)), shuffle=True, random_state=0)
    return StratifiedKFold(min(FOLDS, int(counts.min())), shuffle=True, random_state=0)


def _outer(n: int, y: Vector, task: str, judge: str) -> Any:
    if judge not in ("auto", "nested", "holdout"):
        raise InvalidInputError(f"Unknown way to judge {judge!r}: use auto, nested, holdout or none.")
    if judge == "nested" or (judge == "auto" and n <= NESTED_UP_TO):
        return inner_folds(y, task)
    if task == "regression":
        return ShuffleSplit(PARTS, test_size=TEST_SHARE, random_state=0)
    return StratifiedShuffleSplit(PARTS, test_size=TEST_SHARE, random_state=0)


def _held_out(search: Any, task: str) -> tuple[Vector, Vector]:
    """What the chosen machine predicts of samples that it was not fitted to, fold by fold."""
    values = np.asarray(search.cv_decision_function_)
    known = ~np.isnan(values).any(axis=1)
    if task == "regression":
        return values[:, 0], known
    codes = np.zeros(len(values), dtype=np.intp)
    by_rest = values.shape[1] == 1 or isinstance(search, LinearSVCCV)
    codes[known] = rest_codes(values[known]) if by_rest else predicted_codes(values[known], len(search.classes_))
    return search.classes_[codes], known
