"""Tasks of several threads: an exception ends them all before it is raised."""

import sys
import threading
import time
from dataclasses import dataclass
from types import FrameType

import numpy as np
import pytest

import mercer
from mercer._compiled.thread_pool import run_tasks
from mercer.kernels import Gaussian


@pytest.mark.parametrize("failing", [0, 1])
def test_no_task_runs_when_the_exception_of_another_is_raised(failing: int) -> None:
    inside, begun, both = [], [], threading.Barrier(2)

    def task(k: int) -> None:
        begun.append(k)
        if k < 2:
            both.wait(10)  # the first two tasks run at the same time
        if k == failing:
            raise ZeroDivisionError
        inside.append(k)
        time.sleep(0.1)
        inside.remove(k)

    with pytest.raises(ZeroDivisionError):
        run_tasks(task, 100, 2)
    assert not inside
    # the thread that did not fail may have begun another task before it saw the exception
    assert len(begun) < 10


def test_a_pool_that_is_busy_is_not_waited_for() -> None:
    """The calling thread takes all tasks, and the ones handed to the pool are withdrawn."""
    release, entered = threading.Event(), threading.Event()

    def hold(k: int) -> None:
        if k == 0:
            entered.wait(10)
        else:
            entered.set()
            release.wait(10)

    other = threading.Thread(target=run_tasks, args=(hold, 2, 2))
    other.start()
    assert entered.wait(10)
    done: list[int] = []
    run_tasks(done.append, 3, 2)
    assert done == [0, 1, 2]
    assert other.is_alive()
    release.set()
    other.join(10)


def test_an_interrupt_waits_for_the_other_threads() -> None:
    ended = threading.Event()
    both = threading.Barrier(2)

    def task(k: int) -> None:
        both.wait(10)
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        time.sleep(0.1)
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        run_tasks(task, 2, 2)
    assert ended.is_set()


@dataclass(frozen=True)
class Failing(Gaussian):
    """A Gaussian kernel whose blocks are slow, and fail if they begin with a marked sample."""

    marked: float = 0.0

    def block(self, a, b, out=None):  # type: ignore[no-untyped-def]
        if len(a) * len(b) > 20_000:  # not the check for positive semidefiniteness
            time.sleep(0.1)
            if a.X[0, 0] == np.asarray(self.marked, a.X.dtype):
                raise ZeroDivisionError
        return super().block(a, b, out)


def test_a_fit_after_one_that_failed_has_its_own_memory() -> None:
    """Threads of the failed fit must not write to a matrix whose memory the next fit has borrowed."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    y = X[:, 0] * X[:, 1] > 0
    model = mercer.SVC(gamma=2.0, precision="float64", tol=1e-4, n_jobs=2)
    expected = model.fit(X, y).decision_function(X)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            mercer.SVC(kernel=Failing(0.01, marked=float(X[0, 0])), precision="float64", n_jobs=2).fit(X, y)
        np.testing.assert_allclose(model.fit(X, y).decision_function(X), expected, atol=1e-3)


def test_an_interrupt_at_the_end_waits_for_the_other_threads() -> None:
    """Ctrl-C that falls between this thread's last task and its wait for the other threads ends the wait no sooner."""
    ended = threading.Event()
    both = threading.Barrier(2)

    def task(k: int) -> None:
        both.wait(10)
        if threading.current_thread() is not threading.main_thread():
            time.sleep(0.1)
            ended.set()

    def press(frame: FrameType, what: str, _: object) -> None:
        if what == "call" and frame.f_code.co_name == "stop":
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(press)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_tasks(task, 2, 2)
    finally:
        sys.setprofile(None)
    assert ended.is_set()
