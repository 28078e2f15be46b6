"""The exact one-class machine of dask collections."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

import dask
import mercer.estimators.one_class as local
from mercer.dask.collections import delayed_parts
from mercer.dask.dask_landmarks import DaskLandmarkMachine
from mercer.estimators.base import keep_parameters
from mercer.exceptions import InvalidInputError
from mercer.losses.base import Vector
from mercer.problems.clock import Clock


class OneClassSVM(DaskLandmarkMachine, local.OneClassSVM):
    """The support of a distribution, from rows on the workers of a cluster: the exact machine of all rows.

    See `mercer.OneClassSVM`. β and the decision values of a row stay with it; the worst violators of all parts come to
    the client, which solves their problem, and their changes go to all workers.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol, nu, shrinking, cache_size, verbose, max_iter, n_jobs, time_limit, warm_start, \
precision, solver, landmark_tol, max_landmarks, polish : as in ``mercer.OneClassSVM``.
        Only kernels on vectors, solver="auto", warm_start=False and polish=False are available.
    landmarks : None
        The exact machine: landmarks are not available.
    client : distributed.Client or None, default=None
        The client of the cluster; None for the one that was made last. It is not pickled with the model.

    Attributes
    ----------
    support_ : ndarray
        The numbers of the support vectors among all rows, in the order of the parts.
    support_vectors_, dual_coef_, intercept_, offset_, certificate_, rkhs_norm_, function_, trace_, n_iter_, \
n_features_in_, feature_names_in_ : as in ``mercer.OneClassSVM``.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from mercer.dask import OneClassSVM
    >>> client = Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0")
    >>> X = da.random.default_rng(0).normal(size=(1000, 2), chunks=(300, 2))
    >>> model = OneClassSVM(nu=0.1).fit(X)
    >>> round(float((model.predict(X) < 0).mean().compute()), 1)
    0.1
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
        landmarks: Any = None,
        landmark_tol: float = 1e-2,
        max_landmarks: int = 2000,
        polish: bool = False,
        client: Any = None,
    ) -> None:
        keep_parameters(self, locals())

    def _check_supported(self) -> None:
        super()._check_supported()
        if self.landmarks is not None:
            raise InvalidInputError(
                f"landmarks={self.landmarks!r} is not available for the one-class machine of rows on several "
                "computers: use landmarks=None, the exact machine."
            )

    def _fit(self, X: Any, y: Any, sample_weight: Any, clock: Clock) -> None:
        self._check_supported()
        ones = dask.delayed(_ones)
        parts = self._bring_parts(X, [ones(part) for part in delayed_parts("X", X)], sample_weight)
        self._fit_exact(parts, clock)

    def predict(self, X: Any) -> Any:
        """1 for inliers, -1 for outliers, computed lazily, part by part.

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
        """The decision value of each sample, computed lazily, part by part: positive inside the region.

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
        """The decision function without the offset, computed lazily, part by part.

        Parameters
        ----------
        X : dask array, dask frame or list of delayed parts
            The samples. Data in memory are evaluated at once.

        Returns
        -------
        scores : a collection of the same kind and parts
            The scores.
        """
        return self._predicted(X, local.OneClassSVM.score_samples, np.float64, 0)


def _ones(X: Any) -> Vector:
    """Targets, which the one-class machine does not use."""
    return np.ones(X.shape[0] if hasattr(X, "shape") else len(X))
