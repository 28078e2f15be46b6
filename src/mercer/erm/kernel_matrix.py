"""The stored kernel matrix of a problem and its products."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from mercer._compiled.thread_pool import run_shares
from mercer.exceptions import InvalidInputError
from mercer.gram.memory import Loan
from mercer.gram.operator import Data, check_finite
from mercer.kernels import Precomputed
from mercer.kernels.features import Matrix, Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import Options

# up to so many columns, products one by one, which read one triangle of the matrix; more share one pass over all of it
BY_COLUMN = 5
# rows from which threads share a product
THREADS_FROM = 1000


class StoredGram:
    """K in float64. Call its products with BLAS limited to one thread: it uses threads of its own."""

    def __init__(self, K: Matrix, n_threads: int, loan: Loan | None = None) -> None:
        self.K, self.n, self.n_threads, self._loan = K, len(K), n_threads, loan
        self.diagonal: Vector = K.diagonal().copy()
        check_finite(self.diagonal)

    @classmethod
    def of(cls, data: Data, options: Options) -> StoredGram:
        """The kernel matrix of the samples, if it fits into the budget."""
        check_room(data.n, options.budget)
        loan = Loan(data.n**2, np.dtype(np.float64))
        K = data.matrix(np.float64, options.n_threads, loan.array.reshape(data.n, data.n))
        return cls(K, options.n_threads, loan)

    def product(self, V: Matrix) -> Matrix:
        """K V."""
        if V.shape[1] <= BY_COLUMN:
            out = [linalg.blas.dsymv(1.0, self.K.T, np.ascontiguousarray(v)) for v in V.T]
            return np.stack(out, axis=1)
        result = np.empty(V.shape)

        def part(start: int, stop: int) -> None:
            np.matmul(self.K[start:stop], V, out=result[start:stop])

        run_shares(part, self.n, self.n_threads if self.n >= THREADS_FROM else 1)
        return result


def check_room(n: int, budget: int, copied: int = 0) -> None:
    """Raise if the kernel matrix of n samples, and so many of its values as are copied, do not fit into the budget."""
    needed = 8 * (n * n + copied)
    if needed > budget:
        copies = ", with the parts of it that a fold copies," if copied else ""
        raise InvalidInputError(
            f"The kernel matrix of {n:,} samples{copies} takes {needed / 2**30:,.3g} GB, but cache_size allows "
            f"{budget / 2**30:,.3g} GB. Approximate the kernel by landmarks, with a pipeline of Nystroem and a linear "
            "model such as LogisticRegression, use fewer samples, or raise cache_size."
        )


def matrix_in_time(data: Data, options: Options, clock: Clock) -> bool:
    """Whether there is enough time left to compute the kernel matrix."""
    if clock.over() is not None or clock.left == np.inf:
        return clock.over() is None
    return clock.over_in(data.seconds(data.n, 0.5 * data.n, options.n_threads)) is None


def stored_once(data: Data, options: Options, clock: Clock, dtype: Any = np.float64, share: float = 0.5) -> Data:
    """The same problem with its kernel matrix stored, for several runs over the same samples.

    Returns the data themselves if the matrix would take more than a share of the budget or the time that is left.
    """
    stored = np.dtype(dtype).itemsize * data.n**2 <= share * options.budget
    if not stored or data.kernel.domain == "matrix" or not matrix_in_time(data, options, clock):
        return data
    matrix = Data(Precomputed(), data.matrix(dtype, options.n_threads), data.n, data.psd)
    matrix.evaluations = data.evaluations
    return matrix
