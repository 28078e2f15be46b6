"""Products K V of a kernel matrix with several vectors: stored, computed tile by tile, or from a factor K = ΦΦ'."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy import linalg

from mercer._compiled.blas import one_blas_thread
from mercer._compiled.thread_pool import run_shares
from mercer.gram.memory import Loan, available_bytes, budget_bytes
from mercer.gram.operator import GramOperator, check_finite, prepare_columns, product
from mercer.kernels.features import Matrix, Vector, VectorFeatures
from mercer.kernels.vectors import Linear

# rows from which threads share a product with a stored matrix
THREADS_FROM = 1000
# share of the available memory for the kernel matrix with cache_size="auto"
SHARE_OF_MEMORY = 0.4
# rows of a stored matrix that are multiplied together, and the number of columns
ROWS, MOST_COLUMNS = 64, 64
# from this many rows the matrix is read from memory, and register tiles are quicker than BLAS
TILES_FROM = 1500
# most columns that are multiplied one by one, which reads only one triangle: for small and for large matrices
BY_COLUMN, BY_COLUMN_FROM_MEMORY = 5, 3

_LINEAR = Linear()


class Products(Protocol):
    """A symmetric matrix K of n rows, known by its products and its diagonal."""

    n: int
    diagonal: Vector

    def product(self, V: Matrix) -> Matrix:
        """K V in float64."""

    def columns(self, index: Vector) -> Matrix:
        """K[:, index] in float64."""

    def part(self, index: Vector, V: Matrix) -> Matrix:
        """K[:, index] V, without storing the columns."""

    def squares(self) -> float:
        """The sum of the squares of all entries."""


class StoredMatrix:
    """A symmetric K in float64 in memory, which may be lent (`Loan`)."""

    def __init__(self, K: Matrix, n_threads: int, loan: Loan | None = None) -> None:
        self.K, self.n, self.n_threads, self._loan = K, len(K), n_threads, loan
        self.diagonal: Vector = K.diagonal().copy()
        check_finite(self.diagonal)

    def product(self, V: Matrix) -> Matrix:
        return stored_product(self.K, V, self.n_threads)

    def columns(self, index: Vector) -> Matrix:
        return self.K[index].T

    def part(self, index: Vector, V: Matrix) -> Matrix:
        return self.K[index].T @ V

    def squares(self) -> float:
        flat = self.K.ravel()
        return float(flat @ flat)


class TiledMatrix:
    """K computed tile by tile for each product: n² kernel values each time, and no memory for them."""

    def __init__(self, gram: GramOperator) -> None:
        self.gram, self.n = gram, gram.n
        self.diagonal: Vector = gram.diagonal().astype(np.float64)
        check_finite(self.diagonal)

    def product(self, V: Matrix) -> Matrix:
        gram = self.gram
        return product(gram.kernel, gram.features, gram.features, V, gram.n_threads, gram.evaluations)

    def columns(self, index: Vector) -> Matrix:
        return self.gram.rows(self.gram.features.take(index)).T

    def part(self, index: Vector, V: Matrix) -> Matrix:
        gram = self.gram
        return product(gram.kernel, gram.features, gram.features.take(index), V, gram.n_threads, gram.evaluations)

    def squares(self) -> float:
        total, step = 0.0, max(1, (1 << 24) // (8 * self.n))
        for start in range(0, self.n, step):
            rows = self.columns(np.arange(start, min(start + step, self.n)))
            total += float(np.einsum("ij,ij->", rows, rows))
        return total


class FactorMatrix:
    """K = ΦΦ', for an n × m factor Φ with few columns."""

    def __init__(self, factor: Matrix) -> None:
        self.factor, self.n = factor, len(factor)
        self.diagonal: Vector = np.einsum("ij,ij->i", factor, factor)
        check_finite(self.diagonal)

    def product(self, V: Matrix) -> Matrix:
        return self.factor @ (self.factor.T @ V)

    def columns(self, index: Vector) -> Matrix:
        return self.factor @ self.factor[index].T

    def part(self, index: Vector, V: Matrix) -> Matrix:
        return self.factor @ (self.factor[index].T @ V)

    def squares(self) -> float:
        return float(np.square(self.factor.T @ self.factor).sum())


def stored_product(K: Matrix, V: Matrix, n_threads: int) -> Matrix:
    """K V for a stored symmetric K in float64: column by column, by BLAS or by register tiles, whichever is quickest.

    The rows are shared among threads, unless columns are taken one by one.
    """
    n, columns = V.shape
    with one_blas_thread():
        if columns <= (BY_COLUMN if n < TILES_FROM else BY_COLUMN_FROM_MEMORY):
            out = [linalg.blas.dsymv(1.0, K.T, np.ascontiguousarray(v, dtype=np.float64)) for v in V.T]
            return np.stack(out, axis=1) if out else np.zeros(V.shape)
        if n < TILES_FROM:
            result = np.empty(V.shape)

            def part(start: int, stop: int) -> None:
                np.matmul(K[start:stop], V, out=result[start:stop])

            run_shares(part, n, n_threads if n >= THREADS_FROM else 1)
            return result
        steps = range(0, columns, MOST_COLUMNS)
        return np.concatenate([_tiled_product(K, V[:, c : c + MOST_COLUMNS], n_threads) for c in steps], axis=1)


def _tiled_product(K: Matrix, V: Matrix, n_threads: int) -> Matrix:
    """K V for few columns by tiles of the linear kernel, which take the time of reading K for up to 16 columns."""
    result = np.empty(V.shape)
    columns = VectorFeatures(np.ascontiguousarray(V.T, dtype=np.float64), np.float64)
    prepare_columns(columns)

    def part(start: int, stop: int) -> None:
        for first in range(start, stop, ROWS):
            last = min(first + ROWS, stop)
            _LINEAR.block(VectorFeatures(K[first:last], np.float64), columns, result[first:last])

    run_shares(part, len(K), n_threads)
    return result


def matrix_budget(cache_size: float | str) -> int:
    """Bytes for a stored kernel matrix. "auto" is a share of the available memory."""
    return int(SHARE_OF_MEMORY * available_bytes()) if cache_size == "auto" else budget_bytes(cache_size)


def fits(n: int, cache_size: float | str) -> bool:
    """Whether the kernel matrix of n samples may be stored."""
    return 8 * n * n <= matrix_budget(cache_size)


def products_of(gram: GramOperator, cache_size: float | str) -> StoredMatrix | TiledMatrix:
    """The kernel matrix, stored if it fits into cache_size, else computed tile by tile."""
    if not fits(gram.n, cache_size):
        return TiledMatrix(gram)
    loan = Loan(gram.n**2, np.dtype(np.float64))
    return StoredMatrix(gram.dense(loan.array.reshape(gram.n, gram.n)), gram.n_threads, loan)
