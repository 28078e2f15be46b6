"""Notebooks as pages: their text and code, and what their cells print and draw.

A notebook in docs/tutorials is run when the site is built, cell by cell in one namespace, as Jupyter would: what a cell
prints, the value of its last line and the figures that it leaves open follow the cell. An error stops the build.
"""

import ast
import contextlib
import io
import json
from pathlib import Path

from docutils import nodes
from myst_parser.sphinx_ import Parser as MystParser
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError


def run_cell(code: str, namespace: dict, name: str) -> str:
    """What a cell prints, and the value of its last line, if it is an expression."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    if code.rstrip().endswith(";"):
        tree.body, last = [*tree.body, *([last] if last else [])], None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(tree, name, "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
            if value is not None:
                print(repr(value))
    return out.getvalue()


def markdown(text: str, docname: str, folder: Path) -> str:
    """The page of a notebook; its figures are written to a folder."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    namespace: dict = {"__name__": "__main__"}
    parts = []
    for number, cell in enumerate(json.loads(text)["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code" and source.strip():
            name = f"{docname}, cell {number}"
            code = "\n".join("" if line.startswith("%") else line for line in source.splitlines())
            try:
                printed = run_cell(code, namespace, name)
            except Exception as error:
                raise ExtensionError(f"{name} fails: {type(error).__name__}: {error}") from error
            parts.append(f"```python\n{source}\n```")
            if printed.strip():
                parts.append(f"```text\n{printed.rstrip()}\n```")
            for figure in plt.get_fignums():
                file = f"{Path(docname).name}_{number}_{figure}.png"
                plt.figure(figure).savefig(folder / file, dpi=100, bbox_inches="tight")
                parts.append(f"![A figure drawn by the cell above.]({folder.name}/{file})")
            plt.close("all")
    return "\n\n".join(parts) + "\n"


class NotebookParser(MystParser):
    """Turns a notebook into Markdown and leaves the rest to MyST."""

    supported = ("ipynb",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        folder = Path(document["source"]).parent / "generated"
        super().parse(markdown(inputstring, document.settings.env.docname, folder), document)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add this extension to Sphinx."""
    app.add_source_suffix(".ipynb", "ipynb")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
