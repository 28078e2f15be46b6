"""Scores of held-out decision values, by scikit-learn's scorers or user-defined ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.metrics import check_scoring

from mercer._sklearn_compat import is_sklearn_scorer, ovr_decision_function
from mercer.estimators.prediction import votes
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix, Vector, take_samples

# turns the held-out values of a fold, one matrix per candidate, into scores
Score = Callable[[Matrix, int], Sequence[float]]
Splits = list[tuple[Any, Any]]

# scikit-learn's scorers without a highest score
UNBOUNDED = ("mutual_info_score", "neg_negative_likelihood_ratio", "positive_likelihood_ratio")


class HeldOutModel(BaseEstimator):  # type: ignore[misc]
    """Looks like a fitted estimator to scorers, but returns stored decision values of one set of held-out samples."""

    values: Matrix

    def fit(self, X: Any, y: Any = None) -> Any:
        """Do nothing."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _check(self, X: Any) -> Matrix:
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        if n != len(self.values):
            raise InvalidInputError(
                f"The scorer asks for predictions of {n} samples, but only those of the {len(self.values)} held-out "
                "samples are known. Use refit=True and score best_estimator_ instead."
            )
        return self.values


class HeldOutClassifier(ClassifierMixin, HeldOutModel):  # type: ignore[misc]
    """A one-vs-one classifier; values in LIBSVM's convention."""

    def __init__(self, classes: Any = None, shape: str = "ovr", break_ties: bool = False, values: Any = None) -> None:
        self.classes, self.shape, self.break_ties, self.values = classes, shape, break_ties, values

    @property
    def classes_(self) -> Vector:
        return self.classes

    def decision_function(self, X: Any) -> Matrix:
        values = self._check(X)
        if len(self.classes) == 2:
            return -values[:, 0]
        if self.shape == "ovr":
            return ovr_decision_function(values < 0, -values, len(self.classes))
        return values

    def predict(self, X: Any) -> Vector:
        return self.classes[predicted_codes(self._check(X), len(self.classes), self.break_ties)]


class HeldOutOneVsRest(ClassifierMixin, HeldOutModel):  # type: ignore[misc]
    """A one-vs-rest classifier: one value for two classes, else one for each class."""

    def __init__(self, classes: Any = None, values: Any = None) -> None:
        self.classes, self.values = classes, values

    @property
    def classes_(self) -> Vector:
        return self.classes

    def decision_function(self, X: Any) -> Matrix:
        values = self._check(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> Vector:
        return self.classes[rest_codes(self._check(X))]


class HeldOutRegressor(RegressorMixin, HeldOutModel):  # type: ignore[misc]
    """A regressor."""

    def __init__(self, values: Any = None) -> None:
        self.values = values

    def predict(self, X: Any) -> Vector:
        return self._check(X)[:, 0]


class HeldOutDetector(OutlierMixin, HeldOutModel):  # type: ignore[misc]
    """A novelty detector."""

    def __init__(self, values: Any = None) -> None:
        self.values = values

    def decision_function(self, X: Any) -> Vector:
        return self._check(X)[:, 0]

    def predict(self, X: Any) -> Vector:
        return np.where(self._check(X)[:, 0] >= 0, 1, -1)


def predicted_codes(values: Matrix, n_classes: int, break_ties: bool = False) -> Vector:
    """The class index of each row of pairwise values: by votes, or with ``break_ties`` by summed confidences."""
    if n_classes == 2:
        return (values[:, 0] <= 0).astype(np.intp)
    if break_ties:
        return np.argmax(ovr_decision_function(values < 0, -values, n_classes), axis=1)
    return votes(values, n_classes).argmax(axis=1)


def rest_codes(values: Matrix) -> Vector:
    """The class index of each row of one-vs-rest values (a single column for two classes)."""
    return (values[:, 0] > 0).astype(np.intp) if values.shape[1] == 1 else values.argmax(axis=1)


def accuracy(predicted: Vector, codes: Vector, weight: Vector) -> float:
    """The weighted accuracy; NaN if the total weight is 0."""
    total = weight.sum()
    return float(weight @ (predicted == codes) / total) if total > 0 else np.nan


def determination(predicted: Vector, y: Vector, weight: Vector) -> float:
    """The weighted R²; NaN for fewer than two samples, as in scikit-learn."""
    if np.count_nonzero(weight) < 2:
        return np.nan
    left = float(weight @ (y - predicted) ** 2)
    total = float(weight @ (y - weight @ y / weight.sum()) ** 2)
    if total == 0:
        return 1.0 if left == 0 else 0.0
    return 1.0 - left / total


def highest_score(scoring: Any) -> float:
    """The score of perfect predictions; inf if unknown."""
    if scoring is None:
        return 1.0  # accuracy or R²
    if not isinstance(scoring, str) or scoring in UNBOUNDED:
        return np.inf
    return 0.0 if scoring.startswith("neg_") else 1.0


def scorer_of(witness: HeldOutModel, scoring: Any) -> Callable[..., float]:
    """A function score(estimator, X, y, weight) for the name of a scorer or a scoring function."""
    scorer = check_scoring(witness, scoring=scoring)
    weighs = is_sklearn_scorer(scorer)

    def score(estimator: HeldOutModel, X: Any, y: Vector, weight: Vector) -> float:
        try:
            if weighs and not np.all(weight == 1.0):
                return float(scorer(estimator, X, y, sample_weight=weight))
            return float(scorer(estimator, X, y))
        except AttributeError as error:
            if "predict_proba" in str(error):
                raise InvalidInputError(
                    f"scoring={scoring!r} needs probabilities, which are learnt only after the best parameters are "
                    "known. Use a scorer of labels or decision values, such as 'accuracy', 'roc_auc' or 'f1_macro'."
                ) from error
            raise

    return score


def score_models(
    scoring: Any, model: Callable[[Matrix], HeldOutModel], X: Any, y: Vector, weight: Vector, folds: Splits
) -> Score:
    """Scores by a scorer of ``model(values)``; NaN for candidates without values."""
    score = scorer_of(model(np.empty((0, 1))), scoring)

    def of_fold(values: Matrix, f: int) -> list[float]:
        test = folds[f][1]
        held, targets = take_samples(X, test), y[test]
        return [np.nan if np.isnan(part).any() else score(model(part), held, targets, weight[test]) for part in values]

    return of_fold


def score_one_vs_rest(codes: Vector, weight: Vector, folds: Splits) -> Score:
    """Accuracies of one-vs-rest values; NaN for candidates without values."""

    def of_fold(values: Matrix, f: int) -> list[float]:
        test = folds[f][1]
        return [
            np.nan if np.isnan(part).any() else accuracy(rest_codes(part), codes[test], weight[test]) for part in values
        ]

    return of_fold
