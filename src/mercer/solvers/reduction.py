"""One decomposition of the kernel matrix, and ridge regressions for all λ follow from it.

    √w K √w = P' T P,     the rows of P orthonormal, T tridiagonal

    (√w K √w + λ)⁻¹ = P' (T + λ)⁻¹ P + (I − P'P) / λ

Going on from T to eigenvalues would double the work and gain nothing: systems with T + λ are solved in as many
operations as T has rows. If K has a low rank (few features, a smooth kernel), P has as many rows, and neither K nor P
is square.

Leaving out sample i changes its residual to βᵢ / Hᵢᵢ, where H is the inverse of the whole system

    M = [K + λ/w, 1; 1', 0]          (without the last row and column if there is no intercept)

since striking row and column i from M gives the system without that sample. (Allen's PRESS; [M5] asks for the choice of
λ.) Generalised cross-validation (Golub, Heath & Wahba 1979) takes the mean of Hᵢᵢ / wᵢ in place of each: it needs the
trace of (T + λ)⁻¹, and P for a few vectors only, which its reflections give.

Hᵢᵢ needs column p of P itself, as p'(T + λ)⁻¹p. If p is rounded by δ, that changes by 2δ'(T + λ)⁻¹p, a share of at most

    2 |δ| √((Kᵢᵢ + λ) / (μ + λ)),     μ the smallest eigenvalue,

since Hᵢᵢ ≥ 1 / (Kᵢᵢ + λ): a square root of what rounding in T would be magnified by. So T is computed in float64, and P
in float32 where the root is small; the errors, which have many signs, then change scores by less than 1e-6.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from mercer._numerics.pool import run_shares
from mercer.exceptions import InvalidInputError
from mercer.gram.lowrank import pivoted_cholesky
from mercer.gram.operator import GramOperator
from mercer.kernels.features import Matrix, Vector
from mercer.solvers.base import Options
from mercer.solvers.basis import Columns, Reflections
from mercer.solvers.blas import one_blas_thread
from mercer.solvers.data import Data
from mercer.solvers.judge import check_finite

EPS = float(np.finfo(np.float64).eps)
# K may be replaced by LL' if what is left is this small, relative to the smallest λ: so wrong may scores be
LEFT_OUT = 1e-7
# a factor of lower rank pays up to this share of the samples, and from this size on
LOW = 0.5
LOW_FROM = 200
# numbers of work space for each row: the blocks in which LAPACK works
WORK = 64
# P may be rounded to float32 up to this (Kᵢᵢ + λ) / (μ + λ), and is from this size on
FORGIVEN = 2e4
SINGLE_FROM = 640


class Residuals(NamedTuple):
    """For each λ: β, b, and the diagonal of H divided by w, or its mean: (λ, n, targets), (λ, targets), (λ, n or 1)."""

    beta: Matrix
    intercept: Matrix
    inverse: Matrix


class Reduction:
    """P and T of a weighted kernel matrix."""

    def __init__(self, basis: Columns | Reflections, diagonal: Vector, below: Vector, root: Vector) -> None:
        self.basis = basis
        self.diagonal = diagonal
        self.below = below
        self.root = root
        self.definite = True
        # whether P may be rounded
        self.single = False

    @property
    def rank(self) -> int:
        """The number of rows of T."""
        return len(self.diagonal)

    def extreme_eigenvalues(self) -> tuple[float, float]:
        """The smallest and the largest of T, that is, of the weighted kernel matrix but for zeros."""
        if self.rank == 1:
            return float(self.diagonal[0]), float(self.diagonal[0])
        ends = [linalg.eigvalsh_tridiagonal(self.diagonal, self.below, "i", (k, k))[0] for k in (0, self.rank - 1)]
        return float(ends[0]), float(ends[1])

    def examine(self, smallest_alpha: float, highest: float = np.inf) -> Reduction:
        """See whether K + λ is positive definite, and take rounding out of T if only that is in the way. Edits T.

        And whether P may be rounded, where ``highest`` is the largest entry of the diagonal of K.
        """
        smallest, largest = self.extreme_eigenvalues()
        rounding = 4.0 * self.rank * EPS * max(abs(smallest), abs(largest))
        self.definite = smallest >= -rounding or smallest + smallest_alpha > rounding
        if self.definite and smallest + smallest_alpha <= rounding:
            self.diagonal = self.diagonal + rounding
        self.single = self.definite and highest + smallest_alpha <= FORGIVEN * (max(smallest, 0.0) + smallest_alpha)
        return self

    def solve(self, R: Matrix, alphas: Vector) -> Matrix:
        """(√w K √w + λ)⁻¹ R for each λ: an array (λ, n, columns). P is read twice for all of them."""
        inside = self.basis.inward(R)
        whole = self.rank == len(R)
        middle = np.empty((self.rank, len(alphas), R.shape[1]))
        for k, alpha in enumerate(alphas):
            middle[:, k] = self._solve_tridiagonal(inside, alpha) - (0.0 if whole else inside / alpha)
        out = self.basis.outward(middle.reshape(self.rank, -1)).reshape(len(R), len(alphas), -1).swapaxes(0, 1)
        return out if whole else out + R / alphas[:, None, None]

    def _solve_tridiagonal(self, R: Matrix, alpha: float) -> Matrix:
        """(T + λ)⁻¹ R."""
        if self.rank == 1:  # scipy does not take a band of one column
            return R / (self.diagonal + alpha)
        band = np.zeros((3, self.rank))
        band[0, 1:] = band[2, :-1] = self.below
        band[1] = self.diagonal + alpha
        if self.definite:
            return linalg.solveh_banded(band[:2], R, check_finite=False)
        return linalg.solve_banded((1, 1), band, R, check_finite=False)

    def residuals(self, Y: Matrix, alphas: Vector, intercept: bool, n_threads: int, mean: bool = False) -> Residuals:
        """What every λ gives, with the diagonal of the inverse of its system, or its ``mean``."""
        beta, b, ones = self._solutions(Y, alphas, intercept)
        with one_blas_thread():
            inverse = self._trace(alphas)[:, None] / len(Y) if mean else self._diagonals(alphas, n_threads)
        if intercept:
            change = (ones / self.root) ** 2 / ones.sum(axis=1, keepdims=True)
            inverse -= change.mean(axis=1, keepdims=True) if mean else change
        return Residuals(beta, b, inverse)

    def _trace(self, alphas: Vector) -> Vector:
        """That of (√w K √w + λ)⁻¹ for each λ."""
        from mercer._numerics.tridiagonal import inverse_traces

        out = np.empty(len(alphas))
        inverse_traces(self.diagonal, self.below, alphas, out)
        return out + (len(self.root) - self.rank) / alphas

    def _diagonals(self, alphas: Vector, n_threads: int) -> Matrix:
        """Those of (√w K √w + λ)⁻¹ for each λ."""
        from mercer._numerics.tridiagonal import STEPS, factor, inverse_diagonals

        n, L = len(self.root), len(alphas)
        P = self._columns(n_threads)
        ratios, weights = np.zeros((2, L, -(-self.rank // STEPS) * STEPS))
        factor(self.diagonal, self.below, alphas, ratios, weights)
        inverse = np.empty((L, n))
        run_shares(lambda a, b: inverse_diagonals(P, ratios, weights, a, b, inverse), n, n_threads, align=128)
        if self.rank < n:
            outside = np.clip(1.0 - np.einsum("ki,ki->i", P, P), 0.0, 1.0)
            inverse += outside / alphas[:, None]
        return inverse

    def _columns(self, n_threads: int) -> Matrix:
        """P itself."""
        if isinstance(self.basis, Reflections):
            if self.single:
                return self.basis.rounded(n_threads)
            self.basis = self.basis.columns(n_threads)
        return self.basis.P

    def solutions(self, Y: Matrix, alphas: Vector, intercept: bool) -> tuple[Matrix, Matrix]:
        """β and b for each λ: arrays (λ, n, targets) and (λ, targets)."""
        return self._solutions(Y, alphas, intercept)[:2]

    def _solutions(self, Y: Matrix, alphas: Vector, intercept: bool) -> tuple[Matrix, Matrix, Matrix]:
        """β, b and, where there is an intercept, the solution for a right side of ones; else zeros."""
        m = Y.shape[1]
        right = (np.column_stack([Y, np.ones(len(Y))]) if intercept else Y) * self.root[:, None]
        with one_blas_thread():
            solved = self.solve(right, alphas) * self.root[:, None]
        beta, b, ones = solved[:, :, :m], np.zeros((len(alphas), m)), np.zeros(solved.shape[:2])
        if intercept:
            ones = solved[:, :, m]
            b = beta.sum(axis=1) / ones.sum(axis=1, keepdims=True)
            beta = beta - b[:, None, :] * ones[:, :, None]
        return beta, b, ones


def reduce(data: Data, weight: Vector, smallest_alpha: float, options: Options) -> Reduction:
    """The reduction of √w K √w: of low rank where that explains all of it, else of the whole matrix."""
    n, root = data.n, np.sqrt(weight)
    with one_blas_thread():
        found = _low_rank(data, root, smallest_alpha, options) if n >= LOW_FROM and data.psd else None
        if found is None:
            needed = 8 * n * n
            if needed > options.budget:
                raise InvalidInputError(
                    f"The decomposition of the kernel matrix of {n} samples needs {needed / 2**30:.3g} GB, but "
                    f"cache_size allows {options.budget / 2**30:.3g} GB. Choose alpha on a part of the samples and "
                    "fit all of them with KernelRidge, or raise cache_size."
                )
            K = data.matrix(np.float64, options.n_threads, np.empty((n, n)))
            check_finite(K.diagonal())
            highest = float((K.diagonal() * weight).max())
            # what is rounded takes memory of its own
            rounds = n >= SINGLE_FROM and options.precision != "float64" and 1.5 * needed <= options.budget
            return of_matrix(K, root).examine(smallest_alpha, highest if rounds else np.inf)
    return found.examine(smallest_alpha)


def of_matrix(K: Matrix, root: Vector) -> Reduction:
    """The reduction of a matrix that exists, in its memory."""
    n = len(K)
    if (root != 1).any():
        K *= root
        K *= root[:, None]
    if n == 1:
        return Reduction(Columns(np.ones((1, 1))), K.diagonal().copy(), np.empty(0), root)
    sytrd = linalg.get_lapack_funcs("sytrd", (K,))
    _, diagonal, below, tau, _ = sytrd(K.T, lower=1, overwrite_a=1, lwork=WORK * n)
    check_finite(diagonal)
    return Reduction(Reflections(K, tau), diagonal, below, root)


def _low_rank(data: Data, root: Vector, smallest_alpha: float, options: Options) -> Reduction | None:
    """K as LL' and L as QR: K = Q (RR') Q', and RR' is reduced. None where the rank is not low."""
    n = data.n
    gram = GramOperator(data.kernel, data.features(np.float64), options.n_threads, data.evaluations)
    check_finite(gram.diagonal())
    rank = int(min(LOW * n, options.budget // (24 * n)))
    low = pivoted_cholesky(gram, rank, LEFT_OUT * smallest_alpha, root, only_exact=True)
    if not low.exact or low.L.shape[1] == 0:
        return None
    Q, R = linalg.qr(low.L, mode="economic", overwrite_a=False, check_finite=False)
    inner = of_matrix(R @ R.T, np.ones(len(R)))
    P = np.ascontiguousarray(inner.basis.inward(np.ascontiguousarray(Q.T)))
    return Reduction(Columns(P), inner.diagonal, inner.below, root)
