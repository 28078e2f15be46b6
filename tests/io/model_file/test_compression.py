"""Compression changes no decision value by more than the stated bound."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification

import mercer
from mercer import kernels as k
from mercer.exceptions import InvalidInputError

rng = np.random.default_rng(1)
X, y = make_classification(300, 6, n_informative=4, n_classes=3, flip_y=0.1, random_state=0)
NEW = np.vstack([X, 2.0 * rng.normal(size=(2000, 6)), 10.0 * rng.normal(size=(200, 6))])


def values(model, data):
    """The decision values, a column per problem."""
    if isinstance(model, mercer.KernelRidge):
        found = model.predict(data)
    else:
        found = model.decision_function(data) if isinstance(model, mercer.Perceptron) else model._values(data)
    return found.reshape(len(found), -1)


def assert_bounded(model, small, data, max_error):
    record = small.compression_
    every = np.abs(values(small, data) - values(model, data))
    assert record.bound <= max_error
    length = np.sqrt(model._kernel.diagonal(model._kernel.prepare(data)))
    assert len(record.distances) == every.shape[1]
    assert np.all(every <= np.outer(length, record.distances) * (1 + 1e-9) + 1e-12)
    inside = length <= record.radius * (1 + 1e-12)
    assert every[inside].max() <= record.bound * (1 + 1e-9) + 1e-12


MODELS = {
    "SVC": lambda: mercer.SVC(gamma=0.2).fit(X, y > 0),
    "SVC three classes": lambda: mercer.SVC(gamma=0.2).fit(X, y),
    "SVC linear": lambda: mercer.SVC(kernel="linear").fit(X, y),
    "SVC polynomial": lambda: mercer.SVC(kernel="poly", degree=2, coef0=1.0).fit(X, y),
    "SVC sum": lambda: mercer.SVC(kernel=0.5 * k.Gaussian(0.1) + k.Matern(1.5) * k.Gaussian(0.05)).fit(X, y),
    "SVC normalized": lambda: mercer.SVC(kernel=k.Normalized(k.Polynomial(2, 1.0, 1.0))).fit(X, y),
    "SVC sparse": lambda: mercer.SVC(gamma=0.2).fit(sp.csr_array(X), y),
    "NuSVC": lambda: mercer.NuSVC(nu=0.3, gamma=0.2).fit(X, y),
    "SVR": lambda: mercer.SVR(gamma=0.2).fit(X, X[:, 0] + np.sin(X[:, 1])),
    "OneClassSVM": lambda: mercer.OneClassSVM(gamma=0.2).fit(X),
    "KernelRidge": lambda: mercer.KernelRidge(kernel="rbf", gamma=0.1).fit(X, X[:, :2]),
    "KernelLogisticRegression": lambda: mercer.KernelLogisticRegression(gamma=0.2).fit(X, y),
    "KernelERM": lambda: mercer.KernelERM("logistic", gamma=0.2).fit(X, y > 0),
    "KernelCentroid": lambda: mercer.KernelCentroid(gamma=0.2).fit(X, y),
    "Perceptron": lambda: mercer.Perceptron(kernel="rbf", gamma=0.2, random_state=0, max_iter=5).fit(X, y),
}


class TestBound:
    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize("max_error", [1.0, 0.1, 1e-3])
    @pytest.mark.parametrize("name", MODELS)
    def test_holds(self, name, max_error):
        """The bound is at most max_error, and holds at samples near and far."""
        model = MODELS[name]()
        small = mercer.compress(model, max_error=max_error)
        data = sp.csr_array(NEW) if name == "SVC sparse" else NEW
        assert_bounded(model, small, data, max_error)
        assert small.compression_.after <= small.compression_.before
        if max_error == 1.0:
            assert small.compression_.after < small.compression_.before

    def test_linear(self):
        """In d dimensions, d vectors span the space, so hardly anything changes."""
        model = mercer.SVC(kernel="linear").fit(X, y > 0)
        small = mercer.compress(model, max_error=1e-2)
        assert small.compression_.after <= X.shape[1] < small.compression_.before
        np.testing.assert_allclose(small.coef_, model.coef_, atol=1e-2)

    def test_original_is_kept(self):
        """The original model is not changed."""
        model = mercer.SVC(gamma=0.2).fit(X, y)
        before = model.decision_function(NEW)
        small = mercer.compress(model, max_error=0.5)
        assert np.array_equal(model.decision_function(NEW), before)
        assert not hasattr(model, "compression_") and model.certificate_.valid
        assert not small.certificate_.valid and "mercer.certify" in small.certificate_.reason

    def test_twins(self):
        """One of several equal support vectors is kept."""
        model = mercer.SVR(epsilon=0.0, C=0.1, gamma=0.2).fit(np.repeat(X[:50], 3, axis=0), np.repeat(X[:50, 0], 3))
        small = mercer.compress(model, max_error=1e-4)
        assert small.compression_.after <= 50 < small.compression_.before

    def test_certify(self):
        """A compressed model can be certified; it is farther from the optimum than before."""
        model = mercer.SVC(gamma=0.2).fit(X, y)
        small = mercer.compress(model, max_error=0.5)
        before, after = mercer.certify(model, X, y), mercer.certify(small, X, y)
        assert before.relative_gap <= 1e-2 < after.relative_gap < np.inf

    def test_a_smaller_error_needs_more(self):
        """A larger allowed error removes more support vectors."""
        model = mercer.SVC(gamma=0.2).fit(X, y > 0)
        sizes = [mercer.compress(model, max_error=e).compression_.after for e in (1.0, 0.3, 0.1, 0.01)]
        assert sizes == sorted(sizes) and sizes[0] < sizes[-1]


class TestRefused:
    @pytest.mark.parametrize("max_error", [0.0, -1.0, np.nan, np.inf, "a"])
    def test_max_error(self, max_error):
        """The allowed error must be a positive number."""
        with pytest.raises(InvalidInputError, match="must be a positive number"):
            mercer.compress(mercer.SVC().fit(X, y), max_error=max_error)

    @pytest.mark.parametrize(
        ("model", "data", "words"),
        [
            (mercer.SVC(kernel="sigmoid", gamma=0.1), X, "not positive semidefinite"),
            (mercer.SVC(kernel="precomputed"), X @ X.T, "precomputed"),
            (mercer.LinearSVC(), X, "has no support vectors"),
        ],
        ids=["sigmoid", "precomputed", "linear"],
    )
    def test_models(self, model, data, words):
        """Kernels without a bound are refused."""
        with pytest.raises(InvalidInputError, match=words):
            mercer.compress(model.fit(data, y), max_error=0.1)
