"""One run of a linear machine over parts: facts about the rows, limits, progress and the certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Csr
from mercer.linear.linear_plan import solve_linear
from mercer.linear.linear_problem import LinearProblem, Rows, conclude_linear
from mercer.linear.linear_solution import LinearOptions, LinearSolution, LinearStage
from mercer.losses.base import Vector
from mercer.parts import linear_part
from mercer.parts.layout import Parts, added
from mercer.parts.linear_part import Statement
from mercer.problems.clock import Clock
from mercer.problems.solution import Certificate, Status, TracePoint

# up to this many columns the matrix over pairs of features is computed and factored
FACTORED_UP_TO = 2000
MAX_ITER = 200
# Σβ is corrected this often by the samples inside their boxes; then those of one sign are scaled down, or all raised
BALANCING = 3
# a sum of β up to this share of Σ|β| is rounding
BALANCED = 1e-14
COLUMNS = "Scale the columns of X, for example with StandardScaler."


@dataclass(eq=False)
class PartsRun:
    """The limits and the progress of one problem over parts; ``d`` counts the constant feature of any intercept.

    With a free intercept Σβ = ``total``, which is 0 but for the one-class machine.
    """

    parts: Parts
    statement: Statement
    options: LinearOptions
    clock: Clock
    # the model to start from, and the function that is called with the model of each step
    start: Vector | None = None
    keep: Callable[[Vector], None] | None = None
    n_iter: int = 0
    trace: list[TracePoint] = field(default_factory=list)
    stopped: Status | None = None
    # when the last step began
    last: float = 0.0
    # the model whose decision values the parts have
    values_of: Vector | None = None
    # seconds of the last pass over all rows
    pass_seconds: float = 0.0
    # seconds that the next step takes at least
    least_step: float = 0.0

    def __post_init__(self) -> None:
        statement = self.statement
        if statement.penalty.l1 > 0 or not np.isfinite(statement.C):
            raise InvalidInputError(
                "Rows in parts are solved with the l2 penalty and a finite C, but "
                f"l1={statement.penalty.l1:g} and C={statement.C:g} were given. Use mercer.LinearSVC or "
                "mercer.LinearSVR on rows in memory."
            )
        if statement.intercept and statement.bias:
            raise InvalidInputError("The rows have a constant feature and the problem a free intercept: give one.")
        if self.parts.n == 0:
            raise InvalidInputError("All parts are empty: give at least one row.")
        facts = self.read_rows(self.parts.map, linear_part.state_problem, statement)
        self.d = facts[0].d
        others = [k for k, fact in enumerate(facts) if fact.d != self.d]
        if others:
            constant = int(bool(statement.bias) or statement.intercept)
            raise InvalidInputError(
                f"The first part has {self.d - constant} columns, but another one has "
                f"{facts[others[0]].d - constant}. Give all parts the same columns."
            )
        self.n = self.parts.n
        self.usable = sum(fact.usable for fact in facts)
        self.smooth = all(fact.smooth for fact in facts)
        self.sparse = any(fact.sparse for fact in facts)
        self.total = sum(fact.total for fact in facts)
        self.row_bytes = sum(fact.row_bytes * fact.n for fact in facts) / self.n
        self.low, self.high = max(fact.low for fact in facts), min(fact.high for fact in facts)
        if not np.isfinite(sum(fact.squares for fact in facts)):
            largest = max(fact.largest for fact in facts)
            raise InvalidInputError(
                f"The largest absolute value of X is {largest:g}, which is too large: the squares have no finite sum. "
                f"{COLUMNS}"
            )
        self.limit = MAX_ITER if self.options.max_iter < 0 else self.options.max_iter
        # the quadratic penalty of each feature; none for the constant feature of a free intercept
        self.q = np.full(self.d, float(statement.penalty.l2))
        if statement.intercept:
            self.q[-1] = 0.0

    def read_rows(self, run: Callable[..., Any], function: Callable[..., Any], *args: Any) -> Any:
        """A pass over all rows, by ``map`` or ``total`` of the parts; measures its seconds."""
        begun = self.clock.seconds
        found = run(function, *args)
        self.pass_seconds = self.clock.seconds - begun
        return found

    def split(self, w: Vector) -> tuple[Vector, float]:
        """The weights and the free intercept."""
        return (w[:-1], float(w[-1])) if self.statement.intercept else (w, 0.0)

    def joined(self, w: Vector, intercept: float) -> Vector:
        """The weights with the free intercept as the last one."""
        return np.append(w, intercept) if self.statement.intercept else w

    def zero_model(self) -> LinearSolution | None:
        """w = 0 if some intercept gives every sample a loss of 0; β = 0 certifies it."""
        b = 0.0
        if self.statement.intercept and self.low <= self.high:
            ends = [end for end in (self.low, self.high) if np.isfinite(end)]
            b = float(np.mean(ends)) if ends else 0.0
        if not self.low <= b <= self.high or self.total:
            return None
        return self.publish(self.joined(np.zeros(self.d - self.statement.intercept), b), "zero", Status.CONVERGED)

    def sample_model(self, size: int, tol: float) -> Vector | None:
        """The model of a random sample of about ``size`` rows, solved by the caller; None if that is too small.

        If there is a model to start from, it is returned instead.
        """
        if self.start is not None and len(self.start) == self.d:
            return self.start
        if self.total:
            return None  # `mercer.linear` has no one-class machine
        share = min(1.0, size / max(1, self.usable))
        found = self.parts.map(linear_part.sample_rows, share, self.options.seed)
        X, y, price = (list(column) for column in zip(*found, strict=True))
        rows = Rows.of(stacked(X), self.statement.bias)
        if rows.n == 0:
            return None
        prices = np.concatenate(price)
        problem = LinearProblem(
            rows,
            self.statement.loss,
            np.concatenate(y),
            prices * (self.usable / len(prices)),
            self.statement.intercept,
            self.statement.penalty,
        )
        solution = solve_linear("auto", problem, replace(self.options, tol=tol, max_iter=self.limit), self.clock)
        self.n_iter += solution.n_iter
        w = self.joined(solution.w, solution.intercept)
        return w if np.isfinite(w).all() else None

    def sample_size(self, wanted: float) -> int:
        """``wanted`` rows, or as many as the caller's memory allows."""
        most = min(self.parts.sample_numbers // self.d, int(self.parts.budget / 8 / max(1.0, self.row_bytes)))
        return int(min(wanted, most))

    def report(self, gap: float, dual: float, active: int, w: Vector | None = None) -> None:
        """Append a point to the trace, report it, and ask the clock. ``w`` is the present model."""
        if self.keep is not None and w is not None:
            self.keep(w)
        point = TracePoint(self.clock.seconds, self.n_iter, gap, dual, active)
        self.trace.append(point)
        self.clock.report(point)
        # do not begin a step that would end, with its certificate, after the time limit
        before, self.last = self.last, self.clock.seconds
        step = max(self.least_step, self.last - before if before else 0.0)
        self.stopped = self.clock.over_in(step + self.ending)

    @property
    def ending(self) -> float:
        """Seconds of the passes over all rows that follow the last step: certificates of the model and of the start."""
        passes = int(not self.smooth or self.statement.intercept) + int(not self.smooth and self.start is not None)
        return passes * self.pass_seconds

    def publish(self, w: Vector, solver: str, status: Status | None = None, v: Vector | None = None) -> LinearSolution:
        """Make β feasible and certify the model; ``status`` None means: converged if the gap is within tol.

        ``v`` is X'β if the pass that has computed the decision values of w has found it, too.
        """
        if self.keep is not None:
            self.keep(w)
        weights, intercept = self.split(w)
        has_f = self.values_of is not None and bool(np.array_equal(self.values_of, w))
        # a free intercept changes β
        proof = self.certify(weights, intercept, has_f, None if self.statement.intercept else v)
        done = proof.valid and proof.relative_gap <= self.options.tol
        ended = Status.CONVERGED if done else (status or self.stopped or Status.STALLED)
        solution = LinearSolution(
            weights, intercept, np.empty(0), ended, self.n_iter, self.clock.seconds, proof, self.trace
        )
        return replace(solution, stages=(LinearStage.of(solver, solution),))

    def not_above_start(self, found: LinearSolution) -> LinearSolution:
        """The solution, or the model to start from if its primal value is lower; the same β certifies it."""
        if self.start is None or len(self.start) != self.d:
            return found
        w, intercept = self.split(self.start)
        if np.array_equal(w, found.w) and intercept == found.intercept:
            return found
        proof = self.certify(w, intercept, False)
        if not proof.primal < found.certificate.primal:
            return found
        if self.keep is not None:
            self.keep(self.start)
        return replace(found, w=w, intercept=intercept, certificate=proof)

    def certify(self, w: Vector, intercept: float, has_f: bool, known: Vector | None = None) -> Certificate:
        """The exact duality gap, from one pass over all rows.

        ``has_f``: the parts have the decision values. If X'β is ``known``, too, no row is read.
        """
        self._balance()
        has_v = known is not None
        found = self.parts.map(linear_part.certify_part, w, intercept, has_f, has_v, reads=not (has_f and has_v))
        penalty = self.statement.penalty
        v, loss, gain, terms, total = added([part[:5] for part in found])
        v = v if known is None else known
        violation, outside, largest = (max(column) for column in list(zip(*found, strict=True))[5:])
        primal, dual = penalty.value(w) + loss + intercept * self.total, gain - penalty.conjugate(v)
        infeasible = max(outside, abs(total - self.total)) if self.statement.intercept else outside
        terms += float(np.abs(v) @ np.abs(w))
        if not np.isfinite([primal, dual, infeasible]).all():
            primal, dual, infeasible = np.inf, -np.inf, np.inf
        return conclude_linear(primal, dual, terms, violation, infeasible, largest, self.statement.loss.name)

    def _balance(self) -> None:
        """For a free intercept, put β into its box and give it its sum."""
        if not self.statement.intercept:
            return
        for attempt in range(BALANCING + 1):
            found, size, squares = self.parts.total(linear_part.room_in_box, reads=False)
            excess = found - self.total
            if abs(excess) <= BALANCED * size:
                return
            if squares > 0 and attempt < BALANCING:
                self.parts.map(linear_part.shift_to_balance, -excess / squares, reads=False)
        if excess < 0 < self.total:
            (room,) = self.parts.total(linear_part.room_above, reads=False)
            self.parts.map(linear_part.raise_to_balance, -excess / room, reads=False)
            return
        sign = float(np.sign(excess))
        (own,) = self.parts.total(linear_part.sum_of_sign, sign, reads=False)
        self.parts.map(linear_part.scale_to_balance, sign, 1.0 - excess / own, reads=False)


def stacked(blocks: list[Any]) -> Any:
    """Arrays, `Csr` or scipy matrices one below the other; sparse if one of them is."""
    if not any(isinstance(X, Csr) or sp.issparse(X) for X in blocks):
        return np.concatenate(blocks)
    return sp.csr_array(
        sp.vstack(
            [
                sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape) if isinstance(X, Csr) else sp.csr_array(X)
                for X in blocks
            ]
        )
    )
