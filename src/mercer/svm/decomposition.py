"""Decomposition with large working sets.

    min  1/2 b'Kb - linear'b + sum l1|b| + 1/2 sum ridge b^2     s.t.  lower <= b <= upper,  sum over each group fixed

Each round takes the worst violators and the newest members of the last working set, solves their small problem by
second-order SMO (`solve_block`), and carries the change over to F = K b of all active samples with one product of
stored kernel rows. Only members that move need their rows: the others are compared with the members alone. Joachims,
"Making large-scale SVM learning practical" (1999); Fan, Chen & Lin, JMLR 6 (2005).

Many samples are begun with a part of them. When a part is solved, F of the samples left out is brought up to date, and
those that violate the level at which the part has settled come in. Shrinking is the way back: samples whose variables
sit at a bound with a gain that is negative by a margin are left out. The end is always an end on all samples.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import isfinite

import numpy as np

from mercer._compiled.thread_pool import has_team, run_shares
from mercer.gram.memory import Loan
from mercer.gram.operator import GramOperator
from mercer.gram.rows import RowStore, WholeRows
from mercer.kernels.features import Vector
from mercer.losses.base import BoxQP
from mercer.problems.clock import Clock
from mercer.problems.dual import diverges, dual_objective, survey
from mercer.problems.solution import Options, Solution, Status, TracePoint, unfinished
from mercer.svm.active import Active, LeftOut, Look
from mercer.svm.plan import FEWEST_MEMBERS, READ_THREADS_FROM, SINGLE_SCORES_FROM_TOL, Plan

# at most this share of a set is new in a round; fewer if less than so many of the last new ones were of use
NEW_SHARE = 0.5
FEWEST_NEW, FEW_USED, MOST_USED = 16, 0.5, 0.75
# the first set takes so many members blindly, since at beta = 0 all scores are alike; the next may be twice as large
FIRST_MEMBERS = 64
# a block is solved to this share of the violation, in so many pair steps: an end if rounding prevents that
BLOCK_TOL = 0.1
STEPS_PER_MEMBER = 200
# leave out variables whose gain misses by this share of the violation, if so many can go, every so many rounds
SHRINK_SLACK, SHRINK_AT_LEAST, SHRINK_EVERY = 0.5, 0.2, 4
# how far the first part is solved
FIRST_STAGE_TOL = 0.1
# how far a part is solved before all samples are looked at again, relative to the violation seen there
STAGE_TOL = 0.1
# growth of the active set below which it is taken for right
SETTLED = 1.05
# rounds without an improvement of the violation or, relative to it, the objective
PATIENCE, SMALLEST_GAIN = 30, 1e-14
# rounds between two looks at the duality gap, the share by which it must have shrunk, and the failures allowed
GAP_EVERY, GAP_SHRINKS, GAP_FAILURES = 25, 0.98, 3
# of the time that is left a round may take so much; a look at all samples takes as long as F of all at the end, and so
# may the rows that come in after it
SHARE_OF_TIME, LOOKS = 0.5, 2.0
NOBODY = np.empty(0, np.int64)
# about how many seconds exact values between so many rows and columns take
Seconds = Callable[[float, float], float]


class Decomposition:
    """One run of the solver, which can be continued: ``beta`` and ``F`` are its state.

    ``gram`` is an operator, or rows that exist or come from elsewhere. ``seconds`` tells how long exact values between
    so many rows and columns take: with a time limit the run ends while there is time for F of all samples.
    """

    def __init__(
        self,
        gram: GramOperator | WholeRows,
        qp: BoxQP,
        beta: Vector,
        F: Vector,
        plan: Plan,
        options: Options,
        clock: Clock,
        loan: Loan | None = None,
        seconds: Seconds = lambda n_rows, n_columns: 0.0,
    ) -> None:
        self._loan = loan  # of the memory that a matrix is on, if it is borrowed
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
        self.store: RowStore | WholeRows
        if isinstance(gram, GramOperator):
            budget = max(options.budget, options.costly_budget if gram.costly else 0)
            self.store = RowStore(gram, budget, self.size)
            self.gram = gram
            diagonal = gram.diagonal()
        else:
            self.store, diagonal = gram, gram.diagonal
        self.largest = float(np.abs(diagonal).max())
        self.shrinking = plan.shrinking
        # scores of float32 rows need no more digits, until a block no longer gains by them
        self.score_dtype = (
            np.float32 if self.store.values.dtype == np.float32 and options.tol > SINGLE_SCORES_FROM_TOL else np.float64
        )
        # the block of the working set, who has places in it (see form_set), how many they are, and scratch space
        self._block = np.empty((self.size, self.size), self.score_dtype)
        self._seats, self._n_members = np.empty((6, self.size), np.intp), 0
        self._fresh, self._slots = np.empty(2 * self.size, np.intp), np.empty(self.size, np.intp)
        self._change, self._members_room = np.empty(self.size), np.empty((6, self.size))
        self._score = np.empty(self.size, self.score_dtype)
        self._most_new = max(2, int(NEW_SHARE * self.size))
        self._n_new = self._most_new
        self._room = self.size if begun else min(self.size, FIRST_MEMBERS)
        if isinstance(gram, GramOperator):
            self._left_out = LeftOut(gram, qp, options, self.largest)
        self._stage_tol = 0.0
        self._gaps: list[float] = []
        self.restart()
        if plan.first_samples and not begun:
            self._start_small()

    def restart(self, rows: Vector | None = None) -> None:
        """Take up beta and F again after they were changed from outside, at these samples or at all.

        At the others F must not have been changed, nor beta.
        """
        if not isinstance(self.store, RowStore):
            self._take_up(np.arange(self.n))
        elif rows is None or not self.shrinking or self.plan.keeps_active:
            self._left_out.bring_up(self._beta_of_samples(), self.F, anew=True)
            self._take_up(np.arange(self.n))
        else:
            self._stage_tol = 0.0
            self._left_out.add_at_look(rows, self._beta_of_samples(), self.F)
            self.store.restrict(rows, self.gram.take(rows))
            self._take_up(rows)

    def _take_up(self, samples: Vector) -> None:
        """Work on these samples."""
        self.active = Active.of(self.qp, samples, self.beta, self.F)
        self._clear()

    def _clear(self) -> None:
        """Nobody has a place in the block."""
        self._place = np.full(len(self.active.beta), -1)
        self._n_members = 0

    def run(self, tol: float) -> Status:
        """Descend until the violation of all variables is at most tol, as far as F tells."""
        previous, best, gained, idle, rounds = NOBODY, np.inf, np.inf, 0, 0
        while True:
            look = self.active.look()
            self._record(look.violation)
            everything = len(self.active.samples) == self.n
            if look.violation <= (tol if everything else max(tol, self._stage_tol)):
                if everything:
                    return self._finish(Status.CONVERGED)
                if self._spare() < LOOKS * self._end():
                    return self._finish(Status.TIME_LIMIT)
                previous = self._look_at_all(tol, look.level, previous)
                best, idle, self._gaps = np.inf, 0, []
                continue
            idle = 0 if look.violation < best or gained > SMALLEST_GAIN * abs(self.dual) else idle + 1
            best = min(best, look.violation)
            status = self._must_end(look.violation, idle)
            if status is not None:
                return self._finish(status)
            if idle > 1:
                self.score_dtype = np.float64
            rounds += 1
            if rounds % GAP_EVERY == 0 and self._crawls(look):
                return self._finish(Status.STALLED)
            if rounds % SHRINK_EVERY == 0 and self._may_shrink:
                kept = self._shrink(look, previous)
                if kept is not None:
                    previous = kept
                    continue
            previous, gained = self._round(look, previous, tol)
            if gained == np.inf:
                return self._finish(Status.UNBOUNDED)

    def _record(self, violation: float) -> None:
        point = TracePoint(self.clock.seconds, self.steps, violation, self.dual, len(self.active.samples))
        self.trace.append(point)
        self.clock.report(point, self._now)

    def _now(self) -> Solution:
        """The run as it is; F of samples that are left out is that of an earlier round."""
        self.active.write_back(self.beta, self.F)
        seen = survey(self.qp, self.beta, self.F)
        return unfinished(self.beta, self.F, seen.thresholds, self.steps, self.clock.seconds, seen.violation, seen.dual)

    def _must_end(self, violation: float, idle: int) -> Status | None:
        if idle > PATIENCE or not isfinite(violation):
            return Status.STALLED
        if 0 <= self.options.max_iter <= self.steps:
            return Status.MAX_ITER
        if not self.qp.is_bounded:  # samples that are left out, if any, have no weight
            self.active.write_back(self.beta, self.F)
            if diverges(self.qp, self.beta, self.F, self.largest):
                return Status.UNBOUNDED
        over = self.clock.over()
        if over is None and self.clock.left < np.inf and self._affordable() < min(FEWEST_MEMBERS, self.size):
            return Status.TIME_LIMIT
        return over

    def _end(self) -> float:
        """Seconds that F of all samples takes in float64, for the present β."""
        active = self.active
        inside = active.variables[active.real]
        outside = np.count_nonzero(self.beta) - np.count_nonzero(self.beta[inside])
        return self._seconds(self.n, int(np.count_nonzero(active.beta) + outside))

    def _spare(self) -> float:
        """Seconds that a run has before it must end; inf without a limit."""
        left = self.clock.left
        return left if left == np.inf else left - self._end()

    def _affordable(self) -> int:
        """New members for which there is time: for their rows, and for their part in F of all samples at the end."""
        spare = self._spare()
        if spare < self._last_round:
            return 0
        each = self._seconds(self.n, 3.0) - self._seconds(self.n, 1.0)
        return int(min(self.size, SHARE_OF_TIME * spare / each))

    def _crawls(self, look: Look) -> bool:
        """Whether the gap has hardly shrunk at several looks: an ill-conditioned problem, too slow for SMO."""
        gap = self.active.gap(look.level)
        self._gaps.append(gap if np.isfinite(gap) else look.violation)
        recent = self._gaps[-GAP_FAILURES - 1 :]
        slow = [after > GAP_SHRINKS * before for before, after in pairwise(recent)]
        return len(slow) == GAP_FAILURES and all(slow)

    # ---- one round -------------------------------------------------------------------------------------------

    def _round(self, look: Look, previous: Vector, tol: float) -> tuple[Vector, float]:
        """Solve one working set; its members, and what the dual gained: inf if it has no bound."""
        from mercer.svm._newton_loops import with_newton
        from mercer.svm._round_loops import ASKED, solve_set
        from mercer.svm._smo_loops import NEEDS_NEWTON

        active = self.active
        n_new, begun = min(self._room, self._n_new if len(previous) else 2 * self._n_new), self.clock.seconds
        self._room = min(self.size, 2 * self._room)
        if self.clock.left < np.inf:
            n_new = min(n_new, max(2, self._affordable()))
        chosen, newcomers = self._seat(look, previous, n_new)
        m = self._n_members
        limit = STEPS_PER_MEMBER * m
        if self.options.max_iter >= 0:
            limit = min(limit, self.options.max_iter - self.steps)

        def solve(newton: int) -> tuple[int, float, bool, int, int, int]:
            return solve_set(
                self._seats, m, newcomers, self._block, self._fresh, active.program, active.beta, active.F,
                max(0.5 * tol, BLOCK_TOL * look.violation), limit, newton, self._members_room, self._score, chosen,
                previous, self._change,
            )  # fmt: skip

        dtype = self._block.dtype
        found = with_newton(solve, dtype, dtype, lambda found: found[0] == NEEDS_NEWTON)
        steps, gained, unbounded, n_moved, n_new, n_used = found
        self.steps += steps
        if unbounded:
            return chosen, np.inf
        if n_moved:
            slots = self.store.ensure(self._seats[ASKED, :n_moved])
            self.store.add_product(slots, self._change[:n_moved], active.F)
        self._adapt(n_new, n_used)
        self._last_round = self.clock.seconds - begun
        self.dual += gained
        return chosen, gained

    def _seat(self, look: Look, previous: Vector, n_new: int) -> tuple[Vector, int]:
        """Make the chosen variables the members of the block: these variables, and how many are newcomers.

        Of the newcomers the rows of the block are written.
        """
        from mercer.svm._round_loops import ASKED, COLUMN, ORDER, POSITIONS, WANTED, form_set

        active, store = self.active, self.store
        if self._block.dtype != self.score_dtype:
            self._block = np.empty(self._block.shape, self.score_dtype)
            self._score = np.empty(self.size, self.score_dtype)
            self._clear()
        chosen, m, newcomers, n_wanted = form_set(
            look.up, look.low, active.program, look.extremes, previous, n_new, self.size, active.null, self._place,
            self._seats, self._n_members, self._block, self._fresh,
        )  # fmt: skip
        self._n_members = m
        wanted, asked, slots = self._seats[WANTED, :n_wanted], self._seats[ASKED, :n_wanted], self._slots[:m]
        order, column = self._seats[ORDER], self._seats[COLUMN]
        stored = wanted
        if len(active.samples) < self.plan.rows_wait_from:
            slots[wanted] = store.ensure(asked)
        else:
            slots[wanted] = found = store.find(asked)
            stored, bare = wanted[found >= 0], wanted[found < 0]
            if len(bare):
                positions = self._seats[POSITIONS, :m]
                self._block[bare, :m] = self._rows.gram.block(positions[bare], np.maximum(positions, 0))

        self._read(slots, order, column, stored)
        return chosen, newcomers

    def _read(self, slots: Vector, order: Vector, column: Vector, stored: Vector) -> None:
        """Write the rows of newcomers whose rows are stored into the block."""
        from mercer._compiled import shared_loops as shared
        from mercer._compiled import stored_rows as storage

        values, block = self.store.values, self._block
        if has_team():
            shared.read_rows(values, slots, order, column, stored, block)
            return

        def part(start: int, stop: int) -> None:
            storage.read_rows(values, slots, order, column, stored, start, stop, block)

        threads = self.options.n_threads if len(slots) * len(stored) >= READ_THREADS_FROM else 1
        run_shares(part, len(stored), threads)

    def _adapt(self, n_new: int, n_used: int) -> None:
        """Ask for fewer new members if few of the last ones were of use, for more if most were."""
        if n_new >= FEWEST_NEW // 2:
            used = n_used / n_new
            if used < FEW_USED:
                self._n_new = min(self._most_new, max(FEWEST_NEW, self._n_new // 2))
            elif used > MOST_USED:
                self._n_new = min(self._most_new, 2 * self._n_new)

    # ---- parts of the samples --------------------------------------------------------------------------------

    def _start_small(self) -> None:
        """Begin with a random part of the samples: its optimum tells which of the others matter."""
        samples = np.sort(np.random.default_rng(0).permutation(self.n)[: self.plan.first_samples])
        inactive = np.setdiff1d(np.arange(self.n), samples, assume_unique=True)
        self._left_out.add(inactive, np.zeros(self.n))
        self._stage_tol = FIRST_STAGE_TOL
        self._rows.restrict(samples, self.gram.take(samples))
        self._take_up(samples)

    @property
    def _rows(self) -> RowStore:
        """The store of a run that may leave samples out."""
        assert isinstance(self.store, RowStore)
        return self.store

    @property
    def _may_shrink(self) -> bool:
        return self.shrinking and not (self.plan.keeps_active and self._rows.has_room)

    def _shrink(self, look: Look, previous: Vector) -> Vector | None:
        """Leave out samples that seem settled; the working set in new numbers, or None if too few are."""
        from mercer.svm._round_loops import removable

        active = self.active
        keep = np.empty(len(look.up), np.bool_)
        group = active.program.group
        removed = removable(look.up, look.low, group, look.extremes, SHRINK_SLACK, keep)
        if removed < SHRINK_AT_LEAST * len(keep):
            return None
        wanted = active.samples_of(keep)
        index = np.flatnonzero(wanted)
        if len(index) == 0 or len(index) > (1 - SHRINK_AT_LEAST) * len(active.samples):
            return None
        active.write_back(self.beta, self.F)
        # F of those that go is right for the present beta
        self._left_out.add(active.samples[~wanted], self._beta_of_samples())
        self._rows.restrict(index, self._rows.gram.take(index))
        self._take_up(active.samples[index])
        return active.renumber(previous, self.active)

    def _look_at_all(self, tol: float, level: Vector, previous: Vector) -> Vector:
        """Look at all samples again: those that violate the level at which the active ones settled come in."""
        old = self.active
        old.write_back(self.beta, self.F)
        self._left_out.bring_up_near(self._beta_of_samples(), self.beta, self.F, level)
        self._take_up(np.arange(self.n))
        look = self.active.look()
        if look.violation <= tol:
            self._rows.extend(old.samples, self.gram, np.zeros(len(old.samples), np.bool_))
            return NOBODY
        threshold = level[self.active.program.group]
        wanted = self.active.samples_of((look.up > threshold) | (look.low < threshold))
        wanted[old.samples] = True
        samples = np.flatnonzero(wanted)
        # once few come in the active set is right, and the next look may wait until it is solved
        settled = len(samples) <= SETTLED * len(old.samples)
        self._stage_tol = 0.0 if settled else STAGE_TOL * look.violation
        self._left_out.add_at_look(samples, self._beta_of_samples(), self.F)
        gram = self.gram if len(samples) == self.n else self.gram.take(samples)
        # rows of free variables will be asked for again
        self._rows.extend(np.searchsorted(samples, old.samples), gram, old.free_samples())
        self._take_up(samples)
        return old.renumber(previous, self.active)

    def _beta_of_samples(self) -> Vector:
        return self.qp.at_samples(self.beta, self.n).copy()

    def _finish(self, status: Status) -> Status:
        """Leave beta and F of the whole consistent, but for F of samples that cannot violate.

        A run that ends early leaves F of samples that were left out as it is: all of F is computed anew.
        """
        samples = self.active.samples
        self.active.write_back(self.beta, self.F)
        if len(samples) < self.n and status in (Status.CONVERGED, Status.STALLED, Status.UNBOUNDED):
            self._left_out.bring_up(self._beta_of_samples(), self.F)
            self._rows.extend(samples, self.gram, np.zeros(len(samples), np.bool_))
            self._take_up(np.arange(self.n))
        return status
