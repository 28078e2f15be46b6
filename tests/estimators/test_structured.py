"""Machines on strings and records: in pipelines, searches, pickles, with scikit-learn's tags."""

import pickle
from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from tests.naming import named

from mercer import (
    SVC,
    SVR,
    GaussianProcessRegressor,
    KernelCentroid,
    KernelERM,
    KernelLMS,
    KernelLogisticRegression,
    KernelRidge,
    KernelRidgeCV,
    LinearSVC,
    NuSVC,
    OneClassSVM,
    PegasosClassifier,
    Perceptron,
    RampSVC,
    certify,
)
from mercer.exceptions import InvalidInputError
from mercer.kernels import (
    CommonSubstrings,
    Gaussian,
    Kernel,
    Mismatch,
    On,
    Spectrum,
    Subsequence,
    WeightedDegree,
    White,
    Window,
)
from mercer.kernels.features import ObjectFeatures

rng = np.random.default_rng(0)
X = ["".join(rng.choice(list("ACGT"), rng.integers(12, 20))) for _ in range(60)]
y = np.array(["site" if "AC" in x else "none" for x in X])
NEW = ["".join(rng.choice(list("ACGTN"), 15)) for _ in range(20)]
KERNELS = [
    Spectrum(2),
    Mismatch(3, 1),
    CommonSubstrings(normalize=True),
    Subsequence(2, 0.5, normalize=True),
    Window(2, 0.1, markers=("ACG",)),
    WeightedDegree(3),
    2.0 * Spectrum(2) + WeightedDegree(2) * CommonSubstrings(),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=named)
def test_the_machine_of_the_matrix(kernel):
    """A fit on strings is the fit on their kernel matrix, and prediction compares with support vectors alone."""
    machine = SVC(kernel=kernel, tol=1e-6).fit(X, y)
    bound = kernel.bind(X)
    matrix = SVC(kernel="precomputed", tol=1e-6).fit(bound(X), y)
    expected = matrix.decision_function(bound(NEW, X))
    np.testing.assert_allclose(machine.decision_function(NEW), expected, atol=1e-4)
    assert [X[i] for i in machine.support_] == list(machine.support_vectors_)
    assert certify(machine, X, y).kkt_violation <= 1e-5
    copy = pickle.loads(pickle.dumps(machine))
    np.testing.assert_array_equal(copy.decision_function(NEW), machine.decision_function(NEW))


@pytest.mark.parametrize(
    "estimator",
    [
        NuSVC(kernel=Spectrum(2), nu=0.2),
        OneClassSVM(kernel=Spectrum(2)),
        PegasosClassifier(kernel=Spectrum(2)),
        Perceptron(kernel=Spectrum(2)),
        KernelCentroid(kernel=Spectrum(2)),
        RampSVC(kernel=Spectrum(2)),
        SVR(kernel=Spectrum(2)),
        KernelLogisticRegression(kernel=Spectrum(2)),
        KernelERM("logistic", kernel=Spectrum(2)),
        KernelRidge(kernel=Spectrum(2)),
        KernelRidgeCV(kernel=Spectrum(2)),
        KernelLMS(kernel=Spectrum(2)),
        GaussianProcessRegressor(kernel=Spectrum(2) + White()),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_every_machine(estimator):
    """Strings go through every estimator with a kernel, and learn what is in them."""
    targets = (y == "site").astype(float) if hasattr(estimator, "score") and "R" in type(estimator).__name__[-9:] else y
    if type(estimator).__name__ == "KernelLMS":
        targets = (y == "site").astype(float)
    predicted = estimator.fit(X, targets).predict(X)
    assert len(predicted) == len(X)
    assert estimator.__sklearn_tags__().input_tags.string and not estimator.__sklearn_tags__().input_tags.two_d_array
    if not isinstance(estimator, OneClassSVM):
        assert estimator.score(X, targets) > 0.4
    with pytest.raises(InvalidInputError, match=r"compares strings, but sample 0 is the number 1"):
        estimator.predict([1, 2])


def test_search_and_pipeline():
    """Parameters of the kernel are searched by name, also within a pipeline and among kernels."""
    search = GridSearchCV(SVC(kernel=Spectrum(1)), {"kernel__k": [1, 2], "kernel__normalize": [False, True]}, cv=3)
    assert search.fit(X, y).best_params_["kernel__k"] == 2
    lower = make_pipeline(
        FunctionTransformer(lambda texts: [text.lower() for text in texts]), SVC(kernel="spectrum(2)")
    )
    assert lower.fit(X, y).score([x.lower() for x in X], y) == 1.0
    kernels = {"svc__kernel": [Spectrum(1), Spectrum(2), WeightedDegree(2)]}
    assert GridSearchCV(lower, kernels, cv=3).fit(X, y).best_params_ == {"svc__kernel": Spectrum(2)}


@pytest.mark.parametrize(
    "make", [np.array, pd.Series, pl.Series, lambda x: np.array(x, dtype=object)[:, None]], ids=range(4)
)
def test_columns(make):
    """Columns of arrays and data frames are cut by cross-validation as lists are."""
    expected = cross_val_predict(SVC(kernel=Spectrum(2)), X, y, cv=3)
    np.testing.assert_array_equal(cross_val_predict(SVC(kernel=Spectrum(2)), make(X), y, cv=3), expected)


def test_records():
    """Data frames and lists of dicts: the same machine, cross-validated and searched."""
    records = [{"title": x, "price": float(i % 7)} for i, x in enumerate(X)]
    kernel = On("title", Spectrum(2)) + 0.5 * On("price", Gaussian())
    expected = SVC(kernel=kernel).fit(records, y).decision_function(records)
    for samples in (pd.DataFrame(records), pl.DataFrame(records)):
        machine = SVC(kernel=kernel).fit(samples, y)
        np.testing.assert_array_equal(machine.decision_function(samples), expected)
        assert list(machine.feature_names_in_) == ["title", "price"]
    assert machine.__sklearn_tags__().input_tags.dict
    search = GridSearchCV(SVC(kernel=kernel), {"kernel__left__kernel__k": [1, 2]}, cv=3)
    assert search.fit(records, y).best_params_ == {"kernel__left__kernel__k": 2}
    assert cross_val_score(SVC(kernel=kernel), records, y, cv=3).mean() > 0.8


def test_linear_machines_take_over():
    """The explicit features give a linear machine the same problem."""
    psi = Spectrum(2).feature_map(X)
    linear = LinearSVC(loss="hinge", penalize_intercept=False, tol=1e-8).fit(psi(X), y)
    kernel = SVC(kernel=Spectrum(2), tol=1e-6).fit(X, y)
    np.testing.assert_allclose(linear.decision_function(psi(NEW)), kernel.decision_function(NEW), atol=1e-3)


@dataclass(frozen=True)
class Unison(Kernel):
    """k(x, z) = 1 if two melodies are equal, else 0: a domain that no table has."""

    @property
    def domain(self):
        return "melodies"

    def prepare(self, samples, dtype=np.float64):
        return ObjectFeatures(samples, dtype)

    def block(self, a, b, out=None):
        out = np.empty((len(a), len(b)), b.dtype) if out is None else out
        out[...] = [[float(x == z) for z in b.samples] for x in a.samples]
        return out

    def diagonal(self, a):
        return np.ones(len(a))


def test_a_domain_of_ones_own():
    """A user's kernel may compare objects that no kernel of mercer compares."""
    tunes = [("c", "d"), ("e",), ("c", "d"), ("e",)]
    machine = SVC(kernel=Unison()).fit(tunes, [0, 1, 0, 1])
    assert machine.predict([("e",), ("c", "d")]).tolist() == [1, 0]
    assert not machine.__sklearn_tags__().input_tags.two_d_array


class TestBadInput:
    """Wrong samples are an error at fit and at predict, in one sentence."""

    def test_a_single_string(self):
        """A string is not taken for a list of its characters."""
        with pytest.raises(
            InvalidInputError, match=r"Spectrum\(k=2\) compares strings, but was given the string 'ACGT'"
        ):
            SVC(kernel=Spectrum(2)).fit("ACGT", [0, 1, 0, 1])
        machine = SVC(kernel=Spectrum(2)).fit(X, y)
        with pytest.raises(InvalidInputError, match=r"but was given the string 'ACGT' instead of a sequence of them"):
            machine.predict("ACGT")

    @pytest.mark.parametrize("kernel", ["rbf", "linear", Gaussian()], ids=named)
    def test_strings_for_vectors(self, kernel):
        """The default kernel does not read strings, and says which ones do."""
        with pytest.raises(
            InvalidInputError, match=r"compares vectors, but sample 0 is .* Use a kernel on strings such as"
        ):
            SVC(kernel=kernel).fit(X, y)

    def test_an_expression_that_mixes(self):
        """An expression that cannot be a kernel is refused before the samples are examined."""
        with pytest.raises(
            InvalidInputError, match=r"Cannot read the kernel 'spectrum\(3\) \+ rbf' .* no sample is both"
        ):
            SVC(kernel="spectrum(3) + rbf").fit(X, y)

    def test_no_samples(self):
        """Nothing to learn from; nothing to predict is no error."""
        with pytest.raises(InvalidInputError, match=r"Found array with 0 sample\(s\)"):
            SVC(kernel=Spectrum(2)).fit([], [])
        assert SVC(kernel=Spectrum(2)).fit(X, y).predict([]).shape == (0,)

    def test_lengths(self):
        """As many labels as strings."""
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            SVC(kernel=Spectrum(2)).fit(X, y[:-1])

    def test_empty_strings(self):
        """Strings without features are samples at the origin."""
        machine = SVC(kernel=Spectrum(2, normalize=True)).fit([*X, "", "A"], [*y, "none", "none"])
        values = machine.decision_function(["", "A", "zzz"])
        np.testing.assert_array_equal(values, np.full(3, machine.intercept_[0]))
