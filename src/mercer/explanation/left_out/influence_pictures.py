"""Pictures of the most influential training samples: a bar chart, or a gallery of images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from mercer.display.canvas import GREY, axes, colour, pyplot
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Vector, count_samples, take_samples
from mercer.kernels.objects.graphs import Graph

if TYPE_CHECKING:
    from mercer.explanation.left_out.influences import Influence

# colours of samples that raise f, and that lower it
RAISES, LOWERS = colour(0), colour(5)
# most characters of a text as a label
WIDEST = 28
# pictures in a line of a gallery
COLUMNS = 6


def draw_influence(
    found: Influence,
    row: int,
    order: Vector,
    changes: Vector,
    function: int,
    image_shape: tuple[int, int] | None,
    labels: Any,
    ax: Any,
) -> Any:
    """Draw the changes of one row by these training samples; see ``Influence.plot``."""
    shown = changes != 0 if changes.any() else np.ones(len(changes), np.bool_)
    order, changes = order[shown], changes[shown]
    names = _names(found, order, labels, image_shape is None)
    name = found.functions[function]
    title = f"change of f{'' if name == 'f' else f' ({name})'} for row {row} when a training sample is left out"
    if image_shape is not None:
        return _gallery(found, row, order, changes, names, image_shape, title)
    figure, ax = axes(ax, (7.4, 0.9 + 0.32 * len(order)))
    places = np.arange(len(order))[::-1]
    ax.barh(places, changes, color=[_colour(change) for change in changes], height=0.7)
    ax.set_yticks(places, names)
    ax.axvline(0.0, color=GREY, linewidth=0.8)
    ax.set(xlabel="without the sample − with it", title=title)
    ax.title.set_fontsize("medium")
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def _colour(change: float) -> str:
    """A sample without which f is lower raises it."""
    return RAISES if change < 0 else LOWERS


def _names(found: Influence, order: Vector, labels: Any, describe: bool) -> list[str]:
    """The text beside the bar of each sample: its label, text or number, and its target."""
    if labels is not None:
        if len(labels) != found.values.shape[1]:
            raise InvalidInputError(
                f"{len(labels)} labels were given for {found.values.shape[1]} training samples: give one for each."
            )
        return [str(labels[i]) for i in order]
    samples, targets = list_samples(found.training, order), found.targets
    names = []
    for i, sample in zip(order.tolist(), samples, strict=True):
        told = f"  ({_number(np.asarray(targets)[i])})" if targets is not None else ""
        names.append(f"{i}{': ' + brief(sample) if describe and brief(sample) else ''}{told}")
    return names


def _number(target: Any) -> str:
    return f"{target:.4g}" if isinstance(target, float) and np.ndim(target) == 0 else str(target)


def list_samples(samples: Any, index: Vector) -> list[Any]:
    """Some of the samples, each as an object: a row of a matrix, a text, a graph."""
    taken = take_samples(samples if hasattr(samples, "shape") else list(samples), np.asarray(index, dtype=np.intp))
    if sp.issparse(taken):
        return list(taken.toarray())
    return list(taken.itertuples(index=False)) if hasattr(taken, "itertuples") else list(taken)


def brief(sample: Any) -> str:
    """A text in few characters, or the size of a graph; empty for vectors and other samples."""
    if isinstance(sample, str):
        text = sample.replace("\n", " ")
        return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"
    if isinstance(sample, Graph):
        return f"graph of {sample.n_nodes} nodes, {len(sample.edges)} edges"
    return ""


def _gallery(
    found: Influence, row: int, order: Vector, changes: Vector, names: list[str], shape: tuple[int, int], title: str
) -> Any:
    """The picture of the row, then those of the training samples, framed by the sign of their changes."""
    width = int(np.size(list_samples(found.training, order[:1])[0])) if count_samples(found.training) else 0
    if len(shape) != 2 or int(np.prod(shape)) != width:
        raise InvalidInputError(f"image_shape={shape!r} does not fit samples of {width} numbers.")
    pictures = [list_samples(found.rows, np.array([row]))[0], *list_samples(found.training, order)]
    lines = -(-len(pictures) // COLUMNS)
    columns = min(COLUMNS, len(pictures))
    figure, grid = pyplot().subplots(
        lines, columns, figsize=(1.35 * columns, 1.75 * lines + 0.4), layout="constrained", squeeze=False
    )
    for place in grid.ravel():
        place.set_axis_off()
    told = [f"row {row}"] + [f"{name}\n{change:+.3g}" for name, change in zip(names, changes, strict=True)]
    colours = ["black"] + [_colour(change) for change in changes]
    for place, picture, text, edge in zip(grid.ravel(), pictures, told, colours, strict=False):
        place.imshow(np.asarray(picture, dtype=np.float64).reshape(shape), cmap="gray_r")
        place.set_title(text, fontsize="small", color=edge)
        place.set_axis_on()
        place.set(xticks=[], yticks=[])
        for side in place.spines.values():
            side.set(color=edge, linewidth=2.5)
    figure.suptitle(title, fontsize="medium")
    return figure
