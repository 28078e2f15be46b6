"""Dual coordinate descent in rounds, for more columns than a matrix over pairs of them allows.

In each round every part takes passes of coordinate descent on its own β from the common w, as if the others did not
move; the sum of these changes is a direction in which the dual grows, and the best step along it is taken. This is the
block-diagonal method with a line search of Lee & Roth, ICML 2015; with one part it is plain coordinate descent. A step
of at most 1 stays in all boxes. The line search takes l1|β| as linear along the step, which bounds it from above: the
dual cannot fall.

A free intercept is found by the method of multipliers, as in `mercer.linear.coordinate`: a constant feature is added,
and after each round b moves by its value. The run ends by the exact duality gap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.linear.coordinate import TINY, Storage
from mercer.linear.linear_solution import LinearSolution
from mercer.losses.base import Vector
from mercer.parts.layout import Part
from mercer.parts.linear_part import all_rows, own_rows
from mercer.parts.linear_run import PartsRun
from mercer.problems.solution import Status

# passes over a part in each round
PASSES = 5
MAX_ROUNDS = 1000
# the gap is computed after this many rounds, more often the closer it is
CHECK_EVERY = 5
# a run ends after this many checks without a better gap
PATIENCE = 20


@dataclass
class Work:
    """The table of the compiled pass and the order of a part's variables."""

    table: Any
    order: Any
    rounds: int = 0


def begin_rounds(part: Part) -> tuple[float, float]:
    """The sum of the squared norms of the rows, and their number."""
    from mercer.linear import _coordinate_loops as loops

    storage, norms = Storage(own_rows(part)), np.empty(part.n)
    loops.row_norms(storage.indptr, storage.values, norms)
    part.state.change = norms
    return float(norms.sum()), float(part.n)


def fill_table(part: Part, l2: float, bias: float) -> None:
    """Begin with β = 0, in the problem divided by l2."""
    from mercer.linear import _coordinate_loops as loops

    state, qp = part.state, part.state.qp
    norms = state.change
    norms[norms < TINY] = 0.0
    table = np.empty((part.n, loops.WIDTH))
    lower, upper, ridge = qp.lower / l2, qp.upper / l2, qp.ridge * l2
    loops.fill_table(qp.linear, qp.l1, ridge, lower, upper, norms, bias, table)
    state.work, state.change = Work(table, np.arange(part.n, dtype=np.uint32)), np.empty(0)


def descend(part: Part, w: Vector, b: float, bias: float, seed: int) -> tuple[Any, ...]:
    """Passes over the part's variables from the common w and b.

    Returns X'Δβ with the constant feature, and the slope and the curvature of the part's own terms of the dual.
    """
    from mercer.linear import _coordinate_loops as loops

    state, work = part.state, part.state.work
    rows = own_rows(part)
    storage, table = Storage(rows), work.table
    before = table[:, loops.BETA].copy()
    linear = table[:, loops.LINEAR].copy()
    table[:, loops.LINEAR] -= b
    local = w.copy()
    random, out = np.random.default_rng([seed, part.index, work.rounds]), np.zeros(7)
    for _ in range(PASSES):
        loops.shuffle(work.order, int(random.integers(1, 1 << 62)))
        loops.descend(*storage.arrays, bias, local, table, work.order, np.inf, out)
    work.rounds += 1
    after = table[:, loops.BETA].copy()
    state.change = after - before
    slope = (table[:, loops.LINEAR] - table[:, loops.RIDGE] * before) @ state.change
    slope -= table[:, loops.L1] @ (np.abs(after) - np.abs(before))
    curvature = table[:, loops.RIDGE] @ state.change**2
    table[:, loops.LINEAR], table[:, loops.BETA] = linear, before
    return local - w, float(slope), float(curvature)


def take_step(part: Part, length: float) -> None:
    """Move β along the last change."""
    from mercer.linear import _coordinate_loops as loops

    state = part.state
    state.work.table[:, loops.BETA] += length * state.change
    state.beta = state.work.table[:, loops.BETA] * state.statement.penalty.l2


def decision_gap(part: Part, u: Vector) -> tuple[float, float]:
    """The loss at u and the part's share of the gap."""
    from mercer.linear._interior_loops import loss_and_gap

    state, qp = part.state, part.state.qp
    t = qp.linear - all_rows(part).dot(u, part.n_threads)
    value, gap = loss_and_gap(t, qp.l1, qp.ridge, qp.lower, qp.upper, state.beta)
    return float(value), float(gap)


def solve(run: PartsRun) -> LinearSolution:
    """Rounds until the certified gap is within tol."""
    statement, options = run.statement, run.options
    l2, free = statement.penalty.l2, statement.intercept
    squares, n = run.read_rows(run.parts.total, begin_rounds)
    # the constant feature belongs to the problem, or to the method of multipliers
    bias = float(np.sqrt(squares / n or 1.0)) if free else statement.bias
    stored = run.d - int(bool(statement.bias) or free)
    run.parts.map(fill_table, l2, bias, reads=False)
    w, b = np.zeros(stored + 1), 0.0
    limit = MAX_ROUNDS * PASSES if options.max_iter < 0 else options.max_iter
    best: LinearSolution | None = None
    waited, lowest = 0, np.inf
    rounds = 0
    while True:
        rounds += 1
        change, slope, curvature = run.parts.total(descend, w, b, bias, options.seed)
        slope, curvature = slope - float(w @ change), curvature + float(change @ change)
        length = min(1.0, slope / curvature) if curvature > 0 else 1.0
        run.parts.map(take_step, length, reads=False)
        w += length * change
        run.n_iter += PASSES
        if free:
            b += length * bias * w[-1]
        out_of_time = run.clock.over_in(run.pass_seconds + run.ending) is not None
        if rounds % CHECK_EVERY and run.n_iter < limit and not out_of_time:
            continue
        u = np.append(w[:stored], b) if free else w[: run.d]
        loss, gap = run.read_rows(run.parts.total, decision_gap, u)
        primal = statement.penalty.value(w[:stored] if free else u) + loss
        run.report(gap / max(abs(primal), np.finfo(np.float64).tiny), primal - gap, run.n)
        waited = 0 if gap < 0.99 * lowest else waited + 1
        lowest = min(lowest, gap)
        ended = run.stopped or (Status.MAX_ITER if run.n_iter >= limit else None)
        ended = Status.STALLED if ended is None and waited >= PATIENCE else ended
        if ended is None and gap > options.tol * abs(primal):
            continue
        solution = run.publish(u, "rounds", ended)
        if best is None or solution.certificate.relative_gap <= best.certificate.relative_gap:
            best = solution
        if solution.status is Status.CONVERGED or ended is not None:
            return replace(best, status=solution.status, n_iter=run.n_iter)
