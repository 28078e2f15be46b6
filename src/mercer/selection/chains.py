"""Solve a chain of machines: one kernel, one fold, many settings, each from the solution of the setting before it.

F = Kβ is kept at the test samples, too, so that held-out decision values are known as soon as a machine is solved.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mercer._compiled.program import Program
from mercer.exceptions import InfeasibleNuError
from mercer.gram.memory import Loan
from mercer.gram.operator import Data, product
from mercer.kernels.features import Matrix, Vector
from mercer.losses import BoxQP, Loss
from mercer.problems.clock import Clock
from mercer.problems.dual import DualProblem, Survey, feasible_start, survey, survey_of
from mercer.problems.solution import Options
from mercer.svm.plan import CHAIN_SET_UP_TO, FEWEST_MEMBERS
from mercer.svm.solve import solve as solve_exactly

Index = NDArray[np.intp]

# fewest and most rounds between two checks of the clock; rounds after which the exact solver takes over
FEWEST_ROUNDS, ROUNDS_PER_CHECK, MOST_ROUNDS = 8, 30, 900
# members × samples of all rounds between two checks of the clock: well below a second
WORK_PER_CHECK = 60_000_000
# with a time limit, the share of the time left for the rounds until the next check: later rounds take longer
SHARE_PER_CHECK = 0.1
# a solution may exceed tol by this factor, because F is tracked in float32
SLACK = 1.5
# the row of the null sample: the last entry of F
NULL_SAMPLE = -1
# the vectors of a program, and their entries for the null variable
COLUMNS = {"linear": 0.0, "l1": 0.0, "ridge": 0.0, "lower": -np.inf, "upper": np.inf}


class OutOfTimeError(Exception):
    """The time of the search is over: the chain was not finished."""


@dataclass(frozen=True)
class Problem:
    """The samples that all machines of a chain share: those of one fold, or of two classes of it.

    Attributes
    ----------
    train : the training samples, all of positive weight.
    y : their targets, ±1 for classification.
    weight : their factors of C.
    train_ranges : columns of the Gram matrix, (start, stop) each, that contain all of ``train``.
    test_ranges : further columns; both together contain all of ``test``.
    test : the held-out samples.
    intercept : whether the machines have a b.
    """

    train: Index
    y: Vector
    weight: Vector
    train_ranges: NDArray[np.intp]
    test_ranges: NDArray[np.intp]
    test: Index
    intercept: bool


@dataclass(frozen=True)
class Setting:
    """The parameters of one machine: its loss, and C, which multiplies the weights."""

    loss: Loss
    C: float


@dataclass(frozen=True, eq=False)
class ChainPrograms:
    """The quadratic programs of settings that are solved in one chain. If there are several, all sums are zero.

    Attributes
    ----------
    rows : the numbers of the settings.
    settings, programs : the settings and their programs.
    stacked : sample and group of each variable, and the vectors of the programs, a row for each program.
    null : the variable of the null sample, or −1.
    """

    rows: list[int]
    settings: list[Setting]
    programs: list[BoxQP]
    stacked: Program
    null: int

    @classmethod
    def of(cls, problem: Problem, some: Sequence[tuple[int, Setting, BoxQP]]) -> ChainPrograms:
        """Stack programs, each given as (number, setting, program)."""
        programs = [qp for _, _, qp in some]
        first, n = programs[0], len(problem.train)
        sample, group, null = problem.train, first.group, -1
        if first.n_groups == 0:
            # the null sample, a free variable with a zero row, takes up any sum
            null, sample, group = n, np.append(sample, NULL_SAMPLE), np.append(group, group[:1])
        vectors = {name: _stack([getattr(qp, name) for qp in programs], at, len(group)) for name, at in COLUMNS.items()}
        stacked = Program(sample, group, **vectors)
        return cls([row for row, _, _ in some], [one for _, one, _ in some], programs, stacked, null)


@dataclass(frozen=True, eq=False)
class Chain:
    """The programs of a problem for all settings, best ordered by C. They do not depend on the kernel."""

    problem: Problem
    n_settings: int
    parts: list[ChainPrograms]

    @classmethod
    def of(cls, problem: Problem, settings: Sequence[Setting]) -> Chain:
        """The chain of all feasible settings."""
        feasible: list[tuple[int, Setting, BoxQP]] = []
        for row, setting in enumerate(settings):
            with suppress(InfeasibleNuError):
                qp = setting.loss.box_qp(problem.y, setting.C * problem.weight, problem.intercept)
                feasible.append((row, setting, qp))
        # all in one chain, unless sums change: then each program needs a start of its own
        alone = any(qp.sample is not None or qp.sums.any() for _, _, qp in feasible)
        several = [[one] for one in feasible] if alone else [feasible] if feasible else []
        return cls(problem, len(settings), [ChainPrograms.of(problem, some) for some in several])

    @property
    def size(self) -> int:
        """About how many bytes the programs take."""
        return sum(getattr(part.stacked, name).nbytes for part in self.parts for name in COLUMNS) * 2

    def run(self, K: Matrix | None, data: Data, options: Options, clock: Clock) -> Matrix:
        """Decision values of the test samples, a row for each setting; NaN if it is infeasible.

        Without a matrix K the exact solver solves every machine, on the kernel rows that it needs.
        """
        values = np.full((self.n_settings, len(self.problem.test)), np.nan)
        run = _Run(self.problem, K, data, options, clock)
        for part in self.parts:
            _check(clock)
            with suppress(InfeasibleNuError):
                values[part.rows] = run.solve(part)
        _check(clock)  # the last machine may be unfinished
        return values


def _check(clock: Clock) -> None:
    over = clock.over()
    if over is not None:
        raise OutOfTimeError(over.value)


class _Run:
    """The state of a chain: the last program, its solution and F = Kβ at all samples."""

    def __init__(self, problem: Problem, K: Matrix | None, data: Data, options: Options, clock: Clock) -> None:
        self.problem, self.K, self.data = problem, K, data
        self.options, self.clock = options, clock
        n = len(problem.train)
        self._size = min(n + 1, max(FEWEST_MEMBERS, options.working_set or CHAIN_SET_UP_TO))
        # chains are short: page faults of new memory would take as long as the work in it
        self._loan = None if K is None else Loan(self._size**2, K.dtype)
        self.qp: BoxQP | None = None
        self.beta = np.empty(0)
        self.F = np.zeros(data.n + 1)  # the last entry is that of the null sample
        self._test_beta = self.beta  # F = K test_beta at the test columns

    def solve(self, part: ChainPrograms) -> Matrix:
        """Decision values of the test samples, a row for each program."""
        if self.K is None or part.programs[0].sample is not None:
            return np.array([self._by_rows(one, qp) for one, qp in zip(part.settings, part.programs, strict=True)])
        self._start(part.programs[0])
        self.qp = part.programs[-1]
        values, surveys = self._descend(part)
        for row, (setting, seen) in enumerate(zip(part.settings, surveys, strict=True)):
            published = setting.loss.publish(self.beta, seen.thresholds)
            values[row] /= published.scale
            values[row] += published.intercept
        return values

    def _start(self, qp: BoxQP) -> None:
        """A feasible β near the last solution."""
        near = None if self.qp is None else self.beta * _ratio(self.qp.sums, qp.sums)
        self.beta = feasible_start(qp, near)
        self._recompute()

    def _recompute(self) -> None:
        """Compute F from β at all columns of the problem."""
        from mercer._compiled.tiles import add_rows_product

        assert self.K is not None
        self.F[:] = 0.0
        support = np.flatnonzero(self.beta)
        rows, weights = self.problem.train[support], self.beta[support]
        for start, stop in (*self.problem.train_ranges, *self.problem.test_ranges):
            add_rows_product(self.K, rows, weights, start, stop, self.F)
        self._test_beta = self.beta.copy()

    def _descend(self, part: ChainPrograms) -> tuple[Matrix, list[Survey]]:
        """(F of the test samples, surveys) of all programs, as near to the optimum as the matrix's precision allows."""
        from mercer.selection import _chain_loops as chains
        from mercer.svm._block_newton_loops import newton_address
        from mercer.svm._driver_loops import space_for

        assert self._loan is not None and self.K is not None
        newton = newton_address(self.K.dtype, self.K.dtype)  # nearly every search needs Newton's step
        problem, programs = self.problem, part.programs
        test, n = problem.test, len(problem.train)
        beta = self.beta if part.null < 0 else np.append(self.beta, -self.beta.sum())
        n_groups, n_programs = max(1, programs[0].n_groups), len(programs)
        values = np.empty((n_programs, len(test)))
        groups, totals = np.empty((n_programs, n_groups, 5)), np.empty((n_programs, 7))
        results = chains.ChainResults(values, groups, totals)
        samples = chains.ChainSamples(problem.train_ranges, problem.test_ranges, test)
        space = space_for(len(beta), self._size, n_groups, self._loan.array)
        counters, numbers, reals = np.zeros(4, np.int64), np.empty(len(beta), np.int64), np.empty((2, len(beta)))
        # depends on sizes only: the result must not depend on the speed of the computer
        most = int(np.clip(WORK_PER_CHECK // (n * self._size), FEWEST_ROUNDS, ROUNDS_PER_CHECK))
        rounds = most if self.clock.left == np.inf else 1
        surveys: list[Survey] = []
        while len(surveys) < n_programs:
            begun = self.clock.seconds
            state = chains.ChainState(counters, self._test_beta, numbers, reals)
            chains.solve_chain(
                self.K, part.stacked, part.null, samples, beta, self.F, self.options.tol, newton, rounds, state, space,
                results,
            )  # fmt: skip
            s = int(counters[chains.PROGRAM])
            surveys += [survey_of(groups[k], totals[k], programs[k].sums) for k in range(len(surveys), s)]
            _check(self.clock)
            rounds = self._rounds_in_time(rounds, (self.clock.seconds - begun) / rounds, most)
            if s < n_programs and (counters[chains.STUCK] or counters[chains.ROUNDS] >= MOST_ROUNDS):
                seen = survey_of(groups[s], totals[s], programs[s].sums)
                if not (counters[chains.STUCK] and seen.violation <= SLACK * self.options.tol):
                    beta[:n] = self._rescue(part.settings[s], beta[:n])
                    beta[n:] = -beta[:n].sum()
                    values[s] = self.F[test]
                    seen = survey(programs[s], beta[:n], self.F[self.problem.train])
                surveys.append(seen)
                counters[:] = s + 1, 0, 0, 0
        self.beta = beta[:n]
        return values, surveys

    def _rounds_in_time(self, rounds: int, seconds: float, most: int) -> int:
        """Rounds until the next check of the clock, after ``rounds`` rounds of ``seconds`` each."""
        if self.clock.left == np.inf:
            return most
        in_time = SHARE_PER_CHECK * self.clock.left / max(seconds, np.finfo(np.float64).tiny)
        return int(max(1, min(2 * rounds, most, in_time)))

    def _rescue(self, setting: Setting, beta: Vector) -> Vector:
        """β of the exact solver, for a program that does not converge on the matrix. Edits F."""
        problem = self.problem
        part = DualProblem(None, setting.loss, problem.y, setting.C * problem.weight, problem.intercept)
        options = replace(self.options, n_threads=1)
        solution = solve_exactly(self.data.take(problem.train), part, options, self.clock, beta.copy())
        self.beta = solution.beta
        self._recompute()
        return self.beta

    def _by_rows(self, setting: Setting, qp: BoxQP) -> Vector:
        """Decision values of the test samples from the exact solver, without the dense matrix."""
        _check(self.clock)
        problem, data = self.problem, self.data
        start = None
        if self.qp is not None and len(self.beta) == qp.n_vars and not qp.sums.any():
            start = feasible_start(qp, self.beta * min(1.0, _largest_factor(qp, self.beta)))
        part = DualProblem(None, setting.loss, problem.y, setting.C * problem.weight, problem.intercept)
        own = data.take(problem.train)
        solution = solve_exactly(own, part, replace(self.options, n_threads=1), self.clock, start)
        self.qp, self.beta = qp, solution.beta
        published = setting.loss.publish(qp.at_samples(solution.beta, own.n), solution.thresholds)
        support = np.flatnonzero(published.beta)
        new = data.exact(problem.test)
        known = data.exact(problem.train[support])
        return product(data.kernel, new, known, published.beta[support]) + published.intercept


def _stack(columns: Sequence[Vector], extra: float, n: int) -> Matrix:
    """Stack vectors, one row for each program, padded to n entries by ``extra``."""
    stacked = np.full((len(columns), n), extra)
    stacked[:, : len(columns[0])] = columns
    return stacked


def _largest_factor(qp: BoxQP, beta: Vector) -> float:
    """The largest factor by which β can be multiplied within its box."""
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(beta > 0, qp.upper / beta, np.where(beta < 0, qp.lower / beta, np.inf))
    return float(room.min(initial=np.inf))


def _ratio(before: Vector, after: Vector) -> float:
    """The factor that turns a solution with one sum into a start for another sum."""
    return float(after[0] / before[0]) if len(before) and len(after) and before[0] != 0 else 1.0
