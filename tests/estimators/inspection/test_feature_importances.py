"""``feature_importances_`` ranks features by how much the decision function changes with them."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_selection import RFE, RFECV, SelectFromModel
from tests.naming import named

from mercer import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    CallableKernel,
    Gaussian,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelLogisticRegression,
    KernelLogisticRegressionCV,
    KernelRidge,
    LinearSVC,
    NuSVC,
    NuSVCCV,
    OneClassSVM,
    OneClassSVMCV,
    PegasosClassifier,
    SparseGaussianProcessRegressor,
    Spectrum,
    White,
)


def samples(n=200, d=8, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    return X, (X[:, 0] * X[:, 3] + X[:, 5] > 0).astype(int)


def numerically(f, X, h=1e-5):
    """Σ over functions of mean |∂f/∂x_j| std(x_j), by central differences."""
    found = np.zeros(X.shape[1])
    for j in range(X.shape[1]):
        step = h * np.eye(X.shape[1])[j]
        found[j] = np.abs(f(X + step) - f(X - step)).reshape(len(X), -1).mean(axis=0).sum() / (2 * h) * X[:, j].std()
    return found / found.sum()


@pytest.mark.parametrize("kernel", ["rbf", "poly", Gaussian((0.1, 0.2, 0.3, 0.1, 0.1, 0.1, 0.0, 0.1))], ids=named)
def test_it_is_the_mean_slope_times_the_spread(kernel):
    """At the support vectors, against central differences of the decision function."""
    X, y = samples()
    model = SVC(kernel=kernel).fit(X, y)
    expected = numerically(model.decision_function, model.support_vectors_)
    np.testing.assert_allclose(model.feature_importances_, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(model.feature_importances_.sum(), 1.0, rtol=1e-12)


def test_several_functions_are_added():
    """Three classes have three functions."""
    X, _ = samples()
    model = SVC(decision_function_shape="ovo").fit(X, np.digitize(X[:, 0] + X[:, 1], [-0.7, 0.7]))
    # each function at its own support vectors and those of the others
    np.testing.assert_allclose(
        model.feature_importances_, numerically(model.decision_function, model.support_vectors_), rtol=1e-6
    )


def test_a_linear_kernel_has_weights_times_spread():
    """|w_j| std(x_j); dense and sparse samples agree."""
    X, y = samples()
    model = SVC(kernel="linear").fit(X, y)
    expected = np.abs(model.coef_[0]) * model.support_vectors_.std(axis=0)
    np.testing.assert_allclose(model.feature_importances_, expected / expected.sum(), rtol=1e-9)
    for kernel in ("rbf", "linear"):
        dense, sparse = (SVC(kernel=kernel, gamma=0.2, tol=1e-8).fit(M, y) for M in (X, sp.csr_array(X)))
        np.testing.assert_allclose(dense.feature_importances_, sparse.feature_importances_, rtol=1e-5)


@pytest.mark.parametrize("model", [SVC(), NuSVC(), KernelLogisticRegression()], ids=named)
def test_elimination_keeps_the_relevant_features(model):
    """RFE and SelectFromModel find the three features that decide the class, out of eight."""
    X, y = samples()
    chosen = RFE(model, n_features_to_select=3).fit(X, y)
    assert set(np.flatnonzero(chosen.support_)) == {0, 3, 5}
    assert set(np.flatnonzero(SelectFromModel(model, threshold=-np.inf, max_features=3).fit(X, y).get_support())) == {
        0,
        3,
        5,
    }


@pytest.mark.parametrize("model", [SVR(), KernelRidge(kernel="rbf", alpha=0.1)], ids=named)
def test_elimination_in_regressions(model):
    """An interaction is found, which a linear machine cannot see."""
    X, _ = samples()
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    assert set(np.flatnonzero(RFE(model, n_features_to_select=3).fit(X, y).support_)) == {0, 1, 2}


def test_elimination_with_cross_validation():
    """RFECV chooses the number of features, too."""
    X, y = samples()
    found = RFECV(SVC(), cv=3, min_features_to_select=1).fit(X, y)
    assert {0, 3, 5} <= set(np.flatnonzero(found.support_))


def test_scikit_learn_prefers_coef():
    """A linear kernel is eliminated by its weights, as that of LinearSVC; LinearSVC has no feature_importances_."""
    X, y = samples()
    model = SelectFromModel(SVC(kernel="linear"), threshold=-np.inf, max_features=1).fit(X, y)
    assert set(np.flatnonzero(model.get_support())) == {np.argmax(np.abs(model.estimator_.coef_))}
    assert "_importances_of" not in vars(model.estimator_)
    assert not hasattr(LinearSVC().fit(X, y), "feature_importances_")


def test_it_is_computed_once_and_anew_after_fit():
    """A second fit forgets the values; those that were returned can be changed."""
    X, y = samples()
    model = SVC().fit(X, y)
    first = model.feature_importances_
    first[:] = 0.0
    assert model.feature_importances_.sum() > 0
    before = model.feature_importances_
    model.fit(X[:, ::-1], y)
    assert not np.allclose(before, model.feature_importances_)
    # all coefficients at their bound: equal for both fits
    bound = SVC(C=1e-3, gamma=0.1).fit(X, y)
    before = bound.feature_importances_
    np.testing.assert_allclose(bound.fit(X[:, ::-1], y).feature_importances_, before[::-1], rtol=1e-6)
    assert not np.allclose(before, before[::-1])


@pytest.mark.parametrize("search", [SVCCV, NuSVCCV, SVRCV, OneClassSVMCV, KernelLogisticRegressionCV])
def test_searches_have_those_of_their_best_machine(search):
    """A search has the importances of the machine that it has fitted to all samples."""
    X, y = samples()
    model = search(gammas=[0.1, 1.0], cv=2).fit(X, y)
    np.testing.assert_array_equal(model.feature_importances_, model.best_estimator_.feature_importances_)
    assert "feature_importances_" not in dir(model)


def test_notebooks_do_not_compute_it():
    """scikit-learn's diagram reads all attributes that dir() names."""
    X, y = samples()
    model = SVC().fit(X, y)
    model._repr_html_()
    assert "feature_importances_" not in dir(model) and "_importances_of" not in vars(model)
    assert "support_vectors_" in dir(model)


def test_other_machines_have_none():
    """The sentence says why."""
    with pytest.raises(AttributeError, match="feature_importances_ is available after fit"):
        SVC().feature_importances_  # noqa: B018
    strings = SVC(kernel=Spectrum(2)).fit(["abab", "cdcd"], [0, 1])
    with pytest.raises(
        AttributeError, match=r"needs a kernel on vectors that has derivatives, but the kernel is Spectrum\(k=2\)"
    ):
        strings.feature_importances_  # noqa: B018
    X, y = samples()
    assert not hasattr(SVC(kernel="precomputed").fit(X @ X.T, y), "feature_importances_")
    linear = PegasosClassifier(random_state=0).fit(X, y)
    with pytest.raises(AttributeError, match=r"a single vector\. Use coef_ of a linear kernel, or mercer\.explain"):
        linear.feature_importances_  # noqa: B018
    own = SVC(kernel=CallableKernel(lambda A, B: A @ B.T)).fit(X, y)
    with pytest.raises(AttributeError, match="feature_importances_ needs"):
        own.feature_importances_  # noqa: B018


def test_novelties():
    """A machine of one class has a function, too; one of no features is spread evenly over nothing."""
    X, _ = samples()
    X[:, 2] *= 3.0
    model = OneClassSVM(nu=0.3).fit(X)
    np.testing.assert_allclose(
        model.feature_importances_, numerically(model.decision_function, model.support_vectors_), rtol=1e-6
    )
    constant = SVC(kernel="rbf").fit(np.zeros((4, 2)), [0, 1, 0, 1])
    np.testing.assert_array_equal(constant.feature_importances_, [0.0, 0.0])


PROCESSES = {
    "regression": GaussianProcessRegressor(1.0 * Gaussian((0.3,) * 8) + White(0.1), optimizer=None),
    "several targets": GaussianProcessRegressor(Gaussian(0.2) + White(0.1), optimizer=None, normalize_y=True),
    "classes": GaussianProcessClassifier(2.0 * Gaussian(0.2), optimizer=None),
    "three classes": GaussianProcessClassifier(2.0 * Gaussian(0.2), max_iter=2),
    "pairs": GaussianProcessClassifier(2.0 * Gaussian(0.2), optimizer=None, multi_class="one_vs_one"),
    "inducing points": SparseGaussianProcessRegressor(Gaussian(0.2), n_inducing=80, optimizer=None),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", PROCESSES)
def test_processes_have_the_slopes_of_their_means(name):
    """Over the training samples, or the inducing points; of a classifier those of all latent means."""
    X, y = samples(60)
    model = PROCESSES[name]
    if name in ("three classes", "pairs"):
        y = np.digitize(X[:, 0] + X[:, 1], [-0.7, 0.7])
    elif name == "several targets":
        y = X[:, :2] ** 2
    elif name not in ("classes",):
        y = X[:, 0] * X[:, 3] + X[:, 5]
    model.fit(X, y)
    points = model.inducing_points_ if name == "inducing points" else X
    mean = (
        model.predict if isinstance(model, GaussianProcessRegressor | SparseGaussianProcessRegressor) else model._means
    )
    # each process is asked at its own samples: all, or those of its two classes
    if name != "pairs":
        np.testing.assert_allclose(model.feature_importances_, numerically(mean, points), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(model.feature_importances_.sum(), 1.0)


@pytest.mark.parametrize("name", ["regression", "classes", "inducing points"])
def test_elimination_with_processes(name):
    """RFE and SelectFromModel find the features that matter with a Gaussian process."""
    X, label = samples()
    y = label if name == "classes" else X[:, 0] * X[:, 3] + X[:, 5]
    model = (
        PROCESSES[name]
        if name != "regression"
        else GaussianProcessRegressor(Gaussian(0.1) + White(0.1), optimizer=None)
    )
    chosen = RFE(model, n_features_to_select=3).fit(X, y).support_
    assert set(np.flatnonzero(chosen)) == {0, 3, 5}
    chosen = SelectFromModel(model, threshold=-np.inf, max_features=3).fit(X, y).get_support()
    assert set(np.flatnonzero(chosen)) == {0, 3, 5}
