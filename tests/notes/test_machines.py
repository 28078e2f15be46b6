"""Rows 1–6, 9–12: the machines, their optimality and how they are solved."""

import numpy as np
import pytest
from tests.notes.samples import hinge, overlapping, separable
from tests.reference.qp import objective, solve_qp, solve_svr

from mercer import (
    SVC,
    SVR,
    C_to_lambda,
    Gaussian,
    LinearSVC,
    LinearSVR,
    certify,
    kkt_report,
    lambda_to_C,
    unit_hyperplanes,
)
from mercer.losses import EpsilonInsensitive, Hinge


def directions(count=20_000):
    """Unit vectors all around the plane."""
    angle = np.linspace(0, 2 * np.pi, count, endpoint=False)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def test_01_hard_svm():
    """(15.1) = (15.2): w/|w| and b/|w| have the largest smallest distance of all lines; it is margin_ = 1/|w|."""
    X, y = separable()
    X += 3.0
    model = SVC(C=np.inf, kernel="linear", tol=1e-9).fit(X, y)
    w, b = model.coef_[0], model.intercept_[0]
    norm = np.linalg.norm(w)
    assert (y * (X @ (w / norm) + b / norm)).min() == pytest.approx(model.margin_[0]) == pytest.approx(1 / norm)
    (plane,) = unit_hyperplanes(model)
    np.testing.assert_allclose(plane.normal, w / norm)
    assert plane.bias == pytest.approx(b / norm)
    f = directions() @ X.T
    best = 0.5 * (f[:, y > 0].min(axis=1) - f[:, y < 0].max(axis=1))  # of each direction, with the best b
    assert best.max() <= model.margin_[0] * (1 + 1e-9)
    assert best.max() == pytest.approx(model.margin_[0], rel=1e-3)


def test_02_hard_svm_homogeneous():
    """(15.3): through the origin, the smallest |w| with y⟨w, x⟩ ≥ 1."""
    X, y = separable()
    model = SVC(C=np.inf, kernel="linear", fit_intercept=False, tol=1e-9).fit(X, y)
    assert model.intercept_[0] == 0.0
    assert (y * (X @ model.coef_[0])).min() == pytest.approx(1.0)
    smallest = (y * (directions() @ X.T)).min(axis=1)
    assert smallest.max() <= model.margin_[0] * (1 + 1e-9)
    assert smallest.max() == pytest.approx(model.margin_[0], rel=1e-3)


@pytest.mark.parametrize("convention,factor", [("15.4", 1.0), ("15.12", 0.5)])
def test_03_soft_svm(convention, factor):
    """(15.4) = (15.5): factor·λ|w|² + mean hinge is least at SVC's (w, b) for C = lambda_to_C(λ, n)."""
    X, y = overlapping()
    lam = 0.05
    C = lambda_to_C(lam, len(y), convention)
    assert C_to_lambda(C, len(y), convention) == pytest.approx(lam)
    model = SVC(C=C, kernel="linear", tol=1e-8).fit(X, y)

    def value(w, b):
        return factor * lam * w @ w + hinge(y, X @ w + b).mean()

    w, b = model.coef_[0], model.intercept_[0]
    for step in (1e-3, 1e-2, 0.1):
        for v in directions(50):
            for shift in (-step, 0.0, step):
                assert value(w + step * v, b + shift) >= value(w, b) - 1e-12
    # the objectives differ by a factor only
    assert value(w, b) == pytest.approx(model.certificate_.primal / (C * len(y)))


def test_04_soft_svm_homogeneous():
    """(15.6): the same without b."""
    X, y = overlapping()
    lam = 0.05
    model = SVC(C=lambda_to_C(lam, len(y)), kernel="linear", fit_intercept=False, tol=1e-8).fit(X, y)
    w = model.coef_[0]
    least = lam * w @ w + hinge(y, X @ w).mean()
    for v in directions(200):
        for step in (1e-3, 1e-2, 0.1):
            u = w + step * v
            assert lam * u @ u + hinge(y, X @ u).mean() >= least - 1e-12


class TestOptimality:
    """Row 5."""

    def test_05_kkt(self):
        """[D6] (5.2), [M5]: α = 0 outside the margin, 0 < α < C on it, α = C inside."""
        X, y = overlapping()
        model = SVC(C=0.5, kernel="linear", tol=1e-7).fit(X, y)
        (found,) = kkt_report(model, X, y).problems
        margin = y * model.decision_function(X)
        assert (margin[found.state == "zero"] >= 1 - 1e-6).all()
        np.testing.assert_allclose(margin[found.state == "free"], 1.0, atol=1e-6)
        assert (margin[found.state == "bound"] <= 1 + 1e-6).all()
        assert found.violators(1e-6).size == 0

    def test_05_multipliers(self):
        """[M5]: ξ = max(0, 1 − yf), μ = C − α; α(yf − 1 + ξ) = 0 and μξ = 0; Σαy = 0."""
        X, y = overlapping()
        C = 0.5
        model = SVC(C=C, kernel="linear", tol=1e-9).fit(X, y)
        (found,) = kkt_report(model, X, y).problems
        f = model.decision_function(X)
        np.testing.assert_allclose(found.xi, hinge(y, f), atol=1e-12)
        np.testing.assert_allclose(found.alpha @ (y[:, None] * X), model.coef_[0], atol=1e-12)
        np.testing.assert_allclose(found.mu, C - found.alpha, atol=1e-15)
        np.testing.assert_allclose(found.alpha * (y * f - 1 + found.xi), 0.0, atol=1e-8)
        np.testing.assert_allclose(found.mu * found.xi, 0.0, atol=1e-8)
        assert found.alpha @ y == pytest.approx(0.0, abs=1e-12)

    def test_05_support_vectors(self):
        """Theorem 15.8 (Fritz John): w is a combination of the samples at the distance 1/|w| alone."""
        X, y = separable()
        model = SVC(C=np.inf, kernel="linear", fit_intercept=False, tol=1e-9).fit(X, y)
        at_margin = np.flatnonzero(np.isclose(np.abs(X @ model.coef_[0]), 1.0))
        assert set(model.support_) <= set(at_margin) and len(at_margin) < len(y)
        np.testing.assert_allclose(model.dual_coef_[0] @ X[model.support_], model.coef_[0])

    def test_05_weak_duality(self):
        """The dual of every feasible α is at most the primal of every (w, b)."""
        X, y = overlapping()
        K, C = X @ X.T, 0.5
        rng = np.random.default_rng(0)
        for _ in range(200):
            alpha = rng.uniform(0, C, len(y))
            alpha[y > 0] *= alpha[y < 0].sum() / alpha[y > 0].sum()
            alpha *= C / alpha.max()  # Σ αy = 0, 0 ≤ α ≤ C
            dual = alpha.sum() - 0.5 * (alpha * y) @ K @ (alpha * y)
            w, b = rng.normal(size=2), rng.normal()
            assert dual <= 0.5 * w @ w + C * hinge(y, X @ w + b).sum()

    def test_05_strong_duality(self):
        """At the optimum both are equal: the gap of the certificate vanishes."""
        X, y = overlapping()
        model = SVC(C=0.5, tol=1e-9).fit(X, y)
        assert certify(model, X, y).relative_gap <= 1e-8


def test_06_bias():
    """b is the mean of y − ⟨w, x⟩ over the free support vectors ([M5]; [D6] Note 35, corrected)."""
    X, y = overlapping()
    model = SVC(C=0.5, kernel="linear", tol=1e-9).fit(X, y)
    (found,) = kkt_report(model, X, y).problems
    free = found.state == "free"
    assert model.intercept_[0] == pytest.approx((y - X @ model.coef_[0])[free].mean())


def test_09_quadratic_program():
    """[M5], (16.4): the interior-point method, the exact solver and an independent package agree."""
    X, y = overlapping()
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    qp = Hinge().box_qp(y.astype(float), np.full(len(y), 2.0), True)
    optimum = -objective(K, qp, solve_qp(K, qp))
    for solver in ("qp", "auto"):
        model = SVC(C=2.0, gamma=0.5, solver=solver, tol=1e-8).fit(X, y)
        assert model.certificate_.dual == pytest.approx(optimum, rel=1e-8)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_11_smo(C):
    """[M5] SMO (I–III): of two samples one analytic step, 2/|x − z|², clipped to the box, is the solution."""
    X = np.array([[0.0, 0.0], [1.0, 2.0]])
    model = SVC(C=C, kernel="linear").fit(X, [-1, 1])
    np.testing.assert_allclose(np.abs(model.dual_coef_), min(C, 2.0 / 5.0), rtol=1e-12)
    assert model.n_iter_[0] <= 2  # the second finds nothing to do


def test_38_smo_step_by_step():
    """Each step keeps Σ αᵢyᵢ = 0, ends on the segment from L to H, and raises the dual; the last α is the solution."""
    X, y = overlapping()
    model = SVC(kernel="linear", trace=True, tol=1e-6).fit(X, y)
    steps, alpha = model.steps_, np.zeros(len(y))
    for k in range(len(steps)):
        i, j = steps.i[k], steps.j[k]
        ends = np.array([steps.L[k], steps.H[k]])
        # the segment is that of the line αᵢyᵢ + αⱼyⱼ = const in the box
        others = alpha[i] + y[i] * y[j] * (alpha[j] - ends)
        assert np.all((others > -1e-9) & (others < 1 + 1e-9)) and np.any(np.abs(np.r_[others, ends] - 0.5) > 0.5 - 1e-9)
        np.testing.assert_allclose(np.clip(steps.unclipped[k], *ends), steps.clipped[k], atol=1e-12)
        alpha[i], alpha[j] = steps.alpha_i[k], steps.clipped[k]
        assert abs(alpha @ y) < 1e-9
    assert np.all(np.diff(steps.dual) > -1e-12)
    np.testing.assert_allclose(alpha[model.support_], np.abs(model.dual_coef_[0]), atol=1e-12)


def test_12_svr():
    """[M5] regression: errors within ε cost nothing; a wider tube has fewer support vectors and a worse fit."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, size=(80, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=80)
    counts, errors = [], []
    for epsilon in (0.01, 0.1, 0.3, 0.6):
        model = SVR(C=10.0, epsilon=epsilon, tol=1e-6).fit(X, y)
        residual = np.abs(y - model.predict(X))
        outside = np.flatnonzero(residual > epsilon + 1e-5)
        assert set(outside) <= set(model.support_)
        primal = 0.5 * model.rkhs_norm_[0] ** 2 + 10.0 * np.maximum(0, residual - epsilon).sum()
        assert model.certificate_.primal == pytest.approx(primal, rel=1e-6)
        counts.append(len(model.support_))
        errors.append(residual.mean())
    assert counts == sorted(counts, reverse=True) and counts[0] > 2 * counts[-1]
    assert errors == sorted(errors)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.4])
def test_12_svr_quadratic_program(epsilon):
    """[M5]: the optimum is that of an independent package, the dual with a kernel and the primal without one."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, size=(60, 2))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=60)
    C = 3.0
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    qp = EpsilonInsensitive(epsilon).box_qp(y, np.full(60, C), True)
    beta = solve_qp(K, qp)
    model = SVR(C=C, epsilon=epsilon, gamma=0.5, tol=1e-9).fit(X, y)
    assert model.certificate_.dual == pytest.approx(-objective(K, qp, beta), rel=1e-9)
    F = K @ beta
    np.testing.assert_allclose(model.predict(X) - model.intercept_, F, atol=1e-5)
    free = (np.abs(beta) > 1e-6 * C) & (np.abs(beta) < (1 - 1e-6) * C)
    b = (y - F - epsilon * np.sign(beta))[free]  # y − f = b ± ε on the edges of the tube
    np.testing.assert_allclose(b, model.intercept_[0], atol=1e-5)
    w, w0, value = solve_svr(X, y, C, epsilon)
    linear = SVR(C=C, epsilon=epsilon, kernel="linear", tol=1e-9).fit(X, y)
    assert linear.certificate_.primal == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(linear.coef_[0], w, atol=1e-5)
    assert linear.intercept_[0] == pytest.approx(w0, abs=1e-5)
    primal = LinearSVR(C=C, epsilon=epsilon, penalize_intercept=False, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(np.ravel(primal.coef_), w, atol=1e-4)


def test_01_hard_svm_without_a_kernel():
    """(15.2) over w and b themselves: the same hyperplane as by its dual."""
    X, y = separable()
    model = LinearSVC(C=np.inf, penalize_intercept=False, tol=1e-9).fit(X, y)
    dual = SVC(C=np.inf, kernel="linear", tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.coef_, dual.coef_, rtol=1e-6)
    np.testing.assert_allclose(model.intercept_, dual.intercept_, rtol=1e-6, atol=1e-8)


def test_03_soft_svm_without_a_kernel():
    """(15.4) over w and b themselves; the bias is free, as in the notes."""
    X, y = overlapping()
    model = LinearSVC(C=2.0, loss="hinge", penalize_intercept=False, tol=1e-10).fit(X, y)
    dual = SVC(C=2.0, kernel="linear", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, dual.coef_, rtol=1e-4)
    assert model.certificate_.primal == pytest.approx(dual.certificate_.primal, rel=1e-8)


@pytest.mark.parametrize("rule", ["round-robin", "random", "greedy"])
def test_10_coordinate_ascent(rule):
    """All three rules of choice end at the optimum of the problem without a bias."""
    X, y = overlapping()
    model = LinearSVC(loss="hinge", fit_intercept=False, solver="coordinate", rule=rule, tol=1e-8).fit(X, y)
    K = X @ X.T
    qp = Hinge().box_qp(y.astype(float), np.ones(len(y)), False)
    assert model.certificate_.dual == pytest.approx(-objective(K, qp, solve_qp(K, qp)), rel=1e-6)
    assert model.certificate_.relative_gap <= 1e-8


@pytest.mark.parametrize("rule", ["round-robin", "random", "greedy"])
def test_37_coordinate_ascent_with_kernels(rule):
    """The same with a kernel: one αᵢ after the other, with no other step between."""
    X, y = overlapping()
    model = SVC(gamma=0.5, fit_intercept=False, solver="coordinate", rule=rule, tol=1e-8, trace=True).fit(X, y)
    K = Gaussian(0.5)(X, X)
    qp = Hinge().box_qp(y.astype(float), np.ones(len(y)), False)
    assert model.certificate_.dual == pytest.approx(-objective(K, qp, solve_qp(K, qp)), rel=1e-6)
    assert model.certificate_.relative_gap <= 1e-6 and len(model.steps_) == model.n_iter_[0]
