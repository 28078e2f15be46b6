"""Cholesky factors of K + λ in the memory of K, and low-rank preconditioners.

A symmetric matrix holds each entry twice: the factor overwrites one triangle, and the other keeps the matrix.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from mercer._compiled.thread_pool import run_tasks
from mercer.kernels.features import Matrix, Vector
from mercer.problems.clock import Clock

# rows per block of the threaded factorisation, and the size from which it is used
BLOCK = 256
SHARED_FROM = 2048
# up to this size LAPACK's factorisation, which cannot be interrupted, takes a few seconds at most
WHOLE_UP_TO = 8192
# rows that are mirrored at a time
MIRRORED = 512


class StoppedError(Exception):
    """The run was stopped before the factor was complete."""


def cholesky_in_place(A: Matrix, n_threads: int, clock: Clock) -> bool:
    """Factor A = U'U: U replaces the upper triangle; entries below the diagonal stay. False if A is not definite.

    A is in C order. Call it with BLAS limited to one thread: it uses threads of its own.
    """
    n = len(A)
    if n < SHARED_FROM or (n_threads == 1 and n <= WHOLE_UP_TO and clock.left == np.inf):
        potrf = linalg.get_lapack_funcs("potrf", (A,))
        _, info = potrf(A.T, lower=1, overwrite_a=1, clean=0)
        return bool(info == 0)
    return cholesky_by_blocks(A, n_threads, clock)


def restore_upper(K: Matrix) -> None:
    """Copy the lower triangle of K over the factor in the upper one. The diagonal becomes 0."""
    for top in range(0, len(K), MIRRORED):
        part = slice(top, top + MIRRORED)
        K[:top, part] = K[part, :top].T
        lower = np.tril(K[part, part], -1)
        K[part, part] = lower + lower.T


def cholesky_by_blocks(A: Matrix, n_threads: int, clock: Clock) -> bool:
    """Factor as `cholesky_in_place` does, in several threads, and stop between blocks if the clock asks for it.

    Right-looking block Cholesky: factor a diagonal block, solve for its rows, update the trailing matrix.
    """
    n = len(A)
    potrf, trtri = linalg.get_lapack_funcs(("potrf", "trtri"), (A,))
    for top in range(0, n, BLOCK):
        end = min(top + BLOCK, n)
        block, info = potrf(np.array(A[top:end, top:end].T, order="F"), lower=1, clean=1)
        if info != 0:
            return False
        rows, columns = np.triu_indices(end - top)
        A[top + rows, top + columns] = block.T[rows, columns]
        if clock.over() is not None:
            raise StoppedError
        inverse = trtri(block, lower=1)[0]
        starts = range(end, n, BLOCK)

        def divide(task: int, top: int = top, end: int = end, inverse: Matrix = inverse, at: range = starts) -> None:
            part = slice(at[task], min(at[task] + BLOCK, n))
            A[top:end, part] = inverse @ A[top:end, part]

        def subtract(task: int, top: int = top, end: int = end, at: range = starts) -> None:
            start, stop = at[task], min(at[task] + BLOCK, n)
            rows = A[top:end, start:stop].T
            rest = A[start:stop, stop:]
            rest -= rows @ A[top:end, stop:]
            corner = A[start:stop, start:stop]
            i, j = np.triu_indices(stop - start)
            corner[i, j] -= (rows @ rows.T)[i, j]

        run_tasks(divide, len(starts), n_threads)
        run_tasks(subtract, len(starts), n_threads)
    return True


def solve_with(U: Matrix, R: Matrix) -> Matrix:
    """(U'U)⁻¹ R in the precision of U, returned in float64. R is scaled to fit the range of float32."""
    potrs = linalg.get_lapack_funcs("potrs", (U,))
    size = np.abs(R).max(axis=0)
    size = np.where(size > 0, size, 1.0)
    x, _ = potrs(U.T, np.asfortranarray(R / size, dtype=U.dtype), lower=1, overwrite_b=1)
    return np.asarray(x, dtype=np.float64) * size


def symmetric(A: Matrix, V: Matrix) -> Matrix:
    """The product with V of the symmetric matrix in the lower triangle of A; the upper one is not read."""
    if V.shape[1] == 1:
        return linalg.blas.dsymv(1.0, A.T, V[:, 0], lower=0)[:, None]
    return linalg.blas.dsymm(1.0, A.T, np.asfortranarray(V), side=0, lower=0)


class Woodbury:
    """(LL' + D)⁻¹ by an r × r Cholesky factor, for L with r columns.

    With M = D^(-½)L it is  D^(-½) (I − M (I + M'M)⁻¹ M') D^(-½).
    """

    def __init__(self, L: Matrix, diagonal: Vector) -> None:
        self.root = np.sqrt(1.0 / diagonal)[:, None]
        self.L = L * self.root
        inner = self.L.T @ self.L
        inner[np.diag_indices_from(inner)] += 1.0
        self.factor = linalg.cho_factor(inner, lower=True, overwrite_a=True, check_finite=False)

    def __call__(self, R: Matrix) -> Matrix:
        R = R * self.root
        if self.L.shape[1] == 0:
            return self.root * R  # scipy's cho_solve takes empty systems since 1.14 only
        return self.root * (R - self.L @ linalg.cho_solve(self.factor, self.L.T @ R, check_finite=False))
