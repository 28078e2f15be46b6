"""The ramp loss, min(hinge, clip), by the concave-convex procedure (Yuille & Rangarajan, 2003).

Each round solves a convex problem: samples whose hinge loss exceeds ``clip`` are given up, which linearises the concave
part of their loss. The objective never increases. One of the starts is that of [SSBD] Exercise 16.6.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mercer.gram.operator import Data, product
from mercer.kernels.features import Vector
from mercer.losses import GivenUpHinge, Loss, ramp
from mercer.problems.clock import Clock
from mercer.problems.solution import Options, Solution, Status
from mercer.svm.solve import solve_problem

# a relative change of the objective below this is rounding, or the tolerance of the solver
PROGRESS = 1e-9


@dataclass(frozen=True)
class RampSolution(Solution):
    """The solution of the last convex problem, the ramp objectives of all rounds, and the samples given up."""

    objectives: tuple[float, ...] = ()
    given_up: Vector = ()  # type: ignore[assignment]
    stationary: bool = True

    def reordered(self, order: Vector) -> RampSolution:
        """The solution with its samples in another order: sample order[0] comes first."""
        given_up = np.zeros(len(order), bool)
        given_up[self.given_up] = True
        return replace(super().reordered(order), given_up=np.flatnonzero(given_up[order]))


@dataclass(frozen=True)
class RampSolver:
    """Solves the problem of two classes with the ramp loss.

    Attributes
    ----------
    clip : the largest loss of a sample.
    max_rounds : most convex problems, from each start.
    start : "svc", "means" or "both".
    """

    clip: float
    max_rounds: int
    start: str

    def __call__(
        self,
        data: Data,
        loss: Loss,
        y: Vector,
        weight: Vector,
        intercept: bool,
        options: Options,
        clock: Clock,
        start: Vector | None,
    ) -> Solution:
        """Run the concave-convex procedure on one pair of classes, from each start. Returns the lowest result."""
        first = solve_problem(data, loss, y, weight, intercept, options, clock, start)
        up, objective = self._evaluate(first, y, weight)
        ends = []
        # the start from class means needs all kernel values
        limited = clock.left < np.inf
        in_time = not limited or clock.over_in(data.seconds(data.n, data.n, options.n_threads)) is None
        if self.start != "means" or not (up.any() and in_time):
            ends.append(self._descend(data, y, weight, intercept, options, clock, first, up, (objective,)))
        if self.start != "svc" and up.any() and in_time:
            far = self._far(data, y, weight, options.n_threads)
            ends.append(self._descend(data, y, weight, intercept, options, clock, first, far, ()))
        best = min(ends, key=lambda end: end.objectives[-1])
        steps = first.steps + sum(end.steps for end in ends)
        trace = first.trace + [point for end in ends for point in end.trace]
        return replace(best, steps=steps, trace=trace, seconds=clock.seconds)

    def _descend(
        self,
        data: Data,
        y: Vector,
        weight: Vector,
        intercept: bool,
        options: Options,
        clock: Clock,
        solution: Solution,
        up: Vector,
        objectives: tuple[float, ...],
    ) -> RampSolution:
        """Descend from a solution and the samples ``up`` to be given up; each solution is the start of the next.

        ``objectives`` holds the objective of the solution if ``up`` was derived from the solution; else it is empty.
        """
        given_up, stationary = np.zeros(len(y), dtype=bool), bool(objectives) and not up.any()
        steps, trace = 0, []
        while not stationary and len(objectives) < self.max_rounds and solution.status is Status.CONVERGED:
            labels = np.where(up, 2.0 * y, y)
            found = solve_problem(data, GivenUpHinge(), labels, weight, intercept, options, clock, solution.beta)
            steps += found.steps
            trace += found.trace
            next_up, objective = self._evaluate(found, y, weight)
            converged = found.status is Status.CONVERGED
            if objectives and converged and objective > objectives[-1] + PROGRESS * abs(objectives[-1]):
                stationary = True  # no gain beyond the tolerance of the solver
                break
            solution, given_up, objectives = found, up, (*objectives, objective)
            stationary, up = bool(np.array_equal(next_up, up)), next_up
        if not objectives:  # the time was over before the first round
            objectives = (self._evaluate(solution, y, weight)[1],)
        return RampSolution(
            solution.beta,
            solution.F,
            solution.thresholds,
            solution.status,
            steps,
            clock.seconds,
            replace(solution.certificate, of="last convex problem of the ramp loss"),
            trace,
            plan=solution.plan,
            objectives=objectives,
            given_up=np.flatnonzero(given_up),
            stationary=stationary,
        )

    def _far(self, data: Data, y: Vector, weight: Vector, n_threads: int) -> Vector:
        """Samples closer to the mean of the other class ([SSBD] Exercise 16.6): no single sample moves a mean far."""
        means = np.array([np.where(y == sign, weight, 0.0) for sign in (1.0, -1.0)])
        means /= means.sum(axis=1, keepdims=True)
        features = data.features(np.float64)
        scores = product(data.kernel, features, features, np.ascontiguousarray(means.T), n_threads)
        scores -= 0.5 * np.einsum("ij,ji->i", means, scores)
        return (y * (scores[:, 0] - scores[:, 1]) < 0) & (weight > 0)

    def _evaluate(self, solution: Solution, y: Vector, weight: Vector) -> tuple[Vector, float]:
        """Which samples cost more than ``clip``, and the objective of the ramp loss.

        F of samples far from every kink of the loss may be approximate; that changes neither.
        """
        b = solution.thresholds[0] if len(solution.thresholds) else 0.0
        f = solution.F + b
        paid = ramp(y, f, clip=self.clip)
        objective = 0.5 * max(0.0, solution.squared_norm) + float((weight * paid).sum())
        return (1.0 - y * f > self.clip) & (weight > 0), objective
