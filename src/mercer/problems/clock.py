"""Time, interrupts and progress of a fit."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, ClassVar

from mercer.problems.solution import Status, TracePoint

Progress = Callable[[TracePoint], bool]

# seconds after a Ctrl-C that ended a fit within which the next one stops the program
SECOND_PRESS = 5.0
# code of scikit-learn and joblib that fits an estimator and then uses the model as if it were finished (searches,
# cross-validation, ensembles, calibration), but for modules that hand the caller's own fit on
GOES_ON = ("sklearn.", "joblib.")
HANDS_ON = ("sklearn.base", "sklearn.callback", "sklearn.compose._target", "sklearn.pipeline", "sklearn.utils")
# what this thread works for: a search, an evaluation
_work = threading.local()


def ended_outside() -> bool:
    """Whether the search or evaluation that this thread works for has ended, so that its fits are not needed."""
    ended = getattr(_work, "ended", None)
    return ended is not None and bool(ended())


class Clock:
    """Time and interrupts of one fit, shared by all its runs.

    The first Ctrl-C asks the run to end where its state is consistent, with a usable model and a warning. The second
    one is an ordinary KeyboardInterrupt, during the same fit or, within SECOND_PRESS seconds, during any later fit of
    the process: in a loop over fits the first press ends one of them, two presses end the loop.

    A fit within a search, a cross-validation or an ensemble of scikit-learn does not watch for Ctrl-C: the first press
    is a KeyboardInterrupt, so that no unfinished model is scored as if it were finished. Pipelines and
    TransformedTargetRegressor hand on the one fit that was asked for, and do not count. Nor does a fit watch where the
    program handles Ctrl-C itself, or outside the main thread of the interpreter.
    """

    # when a Ctrl-C last ended a fit of this process
    _last_press: ClassVar[float] = float("-inf")

    def __init__(self, time_limit: float | None = None, progress: Progress | None = None) -> None:
        self.start = time.perf_counter()
        self.deadline = None if time_limit is None else self.start + time_limit
        self.progress = progress
        # what the attributes of an estimator with a given state of the run are, where that is one problem
        self.shown: Callable[[Any], dict[str, Any]] | None = None
        self.state: Callable[[], Any] | None = None
        # where to tell what is being done, as logging does; nowhere unless somebody asks
        self.log: Callable[..., None] = _tell_nobody
        self._told = ""
        self.interrupted = False
        self._ended_outside: Callable[[], bool] | None = getattr(_work, "ended", None)
        self._previous: Any = None
        self._view: Callable[[Any], Any] | None = None

    def __enter__(self) -> Clock:
        if threading.current_thread() is threading.main_thread():
            previous = signal.getsignal(signal.SIGINT)
            if previous is signal.default_int_handler and not _within_search():
                self._previous = previous
                signal.signal(signal.SIGINT, self._on_interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.interrupted or now - Clock._last_press < SECOND_PRESS:
            raise KeyboardInterrupt
        self.interrupted, Clock._last_press = True, now

    @contextmanager
    def governs(self, limit: bool = False) -> Iterator[None]:
        """Fits that this thread begins in the block end with this clock: when interrupted, with ``limit`` also in time.

        A search enters it in each of its threads, since only the main thread hears of Ctrl-C.
        """
        outer = getattr(_work, "ended", None)
        _work.ended = (lambda: self.over() is not None) if limit else (lambda: self.stopped)
        try:
            yield
        finally:
            _work.ended = outer

    @property
    def stopped(self) -> bool:
        """Whether somebody has interrupted this run, or what it belongs to."""
        return self.interrupted or (self._ended_outside is not None and self._ended_outside())

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.start

    @property
    def left(self) -> float:
        """Seconds until the time limit, below 0 after it; inf without a limit."""
        return float("inf") if self.deadline is None else self.deadline - time.perf_counter()

    def over(self) -> Status | None:
        """Why the run must end now, if it must."""
        return self.over_in(0.0)

    def over_in(self, seconds: float) -> Status | None:
        """Why the run must end now if what is to follow takes so many seconds: the certificate, or the next step."""
        if self.stopped:
            return Status.INTERRUPTED
        return Status.TIME_LIMIT if self.left < seconds else None

    @contextmanager
    def within(self, share: float) -> Iterator[None]:
        """The runs in the block may take this share of the time that is left."""
        deadline = self.deadline
        if deadline is not None:
            self.deadline = deadline - (1.0 - share) * max(0.0, self.left)
        try:
            yield
        finally:
            self.deadline = deadline

    @contextmanager
    def silently(self) -> Iterator[None]:
        """Nobody is told of the runs in the block."""
        before, self.progress, self.log = (self.progress, self.log), None, _tell_nobody
        try:
            yield
        finally:
            self.progress, self.log = before

    @contextmanager
    def seen_through(self, view: Callable[[Any], Any]) -> Iterator[None]:
        """States of the runs in the block are shown as what ``view`` makes of them."""
        outer = self._view
        self._view = view if outer is None else lambda state: outer(view(state))
        try:
            yield
        finally:
            self._view = outer

    def tell(self, what: str, value: object) -> None:
        """Log "what: value" for whoever follows the run, unless it is what was said last."""
        if self.log is not _tell_nobody and (message := f"{what}: {value}") != self._told:
            self._told = message
            self.log(message)

    def report(self, point: TracePoint, state: Callable[[], Any] | None = None) -> None:
        """Tell whoever watches; a true answer asks for the end. ``state`` is called if somebody wants the model."""
        if self.progress is None:
            return
        view = self._view
        self.state = state if state is None or view is None else lambda: view(state())
        if self.progress(point):
            self.interrupted = True

    def attributes(self) -> Callable[[], dict[str, Any]] | None:
        """What makes a fitted estimator of the state that was reported last, if that is known."""
        state, shown = self.state, self.shown
        return None if state is None or shown is None else lambda: shown(state())


def _tell_nobody(message: str, *values: object) -> None:
    """The log of a run that nobody follows."""


def _within_search() -> bool:
    """Whether code that goes on with an unfinished model has called the fit."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        if name.startswith(GOES_ON) and not name.startswith(HANDS_ON):
            return True
        frame = frame.f_back
    return False


class WorkClock(Clock):
    """A clock whose limit does not count the compilation of loops, which happens once for a machine."""

    def __init__(self, time_limit: float | None = None, progress: Progress | None = None) -> None:
        from mercer._compiled.compile import seconds_compiling

        super().__init__(time_limit, progress)
        self._compiling = seconds_compiling
        self._before = seconds_compiling()

    @property
    def left(self) -> float:
        """Seconds until the time limit, compilation not counted."""
        return super().left + self._compiling() - self._before
