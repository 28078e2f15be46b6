"""Shapley values of fitted models are those of the definition."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC as SklearnSVC
from tests.naming import named
from tests.reference.shapley import shapley

import mercer
from mercer import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    AdditiveChi2,
    Chi2,
    Constant,
    Gaussian,
    GaussianProcessRegressor,
    InvalidInputError,
    KernelLogisticRegression,
    KernelRidge,
    Laplacian,
    Linear,
    LinearSVC,
    LinearSVR,
    Matern,
    Min,
    NuSVC,
    NuSVR,
    On,
    OneClassSVM,
    Periodic,
    Polynomial,
    PowerSeries,
    RationalQuadratic,
    Sigmoid,
    White,
    explain,
)
from mercer.explanation.explained_model import explained_model
from mercer.explanation.sampled_values import permutation_values

# rounding of sums of some hundred products of numbers around 1
ROUNDING = 1e-11


def samples(n=40, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) * 2.0
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)
    return X, y


def labels(y, classes):
    return np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))


def agrees(model, f, found, X, background):
    """Whether an explanation has the values of the definition, and adds up to the model's own values."""
    expected = shapley(f, X, background)
    values = found.values.reshape(expected.shape)
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(values, expected, rtol=0, atol=ROUNDING * scale)
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base, found.outputs, rtol=0, atol=ROUNDING * scale)
    assert found.exact and not found.error.any()


KERNELS = {
    "Gaussian": (Gaussian(0.7), "quadrature"),
    "widths": (Gaussian((0.1, 0.0, 2.0, 0.5, 0.3)), "quadrature"),
    "Laplacian": (Laplacian(0.4), "quadrature"),
    "chi2": (Chi2(0.5), "quadrature"),
    "periodic": (Periodic(1.0, 1.7), "quadrature"),
    "product": (Gaussian(0.5) * Laplacian((0.1, 0.2, 0.3, 0.4, 0.5)), "quadrature"),
    "sum": (0.5 * Gaussian(0.5) + 2.0 * Laplacian(0.1) + Constant(0.3) + White(0.1), "quadrature"),
    "power": ((Gaussian(0.5) + 0.5) ** 2, "quadrature"),
    "linear": (Linear(), "a linear formula"),
    "linear + constant": (2.0 * Linear() + 1.0, "an additive formula"),
    "min": (Min(), "an additive formula"),
    "additive chi2": (AdditiveChi2(), "an additive formula"),
    "polynomial": (Polynomial(3, 0.5, 1.0), "monomials"),
    "widths of a polynomial": (Polynomial(2, (0.5, 0.1, 0.0, 2.0, 0.3), 0.5), "monomials"),
    "power series": (PowerSeries((1.0, 0.5, 0.0, 0.2, 0.1)), "monomials"),
    "power of a sum of minima": (Min() ** 2, "quadrature"),
    "Gaussian times polynomial": (Gaussian(0.3) * Polynomial(2, 0.5, 1.0), "quadrature"),
    "columns": (On(0, Matern()) + On((1, 3), Gaussian(0.5)) + On(4, RationalQuadratic()), "quadrature"),
    "product of columns": (On(0, Matern()) * On((2, 1), Laplacian(0.5)), "quadrature"),
    "a column twice": (On((1, 1, 2), Gaussian(0.5)), "quadrature"),
    "Matern": (Matern(2.5), "enumeration"),
    "sigmoid": (Sigmoid(0.1), "enumeration"),
    "two sums": (Min() * Linear(), "enumeration"),
}


@pytest.mark.parametrize("name", KERNELS)
def test_values_of_kernels_are_those_of_the_definition(name):
    """For each kernel with an exact method, one function."""
    kernel, method = KERNELS[name]
    X, y = samples()
    # ridge regression fits kernels that are not positive semidefinite as well
    model = KernelRidge(kernel=kernel, alpha=1.0).fit(X, y) if kernel.positive_semidefinite else None
    with np.errstate(all="ignore"):
        model = model or _fitted_anyway(kernel, X, y)
    found = explain(model, X[:3], X[20:26])
    assert found.method == method
    agrees(model, model.predict, found, X[:3], X[20:26])


def _fitted_anyway(kernel, X, y):
    """A machine with a kernel that is not positive semidefinite, without its warnings."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SVR(kernel=kernel, max_iter=200).fit(X, y)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", Min(), Matern()], ids=named)
@pytest.mark.parametrize("classes", [2, 3])
def test_values_of_classifiers_add_up_to_the_decision_function(kernel, classes):
    """One function for two classes, one for each pair of three classes, as decision_function_shape="ovo" has them."""
    X, y = samples()
    model = SVC(kernel=kernel, decision_function_shape="ovo").fit(X, labels(y, classes))
    found = explain(model, X[:2], X[10:15])
    agrees(model, model.decision_function, found, X[:2], X[10:15])
    votes = SVC(kernel=kernel, decision_function_shape="ovr").fit(X, labels(y, classes))
    np.testing.assert_allclose(explain(votes, X[:2], X[10:15]).values, found.values, rtol=0, atol=1e-12)
    assert found.output_names == (("1",) if classes == 2 else ("0 against 1", "0 against 2", "1 against 2"))


MODELS = {
    "NuSVC": lambda X, y: NuSVC().fit(X, labels(y, 2)),
    "NuSVR": lambda X, y: NuSVR().fit(X, y),
    "OneClassSVM": lambda X, y: OneClassSVM().fit(X),
    "KernelRidge": lambda X, y: KernelRidge(kernel="rbf").fit(X, np.column_stack([y, y**2])),
    "GaussianProcessRegressor": lambda X, y: GaussianProcessRegressor(normalize_y=True, alpha=0.1).fit(X, y),
    "LinearSVC": lambda X, y: LinearSVC().fit(X, labels(y, 3)),
    "LinearSVR": lambda X, y: LinearSVR().fit(X, y),
    "KernelLogisticRegression": lambda X, y: KernelLogisticRegression().fit(X, labels(y, 2)),
    "several logits": lambda X, y: KernelLogisticRegression().fit(X, labels(y, 3)),
    "SVCCV": lambda X, y: SVCCV(Cs=[1.0], gammas=[0.5], cv=2).fit(X, labels(y, 2)),
    "SVRCV": lambda X, y: SVRCV(Cs=[1.0], gammas=[0.5], cv=2).fit(X, y),
    "sparse": lambda X, y: SVC().fit(sp.csr_array(X), labels(y, 2)),
    "scalers": lambda X, y: make_pipeline(StandardScaler(), MinMaxScaler(), MaxAbsScaler(), SVR()).fit(X, y),
    "other steps": lambda X, y: make_pipeline(StandardScaler(), PCA(3), SVR()).fit(X, y),
    "a search": lambda X, y: GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [1.0]}, cv=2).fit(
        X, labels(y, 2)
    ),
    "scikit-learn": lambda X, y: SklearnSVC().fit(X, labels(y, 2)),
    "kernel function": lambda X, y: SVR(kernel=lambda A, B: (A @ B.T + 1.0) ** 2).fit(X, y),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_model(name):
    """Machines, pipelines and searches are explained in the features that they are given."""
    X, y = samples()
    model = MODELS[name](X, y)
    f = model.decision_function if hasattr(model, "decision_function") else model.predict
    found = explain(model, X[:2], X[10:14])
    agrees(model, f, found, X[:2], X[10:14])
    assert found.values.shape[:2] == (2, 5) and len(found) == 2
    assert len(found.output_names) == (found.values.shape[2] if found.values.ndim == 3 else 1)
    default = explain(model, X[:2])
    np.testing.assert_allclose(default.values.sum(axis=1) + default.base, default.outputs, rtol=0, atol=1e-10)
    mean = explain(model, X[:2], "mean")
    assert mean.n_background == 1
    np.testing.assert_allclose(mean.values.sum(axis=1) + mean.base, mean.outputs, rtol=0, atol=1e-10)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 9])
def test_any_number_of_features(d):
    """Blocks of features and odd numbers of nodes leave nothing out."""
    rng = np.random.default_rng(d)
    X = rng.normal(size=(30, d))
    model = SVR(gamma=0.3).fit(X, X[:, 0])
    agrees(model, model.predict, explain(model, X[:2], X[5:8]), X[:2], X[5:8])


def test_permutations_come_with_their_standard_error():
    """Sampled values differ from the exact ones by about their standard error; they add up exactly."""
    X, y = samples(d=10)
    model = SVC(kernel=Matern(1.5)).fit(X, labels(y, 3))
    found = explain(model, X[:6], X[10:20], n_samples=20, random_state=0)
    assert found.method == "permutations" and not found.exact
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base, found.outputs, rtol=0, atol=ROUNDING)
    exact = explain(model, X[:6], X[10:20], n_samples=60)
    assert exact.method == "enumeration"
    score = (found.values - exact.values) / found.error
    assert 0.7 < np.sqrt(np.mean(score**2)) < 1.4  # rows and functions share permutations
    again = explain(model, X[:6], X[10:20], n_samples=20, random_state=0)
    np.testing.assert_array_equal(found.values, again.values)


def test_more_permutations_are_more_accurate():
    """Four times as many pairs halve the standard error."""
    X, y = samples(d=10)
    known = explained_model(SVR(kernel=Matern(1.5)).fit(X, y))
    errors = [
        permutation_values(known.values, X[:4], X[10:20], n, np.random.default_rng(0))[1].mean() for n in (10, 40)
    ]
    assert 1.7 < errors[0] / errors[1] < 2.3


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Polynomial(2, 0.5, 1.0), Matern()], ids=named)
def test_axioms(kernel):
    """A feature that the model ignores gets 0, features that are exchangeable get the same."""
    rng = np.random.default_rng(0)
    X = rng.random((30, 4))
    X[:, 1] = X[:, 0]
    X[:, 3] = 0.5
    model = SVR(kernel=kernel).fit(X, X[:, 0] + X[:, 2] ** 2)
    rows = rng.random((3, 4))
    rows[:, 1] = rows[:, 0]
    values = explain(model, rows, X[:7]).values
    np.testing.assert_allclose(values[:, 0], values[:, 1], rtol=0, atol=1e-14)
    ignored = SVR(kernel=On((0, 2), kernel)).fit(X, X[:, 0] + X[:, 2] ** 2)
    np.testing.assert_allclose(explain(ignored, rows, X[:7]).values[:, [1, 3]], 0.0, rtol=0, atol=1e-14)


@pytest.mark.parametrize("kernel", ["rbf", "poly", Min(), Matern()], ids=named)
def test_a_constant_function(kernel):
    """A machine without support vectors: all values are 0."""
    X, y = samples()
    model = SVR(kernel=kernel, epsilon=100.0).fit(X, y)
    found = explain(model, X[:3])
    assert len(model.support_) == 0 and found.n_background == 3
    np.testing.assert_allclose(found.values, 0.0, rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.base, model.intercept_[0])


def test_values_do_not_depend_on_parts_or_threads():
    """Rows are explained one by one, whatever is explained with them."""
    X, y = samples(n=200, d=6)
    model = SVR().fit(X, y)
    together = explain(model, X, X[:50], n_jobs=2)
    for start in (0, 137):
        alone = explain(model, X[start : start + 1], X[:50], n_jobs=1)
        np.testing.assert_allclose(together[start].values, alone.values, rtol=0, atol=1e-13)


def test_data_frames():
    """Columns have names, may hold words, and may come in a table of another kind of model."""
    X, y = samples()
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = SVR().fit(frame, y)
    found = explain(model, frame[:2], frame[10:14])
    default = explain(model, frame[:2])
    np.testing.assert_allclose(default.values.sum(axis=1) + default.base, default.outputs, rtol=0, atol=ROUNDING)
    assert found.feature_names == tuple("abcde")
    np.testing.assert_array_equal(found.values, explain(SVR().fit(X, y), X[:2], X[10:14]).values)
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder

    frame["word"] = np.where(X[:, 0] > 1, "large", "small")
    steps = make_column_transformer((OneHotEncoder(), ["word"]), remainder="passthrough")
    table = make_pipeline(steps, SVR()).fit(frame, y)
    words = explain(table, frame[:3], frame[10:20])
    assert words.method == "enumeration" and words.feature_names[-1] == "word"
    np.testing.assert_allclose(words.values.sum(axis=1) + words.base, table.predict(frame[:3]), rtol=0, atol=1e-12)
    assert explain(table, frame[:3]).n_background == 3


def test_frames_of_polars():
    """As those of pandas."""
    X, y = samples()
    frame = pl.DataFrame(X, schema=list("abcde"))
    model = SVR(kernel=Matern()).fit(frame, y)
    found = explain(model, frame[:2], frame[10:14])
    assert found.feature_names == tuple("abcde")
    expected = explain(SVR(kernel=Matern()).fit(X, y), X[:2], X[10:14])
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=1e-14)


def test_missing_cells_go_through_a_pipeline():
    """Rows of the background and of X may have missing cells if the model takes them."""
    X, y = samples()
    X[::7, 2] = np.nan
    model = make_pipeline(SimpleImputer(), SVR()).fit(X, y)
    found = explain(model, X[:8], X[10:20])
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base, model.predict(X[:8]), rtol=0, atol=1e-12)


def test_strings_and_matrices_have_no_features():
    """The message names what answers the question instead."""
    strings = SVC(kernel=mercer.Spectrum(2)).fit(["abab", "baba", "cccc", "cdcd"], [0, 0, 1, 1])
    with pytest.raises(InvalidInputError, match=r"compares strings, which have no features.* mercer\.influence\."):
        explain(strings, ["abab"])
    X, y = samples()
    fixed = SVR(kernel="precomputed").fit(X @ X.T, y)
    with pytest.raises(InvalidInputError, match=r"has a precomputed kernel.* mercer\.influence\."):
        explain(fixed, X @ X.T)


def test_bad_input():
    """Messages say what was found and what is allowed."""
    X, y = samples()
    model = SVR().fit(X, y)
    with pytest.raises(InvalidInputError, match="background='median' is not known: give rows, 'mean' or None"):
        explain(model, X, "median")
    with pytest.raises(InvalidInputError, match="The background has 4 features, but X has 5"):
        explain(model, X, X[:, :4])
    with pytest.raises(InvalidInputError, match=r"X has the shape \(5,\), but explain needs rows and columns"):
        explain(model, X[0])
    with pytest.raises(InvalidInputError, match=r"background has the shape \(0, 5\)"):
        explain(model, X, X[:0])
    with pytest.raises(InvalidInputError, match="n_samples=1 must be a whole number, at least 2"):
        explain(model, X, n_samples=1)
    with pytest.raises(ValueError, match="X has 4 features, but SVR is expecting 5"):
        explain(model, X[:, :4])
    with pytest.raises(ValueError, match="contains NaN"):
        explain(model, np.where(X > 1, np.nan, X))
    with pytest.raises(ValueError, match="contains NaN"):
        explain(model, X, np.full((1, 5), np.nan))
    with pytest.raises(ValueError, match="not fitted yet"):
        explain(SVR(), X)
    with pytest.raises(InvalidInputError, match="has no function to explain"):
        explain(PolynomialFeatures().fit(X), X)
    frame = pd.DataFrame(X, columns=list("abcde"))
    other = frame.rename(columns={"e": "f"})
    with pytest.raises(InvalidInputError, match="The background has no column 'e'"):
        explain(SVR().fit(frame, y), frame, other)
    with pytest.raises(InvalidInputError, match=r"background has the shape \(5,\)"):
        explain(SVR().fit(frame, y), frame, X[0])
