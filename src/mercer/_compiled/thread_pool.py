"""A pool of threads for compiled functions, which release the interpreter lock.

numba's own parallel loops abort the process if two threads enter them. Loops of less than a millisecond are shared by
`shared_loops` instead. Attributes that threads compute once are `cached_property`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Generic, TypeVar, overload

# parts of a loop for each thread: a slow or busy core takes fewer of them
SHARES_PER_THREAD = 4
# seconds between two looks at threads that Ctrl-C has cut off
PAUSE = 1e-3

# nanoseconds of a kernel value, and of each term of its sum over features
VALUE_NS, TERM_NS = 0.6, 0.03

Value = TypeVar("Value")
# of each thread: its spin pool
local = threading.local()
_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}


def current_spin_pool() -> Any:
    """The `SpinPool` with which this thread shares its loops, or None. A thread with one runs other tasks alone."""
    return getattr(local, "spin_pool", None)


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def pool(n_threads: int) -> ThreadPoolExecutor:
    """The pool with ``n_threads`` threads. Each process has its own, since threads do not survive a fork."""
    key = (os.getpid(), n_threads)
    if key not in _pools:
        _pools[key] = ThreadPoolExecutor(n_threads, thread_name_prefix="mercer")
    return _pools[key]


def run_shares(function: Callable[[int, int], Any], n: int, n_threads: int, align: int = 1) -> None:
    """Call function(start, stop) on consecutive parts of range(n), several for each thread."""
    if n_threads <= 1 or n <= align or current_spin_pool() is not None:
        if n > 0:
            function(0, n)
        return
    size = -(-n // (SHARES_PER_THREAD * n_threads))
    size = max(1, -(-size // align) * align)
    starts = range(0, n, size)
    run_tasks(lambda task: function(starts[task], min(starts[task] + size, n)), len(starts), n_threads)


def run_tasks(function: Callable[[int], Any], n: int, n_threads: int) -> None:
    """Call function(0), ..., function(n - 1). Each thread takes the next task that is left.

    If a task raises an exception, or Ctrl-C does, no other task begins. The exception is raised when no thread is
    inside a task any more: the caller may then reuse the arrays that tasks write to.
    """
    if n_threads <= 1 or n <= 1 or current_spin_pool() is not None:
        for task in range(n):
            function(task)
        return
    todo: Iterator[int] = iter(range(n))
    lock = threading.Lock()
    inside = 0  # threads of the pool inside a task

    def stop() -> None:
        nonlocal todo
        with lock:
            todo = iter(())

    def work(counts: int) -> None:
        nonlocal inside
        while True:
            with lock:
                task = next(todo, None)
                if task is None:
                    return
                inside += counts
            try:
                function(task)
            except BaseException:
                stop()
                raise
            finally:
                if counts:
                    with lock:
                        inside -= 1

    futures: list[Future[None]] = []
    interrupt: KeyboardInterrupt | None = None
    try:
        for _ in range(min(n_threads, n) - 1):
            futures.append(pool(n_threads - 1).submit(work, 1))
        work(0)
    finally:
        while True:  # again after each Ctrl-C
            try:
                stop()
                # a busy pool may not have begun: no task is left for it
                begun = [future for future in futures if not future.cancel()]
                wait(begun)
                while inside:  # Ctrl-C fell between a future's submission and its place in the list
                    time.sleep(PAUSE)
                break
            except KeyboardInterrupt as pressed:
                interrupt = pressed
    if interrupt is not None:
        raise interrupt
    for future in begun:
        future.result()


def value_nanoseconds(values: float, terms: float) -> float:
    """Estimate the nanoseconds of this many kernel values, each a function of a sum of this many terms."""
    return values * (VALUE_NS + TERM_NS * terms)


class cached_property(Generic[Value]):
    """An attribute that is computed when it is first read.

    ``functools.cached_property`` of Python 3.11 has one lock for all objects of a class. Threads would wait for each
    other, and a process that is forked while a thread computes the attribute would wait forever. Here two threads may
    compute it at once; both get the value of the first.
    """

    def __init__(self, function: Callable[[Any], Value]) -> None:
        self._function, self.__doc__ = function, function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> cached_property[Value]: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Value: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> cached_property[Value] | Value:
        if instance is None:
            return self
        value: Value = instance.__dict__.setdefault(self._name, self._function(instance))
        return value
