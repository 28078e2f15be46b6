"""Named point sets to begin with: each is a part of a state."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.random import Generator

from mercer.kernels.features import Matrix

# φ(x) = (1, x₁², x₂²)
DISC_KERNEL = "constant(1.0) + on(0, linear()) ** 2 + on(1, linear()) ** 2"

Partial = dict[str, Any]


def _labelled(X: Matrix, labels: Any) -> list[list[float | int]]:
    """Points [x, y, label] with three decimals."""
    return [[round(float(x), 3), round(float(y), 3), int(label)] for (x, y), label in zip(X, labels, strict=True)]


def _line(x: Any, y: Any) -> list[list[float | int]]:
    """Points [x, target, 0]."""
    return _labelled(np.column_stack([x, y]), np.zeros(len(x)))


def _disc(rng: Generator) -> Partial:
    # away from the circle of radius 1.2, so that φ(x) = (1, x₁², x₂²) separates with a margin
    radius = np.concatenate([1.0 * np.sqrt(rng.uniform(0, 1, 30)), np.sqrt(rng.uniform(1.45**2, 2.4**2, 50))])
    angle = rng.uniform(0, 2 * np.pi, 80)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return {"points": _labelled(X, radius < 1.2), "kernel": DISC_KERNEL, "C": 10.0}


def _xor(rng: Generator) -> Partial:
    centres = np.repeat([[1.2, 1.2], [-1.2, -1.2], [-1.2, 1.2], [1.2, -1.2]], 15, axis=0)
    return {
        "points": _labelled(centres + 0.45 * rng.normal(size=(60, 2)), np.repeat([0, 1], 30)),
        "kernel": "polynomial(degree=2, gamma=1.0, coef0=1.0)",
    }


def _moons(rng: Generator) -> Partial:
    angle = np.linspace(0, np.pi, 50)
    upper = np.column_stack([np.cos(angle) - 0.5, np.sin(angle) - 0.25])
    lower = np.column_stack([0.5 - np.cos(angle), 0.25 - np.sin(angle)])
    X = 1.6 * np.vstack([upper, lower]) + 0.2 * rng.normal(size=(100, 2))
    return {"points": _labelled(X, np.repeat([0, 1], 50)), "kernel": "gaussian(gamma=1.0)", "C": 10.0}


def _spirals(rng: Generator) -> Partial:
    turn = np.sqrt(np.linspace(0.02, 1, 90))
    arm = np.column_stack([turn * np.cos(3.5 * np.pi * turn), turn * np.sin(3.5 * np.pi * turn)])
    X = 2.6 * np.vstack([arm, -arm]) + 0.06 * rng.normal(size=(180, 2))
    return {"points": _labelled(X, np.repeat([0, 1], 90)), "kernel": "gaussian(gamma=4.0)", "C": 100.0}


def _outliers(rng: Generator) -> Partial:
    X = np.vstack(
        [rng.normal([-1.2, -0.6], 0.5, (25, 2)), rng.normal([1.2, 0.6], 0.5, (25, 2)), [[1.1, 0.1], [0.3, 1.5]]]
    )
    return {"points": _labelled(X, np.repeat([0, 1, 0], [25, 25, 2])), "kernel": "linear()", "C": 1.0}


def _two_points(rng: Generator) -> Partial:
    return {"points": [[-1.0, -0.5, 0], [1.0, 0.5, 1]], "kernel": "linear()", "C": "inf"}


def _separable(rng: Generator) -> Partial:
    normal = np.array([1.0, 0.7]) / np.hypot(1.0, 0.7)
    X = rng.uniform(-2.6, 2.6, (400, 2))
    distance = X @ normal - 0.1
    chosen = np.flatnonzero(np.abs(distance) > 0.45)[:50]
    return {"points": _labelled(X[chosen], distance[chosen] > 0), "kernel": "linear()", "C": "inf"}


def _three_classes(rng: Generator) -> Partial:
    centres = np.repeat([[0.0, 1.4], [-1.3, -0.8], [1.3, -0.8]], 25, axis=0)
    return {
        "points": _labelled(centres + 0.6 * rng.normal(size=(75, 2)), np.repeat([0, 1, 2], 25)),
        "kernel": "gaussian(gamma=0.5)",
    }


def _blobs(rng: Generator) -> Partial:
    centres = np.repeat([[-0.9, -0.5], [0.9, 0.5]], 60, axis=0)
    return {
        "points": _labelled(centres + 0.8 * rng.normal(size=(120, 2)), np.repeat([0, 1], 60)),
        "kernel": "linear()",
    }


def _sine(rng: Generator) -> Partial:
    x = np.sort(rng.uniform(-2.8, 2.8, 40))
    return {
        "mode": "regress",
        "points": _line(x, 1.5 * np.sin(2 * x) + 0.2 * rng.normal(size=40)),
        "kernel": "gaussian(gamma=1.0)",
        "C": 10.0,
        "epsilon": 0.3,
    }


def _step(rng: Generator) -> Partial:
    x = np.sort(rng.uniform(-2.8, 2.8, 40))
    return {
        "mode": "regress",
        "points": _line(x, np.where(x > 0, 1.0, -1.0) + 0.1 * rng.normal(size=40)),
        "kernel": "gaussian(gamma=2.0)",
        "C": 10.0,
        "epsilon": 0.2,
    }


def _outlier_line(rng: Generator) -> Partial:
    x = np.linspace(-2.5, 2.5, 20)
    y = 0.6 * x + 0.1 * rng.normal(size=20)
    y[[3, 16]] = 2.4, -2.2
    return {"mode": "regress", "points": _line(x, y), "kernel": "linear()", "C": 1.0, "epsilon": 0.2}


def _ring(rng: Generator) -> Partial:
    angle, radius = rng.uniform(0, 2 * np.pi, 80), rng.normal(1.7, 0.18, 80)
    X = np.vstack(
        [np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), [[0.0, 0.1], [2.6, 2.5], [-2.5, 2.4]]]
    )
    return {
        "mode": "one_class",
        "points": _labelled(X, np.zeros(83)),
        "kernel": "gaussian(gamma=1.0)",
        "nu": 0.15,
    }


def _heteroscedastic(rng: Generator) -> Partial:
    x = np.sort(rng.uniform(-2.8, 2.8, 120))
    return {
        "mode": "quantiles",
        "points": _line(x, 0.4 * x + (0.15 + 0.2 * (x + 2.8) / 2) * rng.normal(size=120)),
        "kernel": "gaussian(gamma=0.2)",
        "C": 5.0,
        "quantiles": [0.1, 0.5, 0.9],
    }


def _gaps(rng: Generator) -> Partial:
    x = np.sort(np.concatenate([rng.uniform(-2.8, -1.4, 9), rng.uniform(0.2, 0.9, 5), rng.uniform(2.0, 2.6, 4)]))
    return {
        "mode": "process",
        "points": _line(x, np.sin(2 * x) + 0.1 * rng.normal(size=len(x))),
        "kernel": "gaussian(gamma=1.0)",
        "noise": 0.1,
    }


_PRESETS: dict[str, tuple[str, str, Callable[[Generator], Partial]]] = {
    "disc": ("Disc", "A disc inside a ring: φ(x) = (1, x₁², x₂²) makes it linear.", _disc),
    "xor": ("XOR", "Four clouds; no line separates opposite corners.", _xor),
    "moons": ("Moons", "Two crescents that reach into each other.", _moons),
    "spirals": ("Spirals", "Two arms: only a narrow kernel follows them.", _spirals),
    "outliers": ("Outliers", "Two clouds and two points on the wrong side: what does C do?", _outliers),
    "two_points": ("Two points", "The smallest machine: both points are support vectors.", _two_points),
    "separable": ("Separable", "Separable with a margin: the hard margin exists.", _separable),
    "three_classes": ("Three classes", "Three clouds: a machine for each pair of classes.", _three_classes),
    "blobs": ("Blobs", "Two clouds that overlap.", _blobs),
    "sine": ("Sine", "Regression: a wave with noise in a tube of width 2ε.", _sine),
    "step": ("Step", "Regression: a jump that a smooth function cannot follow.", _step),
    "outlier_line": ("Line with outliers", "Regression: two outliers hardly move the line.", _outlier_line),
    "ring": ("Ring", "One class: the region that holds most points, and three strangers.", _ring),
    "heteroscedastic": ("Growing noise", "Quantiles: the spread grows with x.", _heteroscedastic),
    "gaps": ("Gaps", "Gaussian process: the band widens where no points are.", _gaps),
}  # fmt: skip


@cache
def _built() -> list[dict[str, Any]]:
    found = []
    for k, (name, (title, about, build)) in enumerate(_PRESETS.items()):
        state = {"mode": "classify", "view": [-3.0, 3.0, -3.0, 3.0], **build(np.random.default_rng(k))}
        found.append({"name": name, "title": title, "about": about, "state": state})
    return found


def all_presets() -> list[dict[str, Any]]:
    """All presets, the same in every run."""
    return _built()
