"""The Nyström factor L against the formula K_nm K_mm⁻¹ K_mn, and what is lost by it."""

import numpy as np
import pytest

from mercer.gram.operator import Data
from mercer.kernels import Gaussian, Linear, Spectrum
from mercer.landmarks.landmark_certificate import lost, lost_about
from mercer.landmarks.nystroem_factor import Factor


def samples(n=300, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def approximation(kernel, X, index):
    features = kernel.prepare(X, np.float64)
    K = kernel.block(features, features)
    return K, K[:, index] @ np.linalg.pinv(K[np.ix_(index, index)], rcond=1e-13) @ K[index]


@pytest.mark.parametrize(("dtype", "error"), [(np.float64, 1e-8), (np.float32, 1e-3)])
def test_the_factor_is_that_of_nystroem(dtype, error):
    """LL' = K_nm K_mm⁻¹ K_mn, in one step or in several."""
    X, kernel = samples(), Gaussian(0.3)
    factor = Factor(Data(kernel, X, len(X)), dtype, 2)
    for part in (np.arange(20), np.arange(50, 75), np.arange(100, 101)):
        factor.add(part)
    K, expected = approximation(kernel, X, factor.index)
    np.testing.assert_allclose(factor.L.astype(float) @ factor.L.T, expected, atol=error)
    np.testing.assert_allclose(factor.residual, np.diagonal(K - expected), atol=error)
    np.testing.assert_allclose(factor.root @ factor.root.T, K[np.ix_(factor.index, factor.index)], atol=1e-12)


def test_coefficients_give_the_function_of_w():
    """Σ αⱼ k(landmark j, ·) has the values Lw at the samples, and the norm |w|."""
    X, kernel = samples(), Gaussian(0.3)
    factor = Factor(Data(kernel, X, len(X)), np.float64, 1)
    factor.add(np.arange(0, 300, 10))
    w = np.random.default_rng(1).standard_normal(factor.m)
    alpha = factor.coefficients(w)
    K, _ = approximation(kernel, X, factor.index)
    np.testing.assert_allclose(K[:, factor.index] @ alpha, factor.L @ w, atol=1e-7)
    assert alpha @ K[np.ix_(factor.index, factor.index)] @ alpha == pytest.approx(w @ w, rel=1e-7)


def test_dependent_landmarks_are_left_out():
    """A linear kernel on three features has three landmarks; a repeated sample is one landmark."""
    X = samples()
    factor = Factor(Data(Linear(), X, len(X)), np.float64, 1)
    assert factor.add(np.arange(10)) == 3
    assert factor.add(np.arange(10, 20)) == 0
    np.testing.assert_allclose(factor.residual, 0.0, atol=1e-9)
    twice = Factor(Data(Gaussian(1.0), np.vstack([X[:5], X[:5]]), 10), np.float64, 1)
    assert twice.add(np.arange(10)) == 5


def test_a_kernel_that_is_zero_has_no_landmarks():
    """With k = 0 no sample spans anything."""
    factor = Factor(Data(Linear(), np.zeros((4, 2)), 4), np.float64, 1)
    assert factor.add(np.arange(2)) == 0
    assert factor.L.shape == (4, 0)


def test_landmarks_may_be_other_samples():
    """A pool of given landmarks: the samples are projected on the span of these."""
    X, Z, kernel = samples(50), samples(10, seed=1), Spectrum(2)
    strings = ["".join("AB"[int(v > 0)] for v in row) for row in samples(30, 12, 2)]
    given = ["ABABAB", "AABB", "BBBBAA"]
    factor = Factor(Data(kernel, strings, 30), np.float64, 1, Data(kernel, given, 3))
    factor.add(np.arange(3))
    a, b = kernel.prepare(strings, np.float64), kernel.prepare(given, np.float64)
    K = kernel.block(a, b)
    K_given = kernel.block(b, b)
    np.testing.assert_allclose(factor.L @ factor.L.T, K @ np.linalg.solve(K_given, K.T), atol=1e-8)
    vectors = Factor(Data(Gaussian(1.0), X, 50), np.float64, 1, Data(Gaussian(1.0), Z, 10))
    assert vectors.add(np.arange(10)) == 10
    assert np.all(vectors.residual > 0)


def lossy(n=400):
    X, rng = samples(n), np.random.default_rng(2)
    factor = Factor(Data(Gaussian(0.3), X, n), np.float64, 1)
    factor.add(np.arange(30))
    beta = np.where(rng.random(n) < 0.7, rng.standard_normal(n), 0.0)
    K, approximate = approximation(Gaussian(0.3), X, factor.index)
    return factor, beta, float(beta @ (K - approximate) @ beta)


def test_what_is_lost_is_the_quadratic_form_of_the_residual():
    """lost = β'(K − K̂)β, and 0 for β = 0."""
    factor, beta, expected = lossy()
    found = lost(factor, beta, factor.L.T @ beta)
    assert not found.sampled
    assert found.value == pytest.approx(expected, rel=1e-9)
    assert lost(factor, 0.0 * beta, 0.0 * factor.L[0]).value == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_a_bound_from_some_rows_holds_and_is_near(seed):
    """The bound from drawn rows is above the value, but not by more than a third."""
    factor, beta, expected = lossy()
    found = lost(factor, beta, factor.L.T @ beta, pairs_up_to=0, seed=seed)
    assert found.sampled
    assert expected <= found.value <= 1.33 * expected


def test_an_estimate_between_rounds_is_near():
    """For few rows the estimate is the exact value; for more rows it is an estimate without bias."""
    factor, beta, expected = lossy()
    assert lost_about(factor, beta, factor.L.T @ beta) == pytest.approx(expected, rel=1e-9)
    factor, beta, expected = lossy(4000)
    estimates = [lost_about(factor, beta, factor.L.T @ beta, seed) for seed in range(8)]
    error = np.std(estimates) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - expected) < 5 * error
