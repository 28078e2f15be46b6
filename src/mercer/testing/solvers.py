"""The conformance check for solvers: they reach tol, and their certificates are true."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from mercer.gram.operator import Data
from mercer.kernels import Gaussian, Kernel, Linear
from mercer.losses import (
    EpsilonInsensitive,
    HardMargin,
    Hinge,
    Loss,
    NuHinge,
    NuInsensitive,
    OneClass,
    Pinball,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from mercer.losses.base import Index, Vector
from mercer.problems import certificate, infeasibility, violation
from mercer.problems.clock import Clock
from mercer.problems.dual import DualProblem
from mercer.problems.solution import Options, Solution, Status
from mercer.svm.interior_qp import interior_point
from mercer.testing.comparison import Matrix, claim

Solve = Callable[..., Solution]

LOSSES: tuple[Loss, ...] = (
    Hinge(),
    SquaredHinge(),
    HardMargin(),
    EpsilonInsensitive(0.1),
    SquaredEpsilonInsensitive(0.1),
    SquaredEpsilonInsensitive(0.0),
    Pinball(0.3),
    OneClass(0.3),
    NuHinge(0.3),
    NuInsensitive(0.4),
)
N_SAMPLES = 40
# allowed rounding error: of sums and bounds relative to the largest |beta|, of values relative to the terms they sum
ROUNDING = 1e-10


class Task(NamedTuple):
    """A small problem and its kernel matrix."""

    name: str
    kernel: Kernel
    X: Matrix
    K: Matrix
    problem: DualProblem

    @property
    def data(self) -> Data:
        """The samples, not yet prepared."""
        return Data(self.kernel, self.X, len(self.X))

    def F(self, beta: Vector) -> Vector:
        """K beta over samples, by numpy."""
        F: Vector = self.K @ self.problem.qp.at_samples(beta, len(self.X))
        return F

    def objective(self, beta: Vector) -> float:
        """The objective that is minimised, by its definition."""
        qp = self.problem.qp
        whole = qp.at_samples(beta, len(self.X))
        return float(0.5 * whole @ self.K @ whole - qp.linear @ beta + qp.l1 @ np.abs(beta) + 0.5 * qp.ridge @ beta**2)

    def reordered(self, order: Index) -> Task:
        """The same problem with its samples in another order."""
        return self._replace(X=self.X[order], K=self.K[np.ix_(order, order)], problem=self.problem.restrict(order))


def tasks(
    losses: tuple[Loss, ...] = LOSSES, n: int = N_SAMPLES, seed: int = 0, intercepts: tuple[bool, ...] = (True, False)
) -> Iterator[Task]:
    """Each loss with and without an intercept, with unequal weights, on a Gaussian and a linear kernel."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    signal = X[:, 0] + 0.5 * rng.normal(size=n)
    labels = np.where(signal > np.median(signal), 1.0, -1.0)
    weight = rng.uniform(0.5, 4.0, size=n)
    weight[n // 2] = 0.0
    for loss in losses:
        regression = isinstance(loss, (EpsilonInsensitive, SquaredEpsilonInsensitive, Pinball, NuInsensitive))
        for kernel in (Gaussian(0.5), Linear()):
            if isinstance(loss, HardMargin) and isinstance(kernel, Linear):
                continue  # these labels are not separable
            for intercept in (True,) if hasattr(loss, "nu") else intercepts:
                problem = DualProblem(None, loss, signal if regression else labels, weight, intercept)
                name = f"{loss!r}, {kernel!r}, {'with' if intercept else 'without'} an intercept"
                yield Task(name, kernel, X, kernel(X), problem)


def check_solver(solve: Solve, losses: tuple[Loss, ...] = LOSSES, intercepts: tuple[bool, ...] = (True, False)) -> None:
    """Check that ``solve(data, problem, options, clock, start)`` keeps the contract of ``mercer.svm``.

    On small problems with every loss it reaches tol. Its beta is feasible, and its objective agrees with that of an
    interior-point method as far as tol requires. Its certificate equals one computed anew from K beta. Neither the
    order of the samples nor the start matters, and a run that is stopped early returns a feasible beta. ``losses`` are
    the losses that the solver supports; ``intercepts=(True,)`` is for one that needs an intercept.

    >>> from mercer.svm.solve import solve
    >>> from mercer.losses import Hinge
    >>> check_solver(solve, (Hinge(),))
    """
    rng = np.random.default_rng(1)
    for task in tasks(losses, intercepts=intercepts):
        best, _, _ = interior_point(task.K, task.problem.qp)
        for tol in (1e-3, 1e-5):
            solution = _solve(solve, task, Options(tol=tol))
            claim(solution.status is Status.CONVERGED, f"{task.name}: the run ended as {solution.status.name}.")
            check_solution(task, solution, tol)
            _check_value(task, solution.beta, best, tol, "the optimum of the interior-point method")
        again = _solve(solve, task, Options(tol=tol), start=solution.beta)
        check_solution(task, again, tol)
        order = rng.permutation(len(task.X))
        other = _solve(solve, task.reordered(order), Options(tol=tol))
        _check_value(task, _restored(task, other.beta, order), best, tol, "the optimum in another order of the samples")
        check_solution(task, _solve(solve, task, Options(tol=tol, max_iter=1)), np.inf)


def check_solution(task: Task, solution: Solution, tol: float) -> None:
    """A solution is feasible and within tol, and its certificate is true."""
    qp, problem = task.problem.qp, task.problem
    claim(
        solution.beta.shape == (qp.n_vars,),
        f"{task.name}: beta has the shape {solution.beta.shape} for {qp.n_vars} variables.",
    )
    missed, largest = infeasibility(qp, solution.beta), float(np.abs(solution.beta).max())
    claim(missed <= ROUNDING * max(largest, 1e-300), f"{task.name}: beta is infeasible by {missed:.3g}.")
    F = task.F(solution.beta)
    proof = certificate(qp, problem.loss, problem.y, problem.weight, solution.beta, F, solution.thresholds)
    # the sizes of sums whose terms, each at most sqrt(K_ii K_jj) |beta_j|, may cancel
    lengths = np.sqrt(np.abs(np.diagonal(task.K)))
    reach = float(lengths @ np.abs(qp.at_samples(solution.beta, len(lengths))))
    slopes = float(lengths.max()) * reach + float(np.abs(qp.linear).max())
    size = reach**2 + float(np.abs(qp.linear * solution.beta).sum()) + (proof.primal if proof.primal < np.inf else 0.0)
    claim(
        proof.kkt_violation <= tol + ROUNDING * slopes,
        f"{task.name}: the KKT violation is {proof.kkt_violation:.3g}, but tol is {tol:g}.",
    )
    for name, scale in (("primal", size), ("dual", size), ("gap", size), ("kkt_violation", slopes)):
        said, found = getattr(solution.certificate, name), getattr(proof, name)
        claim(
            said == found or abs(said - found) <= ROUNDING * scale,
            f"{task.name}: the certificate says {name} = {said:.9g}, but K beta gives {found:.9g}.",
        )


def _solve(solve: Solve, task: Task, options: Options, start: Vector | None = None) -> Solution:
    """Run the solver on samples that are not prepared, and check that it does not edit the start."""
    before = None if start is None else start.copy()
    solution = solve(task.data, task.problem, options, Clock(), start)
    if start is not None and before is not None:
        claim(np.array_equal(start, before), f"{task.name}: the solver has edited the start.")
    return solution


def _check_value(task: Task, beta: Vector, best: Vector, tol: float, what: str) -> None:
    """Check the objective: a convex function exceeds its optimum by at most the violation times the distance."""
    value, optimum = task.objective(beta), task.objective(best)
    allowed = tol * float(np.abs(beta - best).sum()) + ROUNDING * (abs(value) + abs(optimum))
    # the violation of the reference solution
    allowed += violation(task.problem.qp, best, task.F(best)) * float(np.abs(beta - best).sum())
    claim(abs(value - optimum) <= allowed, f"{task.name}: the objective is {value:.9g}, but {what} is {optimum:.9g}.")


def _restored(task: Task, beta: Vector, order: Index) -> Vector:
    """beta of the reordered samples, in the original order."""
    n, qp = len(order), task.problem.qp
    restored = np.empty_like(beta)
    for first in range(0, qp.n_vars, n):
        restored[first + order] = beta[first : first + n]
    return restored
