"""trace=True: the steps of Pegasos, the perceptron and kernel LMS are those of the notes, number for number."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from tests.naming import named
from tests.notes.samples import overlapping, separable
from tests.reference import traces

from mercer import Gaussian, KernelLMS, PegasosClassifier, Perceptron, Polynomial, Steps, load, save
from mercer.online.sgd import LinearRun, Rule
from mercer.online.sgd_trace import Recorder

X, Y = overlapping()
# sums and products of these are exact in float64
WHOLE, SIGNS = np.rint(4 * X), Y
QUIET = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def order_of(steps):
    """The samples of each step."""
    return [steps.i[steps.t == t].tolist() for t in np.unique(steps.t)]


def assert_equal(steps, twin, exact=()):
    """Whole numbers and truth values agree exactly, as do the columns in ``exact``; others to 12 digits."""
    assert list(steps.columns) == list(twin[0]) and len(steps) == len(twin) and steps.complete
    for name, found in steps.columns.items():
        expected = np.array([row[name] for row in twin])
        if found.dtype == np.float64 and name not in exact:
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=name)
        else:
            np.testing.assert_array_equal(found, expected, err_msg=name)


PEGASOS = dict(n_steps=300, fit_intercept=False, random_state=0, trace=True)
PERCEPTRON = dict(fit_intercept=False, tol=None, trace=True)


class TestPegasos:
    @pytest.mark.parametrize("sparse", [False, True])
    def test_linear(self, sparse):
        """[SSBD] 15.5."""
        model = PegasosClassifier(0.1, **PEGASOS).fit(sp.csr_matrix(X) if sparse else X, Y)
        assert_equal(model.steps_, traces.pegasos(X, Y, 0.1, order_of(model.steps_)), exact=["step_size"])
        assert model.steps_.updated.sum() == model.n_updates_[0]
        assert repr(model.steps_) == (
            "Steps of Pegasos: 300 steps with t, i, margin, updated, step_size, objective"
        )  # fmt: skip

    def test_with_kernels(self):
        """[SSBD] 16.3, [L8] Algorithm 1."""
        K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
        model = PegasosClassifier(0.1, kernel=Gaussian(0.5), **PEGASOS).fit(X, Y)
        assert_equal(model.steps_, traces.pegasos_with_kernels(K, Y, 0.1, order_of(model.steps_)))

    @pytest.mark.parametrize("kernel", ["linear", Polynomial(1, 1.0, 0.0)], ids=named)
    def test_whole_numbers(self, kernel):
        """For λ = 1 a step updates if yθ'x < t, which whole numbers decide without rounding."""
        model = PegasosClassifier(1.0, kernel=kernel, **PEGASOS).fit(WHOLE, SIGNS)
        steps = model.steps_
        theta = np.zeros(2)
        for k, i in enumerate(steps.i):
            assert steps.updated[k] == (SIGNS[i] * (theta @ WHOLE[i]) < steps.t[k])
            assert steps.margin[k] == pytest.approx(SIGNS[i] * (theta @ WHOLE[i]) / steps.t[k], rel=1e-14, abs=1e-14)
            theta += steps.updated[k] * SIGNS[i] * WHOLE[i]

    @pytest.mark.parametrize("sampling", ["uniform", "shuffled"])
    @pytest.mark.parametrize("kernel", ["linear", Polynomial(1, 1.0, 0.0)], ids=named)
    def test_free_steps_and_batches(self, kernel, sampling):
        """[D6] Note 26: samples of a batch have one t; the last batch of a pass may be smaller."""
        options = {**PEGASOS, "batch_size": 7, "sampling": sampling, "kernel": kernel}
        model = PegasosClassifier(0.1, step_size=lambda t: 0.3 / np.sqrt(t), **options).fit(X, Y)
        steps = model.steps_
        assert_equal(steps, traces.descent(X, Y, 0.1, order_of(steps), lambda t: 0.3 / np.sqrt(t)))
        assert set(np.bincount(steps.t)[1:]) == ({7, 4} if sampling == "shuffled" else {7})
        assert steps.method == "stochastic subgradient descent"

    def test_pegasos_is_descent(self):
        """w = θ/(λt) are steps of the size 1/(λ(t + 1)): both have the same trace."""
        first = PegasosClassifier(0.1, **PEGASOS).fit(X, Y).steps_
        second = PegasosClassifier(0.1, step_size=lambda t: 1 / (0.1 * (t + 1)), **PEGASOS).fit(X, Y).steps_
        for name in first.columns:
            np.testing.assert_allclose(first[name], second[name], rtol=1e-9, err_msg=name)

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"batch_size": 4, "project": True},
            {"kernel": "rbf", "sampling": "shuffled"},
            # no contributions are equal: which of equals a budget removes depends on the blocks of steps
            {"kernel": Polynomial(2, 1.0, 1.0), "budget": 10, "average": "last"},
            {"average": "tail", "class_weight": {-1: 2.0}},
        ],
        ids=named,
    )
    def test_the_model_is_the_same(self, options):
        """A trace changes neither the draws nor the steps."""
        plain = PegasosClassifier(0.01, random_state=1, **options).fit(X, Y)
        traced = PegasosClassifier(0.01, random_state=1, trace=True, **options).fit(X, Y)
        np.testing.assert_allclose(traced.decision_function(X), plain.decision_function(X), rtol=1e-9, atol=1e-12)
        assert traced.n_updates_ == plain.n_updates_ == traced.steps_.updated.sum()
        assert traced.steps_.t[-1] == traced.t_ and not hasattr(plain, "steps_")

    def test_the_objective_is_that_of_the_iterates(self):
        """average="last" is the iterate after the last step, whose objective a longer trace has next."""
        model = PegasosClassifier(0.1, n_steps=50, average="last", random_state=0, trace=True).fit(X, Y)
        longer = PegasosClassifier(0.1, n_steps=51, average="last", random_state=0, trace=True).fit(X, Y)
        assert longer.steps_.objective[-1] == pytest.approx(model.objective_trace_[-1].objective, rel=1e-12)


class TestPerceptron:
    @pytest.mark.parametrize("shuffle", [True, False])
    def test_linear(self, shuffle):
        """[SSBD] Remark 15.1."""
        X, y = separable(gap=0.05)
        steps = Perceptron(shuffle=shuffle, **PERCEPTRON).fit(X, y).steps_
        assert_equal(steps, traces.perceptron(X, y, steps.i))
        assert repr(steps).startswith("Steps of the perceptron: ") and steps.measure == "mistakes"

    def test_with_kernels(self):
        """[SSBD] Exercise 16.2."""
        X, _ = separable()
        y = np.where((X**2).sum(axis=1) > 1.5, 1, -1)
        model = Perceptron(kernel=Polynomial(2, 1.0, 1.0), **PERCEPTRON).fit(X, y)
        assert_equal(model.steps_, traces.kernel_perceptron((1 + X @ X.T) ** 2, y, model.steps_.i))
        assert model.steps_.mistakes[-1] == model.n_updates_[0] == sum(model.mistakes_)
        assert model.steps_.passes[-1] == model.n_iter_

    @QUIET
    @pytest.mark.parametrize("kernel", ["linear", Polynomial(1, 1.0, 0.0)], ids=named)
    def test_whole_numbers(self, kernel):
        """On whole numbers nothing rounds: margins are equal to the last bit."""
        steps = Perceptron(kernel=kernel, fit_intercept=False, max_iter=5, trace=True).fit(WHOLE, SIGNS).steps_
        assert_equal(steps, traces.perceptron(WHOLE, SIGNS, steps.i), exact=["margin"])

    @QUIET
    def test_several_classes(self):
        """One trace for each class: that of the classifier of this class against the rest."""
        X, y = load_iris(return_X_y=True)
        model = Perceptron(trace=True).fit(X, y)
        assert [steps.mistakes[-1] for steps in model.steps_] == model.n_updates_.tolist()
        one = Perceptron(trace=True, tol=None, max_iter=model.n_iter_).fit(X, y == 1)
        for name in one.steps_.columns:
            np.testing.assert_allclose(model.steps_[1][name], one.steps_[name], rtol=1e-12, err_msg=name)

    @QUIET
    def test_warm_start(self):
        """The first margin of a warm start is that of the last w."""
        model = Perceptron(warm_start=True, max_iter=3, trace=True).fit(X, Y)
        w, b = model.coef_[0].copy(), model.intercept_[0]
        steps = model.fit(X, Y).steps_
        i = steps.i[0]
        assert steps.margin[0] == pytest.approx(Y[i] * (X[i] @ w + b), rel=1e-12)

    @QUIET
    def test_warm_start_without_steps(self):
        """If there is no time for a step, a warm start keeps its w."""
        model = Perceptron(warm_start=True, max_iter=3, trace=True).fit(X, Y)
        w = model.coef_.copy()
        model.set_params(time_limit=0.0).fit(X, Y)
        np.testing.assert_array_equal(model.coef_, w)
        assert len(model.steps_) == 0 and model.steps_.complete


class TestKernelLMS:
    @QUIET
    def test_steps(self):
        """[CS229] (5.7) on explicit features: the change is that of θ."""
        kernel = Polynomial(2, 1.0, 1.0)
        model = KernelLMS(kernel=kernel, learning_rate=1e-3, max_iter=40, tol=0.0, trace=True).fit(X, X[:, 0])
        phi = kernel.feature_map(X)(X)
        assert_equal(model.steps_, traces.kernel_lms(phi, X[:, 0], 1e-3, 40))
        np.testing.assert_array_equal(model.steps_.error, model.loss_curve_[:-1])
        assert (np.diff(model.steps_.error) < 0).all() and model.steps_.measure == "error"

    def test_a_fit_that_converges(self):
        """The steps are those that were taken."""
        model = KernelLMS(tol=1e-2, trace=True).fit(X, Y)
        assert len(model.steps_) == model.n_iter_ and model.steps_.complete
        assert not hasattr(model.set_params(trace=False).fit(X, Y), "steps_")


class TestParts:
    def test_steps_of_a_call(self):
        """partial_fit keeps the steps of its call: t and mistakes go on, i counts the samples of the call."""
        for model in (Perceptron(trace=True), Perceptron(kernel="rbf", trace=True)):
            model.partial_fit(X[:30], Y[:30], classes=[-1, 1])
            before = model.n_updates_[0]
            steps = model.partial_fit(X[30:], Y[30:]).steps_
            assert sorted(steps.i) == list(range(30)) and steps.t.tolist() == list(range(31, 61))
            assert steps.mistakes[-1] == model.n_updates_[0] and steps.mistakes[0] - before in (0, 1)

    @pytest.mark.parametrize("kernel", ["linear", "rbf"])
    def test_the_objective_of_the_call(self, kernel):
        """It is that of the samples of the call: the first is that of the last iterate before."""
        options = dict(kernel=kernel, gamma=0.5, random_state=0, average="last")
        model = PegasosClassifier(0.1, trace=True, **options).partial_fit(X[:30], Y[:30], classes=[-1, 1])
        f, norm = model.decision_function(X[30:]), model.rkhs_norm_[0] ** 2 + model.intercept_[0] ** 2
        expected = 0.05 * norm + np.maximum(0, 1 - Y[30:] * f).mean()
        assert model.partial_fit(X[30:], Y[30:]).steps_.objective[0] == pytest.approx(expected, rel=1e-9)

    def test_most_steps(self):
        """After the first ``most`` steps none is kept, and the run goes on."""
        order = np.random.default_rng(0).integers(0, len(Y), 50)

        def run(recorder):
            found = LinearRun(X, Y[None].astype(float), np.ones(len(Y)), np.ones(len(Y)), Rule(lam=0.1, batch=4))
            found.recorder = recorder
            found.advance(order)
            return found

        recorder = Recorder(most=10)
        traced, plain = run(recorder), run(None)
        steps = recorder.steps(traced)
        assert len(steps) == 10 and not steps.complete and steps.i.tolist() == order[:10].tolist()
        assert repr(steps).startswith("Steps of Pegasos: the first 10 steps with")
        np.testing.assert_array_equal(traced.model().w, plain.model().w)
        assert traced.t == plain.t


@QUIET
@pytest.mark.parametrize(
    "model", [PegasosClassifier(random_state=0), Perceptron(max_iter=3), KernelLMS(max_iter=5)], ids=lambda m: type(m)
)
class TestEstimators:
    def test_copies(self, model, tmp_path):
        """Pickles and model files have the steps; clones have the parameter; a fit without trace drops them."""
        model = clone(model).set_params(trace=True).fit(X, Y)
        save(model, tmp_path / "model.mercer")
        for other in (pickle.loads(pickle.dumps(model)), load(tmp_path / "model.mercer")):
            assert isinstance(other.steps_, Steps) and repr(other.steps_) == repr(model.steps_)
            for name in model.steps_.columns:
                np.testing.assert_array_equal(other.steps_[name], model.steps_[name])
        assert clone(model).trace is True and not hasattr(clone(model), "steps_")
        assert not hasattr(model.set_params(trace=False).fit(X, Y), "steps_")

    def test_bad_values(self, model):
        """trace is True or False."""
        with pytest.raises(ValueError, match="The 'trace' parameter"):
            clone(model).set_params(trace="yes").fit(X, Y)

    def test_time_limit(self, model):
        """A traced fit ends in time, with the steps that it took."""
        model = clone(model).set_params(trace=True, time_limit=0.05, max_iter=10**6, tol=0.0).fit(X, Y)
        assert 0 < len(model.steps_) < 10**6 and model.steps_.complete
