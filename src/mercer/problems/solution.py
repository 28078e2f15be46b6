"""What goes into a solver and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from mercer.losses.base import Vector
from mercer.problems.certificate import Certificate

if TYPE_CHECKING:
    from mercer.svm.plan import Plan
    from mercer.svm.separation import Separation


class Status(Enum):
    """How a run ended. All but UNBOUNDED and UNDECIDED leave a feasible, certified model."""

    CONVERGED = "the certificate is within tol"
    MAX_ITER = "max_iter steps were taken"
    TIME_LIMIT = "the time limit was reached"
    INTERRUPTED = "the run was interrupted"
    STALLED = "rounding does not allow further progress"
    SINGULAR = "the matrix is singular: the least-squares solution was taken"
    INDEFINITE = "the matrix is not a kernel matrix: a stationary point was taken"
    UNBOUNDED = "the dual grows without limit: no model meets the constraints"
    UNDECIDED = "rounding hides whether a model meets the constraints"


# no model meets the constraints, or rounding hides it
WITHOUT_MODEL = (Status.UNBOUNDED, Status.UNDECIDED)


class TracePoint(NamedTuple):
    """One line of the record of a run."""

    seconds: float
    steps: int
    violation: float
    dual: float
    active: int


@dataclass(frozen=True)
class Options:
    """What a user may ask of a run.

    Attributes
    ----------
    tol : the largest KKT violation allowed, in units of the decision function.
    max_iter : steps at most, -1 for no limit: a pair step, a Newton step on the free variables and a step of an
        interior-point method are one each.
    time_limit : seconds at most, or None.
    budget, costly_budget : bytes for kernel rows; for those whose values take long to compute, if that is more.
    shrinking : leave out variables that seem settled at a bound, and check them at the end.
    working_set : members of a block; 0 to choose.
    n_threads : threads for kernel rows and products.
    precision : "float32", "float64" or "auto".
    solver : "auto" and "decomposition" are the exact solver for all sizes, "qp" is the interior-point method.
    plan : how to solve the problem, or all pairs of classes (``Plan.pairs``); None to decide.
    """

    tol: float = 1e-3
    max_iter: int = -1
    time_limit: float | None = None
    budget: int = 1 << 30
    costly_budget: int = 0
    shrinking: bool = True
    working_set: int = 0
    n_threads: int = 1
    precision: str = "auto"
    solver: str = "auto"
    plan: Plan | None = None

    def shared(self, n_runs: int) -> Options:
        """For one of so many runs side by side, each on one thread."""
        budget, costly_budget = self.budget // n_runs, self.costly_budget // n_runs
        return replace(self, n_threads=1, budget=budget, costly_budget=costly_budget)


@dataclass
class Solution:
    """A feasible β with what is known about it.

    ``separation`` is there for hard margins without a model: the proof that the classes are not separable, or what is
    known instead. ``plan`` says how it was found, where there was a choice.
    """

    beta: Vector
    F: Vector
    thresholds: Vector
    status: Status
    steps: int
    seconds: float
    certificate: Certificate
    trace: list[TracePoint] = field(default_factory=list)
    separation: Separation | None = None
    plan: Plan | None = None

    def taken(self, order: Any) -> Self:
        """The same with its samples in another order: first the one that is now at order[0]."""
        found = self.separation
        if found is not None:
            found = replace(found, coef=found.coef[order], weights=found.weights[order])
        return replace(self, beta=self.beta[order], F=self.F[order], separation=found)

    @property
    def squared_norm(self) -> float:
        """|w|^2 = b'Kb, in the scale of the solved problem."""
        n = len(self.F)
        folded = self.beta[:n] + self.beta[n:] if len(self.beta) > n else self.beta
        return float(folded @ self.F)


def unfinished(
    beta: Vector, F: Vector, thresholds: Vector, steps: int, seconds: float, violation: float, dual: float
) -> Solution:
    """A run as it is now, for those who watch it."""
    undefined = float("inf")
    proof = Certificate(undefined, dual, undefined, undefined, violation, 0.0, False, "a run", "the run goes on")
    return Solution(beta.copy(), F.copy(), thresholds, Status.INTERRUPTED, steps, seconds, proof)
