"""Pieces of a page that needs nothing but itself: escaped text, tables, pictures within the file."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

STYLE = """
:root { color-scheme: light; --ink: #1d2330; --soft: #5b6475; --line: #d8dde6; --accent: #0b5fa5; --warn: #9a5b00; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.2rem; color: var(--ink); background: #fff;
       font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0.4rem 0; }
h2 { font-size: 1.2rem; margin: 2rem 0 0.6rem; border-bottom: 1px solid var(--line); padding-bottom: 0.2rem; }
p { margin: 0.5rem 0; } .soft { color: var(--soft); }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: 0.7rem; margin: 1rem 0; }
.fact { border: 1px solid var(--line); border-radius: 8px; padding: 0.6rem 0.8rem; }
.fact b { display: block; font-size: 1.3rem; color: var(--accent); overflow-wrap: anywhere; }
.fact span { color: var(--soft); font-size: 0.85rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.92rem; }
th, td { padding: 0.25rem 0.7rem; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child, td:first-child { text-align: left; }
td.right { background: #e3f0fa; } td.wrong { background: #fdf0e0; }
figure { margin: 1rem 0; } figcaption { color: var(--soft); font-size: 0.88rem; }
img { max-width: 100%; height: auto; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); gap: 1rem; }
li { margin: 0.35rem 0; } .worry li { border-left: 3px solid var(--warn); padding-left: 0.6rem; list-style: none; }
.worry { padding-left: 0; }
pre { background: #f4f6f9; border-radius: 8px; padding: 0.8rem; overflow-x: auto; font-size: 0.9rem; }
.bar { display: block; height: 0.7em; background: var(--accent); border-radius: 2px; min-width: 1px; }
td small { display: block; color: var(--soft); line-height: 1.3; max-width: 22rem; overflow-wrap: anywhere; }
td:first-child { overflow-wrap: anywhere; min-width: 6rem; }
@media (max-width: 30rem) { th, td { padding: 0.25rem 0.4rem; } td small { max-width: 11rem; } }
@media print { body { max-width: none; padding: 0; font-size: 11pt; } figure, table, .fact { break-inside: avoid; }
               h2 { break-after: avoid; } .plots { grid-template-columns: 1fr 1fr; } }
"""


def page(title: str, body: Iterable[str]) -> str:
    """A whole document."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def section(title: str, *parts: str) -> str:
    """A heading and what belongs to it."""
    return f"<section>\n<h2>{escape(title)}</h2>\n" + "\n".join(part for part in parts if part) + "\n</section>"


def paragraph(text: str, soft: bool = False) -> str:
    """Text, escaped."""
    return f"<p{' class=soft' if soft else ''}>{escape(text)}</p>"


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Numbers that are seen first."""
    cells = "".join(
        f'<div class="fact"><b>{escape(value)}</b><span>{escape(name)}</span></div>' for name, value in pairs
    )
    return f'<div class="facts">{cells}</div>'


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], classes: Any = None) -> str:
    """Rows of cells; ``classes(i, j)`` may give a cell a class."""
    lines = ["<tr>" + "".join(f"<th>{escape(str(cell))}</th>" for cell in head) + "</tr>"]
    for i, row in enumerate(rows):
        cells = []
        for j, cell in enumerate(row):
            name = classes(i, j) if classes else ""
            text = cell.text if isinstance(cell, Raw) else escape(str(cell))
            cells.append(f"<td{f' class={name}' if name else ''}>{text}</td>")
        lines.append("<tr>" + "".join(cells) + "</tr>")
    return '<div class="scroll"><table>' + "\n".join(lines) + "</table></div>"


class Raw:
    """A cell that is markup already."""

    def __init__(self, text: str) -> None:
        self.text = text


def named(name: str, note: str = "") -> Raw:
    """A name, and a note below it in small letters."""
    return Raw(escape(name) + (f"<small>{escape(note)}</small>" if note else ""))


def bar(share: float) -> Raw:
    """A bar of up to eight characters' width."""
    return Raw(f'<span class="bar" style="width:{max(0.0, min(1.0, share)) * 8:.2f}em"></span>')


def bullets(items: Iterable[str], name: str = "") -> str:
    """A list."""
    inside = "".join(f"<li>{escape(item)}</li>" for item in items)
    return f"<ul{f' class={name}' if name else ''}>{inside}</ul>"


def code(text: str) -> str:
    """Lines to copy."""
    return f"<pre><code>{escape(text)}</code></pre>"


def figure(drawn: Any, caption: str) -> str:
    """A matplotlib figure within the page; it is closed."""
    import matplotlib.pyplot as plt

    data = io.BytesIO()
    drawn.savefig(data, format="png", dpi=130)
    plt.close(drawn)
    encoded = base64.b64encode(data.getvalue()).decode("ascii")
    text = escape(caption)
    return f'<figure><img alt="{text}" src="data:image/png;base64,{encoded}"><figcaption>{text}</figcaption></figure>'


def plots(figures: Iterable[str]) -> str:
    """Pictures side by side where there is room."""
    found = [one for one in figures if one]
    return f'<div class="plots">{"".join(found)}</div>' if found else ""
