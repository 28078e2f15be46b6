"""The tutorial notebooks are valid, carry no outputs, and their cells run in order."""

import json
import re
import warnings
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_all_tutorials_are_there():
    """There is a notebook for each tutorial, and one for people who come from scikit-learn."""
    assert {book.stem for book in NOTEBOOKS} >= {"from_scikit_learn", "table", "dna", "certify"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_valid(path):
    """Format 4.5: every cell has an id of its own, code cells have neither outputs nor counts, a title comes first."""
    book = json.loads(path.read_text(encoding="utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) >= (4, 5) and book["nbformat"] == 4
    assert book["metadata"]["kernelspec"]["language"] == "python"
    ids = [cell["id"] for cell in book["cells"]]
    assert len(set(ids)) == len(ids) and all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in ids)
    for cell in book["cells"]:
        assert cell["cell_type"] in ("markdown", "code") and cell["metadata"] == {}
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
    assert "".join(book["cells"][0]["source"]).startswith("# ")
    assert path.stat().st_size < 20_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path, monkeypatch, capsys):
    """All code cells run in one namespace, from an empty folder which they leave empty, and print something."""
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path.parent))
    namespace = {"__name__": "__main__"}
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for cell in cells:
        if cell["cell_type"] == "code":
            with warnings.catch_warnings():
                # showing a figure needs a screen
                warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
                exec(compile("".join(cell["source"]), f"{path.name}, {cell['id']}", "exec"), namespace)
    plt.close("all")
    assert not list(tmp_path.iterdir())
    assert capsys.readouterr().out.strip()
