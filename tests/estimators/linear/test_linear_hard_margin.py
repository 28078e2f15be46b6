"""LinearSVC(C=inf): the separator of largest margin, certified, or a proof that there is none."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.estimators.test_hard_margin import assert_proof, separable
from tests.reference.linear import solve

from mercer import SVC, LinearSVC, LinearSVR
from mercer.exceptions import InvalidInputError, NotSeparableError

FREE = {"C": np.inf, "penalize_intercept": False, "tol": 1e-8}


class TestSeparable:
    def test_two_points(self):
        """The plane between two points; the margin is half their distance."""
        model = LinearSVC(**FREE).fit([[0.0, 0.0], [2.0, 0.0]], [0, 1])
        np.testing.assert_allclose(model.margin_, 1.0, rtol=1e-7)
        np.testing.assert_allclose(model.coef_, [[1.0, 0.0]], atol=1e-7)
        np.testing.assert_allclose(model.intercept_, -1.0, rtol=1e-7)

    @pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
    @pytest.mark.parametrize("intercept", [True, False])
    @pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
    def test_same_as_the_kernel_machine(self, intercept, scale, store):
        """The margin is that of SVC(kernel="linear", C=inf), and every sample is at least that far away."""
        X, y = separable()
        X = X * scale
        model = LinearSVC(**FREE, fit_intercept=intercept).fit(store(X), y)
        kernel = SVC(C=np.inf, kernel="linear", fit_intercept=intercept, tol=1e-9).fit(X, y)
        np.testing.assert_allclose(model.margin_, kernel.margin_, rtol=1e-7)
        distance = y * model.decision_function(store(X)) / np.linalg.norm(model.coef_)
        assert distance.min() >= model.margin_ * (1 - 1e-7)
        assert model.certificate_.valid and model.certificate_.relative_gap <= 1e-8

    @pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
    @pytest.mark.parametrize("n", [60, 3000])
    def test_other_penalties(self, penalty, n):
        """The smallest |w|₁, or mixture, among all separators."""
        X, y = separable(n, 5)
        model = LinearSVC(penalty, l1_ratio=0.4, **FREE).fit(X, y)
        l1 = 1.0 if penalty == "l1" else 0.4
        best = solve(X, y.astype(float), np.full(n, np.inf), "hard", l1=l1, l2=1.0 - l1, free=True)
        np.testing.assert_allclose(model.certificate_.primal, best.bound, rtol=1e-6)
        assert (y * model.decision_function(X)).min() >= 1 - 1e-6

    def test_a_penalised_intercept(self):
        """The homogeneous separator in one dimension more."""
        X, y = separable()
        model = LinearSVC(C=np.inf, tol=1e-8, intercept_scaling=2.0).fit(X, y)
        wide = np.column_stack([X, np.full(len(X), 2.0)])
        through = LinearSVC(C=np.inf, tol=1e-8, fit_intercept=False).fit(wide, y)
        np.testing.assert_allclose(model.decision_function(X), through.decision_function(wide), atol=1e-6)

    def test_more_columns_than_rows(self):
        """There is always a separator then; loss and weights make no difference, unless a weight is 0."""
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(20, 50)), np.repeat([0, 1], 10)
        model = LinearSVC(**FREE).fit(X, y)
        assert model.score(X, y) == 1.0 and model.certificate_.relative_gap <= 1e-8
        other = LinearSVC(**FREE, loss="hinge", class_weight={1: 9.0}).fit(X, y, sample_weight=np.arange(1, 21))
        np.testing.assert_allclose(model.coef_, other.coef_)
        weight = (np.arange(20) != 3).astype(float)
        assert LinearSVC(**FREE).fit(X, y, sample_weight=weight).margin_ >= model.margin_

    def test_several_classes(self):
        """Each class against the rest, where each can be separated from the rest."""
        rng = np.random.default_rng(0)
        y = np.repeat([0, 1, 2], 20)
        X = np.array([[0, 0], [9, 0], [0, 9]])[y] + rng.uniform(-1, 1, size=(60, 2))
        model = LinearSVC(**FREE).fit(X, y)
        assert model.score(X, y) == 1.0 and model.margin_.shape == (3,)

    def test_many_rows(self):
        """Far more samples than features."""
        X, y = separable(20_000, 8, gap=0.05)
        model = LinearSVC(**FREE).fit(X, y)
        assert model.score(X, y) == 1.0 and model.certificate_.relative_gap <= 1e-8


class TestNotSeparable:
    def test_exclusive_or(self):
        """The diagonals of a square cross in its centre."""
        X, y = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), np.array([0, 0, 1, 1])
        with pytest.raises(NotSeparableError) as found:
            LinearSVC(**FREE).fit(X, y)
        assert_proof(found.value, X @ X.T, y)
        np.testing.assert_allclose(np.abs(found.value.common_point_weights), 0.5, atol=1e-6)

    @pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
    @pytest.mark.parametrize("n", [20, 200, 5000])
    def test_overlap(self, n, scale):
        """Classes that overlap have a common point, whose weights are convex on each class."""
        rng = np.random.default_rng(n)
        X = rng.normal(size=(n, 2)) * scale
        y = (X[:, 0] + scale * rng.normal(size=n) > 0).astype(int)
        with pytest.raises(NotSeparableError) as found:
            LinearSVC(**FREE).fit(X, y)
        weights = found.value.common_point_weights
        for label in (0, 1):
            inside = weights[y == label]
            assert (inside >= 0).all() or (inside <= 0).all()
            assert abs(inside.sum()) == pytest.approx(1.0, abs=1e-9)
        assert np.linalg.norm(X.T @ weights) <= 1e-5 * scale
        assert found.value.distance <= 1e-5 * scale

    def test_through_the_origin(self):
        """Without an intercept two points on one side of the origin cannot be told apart."""
        with pytest.raises(NotSeparableError) as found:
            LinearSVC(C=np.inf, fit_intercept=False).fit([[1.0], [2.0]], [0, 1])
        weights = found.value.common_point_weights
        assert abs(weights @ [1.0, 2.0]) < 1e-6 and np.abs(weights).sum() == pytest.approx(2.0)
        assert "through the origin" in str(found.value)

    @pytest.mark.parametrize("penalised", [True, False])
    def test_a_penalised_intercept_makes_no_difference(self, penalised):
        """The message speaks of hulls, not of the origin."""
        with pytest.raises(NotSeparableError, match="a common point of both convex hulls") as found:
            LinearSVC(C=np.inf, penalize_intercept=penalised).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
        np.testing.assert_allclose(np.abs(found.value.common_point_weights), [0.5, 1.0, 0.5], atol=1e-6)

    def test_one_point_with_two_labels(self):
        """Equal samples with different labels are their own common point."""
        X, y = np.array([[1.0, 2.0], [5.0, 1.0], [1.0, 2.0], [3.0, 3.0]]), np.array([0, 0, 1, 1])
        with pytest.raises(NotSeparableError) as found:
            LinearSVC(**FREE).fit(X, y)
        assert np.linalg.norm(X.T @ found.value.common_point_weights) < 1e-6


class TestHardTube:
    def test_all_samples_are_in_the_tube(self):
        """LinearSVR(C=inf) is the flattest plane within epsilon of every sample."""
        X = np.random.default_rng(0).normal(size=(60, 3))
        y = X @ [1.0, -2.0, 0.5] + 0.3 + 0.1 * np.sin(X[:, 0])
        model = LinearSVR(C=np.inf, epsilon=0.3, penalize_intercept=False, tol=1e-8).fit(X, y)
        assert np.abs(y - model.predict(X)).max() <= 0.3 + 1e-6

    def test_no_plane_fits(self):
        """Equal samples with targets that are too far apart."""
        with pytest.raises(InvalidInputError) as found:
            LinearSVR(C=np.inf, epsilon=0.1).fit([[0.0], [0.0], [1.0]], [0.0, 5.0, 1.0])
        assert str(found.value) == (
            "No linear function keeps all samples within the tube, which C=inf requires: the dual is unbounded. "
            "Use a finite C, a larger epsilon, or SVR with a kernel."
        )
