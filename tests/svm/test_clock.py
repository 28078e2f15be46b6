"""Time limits that do not count compilation."""

from mercer.problems.clock import WorkClock
from mercer.problems.solution import Status


def test_compilation_is_not_counted():
    """Time that numba has spent compiling since the clock was made is added to the remaining time."""
    import numba

    from mercer._compiled.compile import seconds_compiling

    before, clock = seconds_compiling(), WorkClock(1000.0)
    numba.njit(lambda x: x + 1)(1)
    compiling = seconds_compiling() - before
    assert compiling > 0.0
    earlier, left, later = clock.seconds, clock.left, clock.seconds
    assert 1000.0 - later + compiling - 1e-6 <= left <= 1000.0 - earlier + compiling + 1e-6
    assert WorkClock(0.0).over() is Status.TIME_LIMIT
    assert WorkClock(None).over() is None


def test_interrupts_count():
    """Ctrl-C ends the run whatever the limit."""
    clock = WorkClock(100.0)
    clock.interrupted = True
    assert clock.over() is Status.INTERRUPTED
