"""What all tests share."""

import pytest


@pytest.fixture
def global_random_seed():
    """scikit-learn's fixture for its own tests."""
    return 42
