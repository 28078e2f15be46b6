"""The result of `explain`: its parts, text and pictures."""

from dataclasses import FrozenInstanceError

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from mercer import SVC, SVR, InvalidInputError, KernelKMeans, LinearSVR, Matern, MissingExtraError, explain

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def regression():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 3)), columns=["age", "height", "a name that is much too long for an axis"])
    return explain(SVR().fit(X, X["age"] ** 2 + X["height"]), X[:20], X)


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    return explain(SVC().fit(X, np.digitize(X[:, 0], [-0.5, 0.5])), X[:20], X[:10])


def test_importance_is_the_mean_size(regression, classes):
    """Over rows, for each feature and function."""
    np.testing.assert_array_equal(regression.importance, np.abs(regression.values).mean(axis=0))
    assert classes.importance.shape == (4, 3)


def test_text(regression, classes):
    """One line says what was explained and how; print adds the features by importance."""
    assert repr(regression) == "Explanation(20 rows × 3 features, exact by quadrature, 40 background rows)"
    assert repr(classes[0]) == "Explanation(1 row × 4 features × 3 functions, exact by quadrature, 10 background rows)"
    lines = str(regression).splitlines()
    assert lines[0] == repr(regression) and lines[2].startswith("age ")
    X = np.random.default_rng(0).normal(size=(30, 12))
    sampled = explain(SVR(kernel=Matern()).fit(X, X[:, 0]), X[:2], X[:3], n_samples=2)
    assert repr(sampled).startswith("Explanation(2 rows × 12 features, by permutations, standard error ≤ ")
    assert str(sampled).splitlines()[-1] == "… and 2 more"


def test_it_is_frozen_and_can_be_sliced(regression):
    """Some rows are an explanation again."""
    with pytest.raises(FrozenInstanceError):
        regression.base = 0.0
    some = regression[5:8]
    np.testing.assert_array_equal(some.values, regression.values[5:8])
    np.testing.assert_array_equal(some.data, regression.data[5:8])
    assert len(some) == 3 and some.base == regression.base


def test_bars(regression, classes):
    """A bar for each feature, the most important at the top; one for each of a few functions."""
    ax = regression.plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["age", "height", "a name that is much too lon…"]
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths, np.sort(regression.importance)[::-1])
    assert ax.yaxis_inverted()
    assert len(classes.plot(max_features=2).patches) == 2 * 3
    assert len(classes.plot(output="0 against 2").patches) == 4
    given = plt.figure().subplots()
    assert regression.plot(ax=given) is given


def test_beeswarm(regression, classes):
    """A dot for each row and feature."""
    ax = regression.plot("beeswarm")
    dots = [drawn.get_offsets() for drawn in ax.collections]
    assert [len(d) for d in dots] == [20, 20, 20]
    np.testing.assert_allclose(dots[0][:, 0], regression.values[:, np.argmax(regression.importance)])
    assert all(np.abs(d[:, 1] - k).max() < 0.5 for k, d in enumerate(dots))
    assert len(classes.plot("beeswarm", output=1, max_features=3).collections) == 3


def test_bad_input(regression, classes):
    """Messages say what is allowed."""
    with pytest.raises(InvalidInputError, match="kind='pie' is not known: it must be 'bar' or 'beeswarm'"):
        regression.plot("pie")
    with pytest.raises(InvalidInputError, match="has 3 functions: choose one by output=, a number or one of '0"):
        classes.plot("beeswarm")
    with pytest.raises(InvalidInputError, match="output='7' is not a function of this explanation"):
        classes.plot(output="7")
    with pytest.raises(InvalidInputError, match="max_features=0 must be a whole number, at least 1"):
        regression.plot(max_features=0)


def test_to_shap(regression, classes):
    """The same numbers as a shap.Explanation; without shap the message says what to install."""
    try:
        import shap  # noqa: F401
    except ImportError:
        with pytest.raises(MissingExtraError, match=r"to_shap needs shap.*mercer\[shap\]"):
            regression.to_shap()
        return
    for found in (regression, classes):
        theirs = found.to_shap()
        np.testing.assert_array_equal(theirs.values, found.values)
        np.testing.assert_array_equal(theirs.base_values[0], found.base)
        assert list(theirs.feature_names) == list(found.feature_names)


def test_choosing_rows():
    """Rows are chosen along one axis; none is a choice, too."""
    X = np.random.default_rng(0).normal(size=(20, 3))
    found = explain(SVR(gamma=0.3).fit(X, X[:, 0]), X[:4])
    assert len(found[-1]) == 1 and len(found[[0, 2]]) == 2 and len(found[found.outputs > 9]) == 0
    assert str(found[:0]) == repr(found[:0])
    for wrong in (None, [[0, 1]]):
        with pytest.raises(InvalidInputError, match="Rows are chosen by a number, a slice"):
            found[wrong]


def test_a_row_is_not_its_own_background():
    """One row and a model that keeps none: all values would be 0, and called exact."""
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = LinearSVR().fit(X, X[:, 0])
    for background in (None, "mean"):
        with pytest.raises(InvalidInputError, match="a single row, which would be its own background"):
            explain(model, X[:1], background)
    assert explain(model, X[:2]).n_background == 2
    assert np.abs(explain(SVR().fit(X, X[:, 0]), X[:1]).values).max() > 0


def test_clusterers_are_refused():
    """Numbers of clusters have no meaning as values."""
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(InvalidInputError, match="KernelKMeans is a clusterer"):
        explain(KernelKMeans(n_clusters=2, random_state=0).fit(X), X)
