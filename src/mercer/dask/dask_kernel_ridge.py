"""Kernel ridge regression of dask collections, by landmarks."""

from __future__ import annotations

from typing import Any, ClassVar

import mercer.estimators.kernel_ridge as local
from mercer.dask.dask_landmarks import DaskLandmarkMachine
from mercer.estimators.base import keep_parameters
from mercer.exceptions import InvalidInputError


class KernelRidge(DaskLandmarkMachine, local.KernelRidge):
    """Kernel ridge regression of rows on the workers of a cluster, certified for the exact machine of all rows.

    A machine in the span of landmarks, as `mercer.KernelRidge` with ``landmarks``, for one target; see
    `mercer.dask.SVC`.

    Parameters
    ----------
    alpha, kernel, gamma, degree, coef0, kernel_params, fit_intercept, solver, tol, max_iter, cache_size, precision, \
n_jobs, time_limit, verbose, landmark_tol, max_landmarks, polish : as in ``mercer.KernelRidge``.
        ``alpha`` is a positive number. Only kernels on vectors, solver="auto" and polish=False are available.
    landmarks : "auto", int or samples, default="auto"
        As in ``mercer.SVC``. None, the exact machine, is not available.
    checkpoint : path or None, default=None
        A file in which the client keeps the state of the fit: once a minute, when a problem is solved, and if the
        cluster fails. The same call continues from it.
    client : distributed.Client or None, default=None
        The client of the cluster; None for the one that was made last. It is not pickled with the model.

    Attributes
    ----------
    X_fit_, dual_coef_, intercept_, certificate_, landmarks_, n_landmarks_, landmark_certificate_, growth_, \
rkhs_norm_, function_, trace_, n_iter_, n_features_in_, feature_names_in_ : as in ``mercer.KernelRidge``.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from mercer.dask import KernelRidge
    >>> client = Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0")
    >>> X = da.linspace(0, 6, 600, chunks=250)[:, None]
    >>> model = KernelRidge(alpha=0.1, kernel="rbf", gamma=1.0).fit(X, da.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.0]])[0] - 0.841) < 0.01)
    True
    >>> client.close()
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **local.KernelRidge._parameter_constraints,
        **DaskLandmarkMachine._parameter_constraints,
    }
    _local = local.KernelRidge

    def __init__(
        self,
        alpha: Any = 1,
        *,
        kernel: Any = "linear",
        gamma: Any = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        fit_intercept: bool = False,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = -1,
        cache_size: Any = "auto",
        precision: str = "auto",
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: Any = False,
        landmarks: Any = "auto",
        landmark_tol: float = 1e-2,
        max_landmarks: int = 2000,
        polish: bool = False,
        checkpoint: Any = None,
        client: Any = None,
    ) -> None:
        keep_parameters(self, locals())

    def _check_supported(self) -> None:
        if self.landmarks is None:
            raise InvalidInputError(
                "landmarks=None asks for the exact machine, which is not available for rows on several computers. Use "
                'landmarks="auto" with the landmark_tol that you need, or mercer.KernelRidge on one of them.'
            )
        super()._check_supported()
