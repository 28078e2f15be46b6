"""Decomposition with large working sets.

    min  1/2 b'Kb - linear'b + sum l1|b| + 1/2 sum ridge b^2     s.t.  lower <= b <= upper,  sum over each group fixed

Each round takes the worst violators and the newest members of the last working set, solves their small problem by
second-order SMO (smo.solve_block), and carries the change over to F = K b of all active samples with one product of
stored kernel rows. Joachims, "Making large-scale SVM learning practical" (1999); Fan, Chen & Lin, JMLR 6 (2005).

Shrinking leaves out samples whose variables sit at a bound with a gain that is negative by a margin. When the rest
is solved, F of the samples left out is brought up to date and the violators among them come back: the end is
always an end on all samples.

Without a sum constraint a null sample is added: a free variable with a zero row in K, which takes up any sum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mercer.gram.operator import GramOperator, product
from mercer.gram.rows import RowStore
from mercer.losses.base import BoxQP, Vector
from mercer.problems.dual import DIVERGED, dual_objective, has_open_box
from mercer.solvers.base import Clock, Options, Status, TracePoint

# members of a working set, and the share of them that is new in each round
WORKING_SET = 512
NEW_SHARE = 0.5
# pair steps in one block: enough to solve it, an end if rounding prevents that
STEPS_PER_MEMBER = 200
# leave out variables whose gain misses by this share of the violation; only if so many can go
SHRINK_SLACK = 0.5
SHRINK_AT_LEAST = 0.2
# from so many samples on begin with a part of them, at least so many
FIRST_STAGE_FROM = 8192
FIRST_STAGE = 2048
# rounds without an improvement of the violation or the objective
PATIENCE = 12


@dataclass
class _Active:
    """The program restricted to active samples: contiguous copies of its columns."""

    samples: Vector  # active samples
    variables: Vector  # their variables in the whole program
    sample: Vector  # position of each variable's sample in ``samples``; the null sample comes last
    linear: Vector
    l1: Vector
    ridge: Vector
    lower: Vector
    upper: Vector
    group: Vector
    beta: Vector
    F: Vector  # of the active samples, and a zero for the null sample
    null: int  # its variable, or -1


class Decomposition:
    """One run of the solver, which can be continued: ``beta`` and ``F`` are its state."""

    def __init__(
        self, gram: GramOperator, qp: BoxQP, beta: Vector, F: Vector, options: Options, clock: Clock, steps: int = 0
    ) -> None:
        self.gram = gram
        self.qp = qp
        self.beta = beta
        self.F = F
        self.options = options
        self.clock = clock
        self.steps = steps
        self.trace: list[TracePoint] = []
        self.sample = np.arange(qp.n_vars) if qp.sample is None else qp.sample
        self.n = gram.n
        size = options.working_set or WORKING_SET
        self.size = min(size, qp.n_vars + (qp.n_groups == 0))
        row_bytes = max(1, self.n * gram.dtype.itemsize)
        # the rows of one working set must fit in the budget
        self.size = int(max(2, min(self.size, options.budget // row_bytes)))
        self.open_box = has_open_box(qp)
        self.largest = float(np.abs(gram.diagonal()).max()) if self.open_box else 1.0
        if self.open_box:
            self.options = options = replace(options, shrinking=False)
        self.violation = np.inf
        self.dual = dual_objective(qp, beta, F)
        self._epochs: list[tuple[Vector, Vector]] = []
        self.stage_tol = 0.0
        self.store = RowStore(gram, options.budget, self.size)
        self._activate(np.arange(self.n))
        if options.shrinking and self.n >= FIRST_STAGE_FROM and not beta.any():
            self._start_small()

    def run(self, tol: float) -> Status:
        """Descend until the violation of all variables is at most tol, as far as F tells."""
        from mercer._numerics.smo import solve_block
        from mercer._numerics.working_set import choose, gather_block, group_extremes, score_all

        active = self.active
        previous = np.empty(0, np.int64)
        extremes = np.empty((2, 2))
        n_groups = max(1, self.qp.n_groups)
        best, idle, rounds = np.inf, 0, 0
        gained = np.inf
        status: Status | None = None
        while status is None:
            n_vars = len(active.variables)
            up, low = np.empty(n_vars), np.empty(n_vars)
            score_all(
                active.beta, active.F, active.sample, active.linear, active.l1, active.ridge, active.lower,
                active.upper, up, low,
            )  # fmt: skip
            group_extremes(up, low, active.group, extremes)
            self.violation = float((extremes[:n_groups, 0] - extremes[:n_groups, 1]).max())
            self._record(len(active.samples))
            if self.violation <= (tol if len(active.samples) == self.n else max(tol, self.stage_tol)):
                if len(active.samples) == self.n:
                    return self._finish(active, Status.CONVERGED)
                active, previous = self._unshrink(tol, previous)
                best, idle = np.inf, 0
                continue
            improved = self.violation < best or gained > 1e-12 * abs(self.dual)
            best = min(best, self.violation)
            idle = 0 if improved else idle + 1
            status = self.clock.over()
            if idle > PATIENCE or not np.isfinite(self.violation):
                status = Status.STALLED
            elif 0 <= self.options.max_iter <= self.steps:
                status = Status.MAX_ITER
            elif self.open_box and self._diverges(active):
                status = Status.UNBOUNDED
            if status is not None:
                break
            rounds += 1
            if self.options.shrinking and rounds % 4 == 0:
                shrunk = self._shrink(active, up, low, extremes, previous)
                if shrunk is not None:
                    active, previous = shrunk
                    continue
            n_new = self.size if len(previous) == 0 else max(2, int(NEW_SHARE * self.size))
            members = choose(
                up, low, active.group, n_groups, extremes, previous, n_new, self.size, active.null
            )  # fmt: skip
            previous = members
            # the members of the first group come first
            members = members[np.argsort(active.group[members], kind="stable")]
            positions = active.sample[members]
            real = positions < len(active.samples)
            columns = np.where(real, positions, -1)
            slots = np.full(len(members), -1, np.intp)
            slots[real] = self.store.ensure(positions[real])
            block = np.empty((len(members), len(members)))
            gather_block(self.store.values, slots, columns, block)
            before = active.beta[members]
            beta = before.copy()
            score = active.linear[members] - active.F[positions] - active.ridge[members] * beta
            first_score = score.copy()
            limit = STEPS_PER_MEMBER * len(members)
            if self.options.max_iter >= 0:
                limit = min(limit, self.options.max_iter - self.steps)
            first_group = int(np.count_nonzero(active.group[members] == 0))
            steps, _, unbounded = solve_block(
                block, beta, score, active.lower[members], active.upper[members], active.l1[members],
                active.ridge[members], first_group, max(0.5 * tol, 0.1 * self.violation), limit,
            )  # fmt: skip
            self.steps += steps
            if unbounded:
                return self._finish(active, Status.UNBOUNDED)
            change = beta - before
            # exact along the path: the mean of the slopes at both ends times the change
            gained = float(0.5 * (first_score + score) @ change)
            gained -= float(active.l1[members] @ (np.abs(beta) - np.abs(before)))
            self.dual += gained
            active.beta[members] = beta
            moved = (change != 0) & real
            if moved.any():
                self.store.add_product(slots[moved], change[moved], active.F)
        return self._finish(active, status)

    def restart(self) -> None:
        """Take up beta and F again after F was corrected from outside."""
        self._activate(np.arange(self.n))

    def _record(self, n_active: int) -> None:
        point = TracePoint(self.clock.seconds, self.steps, self.violation, self.dual, n_active)
        self.trace.append(point)
        self.clock.report(point)

    def _diverges(self, active: _Active) -> bool:
        """Whether the dual grows without limit: see `exact.diverges`; all samples are active then."""
        total = float(np.abs(active.beta).sum())
        return float(active.F[active.sample] @ active.beta) <= DIVERGED * self.largest * total**2 and total > 0

    def _activate(self, samples: Vector) -> _Active:
        """Make these the active samples, from the state of the whole."""
        qp = self.qp
        position = np.full(self.n, -1, np.intp)
        position[samples] = np.arange(len(samples))
        variables = np.flatnonzero(position[self.sample] >= 0)
        null = len(variables) if qp.n_groups == 0 else -1

        def column(values: Vector, extra: float) -> Vector:
            taken = values[variables]
            return np.append(taken, extra) if null >= 0 else taken

        sample = position[self.sample[variables]]
        self.active = _Active(
            samples=samples,
            variables=np.append(variables, -1) if null >= 0 else variables,
            sample=np.append(sample, len(samples)) if null >= 0 else sample,
            linear=column(qp.linear, 0.0),
            l1=column(qp.l1, 0.0),
            ridge=column(qp.ridge, 0.0),
            lower=column(qp.lower, -np.inf),
            upper=column(qp.upper, np.inf),
            group=column(qp.group, 0).astype(np.int8),
            beta=column(self.beta, 0.0),
            F=np.append(self.F[samples], 0.0),
            null=null,
        )
        return self.active

    def _start_small(self) -> None:
        """Begin with a random part of the samples: its optimum tells which of the others matter."""
        size = max(FIRST_STAGE, self.n // 16)
        samples = np.sort(np.random.default_rng(0).permutation(self.n)[:size])
        inactive = np.setdiff1d(np.arange(self.n), samples, assume_unique=True)
        self._epochs.append((inactive, np.zeros(self.n)))
        self.stage_tol = 0.1
        self.store.restrict(samples, self.gram.take(samples))
        self._activate(samples)

    def _write_back(self, active: _Active) -> None:
        """Bring beta and F of the whole up to date at the active samples."""
        real = active.variables >= 0
        self.beta[active.variables[real]] = active.beta[real]
        self.F[active.samples] = active.F[:-1]

    def _shrink(
        self, active: _Active, up: Vector, low: Vector, extremes: Vector, previous: Vector
    ) -> tuple[_Active, Vector] | None:
        """Leave out samples all of whose variables seem settled; None if too few are."""
        from mercer._numerics.working_set import removable

        keep = np.empty(len(up), np.bool_)
        count = removable(up, low, active.group, extremes, SHRINK_SLACK, keep)
        if count < SHRINK_AT_LEAST * len(up):
            return None
        real = active.variables >= 0
        wanted = np.zeros(len(active.samples), np.bool_)
        wanted[active.sample[real & keep]] = True
        index = np.flatnonzero(wanted)
        if len(index) == 0 or len(index) > (1 - SHRINK_AT_LEAST) * len(active.samples):
            return None
        self._write_back(active)
        # F of those that go is exact for the present beta
        self._epochs.append((active.samples[~wanted], self.qp.at_samples(self.beta, self.n).copy()))
        gram = self.store.gram.take(index)
        self.store.restrict(index, gram)
        new = self._activate(active.samples[index])
        return new, _renumber(active, new, previous)

    def _update_inactive(self) -> None:
        """Bring F of the samples left out up to date."""
        features, gram = self.gram.features, self.gram
        whole = self.qp.at_samples(self.beta, self.n)
        for rows, beta_then in self._epochs:
            change = whole - beta_then
            # from the change since F was exact there, or anew if fewer samples carry weight
            if np.count_nonzero(change) <= np.count_nonzero(whole):
                weights, start = change, self.F[rows]
            else:
                weights, start = whole, np.zeros(len(rows))
            columns = np.flatnonzero(weights)
            self.F[rows] = start + product(
                gram.kernel, features.take(rows), features.take(columns), weights[columns], gram.n_threads,
                gram.evaluations,
            )  # fmt: skip
        self._epochs.clear()

    def _unshrink(self, tol: float, previous: Vector) -> tuple[_Active, Vector]:
        """Look at all samples again: the violators come back, with those near them."""
        from mercer._numerics.working_set import group_extremes, removable, score_all

        old = self.active
        self._write_back(old)
        self._update_inactive()
        whole = self._activate(np.arange(self.n))
        up, low = np.empty(len(whole.beta)), np.empty(len(whole.beta))
        score_all(
            whole.beta, whole.F, whole.sample, whole.linear, whole.l1, whole.ridge, whole.lower, whole.upper, up, low
        )
        extremes, keep = np.empty((2, 2)), np.empty(len(up), np.bool_)
        group_extremes(up, low, whole.group, extremes)
        n_groups = max(1, self.qp.n_groups)
        self.violation = float((extremes[:n_groups, 0] - extremes[:n_groups, 1]).max())
        self.stage_tol = 0.1 * self.violation
        if self.violation <= tol:
            self.store.extend(old.samples, self.gram, np.zeros(len(old.samples), np.bool_))
            return whole, previous
        removable(up, low, whole.group, extremes, 0.0, keep)
        wanted = np.zeros(self.n, np.bool_)
        wanted[old.samples] = True
        real = whole.variables >= 0
        wanted[whole.sample[real & keep]] = True
        samples = np.flatnonzero(wanted)
        self._epochs.append((np.flatnonzero(~wanted), self.qp.at_samples(self.beta, self.n).copy()))
        gram = self.gram if len(samples) == self.n else self.gram.take(samples)
        # rows of free variables will be asked for again
        free = np.zeros(len(old.samples), np.bool_)
        inside = (old.beta > old.lower) & (old.beta < old.upper) & (old.variables >= 0)
        free[old.sample[inside & (old.beta != 0)]] = True
        self.store.extend(np.searchsorted(samples, old.samples), gram, free)
        new = self._activate(samples)
        return new, _renumber(old, new, previous)

    def _finish(self, active: _Active, status: Status) -> Status:
        """Leave beta and F of the whole consistent."""
        self._write_back(active)
        if len(active.samples) < self.n:
            self._update_inactive()
            self._activate(np.arange(self.n))
            self.store.extend(active.samples, self.gram, np.zeros(len(active.samples), np.bool_))
        return status


def _renumber(old: _Active, new: _Active, members: Vector) -> Vector:
    """The working set in the numbers of another active set, as far as it is in it."""
    place = np.searchsorted(new.variables[: len(new.variables) - (new.null >= 0)], old.variables[members])
    place = np.minimum(place, len(new.variables) - 1)
    there = (new.variables[place] == old.variables[members]) & (old.variables[members] >= 0)
    return place[there]
