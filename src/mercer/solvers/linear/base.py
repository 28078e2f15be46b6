"""What goes into a linear solver and what comes out of it.

Each solver is a function ``solve(problem, options, clock, start=None)`` that returns a `LinearSolution`, and raises
`InvalidInputError` with a sentence if it is asked for what it cannot do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mercer.losses.base import Vector
from mercer.problems.certificate import Certificate
from mercer.solvers.base import Status, TracePoint

if TYPE_CHECKING:
    from mercer.solvers.separation import Separation


@dataclass(frozen=True)
class LinearOptions:
    """What a user may ask of a run.

    Attributes
    ----------
    tol : the relative duality gap, (primal − dual) / max(|primal|, |dual|), at which a run ends.
    max_iter : iterations at most, in the solver's own unit; -1 for no limit.
    time_limit : seconds at most, or None; kept by the `Clock` of the fit.
    n_threads : threads for products with the data.
    rule : which coordinate is next: "round-robin", "random" or "greedy".
    seed : of everything that is drawn.
    budget : bytes for copies of parts of the data.
    """

    tol: float = 1e-4
    max_iter: int = -1
    time_limit: float | None = None
    n_threads: int = 1
    rule: str = "random"
    seed: int = 0
    budget: int = 1 << 28


@dataclass
class LinearSolution:
    """A model, the β that proves how good it is, and what is known about it.

    Attributes
    ----------
    w : the weights; the last one is that of the constant feature if the rows have one.
    intercept : the free b; 0 without.
    beta : in the box of the loss, one per sample.
    status : how the run ended.
    n_iter : iterations, in the solver's own unit.
    seconds : since the clock was started.
    certificate : of w, b and beta, recomputed from the data.
    trace : points of the run; their ``violation`` is the relative gap.
    separation : for hard margins without a model, the proof that the classes are not separable, or what is known.
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
