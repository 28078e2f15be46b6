"""Solve and certify machines with a smooth loss L over the values f of all samples, such as losses over pairs.

    min over f, b   ½|f|² + L(f + b)

With G the gradient of L at f + b, the dual value at −G follows from Fenchel's equality L*(G) = G'(f + b) − L(f + b):

    dual(−G) = −½ G'KG − L*(G) = L(f + b) − G'(f + b) − ½ G'KG

For pairs this is Σ a − Σ a²/(4C) − ½|Σ a (φ(x_i) − φ(x_j))|² at a = 2C max(0, 1 − (f_i − f_j)) ≥ 0. With an intercept
ΣG must be 0, which the best b makes it.
"""

from __future__ import annotations

import numpy as np

from mercer._compiled.blas import one_blas_thread
from mercer.erm.certificate import rounded
from mercer.erm.kernel_matrix import StoredGram, matrix_in_time
from mercer.erm.sums import SmoothSum
from mercer.erm.truncated_newton import newton
from mercer.gram.operator import Data
from mercer.kernels.features import Vector
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


def solve_smooth(
    data: Data,
    smooth: SmoothSum,
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
    with one_blas_thread():
        gram = StoredGram.of(data, options)
        first = None if start is None or len(start) != data.n else start[:, None]
        found = newton(gram, smooth, fits_intercept, first, options.tol, options.max_iter, clock)
    if found.status is Status.INDEFINITE:
        data.psd = False
    beta, F, b = found.beta[:, 0], found.F[:, 0], float(found.intercept[0])
    K_gradient = found.K_gradient[:, 0]
    proof = smooth_certificate(smooth, beta, F, b, K_gradient, fits_intercept, data.psd, of)
    missed = found.status is Status.CONVERGED and proof.valid and proof.relative_gap > options.tol
    status = Status.STALLED if missed else found.status
    thresholds = found.intercept if fits_intercept else np.empty(0)
    return Solution(beta, F, thresholds, status, found.steps, clock.seconds, proof, found.trace)


def smooth_certificate(
    smooth: SmoothSum,
    beta: Vector,
    F: Vector,
    b: float,
    K_gradient: Vector | None,
    fits_intercept: bool,
    psd: bool,
    of: str,
) -> Certificate:
    """The certificate of f = Σ βᵢ k(xᵢ, ·) and b with F = Kβ; ``K_gradient`` is KG at the best intercept for F.

    Without it (None) the dual point is 0, whose value is minus L*(0): 0 for losses that are nonnegative.
    """
    loss, _ = smooth.evaluate((F + b)[:, None])
    primal = 0.5 * float(beta @ F) + loss
    if K_gradient is None:
        return finished(primal, 0.0, primal, np.inf, 0.0, of, "" if psd else NOT_PSD)
    best = float(smooth.best_intercept(F[:, None], np.array([b]))[0]) if fits_intercept else 0.0
    f = F + best
    value, gradient = smooth.evaluate(f[:, None])
    G = gradient[:, 0]
    square, inner = float(G @ K_gradient), float(G @ f)
    dual = value - inner - 0.5 * square
    size = abs(primal) + abs(value) + abs(inner) + abs(square)
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
