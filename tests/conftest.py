"""What all tests share."""

import signal

import pytest

from mercer.solvers.base import Clock

# a shell that starts the tests in the background has them ignore Ctrl-C, which some of them send
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def first_press(monkeypatch):
    """The Ctrl-C of an earlier test does not make that of this one the second."""
    monkeypatch.setattr(Clock, "_last_press", float("-inf"))


@pytest.fixture
def global_random_seed():
    """scikit-learn's fixture for its own tests."""
    return 42
