"""NuSVR learns the width of its tube."""

import numpy as np
import pytest

from mercer import SVR, NuSVR, TubeDisplay, load, save


def noisy_sine(n=120):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, (n, 1))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize("nu", [0.1, 0.3, 0.7])
def test_the_learnt_width_gives_the_same_function(nu):
    """SVR with epsilon=epsilon_ is the same machine; at most a share nu lies outside the tube."""
    X, y = noisy_sine()
    model = NuSVR(nu=nu, C=10, gamma=0.5, tol=1e-7).fit(X, y)
    given = SVR(epsilon=model.epsilon_, C=10, gamma=0.5, tol=1e-7).fit(X, y)
    np.testing.assert_allclose(given.predict(X), model.predict(X), atol=1e-5)
    error = np.abs(y - model.predict(X))
    assert (error > model.epsilon_ + 1e-6).mean() <= nu <= (error > model.epsilon_ - 1e-6).mean()


def test_the_width_is_saved_and_drawn(tmp_path):
    """A loaded model has the same width, and the display draws it."""
    X, y = noisy_sine()
    model = NuSVR(nu=0.3, C=10).fit(X, y)
    save(model, tmp_path / "tube.mercer")
    assert load(tmp_path / "tube.mercer").epsilon_ == model.epsilon_
    display = TubeDisplay.from_estimator(model, X, y)
    assert display.epsilon == model.epsilon_ > 0
    assert display.tube_.get_paths()[0].get_extents().ymax == pytest.approx(display.f.max() + model.epsilon_)
