"""The procedures of the lecture notes, step by step: coordinate ascent and SMO on the dense matrix in float64.

`Ascent` is coordinate ascent ([M5] "coordinate ascent"): it moves one variable to its optimum while the others stay
fixed, in one of three orders. It needs a problem without a sum constraint, that is without an intercept. `Smo` is
sequential minimal optimisation ([M5] "SMO (I-III)", [CS229] section on SMO): it moves two variables along the line that
keeps their sum, by the pair steps of the exact solver (`_smo_loops.solve_block`), but no others.

Both take no short cuts, so that their steps can be read: see `mercer.problems.steps`. In classification a step is given
in α = yβ, which is between 0 and C; in regression in β = α⁺ − α⁻.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any

import numpy as np

from mercer._compiled.program import Program
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data, check_finite
from mercer.kernels.features import Matrix, Vector
from mercer.losses.base import BoxQP
from mercer.problems.clock import Clock
from mercer.problems.dual import DualProblem, Survey, dual_objective, survey, thresholds
from mercer.problems.solution import Options, Solution, Status, TracePoint, certificate, check_rule, unfinished
from mercer.problems.steps import MOST_STEPS, Steps
from mercer.svm.plan import STEPWISE_UP_TO

# a run has stalled after this many passes that neither raise the objective beyond rounding nor lower the violation
PATIENCE, ROUNDING = 20, 1e-15


def solve_stepwise(
    data: Data, problem: DualProblem, options: Options, clock: Clock, start: Vector | None = None
) -> Solution:
    """Solve a small problem by ``options.solver``, "coordinate" or "smo", and keep its steps if asked to."""
    qp = problem.qp
    _check(problem, options)
    K = data.matrix(np.float64, options.n_threads)
    check_finite(K)
    beta = problem.start() if start is None else start.copy()
    run = (Ascent if options.solver == "coordinate" else Smo)(K, qp, beta, options)
    status = run.run(clock)
    F = K @ beta  # the tracked F has rounding errors of all steps
    b = thresholds(qp, beta, F)
    if status is not Status.CONVERGED:
        b = problem.loss.best_thresholds(problem.y, F, problem.weight)[: qp.n_groups]
    proof = certificate(qp, problem.loss, problem.y, problem.weight, beta, F, b, data.psd)
    path = run.path() if options.trace else None
    return Solution(beta, F, b, status, run.taken, clock.seconds, proof, run.trace, path=path)


def _check(problem: DualProblem, options: Options) -> None:
    """Raise if the procedure cannot solve this problem."""
    qp, solver = problem.qp, options.solver
    if solver == "coordinate" and qp.n_groups > 0:
        raise InvalidInputError(
            "solver='coordinate' moves one dual variable at a time, but an intercept demands Σ αᵢyᵢ = 0, which no "
            "single variable can keep. Use fit_intercept=False, or solver='smo', which moves pairs of variables."
        )
    if solver == "smo" and qp.n_groups == 0:
        raise InvalidInputError(
            "solver='smo' moves pairs of variables that keep Σ αᵢyᵢ = 0, but without an intercept there is no such "
            "sum. Use fit_intercept=True, or solver='coordinate', which moves single variables."
        )
    if qp.has_open_box:
        raise InvalidInputError(
            f"solver={solver!r} needs a finite C: with C=inf its variables have no upper bound, and it would not end "
            "if the samples are not separable. Use solver='auto' without a trace, or a finite C."
        )
    if qp.n_vars > STEPWISE_UP_TO:
        raise InvalidInputError(
            f"solver={solver!r}, and trace=True, keep the whole kernel matrix in float64: they take at most "
            f"{STEPWISE_UP_TO:,} samples, but these are {qp.n_vars:,}. Use solver='auto' without a trace, or fewer "
            "samples."
        )
    check_rule(options.rule)


class _Run(ABC):
    """The common part of both procedures: passes with one step per variable, and the tests for the end."""

    method: str
    names: tuple[str, ...]

    def __init__(self, K: Matrix, qp: BoxQP, beta: Vector, options: Options) -> None:
        self.K, self.qp, self.beta, self.options = K, qp, beta, options
        self.F = K @ beta
        self.taken = 0
        self.trace: list[TracePoint] = []
        self.dual = dual_objective(qp, beta, self.F)
        self._kept: list[Matrix] = []  # the steps of each pass: the columns of `names`
        # β is -α where only negative values are allowed
        self._sign = np.where((qp.upper <= 0) & (qp.lower < 0), -1.0, 1.0)

    def run(self, clock: Clock) -> Status:
        """Take passes until the violation is at most tol."""
        n, limit, idle, lowest, gained = self.qp.n_vars, self.options.max_iter, 0, np.inf, np.inf
        while True:
            seen = survey(self.qp, self.beta, self.F)
            point = TracePoint(clock.seconds, self.taken, seen.violation, seen.dual, n)
            self.trace.append(point)
            clock.report(point, partial(self._current_solution, seen))
            if seen.violation <= self.options.tol:
                return Status.CONVERGED
            if 0 <= limit <= self.taken:
                return Status.MAX_ITER
            over = clock.over()
            if over is not None:
                return over
            progress = gained > ROUNDING * abs(self.dual) or seen.violation < lowest
            lowest, idle = min(lowest, seen.violation), 0 if progress else idle + 1
            if idle >= PATIENCE or not np.isfinite(seen.violation):
                return Status.STALLED
            taken, gained = self.take_pass(n if limit < 0 else min(n, limit - self.taken), clock)
            self.taken += taken

    def _current_solution(self, seen: Survey) -> Solution:
        return unfinished(self.beta, self.F, seen.thresholds, self.taken, 0.0, seen.violation, seen.dual)

    @abstractmethod
    def take_pass(self, n_steps: int, clock: Clock) -> tuple[int, float]:
        """Take steps: (their number, their gain)."""

    def keep(self, rows: Matrix) -> None:
        """Keep these steps if they are asked for, up to MOST_STEPS."""
        if self.options.trace and self.taken < MOST_STEPS:
            self._kept.append(rows[: MOST_STEPS - self.taken].copy())

    def path(self) -> Steps:
        """All steps that were kept."""
        rows = np.concatenate([np.empty((0, len(self.names))), *self._kept])
        columns: dict[str, Any] = dict(zip(self.names, rows.T, strict=True))
        for name in ("i", "j"):
            if name in columns:
                columns[name] = columns[name].astype(np.intp)
        return Steps(self.method, columns, "dual", complete=self.taken <= MOST_STEPS)


class Ascent(_Run):
    """Coordinate ascent; ``options.rule`` is the order of the variables.

    "round-robin" takes them in order, "random" in a new random order in each pass, "greedy" always the one whose step
    gains most.
    """

    method, names = "coordinate ascent", ("i", "unclipped", "clipped", "dual")

    def __init__(self, K: Matrix, qp: BoxQP, beta: Vector, options: Options) -> None:
        super().__init__(K, qp, beta, options)
        self._random = np.random.default_rng(options.seed)

    def take_pass(self, n_steps: int, clock: Clock) -> tuple[int, float]:
        """Take steps: (their number, their gain)."""
        from mercer.svm._stepwise_loops import ascend

        qp, rule = self.qp, self.options.rule
        order = self._random.permutation(qp.n_vars) if rule == "random" else np.arange(qp.n_vars)
        steps = np.empty((n_steps, 4))
        taken, gained = ascend(
            self.K, qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper, order[:n_steps], rule == "greedy", self.beta,
            self.F, steps,
        )  # fmt: skip
        steps = steps[:taken]
        steps[:, 3] = self.dual + np.cumsum(steps[:, 3])
        sign = self._sign[steps[:, 0].astype(np.intp)]
        steps[:, 1] *= sign
        steps[:, 2] = sign * steps[:, 2] + 0.0  # -0 becomes 0
        self.keep(steps)
        self.dual += gained
        return taken, gained


class Smo(_Run):
    """Sequential minimal optimisation: i has the largest rate of increase, j the largest second-order gain with it.

    L and H are the ends of the line segment of αⱼ inside the box, "unclipped" is the optimum of αⱼ on the whole line,
    "clipped" its new value, the closest one on the segment.
    """

    method, names = "SMO", ("i", "j", "L", "H", "unclipped", "clipped", "alpha_i", "dual")

    def __init__(self, K: Matrix, qp: BoxQP, beta: Vector, options: Options) -> None:
        super().__init__(K, qp, beta, options)
        n = qp.n_vars
        self._program = Program(np.arange(n), qp.group, qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper)
        self._members, self._scratch, self._score, self._change = (
            np.arange(n),
            np.empty((6, n)),
            np.empty(n),
            np.empty(n),
        )

    def take_pass(self, n_steps: int, clock: Clock) -> tuple[int, float]:
        """Take steps: (their number, their gain)."""
        from mercer.svm._smo_loops import solve_members

        steps, gained, tol = np.empty((n_steps, len(self.names))), 0.0, self.options.tol
        for k in range(n_steps):
            # Newton's step is not tried before several pair steps
            taken, gain, _ = solve_members(
                self._members, self.K, self._program, self.beta, self.F, tol, 1, 0, self._scratch, self._score,
                self._change,
            )  # fmt: skip
            i, j = int(np.argmax(self._change)), int(np.argmin(self._change))
            if taken == 0 or self._change[i] == 0 or clock.stopped:
                steps = steps[:k]
                break
            gained += gain
            steps[k] = *self._pair(i, j), self.dual + gained
            self.F += self._change[i] * self.K[i] + self._change[j] * self.K[j]
        self.keep(steps)
        self.dual += gained
        return len(steps), gained

    def _pair(self, i: int, j: int) -> tuple[float, ...]:
        """The row of the pair step that has just been taken; F is still the one before it."""
        qp, sign = self.qp, self._sign
        pair, change = np.array([i, j]), self._change[[i, j]]
        after = self.beta[pair]
        before, l1 = after - change, qp.l1[pair]
        low, high = qp.lower[pair], qp.upper[pair]
        # where there is an l1|β|, the objective is quadratic on each side of 0: i moves up, j moves down
        side = np.array([before[0] >= 0, before[1] > 0])
        low = np.where((l1 > 0) & side, 0.0, low)
        high = np.where((l1 > 0) & ~side, 0.0, high)
        rate = qp.linear[pair] - self.F[pair] - qp.ridge[pair] * before - np.where(side, l1, -l1)
        curvature = self.K[i, i] + self.K[j, j] - 2.0 * self.K[i, j] + float(qp.ridge[pair].sum())
        slope, total = float(rate[0] - rate[1]), float(before.sum())
        free = before[1] - slope / curvature if curvature > 0 else -np.inf
        ends = sign[j] * np.array([max(low[1], total - high[0]), min(high[1], total - low[0])])
        # + 0.0 turns -0 into 0
        return (
            i,
            j,
            ends.min() + 0.0,
            ends.max() + 0.0,
            sign[j] * free,
            sign[j] * after[1] + 0.0,
            sign[i] * after[0] + 0.0,
        )
