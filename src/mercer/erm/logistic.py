"""Kernel logistic regression: two classes with one function, more with the softmax and a function for each class.

    two classes    ½|f|² + Σ C log(1 + exp(−y(f(x) + b)))
    more           ½ Σ_c |f_c|² + Σ C (log Σ_c exp(f_c(x) + b_c) − f_y(x) − b_y)

In the dual of the softmax β has a row for each sample and a column for each class. The conjugate is minus the entropy:

    dual(β) = −½ Σ_c β_c'Kβ_c − Σ C Σ_c p_c log p_c,     p = onehot(y) − β/C a distribution,     Σ_i β_ic = 0
"""

from __future__ import annotations

import numpy as np

from mercer._compiled.blas import one_blas_thread
from mercer.erm.certificate import LARGEST_ROUNDING, DualPoint, erm_certificate, rounded
from mercer.erm.convex_losses import Logistic
from mercer.erm.penalties import SQUARED
from mercer.erm.sums import OneFunction, SmoothSum, Softmax
from mercer.erm.truncated_newton import NewtonResult, newton
from mercer.gram.products import StoredMatrix
from mercer.kernels.features import Matrix, Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import (
    FEASIBILITY,
    NOT_FEASIBLE,
    NOT_PSD,
    Certificate,
    Solution,
    Status,
    finished,
)

LOSS = Logistic()


def logistic_sum(codes: Vector, n_classes: int, weight: Vector) -> SmoothSum:
    """The sum of the losses; ``codes`` are 0, 1, …"""
    if n_classes == 2:
        return OneFunction(LOSS, 2.0 * codes - 1.0, weight)
    return Softmax(codes.astype(np.intp), n_classes, weight)


def solve_logistic(
    gram: StoredMatrix | None,
    smooth: SmoothSum,
    fits_intercept: bool,
    tol: float,
    max_iter: int,
    clock: Clock,
    start: Matrix | None = None,
    psd: bool = True,
) -> Solution:
    """The certified solution, with a column of β and F for each function and a threshold for each.

    If there is no time for the kernel matrix, it is f = 0 and its certificate.
    """
    if gram is None:
        zero = np.zeros((smooth.n, smooth.n_functions))
        b = smooth.best_intercept(zero, np.zeros(smooth.n_functions)) if fits_intercept else np.zeros(zero.shape[1])
        status = clock.over() or Status.TIME_LIMIT
        found = NewtonResult(zero, zero, b, status, 0, [], zero, zero)
    else:
        with one_blas_thread():
            found = newton(gram, smooth, fits_intercept, start, tol, max_iter, clock)
    beta, F, b = found.beta, found.F, found.intercept
    psd = psd and found.status is not Status.INDEFINITE
    proof = logistic_certificate(smooth, beta, F, b, -found.gradient, -found.K_gradient, fits_intercept, psd)
    status = Status.STALLED if found.status is Status.CONVERGED and proof.relative_gap > tol else found.status
    return Solution(beta, F, b, status, found.steps, clock.seconds, proof, found.trace)


def logistic_certificate(
    smooth: SmoothSum,
    beta: Matrix,
    F: Matrix,
    intercept: Vector,
    dual_beta: Matrix,
    dual_F: Matrix,
    fits_intercept: bool,
    psd: bool,
) -> Certificate:
    """The certificate of f = Σ βᵢ k(xᵢ, ·) and b, from a dual point and its values."""
    if isinstance(smooth, OneFunction):
        point = DualPoint(dual_beta[:, 0], dual_F[:, 0])
        norm = DualPoint(beta[:, 0], F[:, 0]).norm
        known = (SQUARED, smooth.loss, smooth.y, smooth.weight, norm, F[:, 0], float(intercept[0]), point)
        return erm_certificate(*known, fits_intercept, psd)
    assert isinstance(smooth, Softmax)
    loss, _ = smooth.evaluate(F + intercept)
    square, dual_square = (max(0.0, float(np.vdot(a, b))) for a, b in ((beta, F), (dual_beta, dual_F)))
    primal = 0.5 * square + loss
    # far from the optimum a shorter dual point may be better, as in `erm_certificate`
    shares = {1.0, 0.0, min(1.0, float(np.sqrt(square / dual_square)))} if dual_square > 0 else {1.0}
    dual = max(0.0 - 0.5 * s**2 * dual_square - smooth.conjugate(s * dual_beta) for s in shares)
    gap = primal - dual
    size = abs(primal) + abs(dual)
    if -LARGEST_ROUNDING * size <= gap < 0:
        gap = rounded(gap, size)
    infeasibility = float(np.abs(dual_beta.sum(axis=0)).max()) if fits_intercept else 0.0
    feasible = infeasibility <= FEASIBILITY * float(np.abs(dual_beta).max(initial=0.0)) and gap >= 0
    reason = NOT_PSD if not psd else "" if feasible else NOT_FEASIBLE
    violation = float(np.abs(F - dual_F).max(initial=0.0))
    return finished(primal, dual, gap, violation, infeasibility, "multinomial logistic loss", reason)
