"""Parameters of a kernel that depend on the samples, such as gamma="scale", for rows in parts."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from mercer.exceptions import InvalidInputError
from mercer.kernels import Precomputed
from mercer.kernels.base import Kernel
from mercer.kernels.features import Csr, Vector
from mercer.parts.layout import Part, Parts, keeps_state

# rows whose squared deviations are computed together
ROWS = 1 << 16


def bind_to_parts(parts: Parts, kernel: Kernel) -> Kernel:
    """The kernel with parameters such as gamma="scale" replaced by numbers, from one pass over all rows.

    These depend on the variance of all numbers in some columns. Two rows, mean ± deviation of each column, have the
    same variance.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Gaussian
    >>> from mercer.parts.bound_kernel import bind_to_parts
    >>> from mercer.parts.layout import Held, LocalParts
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> parts = LocalParts([Held(X[:2], np.ones(2)), Held(X[2:], np.ones(4))])
    >>> bool(np.isclose(bind_to_parts(parts, Gaussian()).gamma, 1 / (2 * X.var())))
    True
    """
    if isinstance(kernel, Precomputed):
        raise InvalidInputError(
            "Rows in parts need a kernel object that computes values from vectors, but a kernel matrix or a Python "
            "function was given. Use one of mercer.kernels, or the estimator of the same name in mercer on an array."
        )
    if kernel.domain != "vectors":
        raise InvalidInputError(
            f"Rows in parts are vectors of numbers, but {kernel!r} compares other samples. Use another kernel, or the "
            "estimator of the same name in mercer."
        )
    n, mean, squares = 0, np.zeros(1), np.zeros(1)
    for count, own_mean, own_squares in parts.map(column_moments):
        total = n + count
        # the sums of squared deviations of both, and between their means
        squares = squares + own_squares + (own_mean - mean) ** 2 * (n * count / total)
        mean, n = mean + (own_mean - mean) * (count / total), total
    if n == 0:
        raise InvalidInputError("All parts are empty: give at least one row.")
    spread = np.sqrt(squares / n)
    return kernel.bind(np.stack([mean - spread, mean + spread]))


@keeps_state
def column_moments(part: Part) -> tuple[int, Vector, Vector]:
    """The number of rows, and of each column the mean and the sum of squared deviations."""
    X = part.block().X
    if isinstance(X, Csr):
        X = sp.csr_array((X.data.astype(np.float64), X.indices, X.indptr), shape=X.shape)
        mean = np.asarray(X.sum(axis=0)).ravel() / part.n
        squares = np.asarray(X.multiply(X).sum(axis=0)).ravel()
        return part.n, mean, np.maximum(squares - part.n * mean**2, 0.0)
    mean = X.mean(axis=0, dtype=np.float64)
    squares = np.zeros(X.shape[1])
    for first in range(0, part.n, ROWS):
        squares += np.square(X[first : first + ROWS] - mean).sum(axis=0)
    return part.n, mean, squares
