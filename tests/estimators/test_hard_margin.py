"""C=inf: the separator of largest margin, certified, or a proof that there is none."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.reference.qp import objective, solve_qp

from mercer import SVC, SVR, certify
from mercer.exceptions import InvalidInputError, NotSeparableError
from mercer.losses import HardMargin


def gaussian(X, gamma):
    return np.exp(-gamma * ((X[:, None, :] - X) ** 2).sum(axis=2))


def separable(n=60, d=3, gap=0.2, seed=0):
    """Two classes on either side of a plane, ``gap`` away from it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] > 0, 1, -1)
    X[:, 0] += gap * y
    return X, y


def assert_proof(error, K, y, scale=1.0):
    """The error's weights are convex on each class, and combine to one point."""
    weights = error.common_point_weights
    assert weights.shape == (len(y),)
    for label in np.unique(y):
        inside = weights[y == label]
        assert (inside >= 0).all() or (inside <= 0).all()
        assert abs(inside.sum()) == pytest.approx(1.0, abs=1e-12)
    assert weights.sum() == pytest.approx(0.0, abs=1e-12)
    assert np.sqrt(max(0.0, weights @ K @ weights)) <= 1e-6 * scale
    assert error.distance <= 1e-6 * scale


class TestSeparable:
    def test_two_points(self):
        """Of two points the margin is half their distance, and the separator the plane between them."""
        model = SVC(C=np.inf, kernel="linear").fit([[0.0, 0.0], [2.0, 0.0]], [0, 1])
        np.testing.assert_allclose(model.margin_, 1.0)
        np.testing.assert_allclose(model.coef_, [[1.0, 0.0]])
        np.testing.assert_allclose(model.intercept_, -1.0)
        assert model.certificate_.gap == 0.0

    @pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
    @pytest.mark.parametrize("intercept", [True, False])
    def test_the_margin_is_the_largest(self, intercept, scale):
        """margin_ is that of the QP; every sample is at least that far away, the support vectors exactly."""
        X, y = separable()
        X = X * scale
        model = SVC(C=np.inf, kernel="linear", fit_intercept=intercept, tol=1e-9).fit(X, y)
        K = X @ X.T
        qp = HardMargin().box_qp(y.astype(float), np.ones(len(y)), intercept)
        optimum = -objective(K, qp, solve_qp(K, qp))
        np.testing.assert_allclose(model.margin_, 1.0 / np.sqrt(2.0 * optimum), rtol=1e-7)
        distance = y * model.decision_function(X) / np.linalg.norm(model.coef_)
        assert distance.min() >= model.margin_ * (1 - 1e-7)
        np.testing.assert_allclose(distance[model.support_], model.margin_[0], rtol=1e-7)
        assert model.certificate_.valid and model.certificate_.relative_gap <= 1e-7
        assert model.score(X, y) == 1.0

    def test_gaussian_kernel(self):
        """In a feature space, too."""
        X, y = separable(gap=0.0)
        y[::7] *= -1
        model = SVC(C=np.inf, gamma=5.0, tol=1e-9).fit(X, y)
        K = gaussian(X, 5.0)
        qp = HardMargin().box_qp(y.astype(float), np.ones(len(y)), True)
        optimum = -objective(K, qp, solve_qp(K, qp))
        np.testing.assert_allclose(model.certificate_.dual, optimum, rtol=1e-8)
        assert model.score(X, y) == 1.0

    def test_the_limit_of_large_C(self):
        """A C beyond the largest coefficient gives the same model."""
        X, y = separable()
        hard = SVC(C=np.inf, kernel="linear", tol=1e-9).fit(X, y)
        soft = SVC(C=10 * np.abs(hard.dual_coef_).max(), kernel="linear", tol=1e-9).fit(X, y)
        np.testing.assert_allclose(hard.decision_function(X), soft.decision_function(X), atol=1e-6)

    def test_the_loss_and_weights_make_no_difference(self):
        """Nobody pays: neither what a violation costs nor how much a sample weighs matters, unless it is 0."""
        X, y = separable()
        weight = np.random.default_rng(1).uniform(0.1, 5.0, len(y))
        model = SVC(C=np.inf, kernel="linear").fit(X, y)
        other = SVC(C=np.inf, kernel="linear", loss="squared_hinge", class_weight={1: 9.0}).fit(X, y, weight)
        np.testing.assert_array_equal(model.decision_function(X), other.decision_function(X))
        weight[model.support_] = 0.0
        assert SVC(C=np.inf, kernel="linear").fit(X, y, weight).margin_ > model.margin_

    def test_several_classes(self):
        """Each pair of classes has its own margin."""
        rng = np.random.default_rng(0)
        centres = np.array([[0, 0], [5, 0], [0, 9]])
        y = np.repeat([0, 1, 2], 20)
        X = centres[y] + rng.uniform(-1, 1, size=(60, 2))
        model = SVC(C=np.inf, kernel="linear").fit(X, y)
        assert model.margin_.shape == (3,)
        assert model.score(X, y) == 1.0
        # the gap between the classes' squares is 3, 7 and, on the diagonal, larger than 7
        assert (model.margin_ >= 0.999 * np.array([1.5, 3.5, 3.5])).all()


class TestNotSeparable:
    def test_exclusive_or(self):
        """The four corners of a square: the diagonals cross in its centre, which the message says in full."""
        X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
        with pytest.raises(NotSeparableError) as found:
            SVC(C=np.inf, kernel="linear").fit(X, [0, 0, 1, 1])
        error = found.value
        assert_proof(error, X @ X.T, np.array([0, 0, 1, 1]))
        np.testing.assert_allclose(np.abs(error.common_point_weights), 0.5)
        assert str(error) == (
            "The two classes are not separable with this kernel: 4 of the 4 samples combine to a common point of both "
            f"convex hulls (to within {error.distance:.1e}; see common_point_weights). Use a finite C, or a richer "
            "kernel."
        )
        np.testing.assert_array_equal(
            pickle.loads(pickle.dumps(error)).common_point_weights, error.common_point_weights
        )

    @pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
    @pytest.mark.parametrize("n", [20, 200, 1000])
    def test_overlap(self, n, scale):
        """Classes that overlap have a common point."""
        rng = np.random.default_rng(n)
        X = rng.normal(size=(n, 2)) * scale
        y = (X[:, 0] + scale * rng.normal(size=n) > 0).astype(int)
        with pytest.raises(NotSeparableError) as found:
            SVC(C=np.inf, kernel="linear").fit(X, y)
        assert_proof(found.value, X @ X.T, y, scale)

    @pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
    def test_one_point_with_two_labels(self, kernel):
        """Equal samples with different labels are their own common point, whatever the kernel."""
        X = np.array([[1.0, 2.0], [5.0, 1.0], [1.0, 2.0], [3.0, 3.0]])
        y = np.array([0, 0, 1, 1])
        with pytest.raises(NotSeparableError) as found:
            SVC(C=np.inf, kernel=kernel).fit(X, y)
        K = np.array([[1.0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]])
        assert_proof(found.value, K, y)
        np.testing.assert_allclose(np.abs(found.value.common_point_weights), [1, 0, 1, 0], atol=1e-6)

    def test_in_one_pair_of_classes(self):
        """The proof names samples of the pair that overlaps, by their numbers in the training set."""
        X = np.array([[0.0], [10.0], [1.0], [11.0], [0.5], [20.0]])
        y = np.array([0, 1, 0, 1, 1, 2])
        with pytest.raises(NotSeparableError) as found:
            SVC(C=np.inf, kernel="linear").fit(X, y)
        weights = found.value.common_point_weights
        assert weights[5] == 0.0
        assert abs(weights @ X[:, 0]) < 1e-6
        np.testing.assert_allclose([weights[y == 0].sum(), weights[y == 1].sum()], [1.0, -1.0])

    def test_through_the_origin(self):
        """Without an intercept two points on one side of the origin cannot be told apart."""
        X = np.array([[1.0], [2.0]])
        with pytest.raises(NotSeparableError) as found:
            SVC(C=np.inf, kernel="linear", fit_intercept=False).fit(X, [0, 1])
        error = found.value
        assert abs(error.common_point_weights @ X[:, 0]) < 1e-6
        assert np.abs(error.common_point_weights).sum() == pytest.approx(2.0)
        assert np.sign(error.common_point_weights).tolist() in ([1.0, -1.0], [-1.0, 1.0])
        assert str(error) == (
            "The two classes are not separable through the origin with this kernel: 2 of the 2 samples, with one "
            f"class negated, combine to the origin (to within {error.distance:.1e}; see common_point_weights). Use "
            "fit_intercept=True, a finite C, or a richer kernel."
        )


class TestHardTube:
    def test_all_samples_are_in_the_tube(self):
        """SVR(C=inf) is the flattest function within epsilon of every sample."""
        X = np.linspace(0, 6, 40)[:, None]
        y = np.sin(X[:, 0])
        model = SVR(C=np.inf, epsilon=0.1, gamma=1.0, tol=1e-9).fit(X, y)
        assert np.abs(model.predict(X) - y).max() <= 0.1 + 1e-8
        soft = SVR(C=100 * np.abs(model.dual_coef_).max(), epsilon=0.1, gamma=1.0, tol=1e-9).fit(X, y)
        np.testing.assert_allclose(model.predict(X), soft.predict(X), atol=1e-6)

    @pytest.mark.parametrize("kernel", ["rbf", "linear"])
    def test_certificate_of_a_hard_tube(self, kernel):
        """A model misses the tube by up to tol, and is certified for a tube that is wider by as much."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 2))
        y = X[:, 0] - 0.5 * X[:, 1] + 0.05 * rng.uniform(-1, 1, 60)
        model = SVR(C=np.inf, epsilon=0.1, kernel=kernel).fit(X, y)
        proof, excess = model.certificate_, float(np.abs(y - model.predict(X)).max()) - 0.1
        assert 0 < excess < model.tol and proof.valid and proof.relative_gap < 1e-2
        assert proof.note == f"for a tube that is {excess:.1e} wider" and proof.note in str(proof)
        wider = SVR(C=np.inf, epsilon=0.1 + excess, kernel=kernel, tol=1e-9).fit(X, y).certificate_
        assert proof.dual <= wider.primal * (1 + 1e-9) and wider.dual <= proof.primal * (1 + 1e-9)
        assert certify(model, X, y).gap == pytest.approx(proof.gap, rel=1e-6)

    def test_far_from_a_hard_tube(self):
        """A model that leaves the tube by far has no certificate: 0 would be the optimum for a tube wide enough."""
        X = np.linspace(0, 6, 40)[:, None]
        with pytest.warns(ConvergenceWarning, match="at an unknown distance from the optimum"):
            model = SVR(C=np.inf, max_iter=1).fit(X, np.sin(X[:, 0]))
        assert model.certificate_.primal == np.inf and model.certificate_.note == ""

    def test_the_loss_makes_no_difference(self):
        """Nobody leaves the tube, so that it does not matter what that would cost."""
        X = np.linspace(0, 6, 40)[:, None]
        models = [
            SVR(C=np.inf, loss=loss).fit(X, np.sin(X[:, 0]))
            for loss in ("epsilon_insensitive", "squared_epsilon_insensitive")
        ]
        np.testing.assert_array_equal(models[0].predict(X), models[1].predict(X))

    def test_a_weight_of_0_is_no_sample(self):
        """An outlier without weight is left out."""
        X = np.linspace(0, 6, 40)[:, None]
        y = X[:, 0].copy()
        y[7] = 100.0
        model = SVR(C=np.inf, kernel="linear", tol=1e-9).fit(X, y, sample_weight=np.arange(40) != 7)
        assert 7 not in model.support_
        assert np.abs(model.predict(X) - X[:, 0]).max() <= 0.1 + 1e-8

    def test_no_function_fits(self):
        """Equal samples with targets that are too far apart: no function has both in its tube."""
        with pytest.raises(InvalidInputError) as found:
            SVR(C=np.inf).fit([[0.0], [0.0], [1.0]], [0.0, 5.0, 1.0])
        assert str(found.value) == (
            "No function of this kernel keeps all samples within the tube, which C=inf asks for: the dual grows "
            "without limit. Use a finite C, a larger epsilon or a richer kernel."
        )


@pytest.mark.parametrize("C", [1.0, 200.0])
def test_a_squared_loss_has_a_solution_where_its_ridge_is_lost_in_rounding(C):
    """Equal samples of both classes and kernel values of 1e15: an honest warning, not the error of a hard margin."""
    rng = np.random.default_rng(1)
    X, y = np.round(rng.normal(size=(60, 1)) * 100), rng.choice([-1, 1], 60)
    machine = SVC(kernel="poly", degree=3, coef0=1.0, gamma=1.0, C=C, loss="squared_hinge")
    with pytest.warns(ConvergenceWarning):
        machine.fit(X, y)
    assert np.isfinite(machine.certificate_.primal) and machine.certificate_.gap >= 0
