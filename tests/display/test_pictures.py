"""Pictures show the model: checked by their numbers and pixels."""

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import (
    SVC,
    SVR,
    BandDisplay,
    ConvergenceDisplay,
    DecisionDisplay,
    Gaussian,
    GaussianProcessRegressor,
    GramDisplay,
    InvalidInputError,
    KernelRidge,
    Linear,
    LinearSVC,
    MarginDisplay,
    MissingExtraError,
    OneClassSVM,
    PegasosClassifier,
    Perceptron,
    SupportVectorDisplay,
    TubeDisplay,
    White,
)
from mercer.display.fitted_model import distance_words

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

X, Y = make_moons(80, noise=0.15, random_state=0)
IRIS = load_iris(return_X_y=True)


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def pixels(figure):
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3]


def test_decision_regions_are_the_predictions():
    model = SVC(C=10, gamma=1.0).fit(X, Y)
    _, ax = plt.subplots()
    display = DecisionDisplay.from_estimator(model, X, Y, grid=40, ax=ax)
    assert display.ax_ is ax
    points = np.stack(np.meshgrid(display.x, display.y), axis=-1).reshape(-1, 2)
    np.testing.assert_array_equal(display.regions.ravel(), model.predict(points))
    np.testing.assert_allclose(display.values.ravel(), model.decision_function(points))
    np.testing.assert_array_equal(display.support_.get_offsets(), X[model.support_])
    assert list(display.contours_.levels) == [-1.0, 0.0, 1.0]
    # the two classes and their regions have different colours
    colours = {tuple(c) for c in pixels(display.figure_).reshape(-1, 3)}
    assert len(colours) > 20


def test_decision_of_several_classes_a_pipeline_and_novelties():
    model = make_pipeline(StandardScaler(), SVC()).fit(IRIS[0][:, :2], IRIS[1])
    display = DecisionDisplay.from_estimator(model, IRIS[0][:, :2], IRIS[1], grid=30)
    assert set(np.unique(display.regions)) == {0, 1, 2} and display.values is None
    novel = DecisionDisplay.from_estimator(OneClassSVM(nu=0.1).fit(X), X, grid=30)
    assert novel.classes == ["novel", "usual"] and list(novel.contours_.levels) == [0.0]


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


@pytest.mark.parametrize("eta0", [1e-3, 1.0, 1e3])
def test_a_perceptron_has_no_margin_lines(eta0):
    """Its values scale with eta0, so ±1 are not margins; without support vectors the legend has no entry for them."""
    model = Perceptron(eta0=eta0).fit(X, X[:, 0] > 0)
    display = DecisionDisplay.from_estimator(model, X, X[:, 0] > 0, grid=30)
    assert list(display.contours_.levels) == [0.0] and legend(display) == ["False", "True"]
    assert display.support_ is None
    histogram = MarginDisplay.from_estimator(model, X, X[:, 0] > 0)
    assert not histogram.unit and histogram.ax_.get_xlabel() == "margin y f(x)"


def test_margin_lines_without_support_vectors():
    """Linear machines have a margin; they publish no support vectors."""
    for model in (PegasosClassifier(random_state=0), LinearSVC()):
        display = DecisionDisplay.from_estimator(model.fit(X, Y), X, Y, grid=30)
        assert list(display.contours_.levels) == [-1.0, 0.0, 1.0] and legend(display) == ["0", "1"]
    x = np.linspace(0, 6, 20)[:, None]
    assert legend(TubeDisplay.from_estimator(KernelRidge().fit(x, x[:, 0]), x, x[:, 0])) == ["prediction", "samples"]


def test_tables():
    """Models that were fitted to a data frame are drawn without a warning about the names of columns."""
    table = pd.DataFrame(X, columns=["a", "b"])
    display = DecisionDisplay.from_estimator(SVC().fit(table, Y), table, Y, grid=20)
    assert display.ax_.get_xlabel() == "a"
    DecisionDisplay.from_estimator(OneClassSVM().fit(table), table, grid=20)
    TubeDisplay.from_estimator(SVR().fit(table[["a"]], X[:, 1]), table[["a"]], X[:, 1])


def test_tube():
    x = np.linspace(0, 6, 50)[:, None]
    y = np.sin(x[:, 0])
    model = SVR(C=10, epsilon=0.2).fit(x, y)
    display = TubeDisplay.from_estimator(model, x, y)
    np.testing.assert_allclose(display.f, model.predict(display.x[:, None]))
    box = display.tube_.get_paths()[0].get_extents()
    assert box.ymax == pytest.approx(display.f.max() + 0.2)
    assert f"support vectors ({len(model.support_)})" in [t.get_text() for t in display.ax_.get_legend().get_texts()]


def test_band():
    x = np.linspace(0, 6, 20)[:, None]
    model = GaussianProcessRegressor(Gaussian(1.0) + White(0.01)).fit(x, np.sin(x[:, 0]))
    display = BandDisplay.from_estimator(model, x, np.sin(x[:, 0]), width=3)
    mean, std = model.predict(display.x[:, None], return_std=True)
    np.testing.assert_allclose(display.mean, mean)
    assert display.band_.get_paths()[0].get_extents().ymax == pytest.approx((mean + 3 * std).max())
    with pytest.raises(InvalidInputError, match="TubeDisplay"):
        BandDisplay.from_estimator(SVR().fit(x, np.sin(x[:, 0])), x, np.sin(x[:, 0]))


def test_convergence():
    """The picture ends at the certificate's gap, on one logarithmic axis."""
    model = SVC(C=100).fit(X, Y)
    display = ConvergenceDisplay.from_estimator(model)
    assert len(display.seconds) == len(model.trace_) and display.ax_.get_yscale() == "log"
    certificate = model.certificate_
    assert display.ax_.get_title() == f"objective {distance_words(certificate)}"
    assert display.distance[-1] == pytest.approx((certificate.primal - display.dual[-1]) / certificate.primal)
    assert display.figure_.axes == [display.ax_]
    with pytest.raises(InvalidInputError, match="3 machines"):
        ConvergenceDisplay.from_estimator(SVC().fit(*IRIS))


def test_convergence_is_cut_at_rounding():
    """A violation of 1e-16 is drawn at a thousandth of the tolerance, and the axis has labels at whole decades only."""
    seconds, violation = np.array([0.0, 0.1, 0.2]), np.array([1.0, 1e-2, 1e-16])
    certificate = SimpleNamespace(valid=True, primal=10.0, dual=10.0, relative_gap=0.0)
    display = ConvergenceDisplay(seconds, violation, np.array([1.0, 9.0, 10.0]), 1e-3, "violation", certificate).plot()
    assert all(line.get_ydata()[-1] == pytest.approx(1e-6) for line in display.ax_.get_lines()[:2])
    assert display.ax_.get_ylabel() == "value (log scale, cut at 1e-06)"
    assert display.ax_.get_title() == "objective within 0.001 % of the best possible value"
    one_look = ConvergenceDisplay(seconds[:1], np.array([2e-3]), np.array([9.0]), 1e-3, "gap", certificate).plot()
    low, high = one_look.ax_.get_ylim()
    assert high / low >= 100
    labels = [t.get_text() for t in one_look.ax_.yaxis.get_minorticklabels()]
    assert not any(labels)


def test_distance_in_words():
    """An unknown, tiny, small or huge gap gives a readable sentence."""
    certificates = [
        SimpleNamespace(valid=v, relative_gap=g) for v, g in ((False, 0.1), (True, 1e-9), (True, 6e-5), (True, 3.0))
    ]
    assert [distance_words(one) for one in certificates] == [
        "at an unknown distance from the best possible value",
        "within 0.001 % of the best possible value",
        "within 0.006 % of the best possible value",
        "far from the best possible value",
    ]


def test_margins():
    model = SVC().fit(X, Y)
    display = MarginDisplay.from_estimator(model, X, Y)
    np.testing.assert_allclose(display.margins, np.where(Y == 1, 1, -1) * model.decision_function(X))
    assert display.correct == model.score(X, Y)
    assert f"{np.sum(model.predict(X) != Y):,} of 80" in display.ax_.get_title()
    several = MarginDisplay.from_estimator(SVC().fit(*IRIS), *IRIS)
    assert several.margins.shape == (150,) and not several.unit
    with pytest.raises(InvalidInputError, match="ovr"):
        MarginDisplay.from_estimator(SVC(decision_function_shape="ovo").fit(*load_digits(n_class=4, return_X_y=True)),
                                     *load_digits(n_class=4, return_X_y=True))  # fmt: skip


def test_gram_matrix_is_ordered_by_class():
    shuffled = np.random.default_rng(0).permutation(150)
    display = GramDisplay.from_kernel(Gaussian(0.5), IRIS[0][shuffled], IRIS[1][shuffled])
    assert display.edges == [50, 100, 150] and display.classes == [0, 1, 2]
    assert display.K[:50, :50].mean() > 3 * display.K[:50, 100:].mean()
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == ["0", "1", "2"]
    negative = GramDisplay.from_kernel(Linear(), IRIS[0] - IRIS[0].mean(axis=0), IRIS[1])
    assert negative.image_.get_clim()[0] == -negative.image_.get_clim()[1]
    model = SVC(gamma=0.5).fit(*IRIS)
    np.testing.assert_allclose(GramDisplay.from_estimator(model, *IRIS).K, Gaussian(0.5)(IRIS[0]))


def test_many_samples_are_thinned():
    X = np.random.default_rng(0).normal(size=(2000, 2))
    assert GramDisplay.from_kernel(Gaussian(1.0), X, X[:, 0]).K.shape == (600, 600)


def test_gallery():
    images, labels = load_digits(n_class=3, return_X_y=True)
    model = SVC().fit(images, labels)
    display = SupportVectorDisplay.from_estimator(model, labels, shape=(8, 8), count=5)
    size = np.abs(model.dual_coef_).sum(axis=0)
    np.testing.assert_allclose(display.weights, np.sort(size)[::-1][:5])
    assert all(title[0] in "012" for title in display.titles)
    with pytest.raises(InvalidInputError, match="cannot be drawn as images of shape"):
        SupportVectorDisplay.from_estimator(model, labels, shape=(9, 9))
    assert len(SupportVectorDisplay.from_estimator(SVC().fit(*IRIS)).vectors) == 12


@pytest.mark.parametrize("display", [DecisionDisplay, TubeDisplay, BandDisplay, MarginDisplay])
def test_unfitted_models_are_refused(display):
    with pytest.raises(NotFittedError):
        display.from_estimator(SVC(), X, Y)


def test_wrong_models_are_refused():
    with pytest.raises(InvalidInputError, match="4 features"):
        DecisionDisplay.from_estimator(SVC().fit(*IRIS), *IRIS)
    with pytest.raises(InvalidInputError, match="TubeDisplay"):
        DecisionDisplay.from_estimator(SVR().fit(X, Y), X, Y)
    with pytest.raises(InvalidInputError, match="give y"):
        DecisionDisplay.from_estimator(SVC().fit(X, Y), X)
    with pytest.raises(InvalidInputError, match="one feature"):
        TubeDisplay.from_estimator(SVR().fit(X, Y), X, Y)
    with pytest.raises(InvalidInputError, match="SVC is not a regression: use DecisionDisplay"):
        TubeDisplay.from_estimator(SVC().fit(X[:, :1], Y), X[:, :1], Y)
    with pytest.raises(InvalidInputError, match="give a classifier"):
        MarginDisplay.from_estimator(SVR().fit(X, Y), X, Y)


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match="mercer\\[report\\]"):
        GramDisplay.from_kernel(Gaussian(1.0), X, Y)


def test_gram_with_a_few_large_values():
    """Colours distinguish the other values, and the colour bar shows that some lie beyond."""
    X = np.linspace(0.0, 1.0, 100)[:, None]
    X[0] = 50.0
    drawn = GramDisplay.from_kernel((Linear() + 1.0) ** 2, X)
    assert drawn.image_.get_clim()[1] < 0.01 * drawn.K.max() and drawn.colorbar_.extend == "max"
    plain = GramDisplay.from_kernel(Gaussian(1.0), X[1:])
    assert plain.image_.get_clim()[1] == 1.0 and plain.colorbar_.extend == "neither"
