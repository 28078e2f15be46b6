"""Write an HTML report about a trained model: what was learnt, how good and how certain it is, what to worry about."""

from mercer.report.importance import decision_gradients
from mercer.report.page import write_report

__all__ = ["decision_gradients", "write_report"]
