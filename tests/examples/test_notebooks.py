"""The notebooks of the tutorials follow from the pages, are valid, carry no outputs, and their cells run in order."""

import importlib.util
import json
import re
import shlex
from pathlib import Path

import pytest

from mercer.cli import main

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOKS = sorted((DOCS / "tutorials").glob("*.ipynb"))


def writer():
    """docs/write_notebooks.py as a module."""
    spec = importlib.util.spec_from_file_location("write_notebooks", DOCS / "write_notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_tutorial_is_a_page_and_a_notebook():
    """Every notebook is that of a page, as `make notebooks` writes it; no page is without one."""
    write_notebooks = writer()
    pages = write_notebooks.pages()
    assert {page.stem for page in pages} == {"from_scikit_learn", "table", "dna", "certify"}
    assert [page.with_suffix(".ipynb") for page in pages] == NOTEBOOKS
    for page in pages:
        expected = write_notebooks.notebook(page.read_text(encoding="utf-8"))
        assert page.with_suffix(".ipynb").read_text(encoding="utf-8") == expected, f"{page.name}: run make notebooks"


def test_a_page_becomes_cells():
    """Text, code and commands of a page become cells; printed output and pictures of the site do not."""
    page = (
        "# Title\n\nWords.\n\n```python\nx = 1\nprint(x)\n```\n\n```text\n1\n```\n\n![A picture](../_static/a.png)\n\n"
        "More.\n\n```console\n$ mercer fit a.csv\n150 rows\n$ mercer predict a.mercer b.csv\n```\n"
    )
    cells = json.loads(writer().notebook(page))["cells"]
    found = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    assert "os.chdir" in found.pop(1)[1]
    assert found == [
        ("markdown", "# Title\n\nWords."),
        ("code", "x = 1\nprint(x)"),
        ("markdown", "More."),
        ("code", "%run -m mercer fit a.csv\n%run -m mercer predict a.mercer b.csv"),
    ]


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


def run_cell(source, name, namespace):
    """Run a cell as Jupyter does: lines "%run -m mercer ..." are commands, which must succeed; the rest is Python."""
    if not source.startswith("%run -m mercer "):
        exec(compile(source, name, "exec"), namespace)
        return
    for line in source.splitlines():
        assert line.startswith("%run -m mercer ")
        try:
            status = main(shlex.split(line.removeprefix("%run -m mercer "))) or 0
        except SystemExit as end:
            status = end.code or 0
        assert status == 0, f"{name}: {line} ended with status {status}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path, monkeypatch, capsys):
    """All code cells run in one namespace, leave the folder that they start in empty, and print something."""
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    (tmp_path / "start").mkdir()
    monkeypatch.chdir(tmp_path / "start")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    namespace = {"__name__": "__main__"}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            run_cell("".join(cell["source"]), f"{path.name}, {cell['id']}", namespace)
    plt.close("all")
    assert not list((tmp_path / "start").iterdir())
    assert capsys.readouterr().out.strip()
