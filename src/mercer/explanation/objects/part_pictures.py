"""Pictures of the contributions of parts: letters and nodes in colours, bars of parts, coloured text for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from mercer.display.canvas import GREY, pyplot
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix, Vector
from mercer.kernels.objects.graphs import Graph, as_graphs

if TYPE_CHECKING:
    from mercer.explanation.objects.parts_of_objects import Contributions

# raises f, lowers f: blue and vermillion of Okabe and Ito's palette
RAISES, LOWERS = np.array([0x00, 0x72, 0xB2]) / 255, np.array([0xD5, 0x5E, 0x00]) / 255
# letters in a line
LETTERS = 60


def draw_parts(found: Contributions, row: int, k: int, function: int) -> Any:
    """Draw one sample and its parts; see ``Contributions.plot``."""
    top = found.top(row, k, function)
    places = _places(found, row, function)
    sample = found.leaves[0].samples[row] if places is not None else None
    name = found.functions[function]
    title = f"sample {row}: f = {found.decision_function[row, function]:+.3g}{'' if name == 'f' else f'  ({name})'}"
    height = 0.9 + 0.3 * max(1, len(top))
    if places is None:
        figure, bars = pyplot().subplots(figsize=(6.4, height), layout="constrained")
    elif isinstance(sample, str):
        lines = max(1, -(-len(sample) // LETTERS))
        figure, (above, bars) = pyplot().subplots(
            2, 1, figsize=(9.0, height + 0.5 * lines + 0.3), layout="constrained",
            height_ratios=[0.5 * lines + 0.2, height],
        )  # fmt: skip
        _letters(above, sample, places)
    else:
        figure, (left, bars) = pyplot().subplots(1, 2, figsize=(9.6, max(3.4, height)), layout="constrained")
        (graph,) = as_graphs([sample])
        _graph(left, graph, places)
    _bars(bars, top)
    figure.suptitle(title, fontsize="medium")
    return figure


def _places(found: Contributions, row: int, function: int) -> Vector | None:
    try:
        return found.by_place(row, function)
    except InvalidInputError:
        return None


def _bars(ax: Any, top: list[tuple[str, float]]) -> None:
    places = np.arange(len(top))[::-1]
    values = [value for _, value in top]
    ax.barh(places, values, color=[RAISES if value > 0 else LOWERS for value in values], height=0.7)
    ax.set_yticks(places, [part for part, _ in top], family="monospace")
    ax.axvline(0.0, color=GREY, linewidth=0.8)
    ax.set_xlabel("contribution to f")
    ax.spines[["top", "right"]].set_visible(False)


def shades(values: Vector) -> Matrix:
    """A colour for each value: white for 0, full blue or vermillion for the largest |value|."""
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    strength = (np.abs(values) / largest)[:, None]
    return 1.0 - strength * (1.0 - np.where(values[:, None] > 0, RAISES, LOWERS))


def _dark(colour: Vector) -> bool:
    """Whether white letters are easier to read on this colour than black ones."""
    return bool(colour @ [0.299, 0.587, 0.114] < 0.5)


def _letters(ax: Any, text: str, values: Vector) -> None:
    colours = shades(values)
    for p, letter in enumerate(text):
        x, y = p % LETTERS, -(p // LETTERS)
        ax.add_patch(pyplot().Rectangle((x - 0.5, y - 0.42), 1.0, 0.84, color=colours[p], linewidth=0))
        ink = "white" if _dark(colours[p]) else "black"
        ax.text(x, y, letter, ha="center", va="center", family="monospace", color=ink, fontsize=9)
        if p % 10 == 0:
            ax.text(x, y + 0.48, str(p), ha="center", va="bottom", color=GREY, fontsize=6)
    ax.set(xlim=(-1, min(LETTERS, max(1, len(text)))), ylim=(-((len(text) - 1) // LETTERS) - 0.6, 0.9))
    ax.set_axis_off()


def _graph(ax: Any, graph: Graph, values: Vector) -> None:
    at = _layout(graph)
    for u, v in graph.edges.tolist():
        ax.plot(*at[[u, v]].T, color=GREY, linewidth=1.2, zorder=1)
    colours = shades(values)
    ax.scatter(*at.T, s=220, c=colours, edgecolors=GREY, zorder=2)
    for node in range(graph.n_nodes):
        label = None if graph.node_labels is None else graph.node_labels[node]
        ink = "white" if _dark(colours[node]) else "black"
        ax.text(*at[node], "" if label is None else str(label), ha="center", va="center", color=ink, fontsize=8)
    ax.margins(0.12)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_axis_off()


def _layout(graph: Graph) -> Matrix:
    """Places in the plane whose distances are near those in the graph: classical scaling, then stress majorisation."""
    n = graph.n_nodes
    ends = graph.edges.reshape(-1, 2)
    links = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n)).tocsr()
    D = shortest_path(links, directed=False, unweighted=True)
    finite = D[np.isfinite(D)]
    D[~np.isfinite(D)] = 1.5 * (float(finite.max(initial=1.0)) or 1.0)
    centring = np.eye(n) - 1.0 / max(1, n)
    eigenvalues, vectors = np.linalg.eigh(-0.5 * centring @ D**2 @ centring)
    last = np.argsort(-eigenvalues)[:2]
    at = np.zeros((n, 2))
    at[:, : len(last)] = vectors[:, last] * np.sqrt(np.maximum(eigenvalues[last], 0.0))
    # equal places would stay together
    at += 1e-3 * np.column_stack([np.cos(np.arange(n)), np.sin(np.arange(n))])
    W = np.divide(1.0, D**2, out=np.zeros_like(D), where=D > 0)
    total = np.maximum(W.sum(axis=1, keepdims=True), 1e-12)
    for _ in range(100):
        gaps = at[:, None] - at[None]
        lengths = np.maximum(np.linalg.norm(gaps, axis=2), 1e-9)
        at = (W[..., None] * (at[None] + gaps * (D / lengths)[..., None])).sum(axis=1) / total
    return at


def coloured_html(found: Contributions, most: int) -> str:
    """The first samples with their letters in colours; the text of ``repr`` if the samples are no strings."""
    lines = []
    for row in range(min(most, len(found))):
        places, sample = _places(found, row, 0), found.leaves[0].samples[row]
        if places is None or not isinstance(sample, str):
            return f"<pre>{escape(repr(found))}</pre>"
        letters = "".join(
            f'<span style="background:rgb({r:.0f},{g:.0f},{b:.0f});color:{"#fff" if _dark(c) else "#000"}">'
            f"{escape(letter)}</span>"
            for letter, c, (r, g, b) in zip(sample, shades(places), 255 * shades(places), strict=True)
        )
        value = found.decision_function[row, 0]
        lines.append(f"<div>{value:+.3g}&ensp;<code>{letters}</code></div>")
    return "\n".join(lines)
