"""BLAS and LAPACK on one thread: theirs take longer to meet than to compute, and ours share the work themselves."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

import scipy.linalg  # noqa: F401  (its libraries must be there when they are looked for)
from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    """The libraries in this process: looking for them takes longer than a small fit."""
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Limit BLAS within a block."""
    limit: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limit
