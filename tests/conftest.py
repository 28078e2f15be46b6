"""Fixtures and settings of all tests."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from mercer.problems.clock import Clock

# a shell that starts the tests in the background has them ignore Ctrl-C, which some of them send
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# the files that take longest, which are begun first: two workers then end together, and begin with different compiled
# loops instead of compiling the same ones side by side
FIRST = (
    "selection/search/test_search.py",
    "svm/test_linear_interior.py",
    "svm/test_lazy_pairs.py",
    "svm/test_linear_coordinate.py",
    "cli/test_commands.py",
    "estimators/linear/test_linear.py",
    "selection/search/test_search_contract.py",
    "svm/test_linear_proximal.py",
    "estimators/same_as_sklearn/test_sklearn_checks.py",
    "kernels/objects/test_strings.py",
)


def pytest_collection_modifyitems(items):
    """Begin with the files that take longest."""
    places = {name: place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: places.get(item.path.as_posix().rpartition("/tests/")[2], len(FIRST)))


@pytest.fixture(autouse=True)
def first_press(monkeypatch):
    """A test's first Ctrl-C counts as the first, even right after the Ctrl-C of an earlier test."""
    monkeypatch.setattr(Clock, "_last_press", float("-inf"))


@pytest.fixture
def ctrl_c():
    """Call it before a fit: another thread presses Ctrl-C this many seconds after the fit begins to listen to it."""
    if os.name != "posix" or threading.current_thread() is not threading.main_thread():
        pytest.skip("signals of POSIX, which the main thread alone handles")
    threads = []

    def press_after(seconds):
        def press():
            latest = time.monotonic() + 60.0
            while signal.getsignal(signal.SIGINT) is signal.default_int_handler and time.monotonic() < latest:
                time.sleep(0.001)
            time.sleep(seconds)
            os.kill(os.getpid(), signal.SIGINT)

        threads.append(threading.Thread(target=press))
        threads[-1].start()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield press_after
    for thread in threads:
        thread.join()
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def callbacks():
    """The module sklearn.callback; a test that needs it is skipped before scikit-learn 1.9."""
    return pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks since 1.9")


@pytest.fixture
def global_random_seed():
    """scikit-learn's fixture for its own tests."""
    return 42


@pytest.fixture(scope="session", autouse=True)
def newton_step():
    """Newton's step, which is compiled when a problem first needs it, is ready before a test has a time limit."""
    from mercer.svm._block_newton_loops import newton_address

    single, double = np.dtype(np.float32), np.dtype(np.float64)
    for dtypes in ((single, single), (single, double), (double, double)):
        newton_address(*dtypes)
