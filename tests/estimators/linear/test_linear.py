"""LinearSVC and LinearSVR around their solvers: classes, weights, limits, warm starts, paths, prediction."""

import pickle
import re
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.naming import named

from mercer import LinearSVC, LinearSVR, certify
from mercer._sklearn_compat import BALANCES_SAMPLE_WEIGHTS
from mercer.exceptions import InvalidInputError
from mercer.problems.solution import Status

MACHINES = [
    LinearSVC(),
    LinearSVC(loss="hinge"),
    LinearSVR(),
    LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.2),
]
every_machine = pytest.mark.parametrize("machine", MACHINES, ids=named)
NUMBERS = (
    r"The model is (within \d\.\de[+-]\d\d of the optimum \(relative gap|not solved \(relative gap \d\.\de[+-]\d\d); "
    r"primal -?\d\S*, dual -?\d\S*\), KKT violation "
    r"(0|\d\.\de[+-]\d\d), infeasibility (0|\d\.\de[+-]\d\d); tol is \S+\."
)


def noisy(n=400, d=8, seed=0, n_classes=2):
    """Labels that a plane explains in part."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.digitize(X[:, 0] + 0.8 * rng.normal(size=n), np.linspace(-0.5, 0.5, n_classes + 1)[1:-1])


def values(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


class TestClasses:
    def test_one_against_the_rest(self):
        """Of several classes each row of coef_ is the two-class model of its class."""
        X, y = noisy(n_classes=4)
        model = LinearSVC(tol=1e-10).fit(X, y)
        assert model.coef_.shape == (4, 8) and model.intercept_.shape == (4,) and model.margin_.shape == (4,)
        assert model.certificate_.of == "4 one-vs-rest problems" and len(model.certificates_) == 4
        for k in range(4):
            alone = LinearSVC(tol=1e-10).fit(X, y == k)
            np.testing.assert_allclose(model.coef_[k], alone.coef_[0], atol=1e-5)
            np.testing.assert_allclose(model.certificates_[k].primal, alone.certificate_.primal, rtol=1e-9)
        np.testing.assert_array_equal(model.predict(X), model.decision_function(X).argmax(axis=1))

    @pytest.mark.parametrize("n_classes", [2, 3])
    @pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0, 1: 0.5}])
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_weights_are_those_of_scikit_learn(self, loss, class_weight, n_classes):
        """class_weight and sample_weight, one class against the rest of several included."""
        X, y = noisy(150, n_classes=n_classes)
        weight = np.random.default_rng(1).uniform(0.0, 2.0, len(y))
        weight[::11] = 0.0
        settings = {"loss": loss, "class_weight": class_weight, "C": 0.3, "random_state": 0}
        ours = LinearSVC(tol=1e-10, **settings).fit(X, y, sample_weight=weight)
        theirs = sklearn.svm.LinearSVC(tol=1e-9, max_iter=1_000_000, **settings)
        if class_weight == "balanced" and not BALANCES_SAMPLE_WEIGHTS:
            theirs.set_params(class_weight=dict(zip(ours.classes_, ours.class_weight_, strict=True)))
        theirs.fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=2e-4)

    def test_strings(self):
        """Labels may be anything that can be sorted."""
        X, y = noisy()
        names = np.array(["no", "yes"])[y]
        model = LinearSVC().fit(X, names)
        assert set(model.predict(X)) == {"no", "yes"}
        np.testing.assert_array_equal(model.predict(X) == "yes", LinearSVC().fit(X, y).predict(X) == 1)

    def test_a_class_without_weight_keeps_its_place(self):
        """It has a row in coef_, and never wins over the class that is there."""
        X, y = noisy(n_classes=3)
        model = LinearSVC().fit(X, y, sample_weight=np.where(y == 1, 0.0, 1.0))
        assert model.coef_.shape == (3, 8)
        assert set(model.predict(X)) <= {0, 2}

    @pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet"])
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    @pytest.mark.parametrize("dual", [True, False, "auto"])
    def test_any_combination_is_solved(self, penalty, loss, dual):
        """dual is accepted and makes no difference."""
        X, y = noisy(100)
        model = LinearSVC(penalty, loss, dual=dual).fit(X, y)
        assert model.certificate_.relative_gap <= 1e-4
        np.testing.assert_array_equal(model.coef_, LinearSVC(penalty, loss).fit(X, y).coef_)

    def test_l1_leaves_few_features(self):
        """A strong l1 penalty sets weights to exactly 0, and the larger l1_ratio the more."""
        X, y = noisy(300, 30)
        used = [
            np.count_nonzero(LinearSVC("elasticnet", C=0.02, l1_ratio=r, tol=1e-8).fit(X, y).coef_) for r in (0, 0.5, 1)
        ]
        assert used[0] == 30 > used[1] >= used[2] > 0
        one = LinearSVC("l1", C=0.02, tol=1e-8).fit(X, y)
        np.testing.assert_allclose(one.coef_, LinearSVC("elasticnet", C=0.02, l1_ratio=1.0, tol=1e-8).fit(X, y).coef_)


class TestIntercept:
    def test_without(self):
        """fit_intercept=False passes through the origin; intercept_ is 0."""
        X, y = noisy()
        model = LinearSVC(fit_intercept=False).fit(X, y)
        assert model.intercept_ == 0.0
        np.testing.assert_allclose(model.decision_function(np.zeros((1, 8))), 0.0)

    def test_a_large_scaling_is_a_free_intercept(self):
        """intercept_scaling → ∞ is penalize_intercept=False."""
        X, y = noisy()
        X += 3.0
        free = LinearSVC(penalize_intercept=False, tol=1e-9).fit(X, y)
        nearly = LinearSVC(intercept_scaling=1e3, tol=1e-9).fit(X, y)
        np.testing.assert_allclose(nearly.decision_function(X), free.decision_function(X), atol=1e-3)
        # and does not depend on where the origin is
        moved = LinearSVC(penalize_intercept=False, tol=1e-9).fit(X - 7.0, y)
        np.testing.assert_allclose(moved.coef_, free.coef_, atol=1e-4)


class TestQuantile:
    @pytest.mark.parametrize("quantile", [0.1, 0.5, 0.8])
    def test_the_share_below(self, quantile):
        """The pinball loss with a free intercept: quantile of the samples lie below the plane."""
        X, y = load_diabetes(return_X_y=True)
        model = LinearSVR(loss="pinball", quantile=quantile, penalize_intercept=False, C=10, tol=1e-9).fit(X, y)
        residual = y - model.predict(X)
        assert (residual < -1e-3).mean() <= quantile <= (residual < 1e-3).mean()


class TestLimits:
    @every_machine
    def test_time_limit(self, machine):
        """Without any time there is a model, its certificate and a warning with numbers."""
        X, y = noisy(3000, 40)
        clone(machine).fit(X[:50], y[:50])
        with pytest.warns(ConvergenceWarning) as found:
            model = clone(machine).set_params(time_limit=0.0, tol=1e-12).fit(X, y)
        assert [[stage.n_iter for stage in run] for run in model.plan_.runs] == [[0]]
        advice = "Consider pre-processing your data with StandardScaler or MinMaxScaler."
        expected = re.escape(f"Solver terminated early (time_limit=0.0 s).  {advice} ") + NUMBERS
        assert re.fullmatch(expected, str(found[0].message))
        assert found[0].filename == __file__
        assert np.isfinite(values(model, X)).all() and model.certificate_.valid

    @every_machine
    @pytest.mark.parametrize("solver", ["auto", "coordinate"])
    @pytest.mark.parametrize("max_iter", [0, 1, 2])
    def test_max_iter(self, machine, solver, max_iter):
        """scikit-learn's sentence, then ours."""
        X, y = noisy(3000, 40)
        with pytest.warns(ConvergenceWarning) as found:
            model = clone(machine).set_params(max_iter=max_iter, tol=1e-12, solver=solver).fit(X, y)
        sentence = "Liblinear failed to converge, increase the number of iterations. "
        expected = re.escape(f"{sentence}max_iter={max_iter} was reached. ") + NUMBERS
        assert re.fullmatch(expected, str(found[0].message))
        assert model.n_iter_ == max(1, max_iter)
        assert model.certificate_.valid and np.isfinite(values(model, X)).all()

    @pytest.mark.parametrize("solver", ["interior", "coordinate"])
    def test_interrupt(self, solver, ctrl_c):
        """Ctrl-C ends the run with a usable model."""
        X, y = noisy(60_000, 60, n_classes=3)
        LinearSVC(loss="hinge", solver=solver).fit(X[:100], y[:100])
        ctrl_c(0.15)
        model = LinearSVC(loss="hinge", C=100.0, tol=1e-13, solver=solver, max_iter=10**6, time_limit=120.0)
        with pytest.warns(ConvergenceWarning, match="Solver was interrupted; the model fitted so far is usable"):
            model.fit(X, y)
        assert model.certificate_.valid and np.isfinite(model.coef_).all()

    def test_callbacks_and_log(self, callbacks, caplog):
        """scikit-learn's callbacks are called, and the log shows the relative gap."""
        X, y = noisy()
        model = LinearSVC(verbose=1).set_callbacks(callbacks.ProgressBar())
        with caplog.at_level("INFO", logger="mercer"):
            model.fit(X, y)
        assert any("relative gap" in record.getMessage() for record in caplog.records)
        assert len(model.trace_) >= 1

    def test_a_loose_tol_is_kept(self):
        """The relative gap is at most tol, whatever tol is."""
        X, y = noisy(1000, 20)
        for tol in (0.1, 1e-3, 1e-6, 1e-9):
            for loss in ("hinge", "squared_hinge"):
                assert LinearSVC(loss=loss, tol=tol).fit(X, y).certificate_.relative_gap <= tol


class TestWarmStart:
    @pytest.mark.parametrize("solver", ["auto", "coordinate"])
    @every_machine
    def test_the_optimum_stays(self, machine, solver):
        """A second fit begins where the first ended and finds nothing to do; another C finds its own optimum."""
        X, y = noisy(300, 5)
        machine = clone(machine).set_params(tol=1e-7, solver=solver, max_iter=100_000)
        model = clone(machine).set_params(warm_start=True).fit(X, y)
        first, value = model.n_iter_, model.certificate_.primal
        model.fit(X, y)
        assert model.n_iter_ <= first
        np.testing.assert_allclose(model.certificate_.primal, value, rtol=1e-6)
        model.set_params(C=3.0).fit(X, y)
        cold = clone(machine).set_params(C=3.0).fit(X, y)
        np.testing.assert_allclose(model.certificate_.primal, cold.certificate_.primal, rtol=1e-6)

    def test_another_size_starts_anew(self):
        """Other samples, features or classes: nothing is kept that does not fit."""
        X, y = noisy(300, 5)
        model = LinearSVC(warm_start=True).fit(X, y)
        for part, target in ((X[:200], y[:200]), (X[:, :3], y), noisy(300, 5, n_classes=3)):
            assert model.fit(part, target).certificate_.relative_gap <= 1e-4

    def test_it_saves_passes(self):
        """Coordinate descent at nearly the same C needs a fraction of the passes."""
        X, y = noisy(500, 20)
        machine = LinearSVC(loss="hinge", solver="coordinate", tol=1e-3, max_iter=10_000)
        model = clone(machine).set_params(warm_start=True).fit(X, y)
        cold = clone(machine).set_params(C=1.001).fit(X, y)
        assert model.set_params(C=1.001).fit(X, y).n_iter_ < cold.n_iter_


class TestPath:
    def test_each_model_is_that_of_its_C(self):
        """In the order of Cs, whatever it is; the estimator itself is left as it was."""
        X, y = noisy(200, 6, n_classes=3)
        machine = LinearSVC(loss="hinge", tol=1e-7)
        models = machine.path(X, y, [10.0, 0.01, 1.0])
        assert [model.C for model in models] == [10.0, 0.01, 1.0]
        for model in models:
            alone = clone(machine).set_params(C=model.C).fit(X, y)
            np.testing.assert_allclose(model.certificate_.primal, alone.certificate_.primal, rtol=2e-7)
            assert model.n_features_in_ == 6 and model.coef_.shape == (3, 6)
        with pytest.raises(NotFittedError):
            machine.predict(X)

    def test_regression(self):
        """LinearSVR has one, too."""
        X, y = load_diabetes(return_X_y=True)
        models = LinearSVR().path(X, y, np.logspace(-1, 1, 3), sample_weight=np.ones(len(y)))
        assert np.all(np.diff([np.linalg.norm(m.coef_) for m in models]) > 0)

    @pytest.mark.parametrize("Cs", [[], [[1.0]], [1.0, -1.0], [0.0], [np.nan]])
    def test_bad_Cs(self, Cs):
        """A list of positive numbers is needed."""
        with pytest.raises(InvalidInputError, match=r"a path needs a list of at least one positive number\.$"):
            LinearSVC().path(*noisy(), Cs)


class TestPrediction:
    def test_sparsify(self):
        """coef_ may be stored sparsely; predictions stay."""
        X, y = noisy(n_classes=3)
        model = LinearSVC("l1", C=0.1).fit(X, y)
        before = model.decision_function(X)
        assert sp.issparse(model.sparsify().coef_)
        np.testing.assert_allclose(model.decision_function(X), before)
        np.testing.assert_allclose(model.decision_function(sp.csr_array(X)), before)
        assert isinstance(model.densify().coef_, np.ndarray)
        with pytest.raises(NotFittedError):
            LinearSVC().sparsify()

    def test_storage(self):
        """Sparse, float32 and dense samples of one model; blocks of rows do not show."""
        X, y = noisy(3000, 200)
        model = LinearSVC(C=0.01).fit(X, y)
        expected = X @ model.coef_[0] + model.intercept_
        np.testing.assert_allclose(model.decision_function(X), expected)
        np.testing.assert_allclose(model.decision_function(sp.csc_array(X)), expected)
        np.testing.assert_allclose(model.decision_function(X.astype(np.float32)), expected, atol=1e-5)

    @every_machine
    def test_pickle(self, machine):
        """A model survives; it is no larger for the number of its samples."""
        X, y = noisy(2000)
        model = clone(machine).fit(X, y)
        stored = pickle.dumps(model)
        np.testing.assert_array_equal(values(pickle.loads(stored), X), values(model, X))
        assert len(stored) < 12_000

    def test_search(self):
        """Grids over C within a pipeline."""
        X, y = load_breast_cancer(return_X_y=True)
        search = GridSearchCV(make_pipeline(StandardScaler(), LinearSVC()), {"linearsvc__C": [0.01, 1.0]}, cv=3)
        assert search.fit(X, y).best_score_ > 0.95

    def test_threads_do_not_change_the_model(self):
        """Up to tol; the same number of threads gives the same bits."""
        X, y = noisy(3000, 10, n_classes=3)
        models = [LinearSVC(loss="hinge", n_jobs=k, tol=1e-9).fit(X, y) for k in (1, 2, 2)]
        np.testing.assert_allclose(models[0].coef_, models[1].coef_, atol=1e-5)
        np.testing.assert_array_equal(models[1].coef_, models[2].coef_)


class TestMemoryMap:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @every_machine
    def test_rows_on_disk(self, machine, dtype, tmp_path):
        """The same model as from memory."""
        X, y = noisy(5000, 6)
        np.save(tmp_path / "X.npy", X.astype(dtype))
        mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
        one, two = clone(machine).fit(mapped, y), clone(machine).fit(X.astype(dtype), y)
        np.testing.assert_array_equal(one.coef_, two.coef_)


class TestCertify:
    @pytest.mark.parametrize("params", [{}, {"penalize_intercept": False}, {"fit_intercept": False}], ids=named)
    @pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet"])
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_own_models(self, loss, penalty, params):
        """certify confirms the certificate of the fit."""
        X, y = noisy(150, 5, n_classes=3)
        weight = np.random.default_rng(0).uniform(0, 2, len(y))
        model = LinearSVC(penalty, loss, tol=1e-7, class_weight="balanced", **params).fit(X, y, sample_weight=weight)
        proof = certify(model, X, y, weight)
        assert proof.valid and proof.relative_gap <= 2e-7
        np.testing.assert_allclose(proof.primal, model.certificate_.primal, rtol=1e-9)

    @pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive", "pinball"])
    def test_own_regression(self, loss):
        """The same for numbers."""
        X, y = load_diabetes(return_X_y=True)
        model = LinearSVR(loss=loss, quantile=0.2, tol=1e-7).fit(X, y)
        proof = certify(model, X, y)
        assert proof.valid and proof.relative_gap <= 2e-7

    def test_l1_of_scikit_learn(self):
        """scikit-learn's l1 models have a bound as well."""
        X, y = noisy(150, 5)
        model = sklearn.svm.LinearSVC(penalty="l1", tol=1e-7, max_iter=100_000, random_state=0).fit(X, y)
        assert certify(model, X, y).relative_gap < 1e-5


class TestBadInput:
    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    @every_machine
    def test_not_finite(self, machine, bad):
        """NaN and infinity are refused."""
        X, y = noisy(50)
        X[3, 2] = bad
        with pytest.raises(ValueError, match="Input X contains"):
            clone(machine).fit(X, y)
        with pytest.raises(ValueError, match="Input X contains"):
            clone(machine).fit(sp.csr_array(X), y)

    def test_one_class(self):
        """scikit-learn's sentence."""
        X, _ = noisy(50)
        with pytest.raises(InvalidInputError) as found:
            LinearSVC().fit(X, np.ones(50))
        assert str(found.value) == (
            "This solver needs samples of at least 2 classes in the data, but the data contains only one class: "
            "np.float64(1.0)"
        )
        with pytest.raises(InvalidInputError, match="all samples with positive weights belong to the same class"):
            LinearSVC().fit(X, np.arange(50) < 9, sample_weight=(np.arange(50) < 9).astype(float))

    @pytest.mark.parametrize(
        ("params", "word"),
        [
            ({"C": 0.0}, "C"),
            ({"C": -1.0}, "C"),
            ({"C": np.nan}, "C"),
            ({"tol": 0.0}, "tol"),
            ({"penalty": "l3"}, "penalty"),
            ({"loss": "log"}, "loss"),
            ({"l1_ratio": 1.5}, "l1_ratio"),
            ({"max_iter": -1}, "max_iter"),
            ({"intercept_scaling": 0}, "intercept_scaling"),
            ({"solver": "magic"}, "solver"),
            ({"rule": "lazy"}, "rule"),
            ({"time_limit": -1.0}, "time_limit"),
            ({"multi_class": "ovo"}, "multi_class"),
        ],
        ids=str,
    )
    def test_parameters(self, params, word):
        """Each is named."""
        with pytest.raises(ValueError, match=f"The '{word}' parameter of LinearSVC must be"):
            LinearSVC(**params).fit(*noisy(50))

    @every_machine
    def test_shapes(self, machine):
        """Empty data, lengths that differ, weights of another length."""
        X, y = noisy(50)
        for bad_X, bad_y, weight in (
            (X[:0], y[:0], None),
            (X[:, :0], y, None),
            (X, y[:-1], None),
            (X[0], y, None),
            (X, y, np.ones(3)),
            (X, y, np.ones((50, 2))),
            (X, y, np.zeros(50)),
            (X, y, np.full(50, np.nan)),
        ):
            with pytest.raises(ValueError):
                clone(machine).fit(bad_X, bad_y, weight)
        model = clone(machine).fit(X, y)
        with pytest.raises(ValueError, match="X has 3 features"):
            model.predict(X[:, :3])

    @every_machine
    @pytest.mark.parametrize("solver", ["auto", "coordinate"])
    def test_odd_but_possible(self, machine, solver):
        """Zeros, one column, one row of each class, huge and tiny numbers: a certified answer.

        Huge numbers and copies of columns are too ill-conditioned for coordinate descent: it warns.
        """
        rng = np.random.default_rng(0)
        X, y = noisy(60, 4)
        cases = {
            "zeros": np.zeros((60, 4)),
            "ones": np.ones((60, 4)),
            "one column": X[:, :1],
            "huge": 1e8 * X,
            "tiny": 1e-8 * X,
            "wide": rng.normal(size=(60, 300)),
            "copies": np.repeat(X, 50, axis=1),
        }
        for name, data in cases.items():
            slow = solver == "coordinate" and name in ("huge", "copies")
            for store in (np.asarray, sp.csr_array):
                model = clone(machine).set_params(solver=solver)
                with pytest.warns(ConvergenceWarning, match="max_iter=1000 was reached") if slow else nullcontext():
                    model.fit(store(data), y)
                assert (model.certificate_.relative_gap <= 1e-4) is not slow, name
                assert model.certificate_.valid, name
                assert np.isfinite(values(model, store(data))).all(), name
        two = clone(machine).set_params(solver=solver).fit(X[:2], [0, 1])
        assert two.certificate_.relative_gap <= 1e-4

    @every_machine
    @pytest.mark.parametrize("size", [1e160, 1e200, 1e300])
    def test_values_that_cannot_be_squared(self, machine, size):
        """An error says how large they are and what to do, by every solver, dense and sparse."""
        X, y = noisy(60, 4)
        largest = f"{float(np.abs(size * X).max()):g}"
        for solver in ("auto", "interior", "coordinate", "newton", "proximal"):
            for stored in (np.asarray, sp.csr_array):
                with pytest.raises(InvalidInputError) as found:
                    clone(machine).set_params(solver=solver).fit(stored(size * X), y)
                assert str(found.value) == (
                    f"The largest absolute value of X is {largest}, which is too large: the squares have no finite "
                    "sum. Scale the columns of X, for example with StandardScaler."
                )

    @every_machine
    @pytest.mark.parametrize("intercept", [{}, {"penalize_intercept": False}, {"fit_intercept": False}], ids=str)
    @pytest.mark.parametrize("size", [1e-300, 1e-160, 1e100, 1e150])
    def test_finite_weights_of_any_size_of_values(self, machine, intercept, size):
        """Values that can be squared give finite weights by every solver: within tol, or with a warning."""
        X, y = noisy(60, 4)
        solvers = ["auto", "interior", "coordinate", "proximal"]
        for solver in solvers + ["newton"] * machine.loss.startswith("squared"):
            model = clone(machine).set_params(solver=solver, max_iter=20, **intercept)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(size * X, y)
            assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()
            if size < 1:
                assert model.certificate_.valid and model.certificate_.relative_gap <= 1e-4

    def test_targets_that_cannot_be_squared(self):
        """The same for y."""
        X, y = noisy(60, 4)
        with pytest.raises(
            InvalidInputError, match=r"^The largest absolute value of y is 1e\+200, .* Divide y by a con"
        ):
            LinearSVR().fit(X, 1e200 * y)

    @pytest.mark.parametrize(
        "machine", [LinearSVC(C=np.inf), LinearSVC(C=np.inf, multi_class="crammer_singer")], ids=named
    )
    def test_a_hard_margin_of_tiny_values(self, machine):
        """Its weights are too large to be squared: that is said, instead of that the classes are not separable."""
        X, _ = noisy(60, 4)
        with pytest.raises(InvalidInputError, match=r"which is too small for C=inf: .* Scale the columns of X"):
            machine.fit(1e-160 * X, X[:, 0] > 0)

    @every_machine
    @pytest.mark.parametrize("size", [{"C": 1e308}, {"weight": 1e300}], ids=str)
    def test_beyond_all_numbers(self, machine, size):
        """Numbers that cannot be squared end in a warning that says so, or in a certified answer."""
        X, y = noisy(60, 4)
        model = clone(machine).set_params(C=size.get("C", 1.0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y, sample_weight=np.full(60, size.get("weight", 1.0)))
        done = model.certificate_.valid and model.certificate_.relative_gap <= 1e-4
        assert done == all(status is Status.CONVERGED for status in model._statuses)

    def test_what_a_solver_cannot_do(self):
        """Asked for by name, it says so and what to do."""
        X, y = noisy(50)
        with pytest.raises(InvalidInputError, match=r'Use solver="auto"\.$'):
            LinearSVC("l1", solver="coordinate").fit(X, y)
        with pytest.raises(InvalidInputError, match=r'or solver="auto"\.$'):
            LinearSVC(loss="hinge", solver="newton").fit(X, y)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_cost_is_linear_in_n(loss):
    """With eight times the rows the solver reads about eight times as many rows, not 64 times."""
    read = []
    for n in (20_000, 160_000):
        model = LinearSVC(loss=loss, n_jobs=1).fit(*noisy(n, 20))
        read.append(sum(point.active for point in model.trace_))
    assert read[0] > 1260 and read[1] < 16 * read[0]


def test_iris_as_in_the_documentation():
    """LinearSVC and scikit-learn's agree on iris."""
    X, y = load_iris(return_X_y=True)
    ours = LinearSVC(tol=1e-8).fit(X, y)
    theirs = sklearn.svm.LinearSVC(tol=1e-8, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
