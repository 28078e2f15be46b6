"""The largest C without a weight: scikit-learn's numbers where it has them, and a border of our machines."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm

from mercer import LinearSVC, LinearSVR, l1_min_c
from mercer.exceptions import InvalidInputError

ROWS = np.array([[-1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
LOSSES = ("hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive", "pinball")
INTERCEPTS = ({}, {"intercept_scaling": 3.0}, {"penalize_intercept": False}, {"fit_intercept": False})


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array, sp.csc_array], ids=["dense", "csr", "csc"])
@pytest.mark.parametrize("loss", ["squared_hinge", "log"])
def test_scikit_learns_numbers(loss, store):
    """Two and three classes, with and without an intercept and its scaling."""
    for y in ([0, 1, 1, 1], [2, 1, 0, 0]):
        for more in ({}, {"fit_intercept": False}, {"intercept_scaling": 10.0}):
            expected = sklearn.svm.l1_min_c(ROWS, y, loss=loss, **more)
            assert l1_min_c(store(ROWS), y, loss=loss, **more) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("intercept", INTERCEPTS, ids=str)
@pytest.mark.parametrize("loss", LOSSES)
def test_it_is_the_border(loss, intercept):
    """Up to it all weights are exactly 0, just beyond at least one is not, by every solver and for elastic nets."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 8))
    signal = X[:, 0] + rng.normal(size=60) + 0.5
    machine, more = (LinearSVC, {}) if "hinge" in loss else (LinearSVR, {"epsilon": 0.3, "quantile": 0.3})
    y = (signal > 0).astype(int) if machine is LinearSVC else signal
    weight = rng.uniform(0.5, 2.0, size=60)
    for ratio in (1.0, 0.4):
        C = l1_min_c(X, y, loss=loss, l1_ratio=ratio, sample_weight=weight, **intercept, **more)
        for solver in ("interior", "proximal"):
            for factor in (0.5, 0.999, 1.001):
                settings = {"loss": loss, "penalty": "elasticnet", "l1_ratio": ratio, "solver": solver}
                model = machine(C=factor * C, **settings, **intercept, **more).fit(X, y, sample_weight=weight)
                counts_b = intercept.get("penalize_intercept", True)
                has_weight = model.coef_.any() or (counts_b and np.any(model.intercept_))
                assert bool(has_weight) == (factor > 1), (ratio, solver, factor)


def test_class_weight_and_three_classes():
    """The smallest border of all problems that LinearSVC solves."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 5)), rng.integers(0, 3, 90)
    X[y == 2, 0] += 2.0
    C = l1_min_c(X, y, class_weight="balanced")
    for factor in (0.999, 1.001):
        model = LinearSVC(penalty="l1", C=factor * C, class_weight="balanced").fit(X, y)
        assert bool(model.coef_.any() or model.intercept_.any()) == (factor > 1)


def test_errors():
    """scikit-learn's words for data without a border and for parameters; what "log" cannot have is said."""
    with pytest.raises(ValueError, match=r"^Ill-posed l1_min_c calculation"):
        l1_min_c([[0.0], [0.0]], [0, 1], fit_intercept=False)
    with pytest.raises(ValueError, match="The 'loss' parameter of l1_min_c must be"):
        l1_min_c(ROWS, [0, 1, 1, 1], loss="l1")
    with pytest.raises(ValueError, match="The 'intercept_scaling' parameter of l1_min_c must be"):
        l1_min_c(ROWS, [0, 1, 1, 1], intercept_scaling=0)
    with pytest.raises(InvalidInputError, match="this loss needs True"):
        l1_min_c(ROWS, [0, 1, 1, 1], loss="log", penalize_intercept=False)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        l1_min_c(ROWS, [0, 1])
