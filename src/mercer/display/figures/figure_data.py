"""Small data sets of the figures, and rows of axes to draw them on."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.display.canvas import pyplot
from mercer.kernels.features import Matrix, Vector


def panels(rows: int, columns: int, width: float = 3.3, height: float = 3.0) -> tuple[Any, Any]:
    """A new figure and its axes, as a flat array."""
    figure, axes = pyplot().subplots(
        rows, columns, figsize=(width * columns, height * rows), layout="constrained", squeeze=False
    )
    return figure, axes.ravel()


def bare(ax: Any, legend: bool = False) -> None:
    """Remove labels of axes, ticks, and the legend, for which a small panel has no room. Edits the axes."""
    ax.set(xlabel="", ylabel="", xticks=[], yticks=[])
    if not legend and ax.get_legend() is not None:
        ax.get_legend().remove()


def clouds(n: int, distance: float, seed: int = 0) -> tuple[Matrix, Vector]:
    """Two classes of the plane, whose means are ``distance`` standard deviations apart."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1, -1)
    return rng.normal(size=(n, 2)) + 0.5 * distance * np.outer(y, [0.6, 0.8]), y


def separable(n: int = 24, gap: float = 0.5, seed: int = 3) -> tuple[Matrix, Vector]:
    """Two classes on either side of a line, at least ``gap`` away from it."""
    X, _ = clouds(n, 0.0, seed)
    y = np.where(X @ [0.6, 0.8] > 0, 1, -1)
    return X + gap * np.outer(y, [0.6, 0.8]), y


def moons(n: int = 120, noise: float = 0.25, seed: int = 0) -> tuple[Matrix, Vector]:
    """Two interleaving half circles."""
    rng = np.random.default_rng(seed)
    angle, y = rng.uniform(0.0, np.pi, n), np.where(np.arange(n) % 2 == 0, 1, -1)
    X = np.column_stack([y * np.cos(angle) + 0.5 * (y < 0) + 0.5, y * np.sin(angle) + 0.5 * (y < 0)])
    return X + noise * rng.normal(size=X.shape), y


def disc(n: int = 120, seed: int = 0) -> tuple[Matrix, Vector]:
    """A disc and the ring around it, which no line separates."""
    rng = np.random.default_rng(seed)
    angle, y = rng.uniform(0.0, 2 * np.pi, n), np.where(np.arange(n) % 2 == 0, 1, -1)
    radius = np.where(y > 0, 0.7 * np.sqrt(rng.uniform(size=n)), rng.uniform(1.0, 1.5, n))
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


def curve(n: int = 40, noise: float = 0.15, seed: int = 0) -> tuple[Matrix, Vector]:
    """A noisy sine."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0.0, 6.0, n))
    return x[:, None], np.sin(x) + noise * rng.normal(size=n)
