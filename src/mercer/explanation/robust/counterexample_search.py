"""Search for a nearby point with another label: bisection towards points of other classes, then along tangent planes.

At a boundary point z with gradient g of the deciding function, the nearest point of the tangent plane to x is
u = x + ⟨z − x, g⟩ g / |g|². The boundary on the ray from x through u (or between u and z) is nearer if f is nearly
linear. Every point that is kept was found to have another label, so its distance is an upper bound.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from mercer.kernels.features import Matrix, Vector

Labels = Callable[[Matrix], Vector]
# gradient at each point of a function that decides between the two labels
Gradients = Callable[[Matrix, Vector, Vector], Matrix]

# nearest points of another label from which a search begins
STARTS = 3
# tangent planes, and halvings of a segment on the way and at the end
TANGENTS, HALVINGS, LAST_HALVINGS = 15, 20, 35
# most steps along a slope, each four times as long as the one before
FURTHEST = 40
# a found point is moved by these shares of its distance if rounding leaves its label in doubt
FURTHER = (0.0, 1e-9, 1e-7, 1e-5, 1e-3)
# how far beyond the tangent plane a ray is followed, relative to its distance
REACH = 1.5


def nearest_other(X: Matrix, labels: Labels, gradients: Gradients, pool: Matrix, n_labels: int) -> Matrix:
    """For each row the nearest point found with another label, of 0, …, n_labels − 1; NaN if there is none.

    ``pool`` has points in which the search begins: support vectors and the rows themselves.
    """
    own, others = labels(X), labels(pool)
    best = np.full(X.shape, np.nan)
    distances = cdist(X, pool)
    distances[own[:, None] == others] = np.inf
    order = np.argsort(distances, axis=1)[:, :STARTS]
    for column in order.T:
        rows = np.flatnonzero(np.isfinite(distances[np.arange(len(X)), column]))
        _improve(X, best, rows, pool[column[rows]], labels, own, HALVINGS)
    for other in range(n_labels):
        _along_slopes(X, best, np.flatnonzero(own != other), other, labels, gradients, own)
    for _ in range(TANGENTS):
        rows = np.flatnonzero(~np.isnan(best[:, 0]))
        if not _tangent_step(X, best, rows, labels, gradients, own):
            break
    rows = np.flatnonzero(~np.isnan(best[:, 0]))
    _improve(X, best, rows, best[rows], labels, own, LAST_HALVINGS)
    return best


def _along_slopes(
    X: Matrix, best: Matrix, rows: Vector, other: int, labels: Labels, gradients: Gradients, own: Vector
) -> None:
    """Go from x in the direction in which one other label gains most, as far as the best so far. Edits best."""
    x = X[rows]
    slopes = gradients(x, own[rows], np.full(len(rows), other))
    lengths = np.linalg.norm(slopes, axis=1)
    found = np.linalg.norm(best[rows] - x, axis=1)
    reach = np.divide(np.where(np.isnan(found), 1.0, found), lengths, out=np.zeros(len(rows)), where=lengths > 0)
    for factor in 4.0 ** np.arange(FURTHEST):
        with np.errstate(over="ignore"):
            ends = x + (factor * reach)[:, None] * slopes
        # beyond the second step only for rows without a point: the boundary of a linear function may be far
        tried = np.isfinite(ends).all(axis=1) & ((factor <= 4.0) | np.isnan(best[rows, 0])) & (reach > 0)
        if not tried.any():
            break
        _improve(X, best, rows[tried], ends[tried], labels, own, HALVINGS)


def beyond_rounding(X: Matrix, found: Matrix, labels: Labels, pool: Matrix) -> Matrix:
    """The found points, moved away from x by as little as makes ``labels`` see another label.

    Else the nearest point of the pool with another label; NaN if there is none.
    """
    own, best = labels(X), np.full(found.shape, np.nan)
    for part in FURTHER:
        rows = np.flatnonzero(np.isnan(best[:, 0]) & ~np.isnan(found[:, 0]))
        if len(rows) == 0:
            break
        Z = X[rows] + (1.0 + part) * (found[rows] - X[rows])
        differs = labels(Z) != own[rows]
        best[rows[differs]] = Z[differs]
    rows = np.flatnonzero(np.isnan(best[:, 0]))
    if len(rows):
        distances = cdist(X[rows], pool)
        distances[own[rows, None] == labels(pool)] = np.inf
        nearest = distances.argmin(axis=1)
        known = np.isfinite(distances[np.arange(len(rows)), nearest])
        best[rows[known]] = pool[nearest[known]]
    return best


def _tangent_step(X: Matrix, best: Matrix, rows: Vector, labels: Labels, gradients: Gradients, own: Vector) -> bool:
    """Try the nearest points of the tangent planes, wholly and half way. Edits best; whether one is much nearer."""
    if len(rows) == 0:
        return False
    x, z = X[rows], best[rows]
    before = np.linalg.norm(z - x, axis=1)
    g = gradients(z, own[rows], labels(z))
    squares = np.einsum("ij,ij->i", g, g)
    along = np.divide(np.einsum("ij,ij->i", z - x, g), squares, out=np.zeros(len(x)), where=squares > 0)
    u = along[:, None] * g
    for share in (1.0, 0.5, 0.2):
        direction = share * u + (1.0 - share) * (z - x)
        _improve(X, best, rows, x + REACH * direction, labels, own, HALVINGS)
    return bool(np.any(np.linalg.norm(best[rows] - x, axis=1) < (1.0 - 1e-6) * before))


def _improve(X: Matrix, best: Matrix, rows: Vector, ends: Matrix, labels: Labels, own: Vector, halvings: int) -> None:
    """Bisect from x to ends of another label; keep points that are nearer than the best so far. Edits best."""
    if len(rows) == 0:
        return
    differs: NDArray[np.bool_] = labels(ends) != own[rows]
    rows, ends = rows[differs], ends[differs]
    if len(rows) == 0:
        return
    x = X[rows]
    inner, outer = np.zeros(len(rows)), np.ones(len(rows))
    for _ in range(halvings):
        middle = 0.5 * (inner + outer)
        crossed = labels(x + middle[:, None] * (ends - x)) != own[rows]
        inner, outer = np.where(crossed, inner, middle), np.where(crossed, middle, outer)
    found = x + outer[:, None] * (ends - x)
    with np.errstate(invalid="ignore"):
        nearer = ~(np.linalg.norm(best[rows] - x, axis=1) <= np.linalg.norm(found - x, axis=1))
    best[rows[nearer]] = found[nearer]
