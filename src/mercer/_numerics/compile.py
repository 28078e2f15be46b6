"""The one decorator for compiled functions.

``nogil`` lets threads run side by side, ``cache`` keeps machine code on disk between processes,
``error_model="numpy"`` removes the branch that Python's ZeroDivisionError puts around each division.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

# no "ninf" (infinities mark members that may not move) and no "nnan" (NaN input must stay visible)
FAST = {"nsz", "arcp", "contract", "afn", "reassoc"}


def compiled(fast: bool = False, inline: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function of arrays and scalars; ``fast`` allows LLVM to reorder sums."""
    options: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy"}
    if fast:
        options["fastmath"] = FAST
    if inline:
        options["inline"] = "always"
    return numba.njit(**options)


def is_cached(function: Any) -> bool:
    """Whether machine code of this compiled function is in memory or on disk."""
    if function.signatures:
        return True
    name = f"{function.py_func.__module__.rpartition('.')[2]}.{function.py_func.__qualname__}-*.nbi"
    return any(Path(function._cache.cache_path).glob(name))
