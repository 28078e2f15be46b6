"""Newton's method for  ½|f|² + Σ C ℓ(f + b)  with a smooth loss, over the coefficients of the kernel expansion.

With f = Σ βᵢ k(xᵢ, ·), G the gradient of the losses at Kβ + b and b the best intercept, the optimum is where β = −G.
Let ρ = −(β + G). Since b is the best one, −G is feasible for the dual, and by Fenchel's equality the duality gap is

    gap(β, −G) = ½ ρ'Kρ

The Newton step D solves  D + W̃KD = ρ,  where W̃ is the curvature W without the direction that b takes up:
W̃ = W − W1 (1'W1)⁻¹ 1'W. The operator I + W̃K is self-adjoint and at least 1 in the inner product u'Kv, so that conjugate
gradients in this product minimise the model, and their error is measured in the units of the gap. They stop as soon as
more exactness would not pay (truncated Newton method: Dembo & Steihaug, Mathematical Programming 26, 1983). Each
iteration takes one product with K. There may be several functions, one for each class: then β, G and D are matrices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer.erm.sums import SmoothSum
from mercer.gram.products import StoredMatrix
from mercer.kernels.features import Matrix, Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import Status, TracePoint

# conjugate gradients lower the residual by at least this factor, and to at most this share of the goal
FORCING, SHARE_OF_GOAL = 0.1, 0.3
# most iterations of conjugate gradients for a step
MOST_ITERATIONS = 5000
# v'Kv / v'v below the negative of this share of the largest diagonal entry means that K is indefinite
INDEFINITE = 1e-8
# share of the predicted decrease that a step must reach; below the shortest step it is rounding
DECREASE, SHORTEST = 1e-4, 1e-10
# a change of the primal by this share of it is rounding
ROUNDING = 1e-13
# this many steps that lower neither the primal value nor the gap are a standstill
PATIENCE = 3


class NewtonResult(NamedTuple):
    """β, F = Kβ, b, how the run ended, and the gradient G with KG at this point, whose negative is dual feasible.

    ``values`` are the values at which G is the gradient, if not at F + b. ``square`` is G'KG if it is known more
    accurately than from KG. ``products`` counts the products with K in all steps.
    """

    beta: Matrix
    F: Matrix
    intercept: Vector
    status: Status
    steps: int
    trace: list[TracePoint]
    gradient: Matrix
    K_gradient: Matrix
    values: Matrix | None = None
    square: float | None = None
    products: int = 0


class Step(NamedTuple):
    """A step D of β, KD, the corresponding step d of the intercepts, and the iterations that it took."""

    D: Matrix
    KD: Matrix
    d: Vector
    iterations: int


def newton(
    gram: StoredMatrix,
    smooth: SmoothSum,
    fits_intercept: bool,
    start: Matrix | None,
    tol: float,
    max_iter: int,
    clock: Clock,
    steps: int = 0,
    most_products: float = np.inf,
) -> NewtonResult:
    """Minimise until the duality gap is at most ``tol`` times the primal value. ``steps`` were taken before.

    After ``most_products`` products with K the run ends as if ``max_iter`` were reached.
    """
    k = smooth.n_functions
    beta = np.zeros((gram.n, k)) if start is None else start.copy()
    b = np.zeros(k)
    if fits_intercept:
        beta -= beta.mean(axis=0)
    trace: list[TracePoint] = []
    smallest, lowest, since, products = np.inf, np.inf, 0, 0
    F = gram.product(beta) if beta.any() else np.zeros((gram.n, k))
    while True:
        if fits_intercept:
            b = smooth.best_intercept(F, b)
        loss, G = smooth.evaluate(F + b)
        rho = -(beta + G)
        K_rho = gram.product(rho)
        gap, energy = 0.5 * float(np.vdot(rho, K_rho)), 0.5 * float(np.vdot(beta, F))
        primal = energy + loss
        point = TracePoint(clock.seconds, steps, gap / max(abs(primal), np.finfo(float).tiny), primal - gap, gram.n)
        trace.append(point)
        clock.report(point)
        progress = gap < 0.5 * smallest or primal < lowest - ROUNDING * abs(primal)
        since = 0 if progress else since + 1
        smallest, lowest = min(smallest, gap), min(lowest, primal)
        status: Status | None = None
        if is_negative(gram, rho, 2.0 * gap):
            status = Status.INDEFINITE
        elif gap <= tol * abs(primal):
            status = Status.CONVERGED
        elif since >= PATIENCE:
            status = Status.STALLED
        else:
            enough = 0 <= max_iter <= steps or products >= most_products
            status = clock.over() or (Status.MAX_ITER if enough else None)
        moved = None
        if status is None:
            size = max(gap / abs(primal), 0.0) if primal else 1.0
            forcing = max(min(FORCING, np.sqrt(size)), SHARE_OF_GOAL * np.sqrt(tol * abs(primal) / gap))
            step = _step(gram, smooth, F + b, rho, K_rho, fits_intercept, min(forcing, 0.5), clock)
            products += step.iterations
            moved = _search(smooth, beta, F, b, step, energy, primal, -float(np.vdot(rho, step.KD)))
            status = Status.STALLED if moved is None else None
        if status is not None:
            return NewtonResult(beta, F, b, status, steps, trace, G, -(F + K_rho), products=products)
        assert moved is not None
        beta, b = moved
        F = gram.product(beta)
        steps += 1


def _step(
    gram: StoredMatrix,
    smooth: SmoothSum,
    f: Matrix,
    rho: Matrix,
    K_rho: Matrix,
    fits_intercept: bool,
    forcing: float,
    clock: Clock,
) -> Step:
    """D with D + W̃KD = ρ by conjugate gradients in the inner product of K."""
    W = smooth.curvature(f)
    inverse = np.linalg.pinv(W.total(), rcond=1e-12, hermitian=True) if fits_intercept else None

    def curved(V: Matrix) -> Matrix:
        out = W.apply(V)
        if inverse is None:
            return out
        return out - W.apply(np.broadcast_to(inverse @ out.sum(axis=0), V.shape))

    D, KD = np.zeros_like(rho), np.zeros_like(rho)
    r, Kr = rho.copy(), K_rho
    p, Kp = rho, K_rho
    left = first = float(np.vdot(r, Kr))
    iterations = 0
    while iterations < MOST_ITERATIONS:
        Bp = p + curved(Kp)
        steepness = float(np.vdot(Kp, Bp))
        if not steepness > 0.0:
            break
        length = left / steepness
        D += length * p
        KD += length * Kp
        r -= length * Bp
        iterations += 1
        Kr = gram.product(r)
        now = float(np.vdot(r, Kr))
        # a negative square, by rounding or for an indefinite K, ends the search at the step so far
        if now <= forcing**2 * first or clock.over() is not None:
            break
        ratio, left = now / left, now
        p, Kp = r + ratio * p, Kr + ratio * Kp
    d = np.zeros(rho.shape[1]) if inverse is None else -(inverse @ W.apply(KD).sum(axis=0))
    return Step(D, KD, d, iterations)


def _search(
    smooth: SmoothSum,
    beta: Matrix,
    F: Matrix,
    b: Vector,
    step: Step,
    energy: float,
    primal: float,
    slope: float,
) -> tuple[Matrix, Vector] | None:
    """The point along the step with a sufficiently lower primal value; None if there is none beyond rounding."""
    D, KD, d, _ = step
    crossed, square = float(np.vdot(beta, KD)), float(np.vdot(D, KD))
    length = 1.0
    while length >= SHORTEST:
        intercept = b + length * d
        loss, _ = smooth.evaluate(F + length * KD + intercept, far=True)
        value = energy + length * crossed + 0.5 * length**2 * square + loss
        if value <= primal + DECREASE * length * slope + ROUNDING * abs(primal):
            return beta + length * D, intercept
        length *= 0.5
    return None


def is_negative(gram: StoredMatrix, v: Matrix, square: float) -> bool:
    """Whether v'Kv is negative beyond rounding: then K is indefinite, and the objective has no minimum."""
    return square < -INDEFINITE * float(np.abs(gram.diagonal).max(initial=0.0)) * float(np.vdot(v, v))
