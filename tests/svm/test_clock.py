"""Time limits that do not count compilation."""

from mercer.problems.clock import Clock, WorkClock
from mercer.problems.solution import Status


def test_compilation_is_not_counted():
    """A limit that compilation alone would reach is still ahead; work counts as ever."""
    import numba

    # compiled once before, so that what numba loads for itself is not measured
    numba.njit(lambda x: x - 1)(1)
    plain, clock = Clock(0.02), WorkClock(0.02)
    for k in range(50):
        numba.njit(lambda x, k=k: x + k)(1)
        if plain.over() is not None:
            break
    assert plain.over() is Status.TIME_LIMIT
    # compilation is nearly all of what has happened
    spent = clock.seconds
    assert clock._compiling() - clock._before > 0.5 * spent
    assert WorkClock(0.0).over() is Status.TIME_LIMIT
    assert WorkClock(None).over() is None


def test_interrupts_count():
    """Ctrl-C ends the run whatever the limit."""
    clock = WorkClock(100.0)
    clock.interrupted = True
    assert clock.over() is Status.INTERRUPTED
