"""Pictures of searches and paths."""

import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import SVC, InvalidInputError, MissingExtraError, PathDisplay, SearchCurveDisplay, SearchMapDisplay
from mercer import solution_path as path_of

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

X, Y = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def search():
    return GridSearchCV(SVC(), {"C": [0.01, 1.0, 100.0], "gamma": [0.001, 0.1]}, cv=3).fit(X, Y)


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def test_map(search):
    """Each cell is the mean score of its candidate; the best one is marked; given axes are drawn on."""
    _, ax = plt.subplots()
    display = SearchMapDisplay.from_estimator(search, "C", "gamma", ax=ax)
    assert display.ax_ is ax
    assert display.scores.shape == (2, 3)
    for params, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        cell = display.y_values.index(params["gamma"]), display.x_values.index(params["C"])
        assert display.scores[cell] == score
    assert display.best == (search.best_params_["C"], search.best_params_["gamma"])
    assert ax.get_xlabel() == "C"
    assert ax.get_ylabel() == "gamma"
    assert "cross-validated accuracy" in display.colorbar_.ax.get_ylabel()
    display.figure_.canvas.draw()


def test_map_with_holes():
    """Candidates that were not tried leave a hole; a cell with several candidates shows the best."""
    grid = [
        {"C": [1.0], "gamma": [0.1]},
        {"C": [10.0], "gamma": [0.1, 1.0]},
        {"C": [1.0], "gamma": [0.1], "degree": [2]},
    ]
    found = SearchMapDisplay.from_estimator(GridSearchCV(SVC(), grid, cv=3).fit(X, Y), "C", "gamma")
    assert np.isnan(found.scores).sum() == 1
    found.figure_.canvas.draw()


def test_curve(search):
    """A line is the best over the other parameters, or over one value of a second; powers have a log axis."""
    best = SearchCurveDisplay.from_estimator(search, "C")
    scores = search.cv_results_["mean_test_score"].reshape(3, 2)
    np.testing.assert_array_equal(best.lines[0][1], scores.max(axis=1))
    assert best.ax_.get_xscale() == "log"
    assert best.best[1] == search.best_score_
    several = SearchCurveDisplay.from_estimator(search, "C", by="gamma", linewidth=3)
    for k, (label, mean, _) in enumerate(several.lines):
        assert label == f"gamma = {[0.001, 0.1][k]}"
        np.testing.assert_array_equal(mean, scores[:, k])
    assert several.lines_[0].get_linewidth() == 3
    assert SearchCurveDisplay.from_estimator(search).param == "C"
    several.figure_.canvas.draw()


def test_names_and_kernels():
    """Values that are not numbers are drawn side by side."""
    search = GridSearchCV(SVC(), {"kernel": ["linear", "rbf"], "C": [1.0]}, cv=3, scoring="f1_macro").fit(X, Y)
    display = SearchCurveDisplay.from_estimator(search, "kernel")
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["linear", "rbf"]
    assert display.ax_.get_ylabel() == "cross-validated f1 macro"
    display.figure_.canvas.draw()


def test_path():
    """Lines are |β|/C of each sample, between 0 and 1; or the numbers of support vectors."""
    path = path_of(SVC(), X[50:, :2], Y[50:])
    display = PathDisplay.from_path(path)
    values = np.concatenate([line.get_ydata() for line in display.lines_])
    assert values.min() >= 0
    assert values.max() <= 1 + 1e-9
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["class 1", "class 2"]
    counts = PathDisplay.from_path(path, quantity="support", ax=plt.subplots()[1])
    np.testing.assert_array_equal(counts.lines_[0].get_ydata(), path.n_support)
    np.testing.assert_array_equal(counts.lines_[1].get_ydata(), path.n_free)
    display.figure_.canvas.draw()
    with pytest.raises(InvalidInputError, match="quantity='margin' was given"):
        PathDisplay.from_path(path, quantity="margin")


@pytest.mark.parametrize("kind", ["SVC", "pipeline", "search"])
def test_path_of_an_estimator(kind):
    """The path is computed for the machine inside a pipeline, on the preprocessed samples."""
    Z, y = X[50:, :2], Y[50:]
    pipeline = make_pipeline(StandardScaler(), SVC()).fit(Z, y)
    model, seen = {
        "SVC": (SVC(), Z),
        "pipeline": (pipeline, pipeline[0].transform(Z)),
        "search": (GridSearchCV(SVC(), {"gamma": [0.7]}, cv=2).fit(Z, y), Z),
    }[kind]
    display = PathDisplay.from_estimator(model, Z, y, C_min=0.1, C_max=1.0, quantity="support")
    expected = path_of(SVC(gamma=0.7) if kind == "search" else SVC(), seen, y, C_min=0.1, C_max=1.0)
    np.testing.assert_allclose(display.path.C, expected.C)
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), expected.n_support)


def test_every_display_is_made_of_an_estimator():
    """All displays have from_estimator, like scikit-learn's."""
    names = [name for name in mercer.__all__ if name.endswith("Display")]
    assert len(names) >= 10
    assert all(hasattr(getattr(mercer, name), "from_estimator") for name in names)


def test_unusable(search, monkeypatch):
    """Models that cannot be drawn are refused with a reason."""
    with pytest.raises(InvalidInputError, match=r"no parameter 'nu'; it has 'C', 'gamma'"):
        SearchCurveDisplay.from_estimator(search, "nu")
    with pytest.raises(NotFittedError):
        SearchMapDisplay.from_estimator(GridSearchCV(SVC(), {}))
    with pytest.raises(InvalidInputError, match="SVC has no cv_results_"):
        SearchMapDisplay.from_estimator(SVC().fit(X, Y))
    one = GridSearchCV(SVC(), {"C": [1.0]}, cv=3).fit(X, Y)
    with pytest.raises(InvalidInputError, match="too few parameters"):
        SearchMapDisplay.from_estimator(one)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"The picture needs matplotlib"):
        SearchMapDisplay.from_estimator(search)
