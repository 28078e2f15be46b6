"""The one decorator for compiled functions.

``nogil`` lets threads run side by side, ``cache`` keeps machine code on disk between processes,
``error_model="numpy"`` removes the branch that Python's ZeroDivisionError puts around each division.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
from numba.core import event

# no "ninf" (infinities mark members that may not move) and no "nnan" (NaN input must stay visible)
FAST = {"nsz", "arcp", "contract", "afn", "reassoc"}


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


_compiling = event.TimingListener()
event.register("numba:compile", _compiling)


def seconds_compiling() -> float:
    """How long this process has been compiling so far."""
    return float(_compiling.duration) if _compiling.done else 0.0
