"""Machine code is kept between processes where that is possible, and never prevents a fit."""

import ast
import errno
import functools
import os
import shutil
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import event
from numba.core.caching import NullCache

import mercer
from mercer._compiled import compile as compiling
from mercer._compiled import machine_code

PACKAGE = Path(mercer.__file__).parent
SCRIPT = """
import sys, tempfile
if len(sys.argv) > 1:
    tempfile.tempdir = sys.argv[1]
import numpy as np
from mercer._compiled.machine_code import cache_directory, has_machine_code
from mercer._compiled.sparse_tiles import squared_norms

before, out = has_machine_code(), np.empty(2)
squared_norms(np.array([0, 1, 3], np.int32), np.array([1.0, 2.0, 3.0]), out)
print(cache_directory(), before, out.tolist(), sum(squared_norms.stats.cache_hits.values()))
"""
SENTENCE = (
    "mercer found no directory that it can write to: its loops are compiled anew in each process, which takes 2 to "
    "15 s. Set the environment variable NUMBA_CACHE_DIR to a writable directory."
)
NO_FILES = (
    "mercer runs without its source files, from a zip file or a frozen application: its loops are compiled anew in "
    "each process, which takes 2 to 15 s. Install it with pip, or unpack it with all its .py files."
)


@pytest.fixture
def installed(tmp_path):
    """A copy of the package whose folders take no files, and an environment whose home takes none."""
    shutil.copytree(PACKAGE, tmp_path / "site" / "mercer", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "site" / "mercer" / "_compiled" / "__pycache__").write_text("a file in place of a folder")
    (tmp_path / "home").write_text("a file in place of a folder")
    (tmp_path / "temporary").mkdir()
    drop = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "TEMP", "TMP")
    environment = {name: value for name, value in os.environ.items() if name not in drop}
    environment |= {
        "PYTHONPATH": str(tmp_path / "site"), "HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "temporary"),
    }  # fmt: skip

    def run(*arguments, **more):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, *map(str, arguments)],
            env=environment | more, capture_output=True, text=True, timeout=300, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        directory, before, *values, hits = done.stdout.split()
        assert " ".join(values) == "[1.0, 13.0]"
        return directory, before == "True", int(hits), done.stderr

    return run


def own_directory(parent):
    return parent / (f"mercer-{os.getuid()}" if os.name == "posix" else "mercer")


class TestReadOnlyInstallation:
    def test_nothing_can_be_written(self, installed):
        """Loops are compiled in memory, and one sentence says so and names the remedy."""
        directory, before, hits, stderr = installed("/proc/nowhere")
        assert (directory, before, hits) == ("None", False, 0)
        assert stderr.count(SENTENCE) == 1

    def test_a_temporary_directory_of_the_user(self, installed, tmp_path):
        """Machine code is kept there, out of reach of other users, and the next process finds it."""
        directory, before, hits, stderr = installed()
        own = own_directory(tmp_path / "temporary")
        assert Path(directory).parent == own and stderr == ""
        assert stat.S_IMODE(own.stat().st_mode) == 0o700
        assert (before, hits) == (False, 0)
        assert installed()[1:3] == (True, 1)

    @pytest.mark.parametrize("what", ["writable by all", "link", "file"])
    def test_a_directory_that_others_may_have_made(self, installed, tmp_path, what):
        """Nothing is read from it, since others who can write to it could have their code run."""
        own = own_directory(tmp_path / "temporary")
        if what == "writable by all":
            own.mkdir()
            own.chmod(0o777)
        elif what == "link":
            (tmp_path / "elsewhere").mkdir()
            own.symlink_to(tmp_path / "elsewhere")
        else:
            own.write_text("")
        assert installed()[0] == "None"

    def test_the_remedy(self, installed, tmp_path):
        """NUMBA_CACHE_DIR is where machine code is kept if it is set."""
        directory, _, _, stderr = installed("/proc/nowhere", NUMBA_CACHE_DIR=str(tmp_path / "kept"))
        assert Path(directory).parent == tmp_path / "kept" and stderr == ""

    def test_a_zip_file(self, installed, tmp_path):
        """The package runs from it; one sentence says that no process can know which machine code belongs to it."""
        archive = shutil.make_archive(str(tmp_path / "mercer"), "zip", tmp_path / "site", "mercer")
        directory, before, hits, stderr = installed(PYTHONPATH=archive)
        assert (directory, before, hits) == ("None", False, 0)
        assert stderr.count(NO_FILES) == 1


@pytest.fixture
def doubled(tmp_path, monkeypatch):
    """Makes the same compiled function as if in a new process, with an empty directory for its machine code."""
    monkeypatch.setattr(machine_code, "cache_directory", lambda: str(tmp_path))
    machine_code._tell_not_kept.cache_clear()

    def make():
        @compiling.compiled()
        def double(x):
            return x * 2

        return double

    return make


class TestTroubleWithFiles:
    def test_machine_code_is_found_again(self, doubled):
        """The reference for what follows: the second process compiles nothing."""
        for hits in (0, 1):
            loop = doubled()
            assert loop(np.float64(3.0)) == 6.0
            assert sum(loop.stats.cache_hits.values()) == hits

    @pytest.mark.parametrize("damage", [b"", b"no pickle", "half"])
    def test_damaged_files(self, doubled, tmp_path, damage):
        """They are not used, and are written anew."""
        doubled()(np.float64(3.0))
        for path in tmp_path.glob("*.nbc"):
            whole = path.read_bytes()
            path.write_bytes(whole[: len(whole) // 2] if damage == "half" else damage)
        for hits in (0, 1):
            loop = doubled()
            assert loop(np.float64(3.0)) == 6.0
            assert sum(loop.stats.cache_hits.values()) == hits

    def test_flipped_bits_and_zeroed_pages(self, doubled, tmp_path):
        """Not one damaged byte is executed, wherever it is: it would crash the process, or compute wrong numbers."""
        doubled()(np.float64(3.0))
        (path,) = tmp_path.glob("*.nbc")
        whole = path.read_bytes()
        cache, signature = doubled()._cache, (numba.float64,)
        assert cache._read(cache._key(signature)) is not None
        for place in range(0, len(whole), 97):
            flipped = whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :]
            zeroed = whole[:place] + bytes(min(4096, len(whole) - place)) + whole[place + 4096 :]
            for damaged in {flipped, zeroed} - {whole}:
                path.write_bytes(damaged)
                assert cache._read(cache._key(signature)) is None
        loop = doubled()
        assert loop(np.float64(3.0)) == 6.0 and sum(loop.stats.cache_hits.values()) == 0
        loop = doubled()
        assert loop(np.float64(3.0)) == 6.0 and sum(loop.stats.cache_hits.values()) == 1  # it was replaced

    def test_a_missing_file(self, doubled, tmp_path):
        """Another process may have removed it."""
        doubled()(np.float64(3.0))
        for path in tmp_path.glob("*.nbc"):
            path.unlink()
        assert doubled()(np.float64(3.0)) == 6.0

    def test_the_code_of_other_types(self, doubled, tmp_path):
        """A file that has the code for other arguments, whatever its name says, is not used."""
        doubled()(np.float64(3.0))
        (double,) = tmp_path.glob("*.nbc")
        doubled()(np.float32(3.0))
        (single,) = set(tmp_path.glob("*.nbc")) - {double}
        shutil.copy(double, single)
        loop = doubled()
        assert loop(np.float32(3.0)) == 6.0 and sum(loop.stats.cache_hits.values()) == 0

    def test_a_directory_that_has_become_read_only(self, doubled, monkeypatch, tmp_path):
        """Its code is used, other code is written elsewhere: images of containers are filled when they are built."""
        part = machine_code.caching._CacheLocator.get_suitable_cache_subpath(machine_code.__file__)
        full = tmp_path / "image" / part
        full.mkdir(parents=True)
        doubled()(np.float64(3.0))
        for path in tmp_path.glob("*.nbc"):
            path.rename(full / path.name)
        monkeypatch.setattr(machine_code.config, "CACHE_DIR", str(tmp_path / "image"))
        loop = doubled()
        assert loop(np.float64(3.0)) == 6.0 and sum(loop.stats.cache_hits.values()) == 1

    def test_a_file_that_is_edited_after_its_import(self, doubled, monkeypatch, tmp_path):
        """The code of the old contents must not be found under the name of the new ones."""
        loop = doubled()
        stamps = iter("abcdef")
        stamp = functools.lru_cache(lambda: next(stamps))
        stamp()
        monkeypatch.setattr(machine_code, "stamp", stamp)
        assert loop(np.float64(3.0)) == 6.0 and list(tmp_path.glob("*.nbc")) == []

    def test_functions_of_others_are_not_announced(self, capsys):
        """Nor counted: a user's own compiled functions are none of mercer's."""
        before = compiling.functions_compiled()
        assert numba.njit(lambda x: x + 1)(1) == 2
        assert compiling.functions_compiled() == before and "mercer" not in capsys.readouterr().err

    def test_several_writers(self, doubled, tmp_path):
        """Each signature has a file of its own, which is replaced as a whole; nothing else is left behind."""
        with ThreadPoolExecutor(4) as pool:
            for value in pool.map(lambda kind: doubled()(kind(3)), [np.float64, np.float32, np.int64, np.float64] * 3):
                assert value == 6
        assert len(list(tmp_path.iterdir())) == len(list(tmp_path.glob("*.nbc"))) == 3

    @pytest.mark.parametrize("step", ["write_bytes", "replace"])
    def test_a_full_disk(self, doubled, monkeypatch, caplog, step, tmp_path):
        """The function works, and one sentence says that it is not kept."""

        def full(*args):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(*((Path, step) if step == "write_bytes" else (os, step)), full)
        loop = doubled()
        assert loop(np.float64(3.0)) == 6.0 and loop(np.float32(3.0)) == 6.0
        assert len(caplog.records) == 1
        assert "(No space left on device): its loops are compiled anew in each process" in caplog.text
        assert list(tmp_path.iterdir()) == []


class Press(event.Listener):
    """Presses Ctrl-C when numba begins and when it ends."""

    def on_start(self, event):
        signal.raise_signal(signal.SIGINT)

    def on_end(self, event):
        signal.raise_signal(signal.SIGINT)


# modules of numba that are half imported would stay so
PRESS_DURING_IMPORT = """
import signal, sys
from mercer import SVC

class Press:
    def find_spec(self, name, path=None, target=None):
        if name == "numba.core.types.misc":
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Press())
try:
    SVC().fit([[0.0], [1.0]], [0, 1])
except KeyboardInterrupt:
    print("KeyboardInterrupt", "numba.core.types.misc" in sys.modules)
print(SVC().fit([[0.0], [1.0]], [0, 1]).predict([[0.0], [1.0]]))
"""


@pytest.fixture
def default_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("default_handler")
class TestInterrupts:
    def test_after_compilation(self, doubled):
        """Ctrl-C while numba compiles is raised once the machine code is there and kept; then all is as before."""
        loop = doubled()
        with pytest.raises(KeyboardInterrupt), event.install_listener("numba:compile", Press()):
            loop(np.float64(3.0))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert loop(np.float64(3.0)) == 6.0 and len(loop.overloads) == 1
        again = doubled()
        assert again(np.float64(3.0)) == 6.0 and sum(again.stats.cache_hits.values()) == 1

    def test_every_press_counts(self, doubled):
        """The handler of the program receives each press, and none is lost."""
        presses = []
        signal.signal(signal.SIGINT, lambda number, frame: presses.append(number))
        with event.install_listener("numba:compile", Press()):
            assert doubled()(np.float64(3.0)) == 6.0
        assert presses == [signal.SIGINT, signal.SIGINT]

    def test_in_a_thread(self, doubled):
        """Only the main thread receives signals: other threads compile without a handler."""
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(doubled(), np.float64(3.0)).result() == 6.0

    def test_where_arrays_are_returned(self):
        """Only the first call of a function that returns arrays runs Python code, where Ctrl-C would be overlooked."""
        from mercer.kernels.objects._string_loops import gram_counts

        called = []
        for _ in range(2):
            called.clear()
            sys.setprofile(lambda frame, what, _: called.append(frame.f_code.co_name) if what == "call" else None)
            try:
                found = gram_counts(np.array([0, 0, 0], np.int32), np.array([0, 3]), 2, 2, 3)
            finally:
                sys.setprofile(None)
        assert found[2].tolist() == [2] and "_numba_unpickle" not in called

    def test_while_numba_is_imported(self, tmp_path):
        """Ctrl-C while the first fit imports numba is raised when numba is there: the next fit works."""
        done = subprocess.run(
            [sys.executable, "-c", PRESS_DURING_IMPORT], cwd=tmp_path, capture_output=True, text=True, timeout=300
        )
        assert done.stdout == "KeyboardInterrupt True\n[0 1]\n", done.stderr


def imported_modules(path):
    """The absolute names of the modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # `from package import module` names the module second
            yield from {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}


class TestSourceStamp:
    """Machine code is not used after any compiled function has changed: functions are compiled into each other."""

    def test_covers_every_compiled_function(self):
        """A module that imports the decorator or numba's intrinsics is in `_compiled` or is named `_..._loops.py`."""
        compiling_modules = {
            path
            for path in PACKAGE.rglob("*.py")
            if {"mercer._compiled.compile.compiled", "numba.extending"} & set(imported_modules(path))
        }
        assert compiling_modules and compiling_modules <= set(machine_code.loop_files())

    def test_covers_what_compiled_functions_import(self):
        """numba compiles the constants of other modules into them too."""
        covered = {
            ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in machine_code.loop_files()
        }
        for path in machine_code.loop_files():
            own = {name for name in imported_modules(path) if name.startswith("mercer.")}
            modules = {name for name in own if (PACKAGE.parent / name.replace(".", "/")).with_suffix(".py").exists()}
            assert modules <= covered, path

    def test_a_loop_file_outside_compiled_counts(self, tmp_path):
        """A `_loops.py` or `_..._loops.py` of any folder is found, other files are not."""
        for name in ("_compiled/compile.py", "linear/_loops.py", "a/b/_set_loops.py", "a/loops.py", "linear/model.py"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        found = [path.relative_to(tmp_path).as_posix() for path in machine_code.loop_files(tmp_path)]
        assert found == ["_compiled/compile.py", "a/b/_set_loops.py", "linear/_loops.py"]

    def test_one_cache_file_for_each_function(self, doubled, tmp_path):
        """Functions of the same name in modules of the same name do not share a cache file."""

        def double(x):
            return x * 2

        for folder in ("linear", "kernels"):
            double.__module__ = f"mercer.{folder}._loops"
            compiling.compiled()(double)(np.float64(3.0))
        assert len(list(tmp_path.glob("*.nbc"))) == 2

    def test_contents_count_and_times_do_not(self, tmp_path):
        """A copy of the package has the same stamp; a change of one character, or of a name, has another."""
        loops = tmp_path / "svm" / "_some_loops.py"
        for path in (tmp_path / "_compiled" / "tiles.py", loops):
            path.parent.mkdir(parents=True)
            path.write_text("SIZE = 3\n")

        def stamp():
            return machine_code.stamp.__wrapped__(tmp_path)

        first = stamp()
        os.utime(loops, (0, 0))
        assert stamp() == first
        loops.write_text("SIZE = 4\n")
        changed = stamp()
        loops.rename(loops.with_name("_other_loops.py"))
        assert len({first, changed, stamp()}) == 3


class TestParts:
    def test_python_cannot_call_them(self):
        """A function whose name begins with an underscore has no entry for Python, and says so."""
        from mercer._compiled.tiles import _dot

        with pytest.raises(TypeError, match="_dot is compiled as a part of its callers: call it from compiled code"):
            _dot(np.ones(2), np.ones(2))

    def test_functions_of_numba_that_they_share_with_others(self):
        """What numba compiles for a function of mercer, here np.zeros and max, serves functions of users as well."""
        from mercer.kernels.objects._string_loops import gram_counts

        fresh = compiling.compiled()(gram_counts.py_func)
        fresh._cache = NullCache()  # it is compiled here
        before = compiling.functions_compiled()
        assert fresh(np.array([0, 0, 0], np.int32), np.array([0, 3]), 2, 2, 3)[2].tolist() == [2]
        assert compiling.functions_compiled() == before + 1

        @numba.njit
        def theirs(n):
            table = np.zeros(n + 1, np.int32)
            table[n] = max(n, 7)
            return table

        assert theirs(2).tolist() == [0, 0, 7]
        with pytest.raises(ValueError, match="negative dimensions"):
            theirs(-3)

    @pytest.mark.skipif(not compiling._can_be_compact(), reason="this llvmlite cannot ask for short code")
    def test_compact_code_is_shorter(self):
        """``compact=True`` reaches LLVM, which then writes a loop once instead of several times."""
        source = "def {name}(values):\n    for i in range(values.shape[0]):\n        values[i] += 1.0\n"
        length = {}
        for compact in (False, True):
            made = {}
            exec(source.format(name=f"count_{compact}"), {"__name__": "mercer.made"}, made)
            fresh = compiling.compiled(compact=compact)(made[f"count_{compact}"])
            fresh._cache = NullCache()
            values = np.zeros(3, np.float32)
            fresh(values)
            assert values.tolist() == [1, 1, 1]
            (code,) = fresh.inspect_llvm().values()
            length[compact] = len(code)
        assert length[True] < 0.8 * length[False], length


def test_the_compiler_is_turned_off():
    """numba's own functions would not compile either: the message says what to do."""
    program = "from mercer import KernelCentroid\nKernelCentroid().fit([[0.0], [1.0]], [0, 1])"
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=100)
    assert done.stderr.splitlines()[-1] == (
        "RuntimeError: NUMBA_DISABLE_JIT=1 turns the compiler off, which mercer needs. Unset "
        "it; to debug functions of your own, call their py_func."
    )
