"""Shared by all methods: the decorator of compiled functions, threads, vector code, blocks of kernel values."""

import gc
from functools import cache

import numpy as np

# bytes of the largest array whose release still raises the thresholds of glibc's malloc: just below 32 MB
RAISES_THRESHOLDS = (1 << 25) - (1 << 16)


@cache
def prepare_process() -> None:
    """Prepare this process for its first fit: let malloc keep freed memory, and import numba."""
    # glibc gives freed memory back to the system when more than a threshold of it is free, 128 KB at first. The next
    # fit then meets a page fault for each 4 KB of its arrays: up to a quarter of its time. Releasing an array, here
    # one that was never touched, raises the threshold to twice its size (mallopt(3), M_MMAP_THRESHOLD). Other
    # allocators are not affected
    np.empty(RAISES_THRESHOLDS, np.uint8)
    _load_numba()


def _load_numba() -> None:
    """Import numba without collecting garbage, which takes half of the time where many objects exist already."""
    if not gc.isenabled():
        return
    gc.disable()
    try:
        import numba  # noqa: F401
    finally:
        gc.enable()
