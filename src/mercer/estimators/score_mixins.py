"""Mixins of machines that predict labels or numbers: `predict` from decision values, `score` of rows on disk."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from mercer.kernels.features import Vector
from mercer.sources.row_source import scored_rows


class _ScoresRows:
    """A score that takes targets from rows on disk."""

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The score of scikit-learn: the accuracy of classes, R² of numbers.

        Parameters
        ----------
        X : samples, or rows of `mercer.open_rows`
            The samples to predict.
        y : array-like, default=None
            Their targets; None: those of the rows.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights; None: those of the rows, if they have some.

        Returns
        -------
        score : float
            1 if all predictions are right.
        """
        return float(super().score(X, *scored_rows(X, y, sample_weight)))  # type: ignore[misc]


class ClassScoreMixin(_ScoresRows, ClassifierMixin):  # type: ignore[misc]
    """scikit-learn's ClassifierMixin for rows on disk, too."""


class NumberScoreMixin(_ScoresRows, RegressorMixin):  # type: ignore[misc]
    """scikit-learn's RegressorMixin for rows on disk, too."""


class LabelsMixin(ClassScoreMixin):
    """Predicts the class with the largest decision value; of two classes the second if its value is positive."""

    def predict(self, X: Any) -> Vector:
        """The class label of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples_test, n_samples_train)
            The samples; for a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            The labels.
        """
        values = self.decision_function(X)
        return self.classes_[(values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)]


class NumbersMixin(NumberScoreMixin):
    """Predicts the value of the machine's only function."""

    def predict(self, X: Any) -> Vector:
        """The predicted value of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples_test, n_samples_train)
            The samples; for a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            The predictions.
        """
        return np.ravel(self._values(X))
