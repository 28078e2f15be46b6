"""Reduce the calibration of a fitted classifier to two types of functions from decision values to probabilities.

Every map of `mercer.selection.calibration`, and LIBSVM's sigmoid, is a logistic or a piecewise linear function. The
exporters to ONNX, Python and C handle only these two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from mercer.estimators.kernel_logistic import KernelLogisticRegression
from mercer.estimators.prediction import SMALLEST
from mercer.estimators.svc import BaseSVC
from mercer.kernels.features import Matrix, Vector
from mercer.selection.calibration.class_probabilities import ADVANTAGE, Beta, Calibration, Isotonic, Scheme, Sigmoid
from mercer.selection.calibration.class_probabilities import SMALLEST as SMALLEST_POWER
from mercer.selection.calibration.venn_abers import VennAbers

__all__ = ["ADVANTAGE", "SMALLEST", "SMALLEST_POWER", "Logistic", "Pieces", "PlainProbabilities", "plain_probabilities"]


@dataclass(frozen=True)
class Logistic:
    """P = σ(a log s − b log(1 − s) + c) with s = σ(slope f + offset); s itself for a = b = 1 and c = 0."""

    slope: float
    offset: float
    a: float = 1.0
    b: float = 1.0
    c: float = 0.0

    @property
    def steepness(self) -> float:
        """A bound on its slope."""
        return 0.25 * abs(self.slope) * max(abs(self.a), abs(self.b))

    def __call__(self, f: Vector) -> Vector:
        z = self.slope * f + self.offset
        return np.asarray(expit(self.b * np.logaddexp(0.0, z) - self.a * np.logaddexp(0.0, -z) + self.c))


@dataclass(frozen=True, eq=False)
class Pieces:
    """P = base[i] + slope[i] (f − anchor[i]), where i is the number of thresholds < f plus the number ≤ f.

    i is even between two thresholds and odd at a threshold.
    """

    thresholds: Vector
    base: Vector
    slope: Vector
    anchor: Vector

    @property
    def steepness(self) -> float:
        """The largest slope of a piece."""
        return float(np.abs(self.slope).max(initial=0.0))

    def __call__(self, f: Vector) -> Vector:
        i = np.searchsorted(self.thresholds, f, side="left") + np.searchsorted(self.thresholds, f, side="right")
        return np.asarray(self.base[i] + self.slope[i] * (f - self.anchor[i]))


@dataclass(frozen=True, eq=False)
class PlainProbabilities:
    """How the values of all problems become class probabilities.

    Attributes
    ----------
    maps : for each problem, the probability of its positive class: the second of two classes; the class i of a pair
        (i, j); the own class of a machine against the rest.
    pairs : whether more than two classes are combined by pairwise coupling; else by division by their sum.
    power : with more than two classes, probabilities are raised to this power and divided by their sum.
    agree : whether probabilities are changed so that the predicted class has the largest.
    clipped : whether the probability of each problem is clipped to [SMALLEST, 1 − SMALLEST].
    softmax : whether the probabilities are the softmax of the values; then there are no maps.
    """

    maps: tuple[Logistic | Pieces, ...]
    pairs: bool
    power: float = 1.0
    agree: bool = True
    clipped: bool = False
    softmax: bool = False


def plain_probabilities(model: Any) -> PlainProbabilities | None:
    """Reduce the probabilities of a fitted classifier or search; None if it has none."""
    if isinstance(model, KernelLogisticRegression):
        several = len(model.classes_) > 2
        return PlainProbabilities(() if several else (Logistic(1.0, 0.0),), False, agree=False, softmax=several)
    calibration = getattr(model, "_calibration", None)
    if isinstance(calibration, Calibration):
        pairs = calibration.scheme is Scheme.PAIRS and calibration.n_classes > 2
        maps = tuple(_plain(one) for one in calibration.maps)
        power = calibration.power if calibration.n_classes > 2 else 1.0
        return PlainProbabilities(maps, pairs, power, clipped=pairs)
    if not isinstance(model, BaseSVC) or np.size(getattr(model, "_probA", ())) == 0:
        return None
    # with two classes, LIBSVM's positive class is the first one
    sign = 1.0 if len(model.classes_) == 2 else -1.0
    known = zip(model._probA.tolist(), model._probB.tolist(), strict=True)
    maps = tuple(Logistic(-A, sign * B) for A, B in known)
    return PlainProbabilities(maps, len(model.classes_) > 2, agree=False, clipped=True)


def _plain(one: Any) -> Logistic | Pieces:
    if isinstance(one, Sigmoid):
        return Logistic(one.slope, one.offset)
    if isinstance(one, Beta):
        return Logistic(one.sigmoid.slope, one.sigmoid.offset, one.a, one.b, one.c)
    if isinstance(one, Isotonic):
        x, p = one.knots, one.probabilities
        slope = np.diff(p) / np.diff(x)
        zero, between = np.zeros(1), slope
        return _without_repeats(
            x,
            _interleave(np.concatenate([p[:1], p]), p),
            _interleave(np.concatenate([zero, between, zero]), np.zeros(len(x))),
            _interleave(np.concatenate([x[:1], x]), x),
        )
    assert isinstance(one, VennAbers)
    x = one.scores
    middle = np.concatenate([x[:1] - 1.0, x[:-1] + 0.5 * np.diff(x), x[-1:] + 1.0])
    base = _interleave(one(middle), one(x))
    return _without_repeats(x, base, np.zeros(len(base)), np.zeros(len(base)))


def _interleave(even: Vector, odd: Vector) -> Vector:
    found = np.empty(len(even) + len(odd))
    found[::2], found[1::2] = even, odd
    return found


def _without_repeats(x: Vector, base: Vector, slope: Vector, anchor: Vector) -> Pieces:
    """Remove thresholds at which the function does not change."""
    flat: Matrix = np.column_stack(
        [slope[:-2:2] == 0, slope[2::2] == 0, base[:-2:2] == base[1::2], base[2::2] == base[1::2]]
    )
    kept = ~flat.all(axis=1)
    rows = np.concatenate(
        [[0], np.ravel(np.column_stack([2 * np.flatnonzero(kept) + 1, 2 * np.flatnonzero(kept) + 2]))]
    )
    return Pieces(x[kept], base[rows], slope[rows], anchor[rows])
