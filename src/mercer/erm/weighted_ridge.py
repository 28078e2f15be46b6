"""Weighted ridge regressions over one kernel matrix, by conjugate gradients with preconditioners for all weights.

    (K + D) δ + c = r,     Σδ = 0 (if there is an intercept),      D = 1/W diagonal

The sum is kept at 0 by the preconditioner M: it maps g to M⁻¹(g − c) with the c for which the result adds up to 0
(projected conjugate gradients: Gould, Hribar & Nocedal, SIAM J. Scientific Computing 23, 2001). At first M is D; if
that takes many products with K, M is LL' + D with a pivoted Cholesky factor L of low rank; if that takes as many
products as a whole factor costs, M is K + D with the D of that time, by a Cholesky factor, in float32 if D allows it.
The factor is used again while few weights have changed: each unchanged one adds an eigenvalue 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mercer.erm.kernel_matrix import stored_gram
from mercer.gram.low_rank import LowRank, pivoted_cholesky
from mercer.gram.memory import Loan
from mercer.gram.operator import Data, GramOperator, check_finite, symmetric_product
from mercer.kernels.features import Features, Matrix, Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import Options
from mercer.ridge.factor import StoppedError, Woodbury, cholesky_in_place, restore_upper, solve_with

EPS = float(np.finfo(np.float64).eps)
# products with K for one system that cost as much as a factor of low rank, and as a whole one in float32 (measured: 30
# to 70 for 300 to 4,000 rows)
WORTH_LOW_RANK, WORTH_A_FACTOR = 12, 40
# rows for each column of a factor of low rank beside a stored matrix
ROWS_PER_COLUMN = 16
# a factor is used as long as at most this many weights differ; each costs a product and a solution with it at most
FEW_CHANGES = 10
# a float32 factor is used if D is at least this share of |K|; float64 adds at least this share of it
SINGLE_SHARE, DOUBLE_SHARE = 3e-8, 1e-15
# most products for a system, and those without a smaller residual after which rounding allows no more
MOST_PRODUCTS, PATIENCE = 5000, 150
# rank of the preconditioner if the matrix is not stored, and the share of the time left that it may take
RANK, RANK_SHARE = 512, 0.25

Linear = Callable[[Vector], Vector]


class Step(NamedTuple):
    """δ, Kδ and c; whether the residual is within the goal; and a curvature v'(K + D)v/v'v ≤ 0 that was met, or 1."""

    delta: Vector
    K_delta: Vector
    c: float
    solved: bool
    curvature: float


class StoredSystem:
    """K in float64, and factors of it as soon as they pay."""

    def __init__(self, data: Data, options: Options) -> None:
        self.data, self.gram, self.n_threads = data, stored_gram(data, options), options.n_threads
        self.diagonal = self.gram.diagonal
        self.seconds = 0.0
        with np.errstate(over="ignore"):
            self.norm = float(np.linalg.norm(self.gram.K))
        check_finite(self.norm)
        self._has_room = 12 * data.n**2 <= options.budget
        self._low: LowRank | None = None
        self._single: Loan | None = None
        self._factor: Matrix | None = None
        self._D = np.empty(0)
        self._products = 0

    def product(self, v: Vector) -> Vector:
        """K v, from the lower triangle; the diagonal may be that of a factor."""
        self._products += 1
        return self.gram.product(v[:, None])[:, 0] + (self.diagonal - self.gram.K.diagonal()) * v

    @property
    def has_factor(self) -> bool:
        """Whether a system with new weights is solved by a factor, to any accuracy at the same price."""
        return self._factor is not None

    def preconditioner(self, D: Vector, clock: Clock) -> Linear:
        """M⁻¹ for a system with these D."""
        self._products = 0
        if self._factor is not None and int((D != self._D).sum()) > FEW_CHANGES:
            self._refactor(D, clock)
        return self._applied(D)

    def sharper(self, D: Vector, clock: Clock) -> Linear | None:
        """Another M⁻¹ if products have cost more than it does; None if there is no reason to change."""
        limit = WORTH_LOW_RANK if self._low is None else WORTH_A_FACTOR
        if self._products < (limit if self._factor is None else FEW_CHANGES + 5):
            return None
        self._products = 0
        if self._low is None:
            rank = min(RANK, self.gram.n // ROWS_PER_COLUMN)
            self._low = low_rank(self.data, self.data.features(np.float64), self.n_threads, rank)
        else:
            self._refactor(D, clock)
        return self._applied(D)

    def _refactor(self, D: Vector, clock: Clock) -> None:
        self._factor, self._D = self._factored(D, clock), D

    def _applied(self, D: Vector) -> Linear:
        U = self._factor
        if U is not None:
            return lambda g: solve_with(U, g[:, None])[:, 0]
        return (lambda g: g / D) if self._low is None else woodbury(self._low, D)

    def _factored(self, D: Vector, clock: Clock) -> Matrix | None:
        """The factor of K + D in float32, or in the upper triangle of K; None if it fails or time is over."""
        least = float(D.min())
        single = self._has_room and least >= SINGLE_SHARE * self.norm and float(D.max()) + self.norm < 1e30
        K = self.gram.K
        for dtype in (np.float32, np.float64) if single else (np.float64,):
            A = K
            if dtype == np.float32:
                self._single = self._single or Loan(K.size, np.dtype(np.float32))
                A = self._single.array.reshape(K.shape)
                np.copyto(A, K.T)
            else:
                restore_upper(K)
            A[np.diag_indices_from(A)] = self.diagonal + np.maximum(D, DOUBLE_SHARE * len(K) * self.norm)
            try:
                if cholesky_in_place(A, self.n_threads, clock) and np.isfinite(A.diagonal()).all():
                    return A
            except StoppedError:
                break
        np.fill_diagonal(K, self.diagonal)
        return None


class TiledSystem:
    """K by tiles that are never stored; the preconditioner is a pivoted Cholesky factor of low rank."""

    def __init__(self, data: Data, options: Options, clock: Clock) -> None:
        self.data, self.n_threads = data, options.n_threads
        self.features = data.features(np.float64)
        self.diagonal = data.kernel.diagonal(self.features)
        check_finite(self.diagonal)
        n, limited = data.n, clock.left < np.inf
        self.seconds = data.seconds(n, 0.5 * n, options.n_threads) if limited else 0.0
        rank = int(min(RANK, n // 4, max(1, options.budget // (24 * n))))
        if limited:
            left = RANK_SHARE * max(0.0, clock.left - 2.0 * self.seconds)
            rank = int(min(rank, left / data.column_seconds(n, options.n_threads)))
        self.low = low_rank(data, self.features, options.n_threads, rank)

    def product(self, v: Vector) -> Vector:
        """K v; each kernel value is computed once for both of its places."""
        a = self.features
        return symmetric_product(self.data.kernel, a, np.ascontiguousarray(v), self.n_threads, self.data.evaluations)

    has_factor = False

    def preconditioner(self, D: Vector, clock: Clock) -> Linear:
        """(LL' + D)⁻¹."""
        return woodbury(self.low, D)

    def sharper(self, D: Vector, clock: Clock) -> Linear | None:
        """None: there is no other preconditioner."""
        return None


def low_rank(data: Data, features: Features, n_threads: int, rank: int) -> LowRank:
    """A pivoted Cholesky factor of K with at most ``rank`` columns."""
    gram = GramOperator(data.kernel, features, n_threads, data.evaluations)
    return pivoted_cholesky(gram, rank, EPS * float(np.abs(gram.diagonal()).sum()))


def woodbury(low: LowRank, D: Vector) -> Linear:
    """(LL' + D)⁻¹, with the trace of K − LL' spread over the diagonal."""
    inverse = Woodbury(low.L, D + low.rest / len(D))
    return lambda g: inverse(g[:, None])[:, 0]


def solve_weighted(
    system: Any, W: Vector, r: Vector, fits_intercept: bool, forcing: float, goal: float, clock: Clock
) -> Step:
    """Solve until g'Wg of the residual g = r − c − (K + D)δ is at most ``goal``, or ``forcing``² of its first value."""
    D, n = 1.0 / W, len(W)
    inverse, ones = system.preconditioner(D, clock), np.ones(n)
    flat = inverse(ones) if fits_intercept else ones

    def projected(g: Vector) -> Vector:
        z = inverse(g)
        return z - flat * (z.sum() / flat.sum()) if fits_intercept else z

    def measured(g: Vector) -> tuple[float, float]:
        """Subtract the mean from g: it would cancel digits of M⁻¹g (Gould, Hribar & Nocedal's residual update)."""
        mean = float(W @ g) / float(W.sum()) if fits_intercept else 0.0
        g -= mean
        return float(W @ g**2), mean

    delta, K_delta, g = np.zeros(n), np.zeros(n), r.copy()
    (left, c), curvature = measured(g), 1.0
    goal = max(goal, forcing**2 * left)
    z = projected(g)
    p, along = z, float(g @ z)
    best, since = left, 0
    for _ in range(MOST_PRODUCTS):
        if left <= goal or since > PATIENCE or not along > 0.0 or clock.over_in(2.0 * system.seconds) is not None:
            break
        Kp = system.product(p)
        Ap = Kp + D * p
        steepness = float(p @ Ap)
        if not steepness > 0.0:
            curvature = steepness / float(p @ p)
            break
        length = along / steepness
        delta += length * p
        K_delta += length * Kp
        g -= length * Ap
        left, mean = measured(g)
        c += mean
        best, since = (left, 0) if left < best else (best, since + 1)
        other = system.sharper(D, clock) if left > goal else None
        if other is not None:
            # begin again from here, since the directions belong to the former preconditioner
            inverse, since = other, 0
            flat = inverse(ones) if fits_intercept else ones
        z = projected(g)
        before, along = along, float(g @ z)
        p = z if other is not None else z + (along / before) * p
    return Step(delta, K_delta, c, left <= goal, curvature)
