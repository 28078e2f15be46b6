"""The whole way from a table to a model: columns prepared, parameters chosen, the result judged and summed up."""

from mercer.workflow.preparation import detect_task, pipeline_for
from mercer.workflow.training import Outcome, train

__all__ = ["Outcome", "detect_task", "pipeline_for", "train"]
