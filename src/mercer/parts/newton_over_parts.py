"""Newton's method for squared losses over parts (see `mercer.linear.newton`).

Each part returns the loss, X'β and X'DX at a point from one pass over its rows; a search along a step needs its stored
decision values only. A run starts from the model of a random sample of rows: two to four passes remain.

With more columns than a matrix over pairs of them allows, conjugate gradients solve for the step: a pass for each
iteration.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mercer.linear.linear_solution import LinearSolution
from mercer.linear.newton import (
    EXACT,
    LINE_ACCURACY,
    PART,
    PART_GAIN,
    PART_OF,
    PART_ROWS_PER_FEATURE,
    conjugate_gradients,
    lowest_along,
)
from mercer.linear.systems import GramSystem, Matrix
from mercer.losses.base import Vector
from mercer.parts import linear_part
from mercer.parts.linear_run import FACTORED_UP_TO, PartsRun
from mercer.problems.solution import Status


class _Point(NamedTuple):
    """The objective at u: value, X'β, gradient, X'DX, number of samples with D > 0.

    For many columns the diagonal of X'DX alone; it is empty at a point that was expected to be the last.
    """

    u: Vector
    primal: float
    v: Vector
    gradient: Vector
    gram: Matrix
    active: int


def solve(run: PartsRun) -> LinearSolution:
    """Take Newton steps until the certified gap is within tol, a limit is reached, or rounding prevents progress."""
    best: LinearSolution | None = None
    tol, primal = run.options.tol, np.inf
    point, gap = _at(run, _first(run), is_new_step=False), np.inf
    run.last = run.clock.seconds
    while True:
        before, gap = gap, _gap(run, point)
        run.report(gap, (1.0 - gap) * point.primal, point.active, point.u)
        ended = run.stopped or (Status.MAX_ITER if run.n_iter >= run.limit else None)
        if ended is None and not point.primal < primal:
            ended = Status.STALLED
        if gap <= tol or ended is not None:
            solution = run.publish(point.u, "newton", ended, point.v)
            if best is None or solution.certificate.relative_gap <= best.certificate.relative_gap:
                best = solution
            if solution.status is Status.CONVERGED or ended is not None:
                return replace(best, status=solution.status, n_iter=run.n_iter)
            # making Σβ = 0 took part of the gap: a more accurate model follows, and β is computed again
            tol *= 0.1
        primal = point.primal
        step = _direction(run, point, gap)
        if step is None:
            return replace(run.publish(point.u, "newton", Status.STALLED, point.v), n_iter=run.n_iter)
        # each step reduces the gap by at least as much as the last one: a matrix at the last point is not needed
        is_last = before < np.inf and gap * (gap / before) <= tol
        point = _move(run, point, step, is_last)
        run.n_iter += 1


def _direction(run: PartsRun, point: _Point, gap: float) -> Vector | None:
    """The Newton step; None if the matrix cannot be factored."""
    if point.gram.ndim == 2:
        gram, system = point.gram, GramSystem()
        if not gram.size:
            (gram,) = run.parts.total(linear_part.curvature)
        return system.solve(-point.gradient) if system.factor_gram(gram, run.q) else None

    def product(p: Vector) -> Vector:
        (curved,) = run.parts.total(linear_part.curvature_product, p)
        return np.asarray(run.q * p + curved)

    reduction = min(0.1, float(np.sqrt(np.sqrt(gap))))
    return conjugate_gradients(product, run.q + point.gram, point.gradient, reduction, run.clock)


def _first(run: PartsRun) -> Vector:
    """The model to start from, or that of a random sample of rows if there are enough of them, else 0."""
    size = run.sample_size(run.usable // PART_OF)
    few = run.start is None and (size < max(PART, PART_ROWS_PER_FEATURE * run.d) or run.limit <= 20)
    w = None if few else run.sample_model(size, PART_GAIN)
    return np.zeros(run.d) if w is None else w


def _at(run: PartsRun, u: Vector, is_new_step: bool, is_last: bool = False) -> _Point:
    """The objective at u, from one pass over all rows; without X'DX if it is expected to be the last."""
    is_small = run.d - run.statement.intercept <= FACTORED_UP_TO
    matrix = "diagonal" if not is_small else "none" if is_last else "full"
    loss, v, gram, active = run.read_rows(run.parts.total, linear_part.newton_point, u, is_new_step, matrix)
    run.values_of = u
    pull = run.q * u
    return _Point(u, float(loss) + 0.5 * float(pull @ u), v, pull - v, gram, int(active))


def _gap(run: PartsRun, point: _Point) -> float:
    """The relative gap, for a free b as if b were optimal for w."""
    squared = float(point.gradient @ point.gradient) / (2 * run.statement.penalty.l2)
    return squared / max(point.primal, np.finfo(np.float64).tiny) if squared > 0 else 0.0


def _move(run: PartsRun, point: _Point, step: Vector, is_last: bool) -> _Point:
    """Move by the step if its end is close to the minimum along it, else to that minimum."""
    end = _at(run, point.u + step, is_new_step=True, is_last=is_last)
    descent = abs(float(point.gradient @ step))
    if end.primal < point.primal and abs(float(end.gradient @ step)) <= LINE_ACCURACY * descent:
        return end
    run.parts.map(linear_part.begin_line, reads=False)
    pull = run.q * step
    slope, bend = float(pull @ point.u), float(pull @ step)

    def derivatives(s: float) -> tuple[float, float]:
        first, second = run.parts.total(linear_part.line_point, s, reads=False)
        return first, second

    for accuracy in (LINE_ACCURACY, EXACT):
        s = lowest_along(derivatives, slope, bend, accuracy * descent)
        end = _at(run, point.u + s * step, is_new_step=False)
        if end.primal < point.primal:
            break
    return end
