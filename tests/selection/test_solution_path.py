"""The exact path in C."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from tests.reference.qp import objective, solve_qp

from mercer import SVC, InvalidInputError, LinearSVC
from mercer.losses import Hinge
from mercer.selection.solution_path import solution_path

GAP = 1e-9


def sample(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)


GRID = np.array([[i, j] for i in range(6) for j in range(6)], dtype=float)


def cases():
    X, y = sample()
    rng = np.random.default_rng(1)
    yield "gaussian", SVC(), X, y, None
    yield "linear", SVC(kernel="linear"), X, y, None
    yield "through the origin", SVC(fit_intercept=False), X, y, None
    yield "linear through the origin", SVC(kernel="linear", fit_intercept=False), X, y, None
    yield "unequal classes", SVC(), X, (X[:, 0] > 0.8).astype(int), None
    yield "labels at random, classes of equal size", SVC(), X, np.arange(60) % 2, None
    yield "labels at random, linear", SVC(kernel="linear"), X, np.arange(60) % 2, None
    yield "weights", SVC(class_weight="balanced"), X, y, rng.uniform(0.1, 3.0, size=60)
    yield "weights of zero", SVC(), X, y, (np.arange(60) % 3 > 0).astype(float)
    yield "every sample twice", SVC(), np.vstack([X, X]), np.r_[y, y], None
    yield "every sample in both classes", SVC(), np.vstack([X, X]), np.r_[y, 1 - y], None
    yield "samples in line", SVC(kernel="linear"), GRID, (GRID[:, 0] > 2).astype(int), None
    yield "chess board", SVC(gamma=0.5), GRID, ((GRID[:, 0] + GRID[:, 1]) % 2).astype(int), None
    yield "xor", SVC(gamma=1.0), np.array([[0.0, 0], [1, 1], [0, 1], [1, 0]]), np.array([0, 0, 1, 1]), None
    line = np.array([0.0, 0, 1, 1, 1, 2, 2])[:, None]
    yield "ties on a line", SVC(kernel="linear"), line, np.array([0, 0, 0, 1, 1, 1, 0]), None
    yield "all samples equal", SVC(kernel="linear"), np.ones((10, 2)), np.array([0, 1] * 5), None
    yield "all equal, unequal classes", SVC(), np.ones((10, 2)), np.array([0, 1, 1, 1, 1] * 2), None
    yield "two samples", SVC(), np.array([[0.0], [1.0]]), np.array([0, 1]), None
    whole = rng.integers(0, 3, size=(50, 2)).astype(float)
    yield "whole numbers", SVC(kernel="poly", degree=2, coef0=1.0), whole, rng.integers(0, 2, size=50), None
    yield "one against many", SVC(), X, (np.arange(60) == 7).astype(int), None
    yield "far from the origin", SVC(kernel="linear"), X + 1e3, y, None
    yield "a tiny kernel", SVC(kernel="linear"), 1e-8 * X, y, None
    yield "a huge kernel", SVC(kernel="poly", gamma=1.0, coef0=1.0), 30.0 * X, y, None
    yield "a kernel matrix", SVC(kernel="precomputed"), X @ X.T, y, None


CASES = {name: rest for name, *rest in cases()}


@pytest.mark.parametrize("name", CASES)
def test_certified_everywhere(name):
    """At every break, halfway between any two of them, and at random C the solution is optimal to within 1e-9."""
    path = solution_path(CASES[name][0], *CASES[name][1:])
    assert path.C[0] < path.C[-1]
    assert (np.diff(path.C) > 0).all()
    drawn = np.exp(np.random.default_rng(0).uniform(*np.log(path.C[[0, -1]]), size=20))
    for C in np.r_[path.C, (path.C[1:] + path.C[:-1]) / 2, drawn]:
        proof, _ = path.certified(C)
        assert proof.valid
        assert proof.relative_gap < GAP
        assert proof.kkt_violation < 1e-7
        assert proof.infeasibility < 1e-9 * C


@pytest.mark.parametrize("name", ["gaussian", "weights", "labels at random, linear", "chess board"])
def test_another_solver_agrees(name):
    """The dual value at random C is that of an independent solver."""
    model, X, y, weight = CASES[name]
    path = solution_path(model, X, y, weight)
    K, w, labels = path._path.K, path._path.w, path._path.y
    for C in np.exp(np.random.default_rng(0).uniform(*np.log(path.C[[0, -1]]), size=5)):
        qp = Hinge().box_qp(labels, C * w, True)
        value = objective(K, qp, solve_qp(K, qp))
        assert objective(K, qp, -path.coefficients(C)[path._path.rows]) == pytest.approx(value, rel=1e-7)


def test_breaks_are_where_samples_change():
    """Between breaks the sets of free, bounded and other samples stay the same; at a break one of them changes."""
    X, y = sample()
    path = solution_path(SVC(), X, y)

    def states(C):
        alpha = np.abs(path.coefficients(C))
        return np.where(alpha < 1e-9 * C, 0, np.where(alpha > C * (1 - 1e-9), 2, 1))

    pieces = [states(C) for C in (path.C[1:] + path.C[:-1]) / 2]
    assert all((one != other).any() for one, other in pairwise(pieces))
    for piece, low, high in zip(pieces, path.C[:-1], path.C[1:], strict=True):
        for share in (0.1, 0.9):
            np.testing.assert_array_equal(states(low + share * (high - low)), piece)


def test_models():
    """The SVC of a C is the one that a fit finds, and needs no step; decision values are its own."""
    X, y = sample()
    labels = np.where(y == 1, "no", "yes")
    path = solution_path(SVC(tol=1e-8), X, labels)
    new = np.random.default_rng(2).normal(size=(20, 3))
    for C in (path.C[0], 0.3, 7.0, path.C[-1]):
        model = path.model(C)
        fitted = SVC(C=C, tol=1e-8).fit(X, labels)
        assert model.C == C
        assert not model.warm_start
        assert model.n_iter_[0] <= 2
        np.testing.assert_allclose(model.decision_function(new), fitted.decision_function(new), atol=1e-6)
        np.testing.assert_allclose(path.decision_function(new, C), fitted.decision_function(new), atol=1e-6)
    assert path.classes.tolist() == ["no", "yes"]
    matrix = solution_path(SVC(kernel="precomputed"), X @ X.T, labels)
    linear = solution_path(SVC(kernel="linear"), X, labels)
    np.testing.assert_allclose(matrix.decision_function(new @ X.T, 1.0), linear.decision_function(new, 1.0), atol=1e-8)


def test_separable_classes_end():
    """Once no sample is inside the margin the solution is the hard margin's, for every larger C."""
    X, y = sample()
    X = X[np.abs(X[:, 0]) > 0.3]
    y = (X[:, 0] > 0).astype(int)
    path = solution_path(SVC(kernel="linear"), X, y)
    assert path.constant
    hard = SVC(kernel="linear", C=np.inf, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(path.decision_function(X, 1e6), hard.decision_function(X), atol=1e-6)
    assert "does not change beyond" in str(path)


def test_range():
    """The path begins and ends where it is asked to; any other C is refused."""
    X, y = sample()
    path = solution_path(SVC(), X, y, C_min=0.5, C_max=2.0)
    assert (path.C[0], path.C[-1]) == (0.5, 2.0)
    whole = solution_path(SVC(), X, y)
    np.testing.assert_allclose(path.coefficients(1.1), whole.coefficients(1.1), atol=1e-9)
    for C in (0.4, 2.1, np.nan):
        with pytest.raises(InvalidInputError, match=r"outside of the path, which goes from 0.5 to 2"):
            path.coefficients(C)
    one = solution_path(SVC(), X, y, C_min=1.0, C_max=1.0)
    assert len(one) == 1
    np.testing.assert_allclose(one.coefficients(1.0), whole.coefficients(1.0), atol=1e-8)
    with pytest.raises(InvalidInputError, match=r"give 0 < C_min <= C_max < inf"):
        solution_path(SVC(), X, y, C_min=2.0, C_max=1.0)


def test_time_limit():
    """Without time the path ends where it is, and a warning says where."""
    X, y = sample()
    with pytest.warns(ConvergenceWarning, match=r"The path ended early \(time_limit=0 s\)"):
        path = solution_path(SVC(), X, y, time_limit=0)
    assert len(path) == 1


def test_unusable():
    """Models without a path in C are refused with a reason."""
    X, y = sample()
    with pytest.raises(InvalidInputError, match="LinearSVC with loss='squared_hinge' was given"):
        solution_path(LinearSVC(), X, y)
    with pytest.raises(InvalidInputError, match="SVC with loss='squared_hinge' was given"):
        solution_path(SVC(loss="squared_hinge"), X, y)
    with pytest.raises(InvalidInputError, match="needs two classes, but y has 3"):
        solution_path(SVC(), X, np.arange(60) % 3)


@pytest.mark.parametrize("seed", [*range(2, 8), 19, 25, 37, 55, 59])
def test_random_problems(seed):
    """Random sizes, kernels, noise and repeated rows: optimal at every break, as far as rounding of Kβ allows."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 60))
    X, y = make_classification(n, 4, flip_y=0.3, random_state=seed)
    if seed % 2:
        X = np.round(X)
    y[:2] = 0, 1
    model = SVC(kernel=("rbf", "linear", "poly")[seed % 3], gamma=float(rng.uniform(0.01, 3.0)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = solution_path(model, X, y, C_min=1e-4, C_max=1e4)
    assert len(path) < 5 * n + 20
    size = np.abs(path._path.K)
    for C in path.C:
        rounding = np.finfo(float).eps * (size @ np.abs(path.coefficients(C)[path._path.rows])).max()
        assert path.certified(C)[0].kkt_violation < 1e-9 + 100 * rounding
