"""Scores of each class on held-out rows: each fold of the search is predicted by a machine fitted to the other folds.

The machines have the parameters that the search has chosen. Probabilities are cross-fitted: the calibration of a fold
is learnt from the decision values of the other folds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support, roc_auc_score

from mercer.kernels.features import Matrix, Vector
from mercer.selection.calibration.class_probabilities import calibrate, held_out
from mercer.workflow.training import Outcome


@dataclass(frozen=True)
class ClassScores:
    """Scores of one class against all others; NaN if a score is not defined.

    Attributes
    ----------
    label : the class.
    rows : number of held-out rows of the class.
    precision : the share of the rows predicted as this class that belong to it.
    recall : the share of the rows of this class that are predicted as such.
    f1 : the harmonic mean of both.
    auc : the area under the ROC curve of this class against all others.
    """

    label: Any
    rows: int
    precision: float
    recall: float
    f1: float
    auc: float


@dataclass(frozen=True, eq=False)
class HeldOutClasses:
    """Held-out predictions of a classifier.

    Attributes
    ----------
    classes : the labels.
    codes, predicted : the index of the true and of the predicted class of each row.
    scores : a column per class that ranks the rows: decision values for two classes, else probabilities.
    probabilities : a column per class; None if only one fold was completed.
    """

    classes: list[Any]
    codes: Vector
    predicted: Vector
    scores: Matrix
    probabilities: Matrix | None

    @property
    def confusion(self) -> Any:
        """The confusion matrix: a row per true class, a column per predicted class."""
        return confusion_matrix(self.codes, self.predicted, labels=np.arange(len(self.classes)))

    def by_class(self) -> list[ClassScores]:
        """Return the scores of each class."""
        numbers = np.arange(len(self.classes))
        found = precision_recall_fscore_support(self.codes, self.predicted, labels=numbers, zero_division=np.nan)
        return [
            ClassScores(label, int(rows), float(precision), float(recall), float(f1), self._auc(c))
            for c, (label, precision, recall, f1, rows) in enumerate(zip(self.classes, *found, strict=True))
        ]

    def _auc(self, c: int) -> float:
        own = self.codes == c
        return float(roc_auc_score(own, self.scores[:, c])) if 0 < own.sum() < len(own) else np.nan


def held_out_classes(outcome: Outcome) -> HeldOutClasses | None:
    """Return the held-out predictions of a classifier; None if the search ended before any fold was completed."""
    search = outcome.search
    values = np.asarray(search.cv_decision_function_)
    known = held_out(values)
    if not known.any():
        return None
    classes, values, fold = np.asarray(search.classes_), values[known], np.asarray(search.cv_fold_)[known]
    codes = np.searchsorted(classes, np.asarray(outcome.samples.y)[known])
    predicted = np.searchsorted(classes, np.asarray(outcome.held_out)[known])
    probabilities = _crossfitted(search, values, codes, predicted, fold)
    scores = probabilities if probabilities is not None and len(classes) > 2 else None
    if scores is None:
        scores = search._scheme.margins(values, len(classes))
    return HeldOutClasses(classes.tolist(), codes, predicted, scores, probabilities)


def _crossfitted(search: Any, values: Matrix, codes: Vector, predicted: Vector, fold: Vector) -> Matrix | None:
    """Return the probabilities of each row, calibrated on the other folds."""
    k = len(search.classes_)
    found = np.full((len(codes), k), np.nan)
    weight = search.class_weight_[codes]
    for f in np.unique(fold):
        own, others = fold == f, fold != f
        if not others.any():
            return None
        map_ = calibrate(values[others], codes[others], k, search.calibration, weight[others], search._scheme)
        found[own] = map_.probabilities(values[own], predicted[own])
    return found
