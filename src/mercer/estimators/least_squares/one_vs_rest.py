"""One class against the rest: targets ±1, decision values and labels of machines with a function for each class."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.estimators.score_mixins import LabelsMixin
from mercer.kernels.features import Matrix, Vector


class OneVsRestMixin(LabelsMixin):
    """Decision values of machines with one function for two classes, else one for each class."""

    def decision_function(self, X: Any) -> Matrix:
        """f(x) + b of each class against the rest.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples_test, n_samples_train)
            The samples; for a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive for ``classes_[1]``; with more classes the largest value is that of the predicted class.
        """
        values = self._values(X)
        return values[:, 0] if len(self.classes_) == 2 else values


def label_columns(codes: Vector, n_classes: int) -> Matrix:
    """±1 for each class against the rest, a column per class; one column, positive for the second, for two."""
    if n_classes == 2:
        return (2.0 * codes - 1.0)[:, None]
    return np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)


def predicted_codes(values: Matrix) -> Vector:
    """The index of the class that the decision values of `label_columns` give to each sample."""
    found: Vector = (values[:, 0] > 0).astype(np.intp) if values.shape[1] == 1 else values.argmax(axis=1)
    return found
