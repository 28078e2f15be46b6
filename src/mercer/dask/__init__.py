"""Machines over dask arrays, dask frames and lists of delayed parts, on the workers of a cluster.

The classes have the parameters of mercer's local ones, and ``client``. The rows stay with the workers; each step of a
fit exchanges vectors and a matrix over the columns. `mercer.parts` has the methods.
"""

try:
    import dask.array  # noqa: F401
    import distributed  # noqa: F401
except ImportError:
    from mercer.exceptions import MissingExtraError

    raise MissingExtraError("mercer.dask", package="dask and distributed", extra="dask") from None

from mercer.dask.linear_svc import LinearSVC
from mercer.dask.linear_svr import LinearSVR

__all__ = ["LinearSVC", "LinearSVR"]
