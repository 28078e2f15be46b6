"""NuSVC whose classes overlap so much that the optimal margin is 0."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import NuSVC


def overlapping():
    """Two classes with the same distribution along one feature."""
    X = np.random.default_rng(0).normal(size=(120, 2))
    return X[:, :1], (X[:, 0] * X[:, 1] > 0).astype(int)


def test_a_margin_within_tol_is_reported():
    """The message names the margin, tol and nu, and what to do."""
    X, y = overlapping()
    with pytest.warns(ConvergenceWarning) as caught:
        model = NuSVC(nu=0.5).fit(X, y)
    (message,) = {str(warning.message) for warning in caught}
    begin, end = message.split(", by which decision values are divided, ")
    assert begin.startswith("The margin ") and float(begin.split()[-1]) <= 1e-3
    assert end == (
        "is not larger than tol=0.001: the model is mostly rounding. No machine of this kernel has a margin that only "
        "a share of nu=0.5 of the samples violates. Raise nu, choose a kernel that separates the classes better, for "
        "example with a larger gamma, or lower tol."
    )
    assert set(model.predict(X)) <= {0, 1}


def test_equal_samples_have_no_margin():
    """If all samples are equal, w = 0 is the exact optimum: the fit ends without a warning and predicts a class."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = NuSVC().fit(np.ones((20, 3)), np.arange(20) % 2)
    assert np.isfinite(model.decision_function(np.ones((1, 3)))).all()


@pytest.mark.parametrize("change", [{"nu": 0.95}, {"gamma": 300.0}])
def test_the_advice_helps(change):
    """With a larger nu, or a kernel that separates the classes, there is a margin and no warning."""
    X, y = overlapping()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = NuSVC(**{"nu": 0.5} | change).fit(X, y)
    assert model.certificate_.relative_gap < 0.05
