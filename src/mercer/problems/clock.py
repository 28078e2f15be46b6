"""The clock of a fit, its deadline and Ctrl-C, and the reports that the fit sends while it runs."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, ClassVar

from mercer._compiled import prepare_process
from mercer.problems.solution import Status, TracePoint

Progress = Callable[[TracePoint], bool]

# a Ctrl-C within this many seconds after one that ended a fit is a KeyboardInterrupt
SECOND_PRESS = 5.0
# modules that fit an estimator and then use it as if it were finished: searches, cross-validation, ensembles,
# calibration
USES_MODELS = ("sklearn.", "joblib.")
# exceptions: modules that only pass on the fit that the user asked for
PASSES_ON = ("sklearn.base", "sklearn.callback", "sklearn.compose._target", "sklearn.pipeline", "sklearn.utils")
# .ended of a thread: whether the search or evaluation that it works for has ended
_work = threading.local()


def ended_outside() -> bool:
    """Whether the search or evaluation that this thread works for has ended: then its fits are not needed."""
    ended = getattr(_work, "ended", None)
    return ended is not None and bool(ended())


class Reports:
    """What a fit tells its user while it runs: its rounds, its messages, and its present state if asked for.

    Attributes
    ----------
    callback : called with the `TracePoint` of each round; a true answer interrupts the fit. None reports nothing.
    to_attributes : turns a state of the run into fitted attributes. The estimator sets it if the run is one problem.
    log : receives messages as logging does.
    """

    def __init__(self, callback: Progress | None = None) -> None:
        self.callback = callback
        self.to_attributes: Callable[[Any], dict[str, Any]] | None = None
        self.log: Callable[..., None] = _no_log
        self._last_state: Callable[[], Any] | None = None
        self._last_message = ""

    def send(self, point: TracePoint, state: Callable[[], Any] | None = None) -> bool:
        """Report a round: whether the callback interrupts the fit. ``state`` is called if it asks for attributes."""
        if self.callback is None:
            return False
        self._last_state = state
        return self.callback(point)

    def attributes(self) -> Callable[[], dict[str, Any]] | None:
        """For a callback: builds the fitted attributes of the reported state; None if there is none."""
        state, to_attributes = self._last_state, self.to_attributes
        return None if state is None or to_attributes is None else lambda: to_attributes(state())

    def log_once(self, what: str, value: object) -> None:
        """Log "what: value", unless it is the same as the last message. The text is built only if there is a log."""
        if self.log is not _no_log and (message := f"{what}: {value}") != self._last_message:
            self._last_message = message
            self.log(message)

    @contextmanager
    def silenced(self) -> Iterator[None]:
        """Report and log nothing in the block."""
        before, self.callback, self.log = (self.callback, self.log), None, _no_log
        try:
            yield
        finally:
            self.callback, self.log = before

    @contextmanager
    def mapped_by(self, function: Callable[[Any], Any]) -> Iterator[None]:
        """In the block, states of the run are states of another problem: ``function`` maps them back."""
        outer = self.to_attributes
        if outer is not None:
            self.to_attributes = lambda state: outer(function(state))
        try:
            yield
        finally:
            self.to_attributes = outer


class Clock:
    """Deadline and interrupt of one fit, shared by all its runs; ``reports`` tell the user how it goes on.

    **Ctrl-C.** The first press ends the fit at the next consistent state, with a usable model and a warning. The second
    press is a KeyboardInterrupt, during the same fit or, within ``second_within`` seconds, during any later fit of the
    process: in a loop over fits the first press ends one fit, two presses end the loop.

    In a search, a cross-validation or an ensemble of scikit-learn the first press is a KeyboardInterrupt, so that no
    unfinished model is scored as if it were finished. Pipelines and TransformedTargetRegressor only pass on the user's
    fit and do not count. The clock also leaves Ctrl-C alone if the program has its own handler, and outside the
    main thread.

    **Progress.** Solvers call `report` with a `TracePoint` and a function that returns the present state; a true answer
    of the callback ``progress`` interrupts the run.
    """

    # when Ctrl-C last ended a fit of this process
    _last_press: ClassVar[float] = float("-inf")

    def __init__(
        self, time_limit: float | None = None, progress: Progress | None = None, second_within: float = SECOND_PRESS
    ) -> None:
        self.start = time.perf_counter()
        self.deadline = None if time_limit is None else self.start + time_limit
        self.reports = Reports(progress)
        self.interrupted = False
        self.second_within = second_within
        self._ended_outside: Callable[[], bool] | None = getattr(_work, "ended", None)
        self._previous: Any = None
        prepare_process()  # every fit has a clock

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
        # from C code that calls Python code and overlooks its exception: see _numba_unpickle in _compiled/compile.py
        if isinstance(error, SystemError) and isinstance(error.__cause__, KeyboardInterrupt):
            raise KeyboardInterrupt from error

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.interrupted or now - Clock._last_press < self.second_within:
            raise KeyboardInterrupt
        self.interrupted, Clock._last_press = True, now

    @contextmanager
    def ends_inner_fits(self, limit: bool = False) -> Iterator[None]:
        """Fits that this thread begins in the block end when this clock is interrupted; with ``limit``, also in time.

        A search enters it in each of its threads, since only the main thread receives Ctrl-C.
        """
        outer = getattr(_work, "ended", None)
        _work.ended = (lambda: self.over() is not None) if limit else (lambda: self.stopped)
        try:
            yield
        finally:
            _work.ended = outer

    @property
    def stopped(self) -> bool:
        """Whether this fit was interrupted, or the search or evaluation that it belongs to has ended."""
        return self.interrupted or (self._ended_outside is not None and self._ended_outside())

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.start

    @property
    def left(self) -> float:
        """Seconds until the deadline, negative after it; inf without a time limit."""
        return float("inf") if self.deadline is None else self.deadline - time.perf_counter()

    def over(self) -> Status | None:
        """Why the run must end now; None if it may go on."""
        return self.over_in(0.0)

    def over_in(self, seconds: float) -> Status | None:
        """Why the run must end now if its next step or its certificate takes ``seconds``; None if it may go on."""
        if self.stopped:
            return Status.INTERRUPTED
        return Status.TIME_LIMIT if self.left < seconds else None

    @contextmanager
    def share_of_time(self, share: float) -> Iterator[None]:
        """The block has this share of the time left: an earlier deadline, restored at its end."""
        deadline = self.deadline
        if deadline is not None:
            self.deadline = deadline - (1.0 - share) * max(0.0, self.left)
        try:
            yield
        finally:
            self.deadline = deadline

    def report(self, point: TracePoint, state: Callable[[], Any] | None = None) -> None:
        """Report a round; the fit is interrupted if the user's callback asks for it."""
        if self.reports.send(point, state):
            self.interrupted = True


def _no_log(message: str, *values: object) -> None:
    """Log nothing."""


def _within_search() -> bool:
    """Whether the fit was called by code that would use an unfinished model as if it were finished."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        if name.startswith(USES_MODELS) and not name.startswith(PASSES_ON):
            return True
        frame = frame.f_back
    return False


class WorkClock(Clock):
    """A clock whose time limit does not count compilation, which happens once on a computer."""

    def __init__(self, time_limit: float | None = None, progress: Progress | None = None) -> None:
        from mercer._compiled.compile import seconds_compiling

        super().__init__(time_limit, progress)
        self._compiling = seconds_compiling
        self._before = seconds_compiling()

    @property
    def left(self) -> float:
        """Seconds until the deadline; seconds spent on compilation do not count."""
        return super().left + self._compiling() - self._before
