"""Row 40: each figure of the notes is drawn by one call, and the gallery shows it with its place in the notes."""

import importlib.util
from pathlib import Path

import matplotlib
import pytest

from mercer.display import figures

matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

DOCS = Path(__file__).parents[2] / "docs"
# bytes of a picture in the gallery
LARGEST = 60_000


def script():
    """docs/draw_gallery.py as a module."""
    spec = importlib.util.spec_from_file_location("draw_gallery", DOCS / "draw_gallery.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", figures.PLACES)
def test_40_every_figure(name):
    """One call without arguments gives a figure, whose picture is small and not empty."""
    figure = getattr(figures, name)()
    content = script().picture(figure)
    assert content.startswith(b"\x89PNG") and 3_000 < len(content) < LARGEST
    plt.close("all")


def test_40_the_gallery():
    """The page is the one that ``make gallery`` writes; each function has a place in the notes and a picture."""
    assert sorted(figures.PLACES) == figures.__all__
    assert all(place.startswith("[") for place in figures.PLACES.values())
    assert (DOCS / "gallery.md").read_text(encoding="utf-8") == script().page()
    pictures = {path.stem: path.stat().st_size for path in (DOCS / "gallery").glob("*.png")}
    assert set(pictures) == set(figures.PLACES) and max(pictures.values()) < LARGEST
