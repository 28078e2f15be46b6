"""Decomposition with large working sets.

    min  1/2 b'Kb - linear'b + sum l1|b| + 1/2 sum ridge b^2     s.t.  lower <= b <= upper,  sum over each group fixed

Each round

1. selects a working set: the worst violators and members of the last working set;
2. solves its small problem by second-order SMO (`_smo_loops.solve_block`);
3. adds the change to F = K b of all active samples, by one product with stored kernel rows. Members that do not move
   need no kernel row, only their values with the other members.

Joachims, "Making large-scale SVM learning practical" (1999); Fan, Chen & Lin, JMLR 6 (2005).

A large problem starts with a random part of the samples as active. When the active part is solved, F of the inactive
samples is reconstructed where they may violate, and violators become active. Shrinking makes a sample inactive
if its variables are at a bound and their rates are a margin away from moving them. A run converges only on all samples.

`Active` holds contiguous copies of the program's vectors. `Inactive` reconstructs F of inactive samples (LIBSVM's
reconstruct_gradient) where it is needed. While a sample x is inactive, w moves by Δw with |Δw|² = Δβ'KΔβ, so F of x
changes by at most |Δw| sqrt(k(x, x)). If the score of x is farther than that from making it move, x cannot violate the
optimality conditions, and its F is not computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import NamedTuple

import numpy as np

from mercer._compiled.program import Program
from mercer._compiled.thread_pool import cached_property
from mercer.gram.memory import Loan
from mercer.gram.operator import GramOperator, MatrixRows, RowStore, product
from mercer.kernels.features import Vector
from mercer.losses.base import BoxQP
from mercer.problems.clock import Clock
from mercer.problems.dual import diverges, dual_objective, survey
from mercer.problems.solution import Options, Solution, Status, TracePoint, unfinished
from mercer.svm.plan import FEWEST_MEMBERS, FIRST_MEMBERS, SINGLE_SCORES_FROM_TOL, Plan
from mercer.svm.verify import nearness, slack

# linear, l1, ridge, lower and upper of the null variable
NULL = (0.0, 0.0, 0.0, -np.inf, np.inf)


class Scores(NamedTuple):
    """The rates of all active variables for an increase (up) and a decrease (low): see ``_smo_loops.py``."""

    up: Vector
    low: Vector
    extremes: Vector  # (largest up, smallest low) of each group
    violation: float

    @property
    def level(self) -> Vector:
        """The threshold of each group: the middle of its extremes, 0 if one is infinite."""
        middle = self.extremes.mean(axis=1)
        return np.where(np.isfinite(middle), middle, 0.0)

    @property
    def ends(self) -> tuple[Vector, Vector]:
        """The smallest and the largest threshold at which no active variable moves; the level if there is none."""
        level, (up, low) = self.level, self.extremes.T
        apart = np.isfinite(up) & np.isfinite(low) & (up < low)
        return np.where(apart, up, level), np.where(apart, low, level)


@dataclass
class Active:
    """The program restricted to active samples.

    A program without sums gets a null sample as its last: a free variable with a zero row in K, which takes up any sum.
    """

    samples: Vector  # active samples
    variables: Vector  # their variables in the full program, -1 for the null variable
    program: Program  # of these variables; ``program.sample`` are positions in ``samples``
    n_groups: int
    beta: Vector
    F: Vector  # of the active samples, and 0 for the null sample
    null: int  # the variable of the null sample, or -1

    def __post_init__(self) -> None:
        self._up, self._low = np.empty(len(self.beta)), np.empty(len(self.beta))
        self._extremes = np.empty((self.n_groups, 2))

    @classmethod
    def of(cls, qp: BoxQP, samples: Vector, beta: Vector, F: Vector) -> Active:
        """The program at these samples; beta and F are those of all samples."""
        position = np.full(len(F), -1, np.intp)
        position[samples] = np.arange(len(samples))
        at = position if qp.sample is None else position[qp.sample]
        variables = np.flatnonzero(at >= 0)
        n, has_null = len(variables), qp.n_groups == 0
        vectors = np.empty((len(NULL), n + has_null))
        for row, values in zip(vectors, (qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper), strict=True):
            row[:n] = values if n == qp.n_vars else values[variables]
        if has_null:
            vectors[:, n] = NULL

        def column(values: Vector, extra: float) -> Vector:
            taken = values[variables]
            return np.append(taken, extra) if has_null else taken

        sample = column(at, len(samples)).astype(np.intp, copy=False)
        group = column(qp.group, 0).astype(np.int8, copy=False)
        return cls(
            samples=samples,
            variables=np.append(variables, -1) if has_null else variables,
            program=Program(sample, group, *vectors),
            n_groups=max(1, qp.n_groups),
            beta=column(beta, 0.0),
            F=np.append(F[samples], 0.0),
            null=n if has_null else -1,
        )

    @property
    def real(self) -> Vector:
        """A mask of the variables other than the null variable."""
        return self.variables >= 0

    def scores(self) -> Scores:
        """The present scores. The next call overwrites them."""
        from mercer.svm._round_loops import score_and_extremes

        violation = score_and_extremes(self.program, self.beta, self.F, self._up, self._low, self._extremes)
        return Scores(self._up, self._low, self._extremes, violation)

    def gap(self, level: Vector) -> float:
        """The duality gap at these thresholds, summed over the active variables.

        Each variable contributes  max over its box of  t b - l1|b| - ridge b^2/2,  t = linear - F - level, minus the
        value at its beta; inf if the box is unbounded.
        """
        sample, group, linear, l1, ridge, lower, upper = self.program
        t = linear - self.F[sample] - level[group]
        beyond = np.sign(t) * np.maximum(np.abs(t) - l1, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.clip(np.where(beyond == 0, 0.0, beyond / ridge), lower, upper)
            gain = self._value(t, best) - self._value(t, self.beta)
        total = float(gain.sum())
        return total if np.isfinite(total) else np.inf

    def _value(self, t: Vector, b: Vector) -> Vector:
        l1, ridge = self.program.l1, self.program.ridge
        return t * b - l1 * np.abs(b) - 0.5 * ridge * b**2

    def samples_of(self, chosen: Vector) -> Vector:
        """A mask of the active samples that have a chosen variable."""
        wanted = np.zeros(len(self.samples), np.bool_)
        wanted[self.program.sample[self.real & chosen]] = True
        return wanted

    def free_samples(self) -> Vector:
        """A mask of the active samples that have a variable strictly inside its box and not at zero."""
        lower, upper = self.program.lower, self.program.upper
        return self.samples_of((self.beta > lower) & (self.beta < upper) & (self.beta != 0))

    def write_back(self, beta: Vector, F: Vector) -> None:
        """Copy beta and F of the active samples to those of all samples. Edits both."""
        real = self.real
        beta[self.variables[real]] = self.beta[real]
        F[self.samples] = self.F[:-1]

    def renumber(self, members: Vector, other: Active) -> Vector:
        """The positions of these members in another active set; members that are not in it are dropped."""
        known = other.variables[: len(other.variables) - (other.null >= 0)]
        wanted = self.variables[members]
        wanted = wanted[wanted >= 0]
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return place[known[place] == wanted]


# changes of beta that together alter F by less than this share of tol are neglected at inactive samples
NEGLECTED = 0.1
# an inactive sample is left alone if it is this many times as far from every kink as a sample that counts as near
BEYOND_NEAR = 1.5
# rounding error of F, in units of the rounding of one kernel value times the length of beta
ROUNDING = 8.0


class InactiveGroup(NamedTuple):
    """Samples that became inactive together.

    Attributes
    ----------
    rows : the samples.
    then : β of all samples when the group became inactive; F of its rows is right for this β.
    moved : an upper bound on |Δw| from that time to the last check of all samples; inf for samples that became
        inactive after this check.
    """

    rows: Vector
    then: Vector
    moved: float


class Inactive:
    """The inactive samples of a run. F of all samples belongs to the caller."""

    def __init__(self, gram: GramOperator, qp: BoxQP, options: Options, largest: float) -> None:
        self.gram, self.qp, self.options, self.largest = gram, qp, options, largest
        self.groups: list[InactiveGroup] = []
        # the samples active after the last check of all samples, with their beta and F at that time
        self._last_check: tuple[Vector, Vector, Vector] | None = None

    def add(self, rows: Vector, beta: Vector) -> None:
        """Add samples whose F is right for this β, between two checks of all samples."""
        self.groups.append(InactiveGroup(rows, beta, np.inf))

    def add_after_check(self, active: Vector, beta: Vector, F: Vector) -> None:
        """After a check of all samples, add all that are neither active nor inactive already."""
        rest = np.ones(len(F), np.bool_)
        rest[active] = False
        for group in self.groups:
            rest[group.rows] = False
        self._last_check = active, beta[active], F[active]
        self.groups.append(InactiveGroup(np.flatnonzero(rest), beta, 0.0))

    def reconstruct(self, beta: Vector, F: Vector, anew: bool = False) -> None:
        """Compute F of all inactive samples for this β; ``anew`` if the caller changed F. Edits F."""
        for group in self.groups:
            self._update(group.rows, group.then, beta, F, anew)
        self.groups = []

    def reconstruct_near(self, beta: Vector, variables: Vector, F: Vector, low: Vector, high: Vector) -> None:
        """Compute F of the inactive samples that may violate a threshold in the interval [low, high]. Edits F.

        ``beta`` has one entry per sample, ``variables`` one per variable of the program.
        """
        if self._last_check is None or not self.gram.kernel.positive_semidefinite:
            self.reconstruct(beta, F)
            return
        # first the samples that were active at the last check: their F tells how far w has moved since
        for group in self.groups:
            if group.moved == np.inf:
                self._update(group.rows, group.then, beta, F)
        older = [group for group in self.groups if group.moved < np.inf]
        self.groups = []
        moved = self._moved(beta, F)
        apart = slack(self.qp, variables, F, low, high)
        for rows, then, before in older:
            far = apart[rows] > (before + moved) * self._lengths[rows] + BEYOND_NEAR * nearness(self.options)
            self._update(rows[~far], then, beta, F)
            if far.any():
                self.groups.append(InactiveGroup(rows[far], then, before + moved))

    @cached_property
    def _lengths(self) -> Vector:
        """The lengths |φ(x)| of the samples."""
        return np.sqrt(np.abs(self.gram.diagonal()))

    def _moved(self, beta: Vector, F: Vector) -> float:
        """An upper bound of |w - w at the last check|, with an allowance for rounding."""
        assert self._last_check is not None
        samples, then, F_then = self._last_check
        change = beta[samples] - then
        eps = float(np.finfo(self.gram.dtype).eps)
        rounding = ROUNDING * eps * self.largest * float(np.linalg.norm(beta)) * float(np.linalg.norm(change))
        return float(np.sqrt(max(0.0, float(change @ (F[samples] - F_then)) + rounding)))

    def _update(self, rows: Vector, then: Vector, beta: Vector, F: Vector, anew: bool = False) -> None:
        """Compute F of some samples from the change of β, or from β itself if that has fewer nonzeros. Edits F."""
        if len(rows) == 0:
            return
        change = beta - then
        anew = anew or bool(np.count_nonzero(beta) < np.count_nonzero(change))
        weights = beta if anew else change
        columns = _without_smallest(weights, NEGLECTED * self.options.tol / max(self.largest, 1e-300))
        gram = self.gram
        F[rows] = (0.0 if anew else F[rows]) + product(
            gram.kernel, gram.features.take(rows), gram.features.take(columns), weights[columns], gram.n_threads,
            gram.evaluations,
        )  # fmt: skip


def _without_smallest(weights: Vector, total: float) -> Vector:
    """Indices of nonzero weights, without the smallest ones, which together are at most ``total``."""
    columns = np.flatnonzero(weights)
    size = np.abs(weights[columns])
    order = np.argsort(size, kind="stable")
    return np.sort(columns[order[np.cumsum(size[order]) > total]])


# at most this share of a working set is new. The number allowed halves, down to FEWEST_NEW, if less than the share
# FEW_USED of the last new members got a weight, and doubles if more than the share MOST_USED did
NEW_SHARE = 0.5
FEWEST_NEW, FEW_USED, MOST_USED = 16, 0.5, 0.75
# a block is solved to this share of the violation. A smaller share, as in `_driver_loops`, needs more kernel rows
BLOCK_TOL = 0.1
# shrinking: the margin of the rates as a share of the violation, the smallest share of variables that is removed, and
# the number of rounds between two attempts
SHRINK_SLACK, SHRINK_AT_LEAST, SHRINK_EVERY = 0.5, 0.2, 4
# the tolerance for the first part of the samples
FIRST_STAGE_TOL = 0.1
# a part is solved to this share of the violation of all samples before these are checked again
STAGE_TOL = 0.1
# if the active set grows by less than this factor, it is assumed to be complete
SETTLED = 1.05
# most rounds in which neither the violation improves nor, by this share, the objective
PATIENCE, SMALLEST_GAIN = 30, 1e-14
# every GAP_EVERY rounds the gap must have shrunk to the share GAP_SHRINKS; GAP_FAILURES failures in a row end the run
GAP_EVERY, GAP_SHRINKS, GAP_FAILURES = 25, 0.98, 3
# the share of the time left that a round may take
SHARE_OF_TIME = 0.5
# a check of all samples, with the rows that follow it, takes this many times as long as F of all samples at the end
CHECK_COST = 2.0
NO_MEMBERS = np.empty(0, np.int64)
# (n_rows, n_columns) -> the seconds that float64 kernel values between them take
Seconds = Callable[[float, float], float]


class Decomposition:
    """One run of the solver, which can be continued. ``beta`` and ``F`` are its state.

    ``gram`` computes kernel rows, or holds a stored matrix. ``seconds(n_rows, n_columns)`` estimates the time of
    float64 values: with a time limit, the run ends while there is time to compute F of all samples.
    """

    def __init__(
        self,
        gram: GramOperator | MatrixRows,
        qp: BoxQP,
        beta: Vector,
        F: Vector,
        plan: Plan,
        options: Options,
        clock: Clock,
        loan: Loan | None = None,
        seconds: Seconds = lambda n_rows, n_columns: 0.0,
    ) -> None:
        self._loan = loan  # keeps borrowed memory of a stored matrix
        self._seconds, self._last_round = seconds, 0.0
        self.qp, self.plan, self.options, self.clock = qp, plan, options, clock
        self.beta, self.F = beta, F
        self.n = len(F)
        self.steps = 0
        self.trace: list[TracePoint] = []
        begun = bool(beta.any())
        self.dual = dual_objective(qp, beta, F) if begun else 0.0
        self.open_box = qp.has_open_box
        self.size = plan.working_set
        self.store: RowStore | MatrixRows
        if isinstance(gram, GramOperator):
            budget = max(options.budget, options.costly_budget if gram.costly else 0)
            self.store = RowStore(gram, budget, self.size)
            self.gram = gram
            diagonal = gram.diagonal()
        else:
            self.store, diagonal = gram, gram.diagonal
        self.largest = float(np.abs(diagonal).max())
        self.shrinking = plan.shrinking
        # float32 scores suit float32 rows, until a block no longer gains by them
        self.score_dtype = (
            np.float32 if self.store.values.dtype == np.float32 and options.tol > SINGLE_SCORES_FROM_TOL else np.float64
        )
        # the block of the working set, its layout (see form_working_set), its members, and scratch space
        self._block = np.empty((self.size, self.size), self.score_dtype)
        self._layout, self._n_members = np.empty((6, self.size), np.intp), 0
        self._new_places, self._slots = np.empty(2 * self.size, np.intp), np.empty(self.size, np.intp)
        self._change, self._scratch = np.empty(self.size), np.empty((6, self.size))
        self._score = np.empty(self.size, self.score_dtype)
        self._most_new = max(2, int(NEW_SHARE * self.size))
        self._n_new = self._most_new
        self._most_chosen = self.size if begun else min(self.size, FIRST_MEMBERS)
        if isinstance(gram, GramOperator):
            self._inactive = Inactive(gram, qp, options, self.largest)
        self._stage_tol = 0.0
        self._gaps: list[float] = []
        self.restart()
        if plan.first_samples and not begun:
            self._start_small()

    def restart(self, rows: Vector | None = None) -> None:
        """Continue after the caller changed beta and F, at ``rows`` only or, without rows, at all samples."""
        if not isinstance(self.store, RowStore):
            self._activate(np.arange(self.n))
        elif rows is None or not self.shrinking or self.plan.keeps_active:
            self._inactive.reconstruct(self._beta_of_samples(), self.F, anew=True)
            self._activate(np.arange(self.n))
        else:
            self._stage_tol = 0.0
            self._inactive.add_after_check(rows, self._beta_of_samples(), self.F)
            self.store.restrict(rows, self.gram.take(rows))
            self._activate(rows)

    def _activate(self, samples: Vector) -> None:
        """Make these samples the active ones."""
        self.active = Active.of(self.qp, samples, self.beta, self.F)
        self._clear_block()

    def _clear_block(self) -> None:
        """Remove all members from the block."""
        self._place = np.full(len(self.active.beta), -1)
        self._n_members = 0

    def run(self, tol: float) -> Status:
        """Descend until the violation of all variables, computed from the tracked F, is at most tol."""
        previous, best, gained, idle, rounds = NO_MEMBERS, np.inf, np.inf, 0, 0
        while True:
            scores = self.active.scores()
            self._record_point(scores.violation)
            everything = len(self.active.samples) == self.n
            if scores.violation <= (tol if everything else max(tol, self._stage_tol)):
                if everything:
                    return self._finish(Status.CONVERGED)
                if self.clock.left < np.inf and self._spare_seconds() < CHECK_COST * self._end_seconds():
                    return self._finish(Status.TIME_LIMIT)
                previous = self._check_all_samples(tol, scores, previous)
                best, idle, self._gaps = np.inf, 0, []
                continue
            idle = 0 if scores.violation < best or gained > SMALLEST_GAIN * abs(self.dual) else idle + 1
            best = min(best, scores.violation)
            status = self._must_end(scores.violation, idle)
            if status is not None:
                return self._finish(status)
            if idle > 1:
                self.score_dtype = np.float64
            rounds += 1
            if rounds % GAP_EVERY == 0 and self._gap_is_slow(scores):
                return self._finish(Status.STALLED)
            if rounds % SHRINK_EVERY == 0 and self._may_shrink:
                kept = self._shrink(scores, previous)
                if kept is not None:
                    previous = kept
                    continue
            previous, gained = self._round(scores, previous, tol)
            if gained == np.inf:
                return self._finish(Status.UNBOUNDED)

    def _record_point(self, violation: float) -> None:
        point = TracePoint(self.clock.seconds, self.steps, violation, self.dual, len(self.active.samples))
        self.trace.append(point)
        self.clock.report(point, self._current_solution)

    def _current_solution(self) -> Solution:
        """The present solution. F of inactive samples is that of an earlier round."""
        self.active.write_back(self.beta, self.F)
        seen = survey(self.qp, self.beta, self.F)
        return unfinished(self.beta, self.F, seen.thresholds, self.steps, self.clock.seconds, seen.violation, seen.dual)

    def _must_end(self, violation: float, idle: int) -> Status | None:
        if idle > PATIENCE or not isfinite(violation):
            return Status.STALLED
        if 0 <= self.options.max_iter <= self.steps:
            return Status.MAX_ITER
        if not self.qp.is_bounded:  # inactive samples, if any, have no weight
            self.active.write_back(self.beta, self.F)
            if diverges(self.qp, self.beta, self.F, self.largest):
                return Status.UNBOUNDED
        over = self.clock.over()
        if over is None and self.clock.left < np.inf and self._affordable_members() < min(FEWEST_MEMBERS, self.size):
            return Status.TIME_LIMIT
        return over

    def _end_seconds(self) -> float:
        """Seconds to compute F of all samples in float64 for the present β."""
        active = self.active
        inside = active.variables[active.real]
        outside = np.count_nonzero(self.beta) - np.count_nonzero(self.beta[inside])
        return self._seconds(self.n, int(np.count_nonzero(active.beta) + outside))

    def _spare_seconds(self) -> float:
        """Seconds until the run must end to have time for F of all samples; inf without a limit."""
        left = self.clock.left
        return left if left == np.inf else left - self._end_seconds()

    def _affordable_members(self) -> int:
        """How many new members there is time for: their rows now, and their part in F of all samples at the end."""
        spare = self._spare_seconds()
        if spare < self._last_round:
            return 0
        each = self._seconds(self.n, 3.0) - self._seconds(self.n, 1.0)
        return int(min(self.size, SHARE_OF_TIME * spare / each))

    def _gap_is_slow(self, scores: Scores) -> bool:
        """Whether the gap has hardly shrunk several times in a row: the problem is too ill-conditioned for SMO."""
        gap = self.active.gap(scores.level)
        self._gaps.append(gap if np.isfinite(gap) else scores.violation)
        recent = self._gaps[-GAP_FAILURES - 1 :]
        slow = [after > GAP_SHRINKS * before for before, after in pairwise(recent)]
        return len(slow) == GAP_FAILURES and all(slow)

    # ---- one round -------------------------------------------------------------------------------------------

    def _round(self, scores: Scores, previous: Vector, tol: float) -> tuple[Vector, float]:
        """Solve one working set: (its members, the gain of the dual, inf if it is unbounded)."""
        from mercer.svm._round_loops import SAMPLES, STEPS_PER_MEMBER, count_used, solve_working_set, with_newton

        active = self.active
        n_new, begun = min(self._most_chosen, self._n_new if len(previous) else 2 * self._n_new), self.clock.seconds
        self._most_chosen = min(self.size, 2 * self._most_chosen)
        if self.clock.left < np.inf:
            n_new = min(n_new, max(2, self._affordable_members()))
        chosen, n_added = self._form_working_set(scores, previous, n_new)
        m = self._n_members
        limit = STEPS_PER_MEMBER * m
        if self.options.max_iter >= 0:
            limit = min(limit, self.options.max_iter - self.steps)

        def solve(newton: int) -> tuple[int, float, bool, int]:
            return solve_working_set(
                self._layout, m, n_added, self._block, self._new_places, active.program, active.beta, active.F,
                max(0.5 * tol, BLOCK_TOL * scores.violation), limit, newton, self._scratch, self._score,
                self._change,
            )  # fmt: skip

        dtype = self._block.dtype
        steps, gained, unbounded, n_moved = with_newton(solve, dtype, dtype)
        self.steps += steps
        if unbounded:
            return chosen, np.inf
        if n_moved:
            slots = self.store.ensure(self._layout[SAMPLES, :n_moved])
            self.store.add_product(slots, self._change[:n_moved], active.F)
        self._adapt_n_new(*count_used(chosen, previous, active.beta))
        self._last_round = self.clock.seconds - begun
        self.dual += gained
        return chosen, gained

    def _form_working_set(self, scores: Scores, previous: Vector, n_new: int) -> tuple[Vector, int]:
        """Select a working set, place it in the block and write the rows of its new members.

        Returns the variables chosen and the number of new members.
        """
        from mercer._compiled.shared_loops import read_rows
        from mercer.svm._round_loops import COLUMN, NEW, ORDER, POSITIONS, SAMPLES, form_working_set

        active, store = self.active, self.store
        if self._block.dtype != self.score_dtype:
            self._block = np.empty(self._block.shape, self.score_dtype)
            self._score = np.empty(self.size, self.score_dtype)
            self._clear_block()
        chosen, m, n_added, n_rows = form_working_set(
            scores.up, scores.low, active.program, scores.extremes, previous, n_new, self.size, active.null,
            self._place, self._layout, self._n_members, self._block, self._new_places,
        )  # fmt: skip
        self._n_members = m
        new, samples, slots = self._layout[NEW, :n_rows], self._layout[SAMPLES, :n_rows], self._slots[:m]
        order, column = self._layout[ORDER], self._layout[COLUMN]
        stored = new
        if len(active.samples) < self.plan.rows_wait_from:
            slots[new] = store.ensure(samples)
        else:
            slots[new] = found = store.find(samples)
            stored, missing = new[found >= 0], new[found < 0]
            if len(missing):
                positions = self._layout[POSITIONS, :m]
                self._block[missing, :m] = self._rows.gram.block(positions[missing], np.maximum(positions, 0))
        read_rows(store.values, slots, order, column, stored, self._block, self.options.n_threads)
        return chosen, n_added

    def _adapt_n_new(self, n_new: int, n_used: int) -> None:
        """Allow fewer new members if few of the last ones got a weight, more if most did."""
        if n_new >= FEWEST_NEW // 2:
            used = n_used / n_new
            if used < FEW_USED:
                self._n_new = min(self._most_new, max(FEWEST_NEW, self._n_new // 2))
            elif used > MOST_USED:
                self._n_new = min(self._most_new, 2 * self._n_new)

    # ---- active samples --------------------------------------------------------------------------------------

    def _start_small(self) -> None:
        """Start with a random part of the samples: its optimum shows which of the others matter."""
        samples = np.sort(np.random.default_rng(0).permutation(self.n)[: self.plan.first_samples])
        inactive = np.setdiff1d(np.arange(self.n), samples, assume_unique=True)
        self._inactive.add(inactive, np.zeros(self.n))
        self._stage_tol = FIRST_STAGE_TOL
        self._rows.restrict(samples, self.gram.take(samples))
        self._activate(samples)

    @property
    def _rows(self) -> RowStore:
        """The row store of a run that may shrink."""
        assert isinstance(self.store, RowStore)
        return self.store

    @property
    def _may_shrink(self) -> bool:
        return self.shrinking and not (self.plan.keeps_active and self._rows.has_room)

    def _shrink(self, scores: Scores, previous: Vector) -> Vector | None:
        """Make samples that seem settled inactive. Returns the renumbered working set, None if too few are settled."""
        from mercer.svm._round_loops import shrinkable

        active = self.active
        keep = np.empty(len(scores.up), np.bool_)
        group = active.program.group
        removed = shrinkable(scores.up, scores.low, group, scores.extremes, SHRINK_SLACK, keep)
        if removed < SHRINK_AT_LEAST * len(keep):
            return None
        wanted = active.samples_of(keep)
        index = np.flatnonzero(wanted)
        if len(index) == 0 or len(index) > (1 - SHRINK_AT_LEAST) * len(active.samples):
            return None
        active.write_back(self.beta, self.F)
        # F of the removed samples is right for the present beta
        self._inactive.add(active.samples[~wanted], self._beta_of_samples())
        self._rows.restrict(index, self._rows.gram.take(index))
        self._activate(active.samples[index])
        return active.renumber(previous, self.active)

    def _check_all_samples(self, tol: float, before: Scores, previous: Vector) -> Vector:
        """Check all samples: samples that violate the threshold of the active ones become active.

        Returns the renumbered working set.
        """
        old, level, ends = self.active, before.level, before.ends  # before is overwritten by the next scores
        old.write_back(self.beta, self.F)
        self._inactive.reconstruct_near(self._beta_of_samples(), self.beta, self.F, *ends)
        self._activate(np.arange(self.n))
        scores = self.active.scores()
        if scores.violation <= tol:
            self._rows.extend(old.samples, self.gram, np.zeros(len(old.samples), np.bool_))
            return NO_MEMBERS
        threshold = level[self.active.program.group]
        wanted = self.active.samples_of((scores.up > threshold) | (scores.low < threshold))
        wanted[old.samples] = True
        samples = np.flatnonzero(wanted)
        # if few samples came in, the active set is about right: solve it to the end before the next check
        settled = len(samples) <= SETTLED * len(old.samples)
        self._stage_tol = 0.0 if settled else STAGE_TOL * scores.violation
        self._inactive.add_after_check(samples, self._beta_of_samples(), self.F)
        gram = self.gram if len(samples) == self.n else self.gram.take(samples)
        # the rows of free variables will be needed again
        self._rows.extend(np.searchsorted(samples, old.samples), gram, old.free_samples())
        self._activate(samples)
        return old.renumber(previous, self.active)

    def _beta_of_samples(self) -> Vector:
        return self.qp.at_samples(self.beta, self.n).copy()

    def _finish(self, status: Status) -> Status:
        """Update beta and F of all samples.

        After an early end F of inactive samples stays out of date: the caller computes it in float64.
        """
        samples = self.active.samples
        self.active.write_back(self.beta, self.F)
        if len(samples) < self.n and status in (Status.CONVERGED, Status.STALLED, Status.UNBOUNDED):
            self._inactive.reconstruct(self._beta_of_samples(), self.F)
            self._rows.extend(samples, self.gram, np.zeros(len(samples), np.bool_))
            self._activate(np.arange(self.n))
        return status
