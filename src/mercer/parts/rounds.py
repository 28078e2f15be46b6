"""Dual coordinate descent in rounds, for more columns than a matrix over pairs of them allows.

CoCoA+ (Ma, Smith, Jaggi, Jordan, Richtárik & Takáč, ICML 2015) with σ' = number of parts: in each round every part
takes passes of coordinate descent on its own β for the model

    linear'Δβ − … − w·X'Δβ − σ'/(2 l2) |X'Δβ|²

and the changes of all parts are added. The compiled pass of `mercer.linear.coordinate` does it with rows times √σ' and
w divided by √σ'. A free intercept is found by the method of multipliers, as there: the constant feature c has the
weight σ c Σβ, which moves into b after each round. The run ends by the exact duality gap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.linear.coordinate import TINY, Storage
from mercer.linear.problem import Rows
from mercer.linear.solution import LinearSolution
from mercer.losses.base import Vector
from mercer.parts.layout import Part
from mercer.parts.linear_part import all_rows, own_rows
from mercer.parts.linear_solver import PartsRun
from mercer.problems.solution import Status

# passes over a part in each round
PASSES = 5
MAX_ROUNDS = 1000
# the gap is computed after so many rounds, more often the closer it is
CHECK_EVERY = 5
# a run ends after so many checks without a better gap
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


def fill_table(part: Part, l2: float, bias: float, scale: float) -> None:
    """Begin with β = 0; ``scale`` is σ'."""
    from mercer.linear import _coordinate_loops as loops

    state, qp = part.state, part.state.qp
    norms = state.change * scale
    norms[norms < TINY] = 0.0
    table = np.empty((part.n, loops.WIDTH))
    lower, upper, ridge = qp.lower / l2, qp.upper / l2, qp.ridge * l2
    loops.fill_table(qp.linear, qp.l1, ridge, lower, upper, norms, bias * np.sqrt(scale), table)
    state.work, state.change = Work(table, np.arange(part.n, dtype=np.uint32)), np.empty(0)


def descend(part: Part, w: Vector, b: float, bias: float, scale: float, seed: int) -> tuple[Vector, float]:
    """Passes over the part's variables from the common w and b; returns X'Δβ with the constant feature, and Σβ."""
    from mercer.linear import _coordinate_loops as loops

    state, work = part.state, part.state.work
    rows = own_rows(part)
    X = rows.X
    root = float(np.sqrt(scale))
    scaled = X._replace(data=X.data * X.data.dtype.type(root)) if rows.sparse else X * X.dtype.type(root)
    storage = Storage(Rows(scaled))
    linear = work.table[:, loops.LINEAR].copy()
    work.table[:, loops.LINEAR] -= b
    before = work.table[:, loops.BETA].copy()
    local = w / root
    random, out = np.random.default_rng([seed, part.index, work.rounds]), np.zeros(7)
    for _ in range(PASSES):
        loops.shuffle(work.order, int(random.integers(1, 1 << 62)))
        loops.descend(*storage.arrays, bias * root, local, work.table, work.order, np.inf, out)
    work.table[:, loops.LINEAR] = linear
    work.rounds += 1
    beta = work.table[:, loops.BETA]
    change = np.zeros(len(w))
    change[: X.shape[1]] = Rows(X).tdot(beta - before, part.n_threads)
    change[-1] = bias * float((beta - before).sum())
    state.beta = beta * state.statement.penalty.l2
    return change, float(beta.sum())


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
    squares, n = run.parts.total(begin_rounds)
    # the constant feature belongs to the problem, or to the method of multipliers
    bias = float(np.sqrt(squares / n or 1.0)) if free else statement.bias
    stored = run.d - int(bool(statement.bias) or free)
    scale = float(len(run.parts.map(fill_table, l2, bias, 1.0, reads=False)))
    run.parts.map(begin_rounds)
    run.parts.map(fill_table, l2, bias, scale, reads=False)
    w, b = np.zeros(stored + 1), 0.0
    limit = MAX_ROUNDS * PASSES if options.max_iter < 0 else options.max_iter
    best: LinearSolution | None = None
    waited, lowest = 0, np.inf
    rounds = 0
    while True:
        rounds += 1
        change, _ = run.parts.total(descend, w, b, bias, scale, options.seed)
        w += change
        run.n_iter += PASSES
        if free:
            b += bias * w[-1]
            w[-1] = 0.0
        if rounds % CHECK_EVERY and run.n_iter < limit and run.clock.over() is None:
            continue
        u = np.append(w[:stored], b) if free else w[: run.d]
        loss, gap = run.parts.total(decision_gap, u)
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
