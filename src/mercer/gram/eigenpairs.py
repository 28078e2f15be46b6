"""The largest eigenvalues of a symmetric matrix that is known by its products, with residuals.

    A v_j = λ_j v_j,   λ_1 ≥ λ_2 ≥ … ≥ λ_k

Block Lanczos iteration with thick restarts: an orthonormal basis Q grows by the residuals A v − θ v of the Ritz pairs
that are not yet accurate, and is replaced by its best Ritz vectors when it is full (Saad, *Numerical Methods for Large
Eigenvalue Problems*, 2nd ed., sections 6.5 and 7.3; Stathopoulos & Saad, 1998). A block of columns costs hardly more
than one column, since a product with a stored matrix takes the time of reading it. AQ is stored, too, so that residuals
are those of the matrix itself and not of a recurrence. Small matrices, and many eigenvalues, are left to LAPACK.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from mercer.kernels.features import Matrix, Vector

# below this size, or for more than this share of all eigenvalues, LAPACK is faster
DENSE_UP_TO, DENSE_SHARE = 300, 0.1
# a block has at least this many columns beside the wanted ones, and a multiple of the columns of a register tile
EXTRA, TILE = 3, 8
# the number of blocks of a full basis
BLOCKS = 6
# rounds after which the iteration ends in any case
MOST_ROUNDS = 300
EPS = float(np.finfo(np.float64).eps)
# residuals that count as accurate, as a share of the largest eigenvalue: eigenvalues are then exact to rounding
ACCURATE = 1e-9


class Eigenpairs(NamedTuple):
    """Eigenvalues in descending order, unit eigenvectors as columns, norms of A v − λ v, and the number of products.

    An eigenvalue of A lies within the residual of each value. ``converged``: all residuals met the tolerance.
    """

    values: Vector
    vectors: Matrix
    residuals: Vector
    n_products: int
    converged: bool


def prefers_dense(n: int, count: int) -> bool:
    """Whether LAPACK on the stored matrix is faster than products."""
    return n <= DENSE_UP_TO or count > DENSE_SHARE * n


def dense_eigenpairs(A: Matrix, count: int) -> Eigenpairs:
    """The ``count`` largest eigenvalues of a stored symmetric matrix, by LAPACK."""
    n, values = len(A), np.empty(0)
    # divide and conquer is faster for most of the eigenvectors, relatively robust representations for a few
    if count <= 0.3 * n:
        values, vectors = linalg.eigh(A, subset_by_index=(n - count, n - 1), check_finite=False)
    if len(values) < count:  # also where LAPACK leaves out eigenvalues of a subset because others are equal
        values, vectors = linalg.eigh(A, driver="evd", check_finite=False)
    values, vectors = values[-count:][::-1].copy(), np.ascontiguousarray(vectors[:, -count:][:, ::-1])
    residuals = np.linalg.norm(A @ vectors - vectors * values, axis=0)
    return Eigenpairs(values, vectors, residuals, 1, True)


def factor_eigenpairs(factor: Matrix, count: int) -> Eigenpairs:
    """The ``count`` largest eigenvalues of FF' for a factor F with fewer columns than rows: those of F'F."""
    values, W = linalg.eigh(factor.T @ factor, check_finite=False)
    values, W = values[::-1][:count], W[:, ::-1][:, :count]
    images = factor @ W
    lengths = np.linalg.norm(images, axis=0)
    vectors = np.divide(images, lengths, out=np.zeros_like(images), where=lengths > 0)
    residuals = np.linalg.norm(factor @ (factor.T @ vectors) - vectors * values, axis=0)
    return Eigenpairs(np.maximum(values, 0.0), vectors, residuals, 0, True)


def largest_eigenpairs(
    product: Callable[[Matrix], Matrix],
    n: int,
    count: int,
    random: Any,
    tol: float = 0.0,
    max_rounds: int | None = None,
    start: Matrix | None = None,
) -> Eigenpairs:
    """The ``count`` largest eigenvalues of the matrix with this product.

    Ends when each residual is at most ``tol`` times the largest eigenvalue.
    tol=0 is the smallest tolerance that rounding allows. ``start``: columns that are tried first.
    """
    wanted = max(tol, ACCURATE)
    width = min(n, -(-(count + max(EXTRA, count // 8)) // TILE) * TILE)
    capacity = min(n, max(BLOCKS * width, width + 24))
    Q, AQ = np.empty((n, capacity), order="F"), np.empty((n, capacity), order="F")
    fresh = random.standard_normal((n, width))
    if start is not None:
        fresh[:, : min(width, start.shape[1])] = start[:, :width]
    size, n_products = 0, 0
    for _ in range(MOST_ROUNDS if max_rounds is None else max_rounds):
        fresh = orthonormal(fresh, Q[:, :size], min(width, capacity - size))
        added = fresh.shape[1]
        if added:
            Q[:, size : size + added] = fresh
            AQ[:, size : size + added] = product(fresh)
            size, n_products = size + added, n_products + added
        T = Q[:, :size].T @ AQ[:, :size]
        values, W = linalg.eigh(0.5 * (T + T.T))
        values, W = values[::-1], W[:, ::-1]
        shown = min(size, width)
        vectors, images = Q[:, :size] @ W[:, :shown], AQ[:, :size] @ W[:, :shown]
        rest = images - vectors * values[:shown]
        norms = np.linalg.norm(rest, axis=0)
        open_pairs = norms > wanted * np.abs(values).max()
        done = not open_pairs[:count].any() and shown >= count
        if done or added == 0:
            break
        if size + width > capacity and size < n:
            # thick restart: the best Ritz vectors span the new basis
            kept = min(size, max(shown, capacity // 2))
            Q[:, :kept], AQ[:, :kept] = Q[:, :size] @ W[:, :kept], AQ[:, :size] @ W[:, :kept]
            size = kept
        # pairs that are accurate need no more directions
        fresh = rest[:, open_pairs] / norms[open_pairs]
    count = min(count, shown)
    return Eigenpairs(values[:count].copy(), vectors[:, :count], norms[:count], n_products, bool(done))


def orthonormal(V: Matrix, Q: Matrix, most: int) -> Matrix:
    """An orthonormal basis, of at most ``most`` columns, of the part of V that is orthogonal to Q."""
    for _ in range(2):  # twice is enough (Kahan, in Parlett's book)
        V = V - Q @ (Q.T @ V)
        if V.shape[1] == 0:
            return V
        V, R, _ = linalg.qr(V, mode="economic", pivoting=True, overwrite_a=True, check_finite=False)
        size = np.abs(np.diagonal(R))
        V = V[:, size > 1e-10 * max(size[0], EPS)]
    return V[:, :most]
