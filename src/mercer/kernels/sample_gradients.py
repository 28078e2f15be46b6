"""How kernel values change with a sample: derivatives of sums over features, and of k(x, x)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from mercer.exceptions import InvalidInputError
from mercer.kernels import codes
from mercer.kernels.features import Matrix, Vector, VectorFeatures, as_matrix, take_samples

if TYPE_CHECKING:
    from mercer.kernels.base import Kernel

# derivatives of k(x, x) are read off blocks of this size
DIAGONAL_BLOCK = 64
# features of sparse samples that are written out at a time
COLUMNS_AT_A_TIME = 64


def no_gradients(kernel: Kernel) -> InvalidInputError:
    """What to say of a kernel whose samples cannot be moved a little."""
    return InvalidInputError(
        f"{kernel!r} has no derivatives with respect to samples: kernels on vectors and combinations of them have."
    )


def term_gradients(term: int, a: VectorFeatures, b: VectorFeatures, change: Matrix) -> Matrix:
    """G[i, k] = Σ_j change[i, j] ∂term(a_ik, b_jk) / ∂a_ik for all features k.

    Where a term has a kink, at a_ik = b_jk, the mean of the slopes on both sides is taken: it is also what the two
    arguments of k(x, x) contribute each.
    """
    B = sp.csr_array((b.X.data, b.X.indices, b.X.indptr), shape=b.X.shape) if b.sparse else b.X
    A = sp.csr_array((a.X.data, a.X.indices, a.X.indptr), shape=a.X.shape) if a.sparse else a.X
    if term == codes.DOT:
        return np.asarray(change @ B)
    if term == codes.SQUARE:
        # by the middle of all b first, where they are dense: a large shift would lose digits
        if not b.sparse and len(b):
            middle = B.mean(axis=0)
            A, B = (A.toarray() if a.sparse else A) - middle, B - middle
        elif sp.issparse(A):
            A = A.toarray()
        return np.asarray(2.0 * (change.sum(axis=1)[:, None] * A - change @ B))
    slope = {codes.L1: _absolute_slope, codes.MIN: _min_slope, codes.CHI2: _chi2_slope}[term]
    out = np.empty((len(a), a.d))
    A, B = (X.tocsc() if sp.issparse(X) else X for X in (A, B))
    for start in range(0, a.d, COLUMNS_AT_A_TIME):
        part = slice(start, min(start + COLUMNS_AT_A_TIME, a.d))
        left, right = (X[:, part].toarray() if sp.issparse(X) else X[:, part] for X in (A, B))
        for k in range(left.shape[1]):
            x, z = left[:, k, None], right[:, k]
            out[:, start + k] = np.einsum("ij,ij->i", change, slope(x, z))
    return out


def _absolute_slope(x: Matrix, z: Vector) -> Matrix:
    return np.asarray(np.sign(x - z))


def _min_slope(x: Matrix, z: Vector) -> Matrix:
    return np.asarray(0.5 - 0.5 * np.sign(x - z))


def _chi2_slope(x: Matrix, z: Vector) -> Matrix:
    """Of (x - z)² / (x + z), which is 0 for 0/0."""
    total = x + z
    safe = np.where(total > 0, total, 1.0)
    return np.where(total > 0, (x - z) / safe * ((x + 3.0 * z) / safe), 0.0)


def diagonal_gradients(kernel: Kernel, samples: Any, n: int) -> Matrix:
    """∂k(x_i, x_i) / ∂x_i, in which both arguments move, from small blocks along the diagonal."""
    parts = []
    for start in range(0, n, DIAGONAL_BLOCK):
        some = take_samples(samples, np.arange(start, min(start + DIAGONAL_BLOCK, n)))
        parts.append(2.0 * kernel.sample_gradients(some, some, np.eye(min(DIAGONAL_BLOCK, n - start))))
    return np.concatenate(parts) if parts else np.empty((0, as_matrix(samples).shape[1]))


def lengths(X: Any) -> Vector:
    """|x| of each row."""
    if sp.issparse(X):
        return np.asarray(sp.linalg.norm(X.astype(np.float64), axis=1))
    return np.asarray(np.linalg.norm(np.asarray(X, dtype=np.float64), axis=1))
