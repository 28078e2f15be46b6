"""Clocks that a test sets, so that time limits are tested without measuring time."""

from mercer.problems.clock import Clock
from mercer.problems.solution import Status


class SteppedClock(Clock):
    """Seconds pass only when ``now`` is set."""

    def __init__(self, limit):
        super().__init__()
        self.now, self.limit = 0.0, limit

    @property
    def seconds(self):
        return self.now

    @property
    def left(self):
        return self.limit - self.now


class Countdown(Clock):
    """A clock whose time is over after this many questions; ``left`` is the remaining time that it reports."""

    def __init__(self, questions, left=None):
        super().__init__(left)
        self.questions = questions

    def over_in(self, seconds):
        self.questions -= 1
        return Status.TIME_LIMIT if self.questions < 0 else None
