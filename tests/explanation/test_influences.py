"""Influence of training rows: the change of f when one of them is left out."""

import matplotlib
import numpy as np
import pytest
import sklearn.gaussian_process
import sklearn.kernel_ridge
import sklearn.svm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import (
    LSSVC,
    SVC,
    SVCCV,
    SVR,
    Gaussian,
    GaussianProcessRegressor,
    Graph,
    InvalidInputError,
    KernelCentroid,
    KernelRidge,
    LinearSVC,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Spectrum,
    WeisfeilerLehman,
    White,
    influence,
)
from mercer.estimators.certification.kernel_machines import fitted_problems
from mercer.explanation.left_out.influence_pictures import brief
from mercer.explanation.left_out.left_out_machines import _Changes, _Rows
from mercer.problems.clock import Clock
from mercer.problems.solution import Options
from mercer.selection.left_out_problem import LeftOutProblem

matplotlib.use("Agg")

TOL = 1e-6
# coefficients within tol of optimal have decision values within a few tol, more if the problem is badly conditioned
CLOSE = 50 * TOL
RNG = np.random.default_rng(0)
NEW = RNG.normal(size=(6, 4))


def sample(n=60, n_classes=2, seed=0):
    """Classes that overlap: the largest of noisy linear functions."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X @ rng.normal(size=(4, n_classes)) + rng.normal(size=(n, n_classes))).argmax(axis=1)


def by_refits(model, X, y, weight, values):
    """Differences of ``values(machine)`` between machines fitted from nothing without one row and with all."""
    parameters = {**model.get_params(), "tol": 1e-9, "gamma": model._gamma}

    def fitted(weight):
        return values(type(model)(**parameters).fit(X, y, sample_weight=weight))

    whole = fitted(weight)
    return np.stack([fitted(np.where(np.arange(len(weight)) == i, 0.0, weight)) - whole for i in range(len(X))], axis=1)


MODELS = {
    "rbf": SVC(C=2.0),
    "large C": SVC(C=1e3),
    "small C": SVC(C=0.01),
    "linear": SVC(kernel="linear"),
    "no intercept": SVC(fit_intercept=False),
    "squared hinge": SVC(loss="squared_hinge"),
    "squared hinge, no intercept": SVC(loss="squared_hinge", fit_intercept=False),
    "regression": SVR(C=5.0, epsilon=0.2),
    "regression, no intercept": SVR(C=5.0, epsilon=0.2, fit_intercept=False),
    "squared tube": SVR(C=5.0, epsilon=0.2, loss="squared_epsilon_insensitive"),
    "no support vectors": SVR(epsilon=5.0),
    "novelty": OneClassSVM(nu=0.3),
    "nu": NuSVC(nu=0.4),
    "nu, mostly at the bound": NuSVC(nu=0.6, kernel="linear"),
    "nu, few support vectors": NuSVC(nu=0.05, gamma=0.5),
    "nu regression": NuSVR(nu=0.5, C=2.0),
    "nu regression, narrow tube": NuSVR(nu=0.95, C=0.5),
    "nu regression, wide tube": NuSVR(nu=0.1, C=50.0),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", MODELS)
def test_values_are_those_of_refits(name, weighted):
    """Each change is that of a machine fitted from nothing without the row; rows without influence have exactly 0."""
    X, y = sample()
    model = MODELS[name]
    if isinstance(model, SVR | NuSVR):
        y = np.sin(X[:, 0]) + 0.3 * RNG.normal(size=len(X))
    weight = RNG.integers(0, 4, size=len(X)) / 2.0 if weighted else np.ones(len(X))
    model.fit(X, y, sample_weight=weight)
    found = influence(model, NEW, X, y, weight, tol=TOL)
    method = "predict" if isinstance(model, SVR | NuSVR) else "decision_function"
    expected = by_refits(model, X, y, weight, lambda machine: getattr(machine, method)(NEW))
    np.testing.assert_allclose(found.values, expected, atol=CLOSE)
    assert found.exact.all()
    if not isinstance(model, OneClassSVM | NuSVC | NuSVR) and name not in ("no support vectors", "small C"):
        sharp = clone(model).set_params(tol=1e-9).fit(X, y, sample_weight=weight)
        others = np.setdiff1d(np.arange(len(X)), sharp.support_)
        assert (found.values[:, others] == 0.0).all()


def test_some_solutions_need_no_refit():
    """Where no state changes, the closed form is the solution: with a squared hinge that is common."""
    X, y = sample(100)
    found = influence(SVC(loss="squared_hinge", C=0.1).fit(X, y), NEW, X, y)
    assert found.n_closed > 20


@pytest.mark.parametrize("package", ["mercer", "sklearn"])
def test_several_classes(package):
    """Each pair of classes has a function of its own, which only rows of its two classes change."""
    X, y = sample(75, 3)
    labels = np.array(["c", "a", "b"])[y]
    model = (SVC if package == "mercer" else sklearn.svm.SVC)(C=3.0, decision_function_shape="ovo").fit(X, labels)
    found = influence(model, NEW, X, labels)
    ours = SVC(C=3.0, decision_function_shape="ovo").fit(X, labels)
    expected = by_refits(ours, X, labels, np.ones(75), lambda m: m.decision_function(NEW))
    np.testing.assert_allclose(found.values, expected, atol=CLOSE)
    assert found.functions == ("a / b", "a / c", "b / c")
    assert (found.of(0)[:, labels == "c"] == 0).all()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("targets", [1, 2])
def test_ridge(targets, intercept):
    """The closed form of kernel ridge regression is what fits without each row give."""
    X = RNG.normal(size=(30, 4))
    y = np.sin(X[:, :targets]) + 0.1 * RNG.normal(size=(30, targets))
    y = y[:, 0] if targets == 1 else y
    weight = RNG.integers(0, 4, size=30) / 2.0
    model = KernelRidge(alpha=[0.1] if targets == 1 else [0.1, 0.5], kernel="rbf", gamma=0.3, fit_intercept=intercept)
    model.fit(X, y, sample_weight=weight)
    found = influence(model, NEW, sample_weight=weight)
    whole = model.predict(NEW)
    for i in range(30):
        left = np.where(np.arange(30) == i, 0.0, weight)
        refit = KernelRidge(**model.get_params()).fit(X, y, sample_weight=left)
        np.testing.assert_allclose(found.values[:, i], refit.predict(NEW) - whole, atol=1e-9)
    assert found.values.shape == ((6, 30) if targets == 1 else (6, 30, 2))


def test_ridge_of_sklearn_and_with_training_data():
    """scikit-learn's ridge regression has the same influences; so has one whose training data are given."""
    X, y = RNG.normal(size=(25, 4)), RNG.normal(size=25)
    parameters = {"alpha": 0.3, "kernel": "rbf", "gamma": 0.2}
    own = influence(KernelRidge(**parameters).fit(X, y), NEW, X, y)
    other = influence(sklearn.kernel_ridge.KernelRidge(**parameters).fit(X, y), NEW)
    np.testing.assert_allclose(own.values, other.values, atol=1e-10)


@pytest.mark.parametrize("package", ["mercer", "sklearn"])
def test_process(package):
    """The mean of a Gaussian process changes as that of a process with the same kernel and fewer rows."""
    X, y = RNG.normal(size=(25, 4)), 5.0 + RNG.normal(size=25)
    if package == "mercer":
        model = GaussianProcessRegressor(1.5 * Gaussian(0.3) + White(0.1)).fit(X, y)
        less = GaussianProcessRegressor(model.kernel_, optimizer=None)
    else:
        kernels = sklearn.gaussian_process.kernels
        model = sklearn.gaussian_process.GaussianProcessRegressor(kernels.RBF(2.0) + kernels.WhiteKernel(0.1)).fit(X, y)
        less = sklearn.gaussian_process.GaussianProcessRegressor(model.kernel_, optimizer=None)
    found = influence(model, NEW)
    for i in range(25):
        rest = np.arange(25) != i
        np.testing.assert_allclose(
            found.values[:, i], less.fit(X[rest], y[rest]).predict(NEW) - model.predict(NEW), atol=1e-8
        )


def test_normalised_process():
    """With normalize_y the mean and the scale of the targets keep the values of the fit."""
    X, y = RNG.normal(size=(20, 4)), 5.0 + 3.0 * RNG.normal(size=20)
    model = GaussianProcessRegressor(Gaussian(0.3), alpha=0.1, optimizer=None, normalize_y=True).fit(X, y)
    plain = GaussianProcessRegressor(Gaussian(0.3), alpha=0.1, optimizer=None).fit(X, (y - y.mean()) / y.std())
    np.testing.assert_allclose(influence(model, NEW).values, y.std() * influence(plain, NEW).values, atol=1e-10)


def test_precomputed_and_function_kernels():
    """Kernel matrices and functions give what the same kernel by name gives."""
    X, y = sample()
    expected = influence(SVC(kernel="linear").fit(X, y), NEW, X, y).values
    matrix = influence(SVC(kernel="precomputed").fit(X @ X.T, y), NEW @ X.T, X @ X.T, y)
    np.testing.assert_allclose(matrix.values, expected, atol=CLOSE)
    function = influence(SVC(kernel=lambda a, b: a @ b.T).fit(X, y), NEW, X, y)
    np.testing.assert_allclose(function.values, expected, atol=CLOSE)
    t = X[:, 0]
    by_name = influence(KernelRidge(kernel="linear").fit(X, t), NEW).values
    by_matrix = influence(KernelRidge(kernel="precomputed").fit(X @ X.T, t), NEW @ X.T).values
    np.testing.assert_allclose(by_matrix, by_name, atol=1e-10)


def test_pipelines_and_searches():
    """A pipeline's steps are applied to both sets of samples; of a search the best machine is taken."""
    X, y = sample()
    pipeline = make_pipeline(StandardScaler(), SVC(C=2.0)).fit(X, y)
    scaler = pipeline[0]
    inner = influence(pipeline[1], scaler.transform(NEW), scaler.transform(X), y)
    np.testing.assert_allclose(influence(pipeline, NEW, X, y).values, inner.values, atol=1e-12)
    search = SVCCV(Cs=[1.0], cv=3).fit(X, y)
    best = influence(search.best_estimator_, NEW, X, y)
    np.testing.assert_allclose(influence(search, NEW, X, y).values, best.values, atol=1e-12)


def test_without_the_matrix():
    """Where the matrix does not fit into memory, problems are solved by rows: the same changes."""
    X, y = sample()
    model = SVC(C=3.0).fit(X, y)
    (problem,) = fitted_problems(model, X, y, None)
    rows = _Rows(model, NEW, problem.machine.data, X)
    found = [_Changes(LeftOutProblem(problem, whole, Options(tol=TOL), Clock()), rows) for whole in (True, False)]
    for changes in found:
        for column in np.flatnonzero(~changes.exact):
            changes.refit(column)
    np.testing.assert_array_equal(found[0].index, found[1].index)
    np.testing.assert_allclose(found[0].values, found[1].values, atol=CLOSE)


def test_limits():
    """Beyond a limit the closed form is used, exact says where, and a warning how often."""
    X, y = sample(100)
    model = SVC().fit(X, y)
    exact = influence(model, NEW, X, y)
    with pytest.warns(ConvergenceWarning, match=r"max_refits=3\): 3 of \d+ problems"):
        some = influence(model, NEW, X, y, max_refits=3)
    assert some.n_refits == 3
    np.testing.assert_allclose(some.values[:, some.exact], exact.values[:, some.exact], atol=CLOSE)
    assert "estimated" in repr(some)
    with pytest.warns(ConvergenceWarning, match=r"time_limit=0 s\): 0 of \d+ problems"):
        none = influence(model, NEW, X, y, time_limit=0)
    assert none.n_refits == 0 and np.isfinite(none.values).all()


def test_ranking_and_text():
    """top ranks by size; the text names the rows that change most."""
    X, y = sample()
    found = influence(SVC().fit(X, y), NEW, X, y)
    order, changes = found.top(4)
    assert order.shape == changes.shape == (6, 4)
    np.testing.assert_array_equal(changes, np.take_along_axis(found.values, order, axis=1))
    assert (np.diff(np.abs(changes), axis=1) <= 0).all()
    assert np.abs(changes).max() == np.abs(found.values).max()
    assert repr(found).startswith("influence of 60 training samples on 6 rows: ")
    assert f"row 0: {order[0, 0]} (" in repr(found)


def test_pictures():
    """Bars are labelled by texts, graphs or numbers; images stand in a gallery."""
    X, y = sample()
    figure = influence(SVC().fit(X, y), NEW, X, y).plot(1, k=5)
    assert len(figure.axes[0].patches) == 5
    gallery = influence(SVC().fit(X, y), NEW, X, y).plot(k=7, image_shape=(2, 2))
    assert sum(len(ax.images) for ax in gallery.axes) == 8
    words = ["banana", "bandana", "tomato", "potato"]
    found = influence(SVC(kernel=Spectrum(3)).fit(words, [0, 0, 1, 1]), ["panama"], words, [0, 0, 1, 1])
    names = [text.get_text() for text in found.plot().axes[0].get_yticklabels()]
    assert any("banana" in name for name in names)
    assert brief("one\nline " + 50 * "x") == "one line " + 18 * "x" + "…"
    graphs = [
        Graph([(0, 1)]),
        Graph([(0, 1), (1, 2)]),
        Graph([(0, 1), (1, 2), (0, 2)]),
        Graph([(0, 1), (0, 2), (0, 3)]),
    ]
    found = influence(SVC(kernel=WeisfeilerLehman(1)).fit(graphs, [0, 0, 1, 1]), graphs, graphs, [0, 0, 1, 1])
    names = [text.get_text() for text in found.plot(2).axes[0].get_yticklabels()]
    assert any("graph of 3 nodes, 3 edges" in name for name in names)
    assert next(t.get_text() for t in found.plot(labels="abcd", k=1).axes[0].get_yticklabels()) in "abcd"
    matplotlib.pyplot.close("all")


def test_unusable():
    """Questions that cannot be answered are refused with a reason."""
    X, y = sample()
    model = SVC().fit(X, y)
    for other in (KernelCentroid(), LinearSVC()):
        with pytest.raises(InvalidInputError, match=f"but was given {type(other).__name__}"):
            influence(other.fit(X, y), NEW, X, y)
    with pytest.raises(InvalidInputError, match="keeps only its support vectors"):
        influence(model, NEW)
    with pytest.raises(InvalidInputError, match="X has 40 samples"):
        influence(model, NEW, X[:40], y[:40])
    with pytest.raises(ValueError, match="3 features"):
        influence(model, NEW[:, :3], X, y)
    with pytest.raises(InvalidInputError, match="tol=0"):
        influence(model, NEW, X, y, tol=0)
    with pytest.raises(InvalidInputError, match="max_refits=-1"):
        influence(model, NEW, X, y, max_refits=-1)
    found = influence(model, NEW, X, y)
    for call, words in (
        (lambda: found.of(1), "there are 1 functions"),
        (lambda: found.top(0), "k=0 was given"),
        (lambda: found.plot(6), "there are 6 rows"),
        (lambda: found.plot(labels=["a"]), "1 labels were given"),
        (lambda: found.plot(image_shape=(3, 3)), "does not fit samples of 4 numbers"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            call()
    with pytest.raises(InvalidInputError, match="landmark machine"):
        influence(KernelRidge(kernel="rbf", landmarks=5).fit(X, y), NEW)
    with pytest.raises(InvalidInputError, match="landmark machine"):
        influence(SVC(landmarks=40).fit(X, y), NEW, X, y)
    with pytest.raises(InvalidInputError, match="no sample weights"):
        process = GaussianProcessRegressor(Gaussian(1.0), alpha=0.1, optimizer=None).fit(X, y)
        influence(process, NEW, sample_weight=np.ones(60))


def test_other_samples_than_those_of_fit_are_refused():
    """A training matrix that lacks the support vectors is not the one of fit."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    model = SVC().fit(X, X[:, 0] > 0)
    with pytest.raises(InvalidInputError, match="X_train is not what the model was fitted to: sample"):
        influence(model, X[:2], X + 1.0, X[:, 0] > 0)


def test_machines_without_influence_are_named():
    """LSSVC is a ridge regression of labels, which influence does not know."""
    X = np.random.default_rng(0).standard_normal((20, 2))
    with pytest.raises(InvalidInputError, match=r"influence supports .* but was given LSSVC"):
        influence(LSSVC().fit(X, X[:, 0] > 0), X[:2], X, X[:, 0] > 0)


def test_a_threshold_that_is_not_unique_is_that_of_a_fit():
    """Where no variable is free without a sample, b is the middle of its interval, as a fit chooses it."""
    X = np.random.default_rng(5).normal(size=(30, 2))
    y = np.zeros(30)
    y[4], y[9] = 2.0, -1.5
    model = SVR(gamma=0.5, epsilon=1.5, tol=1e-9).fit(X, y)
    found, kept = influence(model, X[:3], X, y), np.arange(30) != 4
    refitted = SVR(gamma=0.5, epsilon=1.5, tol=1e-9).fit(X[kept], y[kept])
    assert found.exact[4]
    np.testing.assert_allclose(found.values[:, 4], refitted.predict(X[:3]) - model.predict(X[:3]), atol=1e-6)


def test_where_there_is_no_machine_values_are_not_exact():
    """The only sample of a class, and samples without which the margin of a NuSVC is 0."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    y = np.array([1] + [0] * 19)
    with pytest.warns(UserWarning, match="Without 1 of the training samples the machine is not"):
        found = influence(SVC(gamma=0.5).fit(X, y), X[:3], X, y)
    assert not found.exact[0] and found.exact[1:].all()
    rng = np.random.default_rng(2)
    X, y = rng.integers(0, 3, (24, 2)).astype(float), rng.integers(0, 2, 24)
    model = NuSVC(kernel="linear", nu=0.4, tol=1e-9).fit(X, y)
    with pytest.warns(UserWarning, match="the machine is not determined"):
        found = influence(model, X[:3], X, y)
    assert np.abs(model.decision_function(X)).max() == 0 and not found.exact[2]
    assert np.abs(found.values[:, 2]).max() < 1e-9


def test_other_targets_and_weights_than_those_of_fit_are_refused():
    """The published coefficients are no solution of another problem."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y, weight = (X[:, 0] > 0).astype(int), rng.choice([0.5, 1.0, 2.0], 60)
    for model in (SVC(gamma=0.5), NuSVC(gamma=0.5, nu=0.3), sklearn.svm.SVC(gamma=0.5), SVR(gamma=0.5, epsilon=0.01)):
        model.fit(X, y, sample_weight=weight)
        assert influence(model, X[:2], X, y, weight).exact.all()
        for wrong in ((1 - y, weight), (np.roll(y, 1), weight), (y, None)):
            with pytest.raises(InvalidInputError, match="y_train and sample_weight are not what the model"):
                influence(model, X[:2], X, *wrong)
    model = OneClassSVM(gamma=0.5, nu=0.3).fit(X, sample_weight=weight)
    with pytest.raises(InvalidInputError, match="sample_weight are not what the model was fitted to"):
        influence(model, X[:2], X)
    for limit in ({"tol": "a"}, {"time_limit": "a"}, {"time_limit": -1.0}):
        with pytest.raises(InvalidInputError, match=f"{next(iter(limit))}=.* was given: it must be"):
            influence(model, X[:2], X, None, weight, **limit)
