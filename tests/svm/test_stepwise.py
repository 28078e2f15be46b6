"""Coordinate ascent and SMO step by step, against the notes' procedures in plain Python."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from tests.reference.stepwise import coordinate_ascent, dual_value, largest_gain, smo

import mercer
from mercer import SVC, SVR, Gaussian, InvalidInputError, Steps
from mercer.losses import Hinge
from mercer.problems.clock import Clock
from mercer.problems.solution import Options
from mercer.problems.steps import MOST_STEPS
from mercer.svm._stepwise_loops import ascend, best_value
from mercer.svm.stepwise import Ascent

RULES = ("round-robin", "random", "greedy")
C = 2.0


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(60, noise=0.3, random_state=0)
    return X, np.where(y == 1, 1.0, -1.0)


def columns(steps, names):
    return np.array([steps[name] for name in names]).T


class TestAgainstTheNotes:
    def test_smo(self, moons):
        X, y = moons
        K = Gaussian(1.0)(X, X)
        model = SVC(C=C, kernel="precomputed", trace=True, tol=1e-5).fit(K, y)
        # of a pair of classes the first is positive
        alpha, expected = smo(K, -y, C, 1e-5)
        found = columns(model.steps_, ("i", "j", "L", "H", "unclipped", "clipped", "alpha_i", "dual"))
        assert len(found) == len(expected) == model.n_iter_[0]
        assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        assert_allclose(model.certificate_.dual, dual_value(K, -y, alpha), rtol=1e-12)

    @pytest.mark.parametrize("rule", RULES)
    def test_coordinate_ascent(self, moons, rule):
        X, y = moons
        n, seed = len(y), 7
        model = SVC(
            C=C, kernel=Gaussian(1.0), solver="coordinate", rule=rule, fit_intercept=False, trace=True, max_iter=3 * n,
            tol=1e-12, random_state=seed,
        )  # fmt: skip
        with pytest.warns(UserWarning, match="max_iter"):
            model.fit(X, y)
        K = Gaussian(1.0)(X, X)
        drawn = np.random.RandomState(seed).randint(2**31 - 1)
        random = np.random.default_rng(drawn)
        order = {
            "round-robin": np.tile(np.arange(n), 3),
            "random": np.concatenate([random.permutation(n) for _ in range(3)]),
            "greedy": [largest_gain(K, -y, C)] * (3 * n),
        }[rule]
        _, expected = coordinate_ascent(K, -y, C, order)
        assert_allclose(columns(model.steps_, ("i", "unclipped", "clipped", "dual")), expected, rtol=1e-9, atol=1e-9)


class TestOptimum:
    @pytest.mark.parametrize("rule", RULES)
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_coordinate_ascent_classifies_as_the_exact_solver(self, moons, rule, loss):
        X, y = moons
        settings = {"C": C, "loss": loss, "fit_intercept": False, "tol": 1e-7}
        found = SVC(solver="coordinate", rule=rule, **settings).fit(X, y)
        assert found.certificate_.valid and found.certificate_.relative_gap < 1e-6
        assert_allclose(found.decision_function(X), SVC(**settings).fit(X, y).decision_function(X), atol=1e-4)
        assert not hasattr(found, "steps_")

    @pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive", "pinball"])
    @pytest.mark.parametrize("intercept", [True, False])
    def test_regression(self, moons, loss, intercept):
        X, _ = moons
        z = np.sin(3 * X[:, 0])
        settings = {"loss": loss, "fit_intercept": intercept, "tol": 1e-5}
        found = SVR(trace=True, **settings).fit(X, z)
        assert found.steps_.method == ("SMO" if intercept else "coordinate ascent")
        assert found.certificate_.relative_gap < 1e-4
        assert np.all(np.diff(found.steps_.dual) > -1e-9)
        assert_allclose(found.predict(X), SVR(**settings).fit(X, z).predict(X), atol=1e-3)
        if intercept:
            steps = found.steps_
            assert_allclose(np.clip(steps.unclipped, steps.L, steps.H), steps.clipped, atol=1e-12)

    @pytest.mark.parametrize("rule", RULES)
    def test_regression_with_a_sample_at_the_origin(self, rule):
        # k(x, x) = 0, and its target is in the tube: the optimum of its variable is 0, between the bounds
        X = np.random.default_rng(0).standard_normal((40, 2))
        X[3] = 0.0
        y = X @ [1.0, 2.0]
        settings = {"kernel": "linear", "fit_intercept": False, "tol": 1e-6}
        model = SVR(solver="coordinate", rule=rule, **settings).fit(X, y)
        exact = SVR(**settings).fit(X, y)
        assert model.fit_status_ == 0
        assert 3 not in model.support_
        assert_allclose(model.coef_, exact.coef_, atol=1e-5)

    def test_several_classes_give_a_list(self):
        X, y = load_iris(return_X_y=True)
        model = SVC(trace=True).fit(X, y)
        assert [len(steps) for steps in model.steps_] == model.n_iter_.tolist()
        assert set(y[model.steps_[1].i]) | set(y[model.steps_[1].j]) == {0, 2}
        assert_allclose(model.decision_function(X), SVC().fit(X, y).decision_function(X), atol=5e-3)

    def test_an_indefinite_kernel_ends(self, moons):
        y = moons[1]
        K = np.random.default_rng(0).standard_normal((len(y), len(y)))
        K = (K + K.T) / 2
        with pytest.warns(UserWarning):
            model = SVC(kernel="precomputed", solver="coordinate", fit_intercept=False, max_iter=10_000).fit(K, y)
        assert not model.certificate_.valid

    def test_warm_start_takes_no_step(self, moons):
        X, y = moons
        model = SVC(trace=True, warm_start=True).fit(X, y)
        assert len(model.steps_) > 0
        assert len(model.fit(X, y).steps_) == 0


class TestSteps:
    def test_are_frozen_arrays(self, moons):
        steps = SVC(trace=True).fit(*moons).steps_
        with pytest.raises(ValueError, match="read-only"):
            steps.i[0] = 3
        with pytest.raises(AttributeError):
            steps.method = "another"
        with pytest.raises(AttributeError, match="they have i, j, L"):
            steps.k  # noqa: B018
        assert len(steps[:3]) == 3 and steps[:3].dual[2] == steps.dual[2]
        with pytest.raises(KeyError, match="they have i, j, L"):
            steps["k"]
        assert steps[0]["dual"] == steps.dual[0] and steps["L"] is steps.L and "unclipped" in dir(steps)
        assert f"{len(steps)} steps" in repr(steps) and "..." in str(steps)

    def test_columns_of_different_lengths(self):
        with pytest.raises(ValueError, match="same length"):
            Steps("SMO", {"i": np.arange(2), "dual": np.arange(3)}, "dual")

    def test_survive_files(self, moons, tmp_path):
        model = SVC(trace=True).fit(*moons)
        mercer.save(model, tmp_path / "model.mercer")
        for found in (mercer.load(tmp_path / "model.mercer"), pickle.loads(pickle.dumps(model))):
            assert_allclose(found.steps_.dual, model.steps_.dual)
            assert found.steps_.method == "SMO"

    def test_are_forgotten_by_a_fit_without_trace(self, moons):
        model = clone(SVC(trace=True)).fit(*moons)
        assert not hasattr(model.set_params(trace=False).fit(*moons), "steps_")

    def test_only_the_first_are_kept(self, moons):
        X, y = moons
        qp = Hinge().box_qp(y, np.full(len(y), C), False)
        run = Ascent(Gaussian(1.0)(X, X), qp, np.zeros(len(y)), Options(solver="coordinate", trace=True))
        run.taken = MOST_STEPS - 10
        run.take_pass(len(y), Clock())
        run.taken += len(y)
        steps = run.path()
        assert len(steps) == 10 and not steps.complete and "the first 10" in repr(steps)


class TestErrors:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"solver": "coordinate"}, "fit_intercept=False"),
            ({"solver": "smo", "fit_intercept": False}, "solver='coordinate'"),
            ({"solver": "qp", "trace": True}, "other steps"),
            ({"trace": True, "C": np.inf}, "finite C"),
            ({"solver": "coordinate", "fit_intercept": False, "rule": "best"}, "'rule' parameter"),
        ],
    )
    def test_settings(self, moons, settings, message):
        with pytest.raises(ValueError, match=message):
            SVC(**settings).fit(*moons)

    def test_too_many_samples(self):
        X = np.random.default_rng(0).standard_normal((5001, 2))
        with pytest.raises(InvalidInputError, match="5,001"):
            SVC(trace=True).fit(X, X[:, 0] > 0)

    def test_time_limit_leaves_a_certified_model(self):
        X, y = make_moons(1000, noise=0.4, random_state=0)
        with pytest.warns(UserWarning, match="time_limit"):
            model = SVC(C=1e6, solver="coordinate", fit_intercept=False, tol=1e-12, time_limit=0.2).fit(X, y)
        assert model.certificate_.valid and np.isfinite(model.certificate_.gap)


class TestLoops:
    def test_best_value(self):
        random = np.random.default_rng(0)
        K = np.eye(3) * 2.0
        linear, l1, ridge = random.standard_normal(3), np.array([0.0, 0.3, 0.3]), np.array([0.0, 0.0, 1.0])
        lower, upper = np.full(3, -0.5), np.full(3, 0.5)
        beta, F = np.zeros(3), np.zeros(3)
        grid = np.linspace(-2, 2, 400_001)
        for i in range(3):
            value = -(0.5 * (K[i, i] + ridge[i]) * grid**2 - linear[i] * grid + l1[i] * abs(grid))
            free, inside, gain = best_value(i, K, linear, l1, ridge, lower, upper, beta, F)
            assert_allclose(free, grid[np.argmax(value)], atol=1e-5)
            assert_allclose(inside, np.clip(free, -0.5, 0.5), atol=1e-12)
            assert_allclose(gain, np.interp(inside, grid, value), atol=1e-8)

    @pytest.mark.parametrize("score", [-1.0, -0.2, 0.0, 0.2, 1.0])
    @pytest.mark.parametrize("before", [-2.0, 0.0, 0.7])
    @pytest.mark.parametrize("k", [0.0, -0.1])
    def test_best_value_without_curvature(self, score, before, k):
        one = np.ones(1)
        F = k * before * one
        _, value, gain = best_value(
            0, np.array([[k]]), score * one, 0.5 * one, 0.0 * one, -2.0 * one, 2.0 * one, before * one, F
        )
        grid = np.linspace(-2, 2, 4001)
        objective = score * grid - 0.5 * k * grid**2 - 0.5 * abs(grid)
        at_start = score * before - 0.5 * k * before**2 - 0.5 * abs(before)
        assert_allclose(gain, objective.max() - at_start, atol=1e-12)
        assert_allclose(np.interp(value, grid, objective), objective.max(), atol=1e-12)

    def test_ascend(self, moons):
        X, y = moons
        K, n = Gaussian(1.0)(X, X), len(y)
        zero = np.zeros(n)
        beta, F, steps = np.zeros(n), np.zeros(n), np.empty((n, 4))
        lower, upper = np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)
        taken, gained = ascend(K, y, zero, zero, lower, upper, np.arange(n), False, beta, F, steps)
        alpha, expected = coordinate_ascent(K, y, C, range(n))
        assert taken == n
        assert_allclose(beta, y * alpha, atol=1e-12)
        assert_allclose(F, K @ beta, atol=1e-12)
        assert_allclose(gained, expected[-1][-1], rtol=1e-12)
