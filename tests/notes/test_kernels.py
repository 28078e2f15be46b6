"""Rows 20, 25–28, 35, 39: kernels, what makes them kernels, and what they are used for."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from tests.notes.samples import overlapping

from mercer import (
    SVC,
    Gaussian,
    Linear,
    Min,
    Normalized,
    Polynomial,
    PowerSeries,
    Precomputed,
    RKHSFunction,
    Sigmoid,
    check_mercer,
    datasets,
    diagnose,
)


def value(kernel, x, z):
    """k(x, z) of two samples."""
    kernel = kernel.bind(np.array([x, z], dtype=float))
    a, b = kernel.prepare([x]), kernel.prepare([z])
    return float(kernel.block(a, b)[0, 0])


def test_20_kernels_on_vectors():
    """Every formula of the notes, at x = (1, 2), z = (3, 1): ⟨x, z⟩ = 5, |x − z|² = 5."""
    x, z = [1.0, 2.0], [3.0, 1.0]
    assert value(Linear(), x, z) == 5
    assert value(Polynomial(degree=3, gamma=1.0, coef0=0.0), x, z) == 5**3  # (x·z)^k
    assert value(Polynomial(degree=3, gamma=1.0, coef0=2.0), x, z) == 7**3  # (c + x·z)^k
    assert value(PowerSeries((1.0, 1.0, 1.0, 1.0)), x, z) == 1 + 5 + 25 + 125  # [CS229] (5.9)
    assert value(Gaussian(gamma=0.3), x, z) == pytest.approx(np.exp(-0.3 * 5))
    assert value(Sigmoid(gamma=0.1, coef0=-0.2), x, z) == pytest.approx(np.tanh(0.1 * 5 - 0.2))
    assert value(Min(), [4.0], [7.0]) == 4  # [SSBD] Ex. 16.4


def test_20_widths_of_the_gaussian():
    """1/(2σ) in [SSBD], 1/σ in [L8], 1/(2σ²) in [CS229] and [M5]: one gamma; from_sigma takes the last."""
    assert value(Gaussian.from_sigma(2.0), [0.0], [1.0]) == pytest.approx(np.exp(-1 / (2 * 2.0**2)))
    s = 3.0
    for convention, divisor in (("ssbd", 2 * s), ("l8", s), ("cs229", 2 * s**2), ("m5", 2 * s**2)):
        assert value(Gaussian.from_width(s, convention), [0.0], [2.0]) == pytest.approx(np.exp(-4 / divisor))


def test_20_inhomogeneous_polynomial():
    """(1 + ⟨x, z⟩)ᵏ by its own name; kernel="poly" is (γ⟨x, z⟩)ᵏ, scikit-learn's, with another γ and no constant."""
    X, y = overlapping()
    model = SVC(kernel="inhomogeneous", degree=2, tol=1e-9).fit(X, y)
    matrix = SVC(kernel="precomputed", tol=1e-9).fit((1 + X @ X.T) ** 2, y)
    np.testing.assert_allclose(model.decision_function(X), matrix.decision_function((1 + X @ X.T) ** 2), atol=1e-6)
    poly = SVC(kernel="poly", degree=2, tol=1e-9).fit(X, y)
    assert poly._kernel == Polynomial(2, 1 / (2 * X.var()), 0.0)


def test_25_bag_of_words():
    """[SSBD] 15.2.2: documents as sparse rows of words; ρ² is the largest number of distinct words in one."""
    documents = [
        "goal match team",
        "team coach goal",
        "match win team",
        "vote law party",
        "party vote court",
        "law bill",
    ]
    words = sorted({word for document in documents for word in document.split()})
    X = sp.csr_array([[float(word in document.split()) for word in words] for document in documents])
    sports = np.array([1, 1, 1, 0, 0, 0])
    model = SVC(C=np.inf, kernel="linear").fit(X, sports)
    assert sp.issparse(model.support_vectors_)
    assert model.score(X, sports) == 1.0
    new = sp.csr_array([[float(word in ("team", "win", "bill")) for word in words]])
    assert model.predict(new)[0] == 1
    assert X.multiply(X).sum(axis=1).max() == 3


def test_26_mercers_condition():
    """[CS229] Mercer, [SSBD] Lemma 16.2: symmetric with no negative eigenvalue; distances are no kernel."""
    X, _ = overlapping()
    assert check_mercer(Gaussian(1.0), X).positive_semidefinite
    distances = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    report = check_mercer(distances)
    assert report.symmetric and not report.positive_semidefinite and report.smallest_eigenvalue < 0
    assert report.witness @ distances @ report.witness < 0  # the proof
    assert check_mercer(Gaussian(1.0), X).witness is None
    # v'Kv = |Σ vφ(x)|² of any v cannot be negative
    K = Gaussian(1.0).block(Gaussian(1.0).prepare(X), Gaussian(1.0).prepare(X))
    v = np.random.default_rng(0).normal(size=(len(X), 100))
    assert (np.einsum("ik,ij,jk->k", v, K, v) >= 0).all()


def test_27_kernels_from_kernels():
    """[M5]: sums, products, multiples, powers and normalisation of kernels are kernels of that formula."""
    x, z = [1.0, 2.0], [3.0, 1.0]
    k, g = Linear(), Gaussian(0.3)
    one, other = value(k, x, z), value(g, x, z)
    assert value(k + g, x, z) == pytest.approx(one + other)
    assert value(k * g, x, z) == pytest.approx(one * other)
    assert value(2.5 * g, x, z) == pytest.approx(2.5 * other)
    assert value(k**3, x, z) == pytest.approx(one**3)
    assert value(Normalized(k), x, z) == pytest.approx(one / np.sqrt(5.0 * 10.0))
    X, _ = overlapping()
    for built in (k + g, k * g, 2.5 * g, k**3, Normalized(k)):
        assert check_mercer(built, X).positive_semidefinite


def test_27_near_diagonal():
    """[M5]: a matrix close to diagonal is a sign of overfitting, and is reported as one."""
    X, y = overlapping()
    assert check_mercer(Gaussian(1e4), X).near_diagonal and not check_mercer(Gaussian(0.1), X).near_diagonal
    assert diagnose(SVC(gamma=1e4).fit(X, y), X, y)["nearest similarity"].symptom


def test_28_representer():
    """[SSBD] Theorem 16.1: w = Σ αφ(x) with |w|² = α'Kα, and prediction needs kernel values alone."""
    X, y = overlapping()
    model = SVC(C=2.0, gamma=0.5).fit(X, y)
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    alpha = np.zeros(len(y))
    alpha[model.support_] = model.dual_coef_[0]
    assert model.rkhs_norm_[0] == pytest.approx(np.sqrt(alpha @ K @ alpha))
    np.testing.assert_allclose(model.decision_function(X), K @ alpha + model.intercept_, atol=1e-10)
    of_matrix = SVC(C=2.0, kernel=Precomputed()).fit(K, y)
    np.testing.assert_allclose(of_matrix.decision_function(K), model.decision_function(X), atol=2e-3)  # tol is 1e-3


@pytest.mark.parametrize("kernel", [Polynomial(3, 1.0, 0.0), Gaussian("scale")], ids=["polynomial", "gaussian"])
def test_35_digits(kernel):
    """[CS229]: digits from their pixels alone, ten classes, with a polynomial and a Gaussian kernel."""
    X, y = load_digits(return_X_y=True)
    X = X / 16
    model = SVC(C=10.0, kernel=kernel).fit(X[::2], y[::2])
    assert len(model.certificates_) == 45
    assert model.score(X[1::2], y[1::2]) > 0.97


@pytest.mark.parametrize("kernel", [Polynomial(3, 1 / 64, 0.0), Gaussian("scale")], ids=["polynomial", "gaussian"])
def test_35_digits_of_16_by_16_pixels(kernel):
    """[CS229] 5.4 has 16 × 16 pixels, so 256 features: here 8 × 8 scans, enlarged by linear interpolation."""
    digits = datasets.load("digits16")
    X, y = digits.X, digits.y
    assert X.shape[1] == 16 * 16
    model = SVC(C=10.0, kernel=kernel).fit(X[::2], y[::2])
    assert len(model.certificates_) == 45 and model.certificate_.relative_gap < 0.01
    assert model.score(X[1::2], y[1::2]) > 0.97


def test_39_reproducing_property():
    """[M5] and [SSBD] 16.2.2: ⟨k(x, ·), k(z, ·)⟩ = k(x, z), so ⟨f, k(x, ·)⟩ = f(x), here for the f of a machine."""
    X, y = overlapping()
    model = SVC(C=2.0, gamma=0.5).fit(X, y)
    f = model.function_
    k_x = [RKHSFunction(f.kernel, [x], [1.0]) for x in X[:10]]
    K = np.exp(-0.5 * ((X[:10, None] - X[:10]) ** 2).sum(axis=2))
    np.testing.assert_allclose([[a.inner(b) for a in k_x] for b in k_x], K, atol=1e-14)
    np.testing.assert_allclose([f.inner(a) for a in k_x], f(X[:10]), atol=1e-13)
    np.testing.assert_allclose(f(X) + model.intercept_, model.decision_function(X), atol=1e-13)
    assert f.norm() == pytest.approx(model.rkhs_norm_[0], rel=1e-12)


def test_39_representer_by_projection():
    """The proof of Theorem 16.1: the part of f orthogonal to the samples changes no value there, only the norm."""
    X, y = overlapping()
    w = SVC(C=2.0, gamma=0.5).fit(X, y).function_
    elsewhere = RKHSFunction(w.kernel, X[:5] + 1.0, [1.0, -2.0, 3.0, -1.0, 0.5])
    f = w + elsewhere
    p = f.project(X)
    np.testing.assert_allclose(p(X), f(X), atol=1e-7)  # directions below √ε are left out
    assert (f - p).inner(w) == pytest.approx(0.0, abs=1e-6)
    assert p.norm() < f.norm()
    assert p.norm() ** 2 + (f - p).norm() ** 2 == pytest.approx(f.norm() ** 2)
