"""Pictures of explanations: bars and beeswarms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.display.canvas import GREY, axes, colour
from mercer.kernels.features import Vector

if TYPE_CHECKING:
    from mercer.explanation.explanation import Explanation

# functions with bars of their own; of more functions the mean is drawn
MOST_FUNCTIONS = 4
# half of the height of a feature's dots, and the columns in which they are counted
HEIGHT, BINS = 0.38, 60
# characters of a feature's name
CHARACTERS = 28


def draw_bars(found: Explanation, ax: Any, most: int, output: int | None) -> Any:
    """Draw the mean of |values| of each feature."""
    sizes = found.importance.reshape(len(found.feature_names), -1)
    names = found.output_names
    if output is not None:
        sizes, names = sizes[:, [output]], (names[output],)
    elif sizes.shape[1] > MOST_FUNCTIONS:
        sizes, names = sizes.mean(axis=1, keepdims=True), (f"mean over {sizes.shape[1]} functions",)
    order = _order(sizes.mean(axis=1), most)
    _, ax = axes(ax, (6.4, 1.0 + 0.3 * len(order)))
    height = 0.72 / sizes.shape[1]
    for k in range(sizes.shape[1]):
        place = np.arange(len(order)) + (k - 0.5 * (sizes.shape[1] - 1)) * height
        ax.barh(place, sizes[order, k], height=height, color=colour(k), label=names[k])
    _features(found, order, ax)
    ax.set_xlim(left=0.0)
    ax.set_xlabel(f"mean |Shapley value| over {len(found):,} row{'s' if len(found) > 1 else ''}")
    if sizes.shape[1] > 1:
        ax.legend(fontsize="small", loc="lower right")
    elif len(found.output_names) > 1 or output is not None:
        ax.set_title(names[0], fontsize="medium")
    return ax


def draw_beeswarm(found: Explanation, ax: Any, most: int, output: int | None) -> Any:
    """Draw a dot for each row and feature at its value, coloured by the value of the feature."""
    values = found.values if found.values.ndim == 2 else found.values[:, :, output]
    order = _order(np.abs(values).mean(axis=0), most)
    figure, ax = axes(ax, (7.0, 1.2 + 0.36 * len(order)))
    dots = None
    for place, j in enumerate(order):
        shade = _ranks(found.data[:, j])
        plain = {"color": GREY} if shade is None else {"c": shade, "cmap": "viridis", "vmin": 0.0, "vmax": 1.0}
        drawn = ax.scatter(values[:, j], place + _spread(values[:, j]), s=9, linewidths=0, **plain)
        dots = dots if shade is None else drawn
    ax.axvline(0.0, color=GREY, lw=0.8, zorder=0)
    _features(found, order, ax)
    favours = "f(x)" if found.output_names[output or 0] == "f(x)" else found.output_names[output or 0]
    ax.set_xlabel(f"Shapley value (to the right: in favour of {favours})" if favours != "f(x)" else "Shapley value")
    if dots is not None:
        bar = figure.colorbar(dots, ax=ax, ticks=[0.0, 1.0], aspect=30, pad=0.02)
        bar.ax.set_yticklabels(["low", "high"])
        bar.set_label("value of the feature", labelpad=-8)
        bar.outline.set_visible(False)
    return ax


def _order(size: Vector, most: int) -> Any:
    """The most important features, the first one last: axes count upwards."""
    return np.argsort(-size, kind="stable")[:most]


def _features(found: Explanation, order: Any, ax: Any) -> None:
    """Name the features at the axis, the first one at the top."""
    names = [found.feature_names[j] for j in order]
    ax.set_yticks(np.arange(len(order)), [n if len(n) <= CHARACTERS else n[: CHARACTERS - 1] + "…" for n in names])
    ax.set_ylim(len(order) - 0.4, -0.6)
    ax.spines[["top", "right"]].set_visible(False)


def _ranks(cells: Any) -> Vector | None:
    """Numbers as ranks between 0 and 1, so that outliers do not decide the colours; None for other cells."""
    try:
        numbers = np.asarray(cells, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    distinct, place = np.unique(numbers, return_inverse=True)
    return place / (len(distinct) - 1) if len(distinct) > 1 else np.full(len(numbers), 0.5)


def _spread(values: Vector) -> Vector:
    """Heights of dots: those of about the same value are stacked around the middle."""
    low, high = float(values.min()), float(values.max())
    bins = np.floor((values - low) / ((high - low) or 1.0) * BINS).astype(np.intp)
    heights, fullest = np.zeros(len(values)), 1
    for bin_ in np.unique(bins):
        inside = np.flatnonzero(bins == bin_)
        turn = np.arange(1, len(inside) + 1) // 2
        heights[inside] = np.where(np.arange(len(inside)) % 2, turn, -turn)
        fullest = max(fullest, int(turn.max()))
    return HEIGHT * heights / max(fullest, 8)
