"""Limit BLAS to one thread while a solver runs: on small matrices synchronising threads costs more than it saves."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_users = 0
# the blocks that each thread is in
_own = threading.local()
# the libraries that had more than one thread, with their number of threads, until it is restored
_before: list[tuple[Any, int]] = []


def _begin_child() -> None:
    """Only the thread that forks goes on in the child: others neither leave their blocks nor release the lock."""
    global _lock, _users
    _lock, _users = threading.Lock(), getattr(_own, "blocks", 0)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)


@lru_cache
def _controller() -> ThreadpoolController:
    """The controller of the BLAS libraries of this process, created once: finding them takes as long as a small fit."""
    import scipy.linalg  # noqa: F401  # it brings its own BLAS

    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS uses one thread in the block. The last of several threads to leave such a block restores the number."""
    global _users
    with _lock:
        _users += 1
        if _users == 1:
            if not _before:  # else these are numbers that a thread of the parent process did not restore here
                libraries = [lib for lib in _controller().lib_controllers if lib.user_api == "blas"]
                _before[:] = [(lib, lib.num_threads) for lib in libraries if lib.num_threads != 1]
            for lib, _ in _before:
                lib.set_num_threads(1)
    _own.blocks = getattr(_own, "blocks", 0) + 1
    try:
        yield
    finally:
        _own.blocks -= 1
        with _lock:
            _users -= 1
            if _users == 0:
                for lib, threads in _before:
                    lib.set_num_threads(threads)
                _before.clear()


def blas_threads(count: int) -> AbstractContextManager[Any]:
    """BLAS uses ``count`` threads in the block; more than one only if no other thread of the process computes."""
    return one_blas_thread() if count == 1 else _controller().limit(limits=count, user_api="blas")
