"""How much memory kernel rows may take."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

MEGABYTE = 1 << 20
FALLBACK = 256 * MEGABYTE
# rows seldom come back once they have left the working set: more memory saves few evaluations, and touching new
# memory costs more than computing a row again
SHARE = 1 / 64
# but for values that take long to compute
COSTLY_SHARE = 1 / 8
AT_LEAST = 64 * MEGABYTE
REMEMBERED = 10.0


def _limits() -> list[int]:
    """Bytes available to this process by every account that can be read."""
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
    """``cache_size`` in megabytes, or "auto": a 64th of the memory that is available now, at least 64 MB.

    An eighth where values are costly.
    """
    if cache_size == "auto":
        share = COSTLY_SHARE if costly else SHARE
        return max(AT_LEAST, int(share * _available(int(time.monotonic() / REMEMBERED))))
    return int(float(cache_size) * MEGABYTE)


def available_bytes() -> int:
    """The memory that this process may still take."""
    return max(0, min(_limits(), default=int(FALLBACK / SHARE)))


@lru_cache(maxsize=1)
def _available(period: int) -> int:
    """The memory, looked up once in a while: reading the accounts takes longer than a small fit."""
    return available_bytes()
