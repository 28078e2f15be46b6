"""The progress of a training job, an estimate of its remaining time, and the effect of Ctrl-C in each stage."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

from mercer.problems.clock import Clock
from mercer.selection.search.candidates import Table

READING, SEARCH, FIT, JUDGING, REPORT = "reading", "search", "final fit", "judging", "report"
# the remaining time is estimated after this share of the work and this many seconds
FIRST_SHARE, FIRST_SECONDS = 0.05, 1.0
# the work of a report, in fits of the search
PAGE_WORK = 10.0
AGAIN = "press Ctrl-C again to stop without a model"


@dataclass(frozen=True)
class Progress:
    """The progress of a job.

    Attributes
    ----------
    stage : the current stage.
    share : the completed share of the whole job, by number of fits; None if unknown.
    seconds_left : the estimated remaining time of the whole job; None if unknown.
    detail : more information, such as the best score so far.
    begins : whether the stage has just begun.
    """

    stage: str
    share: float | None
    seconds_left: float | None
    detail: str
    begins: bool = False


class Job(Clock):
    """The stages of a job. Calls ``show`` with the progress, and ``say`` with a message about the effect of Ctrl-C.

    The first Ctrl-C ends the search, which keeps the best machine so far. The second one, or one before there is such a
    machine, raises KeyboardInterrupt.
    """

    def __init__(
        self, show: Callable[[Progress], None] = lambda progress: None, say: Callable[[str], None] = lambda text: None
    ) -> None:
        super().__init__()
        self.show, self.say = show, say
        self.stage = ""
        self.second_press = False
        # says what Ctrl-C keeps if it ends the final fit; empty if the final fit is completed anyway
        self.kept = ""
        self._table: Table | None = None
        self._work: dict[str, float] = {}
        self._done = 0.0
        self._began = time.perf_counter()
        self._compiled_before = 0.0

    def __enter__(self) -> Job:
        super().__enter__()
        return self

    # ---- progress ------------------------------------------------------------------------------------------------

    def plan(self, **work: float) -> None:
        """Set the expected work of stages, in fits of the search."""
        self._work |= {stage.replace("_", " "): amount for stage, amount in work.items()}

    def restart(self, **work: float) -> None:
        """Forget the stages so far and plan others."""
        self._work, self._done, self.stage = {}, 0.0, ""
        self.plan(**work)
        self._began, self._compiled_before = time.perf_counter(), _compiling()

    def begin(self, stage: str, detail: str = "") -> None:
        """Begin the next stage."""
        if stage == SEARCH:
            self._began, self._compiled_before = time.perf_counter(), _compiling()
        self._done += self._work.get(self.stage, 0.0)
        self.stage = stage
        self.show(self._progress(0.0, detail, begins=True))

    def advance(self, done: int, total: int, detail: str = "") -> None:
        """Report that ``done`` of ``total`` parts of the stage are done."""
        self.show(self._progress(done / max(1, total), detail))

    def searched(self, done: int, total: int, table: Table) -> None:
        """Report a step of the search."""
        self._table, best = table, table.best
        self._work[SEARCH] = float(total)
        self.advance(done, total, "" if best is None else f"best score so far {best.mean:.4f}")

    def _progress(self, share_of_stage: float, detail: str, begins: bool = False) -> Progress:
        total = sum(self._work.values())
        if self.stage not in self._work or total <= 0:
            return Progress(self.stage, None, None, detail, begins)
        share = (self._done + share_of_stage * self._work[self.stage]) / total
        spent = time.perf_counter() - self._began - (_compiling() - self._compiled_before)
        left = None
        if share > FIRST_SHARE and spent > FIRST_SECONDS:
            left = spent * (1.0 / share - 1.0)
        return Progress(self.stage, share, left, detail, begins)

    # ---- Ctrl-C --------------------------------------------------------------------------------------------------

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        tried = 0 if self._table is None else self._table.n_tried
        if self.interrupted or self.stage in ("", READING, REPORT) or (self.stage == SEARCH and not tried):
            self.interrupted = self.second_press = True
            raise KeyboardInterrupt
        self.interrupted = True
        self.say(f"interrupted: {self._kept(tried)}; {AGAIN}")

    def _kept(self, tried: int) -> str:
        if self.stage == SEARCH and self._table is not None:
            most = max(len(self._table.candidates), self._table.planned)
            return f"keeping the best of {tried} of {most} candidates"
        if self.stage == FIT and self.kept:
            return self.kept
        if self.stage == FIT:
            return "the search is complete, and its best machine is being fitted to all rows"
        return "the model is fitted, and its score is that of the search"


def _compiling() -> float:
    """Seconds that this process has spent compiling; estimates of the remaining time exclude them."""
    from mercer._compiled.compile import seconds_compiling

    return float(seconds_compiling())
