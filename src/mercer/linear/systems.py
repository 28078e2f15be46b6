"""The Newton systems of linear machines, (diag + A'DA) x = r, factored over features or over samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy import sparse as sp
from scipy.linalg.lapack import dpotrf, dpotrs

from mercer._compiled.thread_pool import run_tasks
from mercer.kernels.features import Csr
from mercer.linear.linear_problem import Rows, unsigned
from mercer.losses.base import Vector

Matrix = NDArray[np.float64]

# if the factorisation fails, 100 times this is added to the unit diagonal, and 100 times more at each further failure
REGULARISATION = 1e-15
FACTORISATIONS = 6
# rows that are scaled and multiplied together
BLOCK = 1024
# up to this many features the compiled loop is faster than BLAS
FEW = 64
# one thread per this many products: with fewer, synchronisation costs more than it saves
PER_THREAD = 1 << 22


def weighted_gram(rows: Rows, D: Vector, n_threads: int = 1) -> Matrix:
    """A'DA in float64, including the constant feature. Copies a block of rows at a time; skips rows with D = 0."""
    shares = min(n_threads, rows.n // BLOCK, _products(rows) // PER_THREAD)
    if shares <= 1:
        return _gram(rows, D, 0, rows.n)
    edges = np.linspace(0, rows.n, shares + 1).astype(np.intp)
    parts: list[Matrix] = [np.empty(0)] * shares

    def part(share: int) -> None:
        parts[share] = _gram(rows, D, int(edges[share]), int(edges[share + 1]))

    run_tasks(part, shares, n_threads)
    H = parts[0]
    for other in parts[1:]:
        H += other
    return H


def _products(rows: Rows) -> int:
    """The approximate number of products in A'DA."""
    return int(rows.n * rows.numbers_per_row**2 / 2)


def column_squares(rows: Rows, D: Vector) -> Vector:
    """The diagonal of A'DA."""
    from mercer.linear import _newton_loops

    total, X = np.zeros(rows.d), rows.X
    if isinstance(X, Csr):
        _newton_loops.column_squares(X.indptr, X.indices, X.data, D, total)
    else:
        total[: X.shape[1]] = np.einsum("i,ij,ij->j", D, X, X, dtype=np.float64)
    if rows.bias:
        total[-1] = rows.bias**2 * D.sum()
    return total


def _gram(rows: Rows, D: Vector, start: int, stop: int) -> Matrix:
    """A'DA of some rows."""
    X, d = rows.X, rows.d
    H = np.zeros((d, d))
    if isinstance(X, Csr):
        from mercer.linear._interior_loops import sparse_gram

        h = np.zeros(d)
        sparse_gram(X.indptr[start : stop + 1], unsigned(X.indices), X.data, D[start:stop], H, h)
        diagonal = H.diagonal().copy()
        H = H + H.T
        np.fill_diagonal(H, diagonal)
        if rows.bias:
            H[-1, :] = H[:, -1] = rows.bias * h
            H[-1, -1] = rows.bias**2 * D[start:stop].sum()
        return H
    if d <= FEW:
        from mercer.linear._interior_loops import dense_gram

        dense_gram(X[start:stop], D[start:stop], rows.bias, H)
        return H
    D, X = D[start:stop], X[start:stop]
    needed = np.flatnonzero(D)
    every = len(needed) == len(D)
    root = np.sqrt(D if every else D[needed])
    scaled = np.empty((min(BLOCK, len(root)), d))
    product = np.empty((d, d))
    stored = X.shape[1]
    for first in range(0, len(root), BLOCK):
        weight = root[first : first + BLOCK]
        block = scaled[: len(weight)]
        chosen = slice(first, first + BLOCK) if every else needed[first : first + BLOCK]
        np.multiply(X[chosen], weight[:, None], out=block[:, :stored])
        if rows.bias:
            np.multiply(weight, rows.bias, out=block[:, -1])
        H += np.matmul(block.T, block, out=product)
    return H


class GramSystem:
    """The system factored over the p features, from a given A'DA."""

    gram: Matrix

    def factor_gram(self, gram: Matrix, diagonal: Vector) -> bool:
        """Factor the system for A'DA and the diagonal; False if it fails even with regularisation."""
        self.gram, self.diagonal = gram, diagonal
        size = self.gram.diagonal() + diagonal
        if not np.isfinite(size).all():
            return False
        # scaled to a unit diagonal, so that feature scales do not matter
        self.scale = 1.0 / np.sqrt(np.where(size > 0, size, 1.0))
        scaled = self.gram * self.scale
        scaled *= self.scale[:, None]  # in place: a second temporary of this size costs more than the factorisation
        unit = scaled.reshape(-1)[:: len(size) + 1]
        unit[:] = 1.0
        for power in range(FACTORISATIONS):
            # a row-major lower triangle is a column-major upper one
            self.cholesky, failed = dpotrf(scaled.T, lower=0, clean=0)
            if not failed:
                return True
            unit[:] = 1.0 + REGULARISATION * 100.0 ** (power + 1)
        return False

    def solve(self, r: Vector) -> Vector:
        """x, after one step of iterative refinement with the unregularised matrix."""
        x = self._once(r)
        return x + self._once(r - self.diagonal * x - self.gram @ x)

    def _once(self, r: Vector) -> Vector:
        return np.asarray(self.scale * dpotrs(self.cholesky, self.scale * r, lower=0)[0])

    def apply(self, x: Vector) -> Vector:
        """A'DA x."""
        return np.asarray(self.gram @ x)


class Tall(GramSystem):
    """The system of some rows, factored over the p features."""

    def __init__(self, rows: Rows, n_threads: int) -> None:
        self.rows, self.n_threads = rows, n_threads

    def factor(self, D: Vector, diagonal: Vector) -> bool:
        """Factor the system for this D and diagonal; False if it fails even with regularisation."""
        return self.factor_gram(weighted_gram(self.rows, D, self.n_threads), diagonal)


class Wide:
    """The system factored over the n samples, for n < p.

    With B = D^½A over the features with a positive diagonal, S = I + B diag⁻¹ B' gives the inverse by Woodbury's
    formula. A constant feature c without a diagonal is eliminated last; its Schur complement is c² 1'D^½ S⁻¹ D^½ 1.
    """

    def __init__(self, rows: Rows, n_threads: int) -> None:
        self.rows, self.n_threads = rows, n_threads
        X = rows.X
        self.stored: Any = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape) if isinstance(X, Csr) else X

    def factor(self, D: Vector, diagonal: Vector) -> bool:
        """Factor the system for this D and diagonal; False if that fails."""
        rows = self.rows
        self.D, self.diagonal, self.root = D, diagonal, np.sqrt(D)
        self.free = bool(rows.bias) and diagonal[-1] == 0
        d = self.stored.shape[1]
        if not (np.isfinite(self.root).all() and (diagonal[:d] > 0).all()):
            return False
        inverse = 1.0 / diagonal[:d]
        S = self._product(inverse)
        if rows.bias and not self.free:
            S += rows.bias**2 / diagonal[-1]
        S *= self.root * self.root[:, None]
        S[np.diag_indices_from(S)] += 1.0
        try:
            self.cholesky = linalg.cho_factor(S, lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            return False
        if self.free:
            self.response = linalg.cho_solve(self.cholesky, self.root, check_finite=False)
            self.schur = rows.bias**2 * float(self.root @ self.response)
            if not self.schur > 0:
                return False
        return True

    def _product(self, inverse: Vector) -> Matrix:
        """X diag(inverse) X' over the stored features."""
        if isinstance(self.rows.X, Csr):
            return np.asarray((self.stored.multiply(inverse).tocsr() @ self.stored.T).toarray(), dtype=np.float64)
        scaled = np.asarray(self.stored, dtype=np.float64) * np.sqrt(inverse)
        return np.asarray(scaled @ scaled.T)

    def solve(self, r: Vector) -> Vector:
        """x, after two steps of iterative refinement."""
        x = self._once(r)
        for _ in range(2):
            x = x + self._once(r - self.diagonal * x - self.apply(x))
        return x

    def _once(self, r: Vector) -> Vector:
        rows, diagonal = self.rows, self.diagonal
        x = np.divide(r, diagonal, out=np.zeros_like(r), where=diagonal > 0)
        u = linalg.cho_solve(self.cholesky, self.root * rows.dot(x, self.n_threads), check_finite=False)
        if self.free:
            # the constant feature, by its Schur complement
            x[-1] = (r[-1] - rows.bias * float(self.root @ u)) / self.schur
            u = u + rows.bias * x[-1] * self.response
        back = rows.tdot(self.root * u, self.n_threads)
        change = np.divide(back, diagonal, out=np.zeros_like(r), where=diagonal > 0)
        return x - change

    def apply(self, x: Vector) -> Vector:
        """A'DA x."""
        return self.rows.tdot(self.D * self.rows.dot(x, self.n_threads), self.n_threads)
