"""The decorator of all compiled functions.

``nogil`` lets threads run in parallel. ``error_model="numpy"`` removes the test for ZeroDivisionError around each
division.
"""

import gc
import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from time import perf_counter
from typing import Any

import numba
from llvmlite import binding
from llvmlite.binding.ffi import lib
from numba.core import event, serialize, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering

from mercer._compiled import interrupts_held
from mercer._compiled.forks import hold_in_forks
from mercer._compiled.machine_code import Cache, cache_directory, has_machine_code, shipped

_settings: Any = numba.config
if _settings.DISABLE_JIT:
    raise RuntimeError(
        "NUMBA_DISABLE_JIT=1 turns the compiler off, which mercer needs. Unset it; to debug functions of your own, "
        "call their py_func."
    )
# without "ninf" (infinities mark variables that may not move) and "nnan" (NaN in the input must stay visible)
FAST = {"nsz", "arcp", "contract", "afn", "reassoc"}
# new objects between two garbage collections while numba compiles
GARBAGE_FROM = 50_000
# slots of the frame below which numba runs: with its overhead just over half of a megabyte
WIDE_FRAME = 66_000
# functions that the first fit of an estimator compiles
FIRST_FIT = 5, 35
# LLVM functions that are compact: their names begin with one of these. At first numba's wrappers and array constructors
_compact = {"_ZN7cpython", "cfunc._Z", "_ZN5numba2np8arrayobj"}

# A compiled function that returns an array asks this function of numba for the type of the array, and does not see
# whether it raised: Ctrl-C in its Python code became "SystemError: ... returned a result with an exception set". Now no
# Python code runs after the first call
serialize._numba_unpickle = lru_cache(maxsize=None)(serialize._numba_unpickle)


def compiled(
    fast: bool = False, inline: bool = False, merged: bool = False, compact: bool = False
) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function of arrays and scalars; ``fast`` allows LLVM to reorder sums.

    ``inline`` inlines it into its callers before type inference, ``merged`` in LLVM: a call costs more than a small
    loop, since each array is passed as seven numbers. ``compact`` asks LLVM for short code, which is compiled in less
    time: for functions that choose, branch and call other loops. A function whose name begins with an underscore is
    called by compiled code only.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    if fast:
        options["fastmath"] = FAST
    if inline:
        options["inline"] = "always"
    if merged:
        options["forceinline"] = True

    def decorate(function: Callable[..., Any]) -> Any:
        if compact:
            _compact.add(_symbol_prefix(function))
        if function.__name__.startswith("_"):  # called by compiled code only
            return _part_of(function, options)
        entry = numba.njit(**options)(function)
        entry.__class__, entry.options = _Entry, options
        entry._cache = Cache(function)
        return entry

    return decorate


def _symbol_prefix(function: Callable[..., Any]) -> str:
    """How the names of the LLVM functions that numba makes of this function begin."""
    parts = f"{function.__module__}.{function.__qualname__}".split(".")
    return "_ZN" + "".join(f"{len(part)}{part}" for part in parts) + "B"


# ---- functions that compiled code calls ------------------------------------------------------------------------------
#
# numba optimises a function and emits its machine code. Then it links the function's LLVM code into each caller, and
# optimises it there again. In a chain of four calls the innermost function is optimised four times, and three of the
# results are never run. Here a function that compiled code calls is linked into its callers as unoptimised LLVM code.
# It is optimised, emitted and cached only as a part of functions that Python calls. The same holds for numba's own
# functions, such as np.empty, that they call.


def _call(function: Callable[..., Any], argument: Any) -> Any:
    """Call a function in a wide frame, which keeps all frames below it in one piece of memory.

    Python allocates frames in chunks of 16 KB. If a chunk ends where a short function is called in a loop, each call
    allocates and frees a chunk. numba's deep calls meet this again and again: it would take a sixth of the time. A
    frame of just over half of a megabyte gets a chunk of one megabyte, whose other half has room for numba's frames.
    """
    return function(argument)


_call.__code__ = _call.__code__.replace(co_stacksize=WIDE_FRAME)


class _Entry(CPUDispatcher):  # type: ignore[misc]
    """A function that Python calls. Compiled code that calls it is linked with ``part`` instead."""

    options: dict[str, Any]
    _part: Any = None
    _cache: Any

    def compile(self, sig: Any) -> Any:
        """Compile it for these types, or load its machine code. Ctrl-C meanwhile takes effect at the end."""
        # a fork waits until the lock is free: numba alone would not hold it while code is read and written
        with interrupts_held(), global_compiler_lock:
            try:
                return _call(super().compile, sig)
            finally:
                if isinstance(self._cache, Cache):
                    self._cache.end_turn()

    @property
    def part(self) -> Any:
        """Created on first use; a process that finds all machine code on disk never needs it."""
        if self._part is None:
            self._part = _part_of(self.py_func, self.options)
        return self._part

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


def _make_part(inner: Any) -> None:
    """Let a function of numba (such as that of np.empty), which Python never calls, be compiled as a part."""
    options = inner.targetoptions
    if options.get("no_cpython_wrapper") and inner.py_func.__module__.startswith("numba.") and not inner.overloads:
        options["no_cfunc_wrapper"] = True
        inner._compiler.pipeline_class = _PartCompiler


@lru_cache
def _can_be_compact() -> bool:
    """Whether llvmlite can ask for short code: older ones add the attribute to the return value, which LLVM refuses."""
    module = binding.parse_assembly("define void @f() { ret void }")
    module.get_function("f").add_function_attribute("optsize")
    try:
        module.verify()
    except RuntimeError:
        return False
    return True


class _Library(JITCodeLibrary):  # type: ignore[misc]
    """LLVM code that is optimised once, with all its parts.

    numba optimises it three times: each function, then all of them quickly, then thoroughly.
    """

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        prefixes = tuple(_compact) if _can_be_compact() else ()
        for function in self._final_module.functions:
            if not function.is_declaration and function.name.startswith(prefixes):
                function.add_function_attribute("optsize")
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class _PartLibrary(_Library):
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


# ---- compilation -----------------------------------------------------------------------------------------------------


class _Compiling(event.Listener):
    """Counts and times compilation, shows it, and makes garbage collection rare meanwhile.

    Garbage collection would take a tenth of the time.
    """

    def __init__(self) -> None:
        self.seconds, self.functions = 0.0, 0
        self.show: Callable[[str], None] = _show
        self._depth, self._begin, self._threshold = 0, 0.0, gc.get_threshold()
        self._ours = False  # whether the outermost function is one of mercer's

    def on_start(self, event: Any) -> None:
        """numba begins to compile a function, maybe within the compilation of its caller."""
        if self._depth == 0:
            function = event.data["dispatcher"].py_func
            self._ours = function.__module__.startswith("mercer.")
            if self._ours:
                self.show(function.__name__)
                event.data["dispatcher"].targetctx.codegen()._library_class = _Library
            self._begin, self._threshold = perf_counter(), gc.get_threshold()
            if 0 < self._threshold[0] < GARBAGE_FROM:
                gc.set_threshold(GARBAGE_FROM, *self._threshold[1:])
        elif self._ours:
            _make_part(event.data["dispatcher"])
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """numba has compiled a function."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += perf_counter() - self._begin
            gc.set_threshold(*self._threshold)
            if self._ours:
                del event.data["dispatcher"].targetctx.codegen()._library_class  # back to numba's own class
                self.functions += 1
                self.show("")

    @contextmanager
    def waiting(self, name: str) -> Iterator[None]:
        """Show and count the time in which another process compiles; a compilation that is under way counts it."""
        if self._depth:
            yield
            return
        self.show(f"{name} in another process")
        begin = perf_counter()
        try:
            yield
        finally:
            self.seconds += perf_counter() - begin
            self.show("")


@lru_cache
def _announce() -> None:
    """Say once why the first fit on a new computer takes long."""
    if shipped() is None and not has_machine_code():
        once = "machine, once" if cache_directory() is not None else "process"
        line = f"compiling its loops for this {once} (2 to 15 s) ..."
        if on_terminal():
            print(f"mercer: {line}", file=sys.stderr, flush=True)
        else:
            logging.getLogger("mercer").info(line)


def _show(name: str) -> None:
    """Show on a terminal, or log elsewhere, what is compiled now; "" if nothing is."""
    _announce()
    number = _compiling.functions + 1
    usual = f"; a first fit has {FIRST_FIT[0]} to {FIRST_FIT[1]}" if number <= FIRST_FIT[1] else ""
    line = f"compiling {name} (function {number}{usual}; {_compiling.seconds:.0f} s so far)"
    if on_terminal():
        draw(f"mercer: {line}" if name else "")
    elif name:
        logging.getLogger("mercer").info(line)


def on_terminal() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def draw(text: str) -> None:
    """Replace the line of the terminal by a text, cut to its width; "" erases it."""
    width = _width()
    print("\r" + text[:width].ljust(width) + "\r" * (not text), end="", file=sys.stderr, flush=True)


def _width() -> int:
    """Columns of a line that stays a line on the terminal."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return max(1, (columns or shutil.get_terminal_size().columns) - 1)


_compiling = _Compiling()
Cache.waiting = _compiling.waiting
event.register("numba:compile", _compiling)
# compiled functions that are garbage are removed from LLVM with its lock, and without the compiler's
hold_in_forks(lib._lock.__enter__, partial(lib._lock.__exit__, None, None, None))
hold_in_forks(global_compiler_lock.acquire, global_compiler_lock.release)


def seconds_compiling() -> float:
    """The seconds that this process has spent on compilation so far."""
    return _compiling.seconds


def functions_compiled() -> int:
    """The number of functions called from Python that this process has compiled so far, not read from disk."""
    return _compiling.functions


@contextmanager
def compilations_shown(show: Callable[[str], None]) -> Iterator[None]:
    """Within this block ``show`` is called with the name of each function that is compiled, and with "" after it."""
    before, _compiling.show = _compiling.show, show
    try:
        yield
    finally:
        _compiling.show = before
