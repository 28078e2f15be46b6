"""The stored kernel matrix of a problem: memory and time for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.gram.memory import Loan
from mercer.gram.operator import Data
from mercer.gram.products import StoredMatrix
from mercer.kernels import Precomputed
from mercer.problems.clock import Clock
from mercer.problems.solution import Options


def stored_gram(data: Data, options: Options) -> StoredMatrix:
    """The kernel matrix of the samples in float64, if it fits into the budget."""
    check_room(data.n, options.budget)
    loan = Loan(data.n**2, np.dtype(np.float64))
    K = data.matrix(np.float64, options.n_threads, loan.array.reshape(data.n, data.n))
    return StoredMatrix(K, options.n_threads, loan)


def check_room(n: int, budget: int, copied: int = 0) -> None:
    """Raise if the kernel matrix of n samples, and ``copied`` of its values once more, do not fit into the budget."""
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
