"""The figures of the notes show what they say: checked by the numbers that are drawn."""

import re

import matplotlib
import numpy as np
import pytest

from mercer import SVC, Perceptron
from mercer.display import figures
from mercer.display.figures import figure_data

matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def lines(ax):
    """Lines by their names in the legend."""
    return {line.get_label(): np.column_stack(line.get_data()) for line in ax.get_lines()}


def numbers(text):
    return [float(found) for found in re.findall(r"-?\d+(?:\.\d+)?", text)]


def segments(ax, colour=None):
    """The ends of drawn segments of two points."""
    return [
        np.column_stack(line.get_data())
        for line in ax.get_lines()
        if len(line.get_xdata()) == 2 and (colour is None or line.get_color() == colour)
    ]


def test_losses():
    """The ramp loss is min(1, hinge), and the hinge loss is above the 0-1 loss; the tube is free."""
    left, right = figures.losses(epsilon=0.25).axes
    drawn = lines(left)
    np.testing.assert_allclose(drawn["ramp"][:, 1], np.minimum(1.0, drawn["hinge"][:, 1]))
    assert (drawn["hinge"][:, 1] >= drawn["0-1"][:, 1]).all()
    residual, value = lines(right)["ε-insensitive, ε = 0.25"].T
    np.testing.assert_allclose(value, np.maximum(0.0, np.abs(residual) - 0.25))


def test_separating_lines():
    """Both lines separate, with smaller margins than the widest street."""
    left, right = figures.separating_lines().axes
    (widest,) = numbers(right.get_title())
    X, y = figure_data.separable(16)
    for label, line in lines(left).items():
        direction = line[1] - line[0]
        normal = np.array([-direction[1], direction[0]]) / np.hypot(*direction)
        signed = y * ((X - line[0]) @ normal)
        signed = signed if signed.sum() > 0 else -signed
        assert signed.min() == pytest.approx(numbers(label)[0], abs=0.005)
        assert 0 < signed.min() < widest


def test_support_vectors():
    """Each red line is as long as the margin, which no sample is nearer than."""
    (ax,) = figures.support_vectors().axes
    X, y = figure_data.separable()
    margin = SVC(C=np.inf, kernel="linear", tol=1e-6).fit(X, y).margin_[0]
    lengths = [np.hypot(*(b - a)) for a, b in segments(ax)]
    assert len(lengths) >= 2
    np.testing.assert_allclose(lengths, margin, rtol=1e-4)


def test_slack():
    """A line of the length ξ/|w| for each sample with slack, and ξ beside it."""
    (ax,) = figures.slack(C=0.5).axes
    X, y = figure_data.clouds(26, 3.2, seed=6)
    model = SVC(C=0.5, kernel="linear", tol=1e-6).fit(X, y)
    xi = np.maximum(0.0, 1.0 - y * model.decision_function(X))
    drawn = xi[xi > 0.01]
    lengths = [np.hypot(*(b - a)) for a, b in segments(ax)]
    np.testing.assert_allclose(lengths, drawn * model.margin_[0], rtol=1e-4)
    assert [text.get_text() for text in ax.texts] == [f"{value:.1f}" for value in drawn]
    assert numbers(ax.get_title())[-1] == pytest.approx(xi.sum(), abs=0.06)


def test_lift():
    """The border, a plane of the three features, is a circle between the disc and the ring."""
    left, right = figures.lift().axes
    X, y = figure_data.disc()
    (contours,) = [part for part in left.collections if getattr(part, "levels", [None])[0] == -1.0]
    border = contours.get_paths()[list(contours.levels).index(0.0)].vertices
    radius = np.hypot(*border.T)
    assert np.hypot(*X[y > 0].T).max() < radius.min() and radius.max() < np.hypot(*X[y < 0].T).min()
    assert right.name == "3d" and len(right.collections) == 3


@pytest.mark.parametrize("panel", [0, 1])
def test_coordinate_ascent(panel):
    """Steps are parallel to the axes, within the box, and end at the optimum."""
    ax = figures.coordinate_ascent().axes[panel]
    (path,) = [np.column_stack(line.get_data()) for line in ax.get_lines()]
    assert path[0].tolist() == [0.0, 0.0] and (path >= 0).all() and (path <= 1).all()
    assert (np.count_nonzero(np.diff(path, axis=0), axis=1) <= 1).all()
    assert len(path) == numbers(ax.get_title())[-1] + 1
    X = np.array([[1.2, 0.0], [[-0.84, -0.8], [-0.5, -0.45]][panel]])
    exact = SVC(C=1.0, kernel="linear", fit_intercept=False, tol=1e-8).fit(X, [1, -1])
    alpha = np.zeros(2)
    alpha[exact.support_] = np.abs(exact.dual_coef_[0])
    np.testing.assert_allclose(path[-1], alpha, atol=0.03)
    assert (alpha[1] == 1.0) == (panel == 1)


@pytest.mark.parametrize("panel", [0, 1])
def test_smo(panel):
    """The maximum on the line is taken if it is on the segment; else the end that is nearer."""
    drawn = lines(figures.smo().axes[panel])
    low, high = drawn["segment"]
    (start,), (best,), (taken,) = drawn["start"], drawn["maximum on the line"], drawn["taken"]
    assert (np.abs(drawn["segment"] - np.clip(drawn["segment"], 0, 1)) < 1e-12).all()
    across = high - low
    for point in (start, best, taken):
        assert across[0] * (point - low)[1] == pytest.approx(across[1] * (point - low)[0], abs=1e-9)
    place = (best - low) @ across / (across @ across)
    np.testing.assert_allclose(taken, low + np.clip(place, 0, 1) * across, atol=1e-9)
    assert (place > 1 or place < 0) == (panel == 0)


def test_perceptron():
    """The panels follow the mistakes of the fit, and the last line separates the samples."""
    axes = figures.perceptron(mistakes=3).axes
    X, y = figure_data.separable(20, gap=0.15, seed=33)
    steps = Perceptron(fit_intercept=False, shuffle=False, tol=None, trace=True).fit(X, y).steps_
    at = np.flatnonzero(steps.mistake)
    assert [numbers(ax.get_title()) for ax in axes] == [[k + 1, at[k] + 1] for k in (0, 1, 2, len(at) - 1)]
    assert [ax.collections[-1].get_offsets()[0].tolist() for ax in axes] == [
        X[steps.i[at[k]]].tolist() for k in (0, 1, 2, len(at) - 1)
    ]


def test_pegasos():
    """The objective of the iterates falls from the second on, the first that is not 0."""
    axes = figures.pegasos(steps=(2, 8, 64, 512)).axes
    found = [numbers(ax.get_title()) for ax in axes]
    assert [t for t, _ in found] == [2, 8, 64, 512]
    assert (np.diff([value for _, value in found]) < 0).all()
    first, *_ = figures.pegasos(steps=(1, 2, 3)).axes
    assert numbers(first.get_title()) == [1, 1]  # w⁽¹⁾ = 0


def test_effects():
    """The margin falls with C; a narrow Gaussian and a narrow tube have the most support vectors."""
    margin = [numbers(ax.get_title())[1] for ax in figures.effect_of_C().axes]
    assert margin[0] > margin[1] > margin[2]
    by_gamma = [numbers(ax.get_title())[1] for ax in figures.effect_of_gamma().axes]
    assert by_gamma[2] > max(by_gamma[:2])
    by_epsilon = [numbers(ax.get_title())[1] for ax in figures.effect_of_epsilon().axes]
    assert by_epsilon[0] > by_epsilon[1] > by_epsilon[2]


def test_overfitting():
    """At the largest γ: more support vectors and more errors of new samples than at the best one, a smaller margin."""
    figure = figures.overfitting(values=[0.1, 2.0, 300.0])
    left, middle, right = figure.axes[:3]
    margin, count, errors = left.get_lines()[0].get_ydata(), middle.get_lines()[0].get_ydata(), lines(right)
    assert margin[2] < margin[1] and count[2] > count[1]
    assert errors["new samples"][2, 1] > errors["new samples"][1, 1]
    assert errors["training samples"][2, 1] == 0.0


def test_near_diagonal():
    """The values off the diagonal fall from the first matrix to the last."""
    titles = [ax.get_title() for ax in figures.near_diagonal().axes if ax.get_title()]
    off = [numbers(title)[1] for title in titles]
    assert off[0] > 0.5 and off[0] > off[1] > off[2] and off[2] < 0.05
