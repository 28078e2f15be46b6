"""Options and results of the linear solvers.

Each solver is a function ``solve(problem, options, clock, start=None)`` that returns a `LinearSolution`. It raises
`InvalidInputError` for a loss or penalty that it does not support.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mercer.losses.base import Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import Certificate, Status, TracePoint


def has_time(clock: Clock, nanoseconds: float) -> bool:
    """Whether work that takes about this long ends before the time limit."""
    return clock.deadline is None or time.perf_counter() + 1e-9 * nanoseconds <= clock.deadline


if TYPE_CHECKING:
    from mercer.svm.hard_margins.separation import Separation


@dataclass(frozen=True)
class LinearOptions:
    """Tolerance, limits and settings of one run.

    Attributes
    ----------
    tol : the relative duality gap, (primal − dual) / max(|primal|, |dual|), at which a run ends.
    max_iter : iterations at most, in the solver's own unit; -1 for no limit.
    time_limit : seconds at most, or None; enforced by the `Clock` of the fit.
    n_threads : threads for products with the data.
    rule : which coordinate is next in solver="coordinate": "round-robin", "random" or "greedy".
    seed : seed of all random choices.
    budget : bytes for copies of parts of the data.
    entries_at_a_time : entries of X that coordinate descent reads between two checks of the clock.
    trial_passes : passes of the trial of `hybrid` by solver="auto"; 0 to estimate them from the sizes.
    """

    tol: float = 1e-4
    max_iter: int = -1
    time_limit: float | None = None
    n_threads: int = 1
    rule: str = "random"
    seed: int = 0
    budget: int = 1 << 28
    entries_at_a_time: int = 1 << 23
    trial_passes: int = 0


# the unit of n_iter, where it is not a Newton or interior-point step
UNITS = {"coordinate": "passes", "hybrid": "passes", "crammer_singer": "passes"}


@dataclass(frozen=True)
class LinearStage:
    """The part of a run that one solver did.

    Attributes
    ----------
    solver : its name.
    n_iter : its iterations, in its own unit.
    relative_gap : of its model.
    status : how it ended; the next stage, if any, continued from its result.
    """

    solver: str
    n_iter: int
    relative_gap: float
    status: Status

    @classmethod
    def of(cls, solver: str, solution: Any) -> LinearStage:
        """The stage that has ended with this solution."""
        return cls(solver, int(solution.n_iter), float(solution.certificate.relative_gap), solution.status)

    def __str__(self) -> str:
        unit = UNITS.get(self.solver, "steps")
        return f"{self.solver} ({self.n_iter} {unit}, relative gap {self.relative_gap:.1e})"


@dataclass(frozen=True)
class LinearPlan:
    """The solvers that ran for each problem of a linear machine, in order.

    Attributes
    ----------
    runs : the stages of each problem: one problem for two classes or a regression, one per class for one-vs-rest.
    """

    runs: tuple[tuple[LinearStage, ...], ...]

    def __str__(self) -> str:
        lines = [
            ", then ".join(map(str, stages)) + (f": {stages[-1].status.value}" if stages else "")
            for stages in self.runs
        ]
        if len(lines) <= 1:
            return lines[0] if lines else "no solver has run: the model was imported"
        return "\n".join(f"problem {k}: {line}" for k, line in enumerate(lines))


@dataclass
class LinearSolution:
    """A model (w, b), the dual β that certifies it, and the record of the run.

    Attributes
    ----------
    w : the weights; the last one is that of the constant feature if the rows have one.
    intercept : the free b; 0 if there is none.
    beta : one entry per sample, in the box of the loss.
    status : how the run ended.
    n_iter : iterations, in the solver's own unit.
    seconds : since the clock was started.
    certificate : of w, b and beta, recomputed from the data.
    trace : one point per iteration; its ``violation`` is the relative gap.
    separation : set if a hard margin has no model: the proof that the classes are not separable, or why it is
        undecided.
    stages : the solvers that ran, in order; set by `plan.solve_linear`.
    """

    w: Vector
    intercept: float
    beta: Vector
    status: Status
    n_iter: int
    seconds: float
    certificate: Certificate
    trace: list[TracePoint] = field(default_factory=list)
    separation: Separation | None = None
    stages: tuple[LinearStage, ...] = ()
