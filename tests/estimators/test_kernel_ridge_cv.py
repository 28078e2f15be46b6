"""KernelRidgeCV chooses as if every sample had been left out once, without leaving out any."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.metrics import make_scorer, max_error
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut, ShuffleSplit
from tests.naming import named

from mercer import KernelRidge, KernelRidgeCV
from mercer.exceptions import InvalidInputError, NotPositiveSemidefiniteWarning
from mercer.kernels import Gaussian, Laplacian, Linear

ALPHAS = np.logspace(-3, 2, 6)
LARGEST_ERROR = make_scorer(max_error, greater_is_better=False)


def sample(n=60, d=3, targets=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = np.sin(X @ rng.normal(size=(d, targets))) + 0.2 * rng.normal(size=(n, targets)) + 1.0
    return X, Y[:, 0] if targets == 1 else Y


def left_out(kernel, X, y, weight, alpha, intercept):
    """The residual of each sample under the model of all others, by brute force."""
    n = len(y)
    M = np.zeros((n + 1, n + 1))
    M[:n, :n] = kernel(X) + np.diag(alpha / weight)
    M[n, :n] = M[:n, n] = 1.0
    residuals = np.empty(n)
    for i in range(n):
        rest = np.delete(np.arange(n + intercept), i)
        solved = np.linalg.solve(M[np.ix_(rest, rest)], np.append(y, 0.0)[rest])
        residuals[i] = y[i] - M[i, rest] @ solved
    return residuals


class TestLeaveOneOut:
    @pytest.mark.parametrize("intercept", [False, True])
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("kernel", [Gaussian(0.3), Linear(), Laplacian(0.2)], ids=named)
    def test_brute_force(self, kernel, weighted, intercept):
        """The closed form gives the residuals of n fits with n - 1 samples."""
        X, y = sample(30)
        weight = np.random.default_rng(1).uniform(0.2, 3.0, 30) if weighted else np.ones(30)
        model = KernelRidgeCV(ALPHAS, kernel=kernel, fit_intercept=intercept, store_cv_results=True)
        model.fit(X, y, weight)
        for k, alpha in enumerate(ALPHAS):
            expected = weight * left_out(kernel, X, y, weight, alpha, intercept) ** 2
            np.testing.assert_allclose(model.cv_results_[:, k], expected, rtol=1e-6, atol=1e-9)
        scores = -model.cv_results_.mean(axis=0)
        assert model.alpha_ == ALPHAS[np.argmax(scores)]
        np.testing.assert_allclose([model.best_score_, *model.scores_[0]], [scores.max(), *scores])

    def test_low_rank(self):
        """A matrix of low rank, for which neither K nor a square P is computed, gives the same as the whole one."""
        n = 400
        X, y = sample(n, d=2)
        whole = KernelRidgeCV(ALPHAS, kernel="precomputed", fit_intercept=True, store_cv_results=True)
        kernel = Linear() + 1.0
        K = kernel(X)
        # nothing of low rank is found in a matrix with something on its diagonal
        shifted = K + 1e-9 * np.diag(1.0 + np.arange(n) / n)
        low = KernelRidgeCV(ALPHAS, kernel=kernel, fit_intercept=True, store_cv_results=True, cache_size=0.1).fit(X, y)
        whole.fit(shifted, y)
        np.testing.assert_allclose(low.cv_results_, whole.cv_results_, rtol=1e-4)

    @pytest.mark.parametrize("intercept", [False, True])
    @pytest.mark.parametrize("per_target", [False, True])
    @pytest.mark.parametrize("scoring", [None, "r2", "neg_median_absolute_error"])
    def test_ridge_cv(self, scoring, per_target, intercept):
        """With a linear kernel it is RidgeCV, in all that it publishes."""
        X, Y = sample(targets=3)
        params = {
            "fit_intercept": intercept,
            "scoring": scoring,
            "alpha_per_target": per_target,
            "store_cv_results": True,
        }
        weight = None if scoring == "neg_median_absolute_error" else np.random.default_rng(2).uniform(0.5, 2.0, len(X))
        ours = KernelRidgeCV(ALPHAS, kernel="linear", **params).fit(X, Y, weight)
        theirs = RidgeCV(ALPHAS, **params).fit(X, Y, weight)
        np.testing.assert_array_equal(ours.alpha_, theirs.alpha_)
        np.testing.assert_allclose(ours.best_score_, theirs.best_score_, rtol=1e-9)
        np.testing.assert_allclose(ours.cv_results_, theirs.cv_results_, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9)

    def test_without_arguments(self):
        """It is at least as good as RidgeCV by leave-one-out, where a line fits and where none does."""
        rng = np.random.default_rng(0)
        curved = rng.uniform(-3, 3, size=(100, 1))
        for X, y in (load_diabetes(return_X_y=True), (curved, np.sin(curved[:, 0]) + 5.0)):
            ours, theirs = KernelRidgeCV().fit(X, y), RidgeCV().fit(X, y)
            assert ours.best_score_ >= theirs.best_score_ * (1 - 1e-9)
            assert ours.score(X, y) > theirs.score(X, y) - 0.01
        assert ours.score(X, y) > 0.99
        assert not KernelRidge().fit_intercept  # as scikit-learn's

    def test_generalised(self):
        """GCV is n |(I − A) y|² / tr(I − A)², with A from its definition."""
        X, y = sample(30)
        weight = np.random.default_rng(1).uniform(0.2, 3.0, len(y))
        root = np.sqrt(weight)
        for intercept in (False, True):
            model = KernelRidgeCV(ALPHAS, kernel="rbf", cv="gcv", fit_intercept=intercept).fit(X, y, weight)
            for k, alpha in enumerate(ALPHAS):
                columns = []
                for unit in np.eye(len(y)):
                    one = KernelRidge(alpha, kernel="rbf", fit_intercept=intercept).fit(X, unit / root, weight)
                    columns.append(root * one.predict(X))
                A = np.stack(columns, axis=1)
                residual = root * y - A @ (root * y)
                expected = len(y) * residual @ residual / np.trace(np.eye(len(y)) - A) ** 2
                np.testing.assert_allclose(-model.scores_[0, k], expected, rtol=1e-8)

    def test_zero_weights(self):
        """Samples without weight are as if they were not there."""
        X, y = sample()
        weight = (np.arange(len(y)) % 4 > 0).astype(float)
        some = KernelRidgeCV(ALPHAS, kernel="rbf", store_cv_results=True).fit(X, y, weight)
        part = KernelRidgeCV(ALPHAS, kernel="rbf", store_cv_results=True).fit(X[weight > 0], y[weight > 0])
        np.testing.assert_allclose(some.cv_results_[weight > 0], part.cv_results_)
        assert (some.cv_results_[weight == 0] == 0).all()
        np.testing.assert_allclose(some.predict(X), part.predict(X))

    def test_model_is_that_of_kernel_ridge(self):
        """The chosen model is then fitted to float64's accuracy."""
        X, Y = sample(300, targets=2)
        model = KernelRidgeCV(ALPHAS, kernel="rbf", alpha_per_target=True, fit_intercept=True).fit(X, Y)
        same = KernelRidge(model.alpha_, kernel="rbf", fit_intercept=True).fit(X, Y)
        np.testing.assert_allclose(model.predict(X), same.predict(X), rtol=1e-9)
        assert model.certificate_.relative_gap < 1e-12


class TestFolds:
    @pytest.mark.parametrize(
        "scoring", [None, "neg_mean_squared_error", make_scorer(max_error, greater_is_better=False)]
    )
    @pytest.mark.parametrize(
        "cv", [4, KFold(3, shuffle=True, random_state=0), ShuffleSplit(3, random_state=0)], ids=named
    )
    def test_grid_search(self, cv, scoring):
        """With a splitter it is GridSearchCV over KernelRidge."""
        X, y = sample()
        ours = KernelRidgeCV(ALPHAS, kernel="rbf", fit_intercept=False, cv=cv, scoring=scoring).fit(X, y)
        theirs = GridSearchCV(SklearnKernelRidge(kernel="rbf"), {"alpha": ALPHAS}, cv=cv, scoring=scoring).fit(X, y)
        np.testing.assert_allclose(ours.scores_[0], theirs.cv_results_["mean_test_score"], rtol=1e-8)
        assert ours.alpha_ == theirs.best_params_["alpha"]
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9)

    def test_leave_one_out_as_a_splitter(self):
        """n folds of one sample are the closed form."""
        X, y = sample()
        closed = KernelRidgeCV(ALPHAS, kernel="rbf", fit_intercept=True).fit(X, y)
        folds = KernelRidgeCV(
            ALPHAS, kernel="rbf", fit_intercept=True, cv=LeaveOneOut(), scoring="neg_mean_squared_error"
        ).fit(X, y)
        np.testing.assert_allclose(folds.scores_, closed.scores_, rtol=1e-8)

    def test_no_penalty(self):
        """With a splitter λ may be 0."""
        X, y = sample()
        model = KernelRidgeCV([0.0, 1.0], kernel="laplacian", cv=3).fit(X, y)
        assert np.isfinite(model.scores_).all()


class TestKernels:
    def test_several_kernels(self):
        """Of several kernels, with several parameters, the best by score is chosen; each alone gives its scores."""
        X, y = sample()
        kernels = [Gaussian(), Laplacian()]
        model = KernelRidgeCV(ALPHAS, kernel=kernels, kernel_grid={"gamma": [0.01, 0.3]}).fit(X, y)
        expected = [Gaussian(0.01), Gaussian(0.3), Laplacian(0.01), Laplacian(0.3)]
        assert model.kernels_ == expected
        for scores, kernel in zip(model.scores_, expected, strict=True):
            np.testing.assert_array_equal(KernelRidgeCV(ALPHAS, kernel=kernel).fit(X, y).scores_[0], scores)
        assert model.best_score_ == model.scores_.max()
        assert model.kernel_ == expected[int(model.scores_.max(axis=1).argmax())]
        np.testing.assert_array_equal(
            model.predict(X), KernelRidgeCV(ALPHAS, kernel=model.kernel_).fit(X, y).predict(X)
        )

    def test_names_and_sparse_samples(self):
        """Names and expressions, on sparse samples."""
        X, y = sample()
        X[np.abs(X) < 0.7] = 0.0
        kernels = ["rbf", "0.5*gaussian(gamma=0.1) + linear()"]
        dense, sparse = (KernelRidgeCV(ALPHAS, kernel=kernels).fit(Z, y) for Z in (X, sp.csr_array(X)))
        np.testing.assert_allclose(dense.scores_, sparse.scores_, rtol=1e-9)

    def test_time(self):
        """After the time limit no further kernel is tried, which is said; the model is complete."""
        X, y = sample()
        model = KernelRidgeCV(ALPHAS, kernel="rbf", kernel_grid={"gamma": [0.1, 0.2, 0.3]}, time_limit=0.0)
        with pytest.warns(UserWarning, match="Only 1 of 3 kernels were tried within time_limit"):
            model.fit(X, y)
        assert np.isnan(model.scores_[1:]).all()
        assert model.kernel_ == Gaussian(0.1) and model.certificate_.relative_gap < 1e-12

    def test_indefinite(self):
        """With a matrix that is no kernel matrix it goes on, and says so."""
        X, y = sample()
        with pytest.warns(NotPositiveSemidefiniteWarning, match="smallest eigenvalue"):
            model = KernelRidgeCV([0.01], kernel="sigmoid", gamma=1.0).fit(X, y)
        assert not model.certificate_.valid and np.isfinite(model.predict(X)).all()


class TestBadInput:
    @pytest.mark.parametrize(
        ("params", "words"),
        [
            ({"alphas": [1.0, 0.0]}, r"alphas\[1\] == 0.0, must be > 0.0"),
            ({"alphas": [-1.0], "cv": 3}, "alphas == -1.0, must be >= 0.0"),
            ({"alphas": [1.0, np.nan]}, r"alphas\[1\] == nan, must be a finite number"),
            ({"alphas": []}, r"alphas has the shape \(0,\)"),
            ({"cv": 3, "store_cv_results": True}, "cv!=None and store_cv_results=True are incompatible"),
            ({"cv": 3, "alpha_per_target": True}, "cv!=None and alpha_per_target=True are incompatible"),
            ({"cv": "loo"}, "The 'cv' parameter of KernelRidgeCV"),
            ({"cv": []}, "cv gives no fold"),
            ({"cv": LeaveOneOut()}, "R² is not defined for a fold with 1 test sample"),
            ({"kernel": []}, "kernel is an empty list"),
            ({"kernel": ["rbf", "precomputed"]}, "samples of different kinds"),
            ({"kernel_grid": {"gamma": [1.0]}}, "Invalid parameter 'gamma' for kernel Linear"),
            (
                {"cache_size": 0.001, "kernel": "laplacian"},
                "The decomposition of the kernel matrix of 60 samples",
            ),
            ({"cache_size": 0.001, "cv": 3}, "Cross-validation of 60 samples needs"),
        ],
        ids=named,
    )
    def test_parameters(self, params, words):
        """Parameters that cannot be used are named."""
        X, y = sample()
        with pytest.raises(ValueError, match=words):
            KernelRidgeCV(**params).fit(X, y)

    def test_too_few_samples(self):
        """One sample cannot be left out where there is an intercept."""
        with pytest.raises(InvalidInputError, match="at least 2 samples"):
            KernelRidgeCV().fit([[1.0]], [1.0])
        assert KernelRidgeCV(fit_intercept=False).fit([[1.0]], [1.0]).best_score_ == -1.0

    @pytest.mark.parametrize("alpha", [1e-12, 1e12])
    def test_extreme_alphas(self, alpha):
        """The smallest and largest λ give finite scores, with duplicated rows, too, after a few steps."""
        X, y = sample()
        model = KernelRidgeCV([alpha], kernel="rbf").fit(np.vstack([X, X]), np.append(y, y))
        assert np.isfinite(model.best_score_) and np.isfinite(model.predict(X)).all()
        assert model.n_iter_ <= 10
