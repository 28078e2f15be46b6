"""Conversion to scikit-learn and back keeps the predictions."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import kernel_ridge, svm
from sklearn.linear_model import LogisticRegression
from tests.io.models import BINARY, FRAME, REAL, THREE, X
from tests.naming import named

import mercer
from mercer import kernels as k
from mercer.exceptions import InvalidInputError

S = sp.csr_array(X * (X > -0.5))
TARGETS = {"SVC": THREE, "NuSVC": THREE, "SVR": REAL, "NuSVR": REAL, "OneClassSVM": None}


def linear_function(A, B):
    return np.asarray(A) @ np.asarray(B).T


def assert_same(a, b, data, tol=1e-9):
    assert a.predict(data).dtype == b.predict(data).dtype
    if hasattr(a, "decision_function"):
        values = a.decision_function(data)
        np.testing.assert_allclose(values, b.decision_function(data), rtol=tol, atol=tol)
        # on the boundary, rounding errors decide the sign
        clear = np.abs(values).reshape(len(values), -1).min(axis=1) > tol
        assert clear.any()
        assert np.array_equal(a.predict(data)[clear], b.predict(data)[clear])
    else:
        np.testing.assert_allclose(a.predict(data), b.predict(data), rtol=tol, atol=tol)


def cases():
    for name in TARGETS:
        for kernel in ("linear", "poly", "rbf", "sigmoid"):
            for storage in ("dense", "sparse"):
                yield name, {"kernel": kernel, "coef0": 0.1}, storage
        yield name, {"kernel": "precomputed"}, "matrix"
        yield name, {"kernel": linear_function}, "dense"


every_machine = pytest.mark.parametrize(
    ("name", "params", "storage"),
    list(cases()),
    ids=lambda v: named(v if isinstance(v, str) else v["kernel"]),
)


def data_for(storage):
    return {"dense": X, "sparse": S, "matrix": X @ X.T}[storage]


class TestKernelMachines:
    @pytest.mark.filterwarnings("ignore")
    @every_machine
    def test_to_sklearn(self, name, params, storage):
        """scikit-learn predicts the same from mercer's coefficients."""
        data = data_for(storage)
        model = getattr(mercer, name)(**params).fit(data, TARGETS[name])
        theirs = mercer.to_sklearn(model)
        assert type(theirs) is getattr(svm, name)
        assert_same(theirs, model, data)
        assert np.array_equal(theirs.n_support_, model.n_support_)

    @pytest.mark.filterwarnings("ignore")
    @every_machine
    def test_from_sklearn(self, name, params, storage):
        """mercer predicts the same from scikit-learn's coefficients, and can certify them."""
        data = data_for(storage)
        theirs = getattr(svm, name)(**params).fit(data, TARGETS[name])
        model = mercer.from_sklearn(theirs)
        assert type(model) is getattr(mercer, name)
        assert_same(model, theirs, data)
        assert not model.certificate_.valid and "mercer.certify" in model.certificate_.reason
        found, expected = (mercer.certify(m, data, TARGETS[name]) for m in (model, theirs))
        assert found == expected or abs(found.gap - expected.gap) <= 1e-6 * abs(expected.primal)

    @pytest.mark.parametrize(
        "kernel",
        [
            k.Matern(1.5),
            0.5 * k.Gaussian(0.1) + k.Linear(),
            k.Gaussian((0.1, 0.2, 0.3, 0.4)),
            "0.5*gaussian(gamma=0.1)",
        ],
        ids=named,
    )
    @pytest.mark.parametrize("name", TARGETS)
    def test_other_kernels(self, name, kernel):
        """A kernel that scikit-learn lacks becomes a callable."""
        model = getattr(mercer, name)(kernel=kernel).fit(X, TARGETS[name])
        assert_same(mercer.to_sklearn(model), model, X)

    @pytest.mark.parametrize("labels", [BINARY, BINARY == "yes", THREE.astype(float)], ids=["text", "bool", "float"])
    def test_labels(self, labels):
        """Labels of any type, two classes or more."""
        model = mercer.SVC().fit(X, labels)
        assert_same(mercer.to_sklearn(model), model, X)
        assert_same(mercer.from_sklearn(svm.SVC().fit(X, labels)), model, X, tol=0.02)

    def test_there_and_back(self):
        """Conversion to scikit-learn and back changes nothing."""
        model = mercer.SVC(C=3.0, class_weight="balanced").fit(X, THREE)
        back = mercer.from_sklearn(mercer.to_sklearn(model))
        assert np.array_equal(back.decision_function(X), model.decision_function(X))
        assert back.C == 3.0 and back.class_weight == "balanced"
        np.testing.assert_allclose(back.rkhs_norm_, model.rkhs_norm_, rtol=1e-6)

    @pytest.mark.parametrize("name", TARGETS)
    def test_fitted_again(self, name):
        """A converted machine has no deprecated parameter set, and no probabilities that nobody has asked for."""
        ours, theirs = (getattr(package, name)().fit(X, TARGETS[name]) for package in (mercer, svm))
        for converted in (mercer.to_sklearn(ours), mercer.from_sklearn(theirs)):
            assert not hasattr(converted, "predict_proba")
            assert_same(converted.fit(X, TARGETS[name]), ours, X, tol=0.02)

    @pytest.mark.filterwarnings("ignore")
    def test_probabilities(self):
        """The sigmoids of probabilities are converted; LIBSVM's coupling is accurate to 0.005."""
        theirs = svm.SVC(probability=True, random_state=0).fit(X, THREE)
        model = mercer.from_sklearn(theirs)
        np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=0.005)
        np.testing.assert_allclose(mercer.to_sklearn(model).predict_proba(X), theirs.predict_proba(X), atol=1e-12)

    def test_names(self):
        """Feature names are kept."""
        model = mercer.SVC().fit(FRAME[["a", "b"]], THREE)
        assert mercer.to_sklearn(model).feature_names_in_.tolist() == ["a", "b"]
        assert_same(mercer.to_sklearn(model), model, FRAME[["a", "b"]])

    def test_hard_margin(self):
        """C=inf, which scikit-learn refuses, becomes the largest float."""
        model = mercer.SVC(C=np.inf, gamma=50.0).fit(X, THREE)
        assert_same(mercer.to_sklearn(model), model, X)

    def test_saved(self, tmp_path):
        """A model from scikit-learn can be saved."""
        model = mercer.from_sklearn(svm.SVC().fit(X, THREE))
        mercer.save(model, tmp_path / "m.mercer")
        assert np.array_equal(mercer.load(tmp_path / "m.mercer").decision_function(X), model.decision_function(X))


class TestLinear:
    @pytest.mark.parametrize("labels", [BINARY, THREE], ids=["two", "three"])
    @pytest.mark.parametrize("params", [{}, {"fit_intercept": False}, {"multi_class": "crammer_singer"}], ids=named)
    def test_classifier(self, labels, params):
        """Weights are weights."""
        model = mercer.LinearSVC(**params).fit(X, labels)
        assert_same(mercer.to_sklearn(model), model, X)
        theirs = svm.LinearSVC(max_iter=100_000, **params).fit(X, labels)
        back = mercer.from_sklearn(theirs)
        assert_same(back, theirs, X)
        assert not back.certificate_.valid
        assert mercer.certify(back, X, labels).relative_gap < 0.01

    @pytest.mark.parametrize("params", [{}, {"fit_intercept": False}], ids=named)
    def test_regression(self, params):
        """Weights are weights."""
        model = mercer.LinearSVR(**params).fit(X, REAL)
        assert_same(mercer.to_sklearn(model), model, X)
        theirs = svm.LinearSVR(max_iter=100000, **params).fit(X, REAL)
        assert_same(mercer.from_sklearn(theirs), theirs, X)

    def test_what_scikit_learn_does_not_know(self):
        """A penalty or loss that scikit-learn lacks does not affect predictions."""
        for model in (
            mercer.LinearSVC(penalty="elasticnet").fit(X, THREE),
            mercer.LinearSVR(loss="pinball").fit(X, REAL),
        ):
            assert_same(mercer.to_sklearn(model), model, X)


class TestRidge:
    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "laplacian", "sigmoid", "cosine", "precomputed"])
    @pytest.mark.parametrize("several", [False, True], ids=["one target", "two targets"])
    def test_named_kernels(self, kernel, several):
        """Conversion in both directions, for each kernel that scikit-learn has a name for."""
        data, target = (
            (X @ X.T if kernel == "precomputed" else X),
            (np.column_stack([REAL, -REAL]) if several else REAL),
        )
        model = mercer.KernelRidge(kernel=kernel).fit(data, target)
        assert_same(mercer.to_sklearn(model), model, data, tol=1e-7)
        theirs = kernel_ridge.KernelRidge(kernel=kernel).fit(data, target)
        assert_same(mercer.from_sklearn(theirs), theirs, data, tol=1e-7)

    @pytest.mark.parametrize("kernel", [k.Matern(1.5), k.Gaussian(0.3), 2.0 * k.Linear()], ids=named)
    def test_other_kernels(self, kernel):
        """A kernel object becomes a name or a callable."""
        model = mercer.KernelRidge(kernel=kernel).fit(X, REAL)
        assert_same(mercer.to_sklearn(model), model, X)

    def test_intercept(self):
        """scikit-learn's KernelRidge has no intercept."""
        with pytest.raises(InvalidInputError, match="has no intercept"):
            mercer.to_sklearn(mercer.KernelRidge(fit_intercept=True).fit(X, REAL + 5.0))


class TestRefused:
    def test_other_classes(self):
        """Other classes are refused with a list of the supported ones."""
        with pytest.raises(InvalidInputError, match=r"from_sklearn converts SVC, .* was given sklearn\.linear_model"):
            mercer.from_sklearn(LogisticRegression().fit(X, THREE))
        with pytest.raises(InvalidInputError, match="to_sklearn converts SVC"):
            mercer.to_sklearn(svm.SVC().fit(X, THREE))
        with pytest.raises(InvalidInputError, match="PegasosClassifier"):
            mercer.to_sklearn(mercer.PegasosClassifier().fit(X, THREE))

    @pytest.mark.parametrize(
        ("function", "model"), [(mercer.to_sklearn, mercer.SVC()), (mercer.from_sklearn, svm.SVC())], ids=["to", "from"]
    )
    def test_not_fitted(self, function, model):
        """An unfitted model raises scikit-learn's error."""
        with pytest.raises(ValueError, match="is not fitted yet"):
            function(model)
