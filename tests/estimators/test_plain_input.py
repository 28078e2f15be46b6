"""Plain input, which is checked once or not at all, gives the same models, attributes and errors."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from tests.naming import named

from mercer import SVC, SVR, KernelRidge, LinearSVC, NuSVR, OneClassSVM
from mercer.exceptions import InvalidInputError
from mercer.kernels import Gaussian
from mercer.validation import class_codes

X = np.random.default_rng(0).normal(size=(40, 3))
Y = np.where(X[:, 0] + X[:, 1] > 0, 3, -2)
ESTIMATORS = [SVC(), SVR(), NuSVR(), OneClassSVM(), KernelRidge(kernel="rbf"), LinearSVC()]


def _shuffled(X):
    """CSR rows whose columns are out of order, one entry of each stored in two parts."""
    columns = np.tile([2, 0, 1, 2], len(X)).astype(np.int32)
    parts = X[:, [2, 0, 1, 2]] * [0.5, 1.0, 1.0, 0.5]
    return sp.csr_array((parts.ravel(), columns, 4 * np.arange(len(X) + 1, dtype=np.int32)), shape=X.shape)


def _long(kind):
    """The sparse format with 64-bit indices."""

    def form(X):
        rows = kind(X)
        if rows.format == "coo":
            rows.coords = tuple(numbers.astype(np.int64) for numbers in rows.coords)
        else:
            rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
        return rows

    return form


def values(model, Z=X):
    return (getattr(model, "decision_function", None) or model.predict)(Z)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
@pytest.mark.parametrize(
    "form",
    [np.asfortranarray, np.ndarray.tolist, pd.DataFrame, lambda a: a[::-1][::-1]],
    ids=["F", "list", "pd", "view"],
)
def test_every_form_gives_the_same_model(estimator, form):
    """Arrays that are taken as they are, and arrays that scikit-learn checks."""
    plain = values(estimator.fit(X, Y))
    np.testing.assert_array_equal(values(estimator.fit(form(X), Y), form(X)), plain)
    assert estimator.n_features_in_ == 3


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
@pytest.mark.parametrize(
    "form",
    [sp.csr_matrix, sp.coo_array, _shuffled]
    + [_long(kind) for kind in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array, sp.coo_matrix)],
    ids=["matrix", "coo", "shuffled", "long csr", "long matrix", "long csc", "long coo", "long coo matrix"],
)
def test_every_sparse_form_gives_the_same_model(estimator, form):
    """Sparse rows that are taken as they are, and those that are sorted, summed up or converted first."""
    plain = values(estimator.fit(sp.csr_array(X), Y), sp.csr_array(X))
    np.testing.assert_allclose(values(estimator.fit(form(X), Y), form(X)), plain, rtol=1e-7)
    assert estimator.n_features_in_ == 3


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_errors_of_sparse_rows(estimator):
    """NaN, infinity, another number of features or targets, no samples."""
    rows = sp.csr_array(X)
    for value, word in ((np.nan, "NaN"), (np.inf, "infinity")):
        spoilt = rows.copy()
        spoilt.data[4] = value
        with pytest.raises(ValueError, match=f"Input X contains {word}"):
            estimator.fit(spoilt, Y)
    estimator.fit(rows, Y)
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3 features"):
        estimator.predict(rows[:, :2])
    if not isinstance(estimator, OneClassSVM):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            estimator.fit(rows, Y[:-1])
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        estimator.fit(rows[:0], Y[:0])
    wide = sp.csr_array((np.ones(2), (np.array([0, 1]), np.array([0, 2**31]))), shape=(2, 2**31 + 1))
    with pytest.raises(InvalidInputError, match=r"2 stored values and 2,147,483,649 features, but 32-bit"):
        estimator.fit(wide, [0, 1])


def test_kernels_take_64_bit_indices():
    """A kernel by itself computes the same values from sparse samples with 64-bit indices."""
    rows = _long(sp.csr_array)(X)
    np.testing.assert_array_equal(Gaussian(0.5)(rows), Gaussian(0.5)(sp.csr_array(X)))
    assert rows.indices.dtype == np.int64  # what was given stays as it is


def test_names_of_features():
    """Names of an earlier fit are forgotten; samples without the expected names are a warning."""
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = SVC().fit(frame, Y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.warns(UserWarning, match="X does not have valid feature names, but SVC was fitted with feature names"):
        model.predict(X)
    assert not hasattr(model.fit(X, Y), "feature_names_in_")


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_errors_are_those_of_sklearn(estimator):
    """NaN, infinity, another number of features or targets, no samples."""
    for value, word in ((np.nan, "NaN"), (np.inf, "infinity")):
        Z = X.copy()
        Z[3, 1] = value
        with pytest.raises(ValueError, match=f"Input X contains {word}"):
            estimator.fit(Z, Y)
    estimator.fit(X, Y)
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3 features"):
        estimator.predict(np.ascontiguousarray(X[:, :2]))
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
        estimator.predict(X[0])
    if not isinstance(estimator, OneClassSVM):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            estimator.fit(X, Y[:-1])
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        estimator.fit(X[:0], Y[:0])


def test_numbers_whose_sum_overflows():
    """Finite numbers are not taken for infinite ones."""
    Z = X.copy()
    Z[:2, 0] = 1e308
    assert OneClassSVM(kernel="laplacian(gamma=1.0)", nu=0.5).fit(Z).n_features_in_ == 3


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64])
def test_two_classes(dtype):
    """Two whole numbers are found without sorting; labels and their type are kept."""
    for labels in (np.array([1, 0, 0, 1, 1]), np.array([0, 1])):
        labels = labels.astype(dtype)
        classes, codes = class_codes(labels)
        expected, inverse = np.unique(labels, return_inverse=True)
        assert classes.dtype == expected.dtype and codes.dtype == np.intp
        np.testing.assert_array_equal(classes, expected)
        np.testing.assert_array_equal(codes, inverse)
    np.testing.assert_array_equal(class_codes(np.array([2, 0, 1, 0]))[1], [2, 0, 1, 0])


def test_parameters_are_validated_once():
    """Plain values that were found valid are not checked again; new and wrong values are always checked."""
    seen = []

    class Validated(BaseEstimator):
        def _validate_params(self):
            seen.append(self.C)
            super()._validate_params()

    class Recorded(SVR, Validated):
        """Scikit-learn's validation, which comes last, is recorded."""

    for C in (0.5, 0.5, np.float64(0.5), np.float64(0.5), 7.0):
        Recorded(C=C).fit(X, Y)
    assert seen == [0.5, 0.5, 0.5, 7.0]
    for _ in range(2):
        with pytest.raises(ValueError, match="The 'C' parameter of Recorded must be"):
            Recorded(C=-1.0).fit(X, Y)
    with pytest.raises(ValueError, match="The 'shrinking' parameter of Recorded must be"):
        Recorded(C=0.5, shrinking=7).fit(X, Y)
