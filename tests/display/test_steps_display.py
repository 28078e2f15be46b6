"""Pictures of steps: the measure above, and below it the samples that moved."""

import matplotlib
import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import (
    SVC,
    ConvergenceDisplay,
    InvalidInputError,
    KernelCentroid,
    KernelLMS,
    PegasosClassifier,
    Perceptron,
    Steps,
    StepsDisplay,
)

matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

X, Y = make_moons(60, noise=0.2, random_state=0)
IRIS = load_iris(return_X_y=True)
QUIET = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def points(ax):
    """The points of each kind, by their entry in the legend."""
    return {
        line.get_label().rpartition(" (")[0]: np.column_stack(line.get_data())
        for line in ax.get_lines()
        if "(" in str(line.get_label())
    }


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_pegasos():
    """The upper line is the objective; points are the updates, pale dots the other draws."""
    model = PegasosClassifier(0.05, random_state=0, trace=True).fit(X, Y)
    display = StepsDisplay.from_estimator(model)
    upper, lower = display.axes_
    np.testing.assert_array_equal(upper.get_lines()[0].get_ydata(), model.steps_.objective)
    found = points(lower)
    hit = model.steps_.updated
    np.testing.assert_array_equal(found["updated w"], np.column_stack([model.steps_.t, model.steps_.i])[hit])
    assert len(found["no update"]) == (~hit).sum()
    assert legend(lower) == [f"updated w ({hit.sum()})", f"no update ({(~hit).sum()})"]
    assert upper.get_title() == "1,200 steps of Pegasos" and upper.get_yscale() == "log"


@QUIET
def test_one_of_several_machines_on_given_axes():
    """machine chooses a class; a given axes is divided in two. Counts have a linear axis."""
    model = make_pipeline(StandardScaler(), Perceptron(trace=True)).fit(*IRIS)
    figure, ax = plt.subplots(layout="constrained")
    display = StepsDisplay.from_estimator(model, machine=2, ax=ax)
    assert display.figure_ is figure and all(part in ax.child_axes for part in display.axes_)
    steps = model[-1].steps_[2]
    assert display.steps is steps
    assert legend(display.axes_[1])[0] == f"mistake ({steps.mistake.sum()})"
    assert display.axes_[0].get_yscale() == "linear"
    figure.canvas.draw()
    box, inside = figure.bbox, display.axes_[1].get_tightbbox()
    assert box.x0 <= inside.x0 and inside.x1 <= box.x1 and box.y0 <= inside.y0 and inside.y1 <= box.y1
    with pytest.raises(InvalidInputError, match="machine=3: this Perceptron has 3 binary machines, numbered from 0 to"):
        StepsDisplay.from_estimator(model, machine=3)


@QUIET
def test_kernel_lms():
    """All samples move, so that the lower line is the length of the change."""
    model = KernelLMS(max_iter=30, trace=True).fit(X, Y)
    upper, lower = StepsDisplay.from_estimator(model).axes_
    np.testing.assert_array_equal(upper.get_lines()[0].get_ydata(), model.steps_.error)
    np.testing.assert_array_equal(lower.get_lines()[0].get_ydata(), model.steps_.change)


def hand_made(method, columns):
    rng, n = np.random.default_rng(0), 40
    made = {name: rng.integers(0, 10, n) for name in columns}
    unclipped = rng.normal(size=n)
    dual = np.cumsum(rng.random(n))
    return Steps(method, {**made, "unclipped": unclipped, "clipped": unclipped.clip(-0.5, 0.5), "dual": dual}, "dual")


@pytest.mark.parametrize("columns", [["i", "j"], ["i"]])
def test_clipped_steps(columns):
    """SMO draws both samples of a pair, coordinate ascent one; clipped steps are crosses."""
    steps = hand_made("SMO", columns)
    upper, lower = StepsDisplay(steps).plot().axes_
    clipped = np.abs(steps.unclipped) > 0.5
    found = points(lower)
    number = np.arange(1, 41)
    np.testing.assert_array_equal(found["clipped to the box"], np.column_stack([number, steps.i])[clipped])
    np.testing.assert_array_equal(found["free step"], np.column_stack([number, steps.i])[~clipped])
    drawn = np.concatenate([line.get_ydata() for line in lower.get_lines()])
    assert sorted(drawn) == sorted(np.concatenate([steps[name] for name in columns]))
    assert {line.get_marker() for line in lower.get_lines()} == {"o", "x"}
    assert upper.get_ylabel() == "dual" and upper.get_title() == "40 steps of SMO"


def test_coordinate_ascent():
    """Coordinates that stay at their bound are neither free nor clipped; the dual has a linear axis."""
    model = SVC(C=0.5, solver="coordinate", fit_intercept=False, trace=True).fit(X, Y)
    steps, display = model.steps_, StepsDisplay.from_estimator(model)
    alpha, stays = np.zeros(len(Y)), []
    for i, value in zip(steps.i, steps.clipped, strict=True):
        stays.append(alpha[i] == value)
        alpha[i] = value
    found, free = points(display.axes_[1]), steps.clipped == steps.unclipped
    assert len(found["stays at its bound"]) == np.sum(np.array(stays) & ~free) > 0
    assert len(found["free step"]) == free.sum()
    assert display.axes_[0].get_yscale() == "linear"


def test_smo():
    """The pairs of a fit: each step moves two samples."""
    model = SVC(solver="smo", trace=True).fit(X, Y)
    display = StepsDisplay.from_estimator(model)
    drawn = np.concatenate([line.get_ydata() for line in display.axes_[1].get_lines()])
    assert sorted(drawn) == sorted([*model.steps_.i, *model.steps_.j])
    assert display.axes_[0].get_title() == f"{len(model.steps_)} steps of SMO"


def test_steps_that_were_cut_off():
    """The title says that these are the first ones."""
    columns = {"i": np.arange(3000) % 7, "updated": np.arange(3000) % 2 == 0, "value": np.arange(3000.0)}
    display = StepsDisplay(Steps("a procedure", columns, "value", complete=False)).plot()
    assert display.axes_[0].get_title() == "the first 3,000 steps of a procedure"


def test_models_without_steps():
    """The message says how to get them."""
    with pytest.raises(InvalidInputError, match=r"This Perceptron has no steps_: fit Perceptron\(trace=True\)\."):
        StepsDisplay.from_estimator(Perceptron().fit(X, X[:, 0] > 0))
    with pytest.raises(InvalidInputError, match=r"This KernelCentroid has no steps_: give a machine such as SVC"):
        StepsDisplay.from_estimator(KernelCentroid().fit(X, Y))
    with pytest.raises(NotFittedError):
        StepsDisplay.from_estimator(Perceptron(trace=True))


class TestConvergence:
    def test_pegasos(self):
        """The relative gap of the objectives against the steps ends at that of the certificate."""
        model = PegasosClassifier(0.05, max_iter=64, tol=1e-9, random_state=0)
        with pytest.warns(UserWarning):
            model.fit(X, Y)
        display = ConvergenceDisplay.from_estimator(model)
        assert display.seconds.tolist() == [point.steps for point in model.objective_trace_]
        assert display.violation[-1] == pytest.approx(model.certificate_.relative_gap, rel=1e-9)
        assert display.ax_.get_xlabel() == "steps" and display.ax_.get_yscale() == "log"
        assert legend(display.ax_) == ["largest relative gap", "tolerance of the relative gap: 1e-09"]

    def test_pegasos_without_a_bound(self):
        """An indefinite kernel has no dual value that bounds the optimum: the objective is drawn."""
        model = PegasosClassifier(0.05, kernel="sigmoid", gamma=2.0, random_state=0).fit(X, Y)
        assert not model.certificate_.valid
        display = ConvergenceDisplay.from_estimator(model)
        assert display.violation.tolist() == [point.objective for point in model.objective_trace_]
        assert legend(display.ax_) == ["objective"]

    @QUIET
    def test_steps(self):
        """Models with steps alone are drawn by their measure: counts linearly, a falling error by its logarithm."""
        for model, scale in ((Perceptron(max_iter=3, trace=True), "linear"), (KernelLMS(trace=True), "log")):
            steps = model.fit(X, Y).steps_
            display = ConvergenceDisplay.from_estimator(model)
            np.testing.assert_array_equal(display.ax_.get_lines()[0].get_ydata(), steps[steps.measure])
            assert display.ax_.get_yscale() == scale and display.distance is None

    @QUIET
    def test_refusals(self):
        """Several machines, or neither trace nor steps."""
        with pytest.raises(InvalidInputError, match="3 machines with steps of their own"):
            ConvergenceDisplay.from_estimator(Perceptron(trace=True, max_iter=3).fit(*IRIS))
        with pytest.raises(InvalidInputError, match="KernelCentroid has no trace of its fit"):
            ConvergenceDisplay.from_estimator(KernelCentroid().fit(X, Y))
