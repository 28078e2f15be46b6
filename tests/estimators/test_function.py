"""function_: the decision function of a kernel machine without its intercept, as a function of the RKHS."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from tests.naming import named

from mercer import (
    SVC,
    SVR,
    CallableKernel,
    Gaussian,
    GaussianProcessRegressor,
    Graph,
    Intersection,
    KernelCentroid,
    KernelLMS,
    KernelRidge,
    KernelRidgeCV,
    Linear,
    MKLClassifier,
    MKLRegressor,
    NuSVC,
    NuSVR,
    OneClassSVM,
    PegasosClassifier,
    Perceptron,
    RampSVC,
    RKHSFunction,
    Spectrum,
    WeisfeilerLehman,
    White,
)
from mercer.exceptions import InvalidInputError

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
NEW = rng.normal(size=(25, 3))
TWO = np.where(X[:, 0] + 0.3 * rng.normal(size=60) > 0, "up", "down")
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
TARGET = X[:, 0] ** 2 + X[:, 1]
TARGETS = np.column_stack([TARGET, X[:, 2]])


def rows(A, B):
    return A @ B.T


CLASSIFIERS = [
    SVC(),
    SVC(kernel="linear", fit_intercept=False),
    SVC(kernel="poly", decision_function_shape="ovo"),
    SVC(kernel=rows, decision_function_shape="ovo"),
    SVC(kernel="sigmoid", gamma=0.1),
    NuSVC(nu=0.1, decision_function_shape="ovo"),
    RampSVC(decision_function_shape="ovo"),
    MKLClassifier(kernels=["linear()", "gaussian(gamma=0.1)"], decision_function_shape="ovo"),
    PegasosClassifier(random_state=0),
    PegasosClassifier(kernel="rbf", random_state=0),
    Perceptron(tol=1e-1),
    Perceptron(kernel="rbf"),
    KernelCentroid(),
    KernelCentroid(normalize=True),
]
REGRESSORS = [
    SVR(),
    NuSVR(),
    KernelLMS(tol=0.05),
    KernelRidge(kernel="rbf"),
    KernelRidge(kernel="polynomial", fit_intercept=True),
    KernelRidge(kernel=lambda x, z: float(x @ z)),
    KernelRidgeCV(kernel="rbf"),
    GaussianProcessRegressor(Gaussian(0.5), optimizer=None, alpha=0.1),
    MKLRegressor(kernels=["linear()", "gaussian(gamma=0.1)"]),
]


def fitted(model, X, y, **params):
    return clone(model).set_params(**params).fit(X, y)


def agree(model, functions, values, norms):
    """The functions have these values at NEW, but for intercepts, and these norms."""
    found = np.column_stack([f(NEW) for f in functions]) + np.atleast_1d(model.intercept_)
    np.testing.assert_allclose(found, values.reshape(len(NEW), -1), atol=1e-10)
    np.testing.assert_allclose([f.norm() for f in functions], np.atleast_1d(norms), rtol=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", CLASSIFIERS, ids=named)
def test_two_classes(model):
    """One function; its values and the intercept are the decision function, its norm is rkhs_norm_."""
    model = fitted(model, X, TWO)
    assert isinstance(model.function_, RKHSFunction)
    agree(model, [model.function_], model.decision_function(NEW), model.rkhs_norm_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model", [m for m in CLASSIFIERS if getattr(m, "decision_function_shape", "") != "ovr"], ids=named
)
def test_three_classes(model):
    """A list: one function for each pair of classes or each class, as in intercept_."""
    model = fitted(model, X, THREE)
    assert isinstance(model.function_, list) and len(model.function_) == len(model.intercept_) == 3
    agree(model, model.function_, model.decision_function(NEW), model.rkhs_norm_)


@pytest.mark.parametrize("model", REGRESSORS, ids=named)
def test_regression(model):
    """The predictions without the intercept; a Gaussian process has no rkhs_norm_ and no intercept."""
    model = fitted(model, X, TARGET)
    values = model.predict(NEW) - getattr(model, "intercept_", 0.0)
    np.testing.assert_allclose(model.function_(NEW), values, atol=1e-10)
    if hasattr(model, "rkhs_norm_"):
        assert model.function_.norm() == pytest.approx(float(np.ravel(model.rkhs_norm_)[0]), rel=1e-9)


@pytest.mark.parametrize(
    "model", [KernelRidge(kernel="rbf"), GaussianProcessRegressor(Gaussian(0.5), alpha=0.1)], ids=named
)
def test_several_targets(model):
    """A function for each; one target in a column is a list of one."""
    many, one = fitted(model, X, TARGETS), fitted(model, X, TARGETS[:, :1])
    np.testing.assert_allclose(np.column_stack([f(NEW) for f in many.function_]), many.predict(NEW), atol=1e-10)
    assert len(one.function_) == 1


def test_gaussian_process_with_noise_and_normalised_targets():
    """White noise is no part of the mean, and the mean of the targets is added to it."""
    model = GaussianProcessRegressor(1.0 * Gaussian(0.5) + White(0.1), normalize_y=True, optimizer=None).fit(
        X, TARGET + 7
    )
    np.testing.assert_allclose(model.function_(NEW) + (TARGET + 7).mean(), model.predict(NEW), atol=1e-10)
    x = RKHSFunction(model.function_.kernel, X[:1], [1.0])
    assert model.function_.inner(x) == pytest.approx(model.predict(X[:1])[0] - (TARGET + 7).mean(), abs=1e-10)


def test_novelty_detection():
    """score_samples is the function."""
    model = OneClassSVM(nu=0.2).fit(X)
    np.testing.assert_allclose(model.function_(NEW), model.score_samples(NEW), atol=1e-12)
    assert model.function_.norm() == pytest.approx(model.rkhs_norm_[0], rel=1e-9)


@pytest.mark.parametrize(
    ("kernel", "samples"),
    [
        (Spectrum(2), ["abab", "abba", "bbbb", "baab", "aaab", "bbba"]),
        (Intersection(), [{1, 2}, {1}, {1, 3}, {4}, {4, 2}, {4, 3}]),
        (WeisfeilerLehman(2), [Graph([(i, i + 1) for i in range(n)]) for n in range(2, 8)]),
        (Gaussian(0.5), sp.csr_array(X[:6])),
        (Gaussian(0.5), X[:6].astype(np.float32)),
    ],
    ids=named,
)
def test_samples_of_all_kinds(kernel, samples):
    """Strings, sets, graphs, sparse rows and float32."""
    model = SVC(kernel=kernel, C=10).fit(samples, [0, 0, 0, 1, 1, 1])
    values = model.function_(samples) + model.intercept_
    np.testing.assert_allclose(values, model.decision_function(samples), atol=1e-12)
    assert model.function_.norm() == pytest.approx(model.rkhs_norm_[0], rel=1e-6)
    copy = pickle.loads(pickle.dumps(model)).function_
    np.testing.assert_array_equal(copy(samples), model.function_(samples))


def test_functions_of_two_machines():
    """Machines of the same kernel are in the same space: their difference is a function with a norm."""
    a, b = (SVC(kernel=Gaussian(0.5), C=C).fit(X, TWO).function_ for C in (1.0, 2.0))
    np.testing.assert_allclose((a - b)(NEW), a(NEW) - b(NEW), atol=1e-12)
    assert (a - b).norm() == pytest.approx(np.sqrt(a.inner(a) - 2 * a.inner(b) + b.inner(b)), rel=1e-6)
    with pytest.raises(InvalidInputError, match="different spaces"):
        a - SVC(kernel=Linear()).fit(X, TWO).function_


def test_a_budget_and_partial_fit():
    """The function is that of the model now, also with a linear kernel, whose only point is w."""
    kernel = Perceptron(kernel="rbf", gamma=0.5).partial_fit(X, TWO, ["down", "up"])
    linear = Perceptron().partial_fit(X, TWO, ["down", "up"])
    for model in (kernel, linear):
        np.testing.assert_allclose(model.function_(NEW) + model.intercept_, model.decision_function(NEW), atol=1e-12)
        assert model.function_.norm() == pytest.approx(model.rkhs_norm_[0])
    np.testing.assert_array_equal(linear.function_.points, linear.coef_)


def test_no_support_vectors():
    """A tube that contains all targets leaves the function 0."""
    model = SVR(epsilon=1e3).fit(X, TARGET)
    assert len(model.function_) == 0 and model.function_.norm() == 0.0
    np.testing.assert_array_equal(model.function_(NEW), np.zeros(25))


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (SVC(kernel="precomputed"), TWO),
        (SVR(kernel="precomputed"), TARGET),
        (KernelRidge(kernel="precomputed"), TARGET),
    ],
    ids=named,
)
def test_precomputed(model, y):
    """A matrix has no values at other points."""
    model = fitted(model, X @ X.T, y)
    assert not hasattr(model, "function_")
    with pytest.raises(AttributeError) as error:
        _ = model.function_
    assert str(error.value) == (
        "function_ is not available for a precomputed kernel, whose values at other points are not known. Fit with the "
        "kernel itself: a kernel object, or CallableKernel(function)."
    )


@pytest.mark.parametrize("model", [SVC(), KernelRidge(), GaussianProcessRegressor(), Perceptron()], ids=named)
def test_before_fit(model):
    """Before fit there is no function."""
    assert not hasattr(model, "function_")


def test_a_function_that_depends_on_its_sets():
    """Values of a kernel function that centres its samples belong to no space of functions."""
    model = SVC(kernel=lambda A, B: (A - A.mean(axis=0)) @ (B - B.mean(axis=0)).T + 1.0).fit(X, TWO)
    with pytest.raises(InvalidInputError, match="must return the same k"):
        _ = model.function_


def test_the_kernel_of_a_function():
    """A kernel function becomes a CallableKernel."""
    assert SVC(kernel=rows).fit(X, TWO).function_.kernel == CallableKernel(rows)


def test_warnings_are_those_of_fit():
    """An unfinished fit has a function, too."""
    with pytest.warns(ConvergenceWarning):
        model = SVC(max_iter=3).fit(X, TWO)
    np.testing.assert_allclose(model.function_(NEW) + model.intercept_, model.decision_function(NEW), atol=1e-12)
