"""One decomposition of the kernel matrix that solves ridge regressions for all λ.

    √w K √w = P' B P,     the rows of P orthonormal, B with a few diagonals

    (√w K √w + λ)⁻¹ = P' (B + λ)⁻¹ P + (I − P'P) / λ

Computing eigenvalues of B would double the work for no gain: a system with B + λ costs a few operations per entry of B.
For fewer than WIDE_FROM samples B is tridiagonal. Half of that reduction is matrix-vector products, limited by memory
bandwidth; with WIDTH diagonals on each side all are matrix products. If K has a low rank (few features, a smooth
kernel), P has only as many rows.

If sample i is left out, its residual is βᵢ / Hᵢᵢ, where H is the inverse of the whole system

    M = [K + λ/w, 1; 1', 0]          (without the last row and column if there is no intercept)

since deleting row and column i of M gives the system without that sample (Allen's PRESS; [M5] on the choice of λ).
Generalised cross-validation (Golub, Heath & Wahba 1979) replaces each Hᵢᵢ / wᵢ by their mean: it needs the trace of
(B + λ)⁻¹, and products of P with a few vectors only, which its reflections give.

Hᵢᵢ requires column p of P, for p'(B + λ)⁻¹p. If p is rounded by δ, this changes by 2δ'(B + λ)⁻¹p, a share of at most

    2 |δ| √((Kᵢᵢ + λ) / (μ + λ)),     μ the smallest eigenvalue,

since Hᵢᵢ ≥ 1 / (Kᵢᵢ + λ). Rounding in B would be magnified by the square of this root. So B and the factors of B + λ
are computed in float64, and P and p'(B + λ)⁻¹p in float32 if the root is small; the errors, which partly cancel, then
change scores by less than 1e-6.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from mercer._compiled.blas import one_blas_thread
from mercer._compiled.thread_pool import cached_property, run_shares, run_tasks
from mercer.exceptions import InvalidInputError
from mercer.gram.low_rank import pivoted_cholesky
from mercer.gram.operator import Data, GramOperator, check_finite
from mercer.kernels.features import Matrix, Vector
from mercer.problems.solution import Options
from mercer.ridge.inplace import add_product, add_symmetric, reflect_rows, times_symmetric

EPS = float(np.finfo(np.float64).eps)
# K may be replaced by LL' if the rest is at most this share of the smallest λ, the relative error of the scores
LEFT_OUT = 1e-7
# a low-rank factor is tried up to this share of the samples as rank, and from this many samples on
LOW = 0.5
LOW_FROM = 200
# numbers of LAPACK work space per row: its block size
WORK = 64
# off-diagonals of B on each side from WIDE_FROM samples on; below there is one
WIDTH = 32
WIDE_FROM = 1600
# P is rounded to float32 if (Kᵢᵢ + λ) / (μ + λ) is at most this, and from this many samples on
FORGIVEN = 2e4
SINGLE_FROM = 640
# reflections per block
BLOCK = 96
# rows of P per task, independent of the number of threads, so that rounding does not depend on it
ROWS = 256


class Residuals(NamedTuple):
    """For each λ: β, b, and the diagonal of H / w or its mean. Shapes (λ, n, targets), (λ, targets), (λ, n or 1)."""

    beta: Matrix
    intercept: Matrix
    inverse: Matrix


class Reduction:
    """P and B of a weighted kernel matrix: band[k, d] = B[k + d, k], 0 if there is no such row."""

    def __init__(self, basis: Columns | Reflections, band: Matrix, root: Vector) -> None:
        self.basis = basis
        self.band = band
        self.root = root
        self.definite = True
        # whether P may be rounded to float32
        self.single = False
        self._last: tuple[Vector, Matrix, Matrix] | None = None

    @property
    def rank(self) -> int:
        """The number of rows of B."""
        return len(self.band)

    def _exceeds(self, bound: float) -> bool:
        """Whether all eigenvalues of B exceed ``bound``."""
        shifted = self.band.T.copy()
        shifted[0] -= bound
        return bool(linalg.lapack.dpbtrf(shifted, lower=1, overwrite_ab=1)[1] == 0)

    def examine(self, smallest_alpha: float, highest: float = np.inf) -> Reduction:
        """Check whether K + λ is positive definite and whether P may be rounded to float32. Edits B.

        If only rounding makes B + λ indefinite, a multiple of it is added to B. ``highest`` is the largest diagonal
        entry of K.
        """
        sizes = np.abs(self.band)
        sums = sizes.sum(axis=1)
        for d in range(1, min(self.band.shape[1], self.rank)):
            sums[d:] += sizes[:-d, d]
        # the largest absolute row sum bounds the eigenvalues
        rounding = 4.0 * self.rank * EPS * float(sums.max())
        self.definite = self._exceeds(min(-rounding, rounding - smallest_alpha))
        if self.definite and not self._exceeds(rounding - smallest_alpha):
            self.band[:, 0] += rounding
        needed = (highest + smallest_alpha) / FORGIVEN - smallest_alpha
        self.single = self.definite and np.isfinite(needed) and (needed <= 0.0 or self._exceeds(needed))
        return self

    def solve(self, R: Matrix, alphas: Vector) -> Matrix:
        """(√w K √w + λ)⁻¹ R for each λ: an array (λ, n, columns). Reads P twice in total."""
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
        from mercer.ridge._banded_loops import substitute

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
        """The rows of L and the weights for each λ, as `_banded_loops` describes. The last result is kept."""
        from mercer.ridge._banded_loops import FRONT, STEPS, factor

        if self._last is not None and np.array_equal(self._last[0], alphas):
            return self._last[1:]
        rows = np.zeros((len(alphas), -(-self.rank // STEPS) * STEPS, self.band.shape[1] - 1 + FRONT))
        weights = np.zeros(rows.shape[:2])
        factor(self.band, alphas, rows, weights)
        self._last = alphas, rows, weights
        return rows, weights

    def residuals(self, Y: Matrix, alphas: Vector, intercept: bool, n_threads: int, mean: bool = False) -> Residuals:
        """The solutions for all λ with the diagonals of H, or with their ``mean``."""
        beta, b, ones = self._solutions(Y, alphas, intercept)
        with one_blas_thread():
            inverse = self._trace(alphas)[:, None] / len(Y) if mean else self._diagonals(alphas, n_threads)
        if intercept:
            change = (ones / self.root) ** 2 / ones.sum(axis=1, keepdims=True)
            inverse -= change.mean(axis=1, keepdims=True) if mean else change
        return Residuals(beta, b, inverse)

    def _trace(self, alphas: Vector) -> Vector:
        """The trace of (√w K √w + λ)⁻¹ for each λ."""
        from mercer.ridge._banded_loops import inverse_traces

        out = np.empty(len(alphas))
        inverse_traces(*self._factors(alphas), self.rank, out)
        return out + (len(self.root) - self.rank) / alphas

    def _diagonals(self, alphas: Vector, n_threads: int) -> Matrix:
        """The diagonal of (√w K √w + λ)⁻¹ for each λ."""
        from mercer.ridge._banded_loops import STEP, inverse_diagonals

        n = len(self.root)
        P = self._columns(n_threads)
        rows, weights = self._factors(alphas)
        # scaled: float32 lacks the range of 1 / λ, and rounding shall not depend on λ
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
        """β, b and, with an intercept, the solution for a right-hand side of ones (else zeros)."""
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


def reduce(data: Data, weight: Vector, smallest_alpha: float, options: Options, width: int | None = None) -> Reduction:
    """Reduce √w K √w: by a low-rank factor if that is exact enough, else the whole matrix.

    ``width`` is the number of off-diagonals of B on each side; None to choose.
    """
    n, root = data.n, np.sqrt(weight)
    with one_blas_thread():
        found = _low_rank(data, root, smallest_alpha, options, width) if n >= LOW_FROM and data.psd else None
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
            # a rounded P needs additional memory
            rounds = n >= SINGLE_FROM and options.precision != "float64" and 1.5 * needed <= options.budget
            return of_matrix(K, root, width).examine(smallest_alpha, highest if rounds else np.inf)
    return found.examine(smallest_alpha)


def of_matrix(K: Matrix, root: Vector, width: int | None = None) -> Reduction:
    """The reduction of a stored matrix, in its memory; ``width`` as in `reduce`."""
    n = len(K)
    if (root != 1).any():
        K *= root
        K *= root[:, None]
    if n <= 2:
        return Reduction(Columns(np.eye(n)), _band_of(K, 1), root)
    if width is None:
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
    """Reduce K to tridiagonal form; return the τ of the reflections. Edits K."""
    sytrd = linalg.get_lapack_funcs("sytrd", (K,))
    tau: Vector = sytrd(K.T, lower=1, overwrite_a=1, lwork=WORK * len(K))[3]
    return tau


def _banded(K: Matrix, width: int) -> Vector:
    """Reduce K to ``width`` diagonals on each side; return the τ of the reflections. Edits the upper triangle of K.

    Works on ``width`` rows at a time: Q = I − VSV' eliminates the entries right of their band, and the rest A becomes

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


def _low_rank(data: Data, root: Vector, smallest_alpha: float, options: Options, width: int | None) -> Reduction | None:
    """Factor K = LL' and L = QR, so that K = Q (RR') Q', and reduce RR'. None if the rank is not low."""
    n = data.n
    gram = GramOperator(data.kernel, data.features(np.float64), options.n_threads, data.evaluations)
    check_finite(gram.diagonal())
    rank = int(min(LOW * n, options.budget // (24 * n)))
    low = pivoted_cholesky(gram, rank, LEFT_OUT * smallest_alpha, root, only_exact=True)
    if not low.exact or low.L.shape[1] == 0:
        return None
    Q, R = linalg.qr(low.L, mode="economic", overwrite_a=False, check_finite=False)
    inner = of_matrix(R @ R.T, np.ones(len(R)), width)
    P = np.ascontiguousarray(inner.basis.inward(np.ascontiguousarray(Q.T)))
    return Reduction(Columns(P), inner.band, root)


# ---- the basis P: its reflections, or its columns --------------------------------------------------------------------
#
#     P = … H_2 H_1,     H_c = I − τ_c v_c v_c'
#
# The reduction to B stores the v_c, which suffice to apply P to a few vectors. Forming P itself costs as much as B. A
# block of reflections is H_a … H_b = I − V S V' with a triangular S; its inverse has 1/τ on its diagonal, V'V above.


class Columns:
    """P itself, with a row for each row of B."""

    def __init__(self, P: Matrix) -> None:
        self.P = P

    def inward(self, R: Matrix) -> Matrix:
        """P R."""
        return self.P @ R

    def outward(self, M: Matrix) -> Matrix:
        """P' M."""
        return self.P.T @ M


class Block(NamedTuple):
    """A block of reflections: their numbers, the leading square part of V', and S."""

    at: slice
    head: Matrix
    S: Matrix


def block_of(rows: Matrix, tau: Vector, at: slice) -> Block:
    """The block of reflections that are stored right of the diagonal of these rows."""
    tau, tail = tau[at], rows[at, at.stop :]
    head = np.triu(rows[at, at], 1)
    np.fill_diagonal(head, tau != 0.0)  # τ = 0: no reflection
    inverse = np.triu(head @ head.T + tail @ tail.T, 1)
    np.fill_diagonal(inverse, 1.0 / np.where(tau != 0.0, tau, 1.0))
    return Block(at, head, linalg.lapack.dtrtri(inverse)[0])


class Reflections:
    """P as reflections in the memory of K: row c holds v_c right of column c + width, where v_c is 1 (not stored)."""

    def __init__(self, K: Matrix, tau: Vector, width: int) -> None:
        self.K = K
        self.tau = tau
        self.width = width
        # without the first columns, which no reflection changes, and the last rows, which hold none
        self._rows = K[:-width, width:]

    @cached_property
    def _blocks(self) -> list[Block]:
        n = len(self.tau)
        return [block_of(self._rows, self.tau, slice(c, min(c + BLOCK, n))) for c in range(0, n, BLOCK)]

    def inward(self, R: Matrix) -> Matrix:
        """P R."""
        out = np.array(R, dtype=np.float64)
        for block in self._blocks:
            self._reflect(block, block.S.T, out[self.width :])
        return out

    def outward(self, M: Matrix) -> Matrix:
        """P' M."""
        out = np.array(M, dtype=np.float64)
        for block in reversed(self._blocks):
            self._reflect(block, block.S, out[self.width :])
        return out

    def _reflect(self, block: Block, S: Matrix, R: Matrix) -> None:
        """R −= V S V' R. Edits R."""
        at, head, _ = block
        tail = self._rows[at, at.stop :]
        change = S @ (head @ R[at] + tail @ R[at.stop :])
        R[at] -= head.T @ change
        R[at.stop :] -= tail.T @ change

    def columns(self, n_threads: int) -> Columns:
        """Form P in the memory of the reflections, which are overwritten."""
        return Columns(self._form(self.K, n_threads))

    def rounded(self, n_threads: int) -> Matrix:
        """Form P in float32, in new memory."""
        return self._form(np.empty(self.K.shape, np.float32), n_threads)

    def _form(self, out: Matrix, n_threads: int) -> Matrix:
        """Write P to out, from the last block of reflections to the first; each block updates the rows after it."""
        n, width = len(self.tau), self.width
        P = out[width:, width:]
        for at, head, S in reversed(self._blocks):
            V = self._rows[at, at.start :].astype(out.dtype)
            V[:, : len(V)] = head
            turned = S.T.astype(out.dtype) @ V
            tail = V[:, len(V) :]

            def move(task: int, end: int = at.stop, m: int = len(V), tail: Any = tail, turned: Any = turned) -> None:
                first = end + task * ROWS
                rows = P[first : first + ROWS]
                shift = rows[:, end:] @ tail.T
                add_product(rows[:, end:], shift, turned[:, m:], -1.0)
                rows[:, end - m : end] = -shift @ turned[:, :m]

            run_tasks(move, -(-(n - at.stop) // ROWS), n_threads)
            P[at, at.start :] = -V[:, : len(V)].T @ turned
            P[range(at.start, at.stop), range(at.start, at.stop)] += 1.0
        out[:width], out[:, :width] = 0.0, 0.0
        np.fill_diagonal(out[:width, :width], 1.0)
        return out
