"""The optimisation problem, complete: its dual, its optimality conditions and its certificate."""

from mercer.problems.certificate import Certificate, certificate, combine
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
