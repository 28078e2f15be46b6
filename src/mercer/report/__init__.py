"""One page about a trained model: what was learnt, how good, how certain, what to worry about."""

from mercer.report.importance import decision_gradients
from mercer.report.page import write_report

__all__ = ["decision_gradients", "write_report"]
