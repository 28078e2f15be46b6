"""Theory applied to samples and fitted models: margins, separability, error bounds, optimality, diagnosis.

Every function returns a report that prints as text and has its numbers as attributes.
"""

from mercer.svm.hard_margins.separation import Separation
from mercer.theory import bounds
from mercer.theory.bounds import BoundReport, BoundReports, error_bounds
from mercer.theory.conversions import C_to_lambda, alpha_to_lambda, lambda_to_alpha, lambda_to_C
from mercer.theory.diagnosis import diagnose
from mercer.theory.findings import Diagnosis, Finding, HeldOutScores
from mercer.theory.kkt import KKTReport, Optimality, kkt_report
from mercer.theory.margins import MarginReport, Margins, margins
from mercer.theory.separability import PairSeparability, SeparabilityReport, separability
from mercer.theory.unit_hyperplanes import UnitHyperplane, unit_hyperplanes

__all__ = [
    "BoundReport",
    "BoundReports",
    "C_to_lambda",
    "Diagnosis",
    "Finding",
    "HeldOutScores",
    "KKTReport",
    "MarginReport",
    "Margins",
    "Optimality",
    "PairSeparability",
    "SeparabilityReport",
    "Separation",
    "UnitHyperplane",
    "alpha_to_lambda",
    "bounds",
    "diagnose",
    "error_bounds",
    "kkt_report",
    "lambda_to_C",
    "lambda_to_alpha",
    "margins",
    "separability",
    "unit_hyperplanes",
]
