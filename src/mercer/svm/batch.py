"""One-vs-one: solve the two-class problems of all pairs of classes, sharing kernel values where that pays.

`OneVsOne.solve_all` follows a plan (`mercer.svm.plan.plan_pairs`):

- small pairs: one float64 Gram matrix for all, several pairs in a compiled call (`solve_on_one_matrix`);
- larger pairs: within-class blocks are computed once and shared by all pairs of the class (`ClassBlocks`). The cross
  block of a pair is computed in full, or lazily (`LazyPairs`). A pair is one compiled call, so that threads do not wait
  for the interpreter (`solve_on_blocks`);
- otherwise the exact solver (`mercer.svm.solve`) for each pair, one by one or in several threads.

A pair that is not solved to tol by the first two is left to the exact solver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from mercer._compiled.program import Program
from mercer._compiled.thread_pool import cached_property, run_tasks
from mercer.exceptions import InfeasibleNuError, NotSeparableError
from mercer.gram.memory import Loan
from mercer.gram.operator import ClassBlocks, Data, Evaluations, check_finite
from mercer.kernels.features import Matrix, Vector, VectorFeatures
from mercer.losses import Loss, NuHinge
from mercer.losses.base import BoxQP
from mercer.problems.clock import Clock
from mercer.problems.dual import DUST, fill_survey, settled_at_bounds, survey, survey_of
from mercer.problems.solution import Options, Solution, Status, TracePoint, conclude
from mercer.svm.dense import STEPS_AT_LEAST, STEPS_PER_VARIABLE, matrix_product
from mercer.svm.hard_margins.separation import Separation
from mercer.svm.plan import (
    CACHE_CONFLICT,
    DOUBLE_UP_TO,
    PAIRS_PER_TASK,
    SHARE_OF_TOL,
    VARIABLES_AT_ONCE,
    Plan,
    over_features,
    plan_pairs,
)
from mercer.svm.solve import solve_problem
from mercer.svm.verify import ExactFormula, exact_formula, exact_rows

# most rounds on a lazy cross block
LAZY_ROUNDS = 40

# the problem of two classes: data, loss, y, weight, intercept, options, clock, start
SolvePair = Callable[[Data, Loss, Vector, Vector, bool, Options, Clock, Vector | None], Solution]


@dataclass(frozen=True, eq=False)
class OneVsOne:
    """The problems of all pairs of classes i < j; class i is the positive one.

    Attributes
    ----------
    data : all samples.
    members : the samples of each class that have a positive weight.
    loss : the loss of every problem.
    factor : C of each sample.
    intercept : whether the machines have a b.
    options, clock : of every run.
    solve_pair : the solver of one pair; machines other than support vector machines replace the exact solver.
    untouched : solutions β = 0 of pairs that were not begun before the time was over, by class sizes and weights.
    """

    data: Data
    members: Sequence[Vector]
    loss: Loss
    factor: Vector
    intercept: bool
    options: Options
    clock: Clock
    solve_pair: SolvePair = solve_problem
    untouched: dict[tuple[float, ...], Solution] = field(default_factory=dict)

    def _alike(self, pair: tuple[int, int]) -> tuple[float, ...] | None:
        """The key of a pair in ``untouched``: the sizes and weights of its classes.

        None if weights differ within a class. Pairs with the same key have the same model β = 0.
        """
        factors = [factor for c in pair if (factor := self._common_factors[c]) is not None]
        return (*(len(self.members[c]) for c in pair), *factors) if len(factors) == 2 else None

    @cached_property
    def _common_factors(self) -> list[float | None]:
        """C of the samples of each class; None if they differ."""
        parts = [self.factor[index] for index in self.members]
        return [float(part[0]) if len(part) and part.min() == part.max() else None for part in parts]

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """(0, 1), (0, 2), …"""
        return class_pairs(len(self.members))

    def samples(self, i: int, j: int) -> tuple[Vector, Vector]:
        """(the samples of a pair, those of class i first; their labels ±1)."""
        index = np.concatenate([self.members[i], self.members[j]])
        return index, np.repeat([1.0, -1.0], [len(self.members[i]), len(self.members[j])])

    def plan(self, starts: Sequence[Vector | None]) -> Plan:
        """The plan of all pairs, from these starts."""
        from_zero = all(start is None for start in starts)
        exact = self.solve_pair is solve_problem and self.options.solver == "auto"
        plain = exact and from_zero and self.intercept
        largest = sum(sorted(len(index) for index in self.members)[-2:])
        features = False
        if from_zero and self.options.solver in ("auto", "decomposition"):
            qp = self.loss.box_qp(np.array([1.0, -1.0]), np.ones(2), self.intercept)
            features = over_features(self.data, largest, qp, self.options)
        return plan_pairs(self.data, self.members, self.loss, self.options, self.clock.left, plain, features)

    def solve_all(self, starts: Sequence[Vector | None]) -> list[Solution | None]:
        """The solution of every pair; None for an empty class."""
        if len(self.pairs) == 1:
            return [self._solve_pair(None, self.pairs[0], starts[0])]
        plan = self.plan(starts)
        self.clock.reports.log_once("plan", plan)
        solutions = self._by_plan(plan, starts)
        return [s if s is None else replace(s, plan=plan) for s in solutions]

    def _by_plan(self, plan: Plan, starts: Sequence[Vector | None]) -> list[Solution | None]:
        if plan.pairs == "one matrix":
            programs = Programs(self.members, self.pairs, self.loss, self.factor)
            return self._completed(self.pairs, solve_on_one_matrix(self.data, programs, self.options, self.clock), None)
        blocks = None
        if plan.storage == "matrix":
            blocks = ClassBlocks(self.data, self.members, plan.dtype, self.options.n_threads)
        elif plan.precision == "float32" or getattr(self.data.samples, "dtype", None) != np.float32:
            # once for all pairs; float32 samples are copied to float64 in parts only
            self.data.features(plan.dtype)
        if blocks is not None and plan.pairs in ("class blocks", "lazy class blocks"):
            lazy = plan.pairs == "lazy class blocks"
            return [
                solution for lot in in_lots(self.members, self.pairs) for solution in self._on_blocks(blocks, lot, lazy)
            ]
        if plan.pairs == "one by one":
            return [self._solve_pair(blocks, pair, start) for pair, start in zip(self.pairs, starts, strict=True)]
        n_threads = self.options.n_threads
        each = replace(self, options=self.options.shared(n_threads))
        solutions: list[Solution | None] = [None] * len(self.pairs)

        def one(k: int) -> None:
            try:
                solutions[k] = each._solve_pair(blocks, self.pairs[k], starts[k])
            except BaseException:
                self.clock.interrupted = True  # ends the pairs of the other threads
                raise

        run_tasks(one, len(self.pairs), n_threads)
        return solutions

    def _on_blocks(self, blocks: ClassBlocks, lot: Sequence[tuple[int, int]], lazy: bool) -> list[Solution | None]:
        """Solve some pairs on class blocks; pairs that fail are left to the exact solver."""
        programs = Programs(self.members, lot, self.loss, self.factor)
        return self._completed(
            lot, solve_on_blocks(self.data, blocks, programs, lazy, self.options, self.clock), blocks
        )

    def _completed(
        self, pairs: Sequence[tuple[int, int]], found: list[Solution | None], blocks: ClassBlocks | None
    ) -> list[Solution | None]:
        """The solutions found, with the exact solver's solutions in the place of None."""
        return [s or self._solve_pair(blocks, pair, None) for s, pair in zip(found, pairs, strict=True)]

    def solve(
        self,
        index: Vector,
        y: Vector,
        loss: Loss | None = None,
        start: Vector | None = None,
        pair: tuple[ClassBlocks, int, int] | None = None,
    ) -> Solution:
        """Solve the problem of these samples. ``pair`` names the class blocks of their Gram matrix, if it is stored."""
        loss = self.loss if loss is None else loss
        if len(self.members) > 2:
            data = self.data.take(index, pair)
            return self.solve_pair(data, loss, y, self.factor[index], self.intercept, self.options, self.clock, start)
        # two classes: keep the order of the data, so that nothing is copied if all samples take part
        data, factor, back = self.data, self.factor, index
        if len(index) < data.n:
            samples = np.sort(index)
            data, factor, back = data.take(samples), factor[samples], np.searchsorted(samples, index)
        start = None if start is None or len(start) != len(index) else _at(back, start)
        with self.clock.reports.mapped_by(lambda solution: solution.reordered(back)):
            found = self.solve_pair(data, loss, _at(back, y), factor, self.intercept, self.options, self.clock, start)
        return found.reordered(back)

    def _solve_pair(self, blocks: ClassBlocks | None, pair: tuple[int, int], start: Vector | None) -> Solution | None:
        n_positive, n_negative = (len(self.members[c]) for c in pair)
        if n_positive == 0 or n_negative == 0:
            if isinstance(self.loss, NuHinge):
                raise InfeasibleNuError(self.loss.nu, 0.0, n_positive, n_negative)
            return None
        key = self._alike(pair) if self.clock.over() is not None else None
        if key is not None and key in self.untouched:
            return self.untouched[key]
        index, y = self.samples(*pair)
        solution = self.solve(index, y, start=start, pair=None if blocks is None else (blocks, *pair))
        if key is not None and not solution.beta.any():
            self.untouched[key] = solution
        if solution.separation is not None:
            raise not_separable(solution.separation.placed(index, self.data.n))
        return solution


def not_separable(found: Separation) -> NotSeparableError:
    """The error for a hard margin without a model, with the proof or what is known instead."""
    margin = found.margin if found.separable else None
    return NotSeparableError(found.weights, found.residual, found.intercept, found.decided, margin)


def class_pairs(n_classes: int) -> list[tuple[int, int]]:
    """(0, 1), (0, 2), …: the order of the decision values."""
    return list(combinations(range(n_classes), 2))


# ---- many pairs in a few compiled calls ------------------------------------------------------------------------------


class Programs:
    """The quadratic programs of some pairs, concatenated, and their results.

    ``members`` are the samples of each class, ``pairs`` the two classes of each pair, the first one positive;
    ``factor`` is C of each sample. Pair k has the variables from offsets[k] to offsets[k + 1].
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
        # for `survey_of`
        self.groups, self.totals = np.full((len(pairs), 5), np.nan), np.full((len(pairs), 7), np.nan)

    def solutions(self, data: Data, options: Options, clock: Clock) -> list[Solution | None]:
        """The solution of each pair that was solved to tol; None for the others."""
        offsets, beta, F, qp, steps = self.offsets, self.beta, self.F, self.qp, self.steps
        self._settle()
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
            clock.report(point, partial(_identity, solution))
            solutions.append(solution)
        return solutions

    def _settle(self) -> None:
        """Set coefficients that rounding has left next to a bound to it, as for single problems. Edits β."""
        settled = settled_at_bounds(self.qp, self.beta, DUST)
        if settled is self.beta:
            return
        pairs = np.searchsorted(self.offsets, np.flatnonzero(settled != self.beta), side="right") - 1
        self.beta[:] = settled
        for k in np.unique(pairs).tolist():
            mine = slice(self.offsets[k], self.offsets[k + 1])
            fill_survey(self.qp.take(mine, None), settled[mine], self.F[mine], self.groups[k : k + 1], self.totals[k])


def solve_on_one_matrix(data: Data, batch: Programs, options: Options, clock: Clock) -> list[Solution | None]:
    """Solve all pairs on one float64 matrix. None for pairs that are left to the exact solver."""
    from mercer.svm._pair_loops import PairResults, PairSpace, solve_pairs
    from mercer.svm._round_loops import with_newton

    starts = np.concatenate([[0], np.cumsum([len(index) for index in batch.members])])
    part = data.take(np.concatenate(batch.members))
    loan = Loan(part.n**2, np.dtype(np.float64))
    gram = part.matrix(np.float64, options.n_threads, loan.array.reshape(part.n, part.n))
    check_finite(np.diagonal(gram))
    which, qp = np.array(batch.pairs), batch.qp
    programs = Program(batch.index, qp.group, qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper)
    firsts, largest = range(0, len(which), PAIRS_PER_TASK), int(np.diff(batch.offsets).max())

    def one(task: int) -> None:
        if clock.over() is None:
            with_newton(partial(solve, task), np.float64, np.float64)

    def solve(task: int, newton: int) -> tuple[int]:
        some = slice(firsts[task], firsts[task] + PAIRS_PER_TASK)
        (samples, support), weights = np.empty((2, largest), np.int64), np.empty(largest)
        space = PairSpace(np.empty(largest**2), samples, support, weights, np.empty((8, largest)))
        results = PairResults(batch.steps[some], batch.groups[some], batch.totals[some])
        return solve_pairs(
            gram, starts, which[some], batch.offsets[some.start : some.stop + 1], programs, options.tol,
            STEPS_PER_VARIABLE * DOUBLE_UP_TO, newton, batch.beta, batch.F, space, results,
        )  # fmt: skip

    run_tasks(one, len(firsts), options.n_threads)
    return batch.solutions(data, options, clock)


def solve_on_blocks(
    data: Data, blocks: ClassBlocks, batch: Programs, lazy: bool, options: Options, clock: Clock
) -> list[Solution | None]:
    """Solve all pairs on float32 class blocks, verified in float64. None for pairs that are left to the exact solver.

    With ``lazy`` the cross block of two classes is computed only where it is needed.
    """
    for within in blocks.within:
        check_finite(np.diagonal(within))
    if getattr(data.samples, "dtype", None) == np.float64:
        data.features(np.float64)  # prepared once for all pairs, without a copy
    pairs, alone = lazy_pairs(data, blocks, options), replace(options, n_threads=1)

    def one(k: int) -> None:
        if clock.over() is not None:
            return
        pair, mine = batch.pairs[k], slice(batch.offsets[k], batch.offsets[k + 1])
        qp, index, beta, F = batch.qp.take(mine, None), batch.index[mine], batch.beta[mine], batch.F[mine]
        found = batch.groups[k : k + 1], batch.totals[k]
        steps = pairs.solve(pair, qp, beta, F) if lazy and pairs is not None else -1
        if steps < 0:
            steps = _on_matrix(blocks.matrix(*pair), qp, options.tol, beta, F)
        if steps < 0:
            return
        if pairs is not None:
            pairs.verify(index, qp, beta, F, *found)
        else:
            rows, F[rows] = exact_rows(data.take(index, (blocks, *pair)), qp, beta, F, alone)
            fill_survey(qp, beta, F, *found)
        batch.steps[k] = steps

    try:
        run_tasks(one, len(batch.pairs), options.n_threads)
    except BaseException:
        clock.interrupted = True  # the other threads must not go on alone
        raise
    return batch.solutions(data, options, clock)


def _on_matrix(K: Matrix, qp: BoxQP, tol: float, beta: Vector, F: Vector) -> int:
    """Solve a pair on its dense matrix: the steps, -1 if tol is not reached. Edits beta and F = K beta."""
    from mercer.svm._round_loops import with_newton
    from mercer.svm._smo_loops import solve_members

    n = qp.n_vars
    variables, F[:] = np.arange(n), 0.0
    beta[:] = 0.0
    program = Program(variables, qp.group, qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper)
    scratch, score, change = np.empty((6, n)), np.empty(n, np.float32), np.empty(n)

    def run(newton: int) -> tuple[int, float, bool]:
        return solve_members(
            variables, K, program, beta, F, SHARE_OF_TOL * tol, STEPS_PER_VARIABLE * n + STEPS_AT_LEAST, newton,
            scratch, score, change,
        )  # fmt: skip

    taken, _, unbounded = with_newton(run, K.dtype, np.float32)
    F[:] = matrix_product(K, qp, beta)
    return -1 if unbounded or survey(qp, beta, F).violation > tol else int(taken)


def in_lots(members: Sequence[Vector], pairs: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Split the pairs into lots whose programs need little memory."""
    sizes = np.cumsum([len(members[i]) + len(members[j]) for i, j in pairs])
    lots: dict[int, list[tuple[int, int]]] = {}
    for size, pair in zip(sizes, pairs, strict=True):
        lots.setdefault(int(size // VARIABLES_AT_ONCE), []).append(pair)
    return list(lots.values())


def _identity(solution: Solution) -> Solution:
    return solution


# ---- lazy cross blocks -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LazyPairs:
    """Solves pairs of classes with stored within-class blocks and a lazy cross block: see ``_lazy_pair_loops.py``.

    Attributes
    ----------
    blocks : the within-class Gram blocks, and scratch memory.
    classes : each class as the compiled call takes it.
    single, exact : the kernel in float32, to solve, and in float64, to verify.
    options, evaluations : of the fit.
    """

    blocks: ClassBlocks
    classes: list[Any]
    single: Any
    exact: ExactFormula
    options: Options
    evaluations: Evaluations

    def solve(self, pair: tuple[int, int], qp: BoxQP, beta: Vector, F: Vector) -> int:
        """Solve a pair: the number of steps, -1 if tol is not reached. Edits beta and F = K beta."""
        from mercer.svm._driver_loops import CONVERGED, drive, space_for
        from mercer.svm._lazy_pair_loops import VALUES, LazyPair
        from mercer.svm._round_loops import with_newton

        n, (first, second) = qp.n_vars, (self.classes[c] for c in pair)
        cross = len(first.X) * len(second.X)
        rows, block = np.split(self.blocks.scratch(n**2), [2 * cross])
        size = int(np.sqrt(len(block)))
        size -= size % CACHE_CONFLICT == 0
        first_rows, second_rows = rows[:cross].reshape(len(first.X), -1), rows[cross:].reshape(len(second.X), -1)
        source = LazyPair(
            self.single, first, second, first_rows, second_rows, np.full(n, -1), np.zeros(3, np.int64),
            np.empty((3, n), np.int64), np.empty((6, 3, size), np.int64), np.empty(n),
        )  # fmt: skip
        program = Program(np.arange(n), qp.group, qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper)
        space, steps, beta[:], F[:] = space_for(n, size, 1, block), 0, 0.0, 0.0

        def run(newton: int) -> tuple[int, int, int]:
            nonlocal steps
            found = drive(
                None, None, source, program, -1, beta, F, SHARE_OF_TOL * self.options.tol, newton, LAZY_ROUNDS, space
            )
            steps += found[2]
            return found

        ended = with_newton(run, np.float32, np.float32)[0]
        self.evaluations.add(int(source.counts[VALUES]))
        return steps if ended == CONVERGED else -1

    def verify(self, index: Vector, qp: BoxQP, beta: Vector, F: Vector, groups: Matrix, totals: Vector) -> None:
        """Recompute F in float64 where it matters; ``index`` are the samples. Edits F, fills groups and totals."""
        self.evaluations.add(self.exact.values(index, qp, beta, F, self.options, np.empty(qp.n_vars), groups, totals))


def lazy_pairs(data: Data, blocks: ClassBlocks, options: Options) -> LazyPairs | None:
    """The lazy solver for the pairs of these classes; None if the kernel has no compiled form."""
    from mercer._compiled.tiles import formula_of
    from mercer.svm._lazy_pair_loops import ClassBlock

    features = data.features(np.float32)
    single = data.kernel.formula(features)
    if single is None or blocks.dtype != np.float32:
        return None
    assert isinstance(features, VectorFeatures)
    exact = exact_formula(data)
    assert exact is not None
    classes = []
    for part, within in zip(blocks.features, blocks.within, strict=True):
        assert isinstance(part, VectorFeatures)
        classes.append(ClassBlock(part.X, part.norms, part.panels, within))
    return LazyPairs(blocks, classes, formula_of(*single), exact, options, data.evaluations)


def _at(places: Vector, values: Vector) -> Vector:
    """The vector with values[k] at places[k]; ``places`` is a permutation."""
    found = np.empty_like(values)
    found[places] = values
    return found
