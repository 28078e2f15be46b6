"""Several quantiles of y given x that do not cross at the samples: independent problems first, jointly if they cross.

Without the constraints the quantiles are independent problems. The sum of their dual values bounds the constrained
optimum from below; if their solutions do not cross, they are its solution. Otherwise `joint_quantiles` solves for all
of them. Either way the intercepts are shifted upwards where rounding leaves a crossing, so that the published model is
feasible and its primal value an upper bound.

In β alone the dual value is y'Σ_q β_q − ½ Σ_q β_q'Kβ_q, and β is feasible if Σ_i β_qi = 0 and for each sample and q

    Σ_{p ≤ q} β_p ≤ C Σ_{p ≤ q} τ_p,        Σ_{p > q} β_p ≥ C Σ_{p > q} (τ_p − 1),

because then there are α in their boxes and μ ≥ 0 with β_q = α_q + μ_{q−1} − μ_q: the largest feasible partial sums of
α are min(C Σ_{p ≤ q} τ_p, Σ_p β_p − C Σ_{p > q} (τ_p − 1)), and μ_q is their distance from those of β.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer._compiled.blas import one_blas_thread
from mercer.erm.joint_quantiles import JointResult, solve_joint
from mercer.erm.kernel_matrix import stored_gram, stored_once
from mercer.erm.minimise import Problem
from mercer.erm.sorted_pinball import SortedPinball
from mercer.gram.operator import Data, product
from mercer.kernels.features import Matrix, Vector
from mercer.losses import Pinball
from mercer.problems.clock import Clock
from mercer.problems.solution import (
    FEASIBILITY,
    NOT_FEASIBLE,
    NOT_PSD,
    ROUNDING,
    Certificate,
    Options,
    Solution,
    Status,
    finished,
)

# the joint problem is solved to this share of tol
SHARE = 0.1


@np.errstate(over="ignore", invalid="ignore")  # of targets near the largest float64: the certificate says so
def solve_quantiles(
    data: Data, y: Vector, weight: Vector, quantiles: Vector, options: Options, clock: Clock
) -> tuple[Solution, bool]:
    """β (a row per quantile, in rising order), F and b; and whether memory did not suffice for crossing quantiles.

    In the latter case the model is that of the independent problems, with shifted intercepts.
    """
    data = stored_once(data, options, clock)
    first, independent = _independent(data, y, weight, quantiles, options, clock)
    done = first.certificate.relative_gap <= options.tol or not first.certificate.valid or len(quantiles) == 1
    if done or first.status not in (Status.CONVERGED, Status.STALLED):
        return first, False
    n, many = data.n, len(quantiles)
    if 8 * n * n * (2 + 2 * many) > options.budget:
        return replace(first, status=Status.STALLED), True
    left = -1 if options.max_iter < 0 else max(0, options.max_iter - first.steps)
    losses = SortedPinball(y, weight, quantiles)

    def certify(beta: Matrix, F: Matrix, b: Vector) -> Certificate:
        dual, reason = dual_value(beta.T, F.T, y, weight, quantiles)
        return feasible_certificate(beta.T, F.T, b, y, weight, quantiles, dual, reason)[1]

    with one_blas_thread():
        start = (np.ascontiguousarray(first.beta.T), np.ascontiguousarray(first.F.T), independent)
        found = solve_joint(stored_gram(data, options), losses, start, certify, SHARE * options.tol, left, clock)
    joint = _published(data, y, weight, quantiles, found, first, options, clock)
    return _better(first, joint, options.tol), False


def _independent(
    data: Data, y: Vector, weight: Vector, quantiles: Vector, options: Options, clock: Clock
) -> tuple[Solution, Vector]:
    """The solutions of the unconstrained problems, each started from the one before, as one solution; their own b."""
    found: list[Solution] = []
    inner = replace(options, tol=0.5 * options.tol)
    for k, quantile in enumerate(quantiles):
        with clock.share_of_time(1.0 / (len(quantiles) - k)):
            problem = Problem(data, Pinball(float(quantile)), y, weight, True, inner, clock)
            found.append(problem.solve(1.0, inner.tol, found[-1].beta if found else None)[0])
    beta, F = np.array([s.beta for s in found]), np.array([s.F for s in found])
    b = np.array([float(s.thresholds.sum()) for s in found])
    dual = float(sum(s.certificate.dual for s in found))
    reason = next((s.certificate.reason for s in found if not s.certificate.valid), "")
    shifted, proof = feasible_certificate(beta, F, b, y, weight, quantiles, dual, reason)
    status = next((s.status for s in found if s.status is not Status.CONVERGED), Status.CONVERGED)
    steps, trace = sum(s.steps for s in found), [point for s in found for point in s.trace]
    return Solution(beta, F, shifted, status, steps, clock.seconds, proof, trace), b


def _published(
    data: Data,
    y: Vector,
    weight: Vector,
    quantiles: Vector,
    found: JointResult,
    first: Solution,
    options: Options,
    clock: Clock,
) -> Solution:
    """The joint solution, with F in float64 from the kernel itself."""
    beta = found.beta.T
    features = data.features(np.float64)
    F = product(data.kernel, features, features, np.ascontiguousarray(found.beta), options.n_threads).T
    dual, reason = dual_value(beta, F, y, weight, quantiles)
    b, proof = feasible_certificate(beta, F, found.b, y, weight, quantiles, dual, reason if data.psd else NOT_PSD)
    steps, trace = first.steps + found.steps, first.trace + found.trace
    return Solution(beta, F, b, found.status, steps, clock.seconds, proof, trace)


def _better(first: Solution, joint: Solution, tol: float) -> Solution:
    """The joint solution, unless the run has ended before it was better than the independent one."""
    steps, trace = joint.steps, joint.trace
    if not joint.certificate.valid or joint.certificate.primal > first.certificate.primal:
        status = joint.status if joint.status is not Status.CONVERGED else Status.STALLED
        return replace(first, status=status, steps=steps, trace=trace)
    within = joint.certificate.relative_gap <= tol
    if within or joint.status is Status.CONVERGED:
        return replace(joint, status=Status.CONVERGED if within else Status.STALLED)
    return joint


def dual_value(beta: Matrix, F: Matrix, y: Vector, weight: Vector, quantiles: Vector) -> tuple[float, str]:
    """y'Σβ − ½ Σ β'Kβ, and why it bounds nothing if β is not feasible."""
    upper = np.cumsum(quantiles)[:, None] * weight
    # for the sum over p > q: from the last quantile backwards
    lower = np.cumsum((quantiles - 1.0)[::-1])[:, None] * weight
    outside = max(
        float((np.cumsum(beta, axis=0) - upper).max(initial=0.0)),
        float((lower - np.cumsum(beta[::-1], axis=0)).max(initial=0.0)),
        float(np.abs(beta.sum(axis=1)).max(initial=0.0)),
    )
    value = float(y @ beta.sum(axis=0)) - 0.5 * float(np.vdot(beta, F))
    return value, "" if outside <= FEASIBILITY * float(weight.max()) else NOT_FEASIBLE


def feasible_certificate(
    beta: Matrix, F: Matrix, b: Vector, y: Vector, weight: Vector, quantiles: Vector, dual: float, reason: str
) -> tuple[Vector, Certificate]:
    """The intercepts, shifted so that no quantile crosses the one below, and the certificate of this model.

    Its ``kkt_violation`` is the largest crossing before the shift.
    """
    shifted = b.copy()
    for q in range(1, len(b)):
        below = float((F[q - 1] + shifted[q - 1] - F[q]).max())
        shifted[q] = max(b[q], below)
    f = F + shifted[:, None]
    losses = [float(weight @ Pinball(float(t)).value(y, row)) for t, row in zip(quantiles, f, strict=True)]
    energy = 0.5 * float(np.vdot(beta, F))
    primal = energy + sum(losses)
    gap = primal - dual
    if -ROUNDING * (abs(primal) + abs(dual) + float(np.abs(beta).sum(axis=0) @ np.abs(y))) <= gap < 0:
        gap = 0.0
    crossed = float((shifted - b).max(initial=0.0))
    if not np.isfinite(gap):
        gap, crossed, reason = np.inf, np.inf, reason or "its values overflow"
    sums = float(np.abs(beta.sum(axis=1)).max(initial=0.0))
    return shifted, finished(primal, dual, gap, crossed, sums, f"{len(b)} quantiles", reason)
