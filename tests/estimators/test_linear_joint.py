"""LinearSVC(multi_class="crammer_singer"): all classes in one problem."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.datasets import load_iris
from tests.estimators.test_linear import noisy

from mercer import LinearSVC, certify
from mercer.exceptions import InvalidInputError

JOINT = {"multi_class": "crammer_singer"}


def value(model, X, y, weight):
    """½ΣΣw² + Σ C max(1 − [k = y] + f_k − f_y), by its definition; a penalised intercept counts."""
    F = X @ model.coef_.T + model.intercept_
    terms = F + 1.0
    terms[np.arange(len(y)), y] -= 1.0
    paid = terms.max(axis=1) - F[np.arange(len(y)), y]
    return 0.5 * np.sum(model.coef_**2) + 0.5 * np.sum(np.square(model.intercept_)) + weight @ paid


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
def test_it_is_the_optimum(C, store):
    """The certificate says so, its primal is the value of the model, and scikit-learn's model is not better."""
    X, y = noisy(150, 6, n_classes=4)
    weight = np.random.default_rng(0).uniform(0, 2, len(y))
    model = LinearSVC(**JOINT, C=C, tol=1e-6, max_iter=100_000).fit(store(X), y, sample_weight=weight)
    assert model.certificate_.valid and model.certificate_.relative_gap <= 1e-6
    np.testing.assert_allclose(model.certificate_.primal, value(model, X, y, C * weight), rtol=1e-9)
    theirs = sklearn.svm.LinearSVC(**JOINT, C=C, tol=1e-6, max_iter=100_000, random_state=0)
    theirs.fit(X, y, sample_weight=weight)
    assert model.certificate_.primal <= value(theirs, X, y, C * weight) * (1 + 1e-6)
    np.testing.assert_allclose(model.decision_function(X), theirs.decision_function(X), atol=0.05)


def test_two_classes():
    """The difference of the two weight vectors is published, and certify takes it apart again."""
    X, y = noisy(200)
    model = LinearSVC(**JOINT, tol=1e-6).fit(X, y)
    assert model.coef_.shape == (1, 8) and model.intercept_.shape == (1,)
    assert certify(model, X, y).relative_gap <= 2e-6
    # two classes in one problem are a hinge loss with a quarter of the penalty: w = w₁ − w₀, ½(|w₀|² + |w₁|²) = ¼|w|²
    hinge = LinearSVC(loss="hinge", C=2.0, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.certificate_.primal, hinge.certificate_.primal / 2, rtol=1e-5)


def test_warm_start_and_path():
    """Both begin with what was found."""
    X, y = load_iris(return_X_y=True)
    settings = {"tol": 1e-4, "max_iter": 100_000}
    model = LinearSVC(**JOINT, **settings, warm_start=True).fit(X, y)
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ <= first
    for one in LinearSVC(**JOINT, **settings).path(X, y, [0.1, 1.0]):
        assert one.certificate_.relative_gap <= 1e-4


@pytest.mark.parametrize("n_classes", [2, 4])
def test_free_intercept(n_classes):
    """It is not in the penalty: moving the features does not change the model, and certify agrees."""
    X, y = noisy(150, 6, n_classes=n_classes)
    params = {**JOINT, "penalize_intercept": False, "tol": 1e-6, "max_iter": 100_000}
    model, moved = LinearSVC(**params).fit(X, y), LinearSVC(**params).fit(X + 3.0, y)
    assert model.certificate_.relative_gap <= 1e-6
    assert model.certificate_.primal == pytest.approx(moved.certificate_.primal, rel=3e-6)
    assert model.certificate_.primal <= LinearSVC(**JOINT, tol=1e-6, max_iter=100_000).fit(X, y).certificate_.primal
    proof = certify(model, X, y)
    assert proof.valid and proof.relative_gap <= 3e-6
    assert proof.primal == pytest.approx(model.certificate_.primal, rel=1e-6)


def test_hard_margin_is_refused():
    """The sentence says what to do instead."""
    with pytest.raises(InvalidInputError, match="has no hard margin: set C to a number"):
        LinearSVC(**JOINT, C=np.inf).fit(*noisy(50, n_classes=3))
