"""The perceptron separates what can be separated, within the number of updates that the notes allow."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Perceptron as SklearnPerceptron
from tests.naming import named

from mercer import SVC, Perceptron
from mercer.exceptions import InvalidInputError
from mercer.kernels import Gaussian, Linear, Polynomial


def separable(n=60, d=3, seed=0, gap=0.2, through_origin=False):
    """Two classes with a strip of this half width between them."""
    rng = np.random.default_rng(seed)
    w, b = rng.normal(size=d), 0.0 if through_origin else rng.normal()
    X = rng.normal(size=(4 * n, d)) * 2
    f = (X @ w + b) / np.linalg.norm(w)
    keep = np.flatnonzero(np.abs(f) > gap)[:n]
    return X[keep], (f[keep] > 0).astype(int)


def by_the_book(X, y, order):
    """The perceptron in plain Python: the weights with the constant feature last, and the number of updates."""
    Z, signs = np.column_stack([X, np.ones(len(X))]), np.where(y > 0, 1.0, -1.0)
    w, updates = np.zeros(Z.shape[1]), 0
    while True:
        before = updates
        for i in order:
            if signs[i] * (w @ Z[i]) <= 0:
                w, updates = w + signs[i] * Z[i], updates + 1
        if updates == before:
            return w, updates


class TestUpdates:
    @pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
    @pytest.mark.parametrize("kernel", ["linear", 1.0 * Linear()], ids=named)
    def test_by_the_book(self, kernel, storage):
        """Weights and updates are those of the procedure in plain Python."""
        X, y = separable()
        w, updates = by_the_book(X, y, np.arange(len(y)))
        model = Perceptron(kernel=kernel, shuffle=False, tol=None).fit(storage(X), y)
        assert model.n_updates_[0] == updates == sum(model.mistakes_)
        assert model.separated_ and model.score(storage(X), y) == 1.0
        np.testing.assert_allclose(model.decision_function(storage(X)), X @ w[:-1] + w[-1], rtol=1e-9, atol=1e-9)

    def test_same_as_sklearn(self):
        """scikit-learn's perceptron, in the same order of samples, makes the same updates."""
        X, y = separable()
        ours = Perceptron(shuffle=False, tol=None).fit(X, y)
        theirs = SklearnPerceptron(shuffle=False, tol=None, max_iter=ours.n_iter_).fit(X, y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-9)

    @settings(max_examples=25, deadline=None)
    @given(st.integers(0, 10_000), st.integers(1, 5), st.booleans(), st.floats(0.02, 1.0))
    def test_the_bound(self, seed, d, fit_intercept, gap):
        """(ρ/γ)² is never exceeded, in whatever order the samples come ([SSBD] Remark 15.1)."""
        X, y = separable(30, d, seed, gap, through_origin=not fit_intercept)
        if len(set(y)) < 2:
            return
        model = Perceptron(fit_intercept=fit_intercept, random_state=seed, tol=None, max_iter=10**6).fit(X, y)
        assert model.separated_
        assert model.n_updates_[0] <= model.update_bound(X, y)[0]

    @pytest.mark.parametrize("kernel", [Gaussian(gamma=1.0), Polynomial(degree=3, coef0=1.0)], ids=named)
    def test_the_bound_with_kernels(self, kernel):
        """The same holds in feature space, for each of several classes."""
        X, y = load_iris(return_X_y=True)
        X = X[:, 2:] + 0.01 * np.random.default_rng(0).normal(size=(150, 2))
        X, y = X[:120:2], y[:120:2]
        model = Perceptron(kernel=kernel, tol=None, max_iter=20_000)
        bound = model.fit(X[y < 2], y[y < 2]).update_bound(X[y < 2], y[y < 2])
        assert model.separated_ and model.n_updates_[0] <= bound[0] < np.inf

    def test_the_bound_is_the_margins(self):
        """(ρ/γ)² from a margin that can be seen: samples at ±1 and ±3 on a line have γ = 1 and ρ = 3."""
        X, y = [[-3.0], [-1.0], [1.0], [3.0]], [0, 0, 1, 1]
        model = Perceptron(fit_intercept=False).fit(X, y)
        assert model.update_bound(X, y)[0] == pytest.approx(9.0, rel=1e-6)
        wide = SVC(C=np.inf, kernel="linear", fit_intercept=False).fit(X, y)
        assert wide.margin_[0] == pytest.approx(1.0)

    def test_not_separable(self):
        """Without a separator there is no bound, the passes end, and the model says that it has not separated."""
        X, y = separable()
        y = y.copy()
        X, y = np.vstack([X, X[:1]]), np.append(y, 1 - y[0])
        with pytest.warns(ConvergenceWarning) as caught:
            model = Perceptron().fit(X, y)
        assert model.update_bound(X, y)[0] == np.inf
        assert not model.separated_ and model.n_iter_ < 1000
        assert [str(one.message) for one in caught] == [
            "The perceptron ended before it separated the classes: the fraction of mistakes has not fallen by "
            f"tol=0.001 in n_iter_no_change=5 passes, after {model.n_iter_} passes and {model.n_updates_[0]} updates; "
            f"the last pass made {model.mistakes_[-1]} mistakes. The model fitted so far is usable. If the classes are "
            "separable (see mercer.separability), use tol=None to continue until max_iter. If not, the perceptron "
            "never converges: use SVC, LinearSVC or PegasosClassifier, which tolerate mistakes."
        ]
        with pytest.warns(ConvergenceWarning, match=r"max_iter=3 was reached, after 3 passes .*raise max_iter. If not"):
            Perceptron(tol=None, max_iter=3).fit(X, y)

    def test_partial_fit_never_warns(self):
        """Mistakes of an online learner are no failure: warnings are errors here, and none is raised."""
        X, y = np.zeros((4, 2)), [0, 1, 0, 1]
        for _ in range(20):
            model = Perceptron().partial_fit(X, y, classes=[0, 1])
        assert model.n_updates_[0] > 0

    def test_average(self):
        """The averaged perceptron is the mean of all weights of its steps."""
        X, y = separable(20)
        model = Perceptron(average=True, shuffle=False, tol=None, max_iter=50).fit(X, y)
        Z, signs = np.column_stack([X, np.ones(len(X))]), np.where(y > 0, 1.0, -1.0)
        w, total = np.zeros(4), np.zeros(4)
        for i in list(range(len(y))) * model.n_iter_:
            total += w
            w = w + signs[i] * Z[i] * (signs[i] * (w @ Z[i]) <= 0)
        np.testing.assert_allclose(model.coef_[0], total[:-1] / model.t_, rtol=1e-9)

    def test_eta0(self):
        """The factor of the updates changes the length of w alone."""
        X, y = separable()
        one, ten = (Perceptron(eta0=eta).fit(X, y) for eta in (1.0, 10.0))
        np.testing.assert_allclose(ten.coef_, 10 * one.coef_)
        assert ten.n_updates_ == one.n_updates_


class TestOnline:
    def test_online_is_one_pass(self):
        """partial_fit sees each sample once; fit goes on until it makes no mistake."""
        X, y = separable()
        online = Perceptron().partial_fit(X, y, classes=[0, 1])
        assert online.t_ == len(y) and online.n_updates_[0] <= len(y)
        for _ in range(200):
            online.partial_fit(X, y)
        assert online.score(X, y) == 1.0
        assert online.n_updates_[0] <= online.update_bound(X, y)[0]

    def test_pickle(self):
        """A copy from another process goes on as the original does."""
        X, y = separable()
        model = Perceptron(kernel=Gaussian(gamma=0.1)).partial_fit(X[:30], y[:30], classes=[0, 1])
        copy = pickle.loads(pickle.dumps(model)).partial_fit(X[30:], y[30:])
        model.partial_fit(X[30:], y[30:])
        np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))

    def test_time_limit(self):
        """No time leaves a model that predicts, and a warning."""
        X, y = separable()
        with pytest.warns(
            ConvergenceWarning, match="time_limit=0 s was reached, after 0 passes .*no pass was completed"
        ):
            model = Perceptron(time_limit=0).fit(X, y)
        assert model.predict(X).shape == y.shape


class TestParametersOfSklearn:
    def test_signature(self):
        """Every parameter of scikit-learn's is there, with its default."""
        ours, theirs = Perceptron().get_params(), SklearnPerceptron().get_params()
        assert {name: ours.get(name, "missing") for name in theirs} == theirs

    @pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet"])
    def test_penalties_are_refused(self, penalty):
        """A penalised perceptron loss is least at w = 0, as the error says."""
        X, y = separable()
        with pytest.raises(InvalidInputError) as caught:
            Perceptron(penalty=penalty).fit(X, y)
        assert str(caught.value) == (
            f"penalty={penalty!r} cannot be used with the perceptron: with a penalty, w = 0 minimises its loss "
            "max(0, -yf). Use penalty=None, or PegasosClassifier, SVC or LinearSVC, whose losses require a margin."
        )

    @pytest.mark.parametrize("kernel", ["linear", "rbf"])
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_early_stopping(self, kernel, n_classes):
        """A part of each class is set aside, and its share of mistakes ends the run; nothing is learnt from it."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 2))
        y = np.digitize(X[:, 0] + rng.normal(size=300), [0.0, 1.0][: n_classes - 1])
        weight = rng.uniform(0.5, 2.0, size=300)
        weight[::7] = 0.0
        model = Perceptron(kernel=kernel, early_stopping=True, validation_fraction=0.3, n_iter_no_change=3)
        model.fit(X, y, sample_weight=weight)
        shares = model.validation_mistakes_
        assert len(shares) == model.n_iter_ == len(model.mistakes_) and not model.separated_
        best = np.minimum.accumulate([np.inf, *shares])[:-1]
        assert all(share >= b - model.tol for share, b in zip(shares[-3:], best[-3:], strict=True))
        # the last share is that of the model that is published
        used = np.flatnonzero(weight > 0)
        used_now, held = model._set_aside(np.searchsorted(model.classes_, y), weight)
        assert np.array_equal(np.sort(np.concatenate([used_now, held])), used) and len(held) == int(
            np.ceil(0.3 * len(used))
        )
        wrong = model.predict(X[held]) != y[held]
        assert shares[-1] == pytest.approx(weight[held] @ wrong / weight[held].sum())
        if kernel == "rbf":
            assert not np.isin(model.support_, held).any()
        with pytest.warns(ConvergenceWarning, match="ended before it separated the classes"):
            model.set_params(early_stopping=False).fit(X, y)
        assert not hasattr(model, "validation_mistakes_")

    def test_a_class_too_small_to_be_split(self):
        """scikit-learn's words."""
        X, y = separable()
        y[y == 1] = 0
        y[0] = 1
        with pytest.raises(ValueError, match="least populated class"):
            Perceptron(early_stopping=True).fit(X, y)

    @pytest.mark.parametrize("average", [False, True])
    def test_warm_start(self, average):
        """The last w is where the next fit begins: one that separates stays."""
        X, y = separable()
        model = Perceptron(warm_start=True, average=average, tol=None).fit(X, y)
        w, b = model.coef_.copy(), model.intercept_.copy()
        again = model.fit(X, y)
        if not average:
            np.testing.assert_array_equal(again.coef_, w)
            np.testing.assert_array_equal(again.intercept_, b)
        assert again.n_updates_[0] == 0 and again.n_iter_ == 1 and again.score(X, y) == 1.0
        with pytest.raises(InvalidInputError, match=r"w had the shape \(1, 3\), and now it has \(1, 2\)"):
            model.fit(X[:, :2], y)

    def test_warm_start_with_a_kernel(self):
        """w is made of samples that may not come again: an error that names partial_fit."""
        X, y = separable()
        model = Perceptron(kernel="rbf", warm_start=True).fit(X, y)
        with pytest.raises(InvalidInputError, match="With other kernels use partial_fit"):
            model.fit(X, y)
