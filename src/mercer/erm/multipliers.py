"""The method of multipliers for losses of which only the value and a derivative are known, and which may have kinks.

    min  ½|f|² + Σ C ℓ(z)   s.t.  z = f + b

Each round minimises over f, b and z the objective plus  λ'(f + b − z) + |f + b − z|²/(2μ), which is a smooth problem
(`Proximal`) for Newton's method, and moves λ to its gradient. In the dual that is the proximal point method, which
converges for every μ, and the faster the smaller μ is: Rockafellar, Mathematics of Operations Research 1 (1976).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.erm.convex_losses import called
from mercer.erm.sums import BALANCED, Proximal, zero_of
from mercer.erm.truncated_newton import NewtonResult, newton
from mercer.gram.products import StoredMatrix
from mercer.kernels.features import Matrix, Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import Status, TracePoint

# factor of μ from round to round, and its least value in units of 1/C
SHRINK, LEAST = 0.2, 1e-4
# first μ after a warm start, in the same units
WARM = 0.04
# most rounds
ROUNDS = 60
# a round is solved to this share of the distance from the goal
SHARE = 0.1


def multipliers(
    gram: StoredMatrix,
    loss: Any,
    y: Vector,
    weight: Vector,
    fits_intercept: bool,
    start: Matrix | None,
    tol: float,
    max_iter: int,
    clock: Clock,
    steps: int = 0,
) -> NewtonResult:
    """Minimise until the duality gap is at most ``tol`` times the primal value. ``steps`` were taken before."""
    b = np.zeros(1)
    F = np.zeros((gram.n, 1)) if start is None else gram.product(start)
    if fits_intercept:
        b = np.array([best_intercept(loss, y, weight, F[:, 0], 0.0)])
    # λ = −β at the optimum
    multiplier = -start[:, 0] if start is not None else weight * called(loss, "derivative", y, F[:, 0] + b[0])
    if fits_intercept:
        multiplier = multiplier - multiplier.mean()
    mu, accuracy = (1.0 if start is None else WARM) / weight, 1e-2
    trace: list[TracePoint] = []
    best: NewtonResult | None = None
    smallest = np.inf
    for _ in range(ROUNDS):
        smooth = Proximal(loss, y, weight, multiplier, mu)
        found = newton(gram, smooth, fits_intercept, start, accuracy, max_iter, clock, steps)
        start, steps = found.beta, found.steps
        t = found.F[:, 0] + found.intercept[0]
        (z, _), multiplier = smooth.nearest(t), found.gradient[:, 0]
        b = found.intercept
        if fits_intercept:
            b = np.array([best_intercept(loss, y, weight, found.F[:, 0], float(b[0]))])
        energy = 0.5 * float(np.vdot(found.beta, found.F))
        primal = energy + float(weight @ called(loss, "value", y, found.F[:, 0] + b[0]))
        # ℓ*(u) = uz − ℓ(z) for the slope u at z
        paid = float(multiplier @ z - weight @ called(loss, "value", y, z))
        dual = 0.5 * float(np.vdot(found.gradient, found.K_gradient))
        gap = primal + paid + dual
        trace.append(TracePoint(clock.seconds, steps, gap / max(abs(primal), 1e-300), -paid - dual, gram.n))
        if best is None or gap < smallest:
            smallest, best = gap, found._replace(intercept=b, status=Status.STALLED, trace=trace)
        if gap <= tol * abs(primal):
            return best._replace(status=Status.CONVERGED, steps=steps)
        if found.status not in (Status.CONVERGED, Status.STALLED):
            return best._replace(status=found.status, steps=steps)
        mu = np.maximum(SHRINK * mu, LEAST / weight)
        accuracy = max(min(accuracy, SHARE * gap / max(abs(primal), 1e-300)) * SHARE, 1e-15)
    assert best is not None
    return best._replace(steps=steps)


def best_intercept(loss: Any, y: Vector, weight: Vector, F: Vector, start: float) -> float:
    """The b that minimises Σ C ℓ(y, F + b), to the rounding of float64."""

    def slope(b: float) -> tuple[float, float]:
        terms = weight * called(loss, "derivative", y, F + b)
        return float(terms.sum()), BALANCED * float(np.abs(terms).sum())

    return zero_of(slope, start)
