"""What all tests share."""

import signal

import pytest

# a shell that starts the tests in the background has them ignore Ctrl-C, which some of them send
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def global_random_seed():
    """scikit-learn's fixture for its own tests."""
    return 42
