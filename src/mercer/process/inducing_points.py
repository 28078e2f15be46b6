"""Gaussian process regression through m inducing points: bounds of the evidence from both sides, in blocks of rows.

With K_mm + jI = LL', Φ = L⁻¹ K_mn and Q = Φ'Φ the matrix K − Q is positive semidefinite. So for y = h(x) + noise of
variance σ² (Titsias, AISTATS 2009; Titsias 2014 and Burt, Rasmussen & van der Wilk, ICML 2019):

    log p(y) ≥ log N(y; 0, Q + σ²I) − t / (2σ²),                                       t = tr(K − Q)
    log p(y) ≤ −½ log |Q + σ²I| − ½ y'(Q + (σ² + t)I)⁻¹ y − ½ n log 2π

Both need the m × m matrix ΦΦ' and the vector Φy only, which are sums over rows. With Σ = LBL', B = I + ΦΦ'/σ²,
μ = Σ⁻¹ K_mn y / σ² and α = (y − K_nm μ) / σ², the derivatives of the lower bound are

    ∂/∂K_nm = α μ' + K_nm (K_mm⁻¹ − Σ⁻¹) / σ²        ∂/∂k(xᵢ, xᵢ) = −1 / (2σ²)
    ∂/∂K_mm = −½ (μ μ' + K_mm⁻¹ Σ K_mm⁻¹ − 2 K_mm⁻¹ + Σ⁻¹)
    ∂/∂σ²   = ½ (α'α − (n − m + tr(B⁻¹)) / σ²) + t / (2σ⁴)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack

from mercer._compiled.blas import one_blas_thread
from mercer._compiled.thread_pool import run_tasks
from mercer.gram.low_rank import choose_landmarks
from mercer.gram.operator import GramOperator, prepare_columns
from mercer.kernels.base import Kernel
from mercer.kernels.features import Features, Matrix, Vector, count_samples, span, take_samples

# rows that are computed together, and the same for derivatives of the diagonal
BLOCK, DIAGONAL = 2048, 64
# j, as a share of the largest k(z, z): the first with which K_mm has a factor
JITTERS = (1e-12, 1e-10, 1e-8, 1e-6)
# rounding of t, as a share of tr K
ROUNDING = 1e-13
# inducing points are chosen from POOL random samples, or PER_POINT per point if that is more; from all if fewer exist
PER_POINT, POOL = 20, 20_000


@dataclass(frozen=True)
class SparsePosterior:
    """The factors L of K_mm + jI and L_B of B, μ, the bounds of log p(y), t = tr(K − Q), and j / max k(z, z)."""

    L: Matrix
    LB: Matrix
    mu: Vector
    lower: float
    upper: float
    trace: float
    jitter: float


class InducingEvidence:
    """The bounds of log p(y) as functions of the kernel, the noise variance and the inducing points."""

    def __init__(self, samples: Any, y: Vector, n_threads: int = 1) -> None:
        self.samples, self.y, self.n, self.n_threads = samples, y, count_samples(samples), n_threads

    def posterior(self, kernel: Kernel, noise: float, points: Any) -> SparsePosterior | None:
        """Factors, μ and bounds; None if K_mm + jI has no factor."""
        return self._posterior(kernel, noise, kernel.prepare(self.samples), kernel.prepare(points))

    def value_and_gradient(
        self, kernel: Kernel, noise: float, points: Any, locations: bool = False
    ) -> tuple[float, Vector, float, Matrix | None]:
        """The lower bound and its derivatives by ``kernel.theta``, by log σ², and by the points if ``locations``.

        -inf and zeros if K_mm + jI has no factor.
        """
        rows, columns = kernel.prepare(self.samples), kernel.prepare(points)
        found = self._posterior(kernel, noise, rows, columns)
        if found is None:
            return -np.inf, np.zeros(len(kernel.theta)), 0.0, np.zeros(points.shape) if locations else None
        m = len(columns)
        inverse = _inverse(found.L)
        inner = _inverse(found.LB)  # B⁻¹
        half = lapack.dtrtrs(found.L, np.eye(m), lower=1)[0]
        sigma_inverse = half.T @ inner @ half
        B = found.LB @ found.LB.T
        weights_mm = -0.5 * (np.outer(found.mu, found.mu) + half.T @ B @ half - 2.0 * inverse + sigma_inverse)
        shrink = (inverse - sigma_inverse) / noise
        place = int(np.argmax(kernel.diagonal(columns)))
        weights_mm[place, place] += found.jitter * np.trace(weights_mm)  # j is a share of the largest k(z, z)
        theta = kernel.gradient_products(columns, columns, weights_mm)
        moved = kernel.sample_gradients(points, points, 2.0 * weights_mm) if locations else None
        residuals, parts, moves = self._row_sums(kernel, rows, columns, points, found.mu, shrink, noise, locations)
        theta = theta + parts + self._diagonal_sums(kernel, rows, -0.5 / noise)
        slope = 0.5 * (residuals / noise**2 - (self.n - m + np.trace(inner)) / noise) + found.trace / (2.0 * noise**2)
        return found.lower, theta, float(noise * slope), None if moved is None else moved + moves

    def choose(self, kernel: Kernel, count: int, random: Any) -> Vector:
        """Indices of the samples with the largest variance given the samples chosen before (Burt et al., JMLR 2020)."""
        pool = np.arange(self.n)
        if self.n > max(POOL, PER_POINT * count):
            pool = np.sort(random.permutation(self.n)[: max(POOL, PER_POINT * count)])
        features = kernel.prepare(take_samples(self.samples, pool) if len(pool) < self.n else self.samples)
        gram = GramOperator(kernel, features, self.n_threads)
        return pool[choose_landmarks(gram, min(count, len(pool)), "cholesky", random)]

    # ---- sums over rows --------------------------------------------------------------------------------------

    def _posterior(self, kernel: Kernel, noise: float, rows: Features, columns: Features) -> SparsePosterior | None:
        n, m, y = self.n, len(columns), self.y
        K_mm = np.asarray(kernel.block(columns, columns), np.float64)
        diagonal, largest = kernel.diagonal(rows), float(np.diagonal(K_mm).max(initial=0.0))
        for jitter in JITTERS:
            L, failed = lapack.dpotrf(K_mm + jitter * largest * np.eye(m), lower=1, clean=1)
            if not failed:
                break
        if failed or not np.all(np.isfinite(L)) or not np.all(np.isfinite(diagonal)):
            return None
        inverse, _ = lapack.dtrtri(L, lower=1)
        gram, product = self._moments(kernel, rows, columns, np.asarray(inverse))
        trace = max(0.0, float(diagonal.sum()) - float(np.trace(gram)))
        LB, failed = lapack.dpotrf(np.eye(m) + gram / noise, lower=1, clean=1)
        if failed or not np.all(np.isfinite(LB)):
            return None
        squares, half_log = float(y @ y), float(np.log(np.diagonal(LB)).sum()) + 0.5 * n * np.log(noise)
        c = lapack.dtrtrs(LB, product, lower=1)[0] / noise
        constant = -0.5 * n * np.log(2.0 * np.pi) - half_log
        lower = constant - 0.5 * (squares / noise - float(c @ c)) - 0.5 * trace / noise
        wider = noise + trace + ROUNDING * float(diagonal.sum())
        LU, _ = lapack.dpotrf(np.eye(m) + gram / wider, lower=1, clean=1)
        c_wide = lapack.dtrtrs(LU, product, lower=1)[0] / wider
        upper = constant - 0.5 * (squares / wider - float(c_wide @ c_wide))
        mu = lapack.dtrtrs(L, lapack.dtrtrs(LB, c, lower=1, trans=1)[0], lower=1, trans=1)[0]
        return SparsePosterior(L, LB, mu, float(lower), float(upper), trace, jitter)

    def _moments(self, kernel: Kernel, rows: Features, columns: Features, inverse: Matrix) -> tuple[Matrix, Vector]:
        """ΦΦ' and Φy."""
        m, starts = len(columns), range(0, self.n, BLOCK)
        parts = min(len(starts), 4 * self.n_threads)
        grams, products = np.zeros((parts, m, m)), np.zeros((parts, m))
        prepare_columns(columns)

        def one(task: int) -> None:
            for start in starts[task::parts]:
                stop = min(start + BLOCK, self.n)
                phi = kernel.block(span(rows, start, stop), columns) @ inverse.T
                grams[task] += phi.T @ phi
                products[task] += self.y[start:stop] @ phi

        with one_blas_thread():
            run_tasks(one, parts, self.n_threads)
        return grams.sum(axis=0), products.sum(axis=0)

    def _row_sums(
        self,
        kernel: Kernel,
        rows: Features,
        columns: Features,
        points: Any,
        mu: Vector,
        shrink: Matrix,
        noise: float,
        locations: bool,
    ) -> tuple[float, Vector, Any]:
        """|y − K_nm μ|², and Σ (∂/∂K_nm) ∂K_nm by theta and by the points."""
        starts = range(0, self.n, BLOCK)
        theta, squares = np.zeros((len(starts), len(kernel.theta))), np.zeros(len(starts))
        moves: list[Any] = [0.0] * len(starts)
        prepare_columns(columns)

        def one(task: int) -> None:
            start, stop = starts[task], min(starts[task] + BLOCK, self.n)
            part = span(rows, start, stop)
            K = kernel.block(part, columns)
            left = self.y[start:stop] - K @ mu
            weights = K @ shrink
            weights += np.outer(left / noise, mu)
            squares[task] = left @ left
            theta[task] = kernel.gradient_products(part, columns, weights)
            if locations:
                moves[task] = kernel.sample_gradients(points, self.samples[start:stop], np.ascontiguousarray(weights.T))

        with one_blas_thread():
            run_tasks(one, len(starts), self.n_threads)
        return float(squares.sum()), theta.sum(axis=0), sum(moves)

    def _diagonal_sums(self, kernel: Kernel, rows: Features, weight: float) -> Vector:
        """weight Σ ∂k(xᵢ, xᵢ), from small blocks next to the diagonal."""
        starts = range(0, self.n, DIAGONAL)
        parts, weights = np.zeros((len(starts), len(kernel.theta))), weight * np.eye(DIAGONAL)

        def one(task: int) -> None:
            size = min(DIAGONAL, self.n - starts[task])
            part = span(rows, starts[task], starts[task] + size)
            parts[task] = kernel.gradient_products(part, part, np.ascontiguousarray(weights[:size, :size]))

        prepare_columns(rows)
        run_tasks(one, len(starts), self.n_threads)
        return np.asarray(parts.sum(axis=0))


def _inverse(L: Matrix) -> Matrix:
    """(LL')⁻¹."""
    found, _ = lapack.dpotri(L, lower=1)
    return np.asarray(np.tril(found) + np.tril(found, -1).T)
