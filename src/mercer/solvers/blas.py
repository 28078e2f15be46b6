"""One thread for BLAS while a solver runs: for its small matrices the threads take longer to meet than to compute."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_users = 0
_limit: Any = None


@lru_cache
def _controller() -> ThreadpoolController:
    """What controls the libraries of this process: looking for them takes as long as a small fit."""
    import scipy.linalg  # noqa: F401  # which brings a BLAS of its own

    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS uses one thread in the block. Several threads may be in such blocks: the last one to leave restores."""
    global _users, _limit
    with _lock:
        _users += 1
        if _users == 1:
            _limit = _controller().limit(limits=1, user_api="blas")
            _limit.__enter__()
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.__exit__(None, None, None)


def blas_threads(count: int) -> AbstractContextManager[Any]:
    """BLAS uses so many threads in the block; more than one only where no other thread of the process computes."""
    return one_blas_thread() if count == 1 else _controller().limit(limits=count, user_api="blas")
