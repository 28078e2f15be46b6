"""Inductive Venn–Abers predictors: probability intervals that are calibrated by construction.

The new sample is added to the held-out scores once with label 0 and once with label 1; each isotonic regression gives
one end of the interval. Vovk & Petej, "Venn–Abers predictors", UAI (2014); Vovk, Petej & Fedorova,
"Large-scale probabilistic predictors with and without guarantees of validity", NeurIPS (2015).

Isotonic regression is the slope of the lower convex hull of the cumulative sums (Σ weight, Σ weight · label) in the
order of the scores. An added sample moves all later points by (1, label). Its fitted value is the slope of the common
tangent of the hull of the points before it and the hull of the points after it. Both hulls are precomputed for every
position, so no regression is fitted again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.features import Matrix, Vector

Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class VennAbers:
    """Gives the interval of P(positive) for each score.

    Attributes
    ----------
    scores : the distinct held-out scores, ascending.
    weights, positives : cumulative sums of all weights and of the weights of positive samples, beginning with 0.
    before, after : for each point, its neighbour on the hull of the points up to it, and of the points from it on.
    """

    scores: Vector
    weights: Vector
    positives: Vector
    before: Index
    after: Index

    def interval(self, values: Vector) -> Matrix:
        """The lower and the upper probability of each score."""
        first = np.searchsorted(self.scores, values, side="left")
        last = np.searchsorted(self.scores, values, side="right")
        places, inverse = np.unique(np.column_stack([first, last]), axis=0, return_inverse=True)
        ends = np.column_stack([self._tangent(places[:, 0], places[:, 1], label) for label in (0.0, 1.0)])
        found: Matrix = ends[np.ravel(inverse)]
        return found

    def __call__(self, values: Vector) -> Vector:
        """The single probability with the least regret by log loss within the interval."""
        low, high = self.interval(values).T
        merged: Vector = high / (1.0 - low + high)
        return merged

    def _tangent(self, left: Index, right: Index, label: float) -> Vector:
        """The slope at a sample of this label that is inserted between the points ``left`` and ``right``."""
        x, y = self.weights, self.positives
        left, right = left.copy(), right.copy()
        # each iteration moves one end of the tangent along its hull, until neither end has to move
        for _ in range(2 * len(x)):
            slope = (y[right] - y[left] + label) / (x[right] - x[left] + 1.0)
            previous, following = self.before[left], self.after[right]
            with np.errstate(divide="ignore", invalid="ignore"):
                falls = (y[left] - y[previous]) / (x[left] - x[previous])
                rises = (y[following] - y[right]) / (x[following] - x[right])
            # an end without neighbour gives 0/0 = NaN, and all comparisons are False
            back = falls > slope
            forth = ~back & (rises < slope)
            if not (back | forth).any():
                break
            left, right = np.where(back, previous, left), np.where(forth, following, right)
        return np.clip(slope, 0.0, 1.0)


def venn_abers(values: Vector, positive: Vector, weight: Vector | None = None) -> VennAbers:
    """Build the predictor from held-out scores; larger scores favour the positive class.

    A new sample has weight 1.
    """
    weight = np.ones(len(values)) if weight is None else weight
    used = weight > 0
    values, positive, weight = values[used], positive[used], weight[used]
    scores, place = np.unique(values, return_inverse=True)
    weights = np.append(0.0, np.cumsum(np.bincount(place, weight, len(scores))))
    positives = np.append(0.0, np.cumsum(np.bincount(place, weight * positive, len(scores))))
    before = _hull(weights, positives)
    # the same from the other end, by mirroring the x axis
    after = len(weights) - 1 - _hull(-weights[::-1], positives[::-1])[::-1]
    return VennAbers(scores, weights, positives, before, after)


def _hull(x: Vector, y: Vector) -> Index:
    """The predecessor of each point on the lower convex hull of all points up to it; 0 for the first point."""
    before = np.zeros(len(x), dtype=np.intp)
    xs, ys = x.tolist(), y.tolist()
    chain = [0]
    for i in range(1, len(xs)):
        while len(chain) > 1:
            a, b = chain[-2], chain[-1]
            if (ys[b] - ys[a]) * (xs[i] - xs[b]) < (ys[i] - ys[b]) * (xs[b] - xs[a]):
                break
            chain.pop()
        before[i] = chain[-1]
        chain.append(i)
    return before
