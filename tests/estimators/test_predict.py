"""Predictions: each row by itself, the labels that the decision function means, whatever the precision."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits
from tests.naming import named

from mercer import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from mercer.estimators import prediction
from mercer.estimators.prediction import votes
from mercer.kernels import Chi2, Laplacian, Matern
from mercer.svm.batch import class_pairs

KERNELS = [
    "rbf",
    "linear",
    "poly",
    "sigmoid",
    Laplacian(gamma=0.3),
    Matern(),
    Chi2(),
    "0.5*gaussian(gamma=0.1) + linear()",
]


def sample(n=300, d=5, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    X = np.abs(rng.normal(size=(n, d)))
    return X + shift, (X[:, 0] + 0.3 * rng.normal(size=n) > 0.7).astype(int)


def fitted(estimator, X, y):
    return clone(estimator).fit(X, y)


def rows(X):
    return [X[i : i + 1] for i in range(X.shape[0])]


@pytest.mark.filterwarnings("ignore::mercer.exceptions.NotPositiveSemidefiniteWarning")
@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", KERNELS, ids=named)
def test_rows_do_not_depend_on_their_batch(kernel, store):
    """One row at a time, all at once and on several threads: the same bits."""
    X, y = sample()
    X = store(np.where(X < 0.3, 0.0, X))
    model = SVC(kernel=kernel, C=5.0).fit(X, y)
    together = model.decision_function(X)
    assert np.concatenate([model.decision_function(row) for row in rows(X)]).tobytes() == together.tobytes()
    assert model.set_params(n_jobs=3).decision_function(X).tobytes() == together.tobytes()
    np.testing.assert_array_equal(np.concatenate([model.predict(row) for row in rows(X)]), model.predict(X))


@pytest.mark.parametrize("estimator", [SVR(), NuSVR(), OneClassSVM(), SVC(), NuSVC(nu=0.05)], ids=named)
def test_rows_of_several_classes_and_numbers(estimator):
    """The same for regression, novelty detection and several classes."""
    X, y = load_digits(return_X_y=True)
    model = fitted(estimator, X[:400] / 16, y[:400])
    X = X[400:500] / 16
    for method in ("decision_function", "predict"):
        if hasattr(model, method):
            evaluate = getattr(model, method)
            assert np.concatenate([evaluate(row) for row in rows(X)]).tobytes() == evaluate(X).tobytes()


def test_many_rows():
    """More rows than are prepared at a time."""
    X, y = sample()
    model = SVC().fit(X, y)
    many = np.tile(X, (prediction.BATCH // len(X) + 2, 1))
    assert len(many) > prediction.BATCH
    np.testing.assert_array_equal(
        model.decision_function(many).reshape(-1, len(X)), np.tile(model.decision_function(X), (len(many) // len(X), 1))
    )
    np.testing.assert_array_equal(
        model.predict(many).reshape(-1, len(X)), np.tile(model.predict(X), (len(many) // len(X), 1))
    )


def near_the_boundary(model, X):
    """Points between samples on either side of the boundary, halved 60 times: as near to it as float64 allows."""
    value = model.decision_function(X)
    inside, outside = X[value > 0], X[value <= 0]
    n = min(len(inside), len(outside), 100)
    a, b = inside[:n].copy(), outside[:n].copy()
    steps = []
    for _ in range(60):
        middle = 0.5 * (a + b)
        positive = model.decision_function(middle) > 0
        a[positive], b[~positive] = middle[positive], middle[~positive]
        steps.append(middle)
    return np.concatenate(steps)


@pytest.mark.parametrize("shift", [0.0, 10.0, 1e3, 1e5])
@pytest.mark.parametrize(
    "estimator", [SVC(C=100.0), SVC(kernel="linear"), NuSVC(nu=0.3), OneClassSVM(nu=0.3)], ids=named
)
def test_labels_are_signs(estimator, shift):
    """predict, which computes in float32 where it can, gives the sign of decision_function however small it is."""
    X, y = sample(shift=shift)
    model = fitted(estimator, X, y)
    X = np.concatenate([X, near_the_boundary(model, X)])
    value = model.decision_function(X)
    assert np.abs(value).min() < 1e-5
    # an exact 0 is LIBSVM's second class, and no outlier for scikit-learn's checks
    labels = np.array([-1, 1]) if isinstance(model, OneClassSVM) else model.classes_
    expected = labels[(value >= 0).astype(int)]
    np.testing.assert_array_equal(model.predict(X), expected)


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
def test_labels_are_votes(store):
    """With several classes predict counts the votes of the pairs."""
    X, y = load_digits(return_X_y=True)
    model = SVC(decision_function_shape="ovo", gamma=0.02).fit(store(X[:500] / 16), y[:500])
    X = store(X[500:] / 16)
    value = model.decision_function(X)
    expected = np.zeros((X.shape[0], 10))
    for k, (i, j) in enumerate(class_pairs(10)):
        expected[np.arange(len(expected)), np.where(value[:, k] > 0, i, j)] += 1
    np.testing.assert_array_equal(votes(value, 10), expected)
    np.testing.assert_array_equal(model.predict(X), expected.argmax(axis=1))


@pytest.mark.parametrize("shift", [0.0, 30.0, 300.0])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("estimator", [SVC(C=100.0), OneClassSVM(), SVC(gamma=1e-4)], ids=named)
def test_bound_of_the_float32_error(estimator, store, shift):
    """The error that predict allows for in float32 is larger than what is found, by a factor of 3 at least."""
    X, y = load_digits(return_X_y=True)
    X = store(X + shift)
    model = fitted(estimator, X[:600], y[:600])
    coef = model._dual_coef_.toarray() if sp.issparse(model._dual_coef_) else model._dual_coef_
    bound = model._support._single_error(coef, X.shape[0])
    if bound is None:
        assert shift == 300.0
        return
    single, double = (model._support._values(X, coef, dtype, 1) for dtype in (np.float32, np.float64))
    assert (3.0 * np.abs(single - double).max(axis=0) < bound).all()


def test_no_support_vector():
    """A model without support vectors predicts its intercept."""
    X, _ = sample()
    model = SVR(epsilon=10.0).fit(X, X[:, 0])
    assert model.support_vectors_.shape == (0, 5)
    np.testing.assert_array_equal(model.predict(X), np.full(len(X), model.intercept_[0]))


def test_sparse_after_dense():
    """A model fitted to an array takes no sparse matrix, in scikit-learn's words; the reverse is fine."""
    X, y = sample()
    message = "cannot use sparse input in 'SVC' trained on dense data"
    with pytest.raises(ValueError) as error:
        SVC().fit(X, y).predict(sp.csr_array(X))
    assert str(error.value) == message
    model = SVC().fit(sp.csr_array(X), y)
    np.testing.assert_array_equal(model.predict(X), model.predict(sp.csr_array(X)))


def test_unsorted_and_repeated_entries():
    """CSR entries in any order, some of them stored in two parts, mean the same matrix."""
    X, y = sample()
    ordered = sp.csr_array(X)
    d = X.shape[1]
    indices = np.tile(np.r_[np.arange(d)[::-1], 0], len(X)).astype(np.int32)
    data = np.concatenate([X[:, ::-1] * [1, 1, 1, 1, 0.5], X[:, :1] * 0.5], axis=1).ravel()
    messy = sp.csr_array((data, indices, np.arange(0, len(data) + 1, d + 1, dtype=np.int32)), shape=X.shape)
    assert not messy.has_sorted_indices
    model = SVC().fit(messy, y)
    assert not messy.has_sorted_indices, "the user's matrix was changed"
    np.testing.assert_allclose(
        model.decision_function(messy), SVC().fit(ordered, y).decision_function(ordered), atol=1e-12
    )
