"""The reference of the documentation site names everything that is public."""

import inspect
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import mercer

API = Path(__file__).parents[2] / "docs" / "api"
PARTS = (
    "mercer",
    "mercer.dask",
    "mercer.datasets",
    "mercer.display.figures",
    "mercer.exceptions",
    "mercer.io",
    "mercer.io.libsvm",
    "mercer.io.onnx",
    "mercer.io.source",
    "mercer.kernels",
    "mercer.losses",
    "mercer.problems",
    "mercer.report",
    "mercer.testing",
    "mercer.tests",
    "mercer.theory",
    "mercer.theory.bounds",
    "mercer.workflow",
)


def listed():
    """(module, name) of everything that the pages of the reference list, in order."""
    for page in sorted(API.glob("*.rst")):
        module = None
        for line in page.read_text(encoding="utf-8").splitlines():
            if found := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = found[1]
            elif module and re.fullmatch(r"   \w+", line):
                yield module, line.strip()


def test_no_public_name_is_missing():
    """Each name in the ``__all__`` of a public part has its page, under this or another of its addresses."""
    there = {id(getattr(import_module(module), name)) for module, name in listed()}
    for part in PARTS:
        module = import_module(part)
        values = {name: getattr(module, name) for name in module.__all__}
        # numbers and texts, and parts that are listed themselves, have no page
        documented = {name for name, value in values.items() if callable(value) and not isinstance(value, ModuleType)}
        assert {name for name in documented if id(values[name]) not in there} == set(), part


def test_names_are_listed_once():
    """Nothing has two pages, and nothing is listed that does not exist."""
    found = [getattr(import_module(module), name) for module, name in listed()]
    assert len(found) > 200
    assert len({id(value) for value in found}) == len(found)


# abstract or only raised: an example would show nothing that a reader would type
WITHOUT_EXAMPLE = {
    "ClusterError",
    "MercerError",
    "ModelFileError",
    "NearDiagonalWarning",
    "NotPositiveSemidefiniteWarning",
}


@pytest.mark.parametrize("name", [name for name in mercer.__all__ if name not in WITHOUT_EXAMPLE])
def test_every_name_has_an_example(name):
    """A reader can copy the use of a name from its docstring; the doctests run it."""
    assert ">>>" in (inspect.getdoc(getattr(mercer, name)) or "")
