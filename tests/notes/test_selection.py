"""Rows 27, 31, 33, 34: several kernels, parameters chosen by cross-validation, a chosen part of the samples."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score

from mercer import SVC, SVCCV, Gaussian, MKLClassifier, Nystroem, On, RandomFeatures, compress, leave_one_out


def test_27_weights_of_several_kernels():
    """[M5] "learning the kernel": no sum of the same norm has a lower optimum than the learnt one."""
    X, y = load_iris(return_X_y=True)
    X, y = X[y > 0], y[y > 0]
    kernels = [On([j], Gaussian(1.0)) for j in range(4)]
    learnt = MKLClassifier(kernels, C=1.0, norm=1, tol=1e-4).fit(X, y)
    assert learnt.kernel_weights_.sum() == pytest.approx(1.0)
    plain = MKLClassifier(kernels, C=1.0, norm=1, weights="uniform").fit(X, y)
    assert learnt.certificate_.primal <= plain.certificate_.primal
    assert learnt.certificate_.relative_gap < 1e-3


def test_31_parameters_of_a_machine():
    """[M5] "always do an internal parameter search": it scores as folds by hand do, and finds the best of them."""
    X, y = load_iris(return_X_y=True)
    search = SVCCV(Cs=[0.1, 1.0, 10.0], gammas=[0.01, 0.1], cv=3).fit(X, y)
    by_hand = [
        np.mean(cross_val_score(SVC(C=p["C"], gamma=p["gamma"]), X, y, cv=3)) for p in search.cv_results_["params"]
    ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], by_hand, atol=1e-12)
    assert search.best_score_ == max(by_hand)


def test_31_leave_one_out():
    """Only support vectors can change anything: the exact error equals that of one fit for each sample."""
    X, y = load_iris(return_X_y=True)
    X, y = X[50:110], y[50:110]
    model = SVC(C=1.0, gamma=0.1).fit(X, y)
    wrong = [
        SVC(C=1.0, gamma=0.1).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[[i]])[0] != y[i] for i in range(60)
    ]
    assert leave_one_out(model, X, y).error == np.mean(wrong)


def test_33_landmarks():
    """[M5] dictionary methods: products of the features are K·ₘKₘₘ⁻¹Kₘ·, and all samples as landmarks give K."""
    X, _ = load_iris(return_X_y=True)
    kernel = Gaussian(0.5)
    few = Nystroem(kernel, n_components=20, random_state=0).fit(X)
    Z, part = few.transform(X), X[few.component_indices_]
    K_part = kernel(part)
    expected = kernel(X, part) @ np.linalg.solve(K_part + 1e-12 * np.eye(len(part)), kernel(part, X))
    np.testing.assert_allclose(Z @ Z.T, expected, atol=1e-5)
    distinct = np.unique(X, axis=0)
    whole = Nystroem(kernel, n_components=len(distinct), random_state=0).fit_transform(distinct)
    np.testing.assert_allclose(whole @ whole.T, kernel(distinct), atol=1e-6)


def test_33_random_features():
    """Bochner's theorem instead of a dictionary: cosines and sines of m random frequencies lose about 1/√m."""
    X, _ = load_iris(return_X_y=True)
    K, error = Gaussian(0.5)(X), {}
    for m in (50, 5000):
        Z = RandomFeatures(gamma=0.5, n_components=2 * m, random_state=0).fit_transform(X)
        error[m] = np.sqrt(np.mean((Z @ Z.T - K) ** 2))
        assert error[m] < 1.0 / np.sqrt(m)
    assert error[5000] < 0.2 * error[50]


def test_34_fewer_support_vectors():
    """A compressed model keeps its promise: no decision value changes by more than the bound."""
    X, y = load_iris(return_X_y=True)
    model = SVC(C=1.0, gamma=0.5).fit(X[50:], y[50:])
    small = compress(model, max_error=0.1)
    assert len(small.support_vectors_) < len(model.support_vectors_)
    new = X + np.random.default_rng(0).normal(size=X.shape)
    assert np.abs(small.decision_function(new) - model.decision_function(new)).max() <= 0.1
