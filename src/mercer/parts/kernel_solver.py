"""An exact kernel machine of rows in parts, with the certificate of all rows.

    min  ½β'Kβ − linear'β + Σ l1|β| + ½Σ ridge β²    s.t.  lower ≤ β ≤ upper,  Σβ = sum (with an intercept)

Decomposition (Joachims, 1999) with β and F = Kβ spread out. The caller has a *pool* of samples. Each round

1. solves the problem of the pool, the other β fixed, by the solver of one array (`mercer.svm.solve.descend`);
2. sends the samples of the pool that moved, once, and their changes of β; each part adds K(part, moved) Δβ to its F;
3. gets the worst violators of each part in the same pass. They join the pool. If it is full, the samples leave that are
   farthest from moving; the parts keep their β.

When the violation of all rows is at most ``tol``, F is computed again in float64 from β and the rows alone. The
certificate is that of this F; if its violation is above ``tol``, the rounds go on from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data
from mercer.kernels.base import Kernel
from mercer.kernels.features import Matrix, Vector, take_samples
from mercer.losses.base import BoxQP, Index
from mercer.parts import kernel_part
from mercer.parts.kernel_part import ONCE, Message, Named, Pool, Report
from mercer.parts.layout import Parts
from mercer.parts.linear_part import LOSSES, Statement, forget
from mercer.parts.linear_run import stacked
from mercer.problems import _optimality_loops as at
from mercer.problems.clock import Clock
from mercer.problems.dual import Survey, feasible_start, rates, survey, survey_of
from mercer.problems.parts_plan import PartsPlan, PoolSizes
from mercer.problems.solution import Certificate, Options, Solution, Status, TracePoint, conclude
from mercer.svm.plan import plan_descent
from mercer.svm.solve import REFINEMENTS, descend
from mercer.svm.verify import exact_product

# a pool is solved to this share of the violation of all rows
POOL_TOL = 0.1
# violators of the threshold by less than this share of tol are not named
NAMED_SHARE = 0.25
# parts name this many times the number of violators that are taken
SPARE = 2.0
# most rounds in which neither the violation improves nor, by this share, the dual value
PATIENCE, SMALLEST_GAIN = 5, 1e-12
# kernel values in float64 take at most this many times as long as the last ones
EXACT_COST = 3.0
# thresholds that are tried in one pass, and passes
TRIED, TRIALS = 64, 6


@dataclass(frozen=True)
class KernelPartsSolution(Solution):
    """An exact machine of rows in parts: β and F are those of the support vectors.

    Attributes
    ----------
    samples, rows, targets : the support vectors, their numbers among all rows, and their targets.
    evaluations : kernel values that were computed.
    rounds : the rounds of decomposition.
    """

    samples: Any = None
    rows: Vector = field(default_factory=lambda: np.empty(0, np.int64))
    targets: Vector = field(default_factory=lambda: np.empty(0))
    evaluations: int = 0
    rounds: int = 0

    def placed(self, rows: Vector, own: Vector) -> KernelPartsSolution:
        """The solution with β and F of the samples at ``own`` among the samples with these sorted numbers."""
        beta, F = np.zeros(len(rows)), np.zeros(len(rows))
        at = np.searchsorted(rows, self.rows)
        beta[at], F[at] = self.beta, self.F
        return replace(self, beta=beta[own], F=F[own])


def solve_kernel_parts(
    parts: Parts, kernel: Kernel, statement: Statement, options: Options, clock: Clock, capacity: int = 0
) -> KernelPartsSolution:
    """Solve until the violation of all rows is at most ``options.tol``, or a limit ends the run; certify.

    The kernel is bound (`bind_to_parts`). Samples whose weight is 0 are left out. ``capacity`` is the largest number of
    samples in the pool; 0 to choose.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Gaussian
    >>> from mercer.losses import EpsilonInsensitive
    >>> from mercer.parts.kernel_solver import solve_kernel_parts
    >>> from mercer.parts.layout import Held, LocalParts
    >>> from mercer.parts.linear_part import Statement
    >>> from mercer.problems.clock import Clock
    >>> from mercer.problems.solution import Options
    >>> X = np.linspace(0, 6, 300)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> parts = LocalParts([Held(X[:100], y[:100]), Held(X[100:], y[100:])])
    >>> statement = Statement(EpsilonInsensitive(0.1), intercept=True)
    >>> found = solve_kernel_parts(parts, Gaussian(1.0), statement, Options(), Clock())
    >>> found.certificate.valid and found.certificate.kkt_violation <= 1e-3
    True
    """
    if type(statement.loss) not in LOSSES or not np.isfinite(statement.C) or statement.bias:
        raise InvalidInputError(
            f"The loss {statement.loss.name!r} with C={statement.C:g} is not available for rows in parts, which take "
            "hinge, epsilon-insensitive, squared and one-class losses with a finite C. Use the estimator of the same "
            "name in mercer on rows in memory."
        )
    found = _Run(parts, kernel, statement, options, clock, capacity).run()
    parts.map(forget, reads=False)
    return found


@dataclass(eq=False)
class _Samples:
    """Samples of the caller: their places in the parts, and their entries in the program."""

    part: Index
    at: Index
    rows: Index
    samples: Any
    y: Vector
    F: Vector
    beta: Vector
    vectors: Matrix
    # the message in which they were sent, ONCE for none, and their positions in it
    message: Index
    place: Index

    @classmethod
    def of(cls, named: Sequence[Named | None], first_rows: dict[int, int]) -> _Samples | None:
        """The samples that parts have named; None for none."""
        found = [one for one in named if one is not None]
        if not found:
            return None
        n = sum(len(one.at) for one in found)
        return cls(
            np.concatenate([np.full(len(one.at), one.part) for one in found]),
            np.concatenate([one.at for one in found]),
            np.concatenate([first_rows[one.part] + one.rows for one in found]),
            stacked([one.samples for one in found]),
            np.concatenate([one.y for one in found]),
            np.concatenate([one.F for one in found]),
            np.concatenate([one.beta for one in found]),
            np.concatenate([one.vectors for one in found], axis=1),
            np.full(n, ONCE, dtype=np.intp),
            np.zeros(n, dtype=np.intp),
        )

    def __len__(self) -> int:
        return len(self.at)

    def take(self, index: Index) -> _Samples:
        """Some of them."""
        fields = {name: take_samples(getattr(self, name), index) for name in self.__dict__ if name != "vectors"}
        return _Samples(**fields, vectors=self.vectors[:, index])

    @classmethod
    def joined(cls, groups: Sequence[_Samples]) -> _Samples:
        """The samples of all groups, in their order."""
        lists = {name: [getattr(group, name) for group in groups] for name in groups[0].__dict__}
        samples, vectors = stacked(lists.pop("samples")), np.concatenate(lists.pop("vectors"), axis=1)
        return cls(samples=samples, vectors=vectors, **{name: np.concatenate(own) for name, own in lists.items()})

    def program(self, sums: Vector) -> BoxQP:
        """The program of these samples without the others."""
        linear, l1, ridge, lower, upper = self.vectors
        return BoxQP(linear, l1, ridge, lower, upper, np.zeros(len(self), np.int8), sums)

    def for_parts(self) -> Pool:
        """Positions and β, by part."""
        own = {int(p): self.part == p for p in np.unique(self.part)}
        return Pool({p: self.at[mask] for p, mask in own.items()}, {p: self.beta[mask] for p, mask in own.items()})


class _Run:
    """The rounds of one machine."""

    def __init__(
        self, parts: Parts, kernel: Kernel, statement: Statement, options: Options, clock: Clock, capacity: int
    ) -> None:
        self.parts, self.kernel, self.statement = parts, kernel, statement
        self.options, self.clock = options, clock
        begun = parts.map(kernel_part.begin, statement, kernel)
        self.n = sum(own.n for own in begun)
        if self.n == 0:
            raise InvalidInputError("No sample has a positive weight: give at least one.")
        widths = {own.d for own in begun}
        if len(widths) > 1:
            raise InvalidInputError(
                f"The first part has {begun[0].d} columns, but another one has {max(widths - {begun[0].d})}. Give all "
                "parts the same columns."
            )
        self.order = [own.part for own in begun]
        self.sizes = {own.part: own.n for own in begun}
        ends = np.cumsum([0, *(own.rows for own in begun)])
        # the number of the first row of each part among all rows
        self.first_rows = dict(zip(self.order, ends[:-1].tolist(), strict=True))
        self.sums = np.sum([own.sums for own in begun], axis=0)
        self.pool_sizes = PoolSizes(self.n, max(own.row_bytes for own in begun), parts.budget, capacity)
        self.capacity = self.pool_sizes.at_first
        self.dtype: Any = np.float64
        self.trace: list[TracePoint] = []
        self.steps = self.rounds = self.evaluations = self.messages = 0
        # samples that the parts keep, by message
        self.kept: dict[int, int] = {}
        self.pool: _Samples
        self.seen: Survey
        self.support = 0
        self.largest = 0.0
        # seconds of one kernel value in the parts, and of the last round
        self.each = self.last_round = 0.0

    @property
    def most_sent(self) -> int:
        """Samples of a message."""
        return self.pool_sizes.per_message(self.capacity)

    # ---- the rounds ----------------------------------------------------------------------------------------------

    def run(self) -> KernelPartsSolution:
        """Rounds until the violation of all rows is at most tol in float64, or a limit."""
        tol, level, attempts = self.options.tol, 0.0, 0
        self._begin()
        best, idle, dual = np.inf, 0, self.seen.dual
        status = self._over()
        while status is None:
            begun = self.clock.seconds
            moved, level, ended = self._solve_pool(level)
            if ended is not None:
                self.parts.map(kernel_part.set_pool, self.pool.for_parts(), reads=False)
                status = ended
                break
            named = self._advance(moved, level)
            violation = self.seen.violation
            self.rounds += 1
            self._report()
            if violation <= tol:
                self._gradient(np.float64)
                if self.seen.violation <= tol:
                    return self._certified(Status.CONVERGED, exact=True)
                attempts += 1
                if attempts > REFINEMENTS:
                    return self._certified(Status.STALLED, exact=True)
                self.dtype = np.float64 if attempts > 1 else self.dtype
                best = np.inf
            idle = 0 if violation < best or self.seen.dual - dual > SMALLEST_GAIN * abs(dual) else idle + 1
            best, dual = min(best, violation), self.seen.dual
            if idle > PATIENCE:
                if self.dtype == np.float64:
                    status = Status.STALLED
                    break
                self._gradient(np.float64)
                self.dtype, idle, best = np.float64, 0, np.inf
            self._choose(named)
            self.last_round = self.clock.seconds - begun
            status = self._over()
        return self._certified(status, exact=False)

    def _over(self) -> Status | None:
        """Whether a limit ends the run before the next round, with time for F of all rows in float64."""
        if 0 <= self.options.max_iter <= self.steps:
            return Status.MAX_ITER
        return self.clock.over_in(self.last_round + EXACT_COST * self.each * self.n * self.support)

    def _report(self) -> None:
        seconds, seen = self.clock.seconds, self.seen
        self.trace.append(TracePoint(seconds, self.steps, seen.violation, seen.dual, len(self.pool)))
        self.clock.report(self.trace[-1])

    def _begin(self) -> None:
        """The first pool is drawn evenly. If β must have a sum, its samples show where to begin."""
        drawn = np.sort(np.random.default_rng(self.options.seed).permutation(self.n)[: self.pool_sizes.first])
        ends = np.cumsum([self.sizes[p] for p in self.order])
        own = np.split(drawn, np.searchsorted(drawn, ends[:-1]))
        wanted = {p: mine - (end - self.sizes[p]) for p, mine, end in zip(self.order, own, ends, strict=True)}
        self.pool = self._named(self.parts.map(kernel_part.name_samples, wanted, reads="some"))
        data = self._data()
        plan = plan_descent(data, self.pool.program(self.sums), self.options, self.clock.left, True)
        self.dtype = plan.dtype
        self.plan = self._plan()
        self.clock.reports.log_once("plan", self.plan)
        if not self.sums.any():
            self.seen = self._merged(self.parts.map(kernel_part.look, reads=False))
            return
        self._start_with_sum(data)
        self.pool = self._named(self.parts.map(kernel_part.name_samples, wanted, reads="some"))
        self._gradient(self.dtype)

    def _plan(self) -> PartsPlan:
        return PartsPlan(
            n_samples=self.n, method="pools", first_pool=len(self.pool),
            largest_pool=min(self.n, self.pool_sizes.largest),
            precision=np.dtype(self.dtype).name, **self.parts.layout()._asdict(),
        )  # fmt: skip

    def _named(self, found: list[Named | None]) -> _Samples:
        samples = _Samples.of(found, self.first_rows)
        assert samples is not None
        return samples

    def _start_with_sum(self, data: Data) -> None:
        """β with the required sum: at its bound where the function of the first pool is lowest (one-class machine)."""
        pool = self.pool
        program = pool.program(self.sums * float(pool.vectors[4].sum()) / self._room(np.inf))
        beta = feasible_start(program)
        violation = survey(program, beta, exact_product(data, program, beta, self.options)).violation
        options = replace(self.options, tol=max(self.options.tol, POOL_TOL * violation))
        with self.clock.reports.silenced():
            plan = plan_descent(data, program, options, self.clock.left, True)
            found = descend(data, program, replace(options, n_threads=plan.n_threads), self.clock, beta, 0, plan)
        self.steps += found.point.steps
        carries = np.flatnonzero(found.point.beta)
        for message in self._messages(pool.take(carries), found.point.beta[carries]):
            self._add(message, self.dtype)
        low, high = self._where(float(self.sums[0]))
        below, up_to = self._room(low), self._room(high)
        share = (float(self.sums[0]) - below) / (up_to - below) if up_to > below else 0.0
        self.parts.map(kernel_part.start_below, low, high, share, reads=False)

    def _room(self, limit: float) -> float:
        """The sum of the upper bounds of all samples whose F is below this limit."""
        return float(self.parts.total(kernel_part.room_below, np.array([limit]), reads=False)[0][0])

    def _where(self, room: float) -> tuple[float, float]:
        """Limits of F that are near each other, with less and with more than this room below."""
        ends = self.parts.map(kernel_part.ends_of_F, reads=False)
        low, high = min(e[0] for e in ends), np.nextafter(max(e[1] for e in ends), np.inf)
        for _ in range(TRIALS):
            tried = np.linspace(low, high, TRIED)
            (below,) = self.parts.total(kernel_part.room_below, tried, reads=False)
            k = int(np.searchsorted(below, room, side="right"))
            low, high = float(tried[max(0, k - 1)]), float(tried[min(k, TRIED - 1)])
        return low, high

    def _data(self) -> Data:
        return Data(self.kernel, self.pool.samples, len(self.pool))

    def _solve_pool(self, level: float) -> tuple[Vector, float, Status | None]:
        """Solve the problem of the pool, the other β fixed: (changes of β, threshold, whether a limit has ended it)."""
        pool, data, options = self.pool, self._data(), self.options
        sums = np.array([pool.beta.sum()]) if len(self.sums) else self.sums
        qp = pool.program(sums)
        # F of the samples outside of the pool is a part of the linear term
        inner = exact_product(data, qp, pool.beta, options) if pool.beta.any() else np.zeros(len(pool))
        qp = replace(qp, linear=qp.linear - (pool.F - inner))
        violation = max(survey(qp, pool.beta, inner).violation, 0.0 if self.rounds == 0 else self.seen.violation)
        left = -1 if options.max_iter < 0 else options.max_iter - self.steps
        options = replace(options, tol=max(0.5 * options.tol, POOL_TOL * violation), max_iter=left)
        plan = plan_descent(data, qp, options, self.clock.left, True)
        with self.clock.reports.silenced():
            found = descend(data, qp, replace(options, n_threads=plan.n_threads), self.clock, pool.beta.copy(), 0, plan)
        self.evaluations += data.evaluations.count
        self.steps += found.point.steps
        if found.status is Status.UNBOUNDED:
            raise InvalidInputError(
                f"The dual grows without limit: {self.kernel!r} is not positive semidefinite on these samples. Use "
                "another kernel."
            )
        moved = found.point.beta - pool.beta
        pool.beta = found.point.beta
        ended = found.status if found.status in (Status.TIME_LIMIT, Status.INTERRUPTED, Status.MAX_ITER) else None
        return moved, _middle(found.point.seen, level), ended

    def _advance(self, moved: Vector, level: float) -> _Samples | None:
        """Add the changes to F of all rows; returns the violators that the parts name."""
        pool, before = self.pool, self.clock.seconds
        changed = np.flatnonzero(moved)
        anew = bool(np.count_nonzero(pool.beta) < len(changed)) and not self._carried_outside()
        chosen = np.flatnonzero(pool.beta) if anew else changed
        weights = (pool.beta if anew else moved)[chosen]
        messages = list(self._messages(pool.take(chosen), weights, chosen))
        for k, message in enumerate(messages[:-1]):
            self._add(message, self.dtype, anew and k == 0)
        share = SPARE * self._n_new() / self.n
        named_from = NAMED_SHARE * self.options.tol
        last, of_parts = messages[-1], pool.for_parts()
        reports: list[Report] = self.parts.map(
            kernel_part.advance, last, anew and len(messages) == 1, self.dtype, of_parts, level, named_from, share
        )
        self.evaluations += sum(report.evaluations for report in reports)
        self.seen = self._merged(reports)
        for p, report in zip(self.order, reports, strict=True):
            pool.F[pool.part == p] = report.pool
        if len(chosen):
            self.each = (self.clock.seconds - before) / (self.n * len(chosen))
        return _Samples.of([report.named for report in reports], self.first_rows)

    def _carried_outside(self) -> bool:
        """Whether samples outside of the pool have a weight."""
        return any(count for _, count in self.parts.map(kernel_part.count_support, True, reads=False))

    def _n_new(self) -> int:
        """How many samples may join the pool."""
        return self.pool_sizes.most_new(len(self.pool), self.capacity)

    def _choose(self, named: _Samples | None) -> None:
        """The worst violators join the pool; if it is full, the samples leave that are farthest from moving."""
        if named is None:
            return
        level = _middle(self.seen, 0.0)
        excess = np.stack(_excess(named, level))
        half = max(1, self._n_new() // 2)
        chosen = np.zeros(len(named), dtype=bool)
        for values in excess:
            worst = np.argsort(-values, kind="stable")[:half]
            chosen[worst[values[worst] > 0]] = True
        new, pool = named.take(np.flatnonzero(chosen)), self.pool
        room = max(0, self.capacity - len(new))
        if len(pool) > room:
            nearest = np.argsort(-np.maximum(*_excess(pool, level)), kind="stable")[:room]
            pool = pool.take(np.sort(nearest))
        self.pool = _Samples.joined([pool, new])

    # ---- messages ------------------------------------------------------------------------------------------------

    def _messages(self, members: _Samples, weights: Vector, positions: Index | None = None) -> Iterator[Message]:
        """Messages that make the parts add K(·, members) weights; at least one.

        ``positions`` are those of the members in the pool: they are noted as sent. Without it no sample is kept.
        """
        if len(members) == 0:
            yield Message(ONCE, None, (), [], weights)
            return
        step = self.most_sent
        if positions is None:
            for first in range(0, len(members), step):
                own = np.arange(first, min(first + step, len(members)))
                yield Message(ONCE, take_samples(members.samples, own), (), [(ONCE, own - first)], weights[own])
            return
        if sum(self.kept.values()) > 2 * self.capacity:
            members.message[:] = ONCE
            self.pool.message[:] = ONCE
        known, unknown = np.flatnonzero(members.message != ONCE), np.flatnonzero(members.message == ONCE)
        alive = set(self.pool.message.tolist())
        dropped = tuple(number for number in self.kept if number not in alive)
        for number in dropped:
            del self.kept[number]
        groups = [known[members.message[known] == number] for number in np.unique(members.message[known])]
        old = [(int(members.message[own[0]]), members.place[own]) for own in groups]
        ordered = np.concatenate([*groups, np.empty(0, np.intp)]).astype(np.intp)
        if len(unknown) == 0:
            yield Message(ONCE, None, dropped, old, weights[ordered])
            return
        for first in range(0, len(unknown), step):
            own = unknown[first : first + step]
            self.messages += 1
            self.kept[self.messages] = len(own)
            self.pool.message[positions[own]] = self.messages
            self.pool.place[positions[own]] = np.arange(len(own))
            begins = first == 0
            yield Message(
                self.messages,
                take_samples(members.samples, own),
                dropped if begins else (),
                [*(old if begins else []), (self.messages, np.arange(len(own)))],
                np.concatenate([weights[ordered], weights[own]]) if begins else weights[own],
            )

    def _add(self, message: Message, dtype: Any, anew: bool = False) -> None:
        """Add the kernel values of the members to F."""
        self.evaluations += int(self.parts.total(kernel_part.add_product, message, anew, dtype)[0])

    def _gradient(self, dtype: Any) -> None:
        """F = Kβ of all rows, from β and the rows alone."""
        pool = self.pool
        self.parts.map(kernel_part.set_pool, pool.for_parts(), reads=False)
        carries = np.flatnonzero(pool.beta)
        anew = True
        for message in self._messages(pool.take(carries), pool.beta[carries], carries):
            self._add(message, dtype, anew)
            anew = False
        for others in self._support_vectors(outside=True):
            for message in self._messages(others, others.beta):
                self._add(message, dtype)
        reports: list[Report] = self.parts.map(kernel_part.look, reads=False)
        self.seen = self._merged(reports)
        for p, report in zip(self.order, reports, strict=True):
            pool.F[pool.part == p] = report.pool

    def _support_vectors(self, outside: bool) -> Iterator[_Samples]:
        """The samples with β ≠ 0, or those outside of the pool, in the order of the rows, some at a time."""
        counts = dict(self.parts.map(kernel_part.count_support, outside, reads=False))
        total, step = sum(counts.values()), self.most_sent
        for first in range(0, total, step):
            between, start = {}, 0
            for p in self.order:
                own = max(0, first - start), min(counts[p], first + step - start)
                if own[0] < own[1]:
                    between[p] = own
                start += counts[p]
            yield self._named(self.parts.map(kernel_part.name_support, outside, between, reads="some"))

    def _merged(self, reports: Sequence[Report]) -> Survey:
        """The survey of all rows from those of the parts, added in their order."""
        groups = np.add.reduce([report.groups for report in reports])
        groups[:, at.M_UP] = np.max([report.groups[:, at.M_UP] for report in reports], axis=0)
        groups[:, at.M_LOW] = np.min([report.groups[:, at.M_LOW] for report in reports], axis=0)
        totals = np.add.reduce([report.totals for report in reports])
        totals[at.OUTSIDE] = np.max([report.totals[at.OUTSIDE] for report in reports])
        self.largest = max(report.largest for report in reports)
        self.support = sum(report.support for report in reports)
        self.capacity = max(self.capacity, self.pool_sizes.most(self.support))
        return survey_of(groups, totals, self.sums)

    # ---- the end -------------------------------------------------------------------------------------------------

    def _certified(self, status: Status, exact: bool) -> KernelPartsSolution:
        """The machine with its certificate, from F of all rows in float64."""
        if not exact:
            self._gradient(np.float64)
            if status is not Status.STALLED and self.seen.violation <= self.options.tol:
                status = Status.CONVERGED
        self._report()
        b = self.seen.thresholds
        if status is not Status.CONVERGED and len(b):
            # far from the optimum free samples say little about b: minimise the loss over b
            b = np.array([self._best_threshold(float(b[0]))])
        proof = self._certificate(b)
        self.pool = self.pool.take(np.empty(0, np.intp))
        chosen = _Samples.joined([self.pool, *self._support_vectors(outside=False)])
        return KernelPartsSolution(
            chosen.beta, chosen.F, b, status, self.steps, self.clock.seconds, proof, self.trace, plan=self.plan,
            samples=chosen.samples, rows=chosen.rows, targets=chosen.y, evaluations=self.evaluations,
            rounds=self.rounds,
        )  # fmt: skip

    def _certificate(self, b: Vector) -> Certificate:
        paid = self._losses(b if len(b) else np.zeros(1))[0] + float(b @ self.sums)
        primal = 0.5 * self.seen.squared_norm + paid
        psd, name = self.kernel.positive_semidefinite, self.statement.loss.name
        return conclude(self.seen, float(primal), b, self.sums, self.largest, psd, name)

    def _losses(self, thresholds: Vector) -> Vector:
        (found,) = self.parts.total(kernel_part.losses_at, thresholds, reads=False)
        return np.asarray(found)

    def _best_threshold(self, near: float) -> float:
        """The intercept with the smallest loss of all rows, which is convex in it."""
        ends = self.parts.map(kernel_part.ends_of_kinks, reads=False)
        low, high = min(near, *(e[0] for e in ends)), max(near, *(e[1] for e in ends))
        for _ in range(TRIALS):
            tried = np.linspace(low, high, TRIED)
            k = int(np.argmin(self._losses(tried) + tried * self.sums[0]))
            low, high = tried[max(0, k - 1)], tried[min(k + 1, TRIED - 1)]
        best = np.array([near, 0.5 * (low + high)])
        return float(best[np.argmin(self._losses(best) + best * self.sums[0])])


def _excess(samples: _Samples, level: float) -> tuple[Vector, Vector]:
    """By how much the rates of each sample exceed the threshold, for an increase and a decrease."""
    up, low = rates(samples.program(np.empty(0)), samples.beta, samples.F)
    return up - level, level - low


def _middle(seen: Survey, otherwise: float) -> float:
    """The threshold between the extremes of a survey; 0 without a sum."""
    if len(seen.missing) == 0:
        return 0.0
    ends = [float(end) for end in (seen.m[0], seen.M[0]) if np.isfinite(end)]
    return sum(ends) / len(ends) if ends else otherwise
