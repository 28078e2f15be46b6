"""Ordinal regression with explicit constraints: the order of the thresholds by merging those that cross.

The multiplier μ_j ≥ 0 of t_j ≥ t_{j+1} enters the sums of the dual: with S_j = Σβ of the copies of threshold j,

    μ_j = −(S_0 + … + S_j),     S_0 + … + S_{r−2} = 0

Without active constraints all S_j are 0. Where t_j = t_{j+1} is active, only the sum over both is. So the machine is
solved with thresholds in groups that share one t: groups that cross are merged, as in the pooling of adjacent
violators, and a group is split where a multiplier is negative, until neither happens.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.gram.operator import Data
from mercer.kernels.features import Vector
from mercer.losses.ordinal import ExplicitOrdinal
from mercer.problems.clock import Clock
from mercer.problems.dual import survey
from mercer.problems.solution import (
    FEASIBILITY,
    NOT_FEASIBLE,
    Options,
    Solution,
    Status,
    TracePoint,
    conclude,
    finished,
)
from mercer.svm.solve import solve_problem
from mercer.svm.verify import exact_product


def solve_explicit(
    data: Data,
    loss: ExplicitOrdinal,
    y: Vector,
    weight: Vector,
    options: Options,
    clock: Clock,
    start: Vector | None = None,
) -> Solution:
    """The certified solution with ordered thresholds, one for each threshold of the loss."""
    group_of = np.arange(loss.n_classes - 1)
    seen: set[tuple[int, ...]] = set()
    steps = 0
    trace: list[TracePoint] = []
    while True:
        seen.add(tuple(group_of.tolist()))
        merged = replace(loss, merged=tuple(group_of.tolist()))
        left = replace(options, max_iter=max(0, options.max_iter - steps)) if options.max_iter >= 0 else options
        solution = solve_problem(data, merged, y, weight, True, left, clock, start)
        steps, trace = steps + solution.steps, trace + solution.trace
        # the method over features of a linear kernel has no use for a start, and would not be chosen
        start = None if getattr(solution.plan, "presolve", None) == "features" else solution.beta
        following = _regroup(group_of, solution, merged, y, options.tol)
        ended = solution.status is not Status.CONVERGED
        if ended or tuple(following.tolist()) in seen:
            break
        group_of = following
    if solution.status is Status.CONVERGED and not np.array_equal(following, group_of):
        solution = replace(solution, status=Status.STALLED)
    solution = _in_order(data, merged, y, weight, options, solution)
    return replace(solution, steps=steps, trace=trace)


def _regroup(group_of: Vector, solution: Solution, loss: ExplicitOrdinal, y: Vector, tol: float) -> Vector:
    """The groups with those that cross by more than tol merged; if there are none, split at negative multipliers."""
    t = solution.thresholds
    crossed = np.flatnonzero(t[:-1] < t[1:] - tol)
    ends = np.flatnonzero(np.diff(group_of))  # the last threshold of each group but the last one
    apart = np.zeros(len(group_of), dtype=bool)
    apart[ends + 1] = True
    if len(crossed):
        apart[ends[crossed] + 1] = False
    else:
        multiplier = -np.cumsum(loss.threshold_sums(solution.beta, y))[:-1]
        size = float(np.abs(solution.beta).max(initial=0.0))
        inside = ~apart[1:] & (multiplier < -FEASIBILITY * size)
        if inside.any():
            apart[1 + int(np.argmin(np.where(inside, multiplier, np.inf)))] = True
    return np.cumsum(apart)


def _in_order(
    data: Data, loss: ExplicitOrdinal, y: Vector, weight: Vector, options: Options, solution: Solution
) -> Solution:
    """The solution with a threshold for each constraint, in order, and the certificate of the ordered problem."""
    t = np.minimum.accumulate(solution.thresholds[loss.group_of])
    qp = loss.box_qp(y, weight, True)
    F = exact_product(data, qp, solution.beta, options)
    found = survey(qp, solution.beta, F)
    alone = replace(loss, merged=())
    primal = alone.primal(found.squared_norm, y, F, weight, t, np.zeros(len(t)))
    largest = float(np.abs(solution.beta).max(initial=0.0))
    proof = conclude(found, primal, t, np.zeros(len(t)), largest, data.psd, loss.name)
    missing = max(0.0, float(np.cumsum(alone.threshold_sums(solution.beta, y)).max()))
    if missing > FEASIBILITY * largest and proof.valid:
        violated = max(proof.infeasibility, missing)
        proof = finished(proof.primal, proof.dual, proof.gap, proof.kkt_violation, violated, proof.of, NOT_FEASIBLE)
    return replace(solution, F=F, thresholds=t, certificate=proof)
