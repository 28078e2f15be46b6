"""The only place that ranks the linear solvers."""

from __future__ import annotations

from importlib import import_module

from mercer.problems.linear import LinearProblem
from mercer.solvers.base import Clock
from mercer.solvers.linear.base import LinearOptions, LinearSolution

NAMES = ("auto", "interior", "coordinate", "newton")


def solve_linear(
    name: str, problem: LinearProblem, options: LinearOptions, clock: Clock, start: LinearSolution | None = None
) -> LinearSolution:
    """Solve with the solver of this name; "auto" is the one that was fastest on problems of this kind."""
    chosen = ranked(problem, options) if name == "auto" else name
    solution: LinearSolution = import_module(f"mercer.solvers.linear.{chosen}").solve(problem, options, clock, start)
    return solution


def ranked(problem: LinearProblem, options: LinearOptions) -> str:
    """The name of the solver for this problem."""
    return "interior"
