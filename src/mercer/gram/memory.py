"""How much memory kernel rows may take."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

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
        share = COSTLY_SHARE if costly else SHARE
        return max(AT_LEAST, int(share * _available(int(time.monotonic() / REMEMBERED))))
    return int(float(cache_size) * MEGABYTE)


def available_bytes() -> int:
    """The memory that this process can still allocate."""
    return max(0, min(_limits(), default=int(FALLBACK / SHARE)))


@lru_cache(maxsize=1)
def _available(period: int) -> int:
    """`available_bytes`, read once per period: reading it takes longer than a small fit."""
    return available_bytes()
