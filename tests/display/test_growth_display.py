"""Pictures of the growth of landmark machines."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, GrowthDisplay, InvalidInputError


def test_the_lines_are_the_gaps_of_the_rounds():
    """One line has the gaps to the exact machine, the other those to the machine of the landmarks."""
    X, y = make_moons(400, noise=0.3, random_state=0)
    model = make_pipeline(StandardScaler(), SVC(landmarks="auto", landmark_tol=1e-3)).fit(X, y)
    rounds = model[-1].growth_
    for against in ("landmarks", "seconds"):
        display = GrowthDisplay.from_estimator(model, against=against, ax=plt.subplots()[1])
        exact, own = display.lines_
        expected = [r.n_landmarks if against == "landmarks" else r.seconds for r in rounds]
        np.testing.assert_array_equal(exact.get_xdata(), expected)
        np.testing.assert_array_equal(exact.get_ydata(), [r.exact_relative_gap for r in rounds])
        np.testing.assert_array_equal(own.get_ydata(), [max(r.relative_gap, 1e-8) for r in rounds])
        assert "landmark_tol = 0.001" in display.ax_.get_legend_handles_labels()[1]
    plt.close("all")


def test_each_pair_of_classes_has_its_lines():
    """Three classes are three pairs; a number of landmarks has no tolerance to draw."""
    X, y = load_iris(return_X_y=True)
    display = GrowthDisplay.from_estimator(SVC(landmarks=20).fit(X, y))
    assert len(display.lines_) == 6
    assert len(display.ax_.get_legend_handles_labels()[1]) == 2
    plt.close("all")


def test_machines_without_growth_are_refused():
    """The errors say what to do."""
    X, y = make_moons(50, random_state=0)
    with pytest.raises(InvalidInputError, match="fit it with landmarks='auto' or a number"):
        GrowthDisplay.from_estimator(SVC().fit(X, y))
    with pytest.raises(InvalidInputError, match="against='time' was given: use 'landmarks' or 'seconds'"):
        GrowthDisplay.from_estimator(SVC(landmarks=5).fit(X, y), against="time")
