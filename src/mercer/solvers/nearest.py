"""Gordan's theorem of the alternative, with the certificate of whichever case holds.

For rows z₁, …, zₙ exactly one is true:

    there is v with ⟨zᵢ, v⟩ > 0 for all i          all rows lie in an open halfspace
    there is a ≥ 0, a ≠ 0 with Σ aᵢ zᵢ = 0         the origin is in their convex hull

Both come from the point of the hull that is nearest to the origin, p = Σ aᵢ zᵢ with Σ aᵢ = 1: it satisfies
⟨zᵢ, p⟩ ≥ |p|² for all i, so that v = p unless p = 0. It is found by the algorithm NNLS of Lawson & Hanson, *Solving
Least Squares Problems*, chapter 23, applied to  min |Z'a|² + (1 − Σ a)²,  a ≥ 0,  whose solution is a multiple of that
point's a. Each step is a least-squares problem in at most d + 1 of the rows, and the algorithm is finite.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from mercer.kernels.features import Matrix, Vector

# a gradient below this, of rows of unit length, is rounding
ROUNDING = 1e-13
# steps allowed per dimension; a few are usual
STEPS = 30


class NearestPoint(NamedTuple):
    """a ≥ 0 with sum 1, and p = Z'a: the point of the hull that is nearest to the origin, to within rounding."""

    a: Vector
    p: Vector


def nearest_point(Z: Matrix) -> NearestPoint:
    """The point of the convex hull of the rows that is nearest to the origin. The rows should be of unit length."""
    n, d = Z.shape
    M = np.column_stack([Z, np.ones(n)])
    target = np.zeros(d + 1)
    target[d] = 1.0
    a, active = np.zeros(n), np.zeros(n, np.bool_)
    best, smallest = a, np.inf
    for _ in range(STEPS * (d + 2)):
        residual = target - a @ M
        size = float(residual @ residual)
        gradient = np.where(active, -np.inf, M @ residual)
        new = int(np.argmax(gradient))
        if size < smallest:
            best, smallest = a.copy(), size
        if gradient[new] <= ROUNDING or int(active.sum()) > d + 1:
            break
        active[new] = True
        if not _descend(M, target, a, active, new):
            break
    total = float(best.sum())
    weights = best / total if total > 0 else np.full(n, 1.0 / n)
    return NearestPoint(weights, weights @ Z)


def _descend(M: Matrix, target: Vector, a: Vector, active: Vector, new: int) -> bool:
    """To the least-squares solution on the active rows, giving up those that would become negative.

    Edits a and active in place. False if the new row cannot enter: rounding stands in the way.
    """
    for attempt in range(len(target) + 2):
        rows = np.flatnonzero(active)
        solution = linalg.lstsq(
            M[rows].T, target, cond=1e-15, overwrite_a=True, check_finite=False, lapack_driver="gelsy"
        )[0]
        if attempt == 0 and solution[np.searchsorted(rows, new)] <= 0:
            active[new] = False
            return False
        falling = solution <= 0
        if not falling.any():
            a[rows] = solution
            return True
        old = a[rows]
        step = float(np.min(old[falling] / (old[falling] - solution[falling])))
        a[rows] = old + step * (solution - old)
        gone = rows[falling & (a[rows] <= ROUNDING * a.max(initial=0.0))]
        gone = gone if len(gone) else rows[falling][[int(np.argmin(a[rows][falling]))]]
        a[gone], active[gone] = 0.0, False
    return True
