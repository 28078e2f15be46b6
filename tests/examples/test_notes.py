"""The pages of the lecture notes' examples and exercises run, check themselves, and are listed."""

import re
import runpy
from pathlib import Path

import pytest

from mercer import datasets

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "examples" / "notes").glob("*.py"))
INDEX = (ROOT / "docs" / "exercises.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_runs(page, capsys):
    """Each page computes what it states, asserts it, and prints it; its docstring says how to run it."""
    found = runpy.run_path(str(page))
    assert f"python examples/notes/{page.name}" in found["__doc__"]
    assert len(re.findall(r"^ +(assert|np\.testing\.assert)", page.read_text(encoding="utf-8"), re.MULTILINE)) >= 2
    found["main"]()
    assert len(re.findall(r"\d", capsys.readouterr().out)) >= 10


def test_every_exercise_has_a_page():
    """15.1 to 15.4 and 16.1 to 16.6."""
    exercises = {f"exercise_15_{k}" for k in range(1, 5)} | {f"exercise_16_{k}" for k in range(1, 7)}
    assert {page.stem for page in PAGES if page.stem.startswith("exercise_")} == exercises


def test_the_index_names_what_there_is():
    """docs/exercises.md names every page and every generated data set, and no others."""
    assert set(re.findall(r"examples/notes/(\w+\.py)\)", INDEX)) == {page.name for page in PAGES}
    made = {name for name in datasets.__all__ if name.startswith("make_")}
    assert set(re.findall(r"`(make_\w+)`", INDEX)) == made
    assert all((ROOT / "docs" / link).exists() for link in re.findall(r"\]\(([^)#]+)\)", INDEX))
