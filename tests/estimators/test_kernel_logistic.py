"""KernelLogisticRegression is logistic regression where features are explicit, and certified everywhere."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.datasets import load_iris, load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from mercer import (
    Gaussian,
    InvalidInputError,
    KernelLogisticRegression,
    NotPositiveSemidefiniteWarning,
    Polynomial,
    Spectrum,
    WeisfeilerLehman,
    certify,
)
from mercer.kernels import Graph

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)[:, :6]
TWO = y > 0


def reference(C, **options):
    return LogisticRegression(C=C, tol=1e-12, max_iter=10_000, solver="newton-cholesky", **options)


@pytest.mark.parametrize("target", [TWO, y], ids=["two", "three"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_linear_kernel_is_sklearn(C, fit_intercept, target):
    """With explicit features decision values and probabilities are scikit-learn's."""
    weight = np.random.default_rng(0).uniform(0.1, 2.0, len(X))
    given = {"fit_intercept": fit_intercept, "class_weight": "balanced"}
    ours = KernelLogisticRegression(C, kernel="linear", tol=1e-13, **given).fit(X, target, weight)
    theirs = reference(C, **given).fit(X, target, weight)
    scale = np.abs(theirs.decision_function(X)).max()
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6 * max(1.0, scale))
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(np.exp(ours.predict_log_proba(X)), ours.predict_proba(X), rtol=1e-12)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    if fit_intercept and ours.intercept_.shape == (3,):
        assert ours.intercept_.sum() == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("target", [TWO, y], ids=["two", "three"])
def test_polynomial_kernel_is_sklearn_on_its_features(target):
    """The feature map of (1 + ⟨x, z⟩)² gives the same model."""
    kernel = Polynomial(degree=2, gamma=1.0, coef0=1.0)
    features = kernel.feature_map(X[:, :3])(X[:, :3])
    ours = KernelLogisticRegression(0.5, kernel=kernel, tol=1e-14).fit(X[:, :3], target)
    theirs = reference(0.5).fit(features, target)
    np.testing.assert_allclose(ours.decision_function(X[:, :3]), theirs.decision_function(features), atol=1e-6)


@pytest.mark.parametrize("target", [TWO, y], ids=["two", "three"])
def test_scipy_finds_nothing_lower(target):
    """A general minimiser over all coefficients does not get below the dual value, and meets the primal."""
    rows = slice(None, None, 6)
    A, t = X[rows], np.unique(target[rows], return_inverse=True)[1]
    model = KernelLogisticRegression(2.0, kernel=Gaussian(0.2), tol=1e-10).fit(A, t)
    K = np.exp(-0.2 * np.square(A[:, None] - A).sum(axis=2))
    values, vectors = np.linalg.eigh(K)
    L = vectors * np.sqrt(np.maximum(values, 0.0))
    n, k = len(A), len(model.intercept_)

    def primal(v):
        theta, b = v[: n * k].reshape(n, k), v[n * k :]
        f = L @ theta + b
        if k == 1:
            loss = np.logaddexp(0.0, -(2 * t - 1) * f[:, 0]).sum()
        else:
            loss = (np.log(np.exp(f).sum(axis=1)) - f[np.arange(n), t]).sum()
        return 0.5 * np.sum(theta**2) + 2.0 * loss

    best = minimize(primal, np.zeros((n + 1) * k), method="L-BFGS-B", options={"maxfun": 10**7, "maxiter": 10**5})
    assert model.certificate_.primal == pytest.approx(best.fun, rel=1e-5)
    assert model.certificate_.dual <= best.fun
    assert model.certificate_.relative_gap <= 1e-10


@pytest.mark.parametrize("target", [TWO, y], ids=["two", "three"])
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e4, 1e8])
def test_gap_on_demand(C, target):
    """The gap is at most tol for every C, is recomputed by certify, and Newton's method needs few steps."""
    model = KernelLogisticRegression(C, gamma=0.5, tol=1e-6).fit(X, target)
    assert model.certificate_.valid and model.certificate_.relative_gap <= 1e-6
    assert model.n_iter_ <= 40 and model.fit_status_ == 0
    again = certify(model, X, target)
    assert again.valid and again.relative_gap <= 2e-6
    assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-9)


def test_weights_are_repetitions():
    """A weight of 2 is a sample twice, a weight of 0 none."""
    weight = np.random.default_rng(1).integers(0, 3, len(X))
    again = np.repeat(np.arange(len(X)), weight)
    ours = KernelLogisticRegression(kernel=Gaussian(0.1), tol=1e-14).fit(X, y, weight)
    theirs = KernelLogisticRegression(kernel=Gaussian(0.1), tol=1e-14).fit(X[again], y[again])
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)
    assert ours.support_.tolist() == np.flatnonzero(weight).tolist()


def test_kinds_of_samples():
    """Precomputed matrices, sparse rows, kernel functions, strings and graphs give what vectors give, or learn."""
    expected = KernelLogisticRegression(kernel=Gaussian(0.1), tol=1e-12).fit(X, y).predict_proba(X[:9])

    def function(A, B):
        return np.exp(-0.1 * np.square(A[:, None] - B).sum(axis=2))

    K = function(X, X)
    for model, samples, new in (
        (KernelLogisticRegression(kernel="precomputed", tol=1e-12), K, K[:9]),
        (KernelLogisticRegression(kernel=function, tol=1e-12), X, X[:9]),
        (KernelLogisticRegression(gamma=0.1, tol=1e-12), sp.csr_array(X), sp.csr_array(X[:9])),
        (KernelLogisticRegression(gamma=0.1, tol=1e-12), X.astype(np.float32), X[:9].astype(np.float32)),
    ):
        np.testing.assert_allclose(model.fit(samples, y).predict_proba(new), expected, atol=2e-5)
    texts, labels = ["abab", "baba", "abba", "xyxy", "yxyx", "xxyy"], ["a", "a", "a", "x", "x", "x"]
    strings = KernelLogisticRegression(10.0, kernel=Spectrum(2)).fit(texts, labels)
    assert strings.predict(["aba", "yxy"]).tolist() == ["a", "x"]
    assert strings.certificate_.relative_gap <= 1e-6
    paths = [Graph([(i, i + 1) for i in range(n)]) for n in (3, 4, 5)]
    stars = [Graph([(0, i) for i in range(1, n)]) for n in (4, 5, 6)]
    graphs = KernelLogisticRegression(10.0, kernel=WeisfeilerLehman(2)).fit(paths + stars, [0] * 3 + [1] * 3)
    assert graphs.predict(paths + stars).tolist() == [0] * 3 + [1] * 3


def test_ends_early():
    """max_iter and time_limit leave a usable, certified model and a warning with numbers and a next step."""
    with pytest.warns(ConvergenceWarning, match=r"Newton's method ended early \(max_iter=1\): raise max_iter or tol"):
        few = KernelLogisticRegression(max_iter=1).fit(X, y)
    assert few.certificate_.valid and few.certificate_.relative_gap > 1e-6 and few.n_iter_ == 1
    np.testing.assert_allclose(few.predict_proba(X).sum(axis=1), 1.0)
    with pytest.warns(ConvergenceWarning, match=r"Solver terminated early \(time_limit=0 s\).*not solved"):
        none = KernelLogisticRegression(time_limit=0).fit(X, y)
    share = np.bincount(y) / len(y)
    np.testing.assert_allclose(none.predict_proba(X[:2]), np.tile(share, (2, 1)), atol=1e-12)
    assert none.certificate_.dual == 0.0 and none.certificate_.valid


def test_warm_start():
    """The second fit starts at the first one, and needs fewer steps."""
    model = KernelLogisticRegression(10.0, warm_start=True).fit(X, y)
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ == 0 < first
    assert model.set_params(C=12.0).fit(X, y).n_iter_ < first
    assert model.fit(X[:90], y[:90]).certificate_.relative_gap <= 1e-6


def test_refused():
    """Too many samples, one class and bad parameters are errors with numbers, before anything is computed."""
    many = np.zeros((100_000, 2))
    with pytest.raises(InvalidInputError, match=r"The kernel matrix of 100,000 samples takes 74.5 GB, but cache_size"):
        KernelLogisticRegression().fit(many, np.arange(100_000) % 2)
    with pytest.raises(InvalidInputError, match=r"with a pipeline of Nystroem and a linear model"):
        KernelLogisticRegression(cache_size=0.1).fit(X, y)
    with pytest.raises(InvalidInputError, match="number of classes has to be greater than one"):
        KernelLogisticRegression().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="The 'C' parameter of KernelLogisticRegression must be"):
        KernelLogisticRegression(np.inf).fit(X, y)
    with pytest.raises(InvalidInputError, match="pass the training data, in the same order"):
        certify(KernelLogisticRegression().fit(X, y), X[:5], y[:5])


def test_indefinite_matrix():
    """A matrix without a minimum of the objective is reported; the certificate claims nothing."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 40))
    with pytest.warns(NotPositiveSemidefiniteWarning):
        model = KernelLogisticRegression(kernel="precomputed").fit(A + A.T, np.arange(40) % 2)
    assert not model.certificate_.valid
    assert "not positive semidefinite" in model.certificate_.reason


def test_class_without_weight():
    """A class without weight has no probability, and the others are those without it."""
    weight = (y != 1).astype(float)
    model = KernelLogisticRegression(kernel=Gaussian(0.1), tol=1e-12).fit(X, y, weight)
    P = model.predict_proba(X)
    assert P[:, 1].max() < 1e-8
    # two functions f and −f: |f|² + Σ C log(1 + exp(−2yf)) is ½|h|² + Σ 2C log(1 + exp(−yh)) over 2 for h = 2f
    two = KernelLogisticRegression(C=2.0, kernel=Gaussian(0.1), tol=1e-12).fit(X[y != 1], y[y != 1])
    np.testing.assert_allclose(P[:, [0, 2]], two.predict_proba(X), atol=1e-6)


def test_many_classes():
    """Ten classes share one run."""
    A, t = make_classification(300, 12, n_informative=8, n_classes=10, random_state=0)
    model = KernelLogisticRegression(10.0).fit(A, t)
    assert model.dual_coef_.shape == (10, 300) and model.certificate_.relative_gap <= 1e-6
    np.testing.assert_allclose(model.dual_coef_.sum(axis=0), 0.0, atol=1e-6)
    np.testing.assert_allclose(model.dual_coef_.sum(axis=1), 0.0, atol=1e-6)


def test_iris_probabilities_are_calibrated_on_training_data():
    """With an intercept the mean of the predicted probabilities is the share of each class: ΣG = 0."""
    A, t = load_iris(return_X_y=True)
    P = KernelLogisticRegression(tol=1e-12).fit(A, t).predict_proba(A)
    np.testing.assert_allclose(P.mean(axis=0), 1 / 3, atol=1e-6)
