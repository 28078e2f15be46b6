"""The pages of the notes' systems run, check their numbers, draw, and name what docs/notes.md names."""

import json
import re
import runpy
from pathlib import Path

import matplotlib
import pytest
from matplotlib.axes import Axes

matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "systems"
PAGES = {int(path.stem.split("_")[1]): path for path in sorted(FOLDER.glob("plot_*.py"))}
LESSONS = ROOT / "src" / "mercer" / "studio" / "lessons"
# pages that take more than five seconds: all figures of the notes, which tests/notes/test_figures.py draws too
SLOW = {40}
CELL = re.compile(r"(?<!\\)\|")  # a bar that is not \|
CODE = re.compile(r"`([^`]+)`")


def test_pages_count_the_systems():
    """The changelog, the README and the site's pages speak of forty systems; there are as many scripts."""
    assert len(PAGES) == 40
    stated = {"CHANGELOG.md": "the 40 systems", "README.md": "forty pages", "docs/learn.md": "forty pages"}
    for page, words in {**stated, "docs/index.md": "Forty pages"}.items():
        assert words in " ".join((ROOT / page).read_text(encoding="utf-8").split()), page


def rows():
    """The rows of the systems in docs/notes.md: number, place in the notes, public names, tests."""
    text = (ROOT / "docs" / "notes.md").read_text(encoding="utf-8")
    lines = [line for line in text.split("## The systems\n", 1)[1].split("\n## ")[0].splitlines() if line[:1] == "|"]
    table = [[cell.strip() for cell in CELL.split(line)[1:-1]] for line in lines[2:]]
    return {int(row[0]): (row[2], CODE.findall(row[4]), CODE.findall(row[5])) for row in table}


def content(number):
    return PAGES[number].read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "number",
    [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in PAGES],
    ids=lambda n: PAGES[n].stem,
)
def test_page_runs(number, monkeypatch, capsys):
    """Each page runs without a warning, prints some numbers, and draws figures with something in them."""
    monkeypatch.delenv("DISPLAY", raising=False)  # without a screen plt.show() does nothing
    plt.close("all")
    runpy.run_path(str(PAGES[number]), run_name="__main__")
    drawn = [plt.figure(k) for k in plt.get_fignums()]
    assert drawn and all(any(ax.has_data() for ax in figure.findobj(Axes)) for figure in drawn)
    for figure in drawn:
        figure.draw_without_rendering()  # lays out all text: a missing character is a warning, so an error
    plt.close("all")
    printed = capsys.readouterr().out
    assert len(re.findall(r"\d", printed)) >= 5 and printed.count("\n") <= 25


def test_every_row_has_its_page():
    """The numbers of the pages are those of the rows, and a page's title begins with its number."""
    assert list(PAGES) == list(rows())
    assert len(list(FOLDER.glob("plot_*.py"))) == len(PAGES)
    for number in PAGES:
        assert re.match(rf'r"""\n{number}\. .+\n=+\n', content(number)), number


@pytest.mark.parametrize("number", PAGES, ids=lambda n: PAGES[n].stem)
def test_page_names_what_the_row_names(number):
    """Public names, tests and the letters of the notes; and it asserts what it states."""
    place, names, tests = rows()[number]
    text = content(number)
    for name in names:
        assert re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text.replace("mercer.", "")), name
    for name in tests:
        file, _, test = name.partition("::")
        assert f"tests/notes/{file}" in text and re.search(rf"\b{test}\b", text), name
    for letters in re.findall(r"\[[A-Z0-9]+\]", place):
        assert letters in text, letters
    assert text.count(".. math::") >= 1 or text.count(":math:") >= 3
    assert len(re.findall(r"^ *assert ", text, re.MULTILINE)) >= 2


def test_links_between_pages_exist():
    """Every page is linked from another one, and links only to pages that there are."""
    stems = {path.stem for path in PAGES.values()}
    linked = {number: set(re.findall(r":doc:`(\w+)`", content(number))) for number in PAGES}
    assert all(links and links <= stems - {PAGES[number].stem} for number, links in linked.items())
    assert set().union(*linked.values()) == stems


def test_lessons_exist():
    """A page names only lessons that mercer studio has."""
    if not LESSONS.is_dir():
        pytest.skip("mercer.studio is not here")
    known = {json.loads(path.read_text(encoding="utf-8"))["id"] for path in LESSONS.glob("*.json")}
    named = {
        lesson
        for number in PAGES
        for line in re.findall(r"^# :Studio: lessons? (.+) of ``mercer studio``$", content(number), re.MULTILINE)
        for lesson in re.findall(r"``([\w-]+)``", line)
    }
    assert named and named <= known
