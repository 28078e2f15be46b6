"""KernelLMS is gradient descent in feature space: the same steps, the known rate, the known limit."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from tests.naming import named

from mercer import InvalidInputError, KernelLMS
from mercer.kernels import Gaussian, Linear, Polynomial, PowerSeries


def curve(n=40, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-3, 3, n))[:, None]
    return X, np.sin(X[:, 0]) + noise * rng.normal(size=n)


@pytest.mark.filterwarnings("ignore:Gradient descent ended early")
class TestSteps:
    @pytest.mark.parametrize("kernel", [Gaussian(gamma=0.5), PowerSeries()], ids=named)
    @pytest.mark.parametrize("cache_size", [100, 1e-4])
    def test_the_recursion(self, kernel, cache_size):
        """β after T steps is that of β := β + α(y − Kβ), from a stored matrix and from tiles ([CS229] 5.11)."""
        X, y = curve()
        K, alpha = kernel(X), 0.5 / np.linalg.eigvalsh(kernel(X))[-1]
        beta = np.zeros(len(y))
        for _ in range(25):
            beta = beta + alpha * (y - K @ beta)
        model = KernelLMS(kernel=kernel, learning_rate=alpha, max_iter=25, tol=0, cache_size=cache_size).fit(X, y)
        assert model.n_iter_ == 25
        np.testing.assert_allclose(model.dual_coef_[0], beta, rtol=1e-9)
        np.testing.assert_allclose(model.predict(X), K @ beta, rtol=1e-9, atol=1e-12)
        assert model.rkhs_norm_[0] == pytest.approx(np.sqrt(beta @ K @ beta))

    def test_explicit_features(self):
        """The weights of explicit features go the same way by gradient descent ([CS229] 5.7)."""
        X, y = curve()
        kernel = Polynomial(degree=3, coef0=1.0)
        phi = kernel.feature_map(X)
        model = KernelLMS(kernel=kernel, max_iter=30, tol=0).fit(X, y)
        theta = np.zeros(phi.dimension)
        for _ in range(30):
            theta = theta + model.learning_rate_ * phi(X).T @ (y - phi(X) @ theta)
        np.testing.assert_allclose(model.predict(X), phi(X) @ theta, rtol=1e-8)

    def test_the_spectrum(self):
        """After T steps the residual in the direction of an eigenvector has shrunk by (1 − αμ)^T."""
        X, y = curve()
        mu, U = np.linalg.eigh(Gaussian(gamma=0.5)(X))
        model = KernelLMS(kernel=Gaussian(gamma=0.5), max_iter=40, tol=0).fit(X, y)
        assert model.largest_eigenvalue_ == pytest.approx(mu[-1], rel=1e-6)
        expected = U @ ((1 - model.learning_rate_ * mu) ** 40 * (U.T @ y))
        np.testing.assert_allclose(y - model.predict(X), expected, rtol=1e-7, atol=1e-10)

    @pytest.mark.parametrize("n", [10, 200])
    def test_largest_eigenvalue(self, n):
        """By Lanczos for many samples, densely for few; the error never rises with the automatic rate."""
        X, y = curve(n, noise=0.5)
        model = KernelLMS(kernel=Gaussian(gamma=0.5), max_iter=50, tol=0).fit(X, y)
        assert model.largest_eigenvalue_ == pytest.approx(np.linalg.eigvalsh(Gaussian(gamma=0.5)(X))[-1], rel=1e-3)
        assert np.all(np.diff(model.loss_curve_) <= 0)
        assert len(model.loss_curve_) == 51

    def test_weights_are_repetitions(self):
        """A sample of weight 2 is a sample given twice, one of weight 0 none."""
        X, y = curve(20)
        weight = np.tile([0.0, 1.0, 2.0, 1.0], 5)
        settings = {"kernel": Gaussian(gamma=0.5), "learning_rate": 0.05, "max_iter": 60, "tol": 0}
        again = np.repeat(np.arange(20), weight.astype(int))
        ours = KernelLMS(**settings).fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(ours.predict(X), KernelLMS(**settings).fit(X[again], y[again]).predict(X), rtol=1e-9)
        assert len(ours.support_) == 15


class TestEnds:
    def test_convergence(self):
        """It ends when steps change no fitted value by more than tol · max|y|; a linear model then is least squares."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(50, 3))
        y = X @ [1.0, -2.0, 0.5]
        model = KernelLMS(kernel=Linear(), tol=1e-12, max_iter=10_000).fit(X, y)
        np.testing.assert_allclose(model.coef_[0], [1.0, -2.0, 0.5], rtol=1e-8)
        assert model.n_iter_ < 10_000

    def test_divergence_is_refused(self):
        """A rate of 2/μ_max or more is an error that says what is allowed."""
        X, y = curve()
        largest = np.linalg.eigvalsh(Gaussian(gamma=0.5)(X))[-1]
        with pytest.raises(InvalidInputError, match=rf"so it must be below {2 / largest:.4g}"):
            KernelLMS(kernel=Gaussian(gamma=0.5), learning_rate=2.1 / largest).fit(X, y)
        with pytest.warns(ConvergenceWarning):
            KernelLMS(kernel=Gaussian(gamma=0.5), learning_rate=1.9 / largest, max_iter=50, tol=0).fit(X, y)

    def test_a_small_rate_is_not_the_end(self):
        """Steps that are small because the rate is small do not pass for convergence."""
        X, y = curve()
        with pytest.warns(ConvergenceWarning, match="max_iter=10"):
            KernelLMS(learning_rate=1e-12, max_iter=10).fit(X, y)

    def test_limits_warn_in_numbers(self):
        """max_iter and time_limit leave a model and say how much still moves."""
        X, y = curve()
        with pytest.warns(ConvergenceWarning, match=r"max_iter=5\): the last step changed a fitted value by \d"):
            KernelLMS(max_iter=5, tol=0).fit(X, y)
        with pytest.warns(ConvergenceWarning, match=r"time_limit=0 s"):
            model = KernelLMS(time_limit=0).fit(X, y)
        assert model.n_iter_ == 0 and np.all(model.predict(X) == 0)

    def test_indefinite(self):
        """A matrix with a negative eigenvalue ends where the error begins to grow."""
        rng = np.random.default_rng(0)
        A = rng.normal(size=(30, 30))
        with pytest.warns(UserWarning) as found:
            model = KernelLMS(kernel="precomputed").fit(A + A.T, rng.normal(size=30))
        assert "not positive semidefinite" in str(found[0].message)
        assert "the error began to grow" in str(found[-1].message)
        assert np.isfinite(model.dual_coef_).all()

    def test_values_too_small_for_a_rate(self):
        """An eigenvalue whose inverse is not finite is named, with what to do."""
        X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30.0)
        with pytest.raises(
            InvalidInputError, match=r"largest eigenvalue of the kernel matrix is .*e-3.*Scale the samples"
        ):
            KernelLMS(kernel="linear").fit(1e-160 * X, y)


class TestEarlyStopping:
    def test_it_regularises(self):
        """On noisy targets it stops early, and predicts new ones better than descent to the end."""
        X, y = curve(200, noise=0.5)
        kernel = Gaussian(gamma=20.0)
        early = KernelLMS(kernel=kernel, early_stopping=True, validation_fraction=0.3, max_iter=5000, random_state=0)
        early.fit(X, y)
        assert early.n_iter_ == int(np.argmin(early.validation_curve_)) < 5000
        with pytest.warns(ConvergenceWarning):
            late = KernelLMS(kernel=kernel, max_iter=5000, tol=0).fit(X, y)
        Z = np.linspace(-3, 3, 500)[:, None]
        errors = [np.mean((model.predict(Z) - np.sin(Z[:, 0])) ** 2) for model in (early, late)]
        assert errors[0] < errors[1]
        assert early.rkhs_norm_ < late.rkhs_norm_

    def test_too_few(self):
        """A validation part that leaves nothing to train on is refused."""
        with pytest.raises(InvalidInputError, match="holds out 1 of 1 samples"):
            KernelLMS(early_stopping=True).fit([[1.0]], [1.0])

    def test_search(self):
        """Kernel parameters can be searched."""
        X, y = load_diabetes(return_X_y=True)
        model = KernelLMS(kernel=Gaussian(), early_stopping=True, random_state=0)
        search = GridSearchCV(model, {"kernel__gamma": [1.0, 10.0]}, cv=3).fit(X, y - y.mean())
        assert search.best_score_ > 0.3
