"""The input and the output of a solver: `Options`, `Status`, `TracePoint`, `Solution`."""

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


# there is no model, or rounding hides whether there is one
WITHOUT_MODEL = (Status.UNBOUNDED, Status.UNDECIDED)


class TracePoint(NamedTuple):
    """The progress of a run at one point: seconds, steps, KKT violation, dual value, number of active samples."""

    seconds: float
    steps: int
    violation: float
    dual: float
    active: int


@dataclass(frozen=True)
class Options:
    """The settings of a run.

    Attributes
    ----------
    tol : the largest KKT violation allowed, in units of the decision function.
    max_iter : most steps, -1 for no limit. A pair step, a Newton step on the free variables and a step of an
        interior-point method count as one each.
    time_limit : most seconds, or None.
    budget, costly_budget : bytes for kernel rows; the second for kernels whose values take long to compute, if it is
        larger.
    shrinking : make samples inactive that seem settled at a bound, and check them at the end.
    working_set : members of a working set; 0 to choose.
    n_threads : threads for kernel rows and products.
    precision : "float32", "float64" or "auto".
    solver : "auto" or "decomposition" for the exact solver, "qp" for the interior-point method.
    plan : forces a plan for the problem, or for all pairs of classes (``Plan.pairs``); None to choose.
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
        """The options of one of ``n_runs`` runs in parallel, each on one thread with its share of the memory."""
        budget, costly_budget = self.budget // n_runs, self.costly_budget // n_runs
        return replace(self, n_threads=1, budget=budget, costly_budget=costly_budget)


@dataclass
class Solution:
    """A feasible β, F = Kβ, the thresholds, and the certificate.

    ``separation`` is set for hard margins without a model: the proof that the classes are not separable, or what is
    known instead. ``plan`` is the plan that was followed, if there was a choice.
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
        """The solution with its samples in another order: sample order[0] comes first."""
        found = self.separation
        if found is not None:
            found = replace(found, coef=found.coef[order], weights=found.weights[order])
        return replace(self, beta=self.beta[order], F=self.F[order], separation=found)

    @property
    def squared_norm(self) -> float:
        """|w|² = β'Kβ, in the scale of the solved problem."""
        n = len(self.F)
        folded = self.beta[:n] + self.beta[n:] if len(self.beta) > n else self.beta
        return float(folded @ self.F)


def unfinished(
    beta: Vector, F: Vector, thresholds: Vector, steps: int, seconds: float, violation: float, dual: float
) -> Solution:
    """The present state of a run, for callbacks."""
    undefined = float("inf")
    proof = Certificate(undefined, dual, undefined, undefined, violation, 0.0, False, "a run", "the run goes on")
    return Solution(beta.copy(), F.copy(), thresholds, Status.INTERRUPTED, steps, seconds, proof)
