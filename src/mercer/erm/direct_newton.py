"""Newton's method for  ½|f|² + Σ C ℓ(f + b)  with factored steps, where conjugate gradients take too long.

With a pivoted Cholesky factor K = LL' of rank m and w = L'β the problem is over m numbers:

    min over w, b   ½|w|² + Σ C ℓ(Lw + b),      (I + L'W̃L) d = −(w + L'G)

where G is the gradient and W̃ the curvature without the direction that b takes up (`mercer.erm.truncated_newton`). The
Cholesky factorisation of this matrix takes the same time whatever C is. Lw keeps digits that Kβ loses to coefficients
of both signs, and the matrix is graded as L is, so that the small curvatures of a large C survive.

The duality gap is ½|w + L'G|². β with L'β = w follows at the end from a triangle of L.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg

from mercer.erm.sums import EPS, Curved, SmoothSum, zero_of
from mercer.erm.truncated_newton import INDEFINITE, PATIENCE, ROUNDING, NewtonResult
from mercer.gram.low_rank import whole_cholesky
from mercer.gram.products import StoredMatrix
from mercer.kernels.features import Matrix, Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import Status, TracePoint

# a search along a step ends where the slope is at most this share of that at its start
FLAT = 0.1
# diagonals tried where rounding makes the Newton matrix indefinite, as shares of its own
DIAGONALS = (0.0, 16.0 * EPS, 1e4 * EPS)


@dataclass(frozen=True, eq=False)
class Factor:
    """K = LL': L has a column for each pivot, and ``L[pivots]`` is lower triangular."""

    L: Matrix
    pivots: Vector

    @classmethod
    def of(cls, gram: StoredMatrix) -> Factor | None:
        """The pivoted Cholesky factor of K; None if K is indefinite."""
        L, pivots = whole_cholesky(gram.K)
        rest = L @ L.T
        rest -= gram.K
        if np.abs(rest).max(initial=0.0) > INDEFINITE * float(np.abs(gram.diagonal).max(initial=0.0)):
            return None
        return cls(L, pivots)

    def coefficients(self, w: Vector, G: Vector) -> Vector:
        """β with L'β = w: near −G, or of the pivots only if these coefficients are smaller, so that Kβ rounds less."""
        near, few = -G, np.zeros(len(G))
        triangle = self.L[self.pivots]
        near[self.pivots] += linalg.solve_triangular(triangle, w + self.L.T @ G, lower=True, trans="T")
        few[self.pivots] = linalg.solve_triangular(triangle, w, lower=True, trans="T")
        return near if np.abs(near).sum() <= np.abs(few).sum() else few


class FactorPoint(NamedTuple):
    """w, b, and how the run ended."""

    w: Vector
    b: Vector
    status: Status
    steps: int
    trace: list[TracePoint]


def descend_in_factor(
    factor: Factor,
    smooth: SmoothSum,
    fits_intercept: bool,
    start: FactorPoint,
    tol: float,
    max_iter: int,
    clock: Clock,
) -> FactorPoint:
    """Newton's method for one function until the duality gap is at most ``tol`` times the primal value."""
    L = factor.L
    w, b, _, steps, trace = start
    smallest, lowest, since = np.inf, np.inf, 0
    while True:
        F = (L @ w)[:, None]
        b = smooth.best_intercept(F, b) if fits_intercept else b
        loss, G = smooth.evaluate(F + b)
        rho = -(w + L.T @ G[:, 0])
        gap, primal = 0.5 * float(rho @ rho), 0.5 * float(w @ w) + loss
        point = TracePoint(clock.seconds, steps, gap / max(abs(primal), np.finfo(float).tiny), primal - gap, smooth.n)
        trace = [*trace, point]
        clock.report(point)
        progress = gap < 0.5 * smallest or primal < lowest - ROUNDING * abs(primal)
        since = 0 if progress else since + 1
        smallest, lowest = min(smallest, gap), min(lowest, primal)
        if gap <= tol * abs(primal):
            return FactorPoint(w, b, Status.CONVERGED, steps, trace)
        status = Status.STALLED if since >= PATIENCE else clock.over()
        if status is None and 0 <= max_iter <= steps:
            status = Status.MAX_ITER
        step = _step(factor, smooth.curvature(F + b), rho, fits_intercept) if status is None else None
        if step is None:
            return FactorPoint(w, b, status or Status.STALLED, steps, trace)
        length = _length(factor, smooth, w, b, step)
        w, b = w + length * step[0], b + length * step[1]
        steps += 1


def _step(factor: Factor, W: Curved, rho: Vector, fits_intercept: bool) -> tuple[Vector, Vector] | None:
    """The steps of w and b; None if the matrix cannot be factored."""
    L = factor.L
    A = W.within(L)
    pull, inverse = None, np.zeros((1, 1))
    if fits_intercept:
        inverse = np.linalg.pinv(W.total(), rcond=1e-12, hermitian=True)
        pull = L.T @ W.apply(np.ones((len(L), 1)))[:, 0]
        A -= np.outer(inverse[0, 0] * pull, pull)
    A[np.diag_indices_from(A)] += 1.0
    size = 1.0 / np.sqrt(np.diagonal(A))
    A *= size
    A *= size[:, None]
    for share in DIAGONALS:
        A[np.diag_indices_from(A)] = 1.0 + share
        try:
            solved = linalg.cho_solve(linalg.cho_factor(A, lower=True, check_finite=False), size * rho)
        except (linalg.LinAlgError, ValueError):
            continue
        d = size * solved
        return d, np.zeros(1) if pull is None else -inverse[0] * float(pull @ d)
    return None


def _length(factor: Factor, smooth: SmoothSum, w: Vector, b: Vector, step: tuple[Vector, Vector]) -> float:
    """The length of the step at which the primal value is about least: the curvature changes where losses begin."""
    d, d_b = step
    F, h = factor.L @ w, factor.L @ d
    inner, square = float(w @ d), float(d @ d)

    def slope_at(t: float) -> float:
        gradient = smooth.evaluate((F + t * h)[:, None] + (b + t * d_b), far=True)[1][:, 0]
        return inner + t * square + float(gradient @ h) + float(gradient.sum() * d_b[0])

    goal = FLAT * abs(slope_at(0.0))
    return max(zero_of(lambda t: (slope_at(t), goal), 1.0), 0.0)


class FactorDual(NamedTuple):
    """The dual point of w: the values Lw + b at the best b, KG for their gradient G, and G'KG = |L'G|²."""

    values: Matrix
    gradient: Matrix
    K_gradient: Matrix
    square: float

    @classmethod
    def of(cls, factor: Factor, smooth: SmoothSum, fits_intercept: bool, w: Vector, b: Vector) -> FactorDual:
        f = (factor.L @ w)[:, None]
        values = f + (smooth.best_intercept(f, b) if fits_intercept else b)
        _, G = smooth.evaluate(values)
        inner = factor.L.T @ G[:, 0]
        return cls(values, G, (factor.L @ inner)[:, None], float(inner @ inner))


def as_result(
    gram: StoredMatrix, factor: Factor, smooth: SmoothSum, fits_intercept: bool, at: FactorPoint
) -> NewtonResult:
    """The point as coefficients of the kernel expansion, with F = Kβ. The dual point is the gradient at Lw."""
    dual = FactorDual.of(factor, smooth, fits_intercept, at.w, at.b)
    beta = factor.coefficients(at.w, dual.gradient[:, 0])[:, None]
    F = gram.product(beta)
    b = smooth.best_intercept(F, at.b) if fits_intercept else at.b
    known = (dual.gradient, dual.K_gradient, dual.values, dual.square)
    return NewtonResult(beta, F, b, at.status, at.steps, at.trace, *known)
