"""Intervals of probability that are calibrated by construction: inductive Venn–Abers predictors.

To the held-out scores and labels a new sample is added, once with the label 0 and once with 1; the isotonic regression
of each gives one end of its interval. Vovk & Petej, "Venn–Abers predictors", UAI (2014); Vovk, Petej & Fedorova,
"Large-scale probabilistic predictors with and without guarantees of validity", NeurIPS (2015).

Isotonic regression is the slope of the lower convex hull of the points (Σ weight, Σ weight · label), summed over
scores in ascending order. An added sample moves all points beyond it by (1, label): its value is the slope of the
tangent that joins the hull of the points before it to the hull of those after it. Both hulls are known for every
place, so that no regression is fitted again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.features import Matrix, Vector

Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class VennAbers:
    """The interval of P(positive) for each score.

    Attributes
    ----------
    scores : the distinct held-out scores, in ascending order.
    weights, positives : sums up to each of them, beginning with 0: of the weights, and of those of positive samples.
    before, after : of each point, its neighbour on the hull of the points up to it, and of those from it on.
    """

    scores: Vector
    weights: Vector
    positives: Vector
    before: Index
    after: Index

    def interval(self, values: Vector) -> Matrix:
        """The two probabilities of each score, the lower one first."""
        first = np.searchsorted(self.scores, values, side="left")
        last = np.searchsorted(self.scores, values, side="right")
        places, inverse = np.unique(np.column_stack([first, last]), axis=0, return_inverse=True)
        ends = np.column_stack([self._tangent(places[:, 0], places[:, 1], label) for label in (0.0, 1.0)])
        found: Matrix = ends[np.ravel(inverse)]
        return found

    def __call__(self, values: Vector) -> Vector:
        """One probability: the one with the least regret of the interval, by log loss."""
        low, high = self.interval(values).T
        merged: Vector = high / (1.0 - low + high)
        return merged

    def _tangent(self, left: Index, right: Index, label: float) -> Vector:
        """The slope over a sample of this label that is put between the points ``left`` and ``right``."""
        x, y = self.weights, self.positives
        left, right = left.copy(), right.copy()
        # each turn moves one end of the tangent along its hull, or finds that none needs to be moved
        for _ in range(2 * len(x)):
            slope = (y[right] - y[left] + label) / (x[right] - x[left] + 1.0)
            previous, following = self.before[left], self.after[right]
            with np.errstate(divide="ignore", invalid="ignore"):
                falls = (y[left] - y[previous]) / (x[left] - x[previous])
                rises = (y[following] - y[right]) / (x[following] - x[right])
            # where an end has no neighbour these are 0/0, and nothing is true of them
            back = falls > slope
            forth = ~back & (rises < slope)
            if not (back | forth).any():
                break
            left, right = np.where(back, previous, left), np.where(forth, following, right)
        return np.clip(slope, 0.0, 1.0)


def venn_abers(values: Vector, positive: Vector, weight: Vector | None = None) -> VennAbers:
    """The predictor for held-out scores, of which larger ones speak for the positive class.

    A new sample counts as much as a held-out one of weight 1.
    """
    weight = np.ones(len(values)) if weight is None else weight
    used = weight > 0
    values, positive, weight = values[used], positive[used], weight[used]
    scores, place = np.unique(values, return_inverse=True)
    weights = np.append(0.0, np.cumsum(np.bincount(place, weight, len(scores))))
    positives = np.append(0.0, np.cumsum(np.bincount(place, weight * positive, len(scores))))
    before = _hull(weights, positives)
    # from the other end: a mirror image keeps below what is below
    after = len(weights) - 1 - _hull(-weights[::-1], positives[::-1])[::-1]
    return VennAbers(scores, weights, positives, before, after)


def _hull(x: Vector, y: Vector) -> Index:
    """Of each point, the one before it on the lower convex hull of all points up to it; of the first, itself."""
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
