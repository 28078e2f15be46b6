"""LinearSVC(multi_class="crammer_singer"): all classes in one problem."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from scipy.optimize import linprog
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from tests.estimators.linear.test_linear import noisy
from tests.naming import named
from tests.reference.linear import solve

from mercer import LinearSVC, certify
from mercer.exceptions import InvalidInputError, NotSeparableError

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


def apart(seed, n_classes=4, n=40, d=3, spread=4.0):
    """Classes that linear functions separate, mostly."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    return spread * rng.normal(size=(n_classes, d))[y] + 0.5 * rng.normal(size=(n, d)), y


def pairs(X, y, n_classes):
    """A row for each sample and each class that it does not belong to, written out."""
    rows = []
    for x, own in zip(X, y, strict=True):
        for other in set(range(n_classes)) - {own}:
            row = np.zeros((n_classes, X.shape[1]))
            row[own], row[other] = x, -x
            rows.append(row.ravel())
    return np.array(rows)


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array], ids=named)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_hard_margin(seed, fit_intercept, store):
    """The largest margin, as an independent QP solver finds it on all pairs written out; or the proof of none."""
    X, y = apart(seed)
    A = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    Z = pairs(A, y, 4)
    ones = np.ones(len(Z))
    model = LinearSVC(**JOINT, C=np.inf, tol=1e-8, fit_intercept=fit_intercept)
    if linprog(np.zeros(Z.shape[1]), A_ub=-Z, b_ub=-ones, bounds=(None, None)).status == 2:
        with pytest.raises(NotSeparableError, match="The 4 classes are not separable"):
            model.fit(store(X), y)
        return
    proof = model.fit(store(X), y).certificate_
    assert proof.valid and proof.relative_gap <= 1e-8 and proof.kkt_violation <= 1e-5
    assert proof.primal == pytest.approx(solve(Z, ones, np.full(len(Z), np.inf), "hard").value, rel=1e-6)
    F = X @ model.coef_.T + model.intercept_
    margins = F[np.arange(len(y)), y][:, None] - F
    margins[np.arange(len(y)), y] = np.inf
    assert margins.min() == pytest.approx(1.0, rel=1e-8)
    assert certify(model, X, y).relative_gap <= 1e-6


def test_hard_margin_from_a_part_of_the_pairs():
    """Pairs come in only where a model violates them; samples of weight 0 ask for nothing."""
    rng = np.random.default_rng(0)
    y = np.arange(600) % 5
    X = 10.0 * np.eye(5, 4)[y] + rng.normal(size=(600, 4))
    X[0], weight = -X[0], np.ones(600)
    weight[0] = 0.0
    model = LinearSVC(**JOINT, C=np.inf).fit(X, y, sample_weight=weight)
    assert model.certificate_.relative_gap <= 1e-4
    assert (model.predict(X)[1:] == y[1:]).all()


def test_no_hard_margin():
    """The weights that come with the error are a proof: the reader can check it."""
    X, y = load_iris(return_X_y=True)
    with pytest.raises(NotSeparableError, match="one linear function per class") as raised:
        LinearSVC(**JOINT, C=np.inf).fit(X, y)
    weights = raised.value.common_point_weights
    own = weights[np.arange(len(y)), y]
    assert own.min() >= 0 and own.sum() == pytest.approx(1.0)
    others = np.where(np.arange(3) == y[:, None], 0.0, weights)
    assert others.max() <= 0 and np.abs(weights.sum(axis=1)).max() < 1e-12
    A = np.column_stack([X, np.ones(len(X))])
    assert np.linalg.norm(A.T @ weights) == pytest.approx(raised.value.distance, abs=1e-9)
    assert raised.value.distance < 1e-5


def test_hard_margin_with_free_intercepts_is_refused():
    """The sentence says what to do instead."""
    with pytest.raises(InvalidInputError, match="use penalize_intercept=True"):
        LinearSVC(**JOINT, C=np.inf, penalize_intercept=False).fit(*apart(0))


def test_hard_margin_without_time():
    """A usable model and a warning that says how far it is."""
    with pytest.warns(ConvergenceWarning, match="The model is not solved"):
        model = LinearSVC(**JOINT, C=np.inf, max_iter=0).fit(*apart(0))
    assert np.isfinite(model.coef_).all() and model.certificate_.relative_gap > 1e-4
