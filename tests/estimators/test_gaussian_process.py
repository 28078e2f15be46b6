"""Gaussian process regression: closed forms, scikit-learn's answers, derivatives, noise, limits and bad input."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor as Theirs
from sklearn.gaussian_process import kernels as theirs
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from tests.naming import named

from mercer import GaussianProcessRegressor
from mercer.estimators import gaussian_process
from mercer.exceptions import InvalidInputError
from mercer.kernels import (
    Bounded,
    Fixed,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Normalized,
    On,
    Periodic,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Sigmoid,
    White,
)

NOISY = 1.0 * Gaussian(0.5) + White(1.0)
EQUAL = theirs.ConstantKernel(1.0) * theirs.RBF(1.0) + theirs.WhiteKernel(1.0)


def data(n=60, d=2, seed=0, noise=0.1):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, -1] ** 2 + noise * random.normal(size=n)


X, Y = data()
NEW = np.random.default_rng(1).normal(size=(25, 2))


class TestClosedForm:
    @pytest.mark.parametrize("kernel", [Gaussian(0.4), Matern(2.5, (0.5, 2.0)), Linear() + 1.0], ids=named)
    def test_the_mean_is_kernel_ridge_regression(self, kernel):
        """k*'(K + λI)⁻¹y, by a linear solve and by scikit-learn's KernelRidge with the same λ."""
        model = GaussianProcessRegressor(kernel, alpha=0.3, optimizer=None).fit(X, Y)
        dual = np.linalg.solve(kernel(X) + 0.3 * np.eye(len(X)), Y)
        np.testing.assert_allclose(model.alpha_, dual, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(model.predict(NEW), kernel(NEW, X) @ dual, atol=1e-11)
        ridge = KernelRidge(alpha=0.3, kernel="precomputed").fit(kernel(X), Y)
        np.testing.assert_allclose(model.predict(NEW), ridge.predict(kernel(NEW, X)), atol=1e-10)

    def test_covariance_and_deviation(self):
        """k(x, z) - k*'(K + λI)⁻¹k*; the deviation is the root of its diagonal, from several parts."""
        kernel = 2.0 * Gaussian(0.4)
        model = GaussianProcessRegressor(kernel, alpha=0.3, optimizer=None).fit(X, Y)
        K, cross = kernel(X) + 0.3 * np.eye(len(X)), kernel(NEW, X)
        expected = kernel(NEW) - cross @ np.linalg.solve(K, cross.T)
        _, covariance = model.predict(NEW, return_cov=True)
        np.testing.assert_allclose(covariance, expected, atol=1e-11)
        _, deviation = model.predict(NEW, return_std=True)
        np.testing.assert_allclose(deviation, np.sqrt(np.diag(expected)), rtol=1e-9)

    def test_deviations_do_not_depend_on_the_batch(self):
        """Many new samples are taken in several parts."""
        model = GaussianProcessRegressor(NOISY).fit(X, Y)
        expected = model.predict(NEW, return_std=True)[1]
        times = gaussian_process.ROWS_BYTES // (8 * len(X) * len(NEW)) + 2
        many = model.predict(np.tile(NEW, (times, 1)), return_std=True)[1]
        np.testing.assert_allclose(many.reshape(times, -1), np.tile(expected, (times, 1)), rtol=1e-12)

    def test_likelihood(self):
        """log p(y) is that of the multivariate normal distribution."""
        from scipy.stats import multivariate_normal

        K = NOISY(X) + 1e-10 * np.eye(len(X))
        model = GaussianProcessRegressor(NOISY, optimizer=None).fit(X, Y)
        expected = multivariate_normal(np.zeros(len(X)), K).logpdf(Y)
        assert model.log_marginal_likelihood_value_ == pytest.approx(expected, rel=1e-12)
        assert model.residual_ < 1e-12


LEARNT = [
    (NOISY, EQUAL),
    (1.0 * Gaussian((0.5, 0.5)) + White(), theirs.ConstantKernel() * theirs.RBF([1.0, 1.0]) + theirs.WhiteKernel()),
    (1.0 * Matern(1.5, (1.0, 1.0)) + White(0.1), 1.0 * theirs.Matern([1.0, 1.0], nu=1.5) + theirs.WhiteKernel(0.1)),
    (1.0 * RationalQuadratic() + White(0.1), 1.0 * theirs.RationalQuadratic() + theirs.WhiteKernel(0.1)),
]


@pytest.mark.parametrize(("ours", "equal"), LEARNT, ids=named)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
class TestSameAsSklearn:
    @pytest.mark.parametrize("normalize_y", [False, True])
    def test_the_same_optimum(self, ours, equal, normalize_y):
        """The same likelihood and predictions, with mercer's kernels and with scikit-learn's own."""
        expected = Theirs(equal, normalize_y=normalize_y).fit(X, Y)
        for kernel in (ours, equal):
            model = GaussianProcessRegressor(kernel, normalize_y=normalize_y).fit(X, Y)
            value, best = model.log_marginal_likelihood_value_, expected.log_marginal_likelihood_value_
            assert value == pytest.approx(best, abs=1e-4)
            for found, right in zip(
                model.predict(NEW, return_std=True), expected.predict(NEW, return_std=True), strict=True
            ):
                np.testing.assert_allclose(found, right, atol=2e-3)

    def test_the_same_function_of_theta(self, ours, equal):
        """Likelihood, gradient, mean, covariance and samples for given parameters agree to rounding."""
        random = np.random.default_rng(3)
        targets = np.column_stack([Y, Y**2])
        expected = Theirs(equal, optimizer=None, alpha=0.01).fit(X, targets)
        model = GaussianProcessRegressor(equal, optimizer=None, alpha=0.01).fit(X, targets)
        for _ in range(3):
            theta = equal.theta + random.normal(scale=0.5, size=len(equal.theta))
            found, right = (m.log_marginal_likelihood(theta, eval_gradient=True) for m in (model, expected))
            assert found[0] == pytest.approx(right[0], rel=1e-9)
            np.testing.assert_allclose(found[1], right[1], rtol=1e-7, atol=1e-7)
        for ask in ({}, {"return_std": True}, {"return_cov": True}):
            np.testing.assert_allclose(
                np.hstack([np.ravel(part) for part in model.predict(NEW, **ask)]),
                np.hstack([np.ravel(part) for part in expected.predict(NEW, **ask)]),
                atol=1e-9,
            )
        np.testing.assert_allclose(model.sample_y(NEW, 3), expected.sample_y(NEW, 3), atol=1e-5)

    def test_parameters_of_both_kernels_are_the_same_function(self, ours, equal):
        """mercer's kernel and scikit-learn's have one likelihood at the start."""
        values = [
            GaussianProcessRegressor(kernel, optimizer=None).fit(X, Y).log_marginal_likelihood_value_
            for kernel in (ours, equal)
        ]
        assert values[0] == pytest.approx(values[1], rel=1e-12)


@pytest.mark.parametrize(
    "kernel",
    [
        NOISY,
        2.0 * Gaussian((0.5, 0.2)) * Periodic(1.0, 2.0) + Polynomial(2, 0.3, 1.0) + White(0.2),
        Normalized(Polynomial(2, 0.3, 1.0)) + 0.5 * On(1, Laplacian(0.3)) + White(0.3),
        (0.5 * Matern(2.5, 1.0) + Linear()) ** 2 + Fixed(White(0.3)),
    ],
    ids=named,
)
def test_the_gradient_of_the_likelihood_is_exact(kernel):
    """Central differences of log p(y), with samples enough for several tiles."""
    many, targets = data(150, 2, seed=5)
    model = GaussianProcessRegressor(kernel, optimizer=None, n_jobs=2).fit(many, targets)
    theta = model.kernel_.theta
    value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
    assert value == pytest.approx(model.log_marginal_likelihood(), rel=1e-10)
    for p in range(len(theta)):
        step = 1e-4 * (np.arange(len(theta)) == p)
        difference = model.log_marginal_likelihood(theta + step) - model.log_marginal_likelihood(theta - step)
        assert gradient[p] == pytest.approx(difference / 2e-4, rel=1e-5, abs=1e-4)


class TestLearning:
    def test_noise_and_width_are_found(self):
        """A sample of a known process gives back its parameters, roughly, and a vanishing gradient."""
        random = np.random.default_rng(0)
        grid = np.linspace(0, 30, 300)[:, None]
        kernel = 1.0 * Gaussian(0.5)
        y = random.multivariate_normal(np.zeros(300), kernel(grid)) + 0.2 * random.normal(size=300)
        model = GaussianProcessRegressor(3.0 * Gaussian() + White(), n_restarts_optimizer=1, random_state=0).fit(
            grid, y
        )
        assert model.kernel_.right.noise == pytest.approx(0.04, rel=0.3)
        assert model.kernel_.left.kernel.gamma == pytest.approx(0.5, rel=0.5)
        assert np.abs(model.gradient_).max() < 0.05
        assert model.n_evaluations_ >= model.n_iter_ >= 1

    def test_restarts_never_lower_the_likelihood(self):
        """The best of all runs is kept, and equal seeds give equal models."""
        fits = [
            GaussianProcessRegressor(1.0 * Gaussian(100.0) + White(), n_restarts_optimizer=k, random_state=0).fit(X, Y)
            for k in (0, 2, 2)
        ]
        values = [fit.log_marginal_likelihood_value_ for fit in fits]
        assert values[1] >= values[0]
        assert values[1] == values[2]

    def test_fixed_parameters_stay_and_bounds_hold(self):
        """Fixed is not touched; a bound is kept, and named if the optimum lies on it."""
        kernel = Fixed(2.0 * Gaussian(0.5), "factor") + Bounded(White(1.0), 0.5, 2.0)
        with pytest.warns(ConvergenceWarning) as caught:
            model = GaussianProcessRegressor(kernel).fit(X, Y)
        assert model.kernel_.left.kernel.factor == 2.0
        assert model.kernel_.right.kernel.noise == pytest.approx(0.5)
        assert [str(w.message) for w in caught] == [
            "The optimal value found for dimension 0 of parameter right__kernel__noise is close to the specified lower "
            "bound 0.5. Decreasing the bound and calling fit again may find a better value."
        ]

    def test_without_an_optimizer_the_kernel_is_kept(self):
        """Bound to the samples, but not learnt."""
        model = GaussianProcessRegressor("2*rbf + white(0.1)", optimizer=None).fit(X, Y)
        assert model.kernel_ == (2.0 * Gaussian() + White(0.1)).bind(X)

    def test_an_optimizer_of_the_user(self):
        """A function of scikit-learn's form decides."""

        def optimizer(obj_func, initial_theta, bounds):
            _, gradient = obj_func(initial_theta)
            assert gradient.shape == initial_theta.shape and bounds.shape == (3, 2)
            return initial_theta + 0.1, obj_func(initial_theta + 0.1, eval_gradient=False)

        model = GaussianProcessRegressor(NOISY, optimizer=optimizer).fit(X, Y)
        np.testing.assert_allclose(model.kernel_.theta, NOISY.theta + 0.1)

    def test_several_targets(self):
        """Each target is a process of its own with the common kernel; normalisation is undone for each."""
        targets = np.column_stack([Y, 100 * Y + 5])
        model = GaussianProcessRegressor(NOISY, normalize_y=True).fit(X, targets)
        single = GaussianProcessRegressor(NOISY, normalize_y=True).fit(X, Y)
        mean, deviation = model.predict(NEW, return_std=True)
        np.testing.assert_allclose(mean[:, 1], 100 * mean[:, 0] + 5, rtol=1e-6)
        np.testing.assert_allclose(deviation[:, 1], 100 * deviation[:, 0], rtol=1e-9)
        np.testing.assert_allclose(mean[:, 0], single.predict(NEW), atol=1e-3)
        assert model.log_marginal_likelihood_value_ == pytest.approx(
            2 * single.log_marginal_likelihood_value_, rel=1e-4
        )

    def test_the_noise_of_each_sample(self):
        """alpha as an array: a very noisy sample has no influence."""
        alpha = np.full(len(X), 0.01)
        alpha[3] = 1e8
        wrong = Y.copy()
        wrong[3] = 1000.0
        model = GaussianProcessRegressor(Gaussian(0.5), alpha=alpha, optimizer=None).fit(X, wrong)
        rest = np.arange(len(X)) != 3
        without = GaussianProcessRegressor(Gaussian(0.5), alpha=0.01, optimizer=None).fit(X[rest], Y[rest])
        np.testing.assert_allclose(model.predict(NEW), without.predict(NEW), atol=1e-3)


class TestSamples:
    def test_sparse_pandas_and_pipelines(self):
        """CSR, data frames with columns by name, GridSearchCV over the kernel's parameters, pickles, clones."""
        model = GaussianProcessRegressor(NOISY).fit(X, Y)
        sparse = GaussianProcessRegressor(NOISY).fit(sp.csr_array(X), Y)
        np.testing.assert_allclose(sparse.predict(sp.csr_array(NEW)), model.predict(NEW), atol=1e-4)
        np.testing.assert_allclose(sparse.predict(NEW), model.predict(NEW), atol=1e-4)
        frame, new = pd.DataFrame(X, columns=["a", "b"]), pd.DataFrame(NEW, columns=["a", "b"])
        named_columns = 1.0 * On("a", Gaussian(0.5)) + On("b", Polynomial(2, 1.0, 1.0)) + White()
        found = GaussianProcessRegressor(named_columns).fit(frame, Y).predict(new, return_std=True)
        by_number = 1.0 * On(0, Gaussian(0.5)) + On(1, Polynomial(2, 1.0, 1.0)) + White()
        expected = GaussianProcessRegressor(by_number).fit(X, Y).predict(NEW, return_std=True)
        np.testing.assert_allclose(found, expected, rtol=1e-8)
        grid = GridSearchCV(
            make_pipeline(StandardScaler(), GaussianProcessRegressor(NOISY, optimizer=None)),
            {"gaussianprocessregressor__kernel__right__noise": [0.01, 10.0]},
            cv=3,
        ).fit(X, Y)
        assert grid.best_params_ == {"gaussianprocessregressor__kernel__right__noise": 0.01}
        copy = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copy.predict(NEW), model.predict(NEW))
        assert clone(model).kernel == NOISY

    def test_parameters_of_sklearn_kernels_can_be_set(self):
        """kernel__k2__noise_level, without a change of the object that was given."""
        model = GaussianProcessRegressor(EQUAL).set_params(kernel__k2__noise_level=0.5)
        assert model.kernel.k2.noise_level == 0.5
        assert EQUAL.k2.noise_level == 1.0

    def test_objects_and_functions(self):
        """A kernel function on strings, with its noise given."""

        def common(A, B):
            return np.array([[len(set(a) & set(b)) for b in B] for a in A], dtype=float)

        words, lengths = ["ab", "abc", "bcd", "xyz"], [2.0, 3.0, 3.0, 5.0]
        model = GaussianProcessRegressor(common, alpha=0.01).fit(words, lengths)
        dual = np.linalg.solve(common(words, words) + 0.01 * np.eye(4), lengths)
        np.testing.assert_allclose(model.predict(["abx"]), common(["abx"], words) @ dual)
        assert model.predict(["abx"], return_std=True)[1].shape == (1,)

    def test_a_kernel_matrix(self):
        """Its scale and noise are learnt; deviations would need what it does not hold."""
        K, cross = Gaussian(0.5)(X), Gaussian(0.5)(NEW, X)
        model = GaussianProcessRegressor(1.0 * Precomputed() + White()).fit(K, Y)
        same = GaussianProcessRegressor(1.0 * Fixed(Gaussian(0.5)) + White()).fit(X, Y)
        np.testing.assert_allclose(model.predict(cross), same.predict(NEW), atol=1e-6)
        with pytest.raises(InvalidInputError, match="Predict the mean only, or pass the kernel"):
            model.predict(cross, return_std=True)

    def test_the_prior(self):
        """Before fit: mean 0 and the kernel's own variance; samples follow it."""
        model = GaussianProcessRegressor(4.0 * Gaussian(0.5))
        mean, deviation = model.predict(NEW, return_std=True)
        np.testing.assert_array_equal(mean, 0.0)
        np.testing.assert_allclose(deviation, 2.0)
        drawn = model.sample_y(NEW[:2], 5000)
        np.testing.assert_allclose(np.cov(drawn), (4.0 * Gaussian(0.5))(NEW[:2]), atol=0.3)


class TestLimits:
    def test_max_iter_leaves_a_usable_model(self):
        """A warning with numbers, and the best kernel found."""
        with pytest.warns(
            ConvergenceWarning, match=r"ended after max_iter=1 iterations. The log marginal likelihood is"
        ):
            model = GaussianProcessRegressor(NOISY, max_iter=1).fit(X, Y)
        start = GaussianProcessRegressor(NOISY, optimizer=None).fit(X, Y)
        assert model.log_marginal_likelihood_value_ > start.log_marginal_likelihood_value_
        assert np.isfinite(model.predict(NEW)).all()

    def test_time_limit_leaves_a_usable_model(self):
        """No time at all: the kernel as it was given."""
        with pytest.warns(ConvergenceWarning, match=r"before its first step: the given parameters are used"):
            model = GaussianProcessRegressor(NOISY, time_limit=0).fit(X, Y)
        assert model.n_evaluations_ == 1
        np.testing.assert_allclose(model.kernel_.theta, NOISY.theta)

    def test_an_interrupt_leaves_a_usable_model(self, ctrl_c):
        """Ctrl-C ends the search, not the fit."""
        many, targets = data(500, 3)
        ctrl_c(0.3)
        with pytest.warns(ConvergenceWarning, match="because it was interrupted"):
            model = GaussianProcessRegressor(
                1.0 * Gaussian((0.5,) * 3) + White(), n_restarts_optimizer=50, random_state=0
            ).fit(many, targets)
        assert np.isfinite(model.predict(many[:3])).all()

    def test_any_number_of_threads_gives_the_same(self):
        """Derivatives are summed in a fixed order."""
        many, targets = data(300, 3)
        one, two = (GaussianProcessRegressor(NOISY, n_jobs=k).fit(many, targets).alpha_ for k in (1, 2))
        np.testing.assert_array_equal(one, two)


class TestBadInput:
    def test_equal_samples_without_noise(self):
        """Who is equal to whom, what alpha is, and what it should be."""
        twice = np.vstack([X, X[4]])
        with pytest.raises(np.linalg.LinAlgError) as error:
            GaussianProcessRegressor(Gaussian(0.5), alpha=0.0).fit(twice, np.append(Y, 3.0))
        assert "is not returning a positive definite matrix. Try gradually increasing the 'alpha' parameter" in str(
            error.value
        )
        assert str(error.value).endswith(
            "Here the kernel does not distinguish samples 4 and 60, and alpha is 0: use at least 1e-14, or add "
            "White(noise) to the kernel to learn the noise."
        )

    @pytest.mark.parametrize("alpha", [0.0, 1e-4])
    def test_a_kernel_that_is_not_positive_semidefinite(self, alpha):
        """The negative eigenvalue is named, and an alpha above it, with which the fit works."""
        kernel = Sigmoid(gamma=3.0)
        smallest = np.linalg.eigvalsh(kernel(X))[0]
        with pytest.raises(np.linalg.LinAlgError) as error:
            GaussianProcessRegressor(kernel, alpha=alpha).fit(X, Y)
        advised = 1.01 * abs(smallest)
        assert str(error.value).endswith(
            f"Here the kernel is not positive semidefinite: its matrix has the eigenvalue {smallest:.3g}, and alpha is "
            f"{alpha:g}. Use alpha above {advised:.3g}, or another kernel."
        )
        assert GaussianProcessRegressor(kernel, alpha=1.01 * advised, optimizer=None).fit(X, Y).residual_ < 1e-6

    def test_a_rank_that_is_too_small(self):
        """A linear kernel of two features: the third sample is a combination."""
        with pytest.raises(np.linalg.LinAlgError, match=r"sample [0-9]+ is a linear combination of earlier samples"):
            GaussianProcessRegressor(Linear(), alpha=0.0).fit(X, Y)

    def test_equal_samples_with_learnt_noise(self):
        """White makes two observations of one sample possible."""
        twice = np.vstack([X, X])
        model = GaussianProcessRegressor(NOISY, alpha=0.0).fit(twice, np.append(Y, Y + 0.2))
        assert model.kernel_.right.noise > 1e-3

    def test_more_samples_than_memory_holds(self):
        """The message has the numbers, and comes before the memory is asked for."""
        n = 4_000_000
        with pytest.raises(InvalidInputError) as error:
            GaussianProcessRegressor().fit(np.zeros((n, 1), np.float32), np.zeros(n))
        found = re.fullmatch(
            r"A Gaussian process needs the whole kernel matrix: 4,000,000 samples take 128,000\.0 GB, but "
            r"(?P<available>[\d,.]+) GB are available, enough for (?P<enough>[\d,]+) samples\. Fit it on a random "
            r"subset of the samples, or use SVR, which does not store the matrix\.",
            str(error.value),
        )
        available, enough = (float(found[name].replace(",", "")) for name in ("available", "enough"))
        assert 8 * enough**2 / 1e9 == pytest.approx(available, abs=0.1)

    @pytest.mark.parametrize(
        ("params", "message"),
        [
            ({"kernel": Gaussian}, "kernel=Gaussian is a class, not a kernel: write Gaussian()."),
            ({"kernel": "gausian"}, "there is no kernel 'gausian'. Did you mean 'gaussian'?"),
            ({"kernel": 3}, "The 'kernel' parameter of GaussianProcessRegressor must be"),
            ({"alpha": np.zeros(7)}, "alpha must be a scalar or an array with same number of entries as y. (7 != 60)"),
            (
                {"alpha": np.full(60, -1.0)},
                "its entries must be finite and at least 0, but they lie between -1 and -1.",
            ),
            ({"kernel": Gaussian((1.0, 2.0, 3.0))}, "has 3 widths, but the samples have 2 features."),
            ({"n_targets": 2}, "The number of targets seen in `y` is different"),
        ],
        ids=named,
    )
    def test_messages(self, params, message):
        """Errors say what was found and what is allowed."""
        with pytest.raises(ValueError) as error:
            GaussianProcessRegressor(**params).fit(X, Y)
        assert message in str(error.value)

    def test_a_kernel_that_is_no_covariance(self):
        """A negative variance is named."""
        with pytest.raises(np.linalg.LinAlgError, match=r"Here k\(x, x\) is -1 for sample 0: a covariance has k"):
            GaussianProcessRegressor(-1.0 * Gaussian(0.5)).fit(X, Y)

    def test_the_likelihood_needs_a_fit_and_the_right_theta(self):
        """Before fit there are no targets; theta has one number for each parameter."""
        with pytest.raises(NotFittedError, match="needs the training targets: call fit first"):
            GaussianProcessRegressor(NOISY).log_marginal_likelihood()
        with pytest.raises(InvalidInputError, match="has 3 hyper-parameters, but 1 values were given"):
            GaussianProcessRegressor(NOISY, optimizer=None).fit(X, Y).log_marginal_likelihood([0.0])

    def test_nan_in_samples_or_targets(self):
        """scikit-learn's own messages."""
        with pytest.raises(ValueError, match="Input X contains NaN"):
            GaussianProcessRegressor().fit(np.where(X > 2, np.nan, X), Y)
        with pytest.raises(ValueError, match="Input y contains NaN"):
            GaussianProcessRegressor().fit(X, np.where(Y > 0.5, np.nan, Y))

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_constant_targets_and_one_sample(self):
        """A constant is predicted; one sample is enough."""
        model = GaussianProcessRegressor(NOISY, normalize_y=True).fit(X, np.full(60, 7.0))
        np.testing.assert_allclose(model.predict(NEW), 7.0, atol=1e-6)
        np.testing.assert_allclose(GaussianProcessRegressor(NOISY).fit(X[:1], [2.0]).predict(X[:1]).shape, (1,))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kernel", [None, NOISY], ids=named)
def test_conformance(kernel):
    """scikit-learn's checks pass, all of them."""
    results = check_estimator(GaussianProcessRegressor(kernel), on_fail=None, on_skip=None)
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}
