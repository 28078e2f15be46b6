"""The pinball loss: models that are quantiles of y given x."""

import numpy as np
import pytest

from mercer import SVR, certify


def noisy_line(n=400, seed=0):
    """y = x plus noise that grows with x."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 3, size=(n, 1))
    return X, X[:, 0] + (0.2 + 0.3 * X[:, 0]) * rng.normal(size=n)


@pytest.mark.parametrize("quantile", [0.05, 0.3, 0.5, 0.9])
def test_the_share_below_is_the_quantile(quantile):
    """With an intercept, quantile of the samples lie below the model, up to those on it."""
    X, y = noisy_line()
    model = SVR(loss="pinball", quantile=quantile, C=10, tol=1e-8).fit(X, y)
    residual = y - model.predict(X)
    assert (residual < -1e-6).mean() <= quantile <= (residual < 1e-6).mean()
    assert model.certificate_.relative_gap < 1e-6


def test_a_constant_model_is_the_quantile_of_y():
    """Samples that are all equal leave only the intercept."""
    y = np.random.default_rng(1).normal(size=101)
    model = SVR(loss="pinball", quantile=0.25, C=1.0, tol=1e-9).fit(np.zeros((101, 2)), y)
    np.testing.assert_allclose(model.predict(np.zeros((1, 2))), np.quantile(y, 0.25), rtol=1e-12)


def test_half_is_the_median_with_half_the_price():
    """quantile=0.5 is half the absolute error: the tube of width 0 with half the C."""
    X, y = noisy_line(100)
    pinball = SVR(loss="pinball", C=4.0, tol=1e-9).fit(X, y)
    absolute = SVR(epsilon=0.0, C=2.0, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(pinball.certificate_.primal, absolute.certificate_.primal, rtol=1e-7)


def test_mirrored_targets_mirror_the_quantile():
    """The quantile of -y is that of y, mirrored."""
    X, y = noisy_line(120)
    low = SVR(loss="pinball", quantile=0.1, tol=1e-9).fit(X, y)
    high = SVR(loss="pinball", quantile=0.9, tol=1e-9).fit(X, -y)
    np.testing.assert_allclose(low.certificate_.primal, high.certificate_.primal, rtol=1e-8)


def test_certify():
    """certify knows the loss."""
    X, y = noisy_line(120)
    model = SVR(loss="pinball", quantile=0.8, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(certify(model, X, y).primal, model.certificate_.primal, rtol=1e-9)
