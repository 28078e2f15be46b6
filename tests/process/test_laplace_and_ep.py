"""Laplace's approximation and expectation propagation against textbook algorithms and finite differences."""

import numpy as np
import pytest
from scipy.stats import norm
from tests.naming import cases, named

from mercer.kernels import Gaussian, Matern, White
from mercer.process.expectation_propagation import ExpectationPropagation, tilted
from mercer.process.laplace import Laplace, conjugate_gradients, find_mode
from mercer.process.latent import Covariance, times

RNG = np.random.default_rng(3)
X = RNG.normal(size=(50, 2))
Y = (X[:, 0] + 0.7 * RNG.normal(size=50) > 0).astype(float)
KERNELS = cases(
    gaussian=4.0 * Gaussian((0.5, 0.2)),
    sum=2.0 * Matern(1.5, 0.8) + White(0.3),
    large=1e3 * Gaussian(2.0),
)
METHODS = cases(laplace=Laplace, ep=ExpectationPropagation)


def sequential_ep(K, s, sweeps=40):
    """Algorithm 3.5 with explicit inverses, and the evidence as in (3.65)."""
    n = len(s)
    tau, nu, Sigma, mean = np.zeros(n), np.zeros(n), K.copy(), np.zeros(n)
    for _ in range(sweeps):
        for i in range(n):
            t, v = 1.0 / Sigma[i, i] - tau[i], mean[i] / Sigma[i, i] - nu[i]
            z = s[i] * (v / t) / np.sqrt(1 + 1 / t)
            ratio = norm.pdf(z) / norm.cdf(z)
            mean_hat = v / t + s[i] * ratio / t / np.sqrt(1 + 1 / t)
            variance_hat = 1 / t - ratio / (t * t) / (1 + 1 / t) * (z + ratio)
            change = 1 / variance_hat - t - tau[i]
            tau[i] += change
            nu[i] = mean_hat / variance_hat - v
            Sigma -= change / (1 + change * Sigma[i, i]) * np.outer(Sigma[:, i], Sigma[:, i])
            mean = Sigma @ nu
    t = 1.0 / np.diag(Sigma) - tau
    cavity, site, width = (mean / np.diag(Sigma) - nu) / t, nu / tau, 1 / t + 1 / tau
    A = K + np.diag(1 / tau)
    value = -0.5 * np.linalg.slogdet(A)[1] - 0.5 * site @ np.linalg.solve(A, site)
    value += norm.logcdf(s * cavity / np.sqrt(1 + 1 / t)).sum() + 0.5 * np.log(width).sum()
    return value + ((cavity - site) ** 2 / (2 * width)).sum(), tau, nu


def made(method, n=50):
    return method(Covariance(X[:n], n, 1), Y[:n], 200)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_gradient(method, kernel):
    """Derivatives of the evidence are those of central differences."""
    evidence = made(method)
    value, gradient = evidence.value_and_gradient(kernel)
    assert value == pytest.approx(evidence.value(kernel), rel=1e-9)
    h = 1e-4
    slope = [
        (evidence.value(kernel.with_theta(kernel.theta + e)) - evidence.value(kernel.with_theta(kernel.theta - e)))
        / (2 * h)
        for e in h * np.eye(len(kernel.theta))
    ]
    np.testing.assert_allclose(gradient, slope, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernel", [4.0 * Gaussian(0.5), 50.0 * Gaussian(2.0)], ids=named)
def test_ep_has_the_fixed_point_of_sequential_ep(kernel):
    """Sites updated together reach the sites and the evidence of Algorithm 3.5."""
    value, tau, nu = sequential_ep(kernel(X), 2 * Y - 1)
    ep = made(ExpectationPropagation)
    assert ep.value(kernel) == pytest.approx(value, abs=1e-6)
    np.testing.assert_allclose(ep.tau, tau, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(ep.nu, nu, rtol=1e-5, atol=1e-6)


def test_tilted_moments():
    """Mean and variance of Φ(s f) N(f) are those of the integral, also far in the tail."""
    for s, mean, variance in ((1.0, 0.3, 2.0), (-1.0, 1.0, 0.5), (1.0, -6.0, 4.0)):
        f = np.linspace(mean - 12 * np.sqrt(variance), mean + 12 * np.sqrt(variance), 200_001)
        density = norm.cdf(s * f) * norm.pdf(f, mean, np.sqrt(variance))
        density /= density.sum()
        found = tilted(np.array([s]), np.array([mean]), np.array([variance]))
        expected = density @ f, density @ f**2 - (density @ f) ** 2
        np.testing.assert_allclose(np.ravel(found), expected, rtol=1e-5)
    mean, variance = tilted(np.array([1.0]), np.array([-60.0]), np.array([1.0]))
    assert np.isfinite(mean[0]) and 0 < variance[0] < 1


@pytest.mark.parametrize("method", METHODS)
def test_start_does_not_matter(method):
    """The evidence of a kernel does not depend on the kernel before it."""
    kernel, before = 4.0 * Gaussian(0.5), 1e4 * Gaussian(5.0)
    fresh, used = made(method), made(method)
    used.value(before)
    assert used.value(kernel) == pytest.approx(fresh.value(kernel), abs=1e-7)


def test_laplace_evidence_by_its_definition():
    """log q(y) = log p(y|f) − ½ f'K⁻¹f − ½ log |I + KW| at the mode."""
    kernel = 4.0 * Gaussian(0.5) + White(0.1)
    found = made(Laplace).posterior(kernel)
    K = kernel(X)
    f = K @ found.coef
    W = found.root**2
    value = -np.logaddexp(0, -(2 * Y - 1) * f).sum() - 0.5 * f @ np.linalg.solve(K, f)
    assert found.value == pytest.approx(value - 0.5 * np.linalg.slogdet(np.eye(50) + K * W)[1], abs=1e-8)
    assert found.primal >= found.dual - 1e-10
    np.testing.assert_allclose(found.L @ found.L.T, np.eye(50) + found.root[:, None] * K * found.root, atol=1e-9)


def test_mode_of_extreme_covariances():
    """Newton's steps are shortened where they would overshoot: the mode is found for variances up to 1e10."""
    for scale in (1e-8, 1e5, 1e10):
        kernel = scale * Gaussian(3.0)
        covariance = Covariance(X, 50, 1)
        K = covariance.matrix(kernel)
        mode = find_mode(covariance, K, Y, np.zeros(50), 200)
        assert mode.converged
        assert np.abs(Y - 1 / (1 + np.exp(-mode.f)) - mode.a).max() < 1e-6


def test_conjugate_gradients():
    """They solve (I + SKS) x = b from the upper triangle, and give up in time."""
    K = np.triu(Gaussian(0.5)(X))
    full, root, b = Gaussian(0.5)(X), RNG.uniform(0.1, 0.5, 50), RNG.normal(size=50)
    np.testing.assert_allclose(times(K, b), full @ b)
    x = conjugate_gradients(K, root, b, 1e-12, 200)
    np.testing.assert_allclose((np.eye(50) + root[:, None] * full * root) @ x, b, atol=1e-10)
    assert conjugate_gradients(K, root, b, 1e-12, 2) is None
    assert conjugate_gradients(-1e6 * K, root, b, 1e-12, 50) is None
