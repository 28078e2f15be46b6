"""The Nyström approximation K̂ = LL' of a Gram matrix from landmarks, which can be extended by more of them.

With R the Cholesky factor of the landmarks' own matrix, K_mm = RR', the factor is L = K_nm R⁻ᵀ. Its rows are the
samples, projected in the kernel's feature space onto the span of the landmarks and written in an orthonormal basis of
it. The residual r = k(x, x) − |row of L|² is what the projection of a sample loses. K − K̂ is positive semidefinite
(Williams & Seeger, 2001).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from mercer._compiled.blas import one_blas_thread
from mercer._compiled.thread_pool import run_tasks
from mercer.gram.operator import Data, check_finite, prepare_columns
from mercer.kernels.features import Features, Matrix, Vector, span

# a landmark whose residual is at most this share of the largest k(x, x) adds nothing: it is left out
DEPENDENT = 1e-6
# rows of L that are computed together
BLOCK = 2048


class Factor:
    """L, its landmarks, and the residuals of all samples.

    Attributes
    ----------
    L : the factor, one row per sample.
    root : R, the lower triangular factor of K_mm, in float64.
    residual : k(x, x) − |row of L|², at least 0.
    largest : the largest k(x, x).
    index : the numbers of the landmarks in ``pool``, which is the training set unless landmarks were given.
    """

    def __init__(self, data: Data, dtype: Any, n_threads: int, pool: Data | None = None) -> None:
        self.data, self.n_threads = data, n_threads
        self.pool = data if pool is None else pool
        samples = data.features(dtype)
        self.L: Matrix = np.empty((data.n, 0), dtype)
        self.root: Matrix = np.empty((0, 0))
        self.residual: Vector = np.maximum(np.asarray(data.kernel.diagonal(samples), np.float64), 0.0)
        check_finite(self.residual)
        self.largest = float(self.residual.max(initial=0.0))
        self.index: Vector = np.empty(0, np.intp)

    @property
    def m(self) -> int:
        """The number of landmarks."""
        return len(self.index)

    def features(self) -> Features:
        """The landmarks, prepared in float64."""
        return self.pool.exact(self.index)

    def add(self, index: Vector) -> int:
        """Add samples of the pool as landmarks, without those that depend on others. Returns how many were added."""
        kernel, new = self.data.kernel, self.pool.exact(index)
        K_new = np.asarray(kernel.block(new, new), np.float64)
        check_finite(K_new)
        V = np.empty((0, len(index)))
        if self.m:
            V = linalg.solve_triangular(self.root, kernel.block(self.features(), new), lower=True, check_finite=False)
        self.data.evaluations.add(K_new.size + V.size)
        left = K_new - V.T @ V
        least = DEPENDENT * max(self.largest, float(np.diagonal(K_new).max(initial=0.0)))
        if not float(np.diagonal(left).max(initial=0.0)) > least:  # LAPACK would take the first one nevertheless
            return 0
        U, order, kept, _ = linalg.lapack.dpstrf(np.asfortranarray(0.5 * (left + left.T)), lower=1, tol=least)
        if kept == 0:
            return 0
        chosen = order[:kept] - 1
        U, V = np.tril(U[:kept, :kept]), V[:, chosen]
        self._extend_rows(self.pool.features(self.L.dtype).take(index[chosen]), V, U)
        self.root = np.block([[self.root, np.zeros((self.m, kept))], [V.T, U]])
        self.index = np.concatenate([self.index, index[chosen]])
        return int(kept)

    def _extend_rows(self, new: Features, V: Matrix, U: Matrix) -> None:
        """Append the columns (K_new − L V) U⁻ᵀ to L, and subtract their squares from the residuals.

        U⁻ᵀ is multiplied out: its condition is that of the residuals, at most about 1/√DEPENDENT, and two products of
        matrices are faster than a triangular solution.
        """
        dtype, n = self.L.dtype, self.data.n
        samples, kernel, m = self.data.features(dtype), self.data.kernel, self.m
        L = np.empty((n, m + len(U)), dtype)
        prepare_columns(new)
        inverse = linalg.solve_triangular(U, np.eye(len(U)), lower=True, check_finite=False).T
        from_values, from_rows = inverse.astype(dtype), (V @ inverse).astype(dtype)

        def block(number: int) -> None:
            first, last = number * BLOCK, min((number + 1) * BLOCK, n)
            columns = kernel.block(span(samples, first, last), new) @ from_values
            if m:
                L[first:last, :m] = self.L[first:last]
                columns -= self.L[first:last] @ from_rows
            L[first:last, m:] = columns
            self.residual[first:last] -= np.einsum("ij,ij->i", columns, columns, dtype=np.float64)

        with one_blas_thread():  # the blocks, and so the bits, do not depend on the number of threads
            run_tasks(block, -(-n // BLOCK), self.n_threads)
        self.data.evaluations.add(n * len(U))
        np.maximum(self.residual, 0.0, out=self.residual)
        self.L = L

    def coefficients(self, w: Vector) -> Vector:
        """α with Σ αⱼ k(landmark j, x) = (row of L of x)·w for every x: R⁻ᵀ w."""
        return np.asarray(linalg.solve_triangular(self.root, w, trans="T", lower=True, check_finite=False))
