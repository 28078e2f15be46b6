"""What users see of a fit while it runs, and where its warnings point to."""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from types import FrameType
from typing import Any

from mercer.problems.clock import Clock, Progress
from mercer.problems.solution import TracePoint

logger = logging.getLogger("mercer")


def watcher(
    estimator: Any, context: Any, clock: Clock, task: dict[str, Any], measure: str = "violation"
) -> Progress | None:
    """What is told of each round: the log if verbose, and scikit-learn's callbacks if there are any.

    ``task`` is what callbacks are told of the fit, ``measure`` names what the run brings down to tol. Callbacks that
    ask for a fitted estimator get that of the round where the run is one problem, else None.
    """
    verbose, has_callbacks = bool(estimator.verbose), bool(getattr(estimator, "_skl_callbacks", None))
    if not verbose and not has_callbacks:
        return None
    if verbose:
        show_log()
    lock = threading.Lock()  # pairs of classes may be solved side by side

    def watch(point: TracePoint) -> bool:
        with lock:
            if verbose:
                line = f"%8.2f s  %9d steps  {measure} %.3e  dual %.8g  active %d"
                logger.info(line, *point)
            if not has_callbacks:
                return False
            here = context.subcontext(task_name="round")
            here.call_on_fit_task_begin(**task)
            return bool(here.call_on_fit_task_end(**task, reconstruction_attributes=clock.attributes()))

    return watch


def show_log() -> None:
    """Let the log be seen if nobody has set one up."""
    if not logger.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("[mercer] %(message)s"))
        logger.addHandler(handler)
    if logger.getEffectiveLevel() > logging.INFO:
        logger.setLevel(logging.INFO)


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line outside of mercer and scikit-learn that has called them."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("mercer", "sklearn"):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
