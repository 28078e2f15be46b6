"""Forks of a process whose other threads import modules or hold locks.

A child process has only the thread that forks. It would wait forever for a lock that another thread held, or for a
module that another thread was importing. A fork therefore waits until no other thread does.
"""

import _imp
import concurrent.futures.thread  # noqa: F401  # see `_hold`: it and logging hold locks in forks, too
import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from importlib import _bootstrap
from typing import Any

# A first fit imports modules of these packages. Imports of other modules are not waited for: a program may be one, and
# wait for the fork
PACKAGES = {"joblib", "llvmlite", "mercer", "numba", "numpy", "pandas", "scipy", "sklearn", "threadpoolctl"}
# seconds between two looks at what other threads import, and after which the fork goes on: locks that other libraries
# hold in forks may keep an import from its end
PAUSE, PATIENCE = 0.001, 60.0
# locks that a fork holds, and the functions that acquire and release them
_locks: list[tuple[Callable[[], Any], Callable[[], Any]]] = []
# what a fork that is under way holds
_held: list[ExitStack] = []
# Python's locks of modules that are being imported, by name: weak references. A Python without them is not waited for
_module_locks: dict[str, Any] = getattr(_bootstrap, "_module_locks", {})


def hold_in_forks(acquire: Callable[[], Any], release: Callable[[], Any]) -> None:
    """Let forks wait for a lock. A thread that holds it may wait only for locks that were given earlier."""
    _locks.append((acquire, release))


def _others_import() -> bool:
    """Whether other threads import modules of these packages. None is waited for if this thread imports some, too."""
    locks = [lock() for name, lock in list(_module_locks.items()) if name.partition(".")[0] in PACKAGES]
    owners = {getattr(lock, "owner", None) for lock in locks} - {None}
    return bool(owners) and threading.get_ident() not in owners


def _hold() -> None:
    """Before a fork: acquire the locks while no other thread imports, and Python's own, without which no import begins.

    Other threads may need a lock to end an import, so none is held while this thread waits for imports. Python calls
    what was registered last first: nothing of the standard library that was registered before holds its lock yet.
    """
    patience = PATIENCE
    while True:
        with ExitStack() as stack:
            for acquire, release in reversed(_locks):
                acquire()
                stack.callback(release)
            _imp.acquire_lock()
            stack.callback(_imp.release_lock)
            if patience <= 0 or not _others_import():
                _held.append(stack.pop_all())
                return
        time.sleep(PAUSE)
        patience -= PAUSE


def _release() -> None:
    """After a fork, in both processes."""
    if _held:
        _held.pop().close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_release)
