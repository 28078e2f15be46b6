"""Rows 7, 8, 13–19, 21, 31: descent, regression with kernels, perceptrons, class means, ramp loss, feature maps."""

import numpy as np
import pytest
from tests.notes.samples import hinge, overlapping, separable
from tests.reference import traces

from mercer import (
    SVC,
    Gaussian,
    GaussianProcessRegressor,
    KernelCentroid,
    KernelERM,
    KernelLMS,
    KernelLogisticRegression,
    KernelRidge,
    KernelRidgeCV,
    Min,
    PegasosClassifier,
    Perceptron,
    Polynomial,
    PowerSeries,
    RampSVC,
    alpha_to_lambda,
    lambda_to_alpha,
    lambda_to_C,
    separability,
)
from mercer.losses import ramp, zero_one


def curve(n=40, seed=0):
    """A noisy sine."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 6, size=(n, 1))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)


def gaussian(X, Z, gamma):
    return np.exp(-gamma * ((X[:, None] - Z) ** 2).sum(axis=2))


def test_07_pegasos():
    """[SSBD] 15.5: the mean of the iterates comes near the optimum of (λ/2)|w|² + mean hinge, which SVC finds."""
    X, y = overlapping()
    lam = 0.1
    model = PegasosClassifier(lam, n_steps=20_000, fit_intercept=False, random_state=0).fit(X, y)
    exact = SVC(C=lambda_to_C(lam, len(y), "15.12"), kernel="linear", fit_intercept=False, tol=1e-8).fit(X, y)

    def value(w):
        return 0.5 * lam * w @ w + hinge(y, X @ w).mean()

    best = value(exact.coef_[0])
    assert best <= value(model.coef_[0]) <= 1.01 * best


def test_07_one_step():
    """[SSBD] 15.5: w⁽¹⁾ = 0 violates every margin, so that w⁽²⁾ = yx/(2λ) after one step and w̄ = (0 + yx/(2λ))/2."""
    X, y = np.array([[3.0, 4.0], [-3.0, -4.0]]), np.array([1, -1])  # yx is the same for both
    model = PegasosClassifier(0.5, n_steps=2, fit_intercept=False, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.coef_[0], 0.5 * (0.0 + X[0] / (0.5 * 2)))


def test_07_free_steps_and_batches():
    """[D6] Note 26: any η_t and any size of batch; here all samples, so that nothing is random: gradient descent.

    With all samples in each step and η_t = 1/(λ(t + 1)), average="last" is w⁽ᵀ⁾ of that recursion, and comes near the
    optimum.
    """
    X, y = overlapping()
    lam, T, n = 0.1, 400, len(y)
    w = np.zeros(2)
    for t in range(1, T):
        w = w - 1 / (lam * (t + 1)) * (lam * w - ((y * (X @ w) < 1) * y) @ X / n)
    options = dict(n_steps=T, batch_size=n, sampling="shuffled", average="last", fit_intercept=False, random_state=0)
    free = PegasosClassifier(lam, step_size=lambda t: 1 / (lam * (t + 1)), **options).fit(X, y)
    np.testing.assert_allclose(free.coef_[0], w, rtol=1e-9)
    np.testing.assert_allclose(PegasosClassifier(lam, **options).fit(X, y).coef_[0], w, rtol=1e-9)
    exact = SVC(C=lambda_to_C(lam, n, "15.12"), kernel="linear", fit_intercept=False, tol=1e-8).fit(X, y)
    assert free.certificate_.primal <= 1.01 * exact.certificate_.primal
    constant = PegasosClassifier(lam, step_size=0.05, **options).fit(X, y)
    assert constant.certificate_.primal <= 1.01 * exact.certificate_.primal


def same_steps(steps, twin):
    """A trace has the columns of its twin, and the same numbers."""
    assert list(steps.columns) == list(twin[0])
    for name, found in steps.columns.items():
        np.testing.assert_allclose(found, [row[name] for row in twin], rtol=1e-9, atol=1e-9, err_msg=name)


def test_07_steps():
    """[SSBD] 15.5: trace=True keeps t, i, the margin before the step, whether it was below 1, η_t and the objective."""
    X, y = overlapping()
    steps = PegasosClassifier(0.1, n_steps=200, fit_intercept=False, random_state=0, trace=True).fit(X, y).steps_
    same_steps(steps, traces.pegasos(X, y, 0.1, [[i] for i in steps.i]))


def test_08_steps():
    """[L8] Algorithm 1: the same with kernels."""
    X, y = overlapping()
    options = dict(n_steps=200, fit_intercept=False, random_state=0, trace=True)
    steps = PegasosClassifier(0.1, kernel=Gaussian(0.5), **options).fit(X, y).steps_
    same_steps(steps, traces.pegasos_with_kernels(gaussian(X, X, 0.5), y, 0.1, [[i] for i in steps.i]))


def test_08_pegasos_with_kernels():
    """[SSBD] Lemma 16.3: with the kernel of ψ it takes the steps that the linear one takes on ψ(x)."""
    X, y = overlapping()
    kernel = Polynomial(2, 1.0, 1.0)
    phi = kernel.feature_map(X)(X)
    of_kernel = PegasosClassifier(0.1, kernel=kernel, n_steps=500, fit_intercept=False, random_state=3).fit(X, y)
    linear = PegasosClassifier(0.1, n_steps=500, fit_intercept=False, random_state=3).fit(phi, y)
    np.testing.assert_allclose(of_kernel.decision_function(X), linear.decision_function(phi), rtol=1e-6, atol=1e-8)


def test_13_kernel_ridge():
    """[M5]: β = (K + λI)⁻¹y minimises (λ/2)|f|² + ½Σ(y − f)²."""
    X, y = curve()
    model = KernelRidge(alpha=0.3, kernel=Gaussian(1.0)).fit(X, y)
    K = gaussian(X, X, 1.0)
    np.testing.assert_allclose(model.dual_coef_, np.linalg.solve(K + 0.3 * np.eye(len(y)), y), rtol=1e-8)
    new = np.linspace(0, 6, 7)[:, None]
    np.testing.assert_allclose(model.predict(new), gaussian(new, X, 1.0) @ model.dual_coef_, atol=1e-10)


def test_13_exercise_16_3():
    """(16.8), λ|w|² + (1/2m)Σ(y − f)², is the same with alpha = 2mλ: its gradient vanishes there."""
    X, y = curve()
    m, lam = len(y), 0.01
    assert lambda_to_alpha(lam, m) == pytest.approx(2 * m * lam)
    assert alpha_to_lambda(2 * m * lam, m) == pytest.approx(lam)
    w = KernelRidge(alpha=lambda_to_alpha(lam, m), kernel="linear").fit(X, y).coef_
    np.testing.assert_allclose(2 * lam * w + X.T @ (X @ w - y) / m, 0.0, atol=1e-10)


def test_14_gaussian_process():
    """[M5]: a Gaussian prior on h with noise of variance λ has the mean of kernel ridge, and a variance besides."""
    X, y = curve()
    new = np.array([[1.0], [3.0], [50.0]])
    process = GaussianProcessRegressor(Gaussian(1.0), alpha=0.3, optimizer=None).fit(X, y)
    mean, deviation = process.predict(new, return_std=True)
    np.testing.assert_allclose(mean, KernelRidge(alpha=0.3, kernel=Gaussian(1.0)).fit(X, y).predict(new), atol=1e-8)
    k = gaussian(new, X, 1.0)
    variance = 1.0 - np.einsum("ij,ji->i", k, np.linalg.solve(gaussian(X, X, 1.0) + 0.3 * np.eye(len(y)), k.T))
    np.testing.assert_allclose(deviation, np.sqrt(variance), rtol=1e-6)
    assert deviation[2] == pytest.approx(1.0)  # far from all samples the prior is left


def test_15_batch_gradient_descent():
    """[CS229] (5.11): β := β + α(y − Kβ), t times from 0."""
    X, y = curve()
    model = KernelLMS(kernel=Gaussian(1.0), learning_rate=0.02, max_iter=50, tol=0.0)
    with pytest.warns(UserWarning):  # 50 steps are not enough to converge
        model.fit(X, y)
    K, beta = gaussian(X, X, 1.0), np.zeros(len(y))
    for _ in range(50):
        beta += 0.02 * (y - K @ beta)
    found = np.zeros(len(y))
    found[model.support_] = model.dual_coef_[0]
    np.testing.assert_allclose(found, beta, rtol=1e-6, atol=1e-10)


def test_15_steps():
    """[CS229] (5.7) on explicit features: ½Σ(y − f)² before each step, and the length of the change of θ."""
    X, y = curve()
    kernel = Polynomial(2, 1.0, 1.0)
    model = KernelLMS(kernel=kernel, learning_rate=1e-5, max_iter=50, tol=0.0, trace=True)
    with pytest.warns(UserWarning):
        model.fit(X, y)
    same_steps(model.steps_, traces.kernel_lms(kernel.feature_map(X)(X), y, 1e-5, 50))


@pytest.mark.parametrize("gap", [0.05, 0.3, 1.0])
def test_16_perceptron(gap):
    """[SSBD] Remark 15.1, Ex. 15.2: at most (ρ/γ)² updates, with γ the largest margin through the origin."""
    X, y = separable(gap=gap)
    model = Perceptron(fit_intercept=False, tol=None).fit(X, y)
    found = separability(X, y).pairs[0].homogeneous
    assert model.separated_ and (y * (X @ model.coef_[0]) > 0).all()
    assert model.n_updates_[0] <= (found.rho / found.margin) ** 2
    assert model.update_bound(X, y)[0] == pytest.approx((found.rho / found.margin) ** 2, rel=1e-2)


def test_16_steps():
    """[SSBD] Remark 15.1: each visited sample with its margin and whether it was a mistake."""
    X, y = separable(gap=0.05)
    steps = Perceptron(fit_intercept=False, tol=None, trace=True).fit(X, y).steps_
    same_steps(steps, traces.perceptron(X, y, steps.i))


def test_17_steps():
    """[SSBD] Ex. 16.2: the same with kernels."""
    X, y = separable()
    y = np.where((X**2).sum(axis=1) > 1.5, 1, -1)
    steps = Perceptron(kernel=Polynomial(2, 1.0, 1.0), fit_intercept=False, tol=None, trace=True).fit(X, y).steps_
    same_steps(steps, traces.kernel_perceptron((1 + X @ X.T) ** 2, y, steps.i))


def test_17_kernel_perceptron():
    """[SSBD] Ex. 16.2: with the kernel of ψ it makes the updates that the linear one makes on ψ(x)."""
    X, y = separable()
    y = np.where((X**2).sum(axis=1) > 1.5, 1, -1)
    kernel = Polynomial(2, 1.0, 1.0)
    phi = kernel.feature_map(X)(X)
    of_kernel = Perceptron(kernel=kernel, fit_intercept=False, shuffle=False, tol=None).fit(X, y)
    linear = Perceptron(fit_intercept=False, shuffle=False, tol=None).fit(phi, y)
    assert of_kernel.separated_ and of_kernel.n_updates_[0] == linear.n_updates_[0]
    np.testing.assert_allclose(of_kernel.decision_function(X), linear.decision_function(phi), rtol=1e-8, atol=1e-8)


def test_18_closest_class_mean():
    """[SSBD] Ex. 16.6: sign(⟨w, ψ(x)⟩ + b) with w = c₊ − c₋, b = ½(|c₋|² − |c₊|²) is the closer mean."""
    X, y = overlapping()
    kernel = Polynomial(2, 1.0, 1.0)
    psi = kernel.feature_map(X)
    phi, new = psi(X), np.random.default_rng(1).normal(size=(30, 2))
    plus, minus = phi[y > 0].mean(axis=0), phi[y < 0].mean(axis=0)
    model = KernelCentroid(kernel=kernel).fit(X, y)
    closer = ((psi(new) - plus) ** 2).sum(axis=1) <= ((psi(new) - minus) ** 2).sum(axis=1)
    np.testing.assert_array_equal(model.predict(new), np.where(closer, 1, -1))
    expected = psi(new) @ (plus - minus) + 0.5 * (minus @ minus - plus @ plus)
    np.testing.assert_allclose(model.decision_function(new), expected, rtol=1e-8, atol=1e-8)


def test_19_ramp_loss():
    """[SSBD] 15.2.3: min(1, hinge) lies between the 0–1 loss and the hinge loss; RampSVC descends on it."""
    f = np.linspace(-3, 3, 61)
    for label in (1, -1):
        y = np.full(61, label)
        np.testing.assert_allclose(ramp(y, f), np.minimum(1.0, hinge(y, f)))
        assert (zero_one(y, f) <= ramp(y, f)).all() and (ramp(y, f) <= hinge(y, f)).all()
    X = np.append(np.repeat([-2.0, -1.0, 1.0, 2.0], 5), 20.0)[:, None]
    y = np.append(np.repeat([-1, -1, 1, 1], 5), -1)  # the last is mislabelled
    model = RampSVC(kernel="linear").fit(X, y)
    (objectives,) = model.objective_traces_
    assert (np.diff(objectives) <= 1e-6 * objectives[0]).all()
    start = SVC(kernel="linear").fit(X, y)
    assert model.objective_ < 0.5 * start.rkhs_norm_[0] ** 2 + ramp(y, start.decision_function(X)).sum()
    # without it: w = 1, and the loss of 1 that it pays itself
    assert model.given_up_.tolist() == [20]
    assert model.coef_[0, 0] == pytest.approx(1.0, rel=1e-3) and model.objective_ == pytest.approx(1.5, rel=1e-3)


@pytest.mark.parametrize(
    "kernel,dimension",
    [
        (Polynomial(2, 1.0, 0.0), 3),
        (Polynomial(3, 1.0, 1.0), 10),
        (PowerSeries((1.0, 1.0, 1.0, 1.0)), 10),
        (Min(), None),
    ],
    ids=["(x·z)²", "(1+x·z)³", "1+t+t²+t³", "min"],
)
def test_21_feature_maps(kernel, dimension):
    """[SSBD] 16.1–16.2, Ex. 16.4, [CS229] 5.4: ⟨ψ(x), ψ(z)⟩ = k(x, z); up to degree k there are (d+k choose k)."""
    X = np.random.default_rng(0).integers(1, 6, size=(12, 2)).astype(float)
    psi = kernel.feature_map(X)
    a = kernel.prepare(X)
    phi = psi(X)
    phi = phi.toarray() if hasattr(phi, "toarray") else phi
    np.testing.assert_allclose(phi @ phi.T, kernel.block(a, a), rtol=1e-10)
    assert dimension is None or psi.dimension == dimension


def test_21_taylor_features_of_the_gaussian():
    """[SSBD] Example 16.2: exp(−x²/2) xⁿ/√n!, cut off at degree n, is wrong by no more than it says."""
    X = np.linspace(-1, 1, 9)[:, None]
    K = gaussian(X, X, 0.5)
    for degree in (2, 5, 12):
        psi = Gaussian(0.5).feature_map(X, degree=degree)
        phi = psi(X)
        assert psi.dimension == degree + 1
        assert np.abs(phi @ phi.T - K).max() <= psi.error * (1 + 1e-9) + 1e-15
    assert psi.error < 1e-9


def test_31_model_selection():
    """[M5]: leave-one-out in closed form is what fitting without each sample gives, and chooses λ by it."""
    X, y = curve(25)
    alphas = [1e-3, 0.1, 10.0]
    model = KernelRidgeCV(alphas, kernel=Gaussian(1.0), fit_intercept=False).fit(X, y)
    errors = []
    for alpha in alphas:
        left_out = [
            y[i] - KernelRidge(alpha, kernel=Gaussian(1.0)).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[[i]])[0]
            for i in range(len(y))
        ]
        errors.append(np.mean(np.square(left_out)))
    np.testing.assert_allclose(-np.ravel(model.scores_), errors, rtol=1e-6)
    assert model.alpha_ == alphas[int(np.argmin(errors))]


def test_27_learning_a_kernel():
    """[M5]: a kernel's parameters can be learnt: the marginal likelihood of the targets grows, to where it is flat."""
    X, y = curve()
    fixed = GaussianProcessRegressor(Gaussian(50.0), alpha=0.01, optimizer=None).fit(X, y)
    learnt = GaussianProcessRegressor(Gaussian(50.0), alpha=0.01).fit(X, y)
    assert learnt.log_marginal_likelihood_value_ > fixed.log_marginal_likelihood_value_ + 10
    assert np.abs(learnt.gradient_).max() < 1e-2 * abs(learnt.log_marginal_likelihood_value_)
    assert learnt.kernel_.gamma < 5.0


def test_36_regularised_loss_minimisation():
    """[SSBD] (16.2), [M5] Theorem 1: for any loss and non-decreasing R, no function beats f = Σ βᵢ k(xᵢ, ·)."""
    X, y = overlapping(30)
    kernel = Polynomial(2, 1.0, 1.0)
    phi = kernel.feature_map(X)(X)
    for loss, value in (("logistic", lambda f: np.logaddexp(0.0, -y * f)), ("hinge", lambda f: hinge(y, f))):
        for penalty, R in (("squared", lambda t: 0.5 * t**2), ("norm", lambda t: t), (3, lambda t: t**3 / 3)):
            model = KernelERM(loss, penalty, C=0.2, kernel=kernel, tol=1e-8).fit(X, y)
            best = model.certificate_
            w = np.zeros(len(X))
            w[model.support_] = model.dual_coef_[0]
            w = phi.T @ w

            def objective(w, b, R=R, value=value):
                return R(np.linalg.norm(w)) + 0.2 * value(phi @ w + b).sum()

            assert best.valid and best.relative_gap <= 1e-8
            np.testing.assert_allclose(objective(w, model.intercept_[0]), best.primal, rtol=1e-9)
            rng = np.random.default_rng(0)
            for size in (1e-3, 0.1, 1.0):  # any other function, also outside the span of the samples
                other = objective(w + size * rng.normal(size=len(w)), model.intercept_[0] + size * rng.normal())
                assert other >= best.dual


def test_36_logistic_confidence():
    """[CS229] 6.1: P(y = 1 | x) = 1/(1 + exp(−θ'x)) is at least ½ where θ'x ≥ 0, and near 1 where θ'x is large."""
    X, y = overlapping()
    model = KernelLogisticRegression(kernel="linear").fit(X, y)
    theta_x = X @ model.coef_[0] + model.intercept_[0]
    P = model.predict_proba(X)[:, 1]
    np.testing.assert_allclose(P, 1.0 / (1.0 + np.exp(-theta_x)), rtol=1e-9)
    np.testing.assert_array_equal(model.predict(X) == 1, theta_x > 0)
    assert np.all(np.diff(P[np.argsort(theta_x)]) >= 0)
