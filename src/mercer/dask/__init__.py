"""Machines over dask arrays, dask frames and lists of delayed parts, on the workers of a cluster.

The classes have the parameters of mercer's local classes, and ``client``. The rows stay with the workers; each step of
a fit exchanges vectors and a matrix over the columns. `mercer.parts` has the methods. Kernel machines are restricted to
landmarks, and exchange vectors and a matrix over them (`mercer.landmarks.over_parts`); or they are exact, and exchange
the samples that move (`mercer.parts.kernel_solver`). Searches and `evaluate` hold out whole parts.
"""

try:
    import dask.array  # noqa: F401
    import distributed  # noqa: F401
except ImportError:
    from mercer.exceptions import MissingExtraError

    raise MissingExtraError("mercer.dask", package="dask and distributed", extra="dask") from None

from mercer.dask.dask_evaluation import evaluate
from mercer.dask.dask_kernel_ridge import KernelRidge
from mercer.dask.dask_linear_svc import LinearSVC
from mercer.dask.dask_linear_svr import LinearSVR
from mercer.dask.dask_one_class import OneClassSVM
from mercer.dask.dask_pegasos import PegasosClassifier
from mercer.dask.dask_searches import SVCCV, LinearSVCCV
from mercer.dask.dask_svc import SVC
from mercer.dask.dask_svr import SVR

__all__ = [
    "SVC",
    "SVCCV",
    "SVR",
    "KernelRidge",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "OneClassSVM",
    "PegasosClassifier",
    "evaluate",
]
