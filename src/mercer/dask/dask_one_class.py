"""Novelty detection in dask collections."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

import dask
import mercer.estimators.one_class as local
from mercer.dask.cluster_parts import ClusterParts
from mercer.dask.collections import delayed_parts, is_collection
from mercer.dask.dask_landmarks import DaskLandmarkMachine
from mercer.estimators.base import keep_parameters


class OneClassSVM(DaskLandmarkMachine, local.OneClassSVM):
    """The region that contains most of the rows on the workers of a cluster, certified for the exact machine of them.

    A machine in the span of landmarks, as `mercer.OneClassSVM` with ``landmarks``; see `mercer.dask.SVC`.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol, nu, shrinking, cache_size, verbose, max_iter, n_jobs, time_limit, warm_start, \
precision, solver, landmark_tol, max_landmarks, polish : as in ``mercer.OneClassSVM``, with the limits of \
``mercer.dask.SVC``.
    landmarks : "auto", int, samples or None, default="auto"
        As in ``mercer.SVC``; None for the exact machine.
    checkpoint : path or None, default=None
        A file in which the client keeps the state of the fit: once a minute, when a problem is solved, and if the
        cluster fails. The same call continues from it.
    client : distributed.Client or None, default=None
        The client of the cluster; None for the one that was made last. It is not pickled with the model.

    Attributes
    ----------
    support_ : ndarray
        The indices of the landmarks, or of the support vectors, among all rows, in the order of the parts.
    support_vectors_, dual_coef_, intercept_, offset_, certificate_, landmarks_, n_landmarks_, landmark_certificate_, \
growth_, rkhs_norm_, function_, trace_, n_iter_, n_features_in_, feature_names_in_ : as in ``mercer.OneClassSVM``.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from mercer.dask import OneClassSVM
    >>> client = Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0")
    >>> X = da.random.default_rng(0).normal(size=(1000, 2), chunks=(300, 2))
    >>> model = OneClassSVM(nu=0.1).fit(X)
    >>> model.certificate_.relative_gap <= 0.01
    True
    >>> model.predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    >>> client.close()
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **local.OneClassSVM._parameter_constraints,
        **DaskLandmarkMachine._parameter_constraints,
    }
    _local = local.OneClassSVM

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        nu: float = 0.5,
        shrinking: bool = True,
        cache_size: Any = "auto",
        verbose: Any = False,
        max_iter: int = -1,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        precision: str = "auto",
        solver: str = "auto",
        landmarks: Any = "auto",
        landmark_tol: float = 1e-2,
        max_landmarks: int = 2000,
        polish: bool = False,
        checkpoint: Any = None,
        client: Any = None,
    ) -> None:
        keep_parameters(self, locals())

    def _bring_parts(self, X: Any, y: Any, sample_weight: Any) -> ClusterParts:
        """As for other machines, with targets of 1."""
        ones = [dask.delayed(_ones)(part) for part in delayed_parts("X", X)] if is_collection(X) else None
        return super()._bring_parts(X, ones, sample_weight)

    def predict(self, X: Any) -> Any:
        """1 for inliers, the boundary included, -1 for outliers, computed lazily, part by part.

        Parameters
        ----------
        X : dask array, dask frame or list of delayed parts
            The samples. Data in memory are predicted at once.

        Returns
        -------
        y_pred : a collection of the same kind and parts
            The labels.
        """
        return self._predicted(X, local.OneClassSVM.predict, np.intp, 0)

    def decision_function(self, X: Any) -> Any:
        """The decision value of each sample, computed lazily: positive inside the region, negative outside.

        Parameters
        ----------
        X : dask array, dask frame or list of delayed parts
            The samples. Data in memory are evaluated at once.

        Returns
        -------
        dec : a collection of the same kind and parts
            The values.
        """
        return self._predicted(X, local.OneClassSVM.decision_function, np.float64, 0)

    def score_samples(self, X: Any) -> Any:
        """The decision function without the offset, computed lazily.

        Parameters
        ----------
        X : dask array, dask frame or list of delayed parts
            The samples. Data in memory are evaluated at once.

        Returns
        -------
        score_samples : a collection of the same kind and parts
            The scores.
        """
        return self._predicted(X, local.OneClassSVM.score_samples, np.float64, 0)


def _ones(X: Any) -> Any:
    return np.ones(X.shape[0])
