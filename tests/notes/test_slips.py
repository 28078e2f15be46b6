"""Where the notes have a slip, the corrected statement holds, and the printed one does not."""

import numpy as np
import pytest
from tests.notes.samples import hinge, overlapping, page, separable

from mercer import (
    SVC,
    Gaussian,
    Graph,
    GraphDiffusion,
    KernelCentroid,
    KernelRidge,
    Linear,
    PegasosClassifier,
    Sigmoid,
    certify,
    check_mercer,
    kkt_report,
    lambda_to_alpha,
    lambda_to_C,
)
from mercer.kernels.objects import graph_diffusion


def test_d6_algorithm_13():
    """b̂ = b̃/|w̃| keeps the hyperplane where it is; b̃/|b̃| moves it."""
    X, y = separable()
    X += 3.0
    model = SVC(C=np.inf, kernel="linear", tol=1e-9).fit(X, y)
    w, b = model.coef_[0], model.intercept_[0]
    norm = np.linalg.norm(w)
    assert (y * (X @ w / norm + b / norm)).min() == pytest.approx(model.margin_[0])
    assert (y * (X @ w / norm + b / abs(b))).min() < 0


@pytest.mark.parametrize("side", ["margin holds", "margin is violated"])
def test_d6_note_26(side):
    """Where the margin holds the subgradient of (λ/2)|w|² + hinge is λw alone; elsewhere λw − yx."""
    lam, y, x = 0.3, -1.0, np.array([1.0, -2.0])
    w = np.array([-1.0, 1.5]) if side == "margin holds" else np.array([0.5, 0.2])
    assert (y * w @ x >= 1) == (side == "margin holds")

    def value(v):
        return 0.5 * lam * v @ v + float(hinge(y, v @ x))

    step = 1e-6
    slope = np.array([(value(w + step * e) - value(w - step * e)) / (2 * step) for e in np.eye(2)])
    expected = lam * w if side == "margin holds" else lam * w - y * x
    np.testing.assert_allclose(slope, expected, atol=1e-8)


def test_d6_note_35():
    """b is the mean of y − ⟨w, x⟩ on the margin, not of y⟨w, x⟩."""
    X, y = separable()
    X += 3.0
    model = SVC(C=np.inf, kernel="linear", tol=1e-9).fit(X, y)
    w, on_margin = model.coef_[0], model.support_
    assert model.intercept_[0] == pytest.approx((y - X @ w)[on_margin].mean())
    assert model.intercept_[0] != pytest.approx((y * (X @ w))[on_margin].mean(), rel=0.1)


def test_d6_note_40():
    """C = 1/(2λn) minimises λ|w|² + the average hinge loss; C = 1/(2λ) does not."""
    X, y = overlapping()
    n, lam = len(y), 0.1

    def value(C):
        model = SVC(C=C, kernel="linear", tol=1e-8).fit(X, y)
        w = model.coef_[0]
        return lam * w @ w + hinge(y, X @ w + model.intercept_).mean()

    assert lambda_to_C(lam, n) == pytest.approx(1 / (2 * lam * n))
    best = value(1 / (2 * lam * n))
    assert best < value(1 / (2 * lam)) - 1e-3
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert best <= value(factor / (2 * lam * n)) + 1e-9


def test_d6_theorem_28():
    """The support vectors have y⟨w, x⟩ = 1; those of the negative class have ⟨w, x⟩ = −1, and w needs them."""
    X, y = separable()
    model = SVC(C=np.inf, kernel="linear", fit_intercept=False, tol=1e-9).fit(X, y)
    product = X @ model.coef_[0]
    np.testing.assert_allclose((y * product)[model.support_], 1.0, rtol=1e-6)
    assert (product[model.support_] < 0).any()
    # of the positive ones alone there are too few: w is not a multiple of the only one
    positive = X[model.support_][product[model.support_] > 0]
    left_over = np.linalg.lstsq(positive.T, model.coef_[0], rcond=None)[1]
    assert len(positive) == 1 and left_over[0] > 1e-3


def test_m5_soft_margin_with_kernels():
    """½|w|² + CΣξ is what SVC(C) minimises; |w|² + CΣξ is SVC(C/2)."""
    X, y = overlapping()
    C = 0.2

    def parts(C):
        model = SVC(C=C, kernel="linear", tol=1e-9).fit(X, y)
        w = model.coef_[0]
        return w @ w, hinge(y, X @ w + model.intercept_).sum()

    (norm, paid), (half_norm, half_paid) = parts(C), parts(C / 2)
    assert 0.5 * norm + C * paid < 0.5 * half_norm + C * half_paid
    assert norm + C * paid > half_norm + C * half_paid


def test_m5_sigmoid():
    """tanh(c₁⟨x, z⟩ + c₂) has negative eigenvalues: no certificate bounds the distance from the optimum."""
    X, y = overlapping()
    kernel = Sigmoid(gamma=1.0, coef0=-1.0)
    assert not kernel.positive_semidefinite
    assert check_mercer(kernel, X).smallest_eigenvalue < -1e-3
    certificate = certify(SVC(kernel=kernel).fit(X, y), X, y)
    assert not certificate.valid and certificate.reason == "the kernel is not positive semidefinite"


@pytest.mark.parametrize("lam", [1e-6, 1e-3, 1.0, 1e3])
def test_ssbd_exercise_15_3(lam):
    """The claim is false: for any λ > 0, ±s with labels ±1 and s² < 2λ have the hard w = 1/s, the soft w = s/(2λ)."""
    exercise = page("exercise_15_3")
    X, y = exercise["counterexample"](lam)
    s, hard, soft = X[0, 0], exercise["hard"](X, y), exercise["soft"](X, y, lam)
    assert hard.coef_[0, 0] == pytest.approx(1 / s)
    assert soft.coef_[0, 0] == pytest.approx(s / (2 * lam))
    assert soft.coef_[0, 0] < 0.6 * hard.coef_[0, 0]
    assert (kkt_report(soft, X, y).problems[0].state == "bound").all()


def test_ssbd_exercise_15_3_for_one_sample():
    """For a given sample there is a λ: the hard solution has α ≤ 1/(2λn) for all λ small enough."""
    exercise = page("exercise_15_3")
    X, y = separable()
    hard = exercise["hard"](X, y)
    soft = exercise["soft"](X, y, 0.5 * exercise["largest_lambda"](hard, len(y)))
    np.testing.assert_allclose(soft.coef_, hard.coef_, rtol=1e-6)


@pytest.mark.parametrize("v", ["a", "b", "ab", "aba"])
def test_ssbd_exercise_16_1(v):
    """e_v with b = −½ separates strings with and without v with the margin ½; for v = "a" no more is possible."""
    exercise = page("exercise_16_1")
    margin = exercise["largest_margin"](v)
    assert margin >= 0.5 - 1e-6
    if v in ("a", "b"):
        assert exercise["distance"](v, "") == 1.0
        assert margin == pytest.approx(0.5)


def test_ssbd_exercise_16_3():
    """With ψ(x) = 2x the least (16.8) predicts by ⟨w, ψ(x)⟩; ⟨w, x⟩ is half of it, and a worse fit of the targets."""
    X, y = overlapping()
    m, lam = len(y), 0.01
    model = KernelRidge(alpha=lambda_to_alpha(lam, m), kernel=4.0 * Linear()).fit(X, y)
    psi = 2 * X
    w = np.linalg.solve(psi.T @ psi / m + 2 * lam * np.eye(2), psi.T @ y / m)  # where the gradient of (16.8) is 0
    np.testing.assert_allclose(model.predict(X), psi @ w, atol=1e-10)
    assert ((psi @ w - y) ** 2).mean() < ((X @ w - y) ** 2).mean() - 0.01


def test_ssbd_exercise_16_6():
    """The closer mean is c₋ where ⟨w, ψ(x)⟩ + b is negative: a sign of −1, which is the label, not 0."""
    X, y = overlapping()
    f = page("exercise_16_6")["by_kernel_values"](Gaussian(1.0), X, y, X)
    assert set(np.sign(f)) == {-1.0, 1.0}
    np.testing.assert_array_equal(KernelCentroid(kernel=Gaussian(1.0)).fit(X, y).predict(X), np.sign(f))


def both_sequences(lam, yx, steps):
    """w⁽¹⁾, w⁽²⁾, … of the derivation and of the procedure, if all samples have the same yx."""
    derived, procedure = [np.zeros_like(yx)], []
    theta, other = np.zeros_like(yx), np.zeros_like(yx)
    for t in range(1, steps + 1):
        procedure.append(theta / (lam * t))
        theta = theta + yx * (procedure[-1] @ yx < 1)
        other = other + yx * (derived[-1] @ yx < 1)
        derived.append(other / (lam * t))
    return np.array(derived[:steps]), np.array(procedure)


def test_step_offset_of_ssbd_15_5():
    """PegasosClassifier is the procedure's mean of w⁽ᵗ⁾ = θ⁽ᵗ⁾/(λt); the derived w⁽ᵗ⁺¹⁾ = θ⁽ᵗ⁺¹⁾/(λt) is another."""
    X, y, lam, T = np.array([[0.3, 0.4], [-0.3, -0.4]]), np.array([1, -1]), 0.5, 4
    derived, procedure = both_sequences(lam, X[0], T)
    shares = (np.arange(1, T + 1) - 1) / np.arange(1, T + 1)
    np.testing.assert_allclose(procedure, shares[:, None] * derived)  # as long as every step is an update
    # steps of the size η: w − η(λw − yx), derived by η = 1/(λt), the procedure by η = 1/(λ(t + 1))
    for sequence, delay in ((derived, 0), (procedure, 1)):
        for t in range(1, T):
            eta = 1 / (lam * (t + delay))
            np.testing.assert_allclose(sequence[t], sequence[t - 1] - eta * (lam * sequence[t - 1] - X[0]))
    model = PegasosClassifier(lam, n_steps=T, fit_intercept=False, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.coef_[0], procedure.mean(axis=0))
    assert np.linalg.norm(model.coef_[0] - derived.mean(axis=0)) > 0.1


def test_step_offset_of_l8():
    """The same with kernels: α of Algorithm 1 is β before step t over λt, in (8) it is β after step t."""
    X, y, lam, T = np.array([[0.3, 0.4], [-0.3, -0.4]]), np.array([1, -1]), 0.5, 4
    derived, procedure = both_sequences(lam, X[0], T)
    model = PegasosClassifier(lam, kernel=1.0 * Linear(), n_steps=T, fit_intercept=False, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), X @ procedure.mean(axis=0))
    assert abs(model.decision_function(X)[0] - X[0] @ derived.mean(axis=0)) > 0.1


def test_m5_lagrangian():
    """L(w, b, ξ, α, μ) with −Σμξ is least at the optimum, for α and μ = C − α ≥ 0; with +Σμξ it has no minimum."""
    X, y = overlapping()
    C = 0.5
    model = SVC(C=C, kernel="linear", tol=1e-9).fit(X, y)
    (found,) = kkt_report(model, X, y).problems
    assert found.mu.min() >= 0 and found.mu.max() > 0

    def lagrangian(w, b, xi, sign):
        return 0.5 * w @ w + C * xi.sum() + found.alpha @ (1 - xi - y * (X @ w + b)) + sign * found.mu @ xi

    w, b = model.coef_[0], model.intercept_[0]
    least = lagrangian(w, b, found.xi, -1)
    assert least == pytest.approx(found.certificate.dual) == found.certificate.primal
    rng = np.random.default_rng(0)
    for _ in range(50):
        other = lagrangian(w + rng.normal(size=2), b + rng.normal(), found.xi + rng.normal(size=len(y)), -1)
        assert other >= least - 1e-6
    # ∂L/∂ξ = C − α + μ = 2μ, so that L falls without end along −μ
    assert lagrangian(w, b, found.xi - 1e3 * found.mu, 1) < least - 1e3


@pytest.mark.parametrize("choice", [max, min], ids=["arg max", "arg min"])
def test_m5_coordinate_ascent(choice):
    """The best αᵢ in [0, C] by turns reaches the maximum of the dual; arg min ends below F(0) = 0."""
    X, y = overlapping()
    C, signed = 0.5, y[:, None] * X
    Q = signed @ signed.T
    alpha = np.zeros(len(y))

    def F(alpha):
        return alpha.sum() - 0.5 * alpha @ Q @ alpha

    for step in range(60 * len(y)):
        i = step % len(y)
        free = np.clip(alpha[i] + (1 - Q[i] @ alpha) / Q[i, i], 0.0, C)
        tried = [np.concatenate([alpha[:i], [a], alpha[i + 1 :]]) for a in (0.0, C, free)]
        alpha = choice(tried, key=F)
    optimum = SVC(C=C, kernel="linear", fit_intercept=False, tol=1e-9).fit(X, y).certificate_.dual
    if choice is max:
        assert F(alpha) == pytest.approx(optimum, rel=1e-6)
    else:
        assert F(alpha) < 0 < optimum


def test_m5_smo():
    """y₁α₁ + y₂α₂ is minus the sum over all others, i ≥ 3; over i ≥ 1 it would be 0."""
    X, y = overlapping()
    (found,) = kkt_report(SVC(C=0.5, kernel="linear", tol=1e-9).fit(X, y), X, y).problems
    beta = y * found.alpha
    pairs = np.array([beta[i] + beta[j] for i in range(5) for j in range(i)])
    others = np.array([np.delete(beta, [i, j]).sum() for i in range(5) for j in range(i)])
    np.testing.assert_allclose(pairs, -others, atol=1e-12)
    assert beta.sum() == pytest.approx(0.0, abs=1e-12) and np.abs(pairs).max() > 0.1


def test_m5_diffusion_kernel():
    """exp(−βL) between the nodes of one graph is that of Kondor & Lafferty (2002), here on their complete graph."""
    n, beta = 5, 0.3
    K = GraphDiffusion(Graph([(i, j) for i in range(n) for j in range(i)]), beta)(list(range(n)))
    same, other = (1 + (n - 1) * np.exp(-n * beta)) / n, (1 - np.exp(-n * beta)) / n
    np.testing.assert_allclose(K, np.where(np.eye(n) > 0, same, other), atol=1e-12)
    assert "Kondor & Lafferty (2002)" in graph_diffusion.__doc__
