"""The python blocks of the tutorials run, one after the other, in an empty folder."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", ["tutorial_table", "tutorial_dna", "tutorial_certify"])
def test_tutorial_runs(name, tmp_path, monkeypatch):
    from mercer.cli import main

    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": name}
    for number, block in enumerate(BLOCK.findall((DOCS / f"{name}.md").read_text(encoding="utf-8"))):
        exec(compile(block, f"{name}.md, block {number}", "exec"), namespace)
        if name == "tutorial_table" and number == 0:  # the commands between the blocks, on a smaller grid
            quick = ["--grid", "3", "--judge", "none", "--quiet"]
            assert main(["fit", "flowers.csv", "--target", "species", "--model", "flowers.mercer", *quick]) == 0
