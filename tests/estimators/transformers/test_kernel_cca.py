"""Kernel CCA: ordinary CCA in the limit, a generalised eigenvalue problem in general, any two kernels, and errors."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import linalg
from sklearn.cross_decomposition import CCA
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from tests.naming import named

from mercer import KernelCCA, LinearSVC, certify, load, save
from mercer.exceptions import InvalidInputError
from mercer.kernels import Gaussian, Linear, Spectrum


def two_views(n=200, seed=0):
    """Two mixtures that share two coordinates."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(n, 2))
    X = np.c_[shared + 0.3 * rng.normal(size=(n, 2)), rng.normal(size=(n, 3))] @ rng.normal(size=(5, 5))
    Y = np.c_[shared + [0.2, 0.8] * rng.normal(size=(n, 2)), rng.normal(size=(n, 2))] @ rng.normal(size=(4, 4))
    return X, Y


def centred(K):
    H = np.eye(len(K)) - 1.0 / len(K)
    return H @ K @ H


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", [KernelCCA(), KernelCCA(1, kernel_x="linear", landmarks=5)], ids=named)
def test_conformance(model):
    """scikit-learn's checks pass."""
    check_estimator(model)


def test_linear_limit_is_cca():
    """With linear kernels and hardly any regularisation, correlations and scores are those of scikit-learn's CCA."""
    X, Y = two_views()
    theirs = CCA(2, max_iter=10_000, tol=1e-13).fit(X, Y)
    a, b = theirs.transform(X, Y)
    ours = KernelCCA(2, kernel_x="linear", kernel_y="linear", regularization=1e-11).fit(X, Y)
    expected = [np.corrcoef(a[:, j], b[:, j])[0, 1] for j in range(2)]
    np.testing.assert_allclose(ours.correlations_, expected, rtol=1e-7)
    for ours_scores, theirs_scores in ((ours.x_scores_, a), (ours.y_scores_, b)):
        for j in range(2):
            assert abs(np.corrcoef(ours_scores[:, j], theirs_scores[:, j])[0, 1]) == pytest.approx(1.0, abs=1e-6)
    assert ours.score(X, Y) == pytest.approx(np.mean(expected), rel=1e-6)


@pytest.mark.parametrize("kernels", [(Gaussian(0.1), Gaussian(0.3)), (Linear(), Gaussian(0.2))], ids=named)
def test_generalised_eigenvalues(kernels):
    """Correlations are those of the generalised eigenvalue problem with kernel matrices, residuals are rounding."""
    X, Y = two_views(60)
    n, (reg_x, reg_y) = len(X), (0.05, 0.2)
    ours = KernelCCA(3, kernel_x=kernels[0], kernel_y=kernels[1], regularization=(reg_x, reg_y)).fit(X, Y)
    Kx, Ky = centred(kernels[0](X)), centred(kernels[1](Y))
    # directions Φ'a: covariances become K²/n, the regularisation κ K
    Bx = Kx @ Kx / n + reg_x * np.trace(Kx) / n * Kx
    By = Ky @ Ky / n + reg_y * np.trace(Ky) / n * Ky
    A = np.block([[np.zeros((n, n)), Kx @ Ky / n], [Ky @ Kx / n, np.zeros((n, n))]])
    B = linalg.block_diag(Bx, By)
    w, Q = linalg.eigh(B)
    kept = w > 1e-10 * w[-1]
    half = Q[:, kept] / np.sqrt(w[kept])
    expected = np.linalg.eigvalsh(half.T @ A @ half)[::-1][:3]
    np.testing.assert_allclose(ours.correlations_, expected, rtol=1e-6)
    assert ours.residuals_.max() < 1e-10
    # the constraint, and the covariance that is reached
    np.testing.assert_allclose(ours.x_scores_.T @ ours.y_scores_ / n, np.diag(ours.correlations_), atol=1e-9)


def test_transform_is_that_of_fit():
    """Training samples have their scores, one view or both; Y is another name of y; sparse rows are read."""
    X, Y = two_views()
    ours = KernelCCA(2, gamma_x=0.1, gamma_y=0.1)
    np.testing.assert_array_equal(ours.fit_transform(X, Y), ours.x_scores_)
    np.testing.assert_allclose(ours.transform(X), ours.x_scores_, atol=1e-8)
    a, b = ours.transform(X, Y=Y)
    np.testing.assert_allclose(b, ours.y_scores_, atol=1e-8)
    again = KernelCCA(2, gamma_x=0.1, gamma_y=0.1).fit(sp.csr_array(X), Y=sp.csr_array(Y))
    np.testing.assert_allclose(again.transform(sp.csr_array(X)), a, atol=1e-7)
    assert list(ours.get_feature_names_out()) == ["kernelcca0", "kernelcca1"]


def test_finds_what_cca_cannot():
    """y = t² is not correlated with t, but with a function of t; held-out samples agree."""
    t = np.random.default_rng(0).uniform(-3, 3, size=400)
    X, Y = t[:, None], np.cos(2 * t)
    linear, gaussian = (
        KernelCCA(1, kernel_x=kernel, gamma_x=1.0, regularization=1e-3).fit(X[:300], Y[:300])
        for kernel in ("linear", "rbf")
    )
    assert linear.score(X[300:], Y[300:]) < 0.5
    assert gaussian.score(X[300:], Y[300:]) > 0.99


def test_landmarks_lose_little():
    """With landmarks correlations are at most the exact ones, and equal when all of the trace is kept."""
    X, Y = two_views(300)
    exact = KernelCCA(2, gamma_x=0.01, gamma_y=0.01).fit(X, Y)
    few = KernelCCA(2, gamma_x=0.01, gamma_y=0.01, landmarks=20).fit(X, Y)
    many = KernelCCA(2, gamma_x=0.01, gamma_y=0.01, landmarks=300).fit(X, Y)
    assert few.X_fit_.shape[0] <= 20 and 0 < few.lost_trace_[0] < 0.5
    np.testing.assert_allclose(few.correlations_, exact.correlations_, atol=0.1)
    np.testing.assert_allclose(many.correlations_, exact.correlations_, rtol=1e-8)
    rng = np.random.default_rng(0)
    large = rng.normal(size=(30_000, 2))
    assert KernelCCA(1, landmarks=10).fit(large, large[:, 0] ** 2).correlations_[0] > 0.1


def test_strings_and_matrices():
    """A view may consist of strings or of a kernel matrix."""
    words = ["aab", "aba", "abb", "bba", "bbb", "aaa", "bab", "baa"]
    count = np.array([word.count("a") for word in words], dtype=float)
    model = KernelCCA(1, kernel_x=Spectrum(1), kernel_y="linear", regularization=1e-6).fit(words, count)
    assert model.correlations_[0] == pytest.approx(1.0, abs=1e-4)
    K = Spectrum(1)(words)
    matrix = KernelCCA(1, kernel_x="precomputed", kernel_y="linear", regularization=1e-6).fit(K, count)
    np.testing.assert_allclose(matrix.transform(K), model.transform(words), atol=1e-5)
    other = KernelCCA(1, kernel_x="linear", kernel_y=Spectrum(1), regularization=1e-6).fit(count[:, None], words)
    assert other.correlations_[0] == pytest.approx(model.correlations_[0])


def test_files_and_pipelines(tmp_path):
    """A saved model gives the same scores; a pipeline uses those of X."""
    X, Y = two_views(80)
    model = KernelCCA(2).fit(X, Y)
    save(model, tmp_path / "model.mercer")
    again = load(tmp_path / "model.mercer")
    for a, b in zip(again.transform(X, Y), model.transform(X, Y), strict=True):
        np.testing.assert_array_equal(a, b)
    labels = (X[:, 0] > 0).astype(int)
    assert make_pipeline(KernelCCA(1), LinearSVC()).fit(X, labels).score(X, labels) > 0.8


def test_bad_input():
    """Errors name what was found and what to do."""
    X, Y = two_views(20)
    with pytest.raises(InvalidInputError, match=r"KernelCCA requires y to be passed, but the target y is None\."):
        KernelCCA().fit(X)
    with pytest.raises(InvalidInputError, match="it must be a positive number, or two of them"):
        KernelCCA(regularization=(0.1, 0.0)).fit(X, Y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        KernelCCA().fit(X, Y[:5])
    with pytest.raises(ValueError, match="Input y contains NaN"):
        KernelCCA().fit(X, np.full(20, np.nan))
    with pytest.raises(InvalidInputError, match="Set landmarks, for example landmarks=500"):
        KernelCCA(cache_size=1e-4).fit(X, Y)
    with pytest.raises(InvalidInputError, match=r"while a minimum of 2 is required by KernelCCA\."):
        KernelCCA().fit(X[:1], Y[:1])
    with pytest.raises(InvalidInputError, match="The kernel matrix of X is not positive semidefinite"):
        KernelCCA(kernel_x="precomputed").fit(np.array([[1.0, 2.0], [2.0, 1.0]]), [0.0, 1.0])
    with pytest.raises(InvalidInputError, match="pass X and y with the same number of samples"):
        KernelCCA().fit(X, Y).score(X)
    with pytest.raises(InvalidInputError, match=r"A KernelCCA has no certificate\."):
        certify(KernelCCA().fit(X, Y), X, Y)


def test_constant_views():
    """A view without variance has correlation 0, not an error."""
    X, _ = two_views(20)
    model = KernelCCA(1).fit(X, np.ones(20))
    np.testing.assert_allclose(model.correlations_, 0.0, atol=1e-7)
    assert model.score(X, np.ones(20)) == pytest.approx(0.0, abs=1e-6)


def test_a_regularisation_that_rounding_swallows():
    """Below rounding it cannot make a singular covariance definite, and the error says what to do."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.raises(InvalidInputError, match="regularization=1e-300 is lost to rounding"):
        KernelCCA(regularization=1e-300).fit(X, X**2)
