"""Hard margins on columns of very different scales, where kernel matrices have lost the digits that decide."""

import warnings

import numpy as np
import pytest
from scipy.optimize import linprog

from mercer import SVC, LinearSVC, NotSeparableError
from mercer.svm.hard_margins.margin import largest_margin, matrix_features


def generated(seed):
    """A small set whose columns have scales from 1e-3 to 1e3; every second one is separable by construction."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 25)), int(rng.integers(1, 8))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, size=d)
    y = np.where(X @ rng.normal(size=d) + 0.3 > 0, 1.0, -1.0) if seed % 2 else rng.choice([-1.0, 1.0], size=n)
    y[:2] = -1.0, 1.0
    return X, y


def separable_by_linear_program(X, y, intercept):
    """Whether some (w, b) within bounds has y(Xw + b) ≥ t > 0; columns are scaled first, which changes no answer."""
    Z = np.column_stack([X / np.abs(X).max(axis=0), np.ones(len(y))])
    bounds = [(-1, 1)] * X.shape[1] + [(None, None) if intercept else (0, 0), (None, 1)]
    cost = np.zeros(Z.shape[1] + 1)
    cost[-1] = -1.0
    found = linprog(cost, np.column_stack([-y[:, None] * Z, np.ones(len(y))]), np.zeros(len(y)), bounds=bounds)
    return -found.fun > 1e-9


def smallest_margin(X, y, w, b):
    return np.min(y * (X @ w + b)) / np.linalg.norm(w)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("seed", range(40))
def test_largest_margin_is_proven_from_above(seed, intercept):
    """There is a second candidate only for separable classes; its β bounds every margin by the one that it has."""
    X, y = generated(seed)
    _, *found = largest_margin(X, y, intercept)
    assert bool(found) == separable_by_linear_program(X, y, intercept)
    if not found:
        return
    w, b, beta, _ = found[0]
    weights = np.abs(beta)
    if intercept:
        weights[y > 0] /= weights[y > 0].sum()
        weights[y < 0] /= weights[y < 0].sum()
    bound = 0.5 * np.linalg.norm((y * weights * (1.0 if intercept else 2.0 / weights.sum())) @ X)
    # no hyperplane has a larger margin than half the distance of two points of the hulls
    assert smallest_margin(X, y, w, b) == pytest.approx(bound, rel=1e-5)
    assert np.min(y * (X @ w + b)) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("machine", ["SVC", "LinearSVC"])
def test_hard_margin_machines_agree_with_the_linear_program(machine):
    """Sets 74, 122, … of an earlier search were called inseparable, or left with a model that does not separate."""
    for seed in (*range(30), 1074, 2122):
        X, y = generated(seed)
        for intercept in (True, False):
            model = (
                SVC(C=np.inf, kernel="linear", fit_intercept=intercept)
                if machine == "SVC"
                else LinearSVC(C=np.inf, loss="hinge", fit_intercept=intercept, penalize_intercept=False)
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    separates = bool(np.all(y * model.fit(X, y).decision_function(X) > 0))
                except NotSeparableError:
                    separates = False
            assert separates == separable_by_linear_program(X, y, intercept), (seed, intercept)


def test_margin_of_samples_that_kernel_values_confuse():
    """|w| is 1e4 and Σ|β| 1e8: the kernel matrix, with entries of 1e6, rounds at the size of the margin."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=12) * 1e3, rng.normal(size=12) * 1e3, np.repeat([1e-4, -1e-4], 6)])
    y = np.repeat([1.0, -1.0], 6)
    model = LinearSVC(C=np.inf, loss="hinge", penalize_intercept=False, tol=1e-6).fit(X, y)
    assert np.all(y * model.decision_function(X) > 0)
    assert model.certificate_.relative_gap <= 1e-6


def test_margin_of_fewer_samples_than_features():
    """β combines the samples to w."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(5, 40)) * 10.0 ** rng.integers(-3, 4, size=40), np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    _, found = largest_margin(X, y, True)
    np.testing.assert_allclose(X.T @ found.coef, found.normal, rtol=1e-6, atol=1e-9 * np.abs(found.normal).max())


def test_no_margin():
    """The only candidate has the weights of a common point, or of a sample at the origin."""
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    (found,) = largest_margin(X, np.array([1.0, -1.0, 1.0, -1.0]), True)
    assert abs(found.weights @ X[:, 0]) <= 1e-15 and found.weights.any()
    (found,) = largest_margin(np.array([[0.0], [1.0]]), np.array([-1.0, 1.0]), False)
    assert found.weights.tolist() == [-1.0, 0.0] and found.normal is None


@pytest.mark.parametrize("rank", [1, 3, 6])
def test_features_of_a_matrix(rank):
    """L L' is the matrix, in as many dimensions as it has."""
    A = np.random.default_rng(0).normal(size=(6, rank))
    L = matrix_features(A @ A.T)
    assert L.shape == (6, rank)
    np.testing.assert_allclose(L @ L.T, A @ A.T, atol=1e-13)
