"""KernelRidge solves its system to float64's accuracy in every way, and says how far it is if it does not."""

import pickle
import re
import signal

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from tests.clocks import Countdown
from tests.naming import named

from mercer import SVR, KernelRidge
from mercer.exceptions import (
    InvalidInputError,
    NotPositiveSemidefiniteError,
    NotPositiveSemidefiniteWarning,
    NotSymmetricError,
)
from mercer.gram.operator import Data
from mercer.kernels import CallableKernel, Gaussian, Linear, Precomputed
from mercer.problems.clock import Clock
from mercer.problems.solution import Options, Status
from mercer.ridge.solver import solve

WAYS = [{"precision": "float32"}, {"precision": "float64"}, {"solver": "cg", "tol": 1e-12}]
every_way = pytest.mark.parametrize("way", WAYS, ids=named)


def sample(n=150, d=4, targets=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = np.sin(X @ rng.normal(size=(d, targets))) + 0.1 * rng.normal(size=(n, targets)) + 2.0
    return X, Y[:, 0] if targets == 1 else Y


def closed_form(K, y, alpha, weight=None, intercept=False):
    """β and b from numpy's solver of the whole system."""
    n = len(K)
    weight = np.ones(n) if weight is None else weight
    M = np.zeros((n + 1, n + 1))
    M[:n, :n] = K + np.diag(alpha / weight)
    M[n, :n] = M[:n, n] = 1.0
    if not intercept:
        return np.linalg.solve(M[:n, :n], y), 0.0
    solved = np.linalg.solve(M, np.append(y, 0.0))
    return solved[:n], solved[n]


class TestOptimum:
    @every_way
    @pytest.mark.parametrize("intercept", [False, True])
    @pytest.mark.parametrize("alpha", [1e-6, 1e-3, 1.0, 1e6, 1e12])
    def test_closed_form(self, way, intercept, alpha):
        """Every way gives the solution of the system, with weights and an intercept or without."""
        X, y = sample()
        weight = np.random.default_rng(1).uniform(0.1, 3.0, len(y))
        model = KernelRidge(alpha, kernel="rbf", gamma=0.3, fit_intercept=intercept, **way).fit(X, y, weight)
        beta, b = closed_form(rbf_kernel(X, gamma=0.3), y, alpha, weight, intercept)
        f = rbf_kernel(X, gamma=0.3) @ beta + b
        np.testing.assert_allclose(model.predict(X), f, rtol=1e-7, atol=1e-7 * np.abs(f).max())
        np.testing.assert_allclose(model.intercept_, b, rtol=1e-6, atol=1e-9)
        assert model.certificate_.valid and model.certificate_.relative_gap < 1e-8

    @pytest.mark.parametrize("n_jobs", [1, 2])
    @pytest.mark.parametrize("alpha", [1e-2, 1.0])
    def test_mixed_precision_is_as_exact(self, alpha, n_jobs):
        """A float32 factor with refinement ends where a float64 factor does: the error is that of the condition."""
        X, y = sample(2300)
        mixed = KernelRidge(alpha, kernel="rbf", n_jobs=n_jobs).fit(X, y)
        double = KernelRidge(alpha, kernel="rbf", n_jobs=n_jobs, precision="float64").fit(X, y)
        assert 2 <= mixed.n_iter_ <= 10  # it was refined, and converged
        condition = 1.0 + 2300 / alpha
        limit = 100 * np.finfo(float).eps * condition * np.abs(double.dual_coef_).max()
        assert np.abs(mixed.dual_coef_ - double.dual_coef_).max() < limit
        assert mixed.certificate_.relative_gap < 1e-12

    def test_float32_gives_way(self):
        """Where λ is below what float32 resolves the factor is computed in float64."""
        X, y = sample(1100, d=2)
        model = KernelRidge(1e-9, kernel="rbf", precision="float32").fit(X, y)
        double = KernelRidge(1e-9, kernel="rbf", precision="float64").fit(X, y)
        np.testing.assert_array_equal(model.dual_coef_, double.dual_coef_)

    def test_exercise_16_3(self):
        """λ'|w|² + 1/(2m) Σ (⟨w, φ(x)⟩ − y)² is minimised with alpha = 2mλ'."""
        X, y = sample()
        factor, K = 0.01, X @ X.T
        beta = KernelRidge(2 * len(y) * factor).fit(X, y).dual_coef_
        gradient = 2 * factor * K @ beta + K @ (K @ beta - y) / len(y)
        assert np.abs(gradient).max() < 1e-9

    def test_certificate_is_the_objective(self):
        """Primal and dual are λ/2 |f|² + ½ Σ w (y − f − b)², and grow apart when β is wrong."""
        X, y = sample()
        weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
        model = KernelRidge(0.5, kernel="rbf", fit_intercept=True).fit(X, y, weight)
        residual = y - model.predict(X)
        expected = 0.25 * model.rkhs_norm_**2 + 0.5 * weight @ residual**2
        np.testing.assert_allclose([model.certificate_.primal, model.certificate_.dual], expected, rtol=1e-12)
        with pytest.warns(ConvergenceWarning):
            early = KernelRidge(0.5, kernel="rbf", fit_intercept=True, solver="cg", max_iter=0).fit(X, y, weight)
        assert early.certificate_.dual <= expected <= early.certificate_.primal
        assert early.certificate_.gap > 1.0

    def test_is_svr_with_a_squared_loss(self):
        """SVR with a squared tube of width 0 is the same machine, solved by another solver."""
        X, y = sample(80)
        ours = KernelRidge(0.5, kernel=Gaussian(0.2), fit_intercept=True).fit(X, y)
        loss = "squared_epsilon_insensitive"
        svr = SVR(kernel=Gaussian(0.2), C=1.0, epsilon=0.0, loss=loss, tol=1e-10).fit(X, y)
        np.testing.assert_allclose(ours.predict(X), svr.predict(X), atol=1e-8)


class TestSklearn:
    @pytest.mark.parametrize("kernel", ["linear", "poly", "polynomial", "rbf", "laplacian", "sigmoid", "cosine"])
    @pytest.mark.parametrize("params", [{}, {"gamma": 0.2, "coef0": 0.5, "degree": 2}], ids=named)
    def test_kernels_by_name(self, kernel, params):
        """scikit-learn's names mean what they mean there."""
        X, y = sample(targets=2)
        alpha = [20.0, 100.0]  # large enough for the sigmoid
        ours = KernelRidge(alpha, kernel=kernel, **params).fit(X, y)
        theirs = SklearnKernelRidge(alpha, kernel=kernel, **params).fit(X, y)
        np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-10)
        np.testing.assert_allclose(ours.predict(X[:9]), theirs.predict(X[:9]), atol=1e-9)

    def test_histogram_kernels(self):
        """chi2 needs no gamma; additive_chi2, no kernel by itself, gives scikit-learn's stationary point."""
        X, y = sample()
        X = np.abs(X)
        ours, theirs = (kind(kernel="chi2", gamma=1.0).fit(X, y) for kind in (KernelRidge, SklearnKernelRidge))
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-10)
        np.testing.assert_array_equal(KernelRidge(kernel="chi2").fit(X, y).dual_coef_, ours.dual_coef_)
        with pytest.warns(NotPositiveSemidefiniteWarning, match=r"its smallest eigenvalue is -\d"):
            ours = KernelRidge(kernel="additive_chi2").fit(X, y)
        with pytest.warns(UserWarning, match="Singular"):
            theirs = SklearnKernelRidge(kernel="additive_chi2").fit(X, y)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-7)

    def test_functions_of_two_samples(self):
        """A function is called for each pair, with kernel_params; the model can be pickled and predicts the same."""
        X, y = sample(40)
        ours = KernelRidge(kernel=polynomial_of_two, kernel_params={"power": 2}).fit(X, y)
        theirs = SklearnKernelRidge(kernel=polynomial_of_two, kernel_params={"power": 2}).fit(X, y)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-9)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(ours)).predict(X), ours.predict(X))

    def test_intercept_is_that_of_ridge(self):
        """With a linear kernel and an intercept it is Ridge, also its coef_."""
        X, y = load_diabetes(return_X_y=True)
        weight = np.random.default_rng(0).uniform(0.0, 2.0, len(y))
        ours = KernelRidge(0.1, fit_intercept=True).fit(X, y, weight)
        theirs = Ridge(0.1, fit_intercept=True).fit(X, y, weight)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-10)
        assert not hasattr(KernelRidge(kernel="rbf").fit(X, y), "coef_")

    def test_scalar_weight(self):
        """A single number weights all samples."""
        X, y = sample()
        np.testing.assert_allclose(
            KernelRidge(1.0).fit(X, y, 2.0).predict(X), SklearnKernelRidge(0.5).fit(X, y).predict(X)
        )

    def test_grid_search(self):
        """λ and the parameters of a kernel object are searched together."""
        X, y = sample()
        grid = {"alpha": [1e-2, 1.0], "kernel__gamma": [0.01, 0.3]}
        search = GridSearchCV(KernelRidge(kernel=Gaussian()), grid, cv=3).fit(X, y)
        assert search.best_estimator_.kernel == Gaussian(gamma=search.best_params_["kernel__gamma"])


def polynomial_of_two(x, z, power=1):
    return (x @ z + 1.0) ** power


class TestInput:
    @pytest.mark.parametrize("store", [sp.csr_array, sp.csc_matrix, sp.coo_array])
    def test_sparse(self, store):
        """Sparse samples are their numbers; a model takes either kind, whichever it was fitted to."""
        X, y = sample()
        X[np.abs(X) < 0.8] = 0.0
        for kernel in ("rbf", 0.5 * Gaussian(0.2) + Linear()):
            dense, sparse = KernelRidge(kernel=kernel).fit(X, y), KernelRidge(kernel=kernel).fit(store(X), y)
            for model in (dense, sparse):
                for samples in (X, store(X)):
                    np.testing.assert_allclose(model.predict(samples), dense.predict(X), atol=1e-10)

    def test_float32_stays(self):
        """float32 samples are kept as they are, not copied, and give float64's answer for these samples."""
        X, y = sample()
        single = np.ascontiguousarray(X, dtype=np.float32)
        model = KernelRidge(kernel="rbf").fit(single, y)
        assert model.X_fit_ is single
        expected = KernelRidge(kernel="rbf").fit(single.astype(float), y).predict(single)
        np.testing.assert_allclose(model.predict(single), expected, rtol=1e-12)

    @pytest.mark.parametrize("shape", [(), (1,), (3,)])
    def test_targets(self, shape):
        """Several targets are as many problems; the shapes are scikit-learn's."""
        X, y = sample()
        Y = np.stack([y * (k + 1) for k in range(int(np.prod(shape)))], axis=-1).reshape(len(y), *shape)
        model = KernelRidge(0.1, kernel="rbf", fit_intercept=True).fit(X, Y)
        assert model.dual_coef_.shape == Y.shape == model.predict(X).shape
        assert np.shape(model.intercept_) == shape
        one = KernelRidge(0.1, kernel="rbf", fit_intercept=True).fit(X, y).predict(X)
        np.testing.assert_allclose(model.predict(X).reshape(len(y), -1)[:, 0], one, rtol=1e-10)
        assert len(model.certificates_) == int(np.prod(shape))

    @every_way
    def test_alpha_of_each_target(self, way):
        """Each target may have its own λ."""
        X, Y = sample(targets=3)
        alpha = [0.1, 10.0, 0.1]
        model = KernelRidge(alpha, kernel="rbf", fit_intercept=True, **way).fit(X, Y)
        for k, value in enumerate(alpha):
            one = KernelRidge(value, kernel="rbf", fit_intercept=True, **way).fit(X, Y[:, k])
            np.testing.assert_allclose(model.dual_coef_[:, k], one.dual_coef_, atol=1e-9)

    @every_way
    def test_weights_are_repetitions(self, way):
        """A weight of 2 is a sample twice, a weight of 0 none."""
        X, y = sample(60)
        weight = np.arange(60) % 3
        weighted = KernelRidge(0.1, kernel="rbf", fit_intercept=True, **way).fit(X, y, weight)
        repeated = KernelRidge(0.1, kernel="rbf", fit_intercept=True, **way)
        repeated.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
        np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-8)
        assert (weighted.dual_coef_[weight == 0] == 0).all()

    def test_objects(self):
        """With a kernel for them samples are any objects."""
        words = ["tree", "three", "free", "house", "mouse", "louse"]
        common = CallableKernel(lambda A, B: np.array([[float(len(set(a) & set(b))) for b in B] for a in A]))
        model = KernelRidge(0.1, kernel=common).fit(words, [1, 1, 1, 2, 2, 2])
        assert model.predict(["blouse"])[0] > model.predict(["bee"])[0]

    def test_pickle_is_not_larger_after_predicting(self):
        """Data that prediction prepares are not stored."""
        X, y = sample()
        model = KernelRidge(kernel="rbf").fit(X, y)
        before = len(pickle.dumps(model))
        model.predict(X)
        assert len(pickle.dumps(model)) == before


class TestSingular:
    @pytest.mark.parametrize("intercept", [False, True])
    def test_no_penalty(self, intercept):
        """alpha=0 with a singular matrix is least squares, said in scikit-learn's words and certified."""
        X, y = sample()
        with pytest.warns(UserWarning) as found:
            model = KernelRidge(0, fit_intercept=intercept).fit(X, y)
        assert str(found[0].message).startswith(
            "Singular matrix in solving dual problem. Using least-squares solution instead. The model is within 0 of "
        )
        expected = Ridge(1e-12, fit_intercept=intercept).fit(X, y).predict(X)
        np.testing.assert_allclose(model.predict(X), expected, atol=1e-9)
        assert model.certificate_.valid and model.fit_status_ == 0
        np.testing.assert_allclose(model.certificate_.dual, 0.5 * np.sum((y - expected) ** 2), rtol=1e-9)

    def test_no_penalty_without_the_matrix(self):
        """Conjugate gradients on a singular system without a solution end soon, and say how far they came."""
        X, y = sample()
        with pytest.warns(ConvergenceWarning, match="rounding allows no further progress"):
            model = KernelRidge(0, solver="cg").fit(X, y)
        assert model.certificate_.valid and model.n_iter_ < 1000
        assert np.abs(model.predict(X)).max() <= 2 * np.abs(y).max()

    def test_no_penalty_and_regular(self):
        """alpha=0 with a regular matrix goes through all samples."""
        X, y = sample()
        model = KernelRidge(0, kernel="laplacian").fit(X, y)
        np.testing.assert_allclose(model.predict(X), y, rtol=1e-10)
        assert model.certificate_.gap < 1e-15

    @every_way
    def test_duplicated_rows(self, way):
        """Samples that occur twice with different targets share the mean; the penalty decides on the rest."""
        X, y = sample(60)
        model = KernelRidge(1e-6, kernel="laplacian", **way).fit(np.vstack([X, X]), np.append(y, y + 1))
        np.testing.assert_allclose(model.predict(X), y + 0.5, atol=1e-4)

    @pytest.mark.parametrize("intercept", [False, True])
    def test_penalty_below_rounding(self, intercept):
        """A λ that float64 cannot see beside K is no different from 0: predictions are exact, with a warning."""
        X, y = np.ones((100, 3)), np.arange(100.0)
        with pytest.warns(UserWarning, match="Singular matrix"):
            model = KernelRidge(1e-13, kernel="rbf", fit_intercept=intercept).fit(X, y)
        np.testing.assert_allclose(model.predict(X), 49.5, rtol=1e-9)
        assert model.certificate_.valid and model.certificate_.relative_gap < 1e-9

    def test_indefinite_matrix(self):
        """A matrix that is no kernel matrix is named as such, with its eigenvalues."""
        K = np.diag([1.0, 2.0, -3.0])
        with pytest.warns(NotPositiveSemidefiniteWarning) as found:
            model = KernelRidge(0.5, kernel="precomputed").fit(K, [1.0, 2.0, 3.0])
        assert "the smallest eigenvalue of 3 of its 3 rows is -3, the largest 2" in str(found[0].message)
        np.testing.assert_allclose(model.dual_coef_, [1 / 1.5, 2 / 2.5, 3 / -2.5])
        assert not model.certificate_.valid
        with (
            pytest.warns(NotPositiveSemidefiniteWarning),
            pytest.raises(NotPositiveSemidefiniteError, match="its smallest eigenvalue is -3"),
        ):
            KernelRidge(0.5, kernel="precomputed", solver="cg").fit(K, [0.0, 0.0, 3.0])

    def test_part_that_was_not_examined(self):
        """A negative eigenvalue that examining a part of the matrix did not show is found by the factorisation."""
        K = np.eye(700)
        unseen = np.setdiff1d(np.arange(700), np.random.default_rng(0).permutation(700)[:300])[0]
        K[unseen, unseen] = -2.0
        with pytest.warns(NotPositiveSemidefiniteWarning, match="its smallest eigenvalue is -2, its largest 1"):
            KernelRidge(1.0, kernel=Precomputed()).fit(K, np.ones(700))


class TestBadInput:
    @pytest.mark.parametrize(
        ("params", "words"),
        [
            ({"alpha": -1.0}, "The 'alpha' parameter of KernelRidge must be"),
            ({"alpha": [1.0, 2.0]}, r"alpha has the shape \(2,\), but y has 1 target"),
            ({"alpha": [-1.0]}, "alpha=-1 was given: it must be a finite number of at least 0"),
            ({"alpha": [np.nan]}, "alpha=nan was given"),
            ({"alpha": [np.inf]}, "alpha=inf was given"),
            ({"alpha": ["a"]}, r"alpha=\['a'\] is neither a number nor a list"),
            ({"kernel": "poly", "degree": 2.5}, "degree=2.5 is not a whole number"),
            ({"kernel": "gausian"}, "Did you mean 'gaussian'"),
            ({"kernel": Gaussian}, "write Gaussian()"),
            ({"solver": "lu"}, "The 'solver' parameter of KernelRidge"),
            (
                {"solver": "cholesky", "cache_size": 0.01},
                "needs 0.000168 GB .* 150 samples, but cache_size allows 9",
            ),
            ({"n_jobs": 0}, "n_jobs=0 has no meaning"),
        ],
        ids=named,
    )
    def test_parameters(self, params, words):
        """Parameters that cannot be used are named, with the allowed values."""
        X, y = sample()
        with pytest.raises(ValueError, match=words):
            KernelRidge(**params).fit(X, y)

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_not_finite(self, bad):
        """NaN and infinity are refused in samples, targets and weights."""
        X, y = sample()
        for place in range(3):
            given = [X.copy(), y.copy(), np.ones(len(y))]
            given[place].flat[3] = bad
            with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
                KernelRidge().fit(*given)

    @pytest.mark.parametrize(
        "y", [np.full(10, "a"), np.zeros((10, 2, 2)), np.zeros((10, 0)), np.zeros(9), None], ids=str
    )
    def test_targets(self, y):
        """Targets are numbers, one row for each sample."""
        with pytest.raises(ValueError):
            KernelRidge().fit(np.eye(10), y)

    def test_matrices(self):
        """A precomputed matrix is square and symmetric."""
        with pytest.raises(InvalidInputError, match="Input is a 3x2 matrix"):
            KernelRidge(kernel="precomputed").fit(np.ones((3, 2)), [1, 2, 3])
        with pytest.raises(NotSymmetricError):
            KernelRidge(kernel="precomputed").fit([[1.0, 0.5], [0.0, 1.0]], [1, 2])

    def test_values_that_overflow(self):
        """Kernel values that are not finite are reported."""
        X, y = sample()
        with pytest.raises(ValueError, match="Scale the features"), np.errstate(over="ignore"):
            KernelRidge(kernel="poly", degree=9).fit(1e60 * X, y)

    @pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e300])
    @every_way
    def test_size_of_targets(self, way, size):
        """The solution is linear in the targets, however small or large they are."""
        X, y = sample()
        model = KernelRidge(0.1, kernel="rbf", fit_intercept=True, **way)
        expected = model.fit(X, y).predict(X)
        np.testing.assert_allclose(model.fit(X, size * y).predict(X) / size, expected, rtol=1e-9)
        assert model.certificate_.relative_gap < 1e-8

    def test_smallest_alpha(self):
        """The smallest number is no different from 0."""
        X, y = sample()
        model = KernelRidge(5e-324, kernel="laplacian").fit(X, y)
        np.testing.assert_allclose(model.predict(X), y, rtol=1e-10)
        assert model.certificate_.valid

    @pytest.mark.parametrize("n", [1, 2])
    @pytest.mark.parametrize("intercept", [False, True])
    def test_few_samples(self, n, intercept):
        """One sample is enough."""
        X, y = np.arange(1.0, n + 1)[:, None], np.arange(3.0, n + 3)
        model = KernelRidge(1e-9, kernel="rbf", fit_intercept=intercept).fit(X, y)
        np.testing.assert_allclose(model.predict(X), y, rtol=1e-6)

    def test_constant_columns_and_zeros(self):
        """Samples without any information give the mean, or 0."""
        X, y = np.zeros((20, 3)), np.arange(20.0)
        assert (KernelRidge().fit(X, y).predict(X) == 0).all()
        np.testing.assert_allclose(KernelRidge(fit_intercept=True).fit(X, y).predict(X), 9.5)


class TestLimits:
    def test_max_iter(self):
        """Conjugate gradients that stop early warn in numbers, with a certificate that encloses the optimum."""
        X, y = sample(600)
        exact = KernelRidge(1e-4, kernel="rbf").fit(X, y).certificate_.primal
        gaps = []
        for max_iter in (0, 1, 3):
            model = KernelRidge(1e-4, kernel="rbf", gamma=None, solver="cg", max_iter=max_iter, cache_size=0.05)
            with pytest.warns(ConvergenceWarning) as found:
                model.fit(X, y)
            assert re.fullmatch(
                rf"Solver terminated early \(max_iter={max_iter}\)\. Raise max_iter, alpha or tol\. The model is "
                r"(within \S+ of the optimum \(relative gap|not solved \(relative gap \S+); primal \S+, dual \S+\), "
                r"KKT violation \S+, "
                r"infeasibility 0; tol is 1e-06\.",
                str(found[0].message),
            )
            assert found[0].filename == __file__
            assert (model.n_iter_, model.fit_status_, len(model.trace_)) == (max_iter, 1, max_iter)
            proof = model.certificate_
            assert proof.valid and proof.dual <= exact * (1 + 1e-9) and exact <= proof.primal * (1 + 1e-9)
            gaps.append(proof.gap)
        assert gaps[0] > gaps[1] > gaps[2] > 0

    @pytest.mark.parametrize("solver", ["auto", "cholesky", "cg"])
    def test_no_time_at_all(self, solver):
        """time_limit=0 returns a usable, certified model."""
        X, y = sample(3000)
        with pytest.warns(ConvergenceWarning, match=r"time_limit=0.0 s.*The model is not solved"):
            model = KernelRidge(kernel="rbf", time_limit=0.0, fit_intercept=True, solver=solver).fit(X, y)
        assert model.n_iter_ == model.kernel_evaluations_ == 0
        np.testing.assert_allclose(model.predict(X[:5]), y.mean())
        assert model.certificate_.valid and model.certificate_.gap > 0

    def test_no_memory(self):
        """Where the system gives no memory for the matrix conjugate gradients take over, or a sentence says so."""

        class NoMemory(Data):
            def matrix(self, *_):
                raise MemoryError("refused")

        X, y = sample()
        weight, alpha, options = np.ones(150), np.ones(1), Options(tol=1e-10)
        kernel = Gaussian(0.25)
        (expected,) = solve(Data(kernel, X, 150), y[:, None], weight, alpha, False, options, Clock(), "auto")
        (found,) = solve(NoMemory(kernel, X, 150), y[:, None], weight, alpha, False, options, Clock(), "auto")
        assert found.status is Status.CONVERGED and found.steps > expected.steps
        np.testing.assert_allclose(found.F, expected.F, rtol=1e-8)
        with pytest.raises(InvalidInputError, match=r"The system has no 0.000168 GB .* \(refused\)\. Use solver='cg'"):
            solve(NoMemory(kernel, X, 150), y[:, None], weight, alpha, False, options, Clock(), "cholesky")

    def test_too_large_for_the_budget(self):
        """Where the matrix does not fit into cache_size conjugate gradients take over, and agree."""
        X, y = sample(500)
        small = KernelRidge(0.1, kernel="rbf", cache_size=1, tol=1e-10).fit(X, y)
        assert small.n_iter_ > 1
        np.testing.assert_allclose(small.predict(X), KernelRidge(0.1, kernel="rbf").fit(X, y).predict(X), rtol=1e-8)

    @pytest.mark.usefixtures("callbacks")
    def test_interrupt(self):
        """Ctrl-C during conjugate gradients leaves the model of that step."""
        X, y = sample(400)
        steps = []

        class Interrupt:
            def setup(self, estimator, context): ...
            def teardown(self, estimator, context): ...
            def on_fit_task_begin(self, estimator, context): ...

            def on_fit_task_end(self, estimator, context):
                steps.append(context.task_name)
                if len(steps) == 2:
                    signal.raise_signal(signal.SIGINT)

        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            model = KernelRidge(1e-5, kernel="rbf", solver="cg", tol=1e-13, cache_size=0.05).set_callbacks(Interrupt())
            with pytest.warns(ConvergenceWarning, match="Solver was interrupted; the model fitted so far is usable"):
                model.fit(X, y)
        finally:
            signal.signal(signal.SIGINT, before)
        assert model.n_iter_ == 2 and model.certificate_.valid

    def test_factor_that_is_interrupted(self):
        """A large factorisation asks for the time between its blocks."""
        X, y = sample(2300)
        data, options, clock = Data(Gaussian(0.25), X, 2300), Options(n_threads=2), Countdown(4)
        (found,) = solve(data, y[:, None], np.ones(2300), np.ones(1), False, options, clock, "auto")
        assert found.status is Status.TIME_LIMIT and found.steps == 0 and found.certificate.valid

    def test_verbose(self, caplog):
        """Each step is logged."""
        X, y = sample()
        with caplog.at_level("INFO", logger="mercer"):
            model = KernelRidge(verbose=True, solver="cg").fit(X, y)
        assert len(caplog.records) == len(model.trace_) == model.n_iter_ > 0


def test_clone_and_parameters():
    """Parameters survive a clone, those of a kernel can be set by name."""
    model = clone(KernelRidge(2.0, kernel=Gaussian(0.1), fit_intercept=True)).set_params(kernel__gamma=0.3)
    assert model.kernel == Gaussian(0.3)
    assert repr(model) == "KernelRidge(alpha=2.0, fit_intercept=True, kernel=Gaussian(gamma=0.3))"
