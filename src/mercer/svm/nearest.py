"""Gordan's theorem of the alternative, with a certificate of the case that holds.

For rows z₁, …, zₙ exactly one of these is true:

    there is v with ⟨zᵢ, v⟩ > 0 for all i          all rows lie in an open halfspace
    there is a ≥ 0, a ≠ 0 with Σ aᵢ zᵢ = 0         the origin is in their convex hull

Both come from the point of the hull that is nearest to the origin, p = Σ aᵢ zᵢ with Σ aᵢ = 1: it satisfies ⟨zᵢ, p⟩ ≥
|p|² for all i, so that v = p unless p = 0. The algorithm NNLS of Lawson & Hanson, *Solving Least Squares Problems*,
chapter 23, finds it: the solution of  min |Z'a|² + (1 − Σ a)²,  a ≥ 0,  is a multiple of the a of that point. Each step
is a least-squares problem in at most d + 1 of the rows, and the algorithm is finite.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from mercer.kernels.features import Matrix, Vector

# most steps per row; 3 are usual
STEPS = 30


class NearestPoint(NamedTuple):
    """a ≥ 0 with sum 1, and p = Z'a: the point of the hull that is nearest to the origin, up to rounding."""

    a: Vector
    p: Vector


def nearest_point(Z: Matrix) -> NearestPoint:
    """The point of the convex hull of the rows that is nearest to the origin. The rows should be of unit length."""
    n, d = Z.shape
    target = np.zeros(d + 1)
    target[d] = 1.0
    a = nonnegative_combination(np.column_stack([Z, np.ones(n)]), target)
    total = float(a.sum())
    weights = a / total if total > 0 else np.full(n, 1.0 / n)
    p = weights @ Z
    # the rows with weight satisfy ⟨z, p⟩ = |p|². If the sum nearly cancels, these equations give its direction more
    # exactly
    v = np.linalg.lstsq(Z[weights > 0], np.ones(np.count_nonzero(weights)), rcond=None)[0]
    other = v / max(float(v @ v), np.finfo(np.float64).tiny)
    return NearestPoint(weights, other if _cosine(Z, other) > max(0.0, _cosine(Z, p)) else p)


def _cosine(Z: Matrix, point: Vector) -> float:
    """The smallest ⟨zᵢ, v⟩/|v|: positive if all rows are in the open halfspace of v."""
    size = float(np.linalg.norm(point))
    return float((Z @ point).min()) / size if size > 0 else -np.inf


def nonnegative_combination(rows: Matrix, target: Vector) -> Vector:
    """a ≥ 0 for which rows'a is nearest to the target; zeros if the algorithm cycles."""
    try:
        return nnls(rows.T, target, maxiter=STEPS * len(rows))[0]
    except RuntimeError:
        return np.zeros(len(rows))
