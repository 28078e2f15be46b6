"""The optimisation problem: its dual, its optimality conditions and the certificate of a solution."""

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
