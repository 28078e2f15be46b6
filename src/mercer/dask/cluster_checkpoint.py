"""The checkpoint of a fit on a cluster. The client writes it, so that it outlives the workers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mercer.estimators.over_parts.rows_on_disk import stated
from mercer.exceptions import ClusterError
from mercer.kernels.features import Csr
from mercer.parts.layout import Part, Parts, keeps_state
from mercer.sources.checkpoint import Arrays, Checkpoint

# rows of a part that its text depends on; targets and weights count all
LOOKED_AT = 8


@keeps_state
def describe(part: Part) -> str:
    """A text that differs for other targets or weights of a part, and for other samples in a few of its rows."""
    X, y, weight = part.block()
    rows = np.unique(np.linspace(0, max(0, part.n - 1), LOOKED_AT).astype(np.intp))[: part.n]
    digest = hashlib.sha256(repr(X.shape).encode())
    for row in rows:
        some = X.span(row, row + 1) if isinstance(X, Csr) else X[row : row + 1]
        digest.update((some.toarray() if isinstance(some, Csr) else some).astype(np.float64).tobytes())
    for values in (y, weight):
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


@contextmanager
def open_checkpoint(
    machine: Any, parts: Parts, n_problems: int, check: Callable[[Arrays], Any]
) -> Iterator[Checkpoint | None]:
    """The checkpoint of this fit in the block, None without one. If the cluster fails in the block, it is written."""
    if machine.checkpoint is None:
        yield None
        return
    data = hashlib.sha256("".join(parts.map(describe)).encode()).hexdigest()
    checkpoint = Checkpoint(machine.checkpoint, {"data": data} | stated(machine), n_problems, check)
    try:
        yield checkpoint
    except ClusterError as error:
        checkpoint.write()
        raise ClusterError(f"{error} The checkpoint {checkpoint.path} has the state of this fit.") from error
