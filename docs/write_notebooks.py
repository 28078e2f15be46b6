"""Write the notebooks of docs/tutorials from the pages beside them: ``python docs/write_notebooks.py``.

A page is the only source of its notebook. A block marked ``python`` becomes a cell, and so do the commands of a block
marked ``console``; text between them becomes Markdown. A notebook prints and draws for itself.
"""

import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "tutorials"
FENCE = re.compile(r"^```(python|console|text)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"^!\[[^\]]*\]\(\.\./_static/[^)]*\)\n", re.MULTILINE)
KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
NEW_FOLDER = """import os
import tempfile

os.chdir(tempfile.mkdtemp())  # the files of this notebook go to a new folder
"""


def pages() -> list[Path]:
    """The tutorials: all pages of the folder but its table of contents."""
    return sorted(path for path in FOLDER.glob("*.md") if path.stem != "index")


def notebook(page: str) -> str:
    """The notebook of a page, as JSON without outputs."""
    cells: list[dict[str, Any]] = []
    end = 0
    for match in FENCE.finditer(page):
        _add(cells, "markdown", PICTURE.sub("", page[end : match.start()]))
        if len(cells) == 1:
            _add(cells, "code", NEW_FOLDER)
        end = match.end()
        if match[1] == "python":
            _add(cells, "code", match[2])
        elif match[1] == "console":
            commands = [line[2:] for line in match[2].splitlines() if line.startswith("$ ")]
            _add(cells, "code", "\n".join(f"%run -m {command}" for command in commands))
    _add(cells, "markdown", PICTURE.sub("", page[end:]))
    book = {"cells": cells, "metadata": KERNEL, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def _add(cells: list[dict[str, Any]], kind: str, text: str) -> None:
    """Append a cell, unless it is empty."""
    if not text.strip():
        return
    more = {"execution_count": None} if kind == "code" else {}
    output = {"outputs": []} if kind == "code" else {}
    cells.append(
        {
            "cell_type": kind,
            **more,
            "id": f"cell-{len(cells):02}",
            "metadata": {},
            **output,
            "source": text.strip("\n").splitlines(keepends=True),
        }
    )


def main() -> None:
    """Write all notebooks."""
    for path in pages():
        path.with_suffix(".ipynb").write_text(notebook(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
