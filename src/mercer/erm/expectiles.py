"""Expectile regression: ridge regressions whose weights follow the signs of the residuals.

    min over f, b   ½|f|² + Σ C |τ − 1{y < f + b}| (y − f − b)²                Newey & Powell, Econometrica 55 (1987)

For given signs it is a ridge regression with the weights 2Cτ or 2C(1 − τ): a step of Newton's method, since the loss is
quadratic between its kinks. A step that raises the objective is halved. The optimum is reached as soon as the signs
stay the same, after a few steps; all of them share one kernel matrix if it fits into memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mercer.erm.certificate import DualPoint, erm_certificate
from mercer.erm.convex_losses import Expectile
from mercer.erm.kernel_matrix import stored_once
from mercer.erm.penalties import SQUARED
from mercer.gram.operator import Data
from mercer.kernels.features import Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import Options, Solution, Status, TracePoint
from mercer.ridge.solver import solve as solve_ridge

# a step shorter than this changes nothing beyond rounding
SHORTEST = 1e-10
# most steps if max_iter sets no limit; 5 to 10 are usual
MOST_STEPS = 1000
# a primal value may rise by this share of it: rounding
ROUNDING = 1e-12


class _Point(NamedTuple):
    """β, F = Kβ and b."""

    beta: Vector
    F: Vector
    b: float

    def towards(self, other: _Point, length: float) -> _Point:
        """The point at this share of the way; the model is linear in β and b."""
        rest = 1.0 - length
        beta, F = rest * self.beta + length * other.beta, rest * self.F + length * other.F
        return _Point(beta, F, rest * self.b + length * other.b)


def solve_expectile(
    data: Data, y: Vector, weight: Vector, loss: Expectile, fits_intercept: bool, options: Options, clock: Clock
) -> Solution:
    """The expectile regression of y; ends when the signs are settled or the relative gap is at most ``tol``."""
    data = stored_once(data, options, clock)
    limit = MOST_STEPS if options.max_iter < 0 else max(1, options.max_iter)
    inner = replace(options, tol=min(options.tol, 1e-6), max_iter=-1)
    zero = np.zeros(len(y))
    point, primal, steps, trace = _Point(zero, zero, 0.0), np.inf, 0, list[TracePoint]()
    status: Status | None = None
    # both weights are 1 in the first step, which is kernel ridge regression
    bent = np.ones(len(y))
    while status is None:
        found = solve_ridge(data, y[:, None], bent * weight, np.ones(1), fits_intercept, inner, clock, "auto")[0]
        target = _Point(found.beta, found.F, float(found.thresholds.sum()))
        moved = _descend(loss, y, weight, point, target, primal)
        point, primal = (point, primal) if moved is None else moved
        steps += 1
        dual = DualPoint(point.beta, point.F)
        proof = erm_certificate(SQUARED, loss, y, weight, dual.norm, point.F, point.b, dual, fits_intercept, data.psd)
        trace.append(TracePoint(clock.seconds, steps, proof.relative_gap, proof.dual, data.n))
        clock.report(trace[-1])
        before, bent = bent, 2.0 * loss.slopes(y > point.F + point.b)
        settled = point is target and bool((bent == before).all())
        if found.status is not Status.CONVERGED:
            status = found.status
        elif settled or (proof.valid and proof.relative_gap <= options.tol):
            status = Status.CONVERGED
        elif moved is None:
            status = Status.STALLED
        else:
            status = clock.over() or (Status.MAX_ITER if steps >= limit else None)
    thresholds = np.array([point.b]) if fits_intercept else np.empty(0)
    return Solution(point.beta, point.F, thresholds, status, steps, clock.seconds, proof, trace)


def _descend(
    loss: Expectile, y: Vector, weight: Vector, point: _Point, target: _Point, primal: float
) -> tuple[_Point, float] | None:
    """The target, or a point on the way to it with a lower objective; None if there is none beyond rounding."""
    length = 1.0
    while length >= SHORTEST:
        moved = target if length == 1.0 else point.towards(target, length)
        value = 0.5 * float(moved.beta @ moved.F) + float(weight @ loss.value(y, moved.F + moved.b))
        if value <= primal + ROUNDING * abs(primal) or primal == np.inf:
            return moved, value
        length *= 0.5
    return None
