"""The Nyström approximation K̂ = LL' of a Gram matrix from landmarks, which can be extended by more of them.

With R the Cholesky factor of the landmarks' own matrix, K_mm = RR', the factor is L = K_nm R⁻ᵀ. Its rows are the
samples, projected in the kernel's feature space onto the span of the landmarks and written in an orthonormal basis of
it. The residual r = k(x, x) − |row of L|² is what the projection of a sample loses. K − K̂ is positive semidefinite
(Williams & Seeger, 2001).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from mercer._compiled.blas import one_blas_thread
from mercer._compiled.thread_pool import run_tasks
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data, check_finite, prepare_columns
from mercer.kernels.base import Kernel
from mercer.kernels.features import Features, Matrix, Vector, span, take_samples

# a landmark whose residual is at most this share of the largest k(x, x) adds nothing but rounding to L: it is left out
DEPENDENT = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-12}
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
        self.data.evaluations.add(len(index) * (len(index) + self.m))
        found = extend_root(kernel, self.root, self.features() if self.m else None, new, self.largest, self.L.dtype)
        if found is None:
            return 0
        m, chosen, self.root = self.m, index[found.chosen], found.root
        samples, new = self.data.features(self.L.dtype), self.pool.features(self.L.dtype).take(chosen)
        self.L = extend_rows(kernel, samples, new, self.root, self.L, self.residual, self.n_threads)
        self.data.evaluations.add(self.data.n * (len(self.root) - m))
        self.index = np.concatenate([self.index, chosen])
        return len(chosen)

    def begin(self, index: Vector, root: Matrix) -> None:
        """Begin with landmarks whose R is known."""
        self.index, self.root = index, root
        samples, new = self.data.features(self.L.dtype), self.pool.features(self.L.dtype).take(index)
        self.L = extend_rows(self.data.kernel, samples, new, root, self.L, self.residual, self.n_threads)
        self.data.evaluations.add(self.data.n * len(index))

    def coefficients(self, w: Vector) -> Vector:
        """α with Σ αⱼ k(landmark j, x) = (row of L of x)·w for every x."""
        return coefficients(self.root, w)


def dependent(largest: float, dtype: Any) -> float:
    """The residual up to which a sample depends on landmarks, for a factor of this dtype and the largest k(x, x)."""
    return DEPENDENT[np.dtype(dtype)] * largest


class ExtendedRoot(NamedTuple):
    """R with the rows of new landmarks, and which of the offered ones these are."""

    root: Matrix
    chosen: Vector


def extend_root(
    kernel: Kernel, root: Matrix, old: Features | None, new: Features, largest: float, dtype: Any
) -> ExtendedRoot | None:
    """The Cholesky factor of the landmarks ``old`` and ``new``, without those that depend on others.

    Features are in float64, ``largest`` is the largest k(x, x) of all samples, ``dtype`` that of L. None if there is
    nothing to add.
    """
    K_new = np.asarray(kernel.block(new, new), np.float64)
    check_finite(K_new)
    V = np.empty((0, len(new)))
    if old is not None:
        V = linalg.solve_triangular(root, kernel.block(old, new), lower=True, check_finite=False)
    left = K_new - V.T @ V
    least = dependent(max(largest, float(np.diagonal(K_new).max(initial=0.0))), dtype)
    if not float(np.diagonal(left).max(initial=0.0)) > least:  # LAPACK would take the first one nevertheless
        return None
    U, order, kept, _ = linalg.lapack.dpstrf(np.asfortranarray(0.5 * (left + left.T)), lower=1, tol=least)
    if kept == 0:
        return None
    chosen = order[:kept] - 1
    U, V = np.tril(U[:kept, :kept]), V[:, chosen]
    return ExtendedRoot(np.block([[root, np.zeros((len(root), kept))], [V.T, U]]), chosen)


def extend_rows(
    kernel: Kernel, samples: Features, new: Features, root: Matrix, L: Matrix, residual: Vector, n_threads: int
) -> Matrix:
    """L with the columns of the landmarks ``new``, which come last in R. Subtracts their squares from ``residual``.

    With R = [[R_old, 0], [V', U]] the new columns are (K_new − L V) U⁻ᵀ, in this order: U⁻ᵀ enlarges the rounding of
    what it is multiplied with. A triangular product with its inverse is faster than a triangular solution.
    """
    dtype, n, m = L.dtype, len(samples), L.shape[1]
    extended = np.empty((n, len(root)), dtype)
    prepare_columns(new)
    inverse = linalg.solve_triangular(root[m:, m:], np.eye(len(root) - m), lower=True, check_finite=False)
    V, inverse = root[m:, :m].T.astype(dtype), np.asfortranarray(inverse, dtype)
    times = linalg.get_blas_funcs("trmm", dtype=dtype)

    def block(number: int) -> None:
        first, last = number * BLOCK, min((number + 1) * BLOCK, n)
        values = kernel.block(span(samples, first, last), new)
        if m:
            extended[first:last, :m] = L[first:last]
            values -= L[first:last] @ V
        columns = times(1.0, inverse, values.T, lower=True, overwrite_b=True).T
        extended[first:last, m:] = columns
        residual[first:last] -= np.einsum("ij,ij->i", columns, columns, dtype=np.float64)

    with one_blas_thread():  # the blocks, and so the bits, do not depend on the number of threads
        run_tasks(block, -(-n // BLOCK), n_threads)
    if not np.isfinite(residual.sum()):
        other = ", or use precision='float64'" if dtype == np.float32 else ""
        raise InvalidInputError(
            f"The kernel values of the samples with the landmarks are not finite numbers in {dtype}: the features are "
            f"too large. Scale them, for example with StandardScaler{other}."
        )
    np.maximum(residual, 0.0, out=residual)
    return extended


def coefficients(root: Matrix, w: Vector) -> Vector:
    """α with Σ αⱼ k(landmark j, x) = (row of L of x)·w for every x: R⁻ᵀ w."""
    return np.asarray(linalg.solve_triangular(root, w, trans="T", lower=True, check_finite=False))


@dataclass(frozen=True)
class LandmarkMap:
    """A picklable function from samples to their rows of L.

    Attributes
    ----------
    kernel : bound to the training samples.
    landmarks : the samples that are landmarks, in the order of R.
    root : R.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> from mercer.landmarks.nystroem_factor import LandmarkMap
    >>> to_rows = LandmarkMap(Linear(), np.array([[2.0, 0.0]]), np.array([[2.0]]))
    >>> to_rows(np.array([[3.0, 5.0], [1.0, 0.0]])).tolist()
    [[3.0], [1.0]]
    """

    kernel: Kernel
    landmarks: Any
    root: Matrix

    def __call__(self, X: Any) -> Matrix:
        """The rows of L in float32."""
        samples = self.kernel.prepare(X, np.float32)
        n = len(samples)
        return self.extend(samples, np.empty((n, 0), np.float32), np.zeros(n))

    def extend(self, samples: Features, L: Matrix, residual: Vector, n_threads: int = 1) -> Matrix:
        """The rows of L from those of the first landmarks. Subtracts the new squares from ``residual``."""
        new = take_samples(self.landmarks, np.arange(L.shape[1], len(self.root)))
        prepared = self.kernel.prepare(new, samples.dtype)
        return extend_rows(self.kernel, samples, prepared, self.root, L, residual, n_threads)
