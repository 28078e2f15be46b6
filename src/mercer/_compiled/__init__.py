"""Shared by all methods: the decorator of compiled functions, threads, vector code, blocks of kernel values."""

import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


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


def load_numba() -> None:
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
