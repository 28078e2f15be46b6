"""The machines of one kernel and one fold, one after the other, each from the solution of the one before.

F = Kβ is kept at the test samples, too, so that held-out decision values are there as soon as a machine is solved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.exceptions import InfeasibleNuError
from mercer.gram.operator import product
from mercer.gram.workspace import Loan
from mercer.kernels.features import Matrix, Vector
from mercer.losses import BoxQP, Loss
from mercer.problems.dual import DualProblem, Survey, feasible_start, survey
from mercer.solvers.base import Clock, Options
from mercer.solvers.data import Data
from mercer.solvers.exact import solve as solve_exactly

Index = NDArray[np.intp]

# the largest working set; problems of so many samples are one block
LARGEST_SET, ONE_BLOCK = 512, 1024
# rounds between two looks at the clock, and in all before the exact solver takes over
ROUNDS_PER_LOOK, MOST_ROUNDS = 60, 900
# what a solution may exceed tol by because F is tracked in float32 rows
SLACK = 1.5
# the share of bounded support vectors from which a larger C is taken to scale the whole solution
MOSTLY_BOUNDED = 0.5


class OutOfTimeError(Exception):
    """The clock of the search is over: this chain is not needed."""


@dataclass(frozen=True)
class Problem:
    """What all machines of a chain have in common: the samples of one fold, or of two of its classes.

    Attributes
    ----------
    train : the samples, all of positive weight.
    y : their targets, ±1 for classification.
    weight : their factors of C.
    ranges : columns of the kernel matrix, (start, stop) each, that hold all of ``train`` and ``test``.
    test : the samples held out.
    intercept : whether there is a b.
    """

    train: Index
    y: Vector
    weight: Vector
    ranges: NDArray[np.intp]
    test: Index
    intercept: bool


@dataclass(frozen=True)
class Setting:
    """One machine: its loss and the factor C of the weights."""

    loss: Loss
    C: float


def run_chain(
    problem: Problem, settings: Sequence[Setting], K: Matrix | None, data: Data, options: Options, clock: Clock
) -> Matrix:
    """Decision values of the test samples, a row for each setting, which are best ordered by C; NaN where infeasible.

    Without a matrix K every machine is left to the exact solver, which asks ``data`` for the rows that it needs.
    """
    values = np.full((len(settings), len(problem.test)), np.nan)
    run = _Run(problem, K, data, options, clock)
    for row, setting in enumerate(settings):
        _check(clock)
        try:
            values[row] = run.solve(setting)
        except InfeasibleNuError:
            continue
    _check(clock)  # the last machine may have been cut short
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
        size = n + 1 if n <= ONE_BLOCK else LARGEST_SET
        # chains are short: new memory for each would cost as much as what is done in it
        self._loan = Loan(2 * size**2, np.dtype(np.float32 if K is None else K.dtype))
        self._memory = self._loan.array.reshape(2, -1)
        self.qp: BoxQP | None = None
        self.beta = np.empty(0)
        self.F = np.zeros(data.n + 1)  # the last one for the null sample

    def solve(self, setting: Setting) -> Vector:
        """Decision values of the test samples."""
        problem = self.problem
        qp = setting.loss.box_qp(problem.y, setting.C * problem.weight, problem.intercept)
        if self.K is None or qp.sample is not None:
            return self._by_rows(setting, qp)
        self._start(qp)
        self.qp = qp
        seen = self._descend(qp)
        if not seen.violation <= SLACK * self.options.tol:
            self._rescue(setting, qp)
            seen = survey(qp, self.beta, self.F[problem.train])
        published = setting.loss.publish(self.beta, seen.thresholds)
        return self.F[problem.test] / published.scale + published.intercept

    def _start(self, qp: BoxQP) -> None:
        """A feasible β near the last solution."""
        before = self.qp
        if before is None or before.sums.any() or qp.sums.any():
            near = None if before is None else self.beta * _ratio(before.sums, qp.sums)
            self.beta = feasible_start(qp, near)
            self._recompute()
            return
        beta, F = self.beta, self.F[self.problem.train]
        longest = _largest_factor(qp, beta)
        bounded = (beta == before.lower) | (beta == before.upper)
        bounded &= beta != 0
        factor = 1.0
        if np.count_nonzero(bounded) >= MOSTLY_BOUNDED * np.count_nonzero(beta):
            # the best multiple: bounded coefficients grow with C
            curvature = float(beta @ F + qp.ridge @ beta**2)
            factor = float(qp.linear @ beta - qp.l1 @ np.abs(beta)) / curvature if curvature > 0 else 1.0
        factor = max(0.0, min(factor, longest))
        if factor != 1.0:
            beta *= factor
            self.F *= factor
            if factor == longest:  # rounding must not leave bounded ones beside their bound
                beta[bounded] = np.where(beta > 0, qp.upper, qp.lower)[bounded]
        np.clip(beta, qp.lower, qp.upper, out=beta)

    def _recompute(self) -> None:
        """F from β, at all samples that are asked for."""
        from mercer._numerics.tiles import add_rows_product

        assert self.K is not None
        self.F[:] = 0.0
        support = np.flatnonzero(self.beta)
        rows, weights = self.problem.train[support], self.beta[support]
        for start, stop in self.problem.ranges:
            add_rows_product(self.K, rows, weights, start, stop, self.F)

    def _descend(self, qp: BoxQP) -> Survey:
        """As near to the optimum as the matrix allows."""
        from mercer._numerics.chains import advance

        train, n = self.problem.train, len(self.problem.train)
        null = -1
        sample: Index = train
        columns: tuple[NDArray[Any], ...] = (qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper, qp.group)
        beta = self.beta
        if qp.n_groups == 0:
            # a free variable with a zero row takes up any sum
            null, extra = n, (0.0, 0.0, 0.0, -np.inf, np.inf, 0)
            sample = np.append(train, self.data.n)
            columns = tuple(np.append(c, e).astype(c.dtype) for c, e in zip(columns, extra, strict=True))
            beta = np.append(beta, -beta.sum())
        rounds = 0
        while rounds < MOST_ROUNDS:
            _, _, used = advance(
                self.K, sample, beta, self.F, *columns, max(1, qp.n_groups), null, self.problem.ranges,
                self._memory, self.options.tol, ROUNDS_PER_LOOK,
            )  # fmt: skip
            rounds += used
            if used < ROUNDS_PER_LOOK or self.clock.over() is not None:
                break
        self.beta = beta[:n]
        return survey(qp, self.beta, self.F[train])

    def _rescue(self, setting: Setting, qp: BoxQP) -> None:
        """Leave a machine that does not settle on the matrix to the exact solver. Edits β and F."""
        problem = self.problem
        part = DualProblem(None, setting.loss, problem.y, setting.C * problem.weight, problem.intercept)
        options = replace(self.options, n_threads=1)
        solution = solve_exactly(self.data.take(problem.train), part, options, self.clock, self.beta)
        self.beta = solution.beta
        self._recompute()

    def _by_rows(self, setting: Setting, qp: BoxQP) -> Vector:
        """The same without the whole matrix."""
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


def _largest_factor(qp: BoxQP, beta: Vector) -> float:
    """By how much β can be multiplied within its box."""
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(beta > 0, qp.upper / beta, np.where(beta < 0, qp.lower / beta, np.inf))
    return float(room.min(initial=np.inf))


def _ratio(before: Vector, after: Vector) -> float:
    """By what a solution is to be multiplied for other sums."""
    return float(after[0] / before[0]) if len(before) and len(after) and before[0] != 0 else 1.0
