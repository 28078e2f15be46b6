"""Methods that detectors of a region share: decision values, scores, and labels of samples inside and outside."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin

from mercer.kernels.features import Vector


class RegionMixin(OutlierMixin):  # type: ignore[misc]
    """A detector whose region is where its decision function is at least 0."""

    offset_: Any

    @abstractmethod
    def _region_values(self, X: Any, labels_only: bool) -> Vector:
        """The decision values of samples; with ``labels_only`` only their signs need be right."""

    def decision_function(self, X: Any) -> Vector:
        """The decision value of each sample: positive inside the region, negative outside.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        dec : ndarray of shape (n_samples,)
            ``score_samples - offset_``.
        """
        return self._region_values(X, False)

    def score_samples(self, X: Any) -> Vector:
        """The decision function without the offset.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        score_samples : ndarray of shape (n_samples,)
            The scores.
        """
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> Vector:
        """1 for samples inside the region, its boundary included, -1 for those outside.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            The labels.
        """
        return np.where(self._region_values(X, True) >= 0, 1, -1).astype(np.intp)
