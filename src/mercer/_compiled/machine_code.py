"""Machine code of compiled functions: where it is found, and where it is kept.

It is looked for in two places:

- the package. A wheel ships code for a few *levels* of processors, one file each, generated when it was built;
- the cache directory of this machine, one file for each function and signature, generated for this very processor.

Code is used only if it was generated from the same loops by the same numba, llvmlite and Python (`stamp`), and shipped
code only if the processor has all instructions of its level. Everything else is compiled.
"""

from __future__ import annotations

import hashlib
import logging
import marshal
import os
import pickle
import platform
import stat
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
from llvmlite import binding
from numba.core import caching, config, serialize, sigutils
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys

try:
    import fcntl
except ImportError:  # Windows: processes do not wait for each other
    fcntl = None  # type: ignore[assignment]

# the instructions that each level of processors adds to those below it, by LLVM's names; lowest level first
LEVELS: dict[str, dict[str, tuple[str, ...]]] = {
    "x86_64": {
        "x86-64-v2": ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"),
        "x86-64-v3": ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"),
    },
    "aarch64": {"generic": ("neon",)},
}
# the level to use instead of the best one, if the processor has it; "none" for no shipped code
LEVEL_VARIABLE = "MERCER_MACHINE_CODE"
SHIPPED = Path(__file__).parents[1] / "_machine_code"
# the settings of numba (see `_settings`) for which code is shipped: its defaults
PLAIN = (3, 0, 0, 0, 1)
# seconds between two looks at whether another process has compiled a function, and after which it is taken for dead
PAUSE, PATIENCE = 0.02, 120.0
# bytes of the digest that each file and each shipped function begins with
DIGEST = 16


def levels_of(machine: str, features: Callable[[str], bool]) -> list[str]:
    """The levels of a processor, lowest first; ``features`` tells whether it has an instruction."""
    found = []
    for level, needed in LEVELS.get(machine, {}).items():
        if not all(map(features, needed)):
            break
        found.append(level)
    return found


def host_levels(ask: Callable[[], Any] = binding.get_host_cpu_features) -> list[str]:
    """The levels of this processor, lowest first; none if it is not known. ``ask`` gives its instructions."""
    try:
        features = ask()
    except RuntimeError:
        return []
    machine = platform.machine().lower().replace("amd64", "x86_64").replace("arm64", "aarch64")
    return levels_of(machine, lambda name: bool(features.get(name, False)))


@lru_cache
def stamp(package: Path = Path(__file__).parents[1]) -> str:
    """A text that identifies the contents of all files with compiled functions, and the versions that compile them.

    Functions are compiled into each other, so all files count. File times do not: copying changes them. Without these
    files, in a frozen application, each process has a stamp of its own.
    """
    files = loop_files(package)
    digest = hashlib.sha256(b"" if files else uuid.uuid4().bytes)
    for path in files:
        digest.update(path.relative_to(package).as_posix().encode() + b"\0")
        digest.update(path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    return f"{digest.hexdigest()} numba {numba.__version__} llvmlite {llvmlite.__version__} {python} {sys.platform}"


def loop_files(package: Path = Path(__file__).parents[1]) -> list[Path]:
    """All files with compiled functions: those of ``_compiled``, and ``_loops.py`` or ``_..._loops.py`` elsewhere."""
    found = list((package / "_compiled").glob("*.py"))
    for folder, subfolders, names in os.walk(package):
        subfolders[:] = [name for name in subfolders if name != "__pycache__"]
        found += [Path(folder, name) for name in names if name.startswith("_") and name.endswith("_loops.py")]
    return sorted(found)


# ---- one compiled function as bytes ----------------------------------------------------------------------------------


def pack(result: Any) -> bytes:
    """The machine code of a function, and what numba needs to call it.

    numba's own format also has the function's LLVM code, to link it into callers. Callers are linked with parts
    instead, and reading LLVM code takes longer than reading machine code: stubs of the same names replace it. It also
    has an environment of each function that is part of this one. Environments without constants are left out: they are
    never used, but reading them would import the modules of numba that define these functions.
    """
    library, *rest, environments = result._replace(type_annotation="")._reduce()
    used = tuple(environment for environment in environments if environment.consts)
    name, kind, (code, _) = library
    names = result.fndesc.llvm_func_name, result.fndesc.llvm_cpython_wrapper_name, result.fndesc.llvm_cfunc_wrapper_name
    stubs = binding.parse_assembly("\n".join(f'define void @"{symbol}"() {{ ret void }}' for symbol in names))
    return bytes(serialize.dumps(((name, kind, (code, stubs.as_bitcode())), *rest, used)))


def unpack(data: bytes, target: Any) -> Any:
    """The function that was packed, ready to be called.

    numba's own cache refreshes the target first, which imports all that numba can compile and takes 0.2 s. Of all that,
    machine code needs the functions that count references.
    """
    rtsys.initialize(target)
    return CompileResult._rebuild(target, *pickle.loads(data))


def seal(data: bytes) -> bytes:
    """The bytes behind their digest: damaged machine code would crash the process, or compute wrong numbers."""
    return hashlib.blake2b(data, digest_size=DIGEST).digest() + data


def unseal(sealed: bytes) -> bytes | None:
    """The bytes that were sealed; None if any of them has changed."""
    data = sealed[DIGEST:]
    return data if seal(data) == sealed else None


# ---- code in the package ---------------------------------------------------------------------------------------------


class Shipped:
    """The machine code of one level: an index of places, and one file with all functions."""

    def __init__(self, folder: Path, level: str) -> None:
        self.level, self._path = level, folder / f"{level}.code"
        index = unseal((folder / f"{level}.index").read_bytes())
        if index is None:
            raise ValueError("its index is damaged")
        written, self._places = marshal.loads(index)
        if written != stamp():
            raise ValueError("it was generated by other versions")

    def find(self, key: str) -> bytes | None:
        """The packed function with this key; None if there is none, or if it is damaged."""
        place = self._places.get(key)
        if place is None:
            return None
        with open(self._path, "rb") as file:
            file.seek(place[0])
            return unseal(file.read(place[1]))


def write_shipped(folder: Path, level: str, functions: dict[str, bytes]) -> None:
    """Write the machine code of a level to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    places, offset = {}, 0
    with open(folder / f"{level}.code", "wb") as file:
        for key, data in sorted(functions.items()):
            length = file.write(seal(data))
            places[key] = offset, length
            offset += length
    (folder / f"{level}.index").write_bytes(seal(marshal.dumps((stamp(), places))))


def choose(folder: Path, levels: list[str], wanted: str | None = None) -> Shipped | None:
    """The shipped code for the best of these levels, or for the ``wanted`` one of them; None if there is none."""
    for level in reversed(levels):
        if wanted in (None, level):
            try:
                return Shipped(folder, level)
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                logging.getLogger("mercer").debug("the machine code for %s is not used: %s", level, error)
    return None


@lru_cache
def shipped() -> Shipped | None:
    """The shipped code that this process uses; None if it uses none.

    If numba's settings ask for another target, all loops are compiled.
    """
    return find_shipped(SHIPPED, host_levels, os.environ.get(LEVEL_VARIABLE) or None, config)


def find_shipped(
    folder: Path, host: Callable[[], list[str]], wanted: str | None, numba_settings: Any
) -> Shipped | None:
    """The best code in a folder for a processor with these levels, if numba's settings are those it is made for."""
    known = [name for each in LEVELS.values() for name in each]
    if wanted not in (None, "none", *known):
        raise ValueError(
            f"The environment variable {LEVEL_VARIABLE} is {wanted!r}, but must be one of {', '.join(known)} or none."
        )
    ask = numba_settings
    plain = ask.CPU_NAME is None and ask.CPU_FEATURES is None and _settings(ask) == PLAIN
    if not folder.is_dir() or not plain:
        return None
    levels = host()
    if not ask.ENABLE_AVX:  # numba avoids AVX on processors of 2011 and 2012, and in some virtual machines
        levels = [level for level in levels if "avx" not in LEVELS["x86_64"].get(level, ())]
    found = choose(folder, levels, wanted)
    if found is None and wanted in known:
        logging.getLogger("mercer").warning(
            "%s=%s: this package has no such code for this processor: loops are compiled.", LEVEL_VARIABLE, wanted
        )
    return found


def _settings(ask: Any) -> tuple[Any, ...]:
    """The settings of numba that change machine code."""
    numbers = (int(ask.OPT), ask.BOUNDSCHECK, ask.DEBUGINFO_DEFAULT, ask.DEBUG_JIT, ask.LOOP_VECTORIZE)
    return tuple(int(number or 0) for number in numbers)


# ---- the cache of this machine ---------------------------------------------------------------------------------------


class Cache(caching._Cache):  # type: ignore[misc]
    """The machine code of one function, by signature. Damaged files or a full disk do not raise.

    Each signature has a file of its own, replaced as a whole: several processes may read and write at once.
    """

    # called with the key and the packed code of each function that is compiled
    observer: Callable[[str, bytes], None] | None = None
    # a context for the time in which this process waits, while another one compiles the function of this name
    waiting: Callable[[str], AbstractContextManager[Any]] = nullcontext
    # the seconds that this process will wait for others before it compiles by itself
    patience = PATIENCE

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        stamp()  # of the files as they are when the function is imported
        self._turn: Any = None  # the locked file, and its path, while this process compiles the function
        self._name = f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")

    @property
    def cache_path(self) -> str | None:
        return cache_directory()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The machine code for a signature; None if there is none, or if it cannot be read."""
        key, arguments = self._key(sig), tuple(sigutils.normalize_signature(sig)[0])
        package = shipped()

        def load(read: Callable[[], bytes | None]) -> Any:
            with suppress(Exception):
                data = read()
                found = unpack(data, target_context) if data else None
                if found is not None and tuple(found.signature.args) == arguments:
                    return found
            return None

        found = load(lambda: package.find(key) if package else None) or load(lambda: self._read(key))
        if found is None and self._take_turn(key):
            found = load(lambda: self._read(key))
        return found

    def _take_turn(self, key: str) -> bool:
        """Wait until no other process compiles this function, which may then be in the cache: False if it is not.

        `end_turn` lets the next process go on; so does the end of this process.
        """
        directory = cache_directory()
        if directory is None or fcntl is None or self._turn is not None:
            return False
        path = self._path(directory, key).with_suffix(".lock")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._turn = open(path, "wb"), path
        except OSError:
            return False
        if Cache.patience > 0 and not self._lock():
            with Cache.waiting(self._function.__name__):
                while Cache.patience > 0 and not self._lock():
                    Cache.patience -= PAUSE
                    time.sleep(PAUSE)
        return True

    def _lock(self) -> bool:
        """Lock the file of this turn; False if another process has it. Without locks there is none to wait for."""
        try:
            fcntl.flock(self._turn[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
        Cache.patience = PATIENCE
        return True

    def end_turn(self) -> None:
        """Let other processes look for this function again."""
        turn, self._turn = self._turn, None
        if turn is not None:
            file, path = turn
            with file, suppress(OSError):
                path.unlink(missing_ok=True)
                fcntl.flock(file, fcntl.LOCK_UN)  # at once, also if a forked process has the file, too

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write machine code; warn if that fails."""
        if data.library.has_dynamic_globals or stamp.__wrapped__() != stamp():
            return  # it has addresses of this process, or a file was edited after its import
        packed = pack(data)
        if Cache.observer is not None:
            Cache.observer(self._key(sig), packed)
        directory = cache_directory()
        if directory is None:
            return
        path = self._path(directory, self._key(sig))
        partial = path.with_suffix(f".{uuid.uuid4().hex}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(_header() + seal(packed))
            os.replace(partial, path)
        except OSError as error:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            _tell_not_kept(f"cannot write to {path.parent} ({error.strerror or error})")

    def enable(self) -> None:
        """The cache is always on."""

    def disable(self) -> None:
        """The cache is always on."""

    def flush(self) -> None:
        """Files are replaced one by one."""

    def _key(self, sig: Any) -> str:
        """Names a function, the types of its arguments, and the constants that it captures."""
        arguments = ", ".join(map(str, sigutils.normalize_signature(sig)[0]))
        cells = tuple(cell.cell_contents for cell in self._function.__closure__ or ())
        captured = hashlib.sha256(serialize.dumps(cells)).hexdigest()[:16] if cells else ""
        return f"{self._name}:{self._function.__code__.co_firstlineno}({arguments}){captured}"

    def _path(self, directory: str, key: str) -> Path:
        digest = hashlib.sha256(f"{key} {_target()}".encode()).hexdigest()[:20]
        return Path(directory, f"{self._name}-{digest}.nbc")

    def _read(self, key: str) -> bytes | None:
        header = _header()
        for directory in _readable_directories():
            with suppress(OSError):
                data = self._path(directory, key).read_bytes()
                packed = unseal(data[len(header) :]) if data.startswith(header) else None
                if packed is not None:
                    return packed
        return None


@lru_cache
def _header() -> bytes:
    """The first bytes of each file, before its digest. Files that begin with other bytes are replaced."""
    return hashlib.sha256(stamp().encode()).digest()


@lru_cache
def _target() -> str:
    """The versions, processor and settings that this process compiles for and with: several may share a directory."""
    from numba.core.registry import cpu_target

    ask: Any = config
    versions = sys.implementation.cache_tag, numba.__version__, llvmlite.__version__
    return f"{versions} {cpu_target.target_context.codegen().magic_tuple()} {_settings(ask)} {ask.USING_SVML}"


@lru_cache
def cache_directory() -> str | None:
    """The cache directory: numba's, else a temporary directory of this user; None if there is no use for one.

    That is if none is writable, or if the loops are not files: then no process can tell which code belongs to them. The
    log says so.
    """
    return _writable_directory(loop_files())


def _writable_directory(loops: Sequence[Path]) -> str | None:
    path: str | None
    if not loops:
        _tell_not_kept(
            "runs without its source files, from a zip file or a frozen application",
            "Install it with pip, or unpack it with all its .py files.",
        )
        return None
    try:
        path = caching.CompileResultCacheImpl(pack).locator.get_cache_path()
    except RuntimeError:  # NUMBA_CACHE_DIR, the folder of this file and the user's cache are not writable
        path = _temporary_directory()
    if path is None:
        _tell_not_kept("found no directory that it can write to")
    return path


def _readable_directories() -> list[str]:
    """Where machine code may be found: the cache directory, and directories filled before they became read-only."""
    part = caching._CacheLocator.get_suitable_cache_subpath(__file__)
    given: Any = config.CACHE_DIR  # type: ignore[attr-defined]
    places = [
        cache_directory(),
        os.path.join(given, part) if given else None,
        str(Path(__file__).parent / "__pycache__"),
    ]
    return list(dict.fromkeys(place for place in places if place is not None))


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
        path = os.path.join(own, caching._CacheLocator.get_suitable_cache_subpath(__file__))
        os.makedirs(path, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError:
        return None
    return path


@lru_cache
def _tell_not_kept(
    reason: str, advice: str = "Set the environment variable NUMBA_CACHE_DIR to a writable directory."
) -> None:
    """Warn once that machine code is not cached, why, and what to do."""
    logging.getLogger("mercer").warning(
        "mercer %s: its loops are compiled anew in each process, which takes 2 to 15 s. %s", reason, advice
    )


def has_machine_code() -> bool:
    """Whether the cache on disk has any machine code."""
    directory = cache_directory()
    return directory is not None and any(Path(directory).glob("*.nbc"))
