"""Exact leave-one-out values of ridge regressions with one λ, from the diagonal of an inverse.

With H the inverse of K + λ/w, bordered by ones if there is an intercept, the residual of sample i by the model without
it is (Allen's PRESS, Technometrics 16, 1974; Cawley & Talbot, Neural Networks 17, 2004)

    yᵢ − f₋ᵢ(xᵢ) − b₋ᵢ = βᵢ / Hᵢᵢ
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from mercer._compiled.blas import one_blas_thread
from mercer.exceptions import InvalidInputError
from mercer.gram.memory import Loan
from mercer.gram.operator import Data
from mercer.kernels.features import Matrix, Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import Options
from mercer.ridge.factor import StoppedError, cholesky_in_place, solve_with


def left_out_values(
    data: Data, Y: Matrix, beta: Matrix, weight: Vector, alpha: float, intercept: bool, options: Options, clock: Clock
) -> Matrix | None:
    """The prediction for each sample by the model without it, a column per target; None as for `inverse_diagonal`.

    ``beta`` are the coefficients of the model with all samples; all weights are positive.
    """
    diagonal = inverse_diagonal(data, weight, alpha, intercept, options, clock)
    return None if diagonal is None else Y - beta / diagonal[:, None]


def inverse_diagonal(
    data: Data, weight: Vector, alpha: float, intercept: bool, options: Options, clock: Clock
) -> Vector | None:
    """The diagonal of (K + λ/w)⁻¹, bordered by ones with an intercept, from a factor and its inverse.

    None if time is over, or for a matrix that is not positive definite.

    In the coordinates β/√w the matrix is A = √w K √w + λ. With u = A⁻¹√w the bordered inverse is A⁻¹ − uu' / (√w'u).
    """
    n, root = data.n, np.sqrt(weight)
    needed = 8 * n * n
    if needed > options.budget:
        raise InvalidInputError(
            f"Leave-one-out values need the kernel matrix of {n:,} samples, {needed / 2**30:,.3g} GB, but cache_size "
            f"allows {options.budget / 2**30:,.3g} GB. Raise cache_size, or use leave_one_out=False."
        )
    loan = Loan(n * n, np.dtype(np.float64))
    A = data.matrix(np.float64, options.n_threads, loan.array.reshape(n, n))
    if (root != 1).any():
        A *= root
        A *= root[:, None]
    A[np.diag_indices(n)] += alpha
    with one_blas_thread():
        try:
            definite = cholesky_in_place(A, options.n_threads, clock)
        except StoppedError:
            return None
        if not definite:
            return None
        u = solve_with(A, root[:, None])[:, 0] if intercept else np.zeros(n)
        # A⁻¹ = U⁻¹U⁻ᵀ, so that its diagonal are the squared rows of U⁻¹
        trtri = linalg.get_lapack_funcs("trtri", (A,))
        lower, info = trtri(A.T, lower=1, overwrite_c=1)
    if info != 0 or clock.over() is not None:
        return None
    inverse = np.array([float(row[k:] @ row[k:]) for k, row in enumerate(lower.T)])
    if intercept:
        inverse -= u**2 / float(root @ u)
    return weight * inverse
