"""Expectile regression by Newton's method: ridge regressions whose weights follow the signs of the residuals.

    min over f, b   ½|f|² + Σ C |τ − 1{y < f + b}| (y − f − b)²                Newey & Powell, Econometrica 55 (1987)

With the residuals r = y − f − b and the weights W = 2C|τ − 1{r < 0}| the gradient over β vanishes where β = Wr. The
loss is quadratic between its kinks, so that a Newton step is a ridge regression with the weights W; it is solved by
conjugate gradients (`weighted_ridge`), roughly as long as that is cheaper than exactly. A step that raises the
objective is shortened to its exact minimum: along it the objective is piecewise quadratic. β is its own dual point: the
gap is the sum over the samples of ½(β − Wr)²/W, where β has the sign of r.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer._compiled.blas import one_blas_thread
from mercer.erm.certificate import DualPoint, erm_certificate
from mercer.erm.convex_losses import Expectile
from mercer.erm.kernel_matrix import matrix_in_time
from mercer.erm.penalties import SQUARED
from mercer.erm.weighted_ridge import Step, StoredSystem, TiledSystem, solve_weighted
from mercer.gram.operator import Data
from mercer.kernels.features import Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import Certificate, Options, Solution, Status, TracePoint

# most steps if max_iter sets no limit; 3 to 15 are usual
MOST_STEPS = 1000
# a system is solved to this factor of its residual, or to this share of the goal
FORCING, SHARE_OF_GOAL = 0.1, 0.3
# this many steps that lower neither the primal value nor the gap are a standstill; a gap up to this share of the primal
# value is then the rounding of float64
PATIENCE, ROUNDED = 3, 1e-9
# a change of the primal value by this share of it is rounding
ROUNDING = 1e-13
# most steps of a search over one number
SEARCH = 60
# a length of a step is found to this accuracy
SHORTEST = 1e-12
# v'Kv / v'v below the negative of this share of the largest diagonal entry means that K is indefinite
INDEFINITE = 1e-8


class _Point(NamedTuple):
    """β, F = Kβ and b."""

    beta: Vector
    F: Vector
    b: float


class _Problem(NamedTuple):
    """Targets of size 1, C, the loss and whether there is a b."""

    y: Vector
    weight: Vector
    loss: Expectile
    fits_intercept: bool

    def curvature(self, residual: Vector) -> Vector:
        """W = 2Cτ or 2C(1 − τ)."""
        return 2.0 * self.weight * self.loss.slopes(residual > 0)

    def gap(self, point: _Point) -> tuple[float, float]:
        """Primal value, and the gap to the dual value of β: by sample ½Wr² + ½β²/W(β) − βr, without cancellation."""
        r = self.y - point.F - point.b
        W = self.curvature(r)
        primal = 0.5 * float(point.beta @ point.F) + 0.5 * float(W @ r**2)
        same = (r > 0) == (point.beta > 0)
        apart = 0.5 * W * r**2 + 0.5 * point.beta**2 / self.curvature(point.beta) - point.beta * r
        return primal, float(np.where(same, 0.5 * (point.beta - W * r) ** 2 / W, apart).sum())


def solve_expectile(
    data: Data, y: Vector, weight: Vector, loss: Expectile, fits_intercept: bool, options: Options, clock: Clock
) -> Solution:
    """The expectile regression of y; ends when the relative gap is at most ``tol``, or as small as rounding allows."""
    # scale the targets to size 1, since squares of large ones might overflow; the solution is linear in them
    size = float(np.abs(y).max(initial=0.0)) or 1.0
    problem = _Problem(y / size, weight, loss, fits_intercept)
    with one_blas_thread():
        point, status, steps, trace = _minimise(data, problem, options, clock)
    point = _Point(size * point.beta, size * point.F, size * point.b)
    dual = DualPoint(point.beta, point.F)
    known = (SQUARED, loss, y, weight, dual.norm, point.F, point.b, dual, fits_intercept, data.psd)
    proof: Certificate = erm_certificate(*known)
    thresholds = np.array([point.b]) if fits_intercept else np.empty(0)
    return Solution(point.beta, point.F, thresholds, status, steps, clock.seconds, proof, trace)


def _minimise(
    data: Data, problem: _Problem, options: Options, clock: Clock
) -> tuple[_Point, Status, int, list[TracePoint]]:
    """The point of least gap, or the last one if the run has ended early; how it ended, its steps and trace."""
    limit = MOST_STEPS if options.max_iter < 0 else max(1, options.max_iter)
    zero = np.zeros(len(problem.y))
    # from the mean, where many residuals have the larger weight, full steps nearly always descend; from the best b
    # Newton's method turns back and forth
    mean = float(problem.weight @ problem.y) / float(problem.weight.sum()) if problem.fits_intercept else 0.0
    best = point = _Point(zero, zero, mean)
    steps, since, exact, trace = 0, 0, True, list[TracePoint]()
    if clock.over() is not None:
        return point, clock.over() or Status.TIME_LIMIT, steps, trace
    stored = 8 * data.n**2 <= options.budget and matrix_in_time(data, options, clock)
    system = StoredSystem(data, options) if stored else TiledSystem(data, options, clock)
    smallest, lowest = np.inf, np.inf
    while True:
        primal, gap = problem.gap(point)
        if gap <= options.tol * primal and not exact:
            point, exact = _recomputed(system, problem, point), True
            primal, gap = problem.gap(point)
        progress = gap < 0.5 * smallest or primal < lowest - ROUNDING * lowest
        since = 0 if progress else since + 1
        lowest = min(lowest, primal)
        if gap <= smallest:
            smallest, best = gap, point
        trace.append(TracePoint(clock.seconds, steps, gap / primal if primal > 0 else 0.0, primal - gap, data.n))
        clock.report(trace[-1])
        status: Status | None = None
        if gap <= options.tol * primal:
            status = Status.CONVERGED
        elif since >= PATIENCE:
            status = Status.CONVERGED if smallest <= ROUNDED * primal else Status.STALLED
        else:
            status = clock.over_in(2.0 * system.seconds) or (Status.MAX_ITER if steps >= limit else None)
        if status is None:
            step = _newton_step(system, problem, point, gap, primal, options.tol, clock)
            if step.curvature < -INDEFINITE * float(np.abs(system.diagonal).max(initial=0.0)):
                status, data.psd = Status.INDEFINITE, False
        if status is not None:
            point = best if status is Status.CONVERGED else point
            in_time = not exact and clock.over_in(system.seconds) is None
            return _recomputed(system, problem, point) if in_time else point, status, steps, trace
        point, exact, steps = _moved(problem, point, step), False, steps + 1


def _newton_step(
    system: StoredSystem | TiledSystem,
    problem: _Problem,
    point: _Point,
    gap: float,
    primal: float,
    tol: float,
    clock: Clock,
) -> Step:
    """The step to the ridge regression with the present signs, or a rough one while these may change."""
    r = problem.y - point.F - point.b
    W = problem.curvature(r)
    rough = problem.loss.expectile != 0.5 and not system.has_factor
    forcing = min(FORCING, float(np.sqrt(gap / primal))) if rough else 0.0
    # the residual of the system, squared and weighted, is twice the gap
    goal = 2.0 * SHARE_OF_GOAL * tol * primal
    return solve_weighted(system, W, r - point.beta / W, problem.fits_intercept, forcing, goal, clock)


def _moved(problem: _Problem, point: _Point, step: Step) -> _Point:
    """The end of the step if the objective is lower there, else its minimum along the step."""
    r, g = problem.y - point.F - point.b, step.K_delta + step.c
    linear, square = float(point.beta @ step.K_delta), float(step.delta @ step.K_delta)

    def change(length: float) -> float:
        rest = r - length * g
        return length * linear + 0.5 * length**2 * square + 0.5 * float(problem.curvature(rest) @ rest**2)

    length = 1.0 if change(1.0) <= change(0.0) else _shortened(problem, r, g, linear, square)
    F = point.F + length * step.K_delta
    return _Point(point.beta + length * step.delta, F, point.b + length * step.c)


def _shortened(problem: _Problem, r: Vector, g: Vector, linear: float, square: float) -> float:
    """The zero in [0, 1] of the slope along a step, piecewise linear: Newton's method, or half of the interval."""
    low, high, length = 0.0, 1.0, 0.5
    for _ in range(SEARCH):
        rest = r - length * g
        W = problem.curvature(rest)
        slope, steepness = linear + length * square - float(W @ (rest * g)), square + float(W @ g**2)
        low, high = (low, length) if slope > 0 else (length, high)
        before, guess = length, length - slope / steepness if steepness > 0 else length
        length = guess if low < guess < high else 0.5 * (low + high)
        if abs(length - before) <= SHORTEST:
            break
    return length


def _recomputed(system: StoredSystem | TiledSystem, problem: _Problem, point: _Point) -> _Point:
    """The point with F from the kernel itself and coefficients whose sum is 0 to rounding."""
    beta = point.beta - point.beta.mean() if problem.fits_intercept else point.beta
    F = system.product(beta)
    return _Point(beta, F, point.b)
