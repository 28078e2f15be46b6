"""Shared by all methods: the decorator of compiled functions, threads, vector code, blocks of kernel values."""

import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

# bytes of the largest array whose release still raises the thresholds of glibc's malloc: just below 32 MB
RAISES_THRESHOLDS = (1 << 25) - (1 << 16)


@cache
def prepare_process() -> None:
    """Prepare this process for its first fit: let malloc keep freed memory, and import numba."""
    import numpy as np  # `mercer --help` does without it

    # glibc gives freed memory back to the system when more than a threshold of it is free, 128 KB at first. The next
    # fit then meets a page fault for each 4 KB of its arrays: up to a quarter of its time. Releasing an array, here
    # one that was never touched, raises the threshold to twice its size (mallopt(3), M_MMAP_THRESHOLD). Other
    # allocators are not affected
    np.empty(RAISES_THRESHOLDS, np.uint8)
    _load_numba()


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Ctrl-C in this block takes effect at its end.

    LLVM calls Python functions of llvmlite through ctypes, which prints and drops their exceptions: a KeyboardInterrupt
    would be lost, and numba would fail later without the machine code that it waits for. And modules of numba that are
    half imported stay so: every later import of numba would fail in the same process.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    presses: list[Any] = []
    signal.signal(signal.SIGINT, lambda *press: presses.append(press))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        for press in presses:
            handler(*press)


def _load_numba() -> None:
    """Import numba. Ctrl-C meanwhile takes effect at the end.

    Garbage is not collected, which takes half of the time where many objects exist already.
    """
    with interrupts_held():
        collects = gc.isenabled()
        gc.disable()
        try:
            import numba  # noqa: F401
        finally:
            if collects:
                gc.enable()
