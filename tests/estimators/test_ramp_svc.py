"""RampSVC goes downhill on the ramp loss from the solution of SVC, and ends at a stationary point."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.utils import estimator_checks as checks

from mercer import SVC, InvalidInputError, RampSVC, certify
from mercer.kernels import Gaussian
from mercer.losses import hinge, ramp


def noisy_labels(n=300, seed=0):
    """Two clouds beside each other; an eighth of the samples lies far in one of them with the label of the other.

    (X, y, the true labels).
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    X[:, 0] += np.where(rng.random(n) < 0.5, -2.0, 2.0)
    X = X[np.abs(X[:, 0]) > 0.3]
    truth = (X[:, 0] > 0).astype(int)
    y = truth.copy()
    wrong = rng.permutation(np.flatnonzero(truth == 1))[: n // 7]
    X[wrong, 0] += 2.0
    y[wrong] = 0
    return X, y, truth


def objective(model, X, y, C, clip):
    """½|w|² + C Σ min(clip, hinge), from what is published."""
    signs = np.where(y == model.classes_[1], 1.0, -1.0)
    return 0.5 * model.rkhs_norm_[0] ** 2 + C * ramp(signs, model.decision_function(X), clip=clip).sum()


class TestProcedure:
    @pytest.mark.parametrize("clip", [0.5, 1.0, 2.0])
    @pytest.mark.parametrize("kernel", ["linear", "rbf"])
    def test_downhill(self, kernel, clip):
        """The objective never rises, ends below that of SVC, and is what the published model has."""
        X, y, _ = noisy_labels()
        model = RampSVC(kernel=kernel, clip=clip, C=1.0, tol=1e-6, start="svc").fit(X, y)
        trace = np.array(model.objective_traces_[0])
        assert np.all(np.diff(trace) <= 1e-6 * trace[:-1])
        assert model.stationary_ and len(trace) == model.n_rounds_[0]
        assert model.objective_ == pytest.approx(objective(model, X, y, 1.0, clip), rel=1e-5)
        start = SVC(kernel=kernel, tol=1e-6).fit(X, y)
        assert trace[0] == pytest.approx(objective(start, X, y, 1.0, clip), rel=1e-5)
        assert trace[-1] < trace[0]

    def test_stationary(self):
        """Of the samples that are not given up, it is the SVM; small changes of w and b make it no better."""
        X, y, _ = noisy_labels()
        model = RampSVC(kernel="linear", C=1.0, tol=1e-9).fit(X, y)
        signs = np.where(y == 1, 1.0, -1.0)
        w, b = model.coef_[0], model.intercept_[0]

        def value(v, c):
            return 0.5 * v @ v + ramp(signs, X @ v + c).sum()

        rng = np.random.default_rng(0)
        here = value(w, b)
        for _ in range(300):
            step = rng.normal(size=3)
            step *= 1e-4 / np.linalg.norm(step)
            assert value(w + step[:2], b + step[2]) >= here - 1e-7
        over = 1 - signs * (X @ w + b) > 1
        np.testing.assert_array_equal(np.flatnonzero(over), model.given_up_)

    def test_robust(self):
        """Wrong labels far from the boundary turn SVC's separator, and do not turn this one."""
        X, y, truth = noisy_labels()
        assert np.mean(y != truth) > 0.1
        hard, soft = RampSVC(kernel="linear", C=10.0).fit(X, y), SVC(kernel="linear", C=10.0).fit(X, y)
        assert hard.score(X, truth) == 1.0
        assert soft.score(X, truth) < 0.98
        assert set(np.flatnonzero(y != truth)) <= set(hard.given_up_)

    def test_without_noise_it_is_svc(self):
        """Where no loss is above the clip nothing is given up, and the model is SVC's."""
        X, y = make_moons(100, noise=0.05, random_state=0)
        ours, plain = RampSVC(C=10.0, clip=50.0).fit(X, y), SVC(C=10.0).fit(X, y)
        np.testing.assert_array_equal(ours.decision_function(X), plain.decision_function(X))
        assert len(ours.given_up_) == 0 and ours.n_rounds_.tolist() == [1]

    def test_certificate_is_of_the_last_convex_problem(self):
        """It is valid, says what it is of, and bounds a convex problem: not the ramp loss, which certify refuses."""
        X, y, _ = noisy_labels()
        model = RampSVC(kernel="linear").fit(X, y)
        assert model.certificate_.valid and model.certificate_.of == "last convex problem of the ramp loss"
        assert model.certificate_.kkt_violation <= model.tol
        # a constant less for each sample that is given up
        assert model.certificate_.primal == pytest.approx(model.objective_ - len(model.given_up_), rel=1e-6)
        with pytest.raises(InvalidInputError, match="The ramp loss is not convex, so no dual value bounds its optimum"):
            certify(model, X, y)

    def test_starts(self):
        """Both starts together end no higher than either; where SVC is turned too far, the means save it."""
        X, y, truth = noisy_labels()
        X = X + 2.0 * (y != truth)[:, None]
        ends = {start: RampSVC(kernel="linear", C=10.0, start=start).fit(X, y) for start in ("svc", "means", "both")}
        assert ends["both"].objective_ == min(ends["svc"].objective_, ends["means"].objective_)
        assert ends["means"].objective_ < 0.95 * ends["svc"].objective_
        assert ends["both"].score(X, truth) > 0.99 > ends["svc"].score(X, truth)

    def test_rounds(self):
        """max_rounds ends the procedure with a warning in numbers."""
        X, y, _ = noisy_labels()
        with pytest.warns(
            ConvergenceWarning, match=r"max_rounds=1\): the set of .* still changes\. The objective is \d"
        ):
            model = RampSVC(max_rounds=1, kernel="linear", start="svc").fit(X, y)
        assert not model.stationary_
        np.testing.assert_allclose(model.decision_function(X), SVC(kernel="linear").fit(X, y).decision_function(X))

    def test_time_limit(self):
        """No time leaves a usable model and its certificate."""
        X, y, _ = noisy_labels()
        with pytest.warns(ConvergenceWarning, match=r"time_limit=0 s"):
            model = RampSVC(time_limit=0).fit(X, y)
        assert model.certificate_.valid and model.predict(X).shape == y.shape


class TestEcosystem:
    def test_several_classes(self):
        """One problem for each pair, as in SVC; samples with wrong labels are given up."""
        X, y = load_iris(return_X_y=True)
        wrong = y.copy()
        wrong[:5] = 2
        model = RampSVC(kernel="linear", C=10.0).fit(X, wrong)
        assert model.score(X, y) > 0.96
        assert set(range(5)) <= set(model.given_up_)
        assert len(model.objective_traces_) == len(model.certificates_) == 3

    def test_weights(self):
        """Weights are repetitions."""
        name = "RampSVC"
        checks.check_sample_weight_equivalence_on_dense_data(name, RampSVC(kernel=Gaussian(gamma=0.1), tol=1e-12))

    def test_search_and_pickle(self):
        """Kernel parameters are searched, models are pickled."""
        X, y, truth = noisy_labels()
        search = GridSearchCV(RampSVC(kernel=Gaussian()), {"kernel__gamma": [0.1, 1.0], "C": [1.0, 10.0]}, cv=3).fit(
            X, y
        )
        model = search.best_estimator_
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
        assert model.score(X, truth) > search.best_score_ - 0.1 > 0.7

    def test_infinite_C(self):
        """A hard margin has no ramp."""
        with pytest.raises(ValueError, match="The 'C' parameter of RampSVC"):
            RampSVC(C=np.inf).fit([[0.0], [1.0]], [0, 1])


def test_the_bound_is_tangent():
    """The convex loss of a sample that is given up, plus the clip, is above the ramp loss, equal where it is flat."""
    f = np.linspace(-4, 4, 81)
    convex = 1.0 + np.maximum(0.0, f - 1.0)
    assert np.all(convex >= ramp(np.ones(81), f))
    np.testing.assert_array_equal(convex[f <= 0], ramp(np.ones(81), f)[f <= 0])
    assert np.all(hinge(np.ones(81), f) >= ramp(np.ones(81), f))
