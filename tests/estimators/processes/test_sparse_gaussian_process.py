"""Inducing points: bounds on both sides of the exact evidence, gradients, and the exact process where they meet."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.utils.estimator_checks import check_estimator
from tests.naming import cases, named

from mercer import (
    Gaussian,
    GaussianProcessRegressor,
    InvalidInputError,
    Linear,
    Matern,
    Normalized,
    NotPositiveSemidefiniteWarning,
    Sigmoid,
    SparseGaussianProcessRegressor,
    Spectrum,
    White,
)
from mercer.process.inducing_points import InducingEvidence

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 5, (120, 2))
Y = np.sin(X[:, 0]) + np.cos(2 * X[:, 1]) + 0.2 * RNG.normal(size=120)
NEW = RNG.uniform(0, 5, (30, 2))
NOISE = 0.04
KERNELS = cases(
    gaussian=1.5 * Gaussian((0.5, 0.8)),
    matern=1.5 * Matern(1.5, 1.0),
    sum=1.0 * Gaussian(0.5) + 0.3 * Linear(),
)


def exact(kernel):
    return GaussianProcessRegressor(kernel + White(NOISE), alpha=0.0, optimizer=None).fit(X, Y)


@pytest.mark.parametrize("kernel", KERNELS)
def test_bounds(kernel):
    """lower ≤ log p(y) ≤ upper for any number of points, and both tighten as points are added."""
    value, evidence = exact(kernel).log_marginal_likelihood_value_, InducingEvidence(X, Y)
    order, gaps = evidence.choose(kernel, 120, np.random.RandomState(0)), []
    for m in (1, 5, 20, 60, 120):
        found = evidence.posterior(kernel, NOISE, X[order[:m]])
        assert found.lower <= value + 1e-6 and value <= found.upper + 1e-6
        gaps.append((value - found.lower, found.upper - value))
    assert all(later[0] <= before[0] + 1e-6 for before, later in pairwise(gaps))
    assert gaps[-1][0] < 1e-3


@pytest.mark.parametrize("kernel", KERNELS)
def test_all_samples_as_points(kernel):
    """With m = n the process is that of GaussianProcessRegressor: evidence, means, deviations and covariances."""
    full = exact(kernel)
    model = SparseGaussianProcessRegressor(kernel, n_inducing=120, noise_variance=NOISE, optimizer=None).fit(X, Y)
    assert model.evidence_bounds_.lower == pytest.approx(full.log_marginal_likelihood_value_, abs=1e-3)
    assert model.evidence_bounds_.gap < 0.01
    for option in ("return_std", "return_cov"):
        for own, expected in zip(
            model.predict(NEW, **{option: True}), full.predict(NEW, **{option: True}), strict=True
        ):
            np.testing.assert_allclose(own, expected, atol=1e-5)
    np.testing.assert_allclose(model.predict(NEW), full.predict(NEW), atol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradient(kernel):
    """Derivatives by the kernel, the noise and the points are those of central differences."""
    evidence, points, h = InducingEvidence(X, Y), X[:15].copy(), 1e-5
    value, theta, noise, moved = evidence.value_and_gradient(kernel, NOISE, points, True)

    log_noise = np.log(NOISE)

    def lower(theta=kernel.theta, noise=log_noise, points=points):
        return evidence.posterior(kernel.with_theta(theta), np.exp(noise), points).lower

    assert value == pytest.approx(lower())
    slope = [(lower(kernel.theta + e) - lower(kernel.theta - e)) / (2 * h) for e in h * np.eye(len(kernel.theta))]
    np.testing.assert_allclose(theta, slope, rtol=1e-5, atol=1e-4)
    assert noise == pytest.approx((lower(noise=np.log(NOISE) + h) - lower(noise=np.log(NOISE) - h)) / (2 * h), rel=1e-6)
    for i, j in ((0, 0), (7, 1)):
        step = np.zeros_like(points)
        step[i, j] = h
        expected = (lower(points=points + step) - lower(points=points - step)) / (2 * h)
        assert moved[i, j] == pytest.approx(expected, rel=1e-5, abs=1e-4)


def test_blocks_of_rows():
    """More rows than a block, on two threads, have the bounds of one sum."""
    rng = np.random.default_rng(1)
    samples = rng.uniform(0, 5, (5000, 1))
    y = np.sin(samples[:, 0]) + 0.1 * rng.normal(size=5000)
    kernel, points = 1.0 * Gaussian(1.0), samples[:12]
    one, two = (InducingEvidence(samples, y, threads).posterior(kernel, 0.01, points) for threads in (1, 2))
    assert one.lower == pytest.approx(two.lower, rel=1e-9)
    K_mm, K_mn = kernel(points) + 1e-12 * np.eye(12), kernel(points, samples)
    Q = K_mn.T @ np.linalg.solve(K_mm, K_mn)
    trace = 5000 - np.trace(Q)
    sign = np.linalg.slogdet(np.eye(12) + np.linalg.solve(K_mm, K_mn @ K_mn.T) / 0.01)[1] + 5000 * np.log(0.01)
    solved = (y - K_mn.T @ np.linalg.solve(0.01 * K_mm + K_mn @ K_mn.T, K_mn @ y)) / 0.01
    expected = -0.5 * (y @ solved + sign + 5000 * np.log(2 * np.pi)) - trace / 0.02
    assert one.lower == pytest.approx(expected, rel=1e-4)


def test_growth():
    """The number of points grows until the certified gap is within tol, and the kernel is the exact one."""
    model = SparseGaussianProcessRegressor(1.0 * Gaussian(1.0), tol=1e-2).fit(X, Y)
    assert model.evidence_bounds_.gap <= 1e-2 * 120
    assert model.growth_[0].n_inducing == 32
    assert model.growth_[-1][1:] == tuple(model.evidence_bounds_)
    full = GaussianProcessRegressor(1.0 * Gaussian(1.0) + White(0.1)).fit(X, Y)
    assert model.evidence_bounds_.lower <= full.log_marginal_likelihood_value_ + 1e-6
    assert model.kernel_.kernel.gamma == pytest.approx(full.kernel_.left.kernel.gamma, rel=0.05)
    assert model.noise_variance_ == pytest.approx(full.kernel_.right.noise, rel=0.05)
    few = SparseGaussianProcessRegressor(1.0 * Gaussian(1.0), max_inducing=8).fit(X, Y)
    assert len(few.dual_coef_) == 8


def test_moved_points():
    """Points that move have a higher bound than those that stay, and are no samples."""
    stay, move = (
        SparseGaussianProcessRegressor(1.0 * Gaussian(1.0), n_inducing=6, optimize_locations=moves, max_iter=60)
        for moves in (False, True)
    )
    stay.fit(X, Y)
    with pytest.warns(ConvergenceWarning, match="ended after max_iter=60 iterations"):
        move.fit(X, Y)
    assert move.evidence_bounds_.lower > stay.evidence_bounds_.lower
    assert move.inducing_index_ is None
    np.testing.assert_array_equal(stay.inducing_points_, X[stay.inducing_index_])


def test_normalised_targets():
    """normalize_y removes scale and mean: predictions follow both."""
    kernel = 1.0 * Gaussian(0.5)
    one = SparseGaussianProcessRegressor(kernel, normalize_y=True, n_inducing=30, optimizer=None).fit(X, Y)
    other = SparseGaussianProcessRegressor(kernel, normalize_y=True, n_inducing=30, optimizer=None).fit(X, 7 * Y + 3)
    np.testing.assert_allclose(other.predict(NEW), 7 * one.predict(NEW) + 3, atol=1e-8)
    np.testing.assert_allclose(other.predict(NEW, return_std=True)[1], 7 * one.predict(NEW, return_std=True)[1])


def test_strings_and_sparse_rows():
    """Strings have inducing strings; CSR rows give what dense rows give."""
    texts = ["ab" * k + "c" * j for k in range(1, 7) for j in range(5)]
    lengths = np.array([len(text) for text in texts], dtype=float)
    model = SparseGaussianProcessRegressor(1.0 * Normalized(Spectrum(2)), n_inducing=5, normalize_y=True)
    model.set_params(optimizer=None).fit(texts, lengths)
    assert all(point in texts for point in model.inducing_points_)
    assert np.isfinite(model.predict(texts[:3], return_std=True)).all()
    kernel = 1.0 * Gaussian(0.5)
    dense, rows = (
        SparseGaussianProcessRegressor(kernel, n_inducing=20, optimizer=None).fit(data, Y).predict(data)
        for data in (X, sp.csr_array(X))
    )
    np.testing.assert_allclose(rows, dense, atol=1e-6)


def test_many_rows():
    """8,000 rows are fitted without an n × n matrix, with a certificate."""
    rng = np.random.default_rng(2)
    samples = rng.uniform(0, 6, (8_000, 1))
    y = np.sin(samples[:, 0]) + 0.1 * rng.normal(size=8_000)
    model = SparseGaussianProcessRegressor(1.0 * Gaussian(0.5), n_inducing=16).fit(samples, y)
    assert model.evidence_bounds_.gap <= 1e-2 * 8_000
    assert model.noise_variance_ == pytest.approx(0.01, rel=0.1)
    assert np.abs(model.predict([[1.0], [4.0]]) - np.sin([1.0, 4.0])).max() < 0.02


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "params",
    [
        {"n_inducing": 80, "kernel": 1.0 * Gaussian(), "optimizer": None},
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param({"n_inducing": 10, "optimize_locations": True, "max_iter": 20}, marks=pytest.mark.slow),
    ],
    ids=named,
)
def test_conformance(params):
    """scikit-learn's checks pass, all of them."""
    results = check_estimator(SparseGaussianProcessRegressor(**params), on_fail=None, on_skip=None)
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}


class TestBadInput:
    def test_kernels(self):
        """Noise in the kernel and a matrix of kernel values are refused, with what to do instead."""
        for kernel in (Gaussian(1.0) + White(0.1), RBF() + WhiteKernel()):
            with pytest.raises(InvalidInputError, match="contains noise, which is the parameter noise_variance here"):
                SparseGaussianProcessRegressor(kernel).fit(X, Y)
        with pytest.raises(InvalidInputError, match="Pass the kernel, or use GaussianProcessRegressor"):
            SparseGaussianProcessRegressor("precomputed").fit(np.eye(120), Y)

    def test_values(self):
        """NaN, wrong parameters, moving CSR rows and use before fit are refused."""
        with pytest.raises(ValueError, match="Input y contains NaN"):
            SparseGaussianProcessRegressor().fit(X, np.where(Y > 1, np.nan, Y))
        with pytest.raises(ValueError, match="'noise_variance' parameter"):
            SparseGaussianProcessRegressor(noise_variance=0.0).fit(X, Y)
        with pytest.raises(InvalidInputError, match="moves points in a space of dense vectors"):
            SparseGaussianProcessRegressor(optimize_locations=True).fit(sp.csr_array(X), Y)
        with pytest.raises(NotFittedError):
            SparseGaussianProcessRegressor().predict(X)
        with pytest.raises(RuntimeError, match="At most one of return_std or return_cov"):
            SparseGaussianProcessRegressor(n_inducing=3, optimizer=None).fit(X, Y).predict(X, True, True)

    @pytest.mark.parametrize("kind", [SparseGaussianProcessRegressor, GaussianProcessRegressor])
    def test_values_beyond_float64(self, kind):
        """Samples whose squared distances overflow are refused where the kernel is learnt, with what to do."""
        with pytest.raises(InvalidInputError, match="squared distances of these samples are beyond float64"):
            kind(1.0 * Gaussian(1.0)).fit(1e200 * X, Y)

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_odd_data(self):
        """Constant samples, constant targets and one sample are fitted."""
        model = SparseGaussianProcessRegressor(1.0 * Gaussian(1.0)).fit(np.ones((20, 2)), np.arange(20.0))
        assert len(model.dual_coef_) == 1
        constant = SparseGaussianProcessRegressor(1.0 * Gaussian(1.0), normalize_y=True).fit(X, np.full(120, 7.0))
        np.testing.assert_allclose(constant.predict(NEW), 7.0, atol=1e-6)
        assert SparseGaussianProcessRegressor(1.0 * Gaussian(1.0)).fit(X[:1], [2.0]).predict(X[:1]).shape == (1,)

    def test_time_limit(self):
        """A time limit of 0 leaves the given kernel, with a warning."""
        with pytest.warns(ConvergenceWarning, match="ended after time_limit=0.0 s, before its first step"):
            model = SparseGaussianProcessRegressor(1.0 * Gaussian(1.0), time_limit=0.0).fit(X, Y)
        assert model.kernel_ == 1.0 * Gaussian(1.0)

    def test_indefinite_kernel(self):
        """A kernel that is no covariance is used with a warning: the evidence need not be between the bounds."""
        model = SparseGaussianProcessRegressor(Sigmoid(1.0, -1.0), n_inducing=10, optimizer=None)
        with pytest.warns(NotPositiveSemidefiniteWarning, match="evidence_bounds_ need not bound the evidence"):
            model.fit(X, Y)
