"""Solve and certify machines with a smooth loss L over the values f of all samples, such as losses over pairs.

    min over f, b   ½|f|² + L(f + b)

With G the gradient of L at f + b, the dual value at −G follows from Fenchel's equality L*(G) = G'(f + b) − L(f + b):

    dual(−G) = −½ G'KG − L*(G) = L(f + b) − G'(f + b) − ½ G'KG

For pairs this is Σ a − Σ a²/(4C) − ½|Σ a (φ(x_i) − φ(x_j))|² at a = 2C max(0, 1 − (f_i − f_j)) ≥ 0. With an intercept
ΣG must be 0, which the best b makes it. G may be the gradient at any other values, too: those before rounding.

Conjugate gradients suffice unless C is large. If they take too long, the steps are factored
(`mercer.erm.direct_newton`), and C grows in stages: from the optimum of a smaller C few pairs begin or cease to be
violated. Where no factor is small enough, conjugate gradients follow the same stages up to a limit of work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mercer._compiled.blas import one_blas_thread
from mercer.erm.certificate import rounded
from mercer.erm.direct_newton import Factor, FactorPoint, as_result, descend_in_factor
from mercer.erm.kernel_matrix import matrix_in_time, stored_gram
from mercer.erm.sums import SmoothSum
from mercer.erm.truncated_newton import NewtonResult, newton
from mercer.gram.operator import Data
from mercer.gram.products import StoredMatrix
from mercer.kernels.features import Matrix, Vector
from mercer.ordering.pair_losses import PairSum
from mercer.problems.clock import Clock
from mercer.problems.solution import (
    FEASIBILITY,
    NOT_FEASIBLE,
    NOT_PSD,
    Certificate,
    Options,
    Solution,
    Status,
    finished,
)

# products with K after which steps are factored: for each sample, and at least
PRODUCTS_EACH, FEWEST_PRODUCTS = 6, 500
# up to this many samples K is factored, and up to this n m² its factor of m columns is used: a step takes some seconds
FACTOR_UP_TO, LARGEST_FACTOR = 8000, 1.6e10
# kernel values read by conjugate gradients at most: some minutes
MOST_VALUES = 5e11
# C starts where the largest curvature of a sample is this and grows by this factor; a stage ends at this relative gap
FIRST_CURVATURE, GROWTH, STAGE_GAP = 1e3, 4.0, 0.1


def solve_smooth(
    data: Data,
    smooth: PairSum,
    fits_intercept: bool,
    options: Options,
    clock: Clock,
    of: str,
    start: Vector | None = None,
) -> Solution:
    """The certified solution by Newton's method in the inner product of K; ``tol`` is the relative duality gap."""
    zero = np.zeros(data.n)
    if not matrix_in_time(data, options, clock):
        thresholds = smooth.best_intercept(zero[:, None], np.zeros(1)) if fits_intercept else np.empty(0)
        proof = smooth_certificate(smooth, zero, zero, float(thresholds.sum()), None, fits_intercept, data.psd, of)
        return Solution(zero, zero, thresholds, clock.over() or Status.TIME_LIMIT, 0, clock.seconds, proof)
    # losses and steps may overflow at extreme weights; the certificate then says so
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        gram = stored_gram(data, options)
        first = None if start is None or len(start) != data.n else start[:, None]
        few = max(PRODUCTS_EACH * data.n, FEWEST_PRODUCTS)
        found = newton(gram, smooth, fits_intercept, first, options.tol, options.max_iter, clock, most_products=few)
        if found.status is Status.INDEFINITE:
            data.psd = False
        best = _certified(smooth, fits_intercept, found, data.psd, of, options.tol, clock)
        may_go_on = options.max_iter < 0 or best.steps < options.max_iter
        if best.status in (Status.STALLED, Status.MAX_ITER) and may_go_on:
            following = _in_stages(gram, smooth, fits_intercept, options, clock, found)
            other = _certified(smooth, fits_intercept, following, data.psd, of, options.tol, clock)
            best = other if other.certificate.gap <= best.certificate.gap else best
            best = replace(best, status=other.status, steps=other.steps, trace=other.trace)
    return best


def _certified(
    smooth: PairSum, fits_intercept: bool, found: NewtonResult, psd: bool, of: str, tol: float, clock: Clock
) -> Solution:
    """The result of a run with its certificate."""
    beta, F, b = found.beta[:, 0], found.F[:, 0], float(found.intercept[0])
    known = (found.K_gradient[:, 0], fits_intercept, psd, of, found.values, found.square)
    proof = smooth_certificate(smooth, beta, F, b, *known)
    missed = found.status is Status.CONVERGED and proof.valid and proof.relative_gap > tol
    status = Status.STALLED if missed else found.status
    thresholds = found.intercept if fits_intercept else np.empty(0)
    return Solution(beta, F, thresholds, status, found.steps, clock.seconds, proof, found.trace)


def _in_stages(
    gram: StoredMatrix, smooth: PairSum, fits_intercept: bool, options: Options, clock: Clock, before: NewtonResult
) -> NewtonResult:
    """The optimum by way of those of smaller C, with factored steps if the factor of K is small enough."""
    factor = factor_of(gram, options)
    if factor is not None:
        point = FactorPoint(np.zeros(len(factor.pivots)), np.zeros(1), Status.CONVERGED, before.steps, before.trace)
        for share in _stages(gram, smooth):
            # where rounding ends a stage, all later ones end as early: only the last one counts
            if share < 1.0 and point.status is Status.STALLED:
                continue
            tol = options.tol if share == 1.0 else STAGE_GAP
            part = smooth.scaled(share)
            point = descend_in_factor(factor, part, fits_intercept, point, tol, options.max_iter, clock)
            if point.status not in (Status.CONVERGED, Status.STALLED):
                break
        return as_result(gram, factor, smooth, fits_intercept, point)
    beta: Matrix | None = None
    products, found = MOST_VALUES / gram.n**2, before._replace(status=Status.CONVERGED)
    for share in _stages(gram, smooth):
        if share < 1.0 and found.status is Status.STALLED:
            continue
        tol = options.tol if share == 1.0 else STAGE_GAP
        part, steps, trace = smooth.scaled(share), found.steps, found.trace
        found = newton(gram, part, fits_intercept, beta, tol, options.max_iter, clock, steps, products)
        found = found._replace(trace=trace + found.trace)
        beta, products = found.beta, products - found.products
        if found.status not in (Status.CONVERGED, Status.STALLED):
            break
    # where the run ended in an earlier stage, the gradient of the whole loss is the dual point
    b = smooth.best_intercept(found.F, found.intercept) if fits_intercept else found.intercept
    G = smooth.evaluate(found.F + b)[1]
    return found._replace(intercept=b, gradient=G, K_gradient=gram.product(G))


def factor_of(gram: StoredMatrix, options: Options) -> Factor | None:
    """The factor of K if it is small enough and K has one."""
    if gram.n > FACTOR_UP_TO or 32 * gram.n**2 > options.budget:
        return None
    factor = Factor.of(gram)
    return factor if factor is not None and gram.n * len(factor.pivots) ** 2 <= LARGEST_FACTOR else None


def _stages(gram: StoredMatrix, smooth: PairSum) -> Iterator[float]:
    """The shares of C: growing, and 1 at the end."""
    largest = float((smooth.curvature(np.zeros((gram.n, 1))).diagonal * gram.diagonal).max())
    share = FIRST_CURVATURE / largest if largest > 0 else 1.0
    while share < 1.0:
        yield share
        share *= GROWTH
    yield 1.0


def smooth_certificate(
    smooth: SmoothSum,
    beta: Vector,
    F: Vector,
    b: float,
    K_gradient: Vector | None,
    fits_intercept: bool,
    psd: bool,
    of: str,
    values: Matrix | None = None,
    square: float | None = None,
) -> Certificate:
    """The certificate of f = Σ βᵢ k(xᵢ, ·) and b with F = Kβ; ``K_gradient`` is KG, with G the gradient at ``values``.

    ``values`` None means the values at the best intercept for F; ``square`` is G'KG. Without KG (None) the dual point
    is 0, whose value is minus L*(0): 0 for losses that are nonnegative.
    """
    loss, _ = smooth.evaluate((F + b)[:, None])
    energy = 0.5 * float(beta @ F)
    primal = (abs(energy) if psd else energy) + loss  # β'Kβ may be negative by rounding
    if K_gradient is None:
        return finished(primal, 0.0, primal, np.inf, 0.0, of, "" if psd else NOT_PSD)
    if values is None:
        values = F[:, None] + (smooth.best_intercept(F[:, None], np.array([b])) if fits_intercept else 0.0)
    f = values[:, 0]
    value, gradient = smooth.evaluate(values)
    G = gradient[:, 0]
    square, inner = float(G @ K_gradient) if square is None else square, float(G @ f)
    dual = value - inner - 0.5 * square
    size = abs(primal) + abs(value) + abs(inner) + abs(square)
    if not dual >= 0.0 and psd:
        # 0 is a better dual point
        return finished(primal, 0.0, primal, float(np.abs(F + K_gradient).max(initial=0.0)), 0.0, of, "")
    gap = primal - dual
    violation = float(np.abs(F + K_gradient).max(initial=0.0))
    infeasibility = abs(float(G.sum())) if fits_intercept else 0.0
    reason = "" if psd else NOT_PSD
    if not reason and infeasibility > FEASIBILITY * float(np.abs(G).max(initial=0.0)):
        reason = NOT_FEASIBLE
    if gap < 0 and not reason:
        # the dual is above the primal by rounding: of the terms, or of kernel values that cancel in G'KG
        gap = rounded(gap, size)
    return finished(primal, dual, gap, violation, infeasibility, of, reason)
