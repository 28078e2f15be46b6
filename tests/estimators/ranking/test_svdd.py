"""SVDD: the smallest ball, compared with clarabel, with OneClassSVM and with geometry."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator
from tests.reference.ordering import solve_primal

from mercer import SVDD, InvalidInputError, OneClassSVM, certify
from mercer.kernels import CallableKernel, Gaussian, Polynomial

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
LABELS = np.where(np.abs(X[:, 0]) > 1.2, -1, 1)


def kernel_matrix(kernel, X, Z=None):
    bound = kernel.bind(X)
    Z = X if Z is None else Z
    return bound.block(bound.prepare(X, np.float64), bound.prepare(Z, np.float64))


def optimum(K, labels, C):
    """Half of R² + Σ C ξ, the centre's values and t, from the primal problem."""
    s = labels.astype(float)
    return solve_primal(K, s[:, None] * np.eye(len(K)), s[:, None], s * 0.5 * np.diag(K), C, cost=np.ones(1))


@pytest.mark.parametrize("negatives", [False, True])
@pytest.mark.parametrize("kernel", [Gaussian(0.4), Polynomial(2, 0.5, 1.0)], ids=["gaussian", "polynomial"])
def test_is_the_optimum(kernel, negatives):
    """The certificate brackets the optimum that clarabel finds, and the ball is that of clarabel."""
    labels = LABELS if negatives else np.ones(len(X))
    model = SVDD(C=0.1, kernel=kernel, tol=1e-9).fit(X, labels)
    K = kernel_matrix(kernel, X)
    best = optimum(K, labels, np.full(len(X), 0.1))
    proof = model.certificate_
    assert proof.valid and proof.relative_gap < 1e-8
    assert proof.dual - 1e-8 <= best.value <= proof.primal + 1e-8
    np.testing.assert_allclose(model.decision_function(X), 2 * (best.F + best.thresholds[0]) - np.diag(K), atol=1e-5)
    assert model.n_negative_ == np.sum(labels < 0)


def test_is_a_one_class_machine_for_a_constant_diagonal():
    """With k(x, x) = 1 the decision values are a positive multiple of OneClassSVM's for the same nu."""
    ball = SVDD(nu=0.3, tol=1e-10).fit(X)
    plane = OneClassSVM(nu=0.3, tol=1e-10).fit(X)
    ratio = ball.decision_function(X).std() / plane.decision_function(X).std()
    np.testing.assert_allclose(ball.decision_function(X), ratio * plane.decision_function(X), atol=1e-8)


def test_distances_are_those_of_the_centre():
    """score_samples is −|φ(x) − a|², the ball's radius is the distance of free support vectors, R² = −offset_."""
    model = SVDD(nu=0.2, kernel="poly", coef0=1.0, tol=1e-10).fit(X)
    a = model.center_
    K = kernel_matrix(model._kernel, X)
    distances = np.diag(K) - 2 * a(X) + a.norm() ** 2
    np.testing.assert_allclose(model.score_samples(X), -distances, rtol=1e-10)
    coef = model.dual_coef_[0]
    assert coef.sum() == pytest.approx(1.0)
    free = model.support_[(coef > 0) & (coef < 1 / (0.2 * len(X)) * (1 - 1e-9))]
    np.testing.assert_allclose(distances[free], model.radius_**2, rtol=1e-7)
    assert model.offset_ == pytest.approx(-(model.radius_**2))
    np.testing.assert_allclose(model.decision_function(X), model.score_samples(X) - model.offset_)
    assert np.mean(model.decision_function(X) < -1e-8) <= 0.2 <= len(model.support_) / len(X)


def test_a_translation_moves_the_ball_only():
    """With the linear kernel the ball moves with the samples; two points have their midpoint as centre."""
    far = np.array([3.0, -2.0, 1.0])
    here, there = (SVDD(nu=0.1, kernel="linear", tol=1e-10).fit(Z) for Z in (X, X + far))
    assert there.radius_ == pytest.approx(here.radius_)
    np.testing.assert_allclose(there.coef_, here.coef_ + far, atol=1e-7)
    two = SVDD(C=1.0, kernel="linear").fit([[0.0], [4.0]])
    assert (two.radius_, two.coef_[0, 0]) == (pytest.approx(2.0), pytest.approx(2.0))


@pytest.mark.parametrize("y", [None, LABELS])
def test_certify(y):
    """certify recomputes the certificate from the published centre, with weights."""
    weight = np.linspace(0.0, 2.0, len(X))
    model = SVDD(nu=0.3, kernel="linear").fit(X, y, weight)
    again = certify(model, X, y, weight)
    assert again.valid
    assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert again.dual == pytest.approx(model.certificate_.dual, rel=1e-9)


def test_kernel_functions_and_matrices():
    """A kernel function gives the ball of the kernel; a matrix predicts if its diagonal is constant, else says why."""

    def square(A, B):
        return (np.asarray(A) @ np.asarray(B).T + 1.0) ** 2

    asked = SVDD(nu=0.3, kernel=Polynomial(2, 1.0, 1.0), tol=1e-9).fit(X).decision_function(X[:9])
    for kernel in (square, CallableKernel(square)):
        np.testing.assert_allclose(SVDD(nu=0.3, kernel=kernel, tol=1e-9).fit(X).decision_function(X[:9]), asked)
    K = kernel_matrix(Gaussian(0.4), X)
    given = SVDD(nu=0.3, kernel="precomputed", tol=1e-9).fit(K)
    np.testing.assert_allclose(
        given.decision_function(K), SVDD(nu=0.3, kernel=Gaussian(0.4), tol=1e-9).fit(X).decision_function(X), atol=1e-8
    )
    with pytest.raises(InvalidInputError, match=r"^The distance from the centre needs k\(x, x\) of new samples"):
        SVDD(kernel="precomputed").fit(square(X, X)).predict(square(X, X))


def test_other_labels_are_ignored():
    """A y that is not made of ±1 changes nothing."""
    plain = SVDD().fit(X).decision_function(X)
    for y in (np.arange(len(X)), ["a"] * len(X), LABELS * 2.0):
        np.testing.assert_array_equal(SVDD().fit(X, y).decision_function(X), plain)


@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        ({"C": 0.001}, None, "sum to 0.06, so that a ball of radius 0 costs least.*multiply C by 16.67 or more"),
        ({}, -np.ones(60), "All 60 weighted samples have the label -1"),
        ({}, np.ones(59), "y has 59 labels, but X has 60 samples"),
        ({"nu": 0.0}, None, "The 'nu' parameter of SVDD"),
        ({"C": -1.0}, None, "The 'C' parameter of SVDD"),
    ],
)
def test_bad_input(parameters, y, message):
    """Infeasible prices, missing samples inside and wrong lengths are named."""
    with pytest.raises(ValueError, match=message):
        SVDD(**parameters).fit(X, y)


def test_limits():
    """A run that max_iter or the clock ends is a ball with a valid certificate and a warning."""
    for limit in ({"max_iter": 3}, {"time_limit": 0.0}):
        with pytest.warns(ConvergenceWarning, match="terminated early"):
            model = SVDD(**limit).fit(X)
        assert model.certificate_.valid and model.certificate_.gap > 0


@pytest.mark.filterwarnings("ignore")
def test_conformance():
    """Every check of scikit-learn passes, except those of weights, where two fits stop at tol."""
    reason = "both fits stop at tol, but at different points"
    expected = {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}
    results = check_estimator(SVDD(), expected_failed_checks=expected, on_fail=None, on_skip=None)
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}


@pytest.mark.parametrize("C", [1.0, 1e9])
def test_a_hard_ball_encloses_all_samples(C):
    """From C = 1 on no sample may be outside; the radius is that of clarabel's optimum, and the gap stays small."""
    model = SVDD(C=C, kernel="linear").fit(X)
    best = optimum(X @ X.T, np.ones(len(X)), np.ones(len(X)))
    assert model.certificate_.valid and model.certificate_.relative_gap < 1e-3
    assert model.radius_**2 == pytest.approx(2 * best.value, rel=1e-4)
    assert model.decision_function(X).min() >= -1e-4


def test_equal_samples():
    """A ball of radius 0 is solved: its values are rounding."""
    for model in (SVDD().fit(np.ones((40, 3))), SVDD(nu=0.1, kernel="linear").fit(np.full((40, 3), 0.1))):
        assert model.certificate_.relative_gap <= 1e-6 and "not solved" not in str(model.certificate_)
        assert model.radius_ < 1e-6
