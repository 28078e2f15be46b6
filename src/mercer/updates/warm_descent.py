"""Descend from the solution of a problem to that of a problem that differs in a few samples.

    min  ½β'Kβ − linear'β + Σ l1|β| + ½Σ ridge β²    s.t.  lower ≤ β ≤ upper,  the sum over each group fixed

F = Kβ is known in float64 for all samples. Rounds: the variables that violate optimality most join the free ones, and
the problem over these is solved; F follows from the columns of K that belong to variables that have moved. Newton's
steps with the inverse of the free variables' matrix solve it: Cauwenberghs & Poggio, "Incremental and decremental
support vector machine learning", NIPS 13 (2000). Where this inverse is not kept, SMO (`svm/_smo_loops.py`) solves it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mercer._compiled.program import Program
from mercer.kernels.features import Matrix, Vector
from mercer.losses.base import BoxQP
from mercer.problems.clock import Clock
from mercer.problems.dual import Survey, survey, survey_of
from mercer.problems.solution import Options, Status
from mercer.updates.free_set import MANY_AT_ONCE, FreeSet
from mercer.updates.kernel_columns import KernelColumns

# most rounds, most violators that join the working set in a round, and most members of a working set
ROUNDS, VIOLATORS, MOST_MEMBERS = 60, 128, 1500
# most violators that become free in a round of Newton's steps
JOINING = 24
# most free variables whose inverse is kept, and most of Newton's steps
MOST_FREE, MOST_STEPS = 1000, 10_000
# pair steps in a round per member, and at least
STEPS_PER_MEMBER, STEPS_AT_LEAST = 100, 1000
# a working set is solved to this share of tol
SHARE_OF_TOL = 0.25
# a variable joins the working set if it violates optimality by this share of tol
LEAST_VIOLATION = 0.25
# a round makes progress if the violation falls below this share; rounds without after which the descent gives up
PROGRESS, MOST_IDLE = 0.9, 5
# sums may differ by so much, relative to Σ|β|
SUM_ROUNDING = 1e-13


class Problem(NamedTuple):
    """A program over some samples (``rows``, None for all), with the state of its solution. β and F are edited."""

    qp: BoxQP
    rows: Vector | None
    beta: Vector
    F: Vector


class Columns(NamedTuple):
    """Stored columns of K, a function that computes K[samples, :], and a budget of bytes."""

    stored: KernelColumns
    compute: Callable[[Vector], Matrix]
    budget: int

    def ensure(self, samples: Vector) -> bool:
        """Store the columns of these samples; False if they do not fit into the budget."""
        return self.stored.ensure(self.compute, samples, self.budget)


class Ended(NamedTuple):
    """How a descent ended. ``status`` is None if the exact solver has to go on."""

    status: Status | None
    steps: int
    seen: Survey


def restore_sums(qp: BoxQP, beta: Vector, near: Vector | None) -> Vector:
    """Correct the sums of β: free variables first, those with the largest value of ``near`` before others. Edits β.

    ``near`` are kernel values with the samples that have left or come: similar samples take over their part of w.
    Returns the variables that have moved. If the box does not allow the sums, they are approached.
    """
    moved: list[Vector] = []
    totals = qp.group_sums(beta)
    for g in np.flatnonzero(np.abs(totals - qp.sums) > SUM_ROUNDING * np.abs(beta).sum()):
        missing = float(qp.sums[g] - totals[g])
        end = qp.upper if missing > 0 else qp.lower
        free = is_free(qp, beta)
        for of_free in (True, False):
            candidates = np.flatnonzero((free if of_free else ~free & (beta != end)) & (qp.group == g))
            if near is not None:
                candidates = candidates[np.argsort(-near[candidates], kind="stable")]
            room = np.abs(end[candidates] - beta[candidates])
            before = np.zeros(len(room))
            np.cumsum(room[:-1], out=before[1:])
            part = np.minimum(np.maximum(abs(missing) - before, 0.0), room)
            used = part > 0
            at, filled = candidates[used], part[used] == room[used]
            beta[at] = np.where(filled, end[at], beta[at] + np.copysign(part[used], missing))
            moved.append(at)
            missing -= float(np.copysign(part.sum(), missing))
            if abs(missing) <= SUM_ROUNDING * np.abs(beta).sum():
                break
    return np.concatenate(moved) if moved else np.empty(0, np.intp)


def is_free(qp: BoxQP, beta: Vector) -> Vector:
    """Whether each variable is inside its box and off the kink at 0."""
    free: Vector = (beta > qp.lower) & (beta < qp.upper)
    return free & ((beta != 0) | (qp.l1 == 0)) if qp.l1.any() else free


def follow(
    problem: Problem, columns: Columns, options: Options, clock: Clock, free: FreeSet, rounds: int = ROUNDS
) -> Ended:
    """Descend by Newton's steps until the violation is at most tol and the sum is right. Edits β, F and ``free``."""
    from mercer.updates import _free_set_loops as loops

    qp, rows, beta, F = problem
    stored, steps, total = columns.stored, 0, float(qp.sums[0]) if qp.n_groups else 0.0
    found = loops.Found(np.empty(len(beta), np.intp), np.empty((1, 5)), np.empty(7))
    limit = options.max_iter if options.max_iter >= 0 else MOST_STEPS
    if not free.has_columns(stored):  # another problem took their place
        free.forget()
    for _ in range(rounds):
        place = stored.place if rows is None else stored.place[rows]
        members, count = free.members(rows), len(free.samples)
        over = clock.over()
        program = Program(place, qp.group, qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper)
        least, most_steps = LEAST_VIOLATION * options.tol, limit - steps if over is None else 0
        code, count, taken, chosen = loops.follow(
            loops.StoredColumns(stored.values, stored.n, stored.count), program, loops.Inverse(free.R, members), count,
            beta, F, qp.n_groups > 0, total,
            loops.Bounds(options.tol, least, JOINING, MANY_AT_ONCE, most_steps, rounds), steps == 0, found,
        )  # fmt: skip
        steps += taken
        seen = survey_of(found.groups, found.totals, qp.sums)
        if code == loops.SPOILT:
            free.fail()
        elif seen.outside > 0:  # the solver that goes on from here changes many variables
            free.forget()
        else:
            free.keep(members[:count], rows)
        if code == loops.DONE:
            return Ended(Status.CONVERGED, steps, seen)
        is_whole = not np.any(np.abs(seen.missing) > SUM_ROUNDING * float(np.abs(beta).sum()))
        if code == loops.LIMIT and is_whole and (over is not None or steps >= limit):
            return Ended(over or Status.MAX_ITER, steps, seen)
        if code != loops.NEEDS or not admit(problem, free, found.joins[:chosen], columns):
            return Ended(None, steps, seen)
    return Ended(None, steps, seen)


def admit(problem: Problem, free: FreeSet, joins: Vector, columns: Columns) -> bool:
    """Store the columns of variables that join, and make room for them; False if they are too many. Edits ``free``.

    If many join, the matrix of all is inverted anew, and they are members.
    """
    qp, rows = problem.qp, problem.rows
    together = np.concatenate((free.samples[free.samples >= 0], joins if rows is None else rows[joins]))
    if len(together) > MOST_FREE or not columns.ensure(together):
        return False
    if len(joins) <= MANY_AT_ONCE:
        free.reserve(len(free.samples) + len(joins))
        return True
    variables = together if rows is None else np.searchsorted(rows, together)
    if not free.invert(qp, variables, together, columns.stored):
        free.fail()
        return False
    return True


def worst(members: Vector, excess: Vector) -> Vector:
    """The members with an infinite excess, and the worst of the others."""
    if len(members) <= VIOLATORS:
        return members
    others = np.flatnonzero(np.isfinite(excess))
    if len(others) > VIOLATORS:
        chosen = np.isinf(excess)
        chosen[others[np.argpartition(-excess[others], VIOLATORS)[:VIOLATORS]]] = True
        members = members[chosen]
    return members


def descend(
    problem: Problem, seen: Survey, columns: Columns, options: Options, clock: Clock, rounds: int = ROUNDS
) -> Ended:
    """Descend until the violation is at most tol, from a state whose survey is ``seen``. Edits β and F."""
    qp, rows, beta, F = problem
    steps, previous, idle = 0, np.inf, 0
    for _ in range(rounds):
        violation = seen.violation
        if violation <= options.tol:
            return Ended(Status.CONVERGED, steps, seen)
        if 0 <= options.max_iter <= steps:
            return Ended(Status.MAX_ITER, steps, seen)
        over = clock.over()
        if over is not None:
            return Ended(over, steps, seen)
        idle = 0 if violation < PROGRESS * previous else idle + 1
        previous = min(previous, violation)
        members = working_set(qp, beta, F, seen, options.tol)
        if idle > MOST_IDLE or len(members) > MOST_MEMBERS or not np.isfinite(violation):
            return Ended(None, steps, seen)
        samples = members if rows is None else rows[members]
        if not columns.ensure(samples):
            return Ended(None, steps, seen)
        limit = STEPS_PER_MEMBER * len(members) + STEPS_AT_LEAST
        if options.max_iter >= 0:
            limit = min(limit, options.max_iter - steps)
        taken, change, unbounded = solve_working_set(problem, members, samples, columns, options.tol, limit)
        steps += taken
        if unbounded:
            return Ended(None, steps, seen)
        moved = change != 0
        add_columns(problem, samples[moved], change[moved], columns)
        seen = survey(qp, beta, F)
    return Ended(None, steps, seen)


def add_columns(problem: Problem, samples: Vector, change: Vector, columns: Columns) -> None:
    """F += Σ change_t K[:, samples_t]. Their columns are stored. Edits F."""
    if problem.rows is None:
        columns.stored.add_product(samples, change, problem.F)
        return
    total = np.zeros(columns.stored.n)
    columns.stored.add_product(samples, change, total)
    F = problem.F
    F += total[problem.rows]


def working_set(qp: BoxQP, beta: Vector, F: Vector, seen: Survey, tol: float) -> Vector:
    """The free variables and the worst violators; the program has at most one sum."""
    from mercer.updates._working_set_loops import choose_members

    level = 0.5 * float(seen.m[0] + seen.M[0]) if qp.n_groups else 0.0
    members, excess = np.empty(len(beta), np.intp), np.empty(len(beta))
    count = choose_members(
        beta, F, qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper, level if np.isfinite(level) else 0.0,
        LEAST_VIOLATION * tol, bool(seen.n_free[0] <= MOST_FREE), members, excess,
    )  # fmt: skip
    return worst(members[:count], excess[:count])


def solve_working_set(
    problem: Problem, members: Vector, samples: Vector, columns: Columns, tol: float, limit: int
) -> tuple[int, Vector, bool]:
    """Solve the problem over the members: (steps, change of each member, whether it is unbounded). Edits β."""
    from mercer.svm._round_loops import with_newton
    from mercer.svm._smo_loops import solve_members

    qp, _, beta, F = problem
    m, null = len(members), qp.n_groups == 0
    K = columns.stored.block(samples)
    parts = [qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper]
    linear, l1, ridge, lower, upper = (part[members] for part in parts)
    b, f, group = beta[members], F[members], qp.group[members]
    if null:  # an unbounded member with a zero row takes up any sum
        K = np.pad(K, (0, 1))
        b, f, linear, l1, ridge = (np.append(part, 0.0) for part in (b, f, linear, l1, ridge))
        lower, upper, group = np.append(lower, -np.inf), np.append(upper, np.inf), np.append(group, np.int8(0))
    size = m + null
    program = Program(np.arange(size), group, linear, l1, ridge, lower, upper)
    score, change, scratch = np.empty(size), np.empty(size), np.empty((6, size))

    def run(newton: int) -> tuple[int, float, bool]:
        return solve_members(
            np.arange(size), K, program, b, f, SHARE_OF_TOL * tol, limit, newton, scratch, score, change
        )

    steps, _, unbounded = with_newton(run, K.dtype, score.dtype)
    beta[members] = b[:m]
    return steps, change[:m], unbounded
