"""LinearSVC and LinearSVR end at the optimum of their problem: by their certificate, and by a QP package."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.linear_machines import LOSSES
from tests.reference.linear import solve, value_of

from mercer import SVC, SVR, LinearSVC, LinearSVR

TOL = 1e-9
PENALTIES = {"l2": (0.0, 1.0), "l1": (1.0, 0.0), "elasticnet": (0.3, 0.7)}
INTERCEPTS = {
    "penalised": {"intercept_scaling": 1.5},
    "free": {"penalize_intercept": False},
    "none": {"fit_intercept": False},
}


def made(kind, seed, regression):
    """X, y and weights of one kind of problem, many of them degenerate."""
    rng = np.random.default_rng(seed)
    n, d = {"wide": (25, 60), "square": (30, 30), "few": (3, 2), "one column": (40, 1)}.get(kind, (80, 6))
    X = rng.normal(size=(n, d))
    weight = rng.uniform(0.3, 2.0, size=n)
    signal = X[:, 0] - (0.5 * X[:, -1] if d > 1 else 0.0) + 0.7 * rng.normal(size=n) + 0.4
    if kind == "repeated rows":
        X, signal = np.repeat(X[:16], 5, axis=0), np.repeat(signal[:16], 5)
    elif kind == "constant columns":
        X[:, 1], X[:, 2], X[:, 3] = 3.0, 0.0, X[:, 4]
    elif kind == "empty rows":
        X[::3] = 0.0
    elif kind == "no weight":
        weight[::3] = 0.0
    elif kind == "bad scales":
        X *= 10.0 ** np.linspace(-3, 2, d)
    elif kind == "separable":
        signal = X[:, 0] + 0.3 * np.sign(X[:, 0])
    elif kind == "whole numbers":
        X, signal = rng.integers(-2, 3, size=(n, d)).astype(float), rng.integers(-2, 3, size=n).astype(float)
    y = signal if regression else np.where(signal > 0, 1.0, -1.0)
    if not regression:
        y[:2] = 1.0, -1.0
        weight[:2] = 1.0
    return X, y, weight


KINDS = (
    "tall", "wide", "square", "few", "one column", "repeated rows", "constant columns", "empty rows", "no weight",
    "bad scales", "separable", "whole numbers",
)  # fmt: skip


def check(loss, penalty, intercept, C, kind, seed, tol=TOL, **settings):
    """Fit, then compare the value of the published model with the reference and with its certificate."""
    machine, own, parameter = LOSSES[loss]
    l1, l2 = PENALTIES[penalty]
    X, y, weight = made(kind, seed, machine is LinearSVR)
    options = {"loss": loss, "penalty": penalty, "l1_ratio": 0.3, "C": C, "tol": tol, "max_iter": 100_000}
    model = machine(**options, **own, **INTERCEPTS[intercept], **settings).fit(X, y, sample_weight=weight)
    scaling = INTERCEPTS[intercept].get("intercept_scaling", 0.0)
    w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    if scaling:
        X, w, b = np.column_stack([X, np.full(len(X), scaling)]), np.append(w, b / scaling), 0.0
    value = value_of(X, y, C * weight, w, b, loss, l1, l2, parameter)
    proof = model.certificate_
    assert proof.valid and proof.relative_gap <= tol
    np.testing.assert_allclose(proof.primal, value, rtol=1e-11)
    reference = solve(X, y, C * weight, loss, l1=l1, l2=l2, free=intercept == "free", parameter=parameter)
    unsure = abs(reference.value - reference.bound)  # clarabel's own gap
    assert value <= reference.value * (1 + max(1e-8, tol)) + 1e-300
    assert value >= min(reference.value, reference.bound) - 1e-8 * abs(value) - unsure
    assert proof.dual <= reference.value * (1 + 1e-9) + 1e-300
    return model


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_optimum(loss, penalty, intercept, kind):
    """Every combination of loss, penalty and intercept, on ordinary and degenerate data, for several C."""
    for C in (0.05, 1.0, 20.0):
        check(loss, penalty, intercept, C, kind, seed=3)


@pytest.mark.parametrize("C", [1e-8, 1e-4, 1e4, 1e8])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_extreme_C(loss, intercept, C):
    """C from 1e-8 to 1e8: the certificate closes at the default tol, and no model is better."""
    check(loss, "l2", intercept, C, "tall", seed=5, tol=1e-6)


# Newton's method is for squared losses
TAKEN = [(s, x) for s in ("interior", "coordinate", "newton") for x in LOSSES if s != "newton" or x.startswith("sq")]


@pytest.mark.parametrize(("solver", "loss"), TAKEN)
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("kind", ["tall", "wide", "repeated rows", "empty rows", "no weight"])
def test_each_solver(solver, intercept, loss, kind):
    """Each solver by its name, where it takes the problem."""
    check(loss, "l2", intercept, 1.0, kind, seed=7, tol=1e-8, solver=solver)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_same_as_the_kernel_machine(loss, C):
    """LinearSVC(penalize_intercept=False) is SVC(kernel="linear"), and LinearSVR is SVR."""
    machine, own, _ = LOSSES[loss]
    X, y, weight = made("tall", 1, machine is LinearSVR)
    linear = machine(loss=loss, C=C, tol=1e-12, penalize_intercept=False, **own).fit(X, y, sample_weight=weight)
    kernel = (SVC if machine is LinearSVC else SVR)(kernel="linear", loss=loss, C=C, tol=1e-10, **own)
    kernel.fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(np.ravel(linear.coef_), np.ravel(kernel.coef_), atol=1e-5)
    np.testing.assert_allclose(linear.certificate_.primal, kernel.certificate_.primal, rtol=1e-9)
    one, two = (m.decision_function(X) if machine is LinearSVC else m.predict(X) for m in (linear, kernel))
    np.testing.assert_allclose(one, two, atol=2e-5)


@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.coo_array])
@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_is_dense(loss, container):
    """The same model from the same numbers in another storage."""
    machine, own, _ = LOSSES[loss]
    X, y, weight = made("empty rows", 2, machine is LinearSVR)
    X[np.abs(X) < 0.7] = 0.0
    dense = machine(loss=loss, tol=1e-10, **own).fit(X, y, weight)
    sparse = machine(loss=loss, tol=1e-10, **own).fit(container(X), y, weight)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-5)
    np.testing.assert_allclose(sparse.certificate_.primal, dense.certificate_.primal, rtol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_float32(loss):
    """float32 numbers give the optimum of these numbers: the certificate is in float64."""
    machine, own, _ = LOSSES[loss]
    X, y, weight = made("tall", 4, machine is LinearSVR)
    X = X.astype(np.float32)
    single = machine(loss=loss, tol=1e-8, **own).fit(X, y, weight)
    double = machine(loss=loss, tol=1e-8, **own).fit(X.astype(np.float64), y, weight)
    assert single.certificate_.relative_gap <= 1e-8
    np.testing.assert_allclose(single.certificate_.primal, double.certificate_.primal, rtol=2e-8)


def test_zero_weights_of_an_l1_penalty():
    """Samples of weight 0 change neither the optimal value nor a label, where the optimum is a whole line of models."""
    X = np.repeat([[1.0, 3.0], [2.0, 1.0], [3.0, 3.0], [4.0, 1.0]], 4, axis=0)
    y = np.repeat([1, 2, 1, 2], 4)
    order = np.random.default_rng(0).permutation(32)
    twice, other = np.vstack([X, X])[order], np.append(y, 3 - y)[order]
    weight = np.repeat([1.0, 0.0], 16)[order]
    machine = {"penalty": "l1", "loss": "squared_hinge", "tol": 1e-12}
    plain = LinearSVC(**machine).fit(X, y)
    weighted = LinearSVC(**machine).fit(twice, other, sample_weight=weight)
    assert weighted.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-11)
    np.testing.assert_array_equal(weighted.predict(X), plain.predict(X))
    # where samples pay, all optimal models agree
    pays = np.abs(plain.decision_function(X)) < 1.0
    np.testing.assert_allclose(weighted.decision_function(X)[pays], plain.decision_function(X)[pays], rtol=1e-6)
