"""Many pairs of classes at once, in as few calls from Python as they need.

A call takes longer than the solution of a small pair, and threads that solve larger ones side by side would wait for
the interpreter most of their time. A pair that does not end within tol here, for whatever reason, is left to the
exact solver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from mercer._numerics.pool import run_tasks
from mercer.gram.operator import GramOperator, terms_of
from mercer.gram.workspace import Loan
from mercer.kernels.features import Matrix, Vector
from mercer.losses.base import BoxQP, Loss
from mercer.problems.certificate import conclude
from mercer.problems.dual import look, survey, survey_of
from mercer.solvers.base import Clock, Options, Solution, Status, TracePoint
from mercer.solvers.data import ClassBlocks, Data
from mercer.solvers.exact import DOUBLE_UP_TO
from mercer.solvers.judge import check_finite, exact_rows
from mercer.solvers.sifting import sieve_of
from mercer.solvers.whole import STEPS_AT_LEAST, STEPS_PER_VARIABLE, matrix_product

# samples whose float64 matrix is computed for all pairs together
MANY_UP_TO = 2048
# pairs between two looks at the clock
PAIRS_PER_TASK = 8
# above this tolerance scores in float32 are near enough; what is left of tol for their rounding
SINGLE_ABOVE, SHARE_OF_TOL = 1e-4, 0.9
# samples of two classes that are sifted
SIFTED_UP_TO = 6144
# about how many nanoseconds the matrices of all pairs take from which most of their values are left out: of less there
# is little to save, and the loops for it take ten seconds to compile
SIFTED_FROM = 2e7
# variables of the pairs whose programs are built together
VARIABLES_AT_ONCE = 1 << 18


def are_plain(members: Sequence[Vector], loss: Loss, options: Options) -> bool:
    """Whether the problems of these classes can be solved here at all."""
    return len(members) > 2 and all(map(len, members)) and loss.one_by_one and options.max_iter < 0


def are_small(members: Sequence[Vector], options: Options) -> bool:
    """Whether the classes are so small that one float64 matrix serves all pairs."""
    sizes = sorted(len(index) for index in members)
    n = sum(sizes)
    within = n <= MANY_UP_TO and 8 * n**2 <= options.budget
    return within and sizes[-1] + sizes[-2] <= DOUBLE_UP_TO and options.precision != "float32"


class Pairs:
    """The programs of some pairs, one after the other, and what is found of each.

    ``members`` are the samples of each class, ``pairs`` the classes of each pair, the first one positive; ``factor``
    is C of each sample. The variables of pair k are those from offsets[k] to offsets[k + 1].
    """

    def __init__(self, members: Sequence[Vector], pairs: Sequence[tuple[int, int]], loss: Loss, factor: Vector) -> None:
        self.members, self.pairs, self.loss = members, pairs, loss
        sizes = np.array([[len(members[i]), len(members[j])] for i, j in pairs])
        self.offsets = np.concatenate([[0], np.cumsum(sizes.sum(axis=1))])
        self.index = np.concatenate([members[c] for pair in pairs for c in pair])
        self.y = np.repeat(np.tile([1.0, -1.0], len(pairs)), sizes.ravel())
        self.weight = factor[self.index]
        self.qp: BoxQP = loss.box_qp(self.y, self.weight, True)
        self.beta, self.F = np.zeros(len(self.y)), np.zeros(len(self.y))
        self.steps = np.full(len(pairs), -1)
        # what `survey` finds
        self.groups, self.totals = np.full((len(pairs), 5), np.nan), np.full((len(pairs), 7), np.nan)

    def solutions(self, data: Data, options: Options, clock: Clock) -> list[Solution | None]:
        """Those of the pairs that were solved to tol."""
        offsets, beta, F, qp, steps = self.offsets, self.beta, self.F, self.qp, self.steps
        found = [survey_of(self.groups[k : k + 1], self.totals[k], qp.sums) for k in range(len(self.pairs))]
        done = np.array([seen.violation <= options.tol for seen in found]) & (steps >= 0)
        thresholds = [seen.thresholds if good else np.zeros(1) for seen, good in zip(found, done, strict=True)]
        f = F + np.repeat(np.concatenate(thresholds), np.diff(offsets))
        paid = self.weight * self.loss.value(self.y, f)
        primal = 0.5 * np.array([seen.squared_norm for seen in found]) + np.add.reduceat(paid, offsets[:-1])
        largest = np.maximum.reduceat(np.abs(beta), offsets[:-1])
        solutions: list[Solution | None] = []
        for k, seen in enumerate(found):
            if not done[k]:
                solutions.append(None)
                continue
            mine, b, taken = slice(offsets[k], offsets[k + 1]), thresholds[k], int(steps[k])
            proof = conclude(seen, float(primal[k]), b, qp.sums, float(largest[k]), data.psd, self.loss.name)
            point = TracePoint(clock.seconds, taken, seen.violation, seen.dual, mine.stop - mine.start)
            seconds = clock.seconds
            solution = Solution(beta[mine], F[mine], b, Status.CONVERGED, taken, seconds, proof, [point])
            clock.report(point, partial(_given, solution))
            solutions.append(solution)
        return solutions


def solve_small(data: Data, batch: Pairs, options: Options, clock: Clock) -> list[Solution | None]:
    """The solution of each pair, all on one float64 matrix; None for those that are left to the exact solver."""
    from mercer._numerics.newton import with_newton
    from mercer._numerics.pairs import solve_pairs

    starts = np.concatenate([[0], np.cumsum([len(index) for index in batch.members])])
    part = data.take(np.concatenate(batch.members))
    loan = Loan(part.n**2, np.dtype(np.float64))
    gram = part.matrix(np.float64, options.n_threads, loan.array.reshape(part.n, part.n))
    check_finite(np.diagonal(gram))
    which, qp = np.array(batch.pairs), batch.qp
    firsts, largest = range(0, len(which), PAIRS_PER_TASK), int(np.diff(batch.offsets).max())

    def one(task: int) -> None:
        if clock.over() is None:
            with_newton(partial(solve, task), np.float64, np.float64, lambda done: not done)

    def solve(task: int, newton: int) -> bool:
        some = slice(firsts[task], firsts[task] + PAIRS_PER_TASK)
        score, support, weights = np.empty(largest), np.empty(largest, np.int64), np.empty(largest)
        return solve_pairs(
                gram, starts, which[some], batch.offsets[some.start : some.stop + 1], np.empty(largest**2), qp.linear,
                qp.l1, qp.ridge, qp.lower, qp.upper, qp.group, options.tol, STEPS_PER_VARIABLE * DOUBLE_UP_TO,
                newton, batch.beta, batch.F, score, support, weights, batch.steps[some], batch.groups[some],
                batch.totals[some],
            )  # fmt: skip

    run_tasks(one, len(firsts), options.n_threads)
    return batch.solutions(data, options, clock)


def can_join(blocks: ClassBlocks, options: Options) -> bool:
    """Whether float32 matrices of two classes, put together from these parts, serve each pair."""
    return blocks.dtype == np.float32 and options.tol > SINGLE_ABOVE


def can_sift(data: Data, options: Options) -> bool:
    """Whether pairs that are too large for a matrix are solved on parts of it: where float32 serves, and is costly."""
    if options.precision == "float64" or options.tol <= SINGLE_ABOVE or data.kernel.domain != "vectors":
        return False
    features = data.features(np.float32)
    return GramOperator(data.kernel, features).costly and data.kernel.formula(features) is not None


def solve_joined(
    data: Data, blocks: ClassBlocks, batch: Pairs, options: Options, clock: Clock
) -> list[Solution | None]:
    """The solution of each pair, from float32 values; None for those that are left to the exact solver."""
    for own in blocks.own:
        check_finite(np.diagonal(own))
    if getattr(data.samples, "dtype", None) == np.float64:
        data.features(np.float64)  # no copy, and prepared once for all pairs
    sieve, alone = sieve_of(data, blocks, options), replace(options, n_threads=1)
    sifting = sieve if _worth_sifting(blocks) else None

    def one(k: int) -> None:
        if clock.over() is not None:
            return
        pair, mine = batch.pairs[k], slice(batch.offsets[k], batch.offsets[k + 1])
        qp, index, beta, F = batch.qp.take(mine, None), batch.index[mine], batch.beta[mine], batch.F[mine]
        found = batch.groups[k : k + 1], batch.totals[k]
        steps = -1 if sifting is None else sifting.solve(pair, qp, beta, F, *found)
        if steps < 0:
            steps = _on_matrix(blocks.matrix(*pair), qp, options.tol, beta, F)
        if steps < 0:
            return
        if sieve is not None:
            sieve.judge(index, qp, beta, F, *found)
        else:
            rows, F[rows] = exact_rows(data.take(index, (blocks, *pair)), qp, beta, F, alone)
            look(qp, beta, F, *found)
        batch.steps[k] = steps

    try:
        run_tasks(one, len(batch.pairs), options.n_threads)
    except BaseException:
        clock.interrupted = True  # the other threads must not go on alone
        raise
    return batch.solutions(data, options, clock)


def _worth_sifting(blocks: ClassBlocks) -> bool:
    """Whether the matrices of all pairs would take long."""
    from mercer._numerics.shared import price

    sizes = np.array([len(own) for own in blocks.own])
    values = 0.5 * float((np.triu(sizes[:, None] + sizes, 1) ** 2).sum())
    return price(values, terms_of(blocks.kernel, blocks.features[0])) >= SIFTED_FROM


def _on_matrix(K: Matrix, qp: BoxQP, tol: float, beta: Vector, F: Vector) -> int:
    """Solve a program with a variable for each sample: the steps, -1 if tol is not reached. Edits beta, F = K beta."""
    from mercer._numerics.newton import with_newton
    from mercer._numerics.smo import NEEDS_NEWTON, solve_block

    n = qp.n_vars

    def run(newton: int) -> tuple[int, bool]:
        beta[:] = 0.0
        taken, _, unbounded = solve_block(
            K, beta, qp.linear.astype(np.float32), qp.lower, qp.upper, qp.l1, qp.ridge, n, SHARE_OF_TOL * tol,
            STEPS_PER_VARIABLE * n + STEPS_AT_LEAST, newton,
        )  # fmt: skip
        return taken, unbounded

    taken, unbounded = with_newton(run, K.dtype, np.float32, lambda found: found[0] == NEEDS_NEWTON)
    F[:] = matrix_product(K, qp, beta)
    return -1 if unbounded or survey(qp, beta, F).violation > tol else int(taken)


def in_lots(members: Sequence[Vector], pairs: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """The pairs, so many together that their programs need little memory."""
    sizes = np.cumsum([len(members[i]) + len(members[j]) for i, j in pairs])
    lots: dict[int, list[tuple[int, int]]] = {}
    for size, pair in zip(sizes, pairs, strict=True):
        lots.setdefault(int(size // VARIABLES_AT_ONCE), []).append(pair)
    return list(lots.values())


def _given(solution: Solution) -> Solution:
    return solution
