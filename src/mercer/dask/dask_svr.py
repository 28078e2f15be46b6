"""Support vector regression of dask collections, by landmarks or exact."""

from __future__ import annotations

from typing import Any, ClassVar

import mercer.estimators.svr as local
from mercer.dask.dask_landmarks import DaskLandmarkMachine
from mercer.estimators.base import keep_parameters


class SVR(DaskLandmarkMachine, local.SVR):
    """ε-support vector regression of rows on the workers of a cluster, certified for the exact machine of all rows.

    A machine in the span of landmarks, as `mercer.SVR` with ``landmarks``; see `mercer.dask.SVC`.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol, C, epsilon, shrinking, cache_size, verbose, max_iter, loss, quantile, \
fit_intercept, n_jobs, time_limit, warm_start, precision, solver, rule, trace, landmark_tol, max_landmarks, polish : \
as in ``mercer.SVR``, with the limits of ``mercer.dask.SVC``.
    landmarks : "auto", int, samples or None, default="auto"
        As in ``mercer.SVC``. None is the exact machine.
    checkpoint : path or None, default=None
        A file in which the client keeps the state of the fit: once a minute, when a problem is solved, and if the
        cluster fails. The same call continues from it.
    client : distributed.Client or None, default=None
        The client of the cluster; None for the one that was made last. It is not pickled with the model.

    Attributes
    ----------
    support_ : ndarray
        The indices of the landmarks, or of the support vectors, among all rows, in the order of the parts.
    support_vectors_, dual_coef_, intercept_, certificate_, landmarks_, n_landmarks_, landmark_certificate_, growth_, \
rkhs_norm_, function_, trace_, n_iter_, n_features_in_, feature_names_in_ : as in ``mercer.SVR``.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from mercer.dask import SVR
    >>> client = Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0")
    >>> X = da.linspace(0, 6, 600, chunks=250)[:, None]
    >>> model = SVR(gamma=1.0).fit(X, da.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.0]])[0] - 0.841) < 0.15)
    True
    >>> client.close()
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **local.SVR._parameter_constraints,
        **DaskLandmarkMachine._parameter_constraints,
    }
    _local = local.SVR

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: Any = "auto",
        verbose: Any = False,
        max_iter: int = -1,
        loss: str = "epsilon_insensitive",
        quantile: float = 0.5,
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        precision: str = "auto",
        solver: str = "auto",
        rule: str = "random",
        trace: bool = False,
        landmarks: Any = "auto",
        landmark_tol: float = 1e-2,
        max_landmarks: int = 2000,
        polish: bool = False,
        checkpoint: Any = None,
        client: Any = None,
    ) -> None:
        keep_parameters(self, locals())
