"""What `import mercer` offers."""

import subprocess
import sys

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
    """Those that completion shows can be used."""
    for name in dir(mercer):
        assert getattr(mercer, name) is not None


def test_other_names_are_errors():
    """As of any module."""
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        mercer.nothing  # noqa: B018
