"""How much memory kernel rows may take."""

from __future__ import annotations

import mmap
import os
import threading
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from mercer.kernels.features import Vector

MEGABYTE = 1 << 20
FALLBACK = 256 * MEGABYTE
# share of the available memory for kernel rows. Rows are seldom needed again after they have left the working set, so
# more memory would save few evaluations, and touching new memory costs more than computing a row again
SHARE = 1 / 64
# the same for values that take long to compute
COSTLY_SHARE = 1 / 8
AT_LEAST = 64 * MEGABYTE
# seconds after which the available memory is read again
REMEMBERED = 10.0


def _limits() -> list[int]:
    """The bytes available to this process, from every source that can be read: the system, and its cgroups."""
    found: list[int] = []
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) * 1024)
    for limit, usage in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        with suppress(OSError, ValueError):
            found.append(int(Path(limit).read_text()) - int(Path(usage).read_text()))
    if not found and hasattr(os, "sysconf"):
        with suppress(OSError, ValueError):
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)
    return found


def budget_bytes(cache_size: float | str, costly: bool = False) -> int:
    """``cache_size`` (megabytes) in bytes. "auto" is a 64th of the available memory, at least 64 MB.

    If kernel values are costly, "auto" is an eighth.
    """
    if cache_size == "auto":
        return automatic_bytes(_available(int(time.monotonic() / REMEMBERED)), costly)
    return int(float(cache_size) * MEGABYTE)


def automatic_bytes(available: int, costly: bool) -> int:
    """The bytes of ``cache_size="auto"`` if this many bytes are available."""
    return max(AT_LEAST, int((COSTLY_SHARE if costly else SHARE) * available))


def available_bytes() -> int:
    """The memory that this process can still allocate."""
    return smallest(_limits())


def smallest(limits: list[int]) -> int:
    """The smallest of the limits in bytes; a cautious number if there are none."""
    return max(0, min(limits, default=int(FALLBACK / SHARE)))


@lru_cache(maxsize=1)
def _available(period: int) -> int:
    """`available_bytes`, read once per period: reading it takes longer than a small fit."""
    return available_bytes()


HUGE_PAGE = 1 << 21
# buffers up to this size request huge pages. These are read faster, but on a virtual machine that has returned large
# pieces of memory to the host, touching them may take up to ten times as long as scattered small pages
HUGE_UP_TO = 1 << 28
# the largest number of buffers kept for reuse, and their total bytes
MOST_KEPT, MOST_BYTES = 8, 1 << 32

_CAN_LEND = all(hasattr(mmap, name) for name in ("MAP_PRIVATE", "MAP_ANONYMOUS", "MADV_FREE", "MADV_HUGEPAGE"))
# reentrant: within the lock Python may collect garbage, and a Loan among it gives its buffer back
_lock = threading.RLock()
_kept: list[mmap.mmap] = []


def _begin_child() -> None:
    """Another thread may hold the lock at a fork; it does not go on in the child."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)


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
        fitting = [memory for memory in tuple(_kept) if len(memory) >= size]
        best = min(fitting, key=len, default=None)
        if best is not None and best in _kept:  # it may have been freed meanwhile
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
        while len(_kept) > MOST_KEPT or sum(len(kept) for kept in tuple(_kept)) > MOST_BYTES:
            _kept.remove(min(tuple(_kept), key=len))


def _advise(memory: mmap.mmap, advice: int) -> None:
    with suppress(OSError):  # an operating system without this advice is only slower
        memory.madvise(advice)
