"""Where the notes have a slip, the corrected statement holds, and the printed one does not."""

import numpy as np
import pytest
from tests.notes.samples import hinge, overlapping, separable

from mercer import SVC, Sigmoid, certify, check_mercer, kkt_report, lambda_to_C


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
    s = np.sqrt(lam)
    X, y = np.array([[s], [-s]]), [1, -1]
    hard = SVC(C=np.inf, kernel="linear", fit_intercept=False).fit(X, y)
    soft = SVC(C=lambda_to_C(lam, 2), kernel="linear", fit_intercept=False, tol=1e-9).fit(X, y)
    assert hard.coef_[0, 0] == pytest.approx(1 / s)
    assert soft.coef_[0, 0] == pytest.approx(s / (2 * lam))
    assert soft.coef_[0, 0] < 0.6 * hard.coef_[0, 0]
    assert (kkt_report(soft, X, y).problems[0].state == "bound").all()


def test_ssbd_exercise_15_3_for_one_sample():
    """For a given sample there is a λ: the hard solution has α ≤ 1/(2λn) for all λ small enough."""
    X, y = separable()
    hard = SVC(C=np.inf, kernel="linear", fit_intercept=False, tol=1e-9).fit(X, y)
    lam = 0.5 / (2 * len(y) * np.abs(hard.dual_coef_).max())
    soft = SVC(C=lambda_to_C(lam, len(y)), kernel="linear", fit_intercept=False, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(soft.coef_, hard.coef_, rtol=1e-6)
