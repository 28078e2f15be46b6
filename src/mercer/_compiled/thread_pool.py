"""A small pool of threads for compiled functions, which release the interpreter's lock.

numba's own parallel loops abort the process when two threads enter them; these do not. For loops of less than a
millisecond there is `team`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

# parts of a job for each thread, so that a core that is slower, or busy, gets fewer of them
SHARES_PER_THREAD = 4

# about how many nanoseconds a kernel value takes, and each term of the sum behind it
VALUE, TERM = 0.6, 0.03

# what belongs to the thread that asks: its team
local = threading.local()
_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}


def has_team() -> bool:
    """Whether this thread shares its loops with a team (see team): then all that is around them is its own work."""
    return getattr(local, "team", None) is not None


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def pool(n_threads: int) -> ThreadPoolExecutor:
    """The pool of this size; one for each process, since threads do not survive a fork."""
    key = (os.getpid(), n_threads)
    if key not in _pools:
        _pools[key] = ThreadPoolExecutor(n_threads, thread_name_prefix="mercer")
    return _pools[key]


def run_shares(function: Callable[[int, int], Any], n: int, n_threads: int, align: int = 1) -> None:
    """function(start, stop) over consecutive parts of range(n), several a thread: the quicker thread takes more."""
    if n_threads <= 1 or n <= align or has_team():
        if n > 0:
            function(0, n)
        return
    size = -(-n // (SHARES_PER_THREAD * n_threads))
    size = max(1, -(-size // align) * align)
    starts = range(0, n, size)
    run_tasks(lambda task: function(starts[task], min(starts[task] + size, n)), len(starts), n_threads)


def run_tasks(function: Callable[[int], Any], n: int, n_threads: int) -> None:
    """function(0), ..., function(n - 1), each thread taking the next one that is free."""
    if n_threads <= 1 or n <= 1 or has_team():
        for task in range(n):
            function(task)
        return
    todo = iter(range(n))
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                task = next(todo, None)
            if task is None:
                return
            function(task)

    futures = [pool(n_threads - 1).submit(work) for _ in range(min(n_threads, n) - 1)]
    work()
    for future in futures:
        future.result()


def price(values: float, terms: float) -> float:
    """About how many nanoseconds so many kernel values take, each a function of a sum of terms."""
    return values * (VALUE + TERM * terms)
