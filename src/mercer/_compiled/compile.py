"""The one decorator for compiled functions, and the directory that keeps their machine code between processes.

``nogil`` lets threads run side by side, ``error_model="numpy"`` removes the branch that Python's ZeroDivisionError puts
around each division.
"""

import gc
import logging
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numba
from numba.core import caching, event, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering

# no "ninf" (infinities mark members that may not move) and no "nnan" (NaN input must stay visible)
FAST = {"nsz", "arcp", "contract", "afn", "reassoc"}
# new objects, while numba compiles, from which Python looks for garbage among them
GARBAGE_FROM = 50_000


def compiled(fast: bool = False, inline: bool = False, merged: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function of arrays and scalars; ``fast`` allows LLVM to reorder sums.

    ``inline`` puts it into its callers before types are known, ``merged`` after it is compiled: calls of small loops
    cost more than the loops, since each array is passed as seven numbers.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    if fast:
        options["fastmath"] = FAST
    if inline:
        options["inline"] = "always"
    if merged:
        options["forceinline"] = True

    def decorate(function: Callable[..., Any]) -> Any:
        inside = {**options, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _PartCompiler}
        part = numba.njit(**inside)(function)
        if function.__name__.startswith("_"):  # only compiled code calls it
            return part
        entry = numba.njit(**options)(function)
        entry.__class__, entry.part = _Entry, part
        if cache_directory() is not None:
            entry._cache = _Cache(function)
        return entry

    return decorate


# ---- functions that compiled code calls ------------------------------------------------------------------------------
#
# numba optimises a function and emits its machine code before it links the function's LLVM code into each caller, and
# optimises all of it again there. In a chain of four calls the last function is optimised four times, and three of its
# machine codes are never run. Here the LLVM code of a function that compiled code calls is linked into its callers as
# it is. It is optimised, emitted and kept on disk only as a part of functions that Python calls.


class _Entry(CPUDispatcher):  # type: ignore[misc]
    """A function that Python calls. Compiled code that calls it gets ``part``."""

    part: Any

    @property
    def _numba_type_(self) -> Any:
        return types.Dispatcher(self.part)


class _PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """LLVM code that is optimised and emitted as a part of others only."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(NativeLowering):  # type: ignore[misc]
    """numba's lowering to LLVM code, without machine code."""

    _name = "mercer_part_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower a typed function, and make it known to its callers."""
        state.library = state.targetctx.codegen().create_library(state.func_id.func_qualname)
        state.library.__class__ = _PartLibrary
        state.flags.no_compile = True
        super().run_pass(state)
        state.library.finalize()
        key: Any = [].append  # numba knows functions by built-in methods: any will do that no other function has
        state.targetctx.insert_user_function(key, state["cr"].fndesc, [state.library])
        state.reload_init.extend(state.library._reload_init)
        state["cr"] = state["cr"]._replace(cfunc=key)
        return True


class _PartCompiler(CompilerBase):  # type: ignore[misc]
    """numba's steps, with the lowering above."""

    def define_pipelines(self) -> list[Any]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.passes = [(_PartLowering if step is NativeLowering else step, text) for step, text in pipeline.passes]
        pipeline._finalized = False
        pipeline.finalize()
        return [pipeline]


# ---- machine code on disk --------------------------------------------------------------------------------------------


class _Locator(caching._CacheLocator):  # type: ignore[misc]
    """Says where the machine code of a function is kept. numba's own locators write a file for each function to see."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._py_file = function.__code__.co_filename
        self._lineno = function.__code__.co_firstlineno

    def get_cache_path(self) -> str | None:
        return cache_directory()

    def get_source_stamp(self) -> tuple[float, int]:
        return _source_stamp()

    def get_disambiguator(self) -> str:
        return str(self._lineno)


class _CacheFormat(caching.CompileResultCacheImpl):  # type: ignore[misc]
    """numba's format and names of files."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Locator(function)
        self._filename_base = self.get_filename_base(_cache_name(function), getattr(sys, "abiflags", ""))


class _Cache(caching.FunctionCache):  # type: ignore[misc]
    """numba's cache of a function, without which a fit can do: damaged files and a full disk do not end it."""

    _impl_class = _CacheFormat

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The machine code for a signature; None if there is none, or if it cannot be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            with suppress(OSError):
                self.flush()  # compiled anew and written again
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write machine code, if there is room for it."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _tell_not_kept(f"cannot write to {self.cache_path} ({error.strerror or error})")


@lru_cache
def cache_directory() -> str | None:
    """Where machine code is kept: where numba keeps it, else a temporary directory of this user; None if nowhere."""
    path: str | None
    try:
        path = caching.CompileResultCacheImpl(compiled).locator.get_cache_path()
    except RuntimeError:  # neither NUMBA_CACHE_DIR nor the folder of this file nor the user's cache can be written to
        path = _temporary_directory()
    if path is None:
        _tell_not_kept("found no directory that it can write to")
    return path


def _temporary_directory() -> str | None:
    """A directory that no other user can write to, since what is in it is run."""
    posix = hasattr(os, "getuid")  # elsewhere each user has a temporary directory
    try:
        parent = tempfile.gettempdir()
        if parent == os.getcwd():
            return None  # Python's last resort, which is nobody's temporary directory
        own = os.path.join(parent, f"mercer-{os.getuid()}" if posix else "mercer")
        os.makedirs(own, mode=0o700, exist_ok=True)
        state = os.lstat(own)
        if posix and (not stat.S_ISDIR(state.st_mode) or state.st_uid != os.getuid() or state.st_mode & 0o022):
            return None
        path = os.path.join(own, _Locator.get_suitable_cache_subpath(__file__))
        os.makedirs(path, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError:
        return None
    return path


@lru_cache
def _tell_not_kept(reason: str) -> None:
    """Say once why each process will compile."""
    logging.getLogger("mercer").warning(
        "mercer %s: its loops are compiled anew in each process, which takes 5 to 20 s. Set the environment variable "
        "NUMBA_CACHE_DIR to a directory that can be written to.",
        reason,
    )


def _cache_name(function: Callable[..., Any]) -> str:
    """How the cache files of a function begin. The whole module path: modules of two folders may share their name."""
    return f"{function.__module__}.{function.__qualname__}"


def loop_files() -> list[Path]:
    """All files with compiled functions: those of this folder, and `_loops.py` and `_..._loops.py` in any other one."""
    here = Path(__file__).parent
    found = list(here.glob("*.py"))
    for folder, subfolders, names in os.walk(here.parent):
        subfolders[:] = [name for name in subfolders if name != "__pycache__"]
        found += [Path(folder, name) for name in names if name.startswith("_") and name.endswith("_loops.py")]
    return sorted(found)


@lru_cache
def _source_stamp() -> tuple[float, int]:
    """When the files with compiled functions were last changed, and their size in all.

    Machine code with another stamp is not used. numba's own stamp covers only the file of the function, but the
    functions that it calls are compiled into it.
    """
    states = [path.stat() for path in loop_files()]
    return max(state.st_mtime for state in states), sum(state.st_size for state in states)


def has_machine_code() -> bool:
    """Whether machine code of any loop is on disk."""
    directory = cache_directory()
    return directory is not None and any(Path(directory).glob("*.nbi"))


# ---- compilation -----------------------------------------------------------------------------------------------------


class _Compiling(event.Listener):
    """Times compilation, says when it begins on a new machine, and collects garbage less often meanwhile.

    Collecting garbage would take a tenth of the time.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._announced = False
        self._depth, self._begin, self._threshold = 0, 0.0, gc.get_threshold()

    def on_start(self, event: Any) -> None:
        """numba begins, or begins with a function that another one calls."""
        if not self._announced and event.data["dispatcher"].py_func.__module__.startswith("mercer."):
            self._announced = True
            if not has_machine_code():
                once = "machine, once" if cache_directory() is not None else "process"
                print(f"mercer: compiling its loops for this {once} (5 to 20 s) ...", file=sys.stderr, flush=True)
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
