"""The answers are scikit-learn's: decision values, support vectors and the layout of every attribute.

LIBSVM keeps kernel values in float32, which moves its optimum by about 1e-7 times the sum of |dual_coef_ K|: the
tolerances follow from that, as both are asked for tol=1e-6. Values of nu are such that nu n is not a whole number: else
all support vectors may be at their bounds, and any offset in an interval is optimal.
"""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.preprocessing import StandardScaler, scale

import mercer

KERNELS = {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 3, "coef0": 1.0},
    "rbf": {"kernel": "rbf"},
    # small enough an argument of tanh makes the matrix positive semidefinite on these data
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.01, "coef0": 0.0},
}


def iris():
    X, y = load_iris(return_X_y=True)
    return scale(X), y


def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300] / 16, y[:300]


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return scale(X), scale(y)


DATA = {"iris": iris, "digits": digits, "cancer": cancer, "diabetes": diabetes}


def fit_both(name, X, y=None, sample_weight=None, **params):
    """mercer's estimator and scikit-learn's, fitted alike."""
    models = [getattr(module, name)(tol=1e-6, **params) for module in (mercer, sklearn.svm)]
    return [model.fit(X, y, sample_weight=sample_weight) for model in models]


def rounding(ours, theirs, X):
    """The change of a decision value that LIBSVM's float32 kernel and two fits within tol may cause."""
    coef = theirs.dual_coef_.toarray() if sp.issparse(theirs.dual_coef_) else theirs.dual_coef_
    return 1e-5 + 2e-6 * np.abs(coef).sum(axis=1).max() * max(1.0, np.abs(ours._kernel(X)).max())


def values(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def assert_same(ours, theirs, X):
    """Decision values agree, labels are equal away from the boundary, attributes have the same layout."""
    atol = rounding(ours, theirs, X)
    np.testing.assert_allclose(values(ours, X), values(theirs, X), rtol=0, atol=atol)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=0, atol=atol)
    for name in ("dual_coef_", "support_vectors_", "support_", "n_support_", "intercept_"):
        one, other = getattr(ours, name), getattr(theirs, name)
        assert type(one) is type(other), name
        # a sample within rounding of the margin may be a support vector for one of them alone
        assert one.ndim == other.ndim and one.dtype.kind == other.dtype.kind, name
    for name in ("n_support_", "intercept_"):
        assert len(getattr(ours, name)) == len(getattr(theirs, name)), name
    if np.array_equal(ours.support_, theirs.support_):
        np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
        assert ours.dual_coef_.shape == theirs.dual_coef_.shape


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ["iris", "digits", "cancer"])
def test_svc(name, kernel):
    """SVC decides as scikit-learn's does, with the same support vectors in the same order."""
    X, y = DATA[name]()
    ours, theirs = fit_both("SVC", X, y, **KERNELS[kernel])
    assert_same(ours, theirs, X)
    both = np.intersect1d(ours.support_, theirs.support_)
    assert len(both) >= 0.98 * max(len(ours.support_), len(theirs.support_))
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ["iris", "cancer"])
def test_nu_svc(name, kernel):
    """NuSVC decides as scikit-learn's does."""
    X, y = DATA[name]()
    assert_same(*fit_both("NuSVC", X, y, nu=0.213, **KERNELS[kernel]), X)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "params", [{"name": "SVR", "epsilon": 0.2}, {"name": "NuSVR", "nu": 0.413}], ids=lambda p: p["name"]
)
def test_regression(params, kernel):
    """SVR and NuSVR predict as scikit-learn's do."""
    X, y = diabetes()
    assert_same(*fit_both(X=X, y=y, C=2.0, **params, **KERNELS[kernel]), X)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ["iris", "digits"])
def test_one_class(name, kernel):
    """OneClassSVM decides as scikit-learn's does."""
    X, _ = DATA[name]()
    X = X - X.min()  # a linear kernel can only tell samples from the origin
    ours, theirs = fit_both("OneClassSVM", X, nu=0.313, **KERNELS[kernel])
    assert_same(ours, theirs, X)
    atol = rounding(ours, theirs, X)
    np.testing.assert_allclose(ours.offset_, theirs.offset_, rtol=0, atol=atol)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=0, atol=atol)


@pytest.mark.parametrize("store", [np.asfortranarray, sp.csr_array, sp.csr_matrix, sp.coo_array, np.float32, list])
@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"])
def test_storage(name, store):
    """The answer does not depend on how the numbers are stored."""
    X, y = digits()
    X = store(X.tolist() if store is list else X)
    nu = {"nu": 0.0513} if name == "NuSVC" else {}
    ours, theirs = fit_both(name, X, y, **nu)
    assert_same(ours, theirs, X)


@pytest.mark.parametrize("name", ["SVC", "SVR", "NuSVR", "OneClassSVM"])
@pytest.mark.parametrize("data", ["iris", "diabetes"])
def test_sample_weight(name, data):
    """Weights of samples, some of them 0, mean the same."""
    X, y = DATA[data]()
    if name == "SVC" and data == "diabetes":
        y = y > 0
    weight = np.random.default_rng(0).integers(0, 4, len(y)) / 2.0
    assert_same(*fit_both(name, X, y, weight), X)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 0.2, 1: 3.0}])
@pytest.mark.parametrize("name", ["iris", "cancer"])
def test_class_weight(name, class_weight):
    """Weights of classes mean the same, alone and with weights of samples."""
    X, y = DATA[name]()
    weight = np.random.default_rng(0).uniform(0.1, 2.0, len(y))
    for sample_weight in (None, weight):
        ours, theirs = fit_both("SVC", X, y, sample_weight, class_weight=class_weight)
        assert_same(ours, theirs, X)
        np.testing.assert_array_equal(ours.class_weight_, theirs.class_weight_)


@pytest.mark.parametrize("shape", ["ovo", "ovr"])
def test_decision_function_shape(shape):
    """Both shapes hold scikit-learn's values."""
    X, y = digits()
    ours, theirs = fit_both("SVC", X, y, decision_function_shape=shape)
    assert ours.decision_function(X).shape == theirs.decision_function(X).shape
    assert_same(ours, theirs, X)


def test_break_ties():
    """Ties are broken by the decision function if that is asked for."""
    X, y = digits()
    ours, theirs = fit_both("SVC", X, y, break_ties=True, gamma=10.0, C=0.1)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_array_equal(ours.predict(X), ours.classes_[ours.decision_function(X).argmax(axis=1)])


@pytest.mark.parametrize("name", ["digits", "cancer"])
def test_attributes(name):
    """Every public attribute of scikit-learn's SVC exists, with its type, shape and numbers."""
    X, y = DATA[name]()
    ours, theirs = fit_both("SVC", X, y)
    names = {name for name in dir(theirs) if name.endswith("_") and not name.startswith("_")} - {"probA_", "probB_"}
    assert {name for name in names if hasattr(theirs, name)} - set(dir(ours)) == set()
    for name in ("classes_", "class_weight_", "support_", "n_support_", "shape_fit_", "fit_status_", "n_features_in_"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
        assert np.asarray(getattr(ours, name)).dtype == np.asarray(getattr(theirs, name)).dtype, name
    assert (ours.n_iter_.shape, ours.n_iter_.dtype) == (theirs.n_iter_.shape, theirs.n_iter_.dtype)
    np.testing.assert_array_equal(ours.support_vectors_, theirs.support_vectors_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-3)


@pytest.mark.parametrize("name", ["iris", "cancer"])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
def test_coef(name, store):
    """coef_ of a linear kernel is scikit-learn's, and gives the decision function."""
    X, y = DATA[name]()
    ours, theirs = fit_both("SVC", store(X), y, kernel="linear", decision_function_shape="ovo")
    coef = ours.coef_.toarray() if sp.issparse(ours.coef_) else ours.coef_
    expected = theirs.coef_.toarray() if sp.issparse(theirs.coef_) else theirs.coef_
    np.testing.assert_allclose(coef, expected, atol=rounding(ours, theirs, X))
    np.testing.assert_allclose((X @ coef.T + ours.intercept_).squeeze(), ours.decision_function(store(X)), atol=1e-9)


def test_unscaled_columns():
    """Columns of very different sizes make no difference to that."""
    X, y = load_breast_cancer(return_X_y=True)
    assert_same(*fit_both("SVC", X, y), X)
    centre = StandardScaler(with_std=False).fit_transform(X)
    assert_same(*fit_both("SVC", centre, y), centre)
