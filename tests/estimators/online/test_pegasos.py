"""PegasosClassifier solves the problem that it states, remembers what it must, and says how far it is."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.naming import named
from tests.reference.descent import descent, procedure, procedure_with_kernels

from mercer import SVC, InvalidInputError, PegasosClassifier
from mercer.estimators.online.pegasos import Draws
from mercer.kernels import CallableKernel, Gaussian, Linear, Polynomial


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def count_common(X, Z):
    return np.array([[float(len(x & z)) for z in Z] for x in X])


class TestProblem:
    @pytest.mark.parametrize("kernel", ["linear", Gaussian(gamma=0.05)], ids=named)
    def test_it_reaches_the_svm(self, kernel):
        """With many steps its objective is that of SVC with C = 1/(lam m), to within its own certificate."""
        X, y = cancer()
        lam = 0.05
        model = PegasosClassifier(lam, kernel=kernel, max_iter=400, fit_intercept=False, random_state=0).fit(X, y)
        exact = SVC(kernel=kernel, C=1 / (lam * len(y)), fit_intercept=False).fit(X, y).certificate_
        assert model.certificate_.dual <= exact.primal
        assert exact.dual <= model.certificate_.primal <= 1.02 * exact.primal
        assert model.certificate_.primal == pytest.approx(model.objective_trace_[-1].objective / lam)
        assert model.certificate_.relative_gap < 0.05

    def test_lemma_16_3(self):
        """The fit with a kernel and the fit on its explicit features have the same values ([SSBD] Lemma 16.3)."""
        X, y = iris()
        kernel = Polynomial(degree=2, coef0=1.0)
        psi = kernel.feature_map(X)
        settings = {"lam": 0.01, "max_iter": 10, "random_state": 3}
        ours = PegasosClassifier(kernel=kernel, **settings).fit(X, y)
        explicit = PegasosClassifier(**settings).fit(psi(X), y)
        np.testing.assert_allclose(ours.decision_function(X), explicit.decision_function(psi(X)), rtol=1e-8, atol=1e-8)
        np.testing.assert_array_equal(ours.n_updates_, explicit.n_updates_)
        np.testing.assert_allclose(ours.rkhs_norm_, np.linalg.norm(explicit.coef_, axis=1), rtol=1e-8)

    def test_dense_sparse_and_single(self):
        """The same samples in another form give the same model."""
        X, y = iris()
        X[np.abs(X) < 0.5] = 0.0
        dense, sparse = (PegasosClassifier(random_state=0).fit(form(X), y) for form in (np.asarray, sp.csr_matrix))
        np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-10)
        np.testing.assert_allclose(sparse.predict(sp.csr_matrix(X)), dense.predict(X))
        exact = X.astype(np.float32).astype(np.float64)
        single, double = (PegasosClassifier(random_state=0).fit(Z, y) for Z in (X.astype(np.float32), exact))
        np.testing.assert_allclose(single.coef_, double.coef_, rtol=1e-5)

    def test_threads(self):
        """The number of threads does not change a bit."""
        X, y = iris()
        one, two = (PegasosClassifier(n_jobs=n, random_state=0).fit(X, y).coef_ for n in (1, 2))
        np.testing.assert_array_equal(one, two)

    def test_memory_does_not_matter(self):
        """With and without a stored kernel matrix the model is the same."""
        X, y = iris()
        small, large = (
            PegasosClassifier(kernel=Gaussian(gamma=0.2), cache_size=size, random_state=0)
            .fit(X, y)
            .decision_function(X)
            for size in (1e-3, 100)
        )
        np.testing.assert_allclose(small, large, rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize("sampling", ["uniform", "shuffled"])
    def test_weights_are_repetitions(self, sampling):
        """Weighted samples have the optimum of repeated ones: the certificate's bounds meet those of SVC."""
        X, y = cancer()
        weight = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
        lam = 0.05
        model = PegasosClassifier(lam, max_iter=300, sampling=sampling, fit_intercept=False, random_state=0)
        model.fit(X, y, sample_weight=weight)
        exact = SVC(kernel="linear", C=1 / (lam * weight.sum()), fit_intercept=False).fit(X, y, weight).certificate_
        assert model.certificate_.dual <= exact.primal
        assert exact.dual <= model.certificate_.primal <= 1.03 * exact.primal

    @pytest.mark.parametrize(
        "options", [{"average": "tail"}, {"average": "last"}, {"batch_size": 5}, {"project": True}], ids=named
    )
    def test_options(self, options):
        """Each variation comes near the same optimum."""
        X, y = cancer()
        lam = 0.05
        model = PegasosClassifier(lam, max_iter=300, fit_intercept=False, random_state=0, **options).fit(X, y)
        exact = SVC(kernel="linear", C=1 / (lam * len(y)), fit_intercept=False).fit(X, y).certificate_
        assert exact.dual <= model.certificate_.primal <= 1.05 * exact.primal
        bounded = "average" not in options
        assert np.isfinite(model.objective_trace_[-1].bound) == bounded

    def test_n_steps(self):
        """T can be given itself; the trace ends there, after points at 1, 2, 4, … passes."""
        X, y = cancer()
        model = PegasosClassifier(n_steps=2000, random_state=0).fit(X, y)
        assert [point.steps for point in model.objective_trace_] == [569, 1138, 2000]
        assert model.t_ == 2000 and model.n_iter_ == 4
        assert all(point.bound > 0 for point in model.objective_trace_)

    def test_a_run_that_reaches_its_tolerance_is_looked_at_once(self):
        """The last evaluation is the one that ended it: every point of the trace has its own number of steps."""
        X, y = cancer()
        model = PegasosClassifier(0.1, max_iter=5000, tol=0.2, random_state=0).fit(X, y)
        steps = [point.steps for point in model.objective_trace_]
        assert model.certificate_.relative_gap <= 0.2 and len(set(steps)) == len(steps) and steps[-1] == model.t_

    def test_tolerance(self):
        """With tol it ends as soon as the gap is small enough, and warns in numbers if it never is."""
        X, y = cancer()
        model = PegasosClassifier(0.1, tol=0.2, max_iter=1000, random_state=0).fit(X, y)
        assert model.certificate_.relative_gap <= 0.2 and model.n_iter_ < 1000
        with pytest.warns(ConvergenceWarning, match=r"max_iter=2, tol=1e-05\)\. The model is within \d\.\de"):
            PegasosClassifier(0.1, tol=1e-5, max_iter=2, random_state=0).fit(X, y)

    @pytest.mark.parametrize("kernel", ["linear", "rbf"])
    def test_samples_too_large(self, kernel):
        """Samples whose squares overflow are refused with a next step."""
        X, y = cancer()
        with pytest.raises(ValueError, match="need to be preprocessed"):
            PegasosClassifier(kernel=kernel).fit(X * 1e200, y)

    def test_lam_too_small(self):
        """A λ at the end of the range of numbers leaves a certificate that promises nothing."""
        X, y = cancer()
        found = PegasosClassifier(1e-300, max_iter=1, random_state=0).fit(X, y).certificate_
        assert found.gap == np.inf and not np.isnan([found.primal, found.dual]).any()

    def test_indefinite(self):
        """An indefinite kernel has no valid certificate, and a warning says so."""
        X, y = cancer()
        with pytest.warns(UserWarning, match="not positive semidefinite"):
            model = PegasosClassifier(kernel=lambda A, B: -(A @ B.T), max_iter=2, random_state=0).fit(X, y)
        assert not model.certificate_.valid


def draws(model, n, n_steps):
    """The samples of each step of a fit to n samples of equal weight."""
    drawn = Draws(model._generator(), np.ones(n), model.sampling == "shuffled", model.batch_size)
    return [drawn.take(1).tolist() for _ in range(n_steps)]


ETAS = {"number": 0.3, "1/(λt)": lambda t: 1 / (0.1 * t), "root": lambda t: 0.5 / np.sqrt(t)}


class TestStepSizes:
    """The procedures of the notes, number for number (tests/reference/descent.py)."""

    def samples(self, n=40):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, 3))
        return X, np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1, -1)

    @pytest.mark.parametrize("kernel", ["linear", "with kernels"])
    def test_the_last_iterate_of_the_procedure(self, kernel):
        """average="last" is w⁽ᵀ⁾ of [SSBD] 15.5 and 16.3, "all" the mean of w⁽¹⁾, …, w⁽ᵀ⁾."""
        X, y = self.samples()
        T, lam, K = 300, 0.1, (1 + X @ X.T) ** 2
        for average in ("last", "all"):
            model = PegasosClassifier(lam, n_steps=T, average=average, fit_intercept=False, random_state=0)
            order = draws(model, len(y), T)
            if kernel == "linear":
                iterates, found = procedure(X, y, lam, order), model.fit(X, y).coef_[0]
            else:
                iterates = [K @ alpha for alpha in procedure_with_kernels(K, y, lam, order)]
                found = model.set_params(kernel="inhomogeneous", degree=2).fit(X, y).decision_function(X)
            expected = iterates[-1] if average == "last" else np.mean(iterates, axis=0)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)

    @pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, "kernel"], ids=["dense", "csr", "kernel"])
    @pytest.mark.parametrize("average", ["all", "tail", "last"])
    @pytest.mark.parametrize("batch_size", [1, 7])
    @pytest.mark.parametrize("eta", ETAS.values(), ids=ETAS)
    def test_free_sizes_and_batches(self, eta, batch_size, average, storage):
        """[D6] Note 26: w := w − η_t v_t with the mean subgradient of a batch."""
        X, y = self.samples()
        T, lam = 250, 0.1
        model = PegasosClassifier(
            lam, n_steps=T, step_size=eta, batch_size=batch_size, average=average, fit_intercept=False, random_state=1
        )
        iterates = descent(X, y, lam, draws(model, len(y), T), eta if callable(eta) else lambda t: eta)
        expected = {"all": np.mean(iterates, axis=0), "tail": np.mean(iterates[T // 2 :], axis=0), "last": iterates[-1]}
        if storage == "kernel":
            found = model.set_params(kernel=1.0 * Linear()).fit(X, y).decision_function(X)
            np.testing.assert_allclose(found, X @ expected[average], rtol=1e-8, atol=1e-10)
        else:
            found = model.fit(storage(X), y).coef_[0]
            np.testing.assert_allclose(found, expected[average], rtol=1e-8, atol=1e-10)

    def test_the_constant_feature(self):
        """[D6]: ϖ = (b, w), χ = (1, x)."""
        X, y = self.samples()
        model = PegasosClassifier(0.1, n_steps=100, step_size=0.2, average="last", random_state=1)
        extended = np.column_stack([np.ones(len(y)), X])
        last = descent(extended, y, 0.1, draws(model, len(y), 100), lambda t: 0.2)[-1]
        model.fit(X, y)
        np.testing.assert_allclose([model.intercept_[0], *model.coef_[0]], last, rtol=1e-9, atol=1e-11)

    def test_pegasos_is_one_of_them(self):
        """step_size="pegasos" is η_t = 1/(λ(t + 1))."""
        X, y = self.samples()
        options = dict(max_iter=5, random_state=0, batch_size=3)
        own = PegasosClassifier(0.1, **options).fit(X, y)
        given = PegasosClassifier(0.1, step_size=lambda t: 1 / (0.1 * (t + 1)), **options).fit(X, y)
        np.testing.assert_allclose(given.coef_, own.coef_, rtol=1e-9)
        np.testing.assert_allclose(given.intercept_, own.intercept_, rtol=1e-9)

    @pytest.mark.parametrize("kernel", ["linear", "rbf"])
    def test_certificate(self, kernel):
        """The optimum is between primal and dual, and the gap closes; there is no bound in expectation."""
        X, y = self.samples()
        lam = 0.1
        exact = (
            SVC(C=1 / (lam * len(y)), kernel=kernel, gamma=0.5, fit_intercept=False, tol=1e-8).fit(X, y).certificate_
        )
        model = PegasosClassifier(
            lam, kernel=kernel, gamma=0.5, max_iter=500, step_size=lambda t: 2 / (lam * (t + 9)),
            fit_intercept=False, random_state=0,
        ).fit(X, y)  # fmt: skip
        found = model.certificate_
        assert found.valid and found.dual <= exact.primal * (1 + 1e-6) and found.primal >= exact.dual * (1 - 1e-6)
        assert found.relative_gap < 0.1
        assert model.objective_trace_[-1].bound == np.inf

    def test_three_classes_threads_and_parts(self):
        """One-vs-rest in any number of threads; partial_fit goes on with the number of the next step."""
        X, _ = self.samples()
        y = np.digitize(X[:, 0], [-0.5, 0.5])
        options = dict(step_size=lambda t: 1 / (0.1 * t), random_state=0, fit_intercept=False)
        one, two = (PegasosClassifier(0.1, n_jobs=jobs, **options).fit(X, y).coef_ for jobs in (1, 2))
        np.testing.assert_array_equal(one, two)
        model, labels = PegasosClassifier(0.1, average="last", **options), np.where(y > 0, 1, -1)
        order = []
        for part in (slice(0, 15), slice(15, 40)):
            generator = model._generator()
            order += [[part.start + i] for i in generator.permutation(part.stop - part.start)]
            model.partial_fit(X[part], labels[part], [-1, 1])
        iterates = descent(X, labels, 0.1, [*order, [0]], lambda t: 1 / (0.1 * t))
        np.testing.assert_allclose(model.coef_[0], iterates[-1], rtol=1e-9, atol=1e-12)

    @pytest.mark.parametrize(
        ("params", "message"),
        [
            (
                {"step_size": 50.0, "lam": 0.1},
                "step_size is 50.0: with lam=0.1 it must be a number above 0 and below 2/lam = 20, or the steps "
                "diverge.",
            ),
            (
                {"step_size": lambda t: 1.0 - t, "lam": 0.1},
                "step_size(1) is 0.0: with lam=0.1 it must be a number above 0 and below 2/lam = 20, or the steps "
                "diverge.",
            ),
            (
                {"step_size": lambda t: "a", "lam": 0.1},
                "step_size(1) is 'a': with lam=0.1 it must be a number above 0 and below 2/lam = 20, or the steps "
                "diverge.",
            ),
            (
                {"step_size": 0.1, "project": True},
                "project=True cannot be used with step_size=0.1: use step_size='pegasos', or project=False.",
            ),
        ],
        ids=["large", "zero", "text", "project"],
    )
    def test_errors(self, params, message):
        """They name the step and what is allowed."""
        with pytest.raises(InvalidInputError) as error:
            PegasosClassifier(**params).fit(*self.samples())
        assert str(error.value) == message
        for wrong in ("optimal", 0.0, -1.0, None):
            with pytest.raises(ValueError, match="step_size"):
                PegasosClassifier(step_size=wrong).fit(*self.samples())


class TestParts:
    def test_one_pass(self):
        """partial_fit in parts is a run of as many steps; t goes on."""
        X, y = cancer()
        model = PegasosClassifier(random_state=0)
        for part in np.array_split(np.random.default_rng(0).permutation(len(y)), 7):
            model.partial_fit(X[part], y[part], classes=[0, 1])
        assert model.t_ == len(y)
        assert model.score(X, y) > 0.9
        assert not hasattr(model, "certificate_")

    def test_with_kernels(self):
        """With a kernel, parts give what the linear run on the explicit features gives; samples are remembered."""
        X, y = iris()
        kernel = Polynomial(degree=2, coef0=1.0)
        psi = kernel.feature_map(X)
        ours, explicit = PegasosClassifier(0.1, kernel=kernel, random_state=0), PegasosClassifier(0.1, random_state=0)
        for part in np.array_split(np.random.default_rng(0).permutation(len(y)), 5):
            ours.partial_fit(X[part], y[part], classes=np.unique(y))
            explicit.partial_fit(psi(X[part]), y[part], classes=np.unique(y))
        np.testing.assert_allclose(ours.decision_function(X), explicit.decision_function(psi(X)), rtol=1e-8, atol=1e-8)

    def test_after_fit(self):
        """partial_fit goes on from a fit; its certificate, of other samples, is gone."""
        X, y = cancer()
        model = PegasosClassifier(kernel=Gaussian(gamma=0.05), max_iter=3, budget=50, random_state=0).fit(X, y)
        steps = model.t_
        model.partial_fit(X[:40], y[:40])
        assert model.t_ == steps + 40
        assert len(model.support_vectors_) <= 50
        assert not hasattr(model, "certificate_")

    def test_sets(self):
        """Samples may be anything that the kernel understands, also in parts."""
        baskets = [{"milk", "bread"}, {"milk"}, {"nappies", "milk"}, {"nappies"}] * 10
        y = np.array([0, 0, 1, 1] * 10)
        model = PegasosClassifier(kernel=CallableKernel(count_common), random_state=0)
        for start in (0, 20):
            model.partial_fit(baskets[start : start + 20], y[start : start + 20], classes=[0, 1])
        assert model.predict([{"nappies", "bread"}, {"bread"}]).tolist() == [1, 0]

    def test_errors(self):
        """A run that cannot be continued is an error that says why."""
        X, y = iris()
        with pytest.raises(ValueError, match="classes must be passed on the first call"):
            PegasosClassifier().partial_fit(X, y)
        model = PegasosClassifier().partial_fit(X, y, classes=[0, 1, 2])
        with pytest.raises(ValueError, match=r"y contains the label 7, but the classes are \[0, 1, 2\]"):
            model.partial_fit(X[:1], [7])
        with pytest.raises(ValueError, match="is not the same as on last call"):
            model.partial_fit(X, y, classes=[0, 1])
        with pytest.raises(InvalidInputError, match="X is sparse, but earlier samples were dense"):
            model.partial_fit(sp.csr_matrix(X), y)
        with pytest.raises(InvalidInputError, match="average='tail' needs the total number of steps"):
            PegasosClassifier(average="tail").partial_fit(X, y, classes=[0, 1, 2])
        assert not hasattr(PegasosClassifier(kernel="precomputed"), "partial_fit")
        with pytest.raises(InvalidInputError, match="budget=5 cannot be used with the linear kernel"):
            PegasosClassifier(budget=5).fit(X, y)


class TestEcosystem:
    def test_search_and_pickle(self):
        """Kernel parameters are searched, models survive the way to another process."""
        X, y = iris()
        search = GridSearchCV(
            PegasosClassifier(kernel=Gaussian(), random_state=0),
            {"kernel__gamma": [0.01, 0.5], "lam": [0.1, 0.01]},
            cv=3,
        ).fit(X, y)
        assert search.best_score_ > 0.9
        copy = pickle.loads(pickle.dumps(search.best_estimator_))
        np.testing.assert_array_equal(copy.decision_function(X), search.best_estimator_.decision_function(X))
        copy.partial_fit(X[:10], y[:10])

    def test_frames_and_names(self):
        """Data frames and labels of any kind."""
        X, y = iris()
        frame = pd.DataFrame(X, columns=list("abcd"))
        names = np.array(["setosa", "versicolor", "virginica"])[y]
        model = make_pipeline(StandardScaler(), PegasosClassifier(max_iter=50, random_state=0)).fit(frame, names)
        assert model.score(frame, names) > 0.85
        assert model[-1].coef_.shape == (3, 4)

    def test_precomputed(self):
        """A kernel matrix and its kernel are the same, for fit and for predict."""
        X, y = iris()
        K = Gaussian(gamma=0.2)(X)
        known = PegasosClassifier(kernel="precomputed", random_state=0).fit(K, y)
        other = PegasosClassifier(kernel=Gaussian(gamma=0.2), random_state=0).fit(X, y)
        np.testing.assert_allclose(known.decision_function(K[:9]), other.decision_function(X[:9]), rtol=1e-9)

    @pytest.mark.parametrize("kernel", ["linear", 1.0 * Linear()], ids=named)
    def test_time_limit(self, kernel):
        """No time at all leaves w = 0, a certificate and a warning with numbers."""
        X, y = cancer()
        ended = r"time_limit=0 s\), after 0 steps\. The model is not solved \(relative gap 1\.0e\+00"
        with pytest.warns(ConvergenceWarning, match=ended):
            model = PegasosClassifier(kernel=kernel, time_limit=0).fit(X, y)
        assert model.rkhs_norm_ == 0.0 and model.t_ == 0
        assert model.predict(X[:3]).shape == (3,)

    def test_verbose(self, caplog):
        """Evaluations are logged with their dual value."""
        X, y = cancer()
        with caplog.at_level("INFO", logger="mercer"):
            PegasosClassifier(verbose=True, max_iter=4, random_state=0).fit(X, y)
        assert len(caplog.records) == 3 and "dual" in caplog.text


def test_one_by_one_is_cheap():
    """A stream of single samples asks for a kernel value with each sample that is remembered, and no more."""
    X, y = cancer()
    model = PegasosClassifier(kernel=CallableKernel(Counting()), random_state=0)
    model.partial_fit(X[:200], y[:200], classes=[0, 1])
    model.kernel.function.count = 0
    remembered = len(model._memory_samples)
    model.partial_fit(X[200:201], y[200:201])
    # one row for the step, and k(x, x), which a function gives in blocks of 16
    assert model.kernel.function.count <= 20 * (remembered + 1)
    K = Gaussian(gamma=0.05)(model.support_vectors_)
    assert model.rkhs_norm_[0] ** 2 == pytest.approx(float(model.dual_coef_[0] @ K @ model.dual_coef_[0]))


class Counting:
    """A Gaussian kernel that counts its values."""

    def __init__(self):
        self.count = 0

    def __call__(self, A, B):
        self.count += len(A) * len(B)
        return Gaussian(gamma=0.05)(A, B)
