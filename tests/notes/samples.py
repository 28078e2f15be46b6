"""Small data sets that the tests of the notes share."""

import runpy
from pathlib import Path

import numpy as np

PAGES = Path(__file__).parents[2] / "examples" / "notes"


def page(name):
    """The functions of a page of examples/notes."""
    return runpy.run_path(str(PAGES / f"{name}.py"))


def separable(n=40, gap=0.3, seed=0):
    """Two classes in the plane on either side of a line through the origin, ``gap`` away from it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    normal = np.array([0.6, 0.8])
    y = np.where(X @ normal > 0, 1, -1)
    return X + gap * np.outer(y, normal), y


def overlapping(n=60, d=2, seed=0):
    """Two classes that no line separates."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1, -1)
    return rng.normal(size=(n, d)) + 0.7 * y[:, None], y


def hinge(y, f):
    """max(0, 1 − yf)."""
    return np.maximum(0.0, 1.0 - y * f)
