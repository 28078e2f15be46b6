"""The optimisation problem: its dual, its optimality conditions and the certificate of a solution."""

from mercer.problems.dual import (
    DualProblem,
    brackets,
    dual_objective,
    feasible_start,
    infeasibility,
    rates,
    slopes,
    thresholds,
    violation,
)
from mercer.problems.solution import Certificate, certificate, combine

__all__ = [
    "Certificate",
    "DualProblem",
    "brackets",
    "certificate",
    "combine",
    "dual_objective",
    "feasible_start",
    "infeasibility",
    "rates",
    "slopes",
    "thresholds",
    "violation",
]
