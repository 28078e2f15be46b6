"""Smooth losses over ordered pairs, as Newton's method needs them.

    C Σ_{i above j} w_i w_j max(0, 1 − (f_i − f_j))²          Chapelle & Keerthi, Information Retrieval 13 (2010)

and, for survival times, a squared loss of the samples themselves: max(0, y − f − b)² if y is censored, (y − f − b)² if
it is not (Van Belle et al. 2011; Pölsterl, Navab & Katouzian, ECML PKDD 2015).
"""

from __future__ import annotations

from copy import copy

import numpy as np

from mercer.erm.sums import SmoothSum
from mercer.kernels.features import Matrix, Vector
from mercer.losses.thresholds import lowest_quadratic
from mercer.ordering.pair_order import Intervals, PairOrder

# up to this many pairs per sample, sums are taken pair by pair: cumulative sums lose the digits of small losses
FEW_PAIRS = 4


def are_few(parts: list[Intervals], n: int) -> bool:
    """Whether the pairs are so few that sums are taken pair by pair."""
    return sum(part.n_pairs for part in parts) <= FEW_PAIRS * n


class PairCurvature:
    """The second derivatives of a sum over pairs, and of one over samples, at one f."""

    def __init__(self, pairs: list[Intervals], C: float, weight: Vector, own: Vector) -> None:
        self._pairs, self._C, self._weight = pairs, C, weight
        self._own = own
        self.diagonal = own.copy()
        for part in pairs:
            self.diagonal[part.high] += 2.0 * C * weight[part.high] * part.over_partners(weight)
            self.diagonal[part.order] += 2.0 * C * weight[part.order] * part.over_high(weight[part.high])

    def apply(self, V: Matrix) -> Matrix:
        """W V."""
        v = V[:, 0]
        weighted = self._weight * v
        out = self.diagonal * v
        for part in self._pairs:
            out[part.high] -= 2.0 * self._C * self._weight[part.high] * part.over_partners(weighted)
            out[part.order] -= 2.0 * self._C * self._weight[part.order] * part.over_high(weighted[part.high])
        return out[:, None]

    def total(self) -> Matrix:
        """1'W1: a constant changes no difference."""
        return np.array([[self._own.sum()]])

    def within(self, L: Matrix) -> Matrix:
        """L'WL: one row L_i − L_j for each pair if there are few; they keep the digits that W L would lose."""
        if are_few(self._pairs, len(L)):
            own = np.flatnonzero(self._own)
            rows = [np.sqrt(self._own[own])[:, None] * L[own]]
            for part in self._pairs:
                i, j = part.pairs()
                rows.append(np.sqrt(2.0 * self._C * self._weight[i] * self._weight[j])[:, None] * (L[i] - L[j]))
            B = np.concatenate(rows)
            return B.T @ B
        # −W without its diagonal is one-sided here: the other side of each pair is the transpose
        one_sided = np.zeros_like(L)
        weighted = self._weight[:, None] * L
        for part in self._pairs:
            one_sided[part.high] += 2.0 * self._C * self._weight[part.high][:, None] * part.over_partners(weighted)
        crossed = L.T @ one_sided
        scaled = np.sqrt(self.diagonal)[:, None] * L
        return scaled.T @ scaled - crossed - crossed.T


class PairSum(SmoothSum):
    """C Σ pairs w_i w_j max(0, 1 − (f_i − f_j))² + ``own`` Σ w_i ζ(f_i)² for ζ = y − f, or its positive part.

    Parameters
    ----------
    order, weight, C : the ordered pairs, the weights of the samples, and that of the pairs.
    own, y, censored : the weight of the second sum, its targets, and whether a target is a lower bound only.
    """

    def __init__(
        self,
        order: PairOrder,
        weight: Vector,
        C: float,
        own: float = 0.0,
        y: Vector | None = None,
        censored: Vector | None = None,
    ) -> None:
        self.order, self.weight, self.C = order, weight, C
        self.n = order.n
        self._own = own * weight
        self._y = np.zeros(self.n) if y is None else y
        self._censored = np.zeros(self.n, bool) if censored is None else censored

    def scaled(self, factor: float) -> PairSum:
        """The same sum times a factor."""
        part = copy(self)
        part.C, part._own = factor * self.C, factor * self._own
        return part

    def _pairs(self, f: Vector) -> list[Intervals]:
        return self.order.intervals(f, 1.0) if self.C > 0 else []

    def _residual(self, f: Vector) -> Vector:
        residual: Vector = self._y - f
        return np.where(self._censored & (residual < 0), 0.0, residual)

    def evaluate(self, f: Matrix, far: bool = False) -> tuple[float, Matrix]:
        f = f[:, 0]
        w, residual = self.weight, self._residual(f)
        value = float(self._own @ residual**2)
        gradient = -2.0 * self._own * residual
        parts = self._pairs(f)
        if are_few(parts, self.n):
            for part in parts:
                i, j = part.pairs()
                pull = 2.0 * self.C * w[i] * w[j] * (1.0 - (f[i] - f[j]))
                value += 0.5 * float(pull @ (1.0 - (f[i] - f[j])))
                gradient += np.bincount(j, pull, self.n) - np.bincount(i, pull, self.n)
            return value, gradient[:, None]
        # sums of squares as differences of cumulative sums lose fewer digits near 0
        g = f - np.median(f)
        for part in parts:
            i, j = part.high, part.order
            count, first = part.over_partners(w), part.over_partners(w * g)
            gap = 1.0 - g[i]
            value += self.C * float(w[i] @ (gap * (gap * count + 2.0 * first) + part.over_partners(w * g * g)))
            gradient[i] -= 2.0 * self.C * w[i] * (gap * count + first)
            gradient[j] += 2.0 * self.C * w[j] * (part.over_high(w[i] * gap) + g[j] * part.over_high(w[i]))
        return value, gradient[:, None]

    def curvature(self, f: Matrix) -> PairCurvature:
        f = f[:, 0]
        counts = ~self._censored | (self._y > f)
        return PairCurvature(self._pairs(f), self.C, self.weight, 2.0 * self._own * counts)

    def best_intercept(self, F: Matrix, start: Vector) -> Vector:
        residual = self._y - F[:, 0]
        rising = np.where(self._censored, 0.0, self._own)
        return np.array([lowest_quadratic(residual, self._own, residual, rising)])
