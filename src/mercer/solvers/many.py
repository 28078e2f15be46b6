"""Many small problems at once: the pairs of many classes, whose solution takes less time than a call from Python.

A pair that does not end within tol here, for whatever reason, is left to the exact solver.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from mercer._numerics.pool import run_tasks
from mercer.gram.workspace import Loan
from mercer.kernels.features import Vector
from mercer.losses.base import Loss
from mercer.problems.certificate import conclude
from mercer.problems.dual import survey_of
from mercer.solvers.base import Clock, Options, Solution, Status, TracePoint
from mercer.solvers.data import Data
from mercer.solvers.exact import DOUBLE_UP_TO
from mercer.solvers.judge import check_finite
from mercer.solvers.whole import STEPS_PER_VARIABLE

# samples whose float64 matrix is computed for all pairs together
MANY_UP_TO = 2048
# pairs between two looks at the clock
PAIRS_PER_TASK = 8


def can_solve(data: Data, members: Sequence[Vector], loss: Loss, options: Options) -> bool:
    """Whether these classes are so small, and the problems so plain, that all pairs can be solved together."""
    sizes = sorted(len(index) for index in members)
    n = sum(sizes)
    return (
        len(sizes) > 2
        and sizes[0] > 0
        and sizes[-1] + sizes[-2] <= DOUBLE_UP_TO
        and n <= MANY_UP_TO
        and 8 * n**2 <= options.budget
        and loss.one_by_one
        and options.max_iter < 0
        and options.precision != "float32"
    )


def solve_many(
    data: Data,
    members: Sequence[Vector],
    pairs: Sequence[tuple[int, int]],
    loss: Loss,
    factor: Vector,
    options: Options,
    clock: Clock,
) -> list[Solution | None]:
    """The solution of each pair, the first class positive; None for those that are left to the exact solver.

    ``members`` are the samples of each class, ``factor`` is C of each sample.
    """
    from mercer._numerics.pairs import solve_pairs

    starts = np.concatenate([[0], np.cumsum([len(index) for index in members])])
    part = data.take(np.concatenate(members))
    loan = Loan(part.n**2, np.dtype(np.float64))
    gram = part.matrix(np.float64, options.n_threads, loan.array.reshape(part.n, part.n))
    check_finite(np.diagonal(gram))

    sizes = np.array([[len(members[i]), len(members[j])] for i, j in pairs])
    offsets = np.concatenate([[0], np.cumsum(sizes.sum(axis=1))])
    index = np.concatenate([members[c] for pair in pairs for c in pair])
    y = np.repeat(np.tile([1.0, -1.0], len(pairs)), sizes.ravel())
    weight = factor[index]
    qp = loss.box_qp(y, weight, True)
    beta, F, which = np.zeros(qp.n_vars), np.zeros(qp.n_vars), np.array(pairs)
    steps, groups, totals = np.full(len(pairs), -1), np.full((len(pairs), 5), np.nan), np.full((len(pairs), 7), np.nan)
    firsts = range(0, len(pairs), PAIRS_PER_TASK)

    def one(task: int) -> None:
        if clock.over() is None:
            some = slice(firsts[task], firsts[task] + PAIRS_PER_TASK)
            solve_pairs(
                gram, starts, which[some], offsets[some.start : some.stop + 1], qp.linear, qp.l1, qp.ridge, qp.lower,
                qp.upper, options.tol, STEPS_PER_VARIABLE * DOUBLE_UP_TO, beta, F, steps[some], groups[some],
                totals[some],
            )  # fmt: skip

    run_tasks(one, len(firsts), options.n_threads)

    found = [survey_of(groups[k : k + 1], totals[k], qp.sums) for k in range(len(pairs))]
    done = np.array([seen.violation <= options.tol for seen in found]) & (steps >= 0)
    thresholds = [seen.thresholds if good else np.zeros(1) for seen, good in zip(found, done, strict=True)]
    paid = weight * loss.value(y, F + np.repeat(np.concatenate(thresholds), sizes.sum(axis=1)))
    primal = 0.5 * np.array([seen.squared_norm for seen in found]) + np.add.reduceat(paid, offsets[:-1])
    largest = np.maximum.reduceat(np.abs(beta), offsets[:-1])
    solutions: list[Solution | None] = []
    for k in np.arange(len(pairs)):
        if not done[k]:
            solutions.append(None)
            continue
        mine = slice(offsets[k], offsets[k + 1])
        proof = conclude(found[k], float(primal[k]), thresholds[k], qp.sums, float(largest[k]), data.psd, loss.name)
        point = TracePoint(clock.seconds, int(steps[k]), found[k].violation, found[k].dual, len(beta[mine]))
        solution = Solution(
            beta[mine], F[mine], thresholds[k], Status.CONVERGED, int(steps[k]), clock.seconds, proof, [point]
        )
        clock.report(point, partial(_given, solution))
        solutions.append(solution)
    return solutions


def _given(solution: Solution) -> Solution:
    return solution
