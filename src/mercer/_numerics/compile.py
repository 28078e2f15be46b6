"""The one decorator for compiled functions.

``nogil`` lets threads run side by side, ``cache`` keeps machine code on disk between processes,
``error_model="numpy"`` removes the branch that Python's ZeroDivisionError puts around each division.
"""

import gc
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numba
from numba.core import event

# no "ninf" (infinities mark members that may not move) and no "nnan" (NaN input must stay visible)
FAST = {"nsz", "arcp", "contract", "afn", "reassoc"}
# new objects, while numba compiles, from which Python looks for garbage among them
GARBAGE_FROM = 50_000


def compiled(fast: bool = False, inline: bool = False, merged: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function of arrays and scalars; ``fast`` allows LLVM to reorder sums.

    ``inline`` puts it into its callers before types are known, ``merged`` after it is compiled: calls of small loops
    cost more than the loops, since each array is passed as seven numbers.
    """
    options: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy"}
    if fast:
        options["fastmath"] = FAST
    if inline:
        options["inline"] = "always"
    if merged:
        options["forceinline"] = True

    def decorate(function: Callable[..., Any]) -> Any:
        # what only compiled code calls needs no door to Python, which takes long to compile
        if function.__name__.startswith("_"):
            options.update(no_cpython_wrapper=True, no_cfunc_wrapper=True)
        dispatcher = numba.njit(**options)(function)
        # numba looks at the function's own file only, but what it calls is compiled into it
        with suppress(AttributeError):
            dispatcher._cache._cache_file._source_stamp = _source_stamp()
        return dispatcher

    return decorate


@lru_cache
def _source_stamp() -> tuple[float, int]:
    """When these files were last changed, and their size: compiled code of another state is not used."""
    states = [path.stat() for path in sorted(Path(__file__).parent.glob("*.py"))]
    return max(state.st_mtime for state in states), sum(state.st_size for state in states)


def is_cached(function: Any) -> bool:
    """Whether machine code of this compiled function is in memory or on disk."""
    if function.signatures:
        return True
    name = f"{function.py_func.__module__.rpartition('.')[2]}.{function.py_func.__qualname__}-*.nbi"
    return any(Path(function._cache.cache_path).glob(name))


class _Compiling(event.Listener):
    """Times compilation, and lets Python look for garbage less often meanwhile: that takes a tenth of the time."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth, self._begin, self._threshold = 0, 0.0, gc.get_threshold()

    def on_start(self, event: Any) -> None:
        """numba begins, or begins with a function that another one calls."""
        if self._depth == 0:
            self._begin, self._threshold = perf_counter(), gc.get_threshold()
            if 0 < self._threshold[0] < GARBAGE_FROM:
                gc.set_threshold(GARBAGE_FROM, *self._threshold[1:])
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """numba ends with a function."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += perf_counter() - self._begin
            gc.set_threshold(*self._threshold)


_compiling = _Compiling()
event.register("numba:compile", _compiling)


def seconds_compiling() -> float:
    """How long this process has been compiling so far."""
    return _compiling.seconds
