"""Code that a wheel ships is used where the processor, numba and Python allow it, and compiled anew everywhere else."""

import json
import marshal
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import llvmlite
import numba
import numpy as np
import pytest

import mercer
from mercer._compiled import compile as compiling
from mercer._compiled import machine_code
from mercer._compiled.machine_code import (
    LEVELS,
    Shipped,
    choose,
    find_shipped,
    host_levels,
    levels_of,
    seal,
    unseal,
    write_shipped,
)

V2, V3 = LEVELS["x86_64"].values()
PACKAGE = Path(mercer.__file__).parent


class TestLevels:
    @pytest.mark.parametrize(
        ("machine", "features", "levels"),
        [
            ("x86_64", {*V2, *V3, "avx512f"}, ["x86-64-v2", "x86-64-v3"]),
            ("x86_64", {*V2, *V3} - {"fma"}, ["x86-64-v2"]),
            ("x86_64", {*V2, *V3} - {"avx"}, ["x86-64-v2"]),
            ("x86_64", {*V3}, []),
            ("x86_64", set(), []),
            ("aarch64", {"neon", "sve"}, ["generic"]),
            ("riscv64", {*V2, *V3}, []),
        ],
    )
    def test_a_level_needs_all_its_instructions(self, machine, features, levels):
        """And all those of the levels below it."""
        assert levels_of(machine, features.__contains__) == levels

    def test_llvm_knows_the_instructions(self):
        """A misspelt name would leave every processor without its level."""
        from llvmlite import binding

        if "x86" not in binding.get_process_triple():
            pytest.skip("another kind of processor")
        assert {*V2, *V3} <= set(binding.get_host_cpu_features())

    def test_a_processor_that_llvm_does_not_know(self):
        """It has no level, so everything is compiled."""

        def unknown():
            raise RuntimeError("failed to get host cpu features.")

        assert host_levels(unknown) == []


@pytest.fixture
def folder(tmp_path):
    """Code of two levels."""
    for level in ("x86-64-v2", "x86-64-v3"):
        write_shipped(tmp_path, level, {"f(int64)": level.encode(), "g(float64)": b"more"})
    return tmp_path


class TestChoice:
    def test_the_best_level(self, folder):
        """Of those that the processor has and that the package ships."""
        found = choose(folder, ["x86-64-v2", "x86-64-v3", "x86-64-v9"])
        assert found.level == "x86-64-v3" and found.find("f(int64)") == b"x86-64-v3" and found.find("h()") is None
        assert choose(folder, ["x86-64-v2"]).find("f(int64)") == b"x86-64-v2"
        assert choose(folder, []) is None

    def test_a_lower_level_on_request(self, folder):
        """A level that the processor does not have is never used, not even on request."""
        assert choose(folder, ["x86-64-v2", "x86-64-v3"], "x86-64-v2").level == "x86-64-v2"
        assert choose(folder, ["x86-64-v2"], "x86-64-v3") is None
        assert choose(folder, ["x86-64-v2", "x86-64-v3"], "none") is None

    def test_code_of_other_versions(self, folder):
        """Code of other loops, or of another numba, llvmlite or Python, is not used."""
        for path in folder.glob("*.index"):
            _, places = marshal.loads(unseal(path.read_bytes()))
            path.write_bytes(seal(marshal.dumps(("others", places))))
        assert choose(folder, ["x86-64-v2", "x86-64-v3"]) is None

    @pytest.mark.parametrize("damage", [b"", b"no index", "half", "one bit"])
    def test_a_damaged_index(self, folder, damage):
        """The level below serves."""
        path = folder / "x86-64-v3.index"
        whole = path.read_bytes()
        damaged = {"half": whole[:-9], "one bit": whole[:-1] + bytes([whole[-1] ^ 1])}
        path.write_bytes(damaged.get(damage, damage))
        assert choose(folder, ["x86-64-v2", "x86-64-v3"]).level == "x86-64-v2"


class TestSettings:
    @pytest.fixture
    def found(self, folder):
        """Finds code for a processor with AVX2, with these settings of numba besides its defaults."""
        usual = {"CPU_NAME": None, "CPU_FEATURES": None, "ENABLE_AVX": 1, "OPT": 3, "BOUNDSCHECK": None}
        usual |= {"DEBUGINFO_DEFAULT": 0, "DEBUG_JIT": 0, "LOOP_VECTORIZE": 1}

        def find(wanted=None, **settings):
            return find_shipped(folder, lambda: ["x86-64-v2", "x86-64-v3"], wanted, SimpleNamespace(**usual | settings))

        return find

    def test_a_processor_for_which_numba_avoids_avx(self, found):
        """Sandy and Ivy Bridge have no AVX2 either: they use the level without AVX."""
        assert found().level == "x86-64-v3"
        assert found(ENABLE_AVX=False).level == "x86-64-v2"

    @pytest.mark.parametrize("other", [{"LOOP_VECTORIZE": 0}, {"OPT": 2}, {"DEBUG_JIT": 1}, {"CPU_NAME": "generic"}])
    def test_other_settings_of_the_compiler(self, found, other):
        """They ask for other code than the package has."""
        assert found(**other) is None

    def test_a_misspelt_level(self, found):
        """It would turn shipped code off without a word."""
        message = (
            "The environment variable MERCER_MACHINE_CODE is 'x86_64-v2', but must be one of x86-64-v2, x86-64-v3, "
            "generic or none."
        )
        with pytest.raises(ValueError, match=re.escape(message)):
            found("x86_64-v2")

    def test_a_level_that_cannot_be_used(self, found, caplog):
        """It is known, but code for it is not shipped for this processor: the log says so."""
        assert found("generic") is None
        assert caplog.messages == [
            "MERCER_MACHINE_CODE=generic: this package has no such code for this processor: loops are compiled."
        ]

    def test_other_versions_have_files_of_their_own(self):
        """Two environments that share a cache would replace each other's files for ever."""
        assert numba.__version__ in machine_code._target() and llvmlite.__version__ in machine_code._target()


class TestUse:
    @pytest.fixture
    def doubled(self, tmp_path, monkeypatch):
        """Makes the same compiled function as if in a new process; `write` ships its code."""
        monkeypatch.setattr(machine_code, "cache_directory", lambda: None)
        functions = {}
        machine_code.Cache.observer = functions.__setitem__

        def make():
            @compiling.compiled()
            def double(x):
                return x * 2

            return double

        def ship():
            write_shipped(tmp_path, "some", functions)
            monkeypatch.setattr(machine_code, "shipped", lambda: Shipped(tmp_path, "some"))

        make.ship = ship
        yield make
        machine_code.Cache.observer = None

    def test_shipped_code_is_found(self, doubled):
        """Without any directory for a cache; other signatures are compiled."""
        assert doubled()(np.float64(3.0)) == 6.0
        doubled.ship()
        loop = doubled()
        assert loop(np.float64(3.0)) == 6.0 and sum(loop.stats.cache_hits.values()) == 1
        assert loop(np.int64(3)) == 6 and sum(loop.stats.cache_hits.values()) == 1

    @pytest.mark.parametrize("damage", [lambda whole: b"no code", lambda whole: whole[:-1] + bytes([whole[-1] ^ 4])])
    def test_damaged_code(self, doubled, tmp_path, damage):
        """It is compiled instead."""
        doubled()(np.float64(3.0))
        doubled.ship()
        path = tmp_path / "some.code"
        path.write_bytes(damage(path.read_bytes()))
        loop = doubled()
        assert loop(np.float64(3.0)) == 6.0 and sum(loop.stats.cache_hits.values()) == 0


WRITE = """
import sys
from pathlib import Path
from mercer._compiled import machine_code
from mercer.workflow.warm_jobs import warm

functions = {}
machine_code.Cache.observer = functions.__setitem__
warm("KernelCentroid float64")
machine_code.write_shipped(Path(sys.argv[1]), sys.argv[2], functions)
"""
FIT = """
import json
import numpy as np
from mercer import KernelCentroid
from mercer._compiled import machine_code
from mercer._compiled.compile import functions_compiled

X = np.random.default_rng(0).standard_normal((100, 10))
values = KernelCentroid().fit(X, X[:, 0] > 0).decision_function(X)
used = machine_code.shipped()
print(json.dumps([used and used.level, functions_compiled(), values.tolist()]))
"""


@pytest.mark.skipif("x86-64-v2" not in host_levels(), reason="needs a processor with the lowest level")
def test_a_package_with_machine_code(tmp_path):
    """Code for a lower level gives the same values; other settings, and no level, compile."""
    shutil.copytree(PACKAGE, tmp_path / "mercer", ignore=shutil.ignore_patterns("__pycache__", "_machine_code"))

    def run(script, *arguments, **more):
        environment = os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")} | more
        done = subprocess.run(
            [sys.executable, "-c", script, *map(str, arguments)],
            env=environment, capture_output=True, text=True, timeout=300, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout else None

    target = {"NUMBA_CPU_NAME": "x86-64-v2", "NUMBA_CPU_FEATURES": ""}
    run(WRITE, tmp_path / "mercer" / "_machine_code", "x86-64-v2", **target, NUMBA_CACHE_DIR=str(tmp_path / "build"))
    level, compiled, values = run(FIT)
    assert (level, compiled) == ("x86-64-v2", 0)
    level, compiled, native = run(FIT, MERCER_MACHINE_CODE="none")
    assert level is None and compiled > 0
    np.testing.assert_allclose(values, native, rtol=1e-9, atol=1e-12)
    assert run(FIT, NUMBA_CPU_NAME="x86-64")[0] is None
    assert run(FIT, NUMBA_ENABLE_AVX="0")[:2] == ["x86-64-v2", 0]  # numba's choice for Sandy and Ivy Bridge
