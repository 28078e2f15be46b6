"""What `import mercer` offers."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import mercer
from mercer._compiled.thread_pool import cached_property


def test_parts_are_reached_by_their_names():
    """Nothing but the package was imported, and nothing heavy with it."""
    code = (
        "import sys, mercer; assert 'numba' not in sys.modules and 'sklearn' not in sys.modules; "
        "print(mercer.kernels.Gaussian(0.5), mercer.exceptions.MercerError.__name__)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["Gaussian(gamma=0.5)", "MercerError"]


def test_every_name_is_there():
    """Every name that completion shows leads to a module, a class, a function or a text."""
    kinds = (ModuleType, type, FunctionType, str)
    assert {name for name in dir(mercer) if not name.startswith("_")} >= set(mercer.__all__)
    for name in mercer.__all__:
        assert isinstance(getattr(mercer, name), kinds), name


def test_no_lock_for_computed_attributes():
    """A process that is forked while a thread holds the lock of a ``functools.cached_property`` would wait forever."""
    sources = Path(mercer.__file__).parent.rglob("*.py")
    found = [path for path in sources if re.search(r"functools.*\bcached_property", path.read_text(encoding="utf-8"))]
    assert [path.name for path in found] == ["thread_pool.py"]  # its docstring says why


def test_an_attribute_that_is_computed_once():
    """The first value stays, even if two threads compute it at once; on the class the attribute is itself."""

    class Sample:
        @cached_property
        def value(self):
            """Some value."""
            if not self.__dict__:
                self.__dict__["value"] = "that of a thread that was faster"
            return "this"

    sample = Sample()
    assert sample.value == sample.value == "that of a thread that was faster"
    assert Sample.value.__doc__ == "Some value."


def test_other_names_are_errors():
    """As of any module."""
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        mercer.nothing  # noqa: B018


def test_public_names_are_no_modules():
    """Functions, classes and exceptions; modules are parts. The former mercer.bounds still works."""
    assert not [name for name in mercer.__all__ if isinstance(getattr(mercer, name), ModuleType)]
    assert mercer.bounds is mercer.theory.bounds and mercer.bounds.compare is mercer.error_bounds


def private_imports(source):
    """A file's imports from scikit-learn's private modules and names, and from modules that some versions lack."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom | ast.Import):
            prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            for name in (prefix + alias.name for alias in node.names):
                if name.startswith("sklearn.") and ("._" in name or name.startswith("sklearn.callback")):
                    yield name


def test_private_names_of_sklearn_are_imported_in_one_file():
    """scikit-learn may move what begins with an underscore in any release; `_sklearn_compat` follows it."""
    root = Path(__file__).parents[1]
    files = [file for part in ("src", "tests", "benchmarks", "examples") for file in (root / part).rglob("*.py")]
    assert {file.name for file in files if any(private_imports(file.read_text()))} == {"_sklearn_compat.py"}


def test_private_imports_are_recognised():
    """On one line or several, of a private module or of a private name, within a function too."""
    found = private_imports(
        "import numpy, sklearn.svm._base\n"
        "from sklearn.utils._sparse import a\n"
        "from sklearn.utils import (\n    Bunch,\n    _b,\n)\n"
        "def f():\n    from sklearn.callback import ProgressBar\n"
        "from mercer.kernels import _d\n"
    )
    assert sorted(found) == [
        "sklearn.callback.ProgressBar", "sklearn.svm._base", "sklearn.utils._b", "sklearn.utils._sparse.a",
    ]  # fmt: skip


def test_the_tests_with_oldest_and_newest_dependencies_exist():
    """pytest runs nothing at all if one of the paths is missing."""
    root = Path(__file__).parents[1]
    paths = re.findall(r"^    (tests/\S+)$", (root / "tests/oldest_and_newest.sh").read_text(encoding="utf-8"), re.M)
    assert len(paths) > 10 and [path for path in paths if not (root / path).exists()] == []
