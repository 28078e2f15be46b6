"""Limit BLAS to one thread while a solver runs: on small matrices synchronising threads costs more than it saves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_users = 0
# the libraries that had more than one thread, with their number of threads
_before: list[tuple[Any, int]] = []


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
            libraries = [lib for lib in _controller().lib_controllers if lib.user_api == "blas"]
            _before[:] = [(lib, lib.num_threads) for lib in libraries if lib.num_threads != 1]
            for lib, _ in _before:
                lib.set_num_threads(1)
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                for lib, threads in _before:
                    lib.set_num_threads(threads)


def blas_threads(count: int) -> AbstractContextManager[Any]:
    """BLAS uses ``count`` threads in the block; more than one only if no other thread of the process computes."""
    return one_blas_thread() if count == 1 else _controller().limit(limits=count, user_api="blas")
