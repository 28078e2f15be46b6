"""Parts of a self-contained HTML page: escaped text, tables, embedded pictures."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1d2330; --soft: #5b6475; --line: #d8dde6; --accent: #0b5fa5;
        --up: #0b5fa5; --down: #b35900; --right: #e3f0fa; --wrong: #fdf0e0; --box: #f4f6f9; --warn: #9a5b00;
        --shadow: rgba(20, 30, 50, 0.28); }
@media screen and (prefers-color-scheme: dark) {
  :root { --page: #14171d; --ink: #e4e8ef; --soft: #a2abba; --line: #363d4a; --accent: #7cbcf0; --up: #7cbcf0;
          --down: #f0a75a; --right: #1d3a54; --wrong: #4a3419; --box: #1e232c; --warn: #f0a75a;
          --shadow: rgba(190, 205, 230, 0.35); }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1.2rem; color: var(--ink); background: var(--page);
       font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
h1, h2, h3, p, li, figcaption { overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0.4rem 0; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 0.6rem; border-bottom: 1px solid var(--line); padding-bottom: 0.2rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 0.3rem; }
p { margin: 0.5rem 0; max-width: 46rem; } .soft { color: var(--soft); }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: 0.7rem; margin: 1rem 0; }
.fact { border: 1px solid var(--line); border-radius: 8px; padding: 0.6rem 0.8rem; }
.fact b { display: block; font-size: 1.3rem; color: var(--accent); overflow-wrap: anywhere; }
.fact span { color: var(--soft); font-size: 0.85rem; }
/* a wide table scrolls within its box; a shadow at the edge shows that there is more */
.scroll { overflow-x: auto; max-width: 100%; margin: 0.6rem 0;
  background: linear-gradient(90deg, var(--page) 30%, transparent) left / 2rem 100% local no-repeat,
              linear-gradient(270deg, var(--page) 30%, transparent) right / 2rem 100% local no-repeat,
              linear-gradient(90deg, var(--shadow), transparent) left / 0.6rem 100% scroll no-repeat,
              linear-gradient(270deg, var(--shadow), transparent) right / 0.6rem 100% scroll no-repeat; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.92rem; }
th, td { padding: 0.25rem 0.7rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 7rem; }
td.right { background: var(--right); } td.wrong { background: var(--wrong); }
td.up { color: var(--up); } td.down { color: var(--down); }
td small { display: block; color: var(--soft); line-height: 1.3; max-width: 22rem; }
figure { margin: 1rem 0; min-width: 0; } figcaption { font-size: 0.9rem; margin-bottom: 0.4rem; }
figcaption b { display: block; } figcaption span { color: var(--soft); }
img { max-width: 100%; height: auto; background: #fff; border-radius: 6px; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(24rem, 100%), 1fr)); gap: 0 1.4rem; }
.plots.small { grid-template-columns: repeat(auto-fill, minmax(min(17rem, 100%), 1fr)); }
li { margin: 0.35rem 0; } .worry li { border-left: 3px solid var(--warn); padding-left: 0.6rem; list-style: none; }
.worry { padding-left: 0; }
pre { background: var(--box); border-radius: 8px; padding: 0.8rem; overflow-x: auto; font-size: 0.9rem; }
.bar { display: block; height: 0.7em; background: var(--accent); border-radius: 2px; min-width: 1px; }
.signed { display: block; position: relative; width: 8em; height: 0.8em; border-left: 0;
          background: linear-gradient(var(--line), var(--line)) center / 1px 100% no-repeat; }
.signed i { position: absolute; top: 0.05em; height: 0.7em; min-width: 1px; border-radius: 2px; }
.signed .up { left: 50%; background: var(--up); } .signed .down { right: 50%; background: var(--down); }
@media (max-width: 30rem) { body { padding: 0.9rem; } th, td { padding: 0.25rem 0.4rem; }
  th:first-child, td:first-child { min-width: 8.5rem; } td small { max-width: 11rem; }
  .bar, .signed { font-size: 0.8em; } }
@media print { body { max-width: none; padding: 0; font-size: 11pt; } figure, .fact, tr { break-inside: avoid; }
               h2, h3 { break-after: avoid; } .plots { grid-template-columns: 1fr 1fr; }
               .scroll { overflow: visible; } }
"""
# widths of pictures in inches, small enough for readable text on a phone, and dots per inch
WIDTH, SMALL_WIDTH, DPI = 5.2, 3.6, 190


def page(title: str, body: Iterable[str]) -> str:
    """Return the whole document."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def section(title: str, *parts: str) -> str:
    """Return a section with a heading."""
    return f"<section>\n<h2>{escape(title)}</h2>\n" + "\n".join(part for part in parts if part) + "\n</section>"


def paragraph(text: str, soft: bool = False) -> str:
    """Return a paragraph of escaped text."""
    return f"<p{' class=soft' if soft else ''}>{escape(text)}</p>"


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Return the boxes with the key numbers at the top of the page."""
    cells = "".join(
        f'<div class="fact"><b>{escape(value)}</b><span>{escape(name)}</span></div>' for name, value in pairs
    )
    return f'<div class="facts">{cells}</div>'


def heading(text: str) -> str:
    """Return a heading within a section."""
    return f"<h3>{escape(text)}</h3>"


def table(label: str, head: Sequence[str], rows: Iterable[Sequence[Any]], classes: Any = None) -> str:
    """Return a table in a box that scrolls sideways. ``classes(i, j)`` returns the CSS class of a cell, or ""."""
    lines = ["<tr>" + "".join(f'<th scope="col">{escape(str(cell))}</th>' for cell in head) + "</tr>"]
    for i, row in enumerate(rows):
        cells = []
        for j, cell in enumerate(row):
            name = classes(i, j) if classes else ""
            text = cell.text if isinstance(cell, Raw) else escape(str(cell))
            cells.append(f"<td{f' class={name}' if name else ''}>{text}</td>")
        lines.append("<tr>" + "".join(cells) + "</tr>")
    box = f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(label)}">'
    return box + "<table>" + "\n".join(lines) + "</table></div>"


class Raw:
    """A cell that is already HTML."""

    def __init__(self, text: str) -> None:
        self.text = text


def named(name: str, note: str = "") -> Raw:
    """Return a cell with a name and a small note below it."""
    return Raw(escape(name) + (f"<small>{escape(note)}</small>" if note else ""))


def bar(share: float) -> Raw:
    """Return a horizontal bar, at most 8 em wide."""
    return Raw(f'<span class="bar" style="width:{max(0.0, min(1.0, share)) * 8:.2f}em"></span>')


def signed_bar(share: float) -> Raw:
    """Return a bar from the middle to the right for a positive share, else to the left; the box is 8 em wide."""
    name, width = "up" if share > 0 else "down", 50 * min(1.0, abs(share))
    return Raw(f'<span class="signed"><i class="{name}" style="width:{width:.1f}%"></i></span>')


def bullets(items: Iterable[str], name: str = "") -> str:
    """Return a bulleted list."""
    inside = "".join(f"<li>{escape(item)}</li>" for item in items)
    return f"<ul{f' class={name}' if name else ''}>{inside}</ul>"


def code(text: str) -> str:
    """Return a block of code."""
    return f"<pre><code>{escape(text)}</code></pre>"


def figure(drawn: Any, title: str, text: str, alt: str, small: bool = False) -> str:
    """Embed a matplotlib figure under a title that tells what to look for. Closes the figure."""
    import matplotlib.pyplot as plt

    width, height = drawn.get_size_inches()
    shown = SMALL_WIDTH if small else WIDTH
    drawn.set_size_inches(shown, height * shown / width)
    data = io.BytesIO()
    drawn.savefig(data, format="png", dpi=DPI)
    plt.close(drawn)
    encoded = base64.b64encode(data.getvalue()).decode("ascii")
    more = f" <span>{escape(text)}</span>" if text else ""
    return (
        f"<figure><figcaption><b>{escape(title)}</b>{more}</figcaption>"
        f'<img alt="{escape(alt)}" src="data:image/png;base64,{encoded}"></figure>'
    )


def plots(figures: Iterable[str], small: bool = False) -> str:
    """Return pictures, side by side if there is room."""
    found = [one for one in figures if one]
    return f'<div class="plots{" small" if small else ""}">{"".join(found)}</div>' if found else ""
