"""The Newton system of several functions over one kernel matrix, for losses that are curved on a face only.

    D = ρ − W(KD + 1d'),    1'D = 0,          W = UU'/μ,  U the directions of a face (`sorted_pinball.Face`)

With s = U'(KD + 1d')/μ it is (μ + U'KU) s − U'1 d = U'Kρ and 1'Us = 1'ρ. A direction of a single quantile meets only
those of the same quantile, so that these are blocks of K, one for each quantile; they are eliminated first. The
remaining system is over the pooled directions, which are few, and over d.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from mercer.erm.sorted_pinball import Face
from mercer.kernels.features import Matrix, Vector

# singular values of the system of d below this share of the largest are 0: quantiles without directions
FLAT = 1e-13


class _Block(NamedTuple):
    """The factor L of a quantile's block, and L⁻¹ times the border at these columns and times the right-hand side."""

    L: Matrix
    border: Matrix
    columns: Vector
    right: Vector


def newton_step(K: Matrix, mu: Vector, face: Face, rho: Matrix, K_rho: Matrix) -> tuple[Matrix, Vector] | None:
    """D and d; None if a block is not positive definite to rounding."""
    rows, U, many = face.rows, face.U, rho.shape[1]
    pooled = len(rows)
    rest = np.zeros((pooled + many, pooled + many))
    rest[:pooled, :pooled] = K[np.ix_(rows, rows)] * (U @ U.T)
    rest[np.arange(pooled), np.arange(pooled)] += mu[rows]
    rest[:pooled, pooled:], rest[pooled:, :pooled] = -U, -U.T
    right = np.concatenate([np.sum(U * K_rho[rows], axis=1), -rho.sum(axis=0)])
    blocks: list[_Block] = []
    for q in range(many):
        block = _eliminated(K, mu, face, q, K_rho)
        if block is None:
            return None
        rest[np.ix_(block.columns, block.columns)] -= block.border.T @ block.border
        right[block.columns] -= block.border.T @ block.right
        blocks.append(block)
    found = _solved(rest, right, pooled)
    if found is None:
        return None
    D = rho.copy()
    for q, block in enumerate(blocks):
        if len(block.right):
            left = block.right - block.border @ found[block.columns]
            D[face.single[q], q] -= linalg.blas.dtrsv(block.L, left, lower=1, trans=1)
    np.subtract.at(D, rows, U * found[:pooled, None])
    return D, found[pooled:]


def _eliminated(K: Matrix, mu: Vector, face: Face, q: int, K_rho: Matrix) -> _Block | None:
    """The factored block of a quantile, with its border: the pooled directions that contain q, and d_q."""
    at, pooled = face.single[q], len(face.rows)
    meets = np.flatnonzero(face.U[:, q])
    columns = np.append(meets, pooled + q)
    if len(at) == 0:
        return _Block(np.empty((0, 0)), np.empty((0, len(columns))), columns, np.empty(0))
    A = K[np.ix_(at, at)]
    A[np.diag_indices_from(A)] += mu[at]
    L, info = linalg.lapack.dpotrf(A.T, lower=1, clean=0, overwrite_a=1)
    if info != 0:
        return None
    border = np.empty((len(at), len(columns)), order="F")
    border[:, :-1] = K[np.ix_(at, face.rows[meets])] * face.U[meets, q]
    border[:, -1] = -1.0
    border = linalg.blas.dtrsm(1.0, L, border, lower=1, overwrite_b=1)
    return _Block(L, border, columns, linalg.blas.dtrsv(L, K_rho[at, q], lower=1))


def _solved(rest: Matrix, right: Vector, pooled: int) -> Vector | None:
    """The solution over the pooled directions, whose block is definite, and over d, for which it is negative then."""
    inner, first = rest[pooled:, pooled:], right[pooled:]
    if pooled == 0:
        return np.linalg.lstsq(inner, first, rcond=FLAT)[0]
    L, info = linalg.lapack.dpotrf(rest[:pooled, :pooled], lower=1, clean=0)
    if info != 0:
        return None
    known = np.column_stack([rest[:pooled, pooled:], right[:pooled]])
    known, _ = linalg.lapack.dpotrs(L, known, lower=1)
    border = rest[pooled:, :pooled]
    d = np.linalg.lstsq(inner - border @ known[:, :-1], first - border @ known[:, -1], rcond=FLAT)[0]
    return np.concatenate([known[:, -1] - known[:, :-1] @ d, d])
