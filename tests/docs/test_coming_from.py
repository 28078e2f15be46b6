"""The tables of names of other libraries name only what mercer has."""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import mercer
from mercer.cli import _parser
from mercer.cli.libsvm_tools import TOOLS

PAGES = sorted((Path(__file__).parents[2] / "docs" / "coming_from").glob("*.md"))
CODE = re.compile(r"`([^`]+)`")


def cells(page):
    """Every piece of code in the column of mercer's names."""
    for line in page.read_text(encoding="utf-8").splitlines():
        row = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(row) == 3 and row[1] != "mercer":
            yield from CODE.findall(row[1])


# names of methods that other libraries shorten in a way of their own
SHORT = {"specc": "SpectralClustering", "lssvm": "LSSVC", "gausspr": "GaussianProcessClassifier"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_is_said_to_be_missing_is_missing(page):
    """No method in a row "not in mercer" is a name of mercer, up to its first letter."""
    public = {name.lower() for name in (*mercer.__all__, *mercer.tests.__all__)}
    for line in page.read_text(encoding="utf-8").splitlines():
        if not line.startswith("| ") or "not in mercer" not in line:
            continue
        for code in CODE.findall(line.split(" | ")[0]):
            name = re.match(r"[\w-]*", code)[0].lower()
            assert not hasattr(mercer, SHORT.get(name, "-")), code
            # such as KernelPCA for kpca
            found = [one for one in public if len(name) > 3 and name[1:] in one]
            assert not found, f"{code}: mercer has {found}"


def resolve(path):
    """The object of a dotted name: a part of mercer, a public name or an attribute of a class."""
    first, *rest = path.split(".")
    if first == "mercer":
        module = import_module(".".join(path.split(".")[:-1]))
        return getattr(module, rest[-1])
    assert first in mercer.__all__, f"mercer has no {first}"
    found = getattr(mercer, first)
    for name in rest:
        # attributes of fitted models are known by the docstring of their class
        documented = re.search(rf"(^|[\s,]){re.escape(name)}\b", inspect.getdoc(found) or "")
        assert hasattr(found, name) or documented, f"{first} has no {name}"
        found = getattr(found, name, None)
    return found


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "index"], ids=lambda page: page.stem)
def test_every_name_and_parameter_exists(page):
    """Every entry in the column of mercer is a public name, with parameters that it takes, or a command."""
    found = list(cells(page))
    assert len(found) >= 15
    for code in found:
        words = code.split()
        if words[0] == "mercer" and len(words) > 1:
            commands = _parser()._subparsers._group_actions[0].choices
            assert words[1] in commands or words[1] in TOOLS, code
            continue
        tree = ast.parse(code, mode="eval").body
        if isinstance(tree, ast.Call):
            parameters = inspect.signature(resolve(ast.unparse(tree.func))).parameters
            assert {keyword.arg for keyword in tree.keywords} <= set(parameters), code
            # the values are accepted: an unknown text would be refused by fit
            eval(code, {name: getattr(mercer, name) for name in mercer.__all__})
        else:
            resolve(code)
