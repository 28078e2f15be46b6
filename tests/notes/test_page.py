"""docs/notes.md names only tests and public names that exist, and all tests of the notes."""

import ast
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import mercer

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "notes.md"
CELL = re.compile(r"(?<!\\)\|")  # a bar that is not \|
CODE = re.compile(r"`([^`]+)`")


def table(title):
    """The rows of the table below a heading, as lists of cells."""
    text = PAGE.read_text(encoding="utf-8").split(f"## {title}\n", 1)[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in CELL.split(line)[1:-1]] for line in lines[2:]]


def named_tests():
    return [
        name
        for title in ("The systems", "Slips of the notes")
        for row in table(title)
        for name in CODE.findall(row[-1])
    ]


def defined_tests():
    """file::test for every test in this folder, this file excepted."""
    found = set()
    for path in HERE.glob("test_*.py"):
        if path != Path(__file__):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                    found.add(f"{path.name}::{node.name}")
    return found


def public_names():
    return sorted(
        {name for row in table("The systems") for name in CODE.findall(row[4])} - {"mercer demo", "lipschitz"}
    )


def test_all_rows_are_there():
    """The systems in their order, without a gap; each has a test."""
    rows = table("The systems")
    numbers = [int(row[0]) for row in rows]
    assert numbers == sorted(set(numbers))
    assert numbers == list(range(1, 41))
    assert all(len(row) == 6 and row[3] for row in rows)
    for row in rows:
        if CODE.findall(row[5]):
            assert all(re.search(rf"::test_{int(row[0]):02d}_", name) for name in CODE.findall(row[5])), row[0]
            assert CODE.findall(row[4]), row[0]
        else:
            assert row[4] == "to come", row[0]


def test_all_slips_are_tested():
    """Each with its correction and a test."""
    rows = table("Slips of the notes")
    assert len(rows) == 16
    assert all(row[2] and CODE.findall(row[3]) for row in rows)


def test_the_tests_exist():
    """The page names exactly the tests that exist."""
    assert set(named_tests()) == defined_tests()


@pytest.fixture(scope="module")
def fitted():
    """A small model, which has the attributes that only fit makes."""
    X = np.array([[0.0], [1.0], [3.0], [4.0]])
    return mercer.SVC(kernel="linear", trace=True).fit(X, [0, 0, 1, 1])


@pytest.mark.parametrize("name", public_names())
def test_the_public_names_exist(name, fitted):
    """A name of mercer, or an attribute of one; those that end with _ are attributes of a fitted model."""
    for part in ("losses", "theory.bounds", "display.figures"):
        if name.startswith(f"{part}."):
            assert name.removeprefix(f"{part}.") in import_module(f"mercer.{part}").__all__
            return
    head, _, rest = name.partition(".")
    assert head in mercer.__all__
    found = getattr(mercer, head)
    if rest.endswith("_"):
        assert head == "SVC"
        found = fitted
    assert not rest or hasattr(found, rest)
