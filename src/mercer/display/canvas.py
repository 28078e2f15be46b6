"""Shared parts of all pictures: axes, and colours that people with any colour vision can distinguish."""

from __future__ import annotations

from typing import Any

from mercer.estimators.fitted_models import unwrap
from mercer.exceptions import MissingExtraError

# Okabe and Ito's palette, without colours that are hard to see on white
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f7f7f", "#b8a900")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
CHOSEN = "#c0392b"
GREY = "#666666"


def pyplot() -> Any:
    """Import matplotlib.pyplot; raise `MissingExtraError` if it is not installed."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtraError("The picture", package="matplotlib", extra="report") from None
    return plt


def axes(ax: Any, size: tuple[float, float] = (6.4, 4.4)) -> tuple[Any, Any]:
    """Return the figure and the axes to draw on: the given axes, or new ones."""
    if ax is not None:
        pyplot()
        return ax.figure, ax
    figure, ax = pyplot().subplots(figsize=size, layout="constrained")
    return figure, ax


def colour(number: int) -> str:
    """Return the colour of a class or a line."""
    return COLOURS[number % len(COLOURS)]


def marker(number: int) -> str:
    """Return the marker of a class, so that classes do not differ by colour alone."""
    return MARKERS[number % len(MARKERS)]


def machine_of(estimator: Any) -> Any:
    """Return the machine inside a pipeline or a search."""
    return unwrap(estimator).machine
