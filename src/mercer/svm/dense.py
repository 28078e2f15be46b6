"""Solve a small problem on its dense Gram matrix: SMO on all variables at once.

    min  1/2 b'Kb - linear'b + sum l1|b| + 1/2 sum ridge b^2     s.t.  lower <= b <= upper,  sum over each group fixed

`DenseRun.run` repeats SMO (`_smo_loops.solve_block`) until the violation of F = Kb, recomputed in float64, is at most
tol. In between it shrinks once and goes from float32 to float64 scores. If all of this stalls, the interior-point
method gives a new start.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from mercer._compiled.blas import one_blas_thread
from mercer._compiled.program import Program
from mercer.gram.memory import Loan
from mercer.kernels.features import Matrix, Vector
from mercer.losses.base import BoxQP
from mercer.problems.clock import Clock
from mercer.problems.dual import Survey, diverges, dual_objective, feasible_start, survey
from mercer.problems.solution import Options, Solution, Status, TracePoint, unfinished
from mercer.svm.interior_qp import INTERIOR_STEPS, factor_seconds, interior_point
from mercer.svm.plan import SHARE_OF_TOL, SINGLE_SCORES_FROM_TOL, Plan

# pair steps between two checks of the clock
STEPS_PER_VARIABLE, STEPS_AT_LEAST = 100, 1000
NEVER = np.iinfo(np.intp).max
# first estimate of the seconds of a pair step per variable, until it is measured
SECONDS_PER_ENTRY = 3e-9
# most checks without a violation below this share of the smallest one so far
PATIENCE, IMPROVED = 3, 0.99
# most steps of the interior-point method
MOST_INTERIOR_STEPS = 100
USUAL = Plan(storage="matrix")


class DenseRun:
    """One run on a Gram matrix K of either precision, which can be continued. ``beta`` and ``F`` are its state.

    ``plan`` says when settled variables are shrunk.
    """

    def __init__(
        self,
        K: Matrix,
        qp: BoxQP,
        beta: Vector,
        options: Options,
        clock: Clock,
        loan: Loan | None = None,
        plan: Plan = USUAL,
    ) -> None:
        self.K = K
        self._loan = loan  # keeps borrowed memory of K
        self.qp = qp
        self.beta = beta
        self.options = options
        self.clock = clock
        self.plan = plan
        self.steps = 0
        self.trace: list[TracePoint] = []
        self._pace = SECONDS_PER_ENTRY * qp.n_vars  # seconds of a pair step
        self._tried_interior = False  # once at most, when SMO and Newton steps stall
        n = qp.n_vars
        self._null = qp.n_groups == 0
        self._order: Any = slice(None)
        self._block = K
        sample = np.arange(n) if qp.sample is None else qp.sample
        if self._null or qp.n_groups > 1 or qp.sample is not None:
            # the variables of a group side by side; a program without sums gets a null sample
            self._order = np.argsort(qp.group, kind="stable")
            sample = sample[self._order]
            self._block = np.zeros((n + self._null, n + self._null), K.dtype)
            self._block[:n, :n] = K[np.ix_(sample, sample)]
        self._lower, self._upper = self._column(qp.lower, -np.inf), self._column(qp.upper, np.inf)
        self._l1, self._ridge = self._column(qp.l1, 0.0), self._column(qp.ridge, 0.0)
        self._linear = self._column(qp.linear, 0.0)
        self._program = Program(
            np.append(sample, len(K)) if self._null else sample, self._column(qp.group, 0).astype(np.int8, copy=False),
            self._linear, self._l1, self._ridge, self._lower, self._upper,
        )  # fmt: skip
        self._scratch, self._change = np.empty((6, n + self._null)), np.empty(n + self._null)
        sizes = np.bincount(qp.group) if qp.n_groups > 1 else np.array([n + self._null])
        self._ends = np.concatenate([[0], np.cumsum(sizes)])
        self.F = matrix_product(self.K, self.qp, self.beta)

    def _column(self, values: Vector, extra: float) -> Vector:
        return np.append(values[self._order], extra) if self._null else values[self._order]

    def restart(self, rows: Vector | None = None) -> None:
        """Continue after the caller changed F, at ``rows`` or at all samples. No other state depends on F."""

    def run(self, tol: float) -> Status:
        """Descend until the violation, computed from the tracked F, is at most tol."""
        qp, options = self.qp, self.options
        n = qp.n_vars
        # float32 scores suit a float32 matrix unless tol is small
        kind = np.float32 if self.K.dtype == np.float32 and options.tol > SINGLE_SCORES_FROM_TOL else np.float64
        largest = float(np.abs(np.diagonal(self.K)).max(initial=0.0))
        best, idle = np.inf, 0
        b = self._column(self.beta, 0.0)
        # no shrinking with float64 scores: there the last digits count
        pause, members = int(self.plan.settled_after * n) if kind == np.float32 else NEVER, None
        while True:
            limit = STEPS_PER_VARIABLE * n + STEPS_AT_LEAST
            if options.max_iter >= 0:
                limit = max(0, min(limit, options.max_iter - self.steps))
            asked = SHARE_OF_TOL * tol if kind == np.float32 else tol
            in_time, begun = self._steps_in_time(), self.clock.seconds
            taken, unbounded = self._pair_steps(b, kind, asked, min(limit, pause, in_time), members)
            self.steps += taken
            if taken > STEPS_AT_LEAST:
                self._pace = max((self.clock.seconds - begun) / taken, np.finfo(np.float64).tiny)
            self.beta[self._order] = b[:n]
            self.F = matrix_product(self.K, self.qp, self.beta)
            seen = survey(qp, self.beta, self.F)
            found = seen.violation
            point = TracePoint(self.clock.seconds, self.steps, found, seen.dual, self._n_active(members))
            self.trace.append(point)
            self.clock.report(point, partial(self._current_solution, seen))
            idle = 0 if found < IMPROVED * best else idle + 1
            best = min(best, found)
            if found <= tol:
                return Status.CONVERGED
            if unbounded or diverges(qp, self.beta, self.F, largest):
                return Status.UNBOUNDED
            if 0 <= options.max_iter <= self.steps:
                return Status.MAX_ITER
            over = self.clock.over()
            if over is not None:
                return over
            if taken >= in_time:
                continue
            if members is not None or pause <= taken < limit:
                # shrink once, then solve with all variables again
                members, pause = (self._unsettled(b) if members is None else None), NEVER
            elif kind == np.float32:
                kind = np.float64
            elif not np.isfinite(found):
                return Status.STALLED
            elif idle > PATIENCE or taken == 0:
                if self._tried_interior:
                    return Status.STALLED
                if self.clock.left < INTERIOR_STEPS * factor_seconds(n):
                    return Status.TIME_LIMIT
                self._interior(b)
                best, idle = np.inf, 0
                continue

    def _steps_in_time(self) -> int:
        """Pair steps that take about half of the time left; a few at least."""
        left = self.clock.left
        return NEVER if left == np.inf else max(STEPS_AT_LEAST // 10, int(min(NEVER, 0.5 * left / self._pace)))

    def _n_active(self, members: Vector | None) -> int:
        """The number of samples with at least one of these variables; of all samples for None."""
        if members is None:
            return len(self.F)
        samples = np.unique(self._program.sample[members])
        return int(np.count_nonzero(samples < len(self.F)))  # the null sample is the last one

    def _score(self, b: Vector) -> Vector:
        """s = linear - F - ridge b of each variable: see ``_smo_loops.py``."""
        return self._linear - self._column(self.qp.at_variables(self.F), 0.0) - self._ridge * b

    def _pair_steps(self, b: Vector, kind: Any, tol: float, limit: int, members: Vector | None) -> tuple[int, bool]:
        """Run SMO on these members, or on all: (steps, whether the objective is unbounded). Edits b in place.

        ``kind`` is the dtype of the scores.
        """
        from mercer.svm._round_loops import with_newton
        from mercer.svm._smo_loops import solve_members

        K = self._block if members is None else self._block[np.ix_(members, members)]
        some = np.arange(len(b)) if members is None else members
        F, score = np.append(self.F, 0.0), np.empty(len(b), kind)

        def run(newton: int) -> tuple[int, float, bool]:
            return solve_members(some, K, self._program, b, F, tol, limit, newton, self._scratch, score, self._change)

        taken, _, unbounded = with_newton(run, K.dtype, kind)
        return taken, unbounded

    def _unsettled(self, b: Vector) -> Vector | None:
        """The variables that remain after shrinking; None if these are too many.

        The others are at a bound, and their rates would not let them move even with the worst violator.
        """
        score = self._score(b)
        up = np.where(b < self._upper, score - np.where(b >= 0, self._l1, -self._l1), -np.inf)
        low = np.where(b > self._lower, score + np.where(b <= 0, self._l1, -self._l1), np.inf)
        apart = [
            (up[first:last] < low[first:last].min(initial=np.inf))
            & (low[first:last] > up[first:last].max(initial=-np.inf))
            for first, last in pairwise(self._ends)
        ]
        members = np.flatnonzero(~np.concatenate(apart))
        return members if len(members) <= self.plan.most_unsettled * len(b) else None

    def _current_solution(self, seen: Survey) -> Solution:
        return unfinished(self.beta, self.F, seen.thresholds, self.steps, self.clock.seconds, seen.violation, seen.dual)

    def _interior(self, b: Vector) -> None:
        """Continue from the interior-point solution if it is better. Edits b in place; its steps are counted."""
        self._tried_interior = True
        left = self.options.max_iter - self.steps if self.options.max_iter >= 0 else MOST_INTERIOR_STEPS
        with one_blas_thread():
            found = interior_point(
                self.K.astype(np.float64), self.qp, max_iter=min(left, MOST_INTERIOR_STEPS), clock=self.clock
            )
        self.steps += found.n_iter
        beta = feasible_start(self.qp, found.beta)
        F = matrix_product(self.K, self.qp, beta)
        if np.all(np.isfinite(F)) and dual_objective(self.qp, beta, F) > dual_objective(self.qp, self.beta, self.F):
            self.beta[:], self.F = beta, F
            b[: self.qp.n_vars] = beta[self._order]


def matrix_product(K: Matrix, qp: BoxQP, beta: Vector) -> Vector:
    """F = K beta at all samples, in float64, from the rows of the samples with weight."""
    from mercer._compiled.tiles import add_rows_product

    n = len(K)
    weights = qp.at_samples(beta, n)
    support = np.flatnonzero(weights)
    F = np.zeros(n)
    if len(support):
        add_rows_product(K, support, weights[support], 0, n, F)
    return F
