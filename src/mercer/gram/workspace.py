"""Large buffers that consecutive fits reuse, while the system may reclaim them in between.

Touching new memory costs more than the arithmetic that fills it: a page must be found, zeroed and mapped, and on a
virtual machine first be requested from the host. So a buffer that is returned stays mapped and is marked as free
(MADV_FREE): the system takes its pages if it needs them; else the next fit uses them again.
"""

from __future__ import annotations

import mmap
import threading
from contextlib import suppress
from typing import Any

import numpy as np

from mercer.kernels.features import Vector

HUGE_PAGE = 1 << 21
# buffers up to this size request huge pages. These are read faster, but on a virtual machine that has returned large
# pieces of memory to the host, touching them may take up to ten times as long as scattered small pages
HUGE_UP_TO = 1 << 28
# the largest number of buffers kept for reuse, and their total bytes
MOST_KEPT, MOST_BYTES = 8, 1 << 32

_CAN_LEND = all(hasattr(mmap, name) for name in ("MAP_PRIVATE", "MAP_ANONYMOUS", "MADV_FREE", "MADV_HUGEPAGE"))
_lock = threading.Lock()
_kept: list[mmap.mmap] = []


class Loan:
    """A one-dimensional array in a reused buffer, which is returned when the Loan is garbage collected.

    No view of the array may outlive the Loan: the next borrower would overwrite it.
    """

    def __init__(self, entries: int, dtype: np.dtype[Any]) -> None:
        self._memory: mmap.mmap | None = None
        size = entries * dtype.itemsize
        if not _CAN_LEND or size < HUGE_PAGE:
            self.array: Vector = np.empty(entries, dtype)
            return
        self._memory = _borrow(size)
        self.array = np.frombuffer(self._memory, dtype, count=entries)

    def __del__(self) -> None:
        memory, self._memory = getattr(self, "_memory", None), None
        if memory is not None:
            _give_back(memory)


def _borrow(size: int) -> mmap.mmap:
    """The smallest kept buffer that is large enough; a new one if there is none."""
    with _lock:
        fitting = [memory for memory in _kept if len(memory) >= size]
        if fitting:
            best = min(fitting, key=len)
            _kept.remove(best)
            return best
    memory = mmap.mmap(-1, -(-size // HUGE_PAGE) * HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if size <= HUGE_UP_TO:
        _advise(memory, mmap.MADV_HUGEPAGE)
    return memory


def _give_back(memory: mmap.mmap) -> None:
    """Keep a buffer for reuse. The smallest ones are freed if there are too many."""
    _advise(memory, mmap.MADV_FREE)
    with _lock:
        _kept.append(memory)
        _kept.sort(key=len)
        while len(_kept) > MOST_KEPT or sum(len(kept) for kept in _kept) > MOST_BYTES:
            _kept.pop(0)


def _advise(memory: mmap.mmap, advice: int) -> None:
    with suppress(OSError):  # an operating system without this advice is only slower
        memory.madvise(advice)
