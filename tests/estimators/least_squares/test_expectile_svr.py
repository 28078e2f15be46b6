"""ExpectileSVR solves its convex problem to a certificate; half is kernel ridge regression."""

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import check_estimator

from mercer import ExpectileSVR, Gaussian, KernelERM, KernelRidge, Spectrum, certify
from mercer.erm.convex_losses import Expectile, check_loss


def noisy_line(n=200, seed=0):
    """y = x plus noise that grows with x."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 3, size=(n, 1))
    return X, X[:, 0] + (0.2 + 0.3 * X[:, 0]) * rng.normal(size=n)


X, y = noisy_line()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kernel", [Gaussian(0.1), "precomputed"], ids=["gaussian", "precomputed"])
def test_sklearn_checks(kernel):
    """scikit-learn's own checks pass."""
    check_estimator(ExpectileSVR(0.7, kernel=kernel, tol=1e-14))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_half_is_kernel_ridge(fit_intercept):
    """τ = ½ is the closed form of ridge regression with λ = 1/C."""
    weight = np.random.default_rng(1).uniform(0.1, 2.0, len(X))
    model = ExpectileSVR(0.5, C=4.0, gamma=0.7, fit_intercept=fit_intercept, tol=1e-20).fit(X, y, weight)
    ridge = KernelRidge(0.25, kernel="rbf", gamma=0.7, fit_intercept=fit_intercept).fit(X, y, weight)
    np.testing.assert_allclose(model.predict(X), ridge.predict(X), atol=1e-10)
    assert model.set_params(tol=1e-6).fit(X, y, weight).n_iter_ == 1


def clarabel_optimum(K, y, C, tau):
    """½|f|² + C Σ τ p² + (1 − τ) m², y − f − b = p − m, p and m ≥ 0; over the coordinates of a root of K."""
    n = len(y)
    values, vectors = np.linalg.eigh(K)
    L = vectors * np.sqrt(np.maximum(values, 0.0))
    P = sp.block_diag([sp.eye(n), sp.csc_matrix((1, 1)), 2 * C * tau * sp.eye(n), 2 * C * (1 - tau) * sp.eye(n)])
    equal = sp.hstack([L, np.ones((n, 1)), sp.eye(n), -sp.eye(n)])
    positive = sp.hstack([sp.csc_matrix((2 * n, n + 1)), -sp.eye(2 * n)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.ZeroConeT(n), clarabel.NonnegativeConeT(2 * n)]
    A, right = sp.vstack([equal, positive]).tocsc(), np.concatenate([y, np.zeros(2 * n)])
    return clarabel.DefaultSolver(P.tocsc(), np.zeros(3 * n + 1), A, right, cones, settings).solve().obj_val


@pytest.mark.parametrize("tau", [0.02, 0.3, 0.9])
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_clarabel_finds_the_same_optimum(tau, C):
    """An interior-point solver of quadratic programs has the same objective."""
    model = ExpectileSVR(tau, C=C, kernel=Gaussian(1.0), tol=1e-10).fit(X[:60], y[:60])
    expected = clarabel_optimum(Gaussian(1.0)(X[:60]), y[:60], C, tau)
    np.testing.assert_allclose(model.certificate_.primal, expected, rtol=1e-6)
    assert model.certificate_.valid and model.certificate_.relative_gap < 1e-10


def test_a_constant_model_is_the_expectile_of_y():
    """Samples that are all equal leave the intercept, at which the weighted residuals add up to 0."""
    model = ExpectileSVR(0.8, tol=1e-12).fit(np.zeros((101, 2)), y[:101])
    residual = y[:101] - model.predict(np.zeros((1, 2)))[0]
    assert abs(np.where(residual > 0, 0.8, 0.2) @ residual) < 1e-9


def test_mirrored_targets_mirror_the_expectile():
    """The τ-expectile of −y is minus the (1 − τ)-expectile of y."""
    low = ExpectileSVR(0.1, tol=1e-12).fit(X, y)
    high = ExpectileSVR(0.9, tol=1e-12).fit(X, -y)
    np.testing.assert_allclose(low.predict(X), -high.predict(X), atol=1e-9)


def test_the_loss_is_one_of_kernel_erm():
    """Its conjugate belongs to it, and KernelERM minimises it to the same value."""
    loss = Expectile(0.8)
    check_loss(loss, y)
    model = KernelERM(loss, C=2.0, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(
        model.certificate_.primal, ExpectileSVR(0.8, C=2.0, tol=1e-9).fit(X, y).certificate_.primal, rtol=1e-8
    )


def test_certify():
    """certify finds the published certificate, with weights of 0 left out, and the gap of a wrong model."""
    weight = np.random.default_rng(2).uniform(0.1, 2.0, len(X))
    weight[::5] = 0.0
    model = ExpectileSVR(0.8, C=3.0).fit(X, y, weight)
    np.testing.assert_allclose(certify(model, X, y, weight).primal, model.certificate_.primal, rtol=1e-9)
    model._intercept_ = model._intercept_ + 0.5
    assert certify(model, X, y, weight).gap > 0.1


@pytest.mark.parametrize("tau", [0.05, 0.98])
def test_a_large_weight_is_solved_by_factors(tau):
    """For a large C the gap is as small as asked, and the coefficients are those of the weighted residuals."""
    rng = np.random.default_rng(3)
    A = rng.normal(size=(500, 4))
    z = np.sin(A[:, 0]) + 0.3 * rng.normal(size=500)
    model = ExpectileSVR(tau, C=1e5, gamma=0.3, tol=1e-10).fit(A, z)
    residual = z - model.predict(A)
    beta = np.zeros(500)
    beta[model.support_] = model.dual_coef_[0]
    assert model.certificate_.valid and model.certificate_.relative_gap <= 1e-10
    expected = 2e5 * np.where(residual > 0, tau, 1 - tau) * residual
    np.testing.assert_allclose(beta, expected, atol=1e-3 * np.abs(beta).max())


def test_all_forms_of_the_same_samples():
    """Sparse rows, a precomputed matrix, and weights instead of copies of samples give the same function."""
    rng = np.random.default_rng(4)
    A = rng.normal(size=(150, 5)) * (rng.uniform(size=(150, 5)) < 0.4)
    z, count = A.sum(axis=1) + rng.normal(size=150), rng.integers(0, 3, 150)
    kernel = Gaussian(0.2)
    expected = ExpectileSVR(0.8, C=5.0, kernel=kernel, tol=1e-14).fit(np.repeat(A, count, axis=0), np.repeat(z, count))
    dense = ExpectileSVR(0.8, C=5.0, kernel=kernel, tol=1e-14).fit(A, z, count)
    sparse = ExpectileSVR(0.8, C=5.0, kernel=kernel, tol=1e-14).fit(sp.csr_matrix(A), z, count)
    given = ExpectileSVR(0.8, C=5.0, kernel="precomputed", tol=1e-14).fit(kernel(A), z, count)
    values = expected.predict(A)
    for found in (dense.predict(A), sparse.predict(sp.csr_matrix(A)), given.predict(kernel(A))):
        np.testing.assert_allclose(found, values, atol=1e-6)


def test_an_indefinite_matrix_is_found():
    """A matrix with a large negative eigenvalue has no minimum, and the fit says so."""
    K = np.random.default_rng(5).normal(size=(60, 60))
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        model = ExpectileSVR(0.8, C=100.0, kernel="precomputed").fit(K + K.T, y[:60])
    assert not model.certificate_.valid


def test_without_memory_for_the_matrix():
    """If the matrix does not fit, it is multiplied tile by tile, to the same solution."""
    small = ExpectileSVR(0.9, C=1.0, cache_size=0.05).fit(X, y)
    np.testing.assert_allclose(small.predict(X), ExpectileSVR(0.9, C=1.0).fit(X, y).predict(X), atol=1e-4)
    assert small.certificate_.relative_gap < 1e-6


def test_strings():
    """Kernels on objects work."""
    words = ["abab", "baba", "ccdd", "ddcc"] * 3
    model = ExpectileSVR(0.6, kernel=Spectrum(2), C=100.0).fit(words, [0.0, 0.1, 1.0, 1.1] * 3)
    assert model.predict(words)[0] < 0.5 < model.predict(words)[2]


def test_limits():
    """max_iter and time_limit end the run with a certified model and a warning."""
    with pytest.warns(UserWarning, match="max_iter=1"):
        first = ExpectileSVR(0.95, C=10.0, max_iter=1).fit(X, y)
    assert first.certificate_.valid and 1e-6 < first.certificate_.relative_gap < 10.0
    with pytest.warns(UserWarning, match="time_limit=0"):
        assert not ExpectileSVR(0.95, time_limit=0).fit(X, y).support_.size


@pytest.mark.parametrize("value", [0.0, 1.0, -1, "half", np.nan])
def test_bad_expectiles(value):
    """τ is strictly between 0 and 1."""
    with pytest.raises(ValueError, match="The 'expectile' parameter of ExpectileSVR must be"):
        ExpectileSVR(value).fit(X, y)
