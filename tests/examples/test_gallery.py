"""Every script of the gallery runs, keeps what it asserts, and draws at least one figure."""

import ast
import runpy
import warnings
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "gallery"
SCRIPTS = sorted(FOLDER.glob("*/plot_*.py"))
# scripts that take more than two seconds of a processor: `make test` leaves them out
SLOW = {
    "plot_gaussian_process",
    "plot_kernel_learning",
    "plot_nested_evaluation",
    "plot_overfitting",
    "plot_proteins",
    "plot_texts",
    "plot_time_series",
}
# characters of a title that Sphinx may underline
SHORTEST, LONGEST = 5, 80


def cases():
    for script in SCRIPTS:
        yield pytest.param(script, id=script.stem, marks=pytest.mark.slow if script.stem in SLOW else ())


def test_the_changelog_counts_the_examples():
    """CHANGELOG.md states the number of scripts in the gallery."""
    text = (FOLDER.parents[1] / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"a gallery of {len(SCRIPTS)} examples" in " ".join(text.split())


def test_the_gallery_has_enough_examples():
    """There are 25 scripts or more, in folders with a header each, and no name is used twice."""
    names = [script.stem for script in SCRIPTS]
    assert len(names) >= 25 and len(set(names)) == len(names)
    assert set(names) >= SLOW
    for folder in {FOLDER, *(script.parent for script in SCRIPTS)}:
        lines = (folder / "GALLERY_HEADER.rst").read_text(encoding="utf-8").splitlines()
        assert set(lines[1]) <= set("=-") and len(lines[1]) == len(lines[0])


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_script_is_a_page(script):
    """A script begins with an underlined title, tells a story between its cells, and asserts what it claims."""
    text = script.read_text(encoding="utf-8")
    tree = ast.parse(text)
    title, underline, blank, first, *_ = ast.get_docstring(tree).splitlines()
    assert SHORTEST <= len(title) <= LONGEST and underline == "=" * len(title) and blank == "" and first
    assert text.count("\n# %%\n# ") >= 1
    assert any(isinstance(node, ast.Assert) for node in ast.walk(tree))


@pytest.mark.parametrize("script", list(cases()))
def test_script_draws(script, tmp_path, monkeypatch):
    """The script runs from an empty folder, which it leaves empty; its figures can be drawn and are not blank."""
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    plt.close("all")
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        # showing a figure needs a screen
        warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
        runpy.run_path(str(script), run_name="__main__")
    assert not list(tmp_path.iterdir())
    numbers = plt.get_fignums()
    assert numbers
    for number in numbers:
        figure = plt.figure(number)
        figure.canvas.draw()
        image = figure.canvas.buffer_rgba()
        assert len(bytes(image).replace(b"\xff", b"")) > 1000
    plt.close("all")
