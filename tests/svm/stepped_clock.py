"""A clock that a test sets, so that time limits are tested without measuring time."""

from mercer.problems.clock import Clock


class SteppedClock(Clock):
    """Seconds pass only by `advance`."""

    def __init__(self, limit):
        super().__init__()
        self.now, self.limit = 0.0, limit

    @property
    def seconds(self):
        return self.now

    @property
    def left(self):
        return self.limit - self.now

    def advance(self, seconds, function):
        """The function, made to take so many seconds."""

        def slower(*arguments, **options):
            self.now += seconds
            return function(*arguments, **options)

        return slower
