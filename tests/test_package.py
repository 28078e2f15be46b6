"""What `import mercer` offers."""

import subprocess
import sys
from types import FunctionType, ModuleType

import pytest

import mercer


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


def test_other_names_are_errors():
    """As of any module."""
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        mercer.nothing  # noqa: B018


def test_public_names_are_no_modules():
    """Functions, classes and exceptions; modules are parts. The former mercer.bounds still works."""
    assert not [name for name in mercer.__all__ if isinstance(getattr(mercer, name), ModuleType)]
    assert mercer.bounds is mercer.theory.bounds and mercer.bounds.compare is mercer.error_bounds
