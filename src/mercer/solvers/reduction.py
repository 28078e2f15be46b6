"""One decomposition of the kernel matrix, and ridge regressions for all λ follow from it.

    √w K √w = P' B P,     the rows of P orthonormal, B with a few diagonals

    (√w K √w + λ)⁻¹ = P' (B + λ)⁻¹ P + (I − P'P) / λ

Going on from B to eigenvalues would double the work and gain nothing: systems with B + λ are solved in as many
operations as B has entries, or a few times as many. For fewer than WIDE_FROM samples B is tridiagonal. Half of the work
for that are products with single vectors, which wait for memory; for WIDTH diagonals on each side all are products of
matrices. If K has a low rank (few features, a smooth kernel), P has as many rows, and neither K nor P is square.

Leaving out sample i changes its residual to βᵢ / Hᵢᵢ, where H is the inverse of the whole system

    M = [K + λ/w, 1; 1', 0]          (without the last row and column if there is no intercept)

since striking row and column i from M gives the system without that sample. (Allen's PRESS; [M5] asks for the choice of
λ.) Generalised cross-validation (Golub, Heath & Wahba 1979) takes the mean of Hᵢᵢ / wᵢ in place of each: it needs the
trace of (B + λ)⁻¹, and P for a few vectors only, which its reflections give.

Hᵢᵢ needs column p of P itself, as p'(B + λ)⁻¹p. If p is rounded by δ, that changes by 2δ'(B + λ)⁻¹p, a share of at most

    2 |δ| √((Kᵢᵢ + λ) / (μ + λ)),     μ the smallest eigenvalue,

since Hᵢᵢ ≥ 1 / (Kᵢᵢ + λ): a square root of what rounding in B would be magnified by. So B and the factors of B + λ are
computed in float64, and P and p'(B + λ)⁻¹p in float32 where the root is small; the errors, which have many signs, then
change scores by less than 1e-6.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import linalg

from mercer._numerics.pool import run_shares
from mercer.exceptions import InvalidInputError
from mercer.gram.low_rank import pivoted_cholesky
from mercer.gram.operator import GramOperator
from mercer.kernels.features import Matrix, Vector
from mercer.solvers.base import Options
from mercer.solvers.basis import Columns, Reflections, block_of
from mercer.solvers.blas import one_blas_thread
from mercer.solvers.data import Data, check_finite
from mercer.solvers.inplace import add_symmetric, reflect_rows, times_symmetric

EPS = float(np.finfo(np.float64).eps)
# K may be replaced by LL' if what is left is this small, relative to the smallest λ: so wrong may scores be
LEFT_OUT = 1e-7
# a factor of lower rank pays up to this share of the samples, and from this size on
LOW = 0.5
LOW_FROM = 200
# numbers of work space for each row: the blocks in which LAPACK works
WORK = 64
# diagonals of B on each side of its own, from this size on; below there is one
WIDTH = 32
WIDE_FROM = 1600
# P may be rounded to float32 up to this (Kᵢᵢ + λ) / (μ + λ), and is from this size on
FORGIVEN = 2e4
SINGLE_FROM = 640


class Residuals(NamedTuple):
    """For each λ: β, b, and the diagonal of H divided by w, or its mean: (λ, n, targets), (λ, targets), (λ, n or 1)."""

    beta: Matrix
    intercept: Matrix
    inverse: Matrix


class Reduction:
    """P and B of a weighted kernel matrix: band[k, d] = B[k + d, k], zero where there is no such row."""

    def __init__(self, basis: Columns | Reflections, band: Matrix, root: Vector) -> None:
        self.basis = basis
        self.band = band
        self.root = root
        self.definite = True
        # whether P may be rounded
        self.single = False
        self._last: tuple[Vector, Matrix, Matrix] | None = None

    @property
    def rank(self) -> int:
        """The number of rows of B."""
        return len(self.band)

    def _exceeds(self, bound: float) -> bool:
        """Whether all eigenvalues of B are greater."""
        shifted = self.band.T.copy()
        shifted[0] -= bound
        return bool(linalg.lapack.dpbtrf(shifted, lower=1, overwrite_ab=1)[1] == 0)

    def examine(self, smallest_alpha: float, highest: float = np.inf) -> Reduction:
        """See whether K + λ is positive definite, and take rounding out of B if only that is in the way. Edits B.

        And whether P may be rounded, where ``highest`` is the largest entry of the diagonal of K.
        """
        sizes = np.abs(self.band)
        sums = sizes.sum(axis=1)
        for d in range(1, min(self.band.shape[1], self.rank)):
            sums[d:] += sizes[:-d, d]
        # no eigenvalue is larger than the sum of a row
        rounding = 4.0 * self.rank * EPS * float(sums.max())
        self.definite = self._exceeds(min(-rounding, rounding - smallest_alpha))
        if self.definite and not self._exceeds(rounding - smallest_alpha):
            self.band[:, 0] += rounding
        needed = (highest + smallest_alpha) / FORGIVEN - smallest_alpha
        self.single = self.definite and np.isfinite(needed) and (needed <= 0.0 or self._exceeds(needed))
        return self

    def solve(self, R: Matrix, alphas: Vector) -> Matrix:
        """(√w K √w + λ)⁻¹ R for each λ: an array (λ, n, columns). P is read twice for all of them."""
        inside = self.basis.inward(R)
        whole = self.rank == len(R)
        middle = np.empty((len(alphas), R.shape[1], self.rank))
        for k, solved in enumerate(self._solve_banded(np.ascontiguousarray(inside.T), alphas)):
            middle[k] = solved if whole else solved - inside.T / alphas[k]
        outside = self.basis.outward(np.ascontiguousarray(middle.reshape(-1, self.rank).T))
        out = outside.reshape(len(R), len(alphas), -1).swapaxes(0, 1)
        return out if whole else out + R / alphas[:, None, None]

    def _solve_banded(self, right: Matrix, alphas: Vector) -> Iterator[Matrix]:
        """(B + λ)⁻¹ applied to the rows of ``right``, for each λ."""
        from mercer._numerics.banded import substitute

        if self.definite:
            rows, weights = self._factors(alphas)
            for k in range(len(alphas)):
                out = np.empty_like(right)
                substitute(rows[k], weights[k], right, out)
                yield out
            return
        width = self.band.shape[1] - 1
        both = np.zeros((2 * width + 1, self.rank))
        for d in range(width + 1):
            both[width + d, : self.rank - d] = both[width - d, d:] = self.band[: self.rank - d, d]
        for alpha in alphas:
            shifted = both.copy()
            shifted[width] += alpha
            yield linalg.solve_banded((width, width), shifted, right.T, check_finite=False).T

    def _factors(self, alphas: Vector) -> tuple[Matrix, Matrix]:
        """Rows of L, with zeros before them, and weights, for each λ; up to a multiple of STEPS. The last are kept."""
        from mercer._numerics.banded import FRONT, STEPS, factor

        if self._last is not None and np.array_equal(self._last[0], alphas):
            return self._last[1:]
        rows = np.zeros((len(alphas), -(-self.rank // STEPS) * STEPS, self.band.shape[1] - 1 + FRONT))
        weights = np.zeros(rows.shape[:2])
        factor(self.band, alphas, rows, weights)
        self._last = alphas, rows, weights
        return rows, weights

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
        from mercer._numerics.banded import inverse_traces

        out = np.empty(len(alphas))
        inverse_traces(*self._factors(alphas), self.rank, out)
        return out + (len(self.root) - self.rank) / alphas

    def _diagonals(self, alphas: Vector, n_threads: int) -> Matrix:
        """Those of (√w K √w + λ)⁻¹ for each λ."""
        from mercer._numerics.banded import STEP, inverse_diagonals

        n = len(self.root)
        P = self._columns(n_threads)
        rows, weights = self._factors(alphas)
        # float32 has neither the range of 1 / λ nor the same rounding for each λ
        scale = weights.max(axis=1, keepdims=True) if self.single else np.ones((len(alphas), 1))
        rows, weights = rows.astype(P.dtype, copy=False), (weights / scale).astype(P.dtype, copy=False)
        inverse = np.empty((len(alphas), n))
        run_shares(lambda a, b: inverse_diagonals(P, rows, weights, a, b, inverse), n, n_threads, align=STEP)
        inverse *= scale
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
    if n <= 2:
        return Reduction(Columns(np.eye(n)), _band_of(K, 1), root)
    width = 1 if n < WIDE_FROM else WIDTH
    tau = _tridiagonal(K) if width == 1 else _banded(K, width)
    band = _band_of(K, width)
    check_finite(band[:, 0])
    return Reduction(Reflections(K, tau, width), band, root)


def _band_of(K: Matrix, width: int) -> Matrix:
    """band[k, d] = K[k, k + d]."""
    band = np.zeros((len(K), width + 1))
    for d in range(min(width + 1, len(K))):
        band[: len(K) - d, d] = K.diagonal(d)
    return band


def _tridiagonal(K: Matrix) -> Vector:
    """Reduce K to three diagonals, and return the τ of the reflections. Edits K."""
    sytrd = linalg.get_lapack_funcs("sytrd", (K,))
    tau: Vector = sytrd(K.T, lower=1, overwrite_a=1, lwork=WORK * len(K))[3]
    return tau


def _banded(K: Matrix, width: int) -> Vector:
    """Reduce K to so many diagonals on each side, and return the τ of the reflections. Edits the upper triangle of K.

    Some rows at a time: Q = I − VSV' takes what is right of their band to zero, and the rest A of K becomes

        Q'AQ = A − WV' − VW',     W = Y − ½ V (S'V'Y),     Y = AVS          (Dongarra, Sorensen & Hammarling 1989)
    """
    n = len(K)
    tau, work = np.zeros(n - width), np.empty(WORK * n)
    for c in range(0, n - width, width):
        reflect_rows(K[c : c + width, c + width :], tau[c:], work)
        k = c + width
        V, A = K[c : min(k, n - width), k:].copy(), K[k:, k:]
        _, V[:, : len(V)], S = block_of(V, tau[c : c + len(V)], slice(0, len(V)))
        Y = S.T @ times_symmetric(V, A)
        add_symmetric(A, V, Y - 0.5 * ((Y @ V.T) @ S).T @ V, -1.0)
    return tau


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
    return Reduction(Columns(P), inner.band, root)
