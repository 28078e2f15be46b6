"""The pinball losses of one sample at several quantiles that must be in order, their proximal points and faces.

    h(z) = C Σ_q pinball_τq(y − z_q)   for z_1 ≤ z_2 ≤ ...,   ∞ otherwise

The proximal point of s minimises h(z) + |z − s|²/(2μ): an isotonic regression with convex functions. If quantiles a to
b have one common value, it is P(a, b), the proximal point of the mean of s with the mean of τ, and

    z_q = max over a ≤ q of  min over b ≥ q of  P(a, b)               Robertson, Wright & Dykstra (1988), chapter 1

Near s the proximal point is an affine map of s. Its *face* has the directions in which it does not move: single
quantiles that stay at y, and differences of quantiles that stay together elsewhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.features import Matrix, Vector

Index = NDArray[np.intp]
# values that differ by less than this share of the largest |y| and |s| are equal up to rounding
EQUAL = 1e-13


class Face(NamedTuple):
    """Directions over the values of all samples (rows) and quantiles (columns).

    ``single[q]`` has the samples whose quantile q is at y. Pooled direction k is ``U[k]``, a unit vector over the
    quantiles, at the sample ``rows[k]``. All directions are orthogonal.
    """

    single: list[Index]
    rows: Index
    U: Matrix

    def project(self, V: Matrix, scale: Vector) -> Matrix:
        """The part of V in these directions, each row multiplied by ``scale``."""
        out = np.zeros_like(V)
        for q, at in enumerate(self.single):
            out[at, q] = V[at, q] * scale[at]
        np.add.at(out, self.rows, self.U * (np.sum(self.U * V[self.rows], axis=1) * scale[self.rows])[:, None])
        return out

    def total(self, scale: Vector) -> Matrix:
        """Σ scale · uu' over all directions u."""
        total = (self.U * scale[self.rows][:, None]).T @ self.U
        total[np.diag_indices_from(total)] += [float(scale[at].sum()) for at in self.single]
        return total


class SortedPinball(NamedTuple):
    """Targets, weights C and the quantiles τ in rising order."""

    y: Vector
    weight: Vector
    quantiles: Vector

    def value(self, z: Matrix) -> float:
        """Σ C pinball_τq(y − z_q); the order is not checked."""
        r = self.y[:, None] - z
        return float((self.weight @ np.maximum(self.quantiles * r, (self.quantiles - 1.0) * r)).sum())

    def nearest(self, s: Matrix, mu: Vector) -> Matrix:
        """The proximal point of each row of s."""
        n, many = s.shape
        reach, z = mu * self.weight, np.full((many, n), -np.inf)
        columns = np.ascontiguousarray(s.T)
        for a in range(many):
            ends = np.cumsum(columns[a:], axis=0)
            least = np.full(n, np.inf)
            for b in range(many - 1, a - 1, -1):
                count, tau = b - a + 1, float(self.quantiles[a : b + 1].mean())
                mean = ends[b - a] / count
                # the pinball loss pulls the mean towards y, at most by its slope
                pulled = np.clip(self.y, mean - reach * (1.0 - tau), mean + reach * tau)
                np.minimum(least, pulled, out=least)
                np.maximum(z[b], least, out=z[b])
        return np.ascontiguousarray(z.T)

    def face(self, z: Matrix, s: Matrix) -> Face:
        """The directions in which the proximal point z of s does not move."""
        n, many = z.shape
        rounding = EQUAL * (float(np.abs(self.y).max()) + float(np.abs(s).max()))
        at_target = np.abs(z - self.y[:, None]) <= rounding
        joined = (z[:, 1:] - z[:, :-1] <= rounding) & ~at_target[:, 1:] & ~at_target[:, :-1]
        single = [np.flatnonzero(column) for column in at_target.T]
        rows, U, run = [np.empty(0, np.intp)], [np.empty((0, many))], np.ones(n, np.intp)
        for q in range(1, many):
            # Helmert's basis: the mean of the quantiles of the run so far against the next one
            at = np.flatnonzero(joined[:, q - 1])
            size = run[at][:, None]
            k = np.arange(many)
            u = np.where((k < q) & (k >= q - size), 1.0, np.where(k == q, -size, 0.0)) / np.sqrt(size * (size + 1.0))
            rows.append(at)
            U.append(u)
            run = np.where(joined[:, q - 1], run + 1, 1)
        return Face(single, np.concatenate(rows), np.concatenate(U))
