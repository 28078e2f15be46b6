"""Train a model on a table: prepare the columns, search the parameters, fit, estimate the score, summarise."""

from mercer.workflow.preparation import detect_task, pipeline_for
from mercer.workflow.training import Outcome, train

__all__ = ["Outcome", "detect_task", "pipeline_for", "train"]
