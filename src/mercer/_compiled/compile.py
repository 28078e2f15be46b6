"""The decorator of all compiled functions, and the cache of their machine code on disk.

``nogil`` lets threads run in parallel. ``error_model="numpy"`` removes the test for ZeroDivisionError around each
division.
"""

import gc
import logging
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, lru_cache
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

# without "ninf" (infinities mark variables that may not move) and "nnan" (NaN in the input must stay visible)
FAST = {"nsz", "arcp", "contract", "afn", "reassoc"}
# new objects between two garbage collections while numba compiles
GARBAGE_FROM = 50_000


def compiled(fast: bool = False, inline: bool = False, merged: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function of arrays and scalars; ``fast`` allows LLVM to reorder sums.

    ``inline`` inlines it into its callers before type inference, ``merged`` in LLVM: a call costs more than a small
    loop, since each array is passed as seven numbers. A function whose name begins with an underscore is called by
    compiled code only.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    if fast:
        options["fastmath"] = FAST
    if inline:
        options["inline"] = "always"
    if merged:
        options["forceinline"] = True

    def decorate(function: Callable[..., Any]) -> Any:
        if function.__name__.startswith("_"):  # called by compiled code only
            return _part_of(function, options)
        entry = numba.njit(**options)(function)
        entry.__class__, entry.options = _Entry, options
        if cache_directory() is not None:
            entry._cache = _Cache(function)
        return entry

    return decorate


# ---- functions that compiled code calls ------------------------------------------------------------------------------
#
# numba optimises a function and emits its machine code. Then it links the function's LLVM code into each caller, and
# optimises it there again. In a chain of four calls the innermost function is optimised four times, and three of the
# results are never run. Here a function that compiled code calls is linked into its callers as unoptimised LLVM code.
# It is optimised, emitted and cached only as a part of functions that Python calls.


class _Entry(CPUDispatcher):  # type: ignore[misc]
    """A function that Python calls. Compiled code that calls it is linked with ``part`` instead."""

    options: dict[str, Any]

    @cached_property
    def part(self) -> Any:
        """Made when it is first asked for, which a process that finds all machine code on disk never does."""
        return _part_of(self.py_func, self.options)

    @property
    def _numba_type_(self) -> Any:
        return types.Dispatcher(self.part)


class _Part(CPUDispatcher):  # type: ignore[misc]
    """A function that only compiled code calls: it has no machine code of its own."""

    def __call__(self, *arguments: Any) -> Any:
        name = self.py_func.__name__
        raise TypeError(f"{name} is compiled as a part of its callers: call it from compiled code.")


def _part_of(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Compile a function as a part of its callers."""
    inside = {**options, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _PartCompiler}
    part = numba.njit(**inside)(function)
    part.__class__ = _Part
    return part


class _PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """LLVM code that is optimised and emitted only as a part of its callers."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(NativeLowering):  # type: ignore[misc]
    """numba's lowering to LLVM code, without emitting machine code."""

    _name = "mercer_part_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower a typed function, and register it for its callers."""
        state.library = state.targetctx.codegen().create_library(state.func_id.func_qualname)
        state.library.__class__ = _PartLibrary
        state.flags.no_compile = True
        super().run_pass(state)
        state.library.finalize()
        key: Any = [].append  # numba identifies functions by a built-in method object: a new one is unique
        state.targetctx.insert_user_function(key, state["cr"].fndesc, [state.library])
        state.reload_init.extend(state.library._reload_init)
        state["cr"] = state["cr"]._replace(cfunc=key)
        return True


class _PartCompiler(CompilerBase):  # type: ignore[misc]
    """numba's compiler, with the lowering above."""

    def define_pipelines(self) -> list[Any]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.passes = [(_PartLowering if step is NativeLowering else step, text) for step, text in pipeline.passes]
        pipeline._finalized = False
        pipeline.finalize()
        return [pipeline]


# ---- machine code on disk --------------------------------------------------------------------------------------------


class _Locator(caching._CacheLocator):  # type: ignore[misc]
    """Locates the cache of a function. numba's own locators test it by writing a file for each function."""

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
    """numba's file format, with the file names below."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Locator(function)
        self._filename_base = self.get_filename_base(_cache_name(function), getattr(sys, "abiflags", ""))


class _Cache(caching.FunctionCache):  # type: ignore[misc]
    """numba's cache of a function, made optional: damaged files or a full disk do not raise."""

    _impl_class = _CacheFormat

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The cached machine code for a signature; None if there is none, or if it cannot be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            with suppress(OSError):
                self.flush()  # it will be compiled and written again
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write machine code; warn if that fails."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _tell_not_kept(f"cannot write to {self.cache_path} ({error.strerror or error})")


@lru_cache
def cache_directory() -> str | None:
    """The cache directory: numba's, else a temporary directory of this user; None if neither is writable."""
    path: str | None
    try:
        path = caching.CompileResultCacheImpl(compiled).locator.get_cache_path()
    except RuntimeError:  # NUMBA_CACHE_DIR, the folder of this file and the user's cache are not writable
        path = _temporary_directory()
    if path is None:
        _tell_not_kept("found no directory that it can write to")
    return path


def _temporary_directory() -> str | None:
    """A directory that only this user can write to, since its contents are executed; None if there is none."""
    posix = hasattr(os, "getuid")  # elsewhere each user has a temporary directory
    try:
        parent = tempfile.gettempdir()
        if parent == os.getcwd():
            return None  # Python falls back to the working directory, which is not a temporary one
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
    """Warn once that machine code is not cached, and why."""
    logging.getLogger("mercer").warning(
        "mercer %s: its loops are compiled anew in each process, which takes 5 to 20 s. Set the environment variable "
        "NUMBA_CACHE_DIR to a writable directory.",
        reason,
    )


def _cache_name(function: Callable[..., Any]) -> str:
    """The prefix of the cache files of a function: with the full module path, as module names are not unique."""
    return f"{function.__module__}.{function.__qualname__}"


def loop_files(package: Path = Path(__file__).parents[1]) -> list[Path]:
    """All files with compiled functions: those of ``_compiled``, and ``_loops.py`` or ``_..._loops.py`` elsewhere."""
    found = list((package / "_compiled").glob("*.py"))
    for folder, subfolders, names in os.walk(package):
        subfolders[:] = [name for name in subfolders if name != "__pycache__"]
        found += [Path(folder, name) for name in names if name.startswith("_") and name.endswith("_loops.py")]
    return sorted(found)


@lru_cache
def _source_stamp() -> tuple[float, int]:
    """(latest change, total size) of the files with compiled functions. Cached code with another stamp is not used.

    numba's own stamp covers the file of the function only, but the functions that it calls are compiled into it.
    """
    states = [path.stat() for path in loop_files()]
    return max(state.st_mtime for state in states), sum(state.st_size for state in states)


def has_machine_code() -> bool:
    """Whether the cache on disk has any machine code."""
    directory = cache_directory()
    return directory is not None and any(Path(directory).glob("*.nbi"))


# ---- compilation -----------------------------------------------------------------------------------------------------


class _Compiling(event.Listener):
    """Times compilation, announces it on a new computer, and makes garbage collection rare meanwhile.

    Garbage collection would take a tenth of the time.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._announced = False
        self._depth, self._begin, self._threshold = 0, 0.0, gc.get_threshold()

    def on_start(self, event: Any) -> None:
        """numba begins to compile a function, maybe within the compilation of its caller."""
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
        """numba has compiled a function."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += perf_counter() - self._begin
            gc.set_threshold(*self._threshold)


_compiling = _Compiling()
event.register("numba:compile", _compiling)


def seconds_compiling() -> float:
    """The seconds that this process has spent on compilation so far."""
    return _compiling.seconds
