"""GaussianProcessClassifier is scikit-learn's class, exact where that is, and more: other kernels, EP, certificates."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit, ndtr
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process import GaussianProcessClassifier as Theirs
from sklearn.gaussian_process.kernels import RBF, CompoundKernel, Matern, RationalQuadratic
from sklearn.gaussian_process.kernels import WhiteKernel as TheirWhite
from sklearn.utils.estimator_checks import check_estimator
from tests.naming import named

import mercer
from mercer import (
    Gaussian,
    GaussianProcessClassifier,
    InvalidInputError,
    KernelLogisticRegression,
    Polynomial,
    Spectrum,
    White,
)
from mercer.process.latent import logistic_average

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = (np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * RNG.normal(size=80) > 0).astype(int)
NEW = RNG.normal(size=(40, 3))
IRIS = tuple(part[::2] for part in load_iris(return_X_y=True))
KERNELS = [
    None,
    4.0 * RBF(1.5),
    4.0 * RBF([1.0, 2.0, 3.0]),
    2.0 * Matern(1.0, nu=1.5) + TheirWhite(0.5),
    RationalQuadratic(),
    1e4 * RBF(0.3),
]


def latent_moments(theirs):
    """scikit-learn's latent mean and variance at NEW (Rasmussen & Williams, algorithm 3.2), a method from 1.7 on."""
    k = theirs.kernel_(theirs.X_train_, NEW)
    v = np.linalg.solve(theirs.L_, theirs.W_sr_[:, None] * k)
    return k.T @ (theirs.y_train_ - theirs.pi_), theirs.kernel_.diag(NEW) - np.sum(v**2, axis=0)


class TestSameAsSklearn:
    @pytest.mark.parametrize("kernel", KERNELS, ids=named)
    def test_evidence_and_probabilities(self, kernel):
        """For a given kernel evidence, gradient, latent moments and probabilities are scikit-learn's."""
        theirs = Theirs(kernel, optimizer=None).fit(X, Y)
        ours = GaussianProcessClassifier(kernel, optimizer=None).fit(X, Y)
        assert ours.log_marginal_likelihood() == pytest.approx(theirs.log_marginal_likelihood(), abs=1e-6)
        np.testing.assert_allclose(ours.predict_proba(NEW), theirs.predict_proba(NEW), atol=1e-6)
        np.testing.assert_array_equal(ours.predict(NEW), theirs.predict(NEW))
        for own, their in zip(ours.latent_mean_and_variance(NEW), latent_moments(theirs.base_estimator_), strict=True):
            np.testing.assert_allclose(own, their, rtol=1e-5, atol=1e-6)
        if kernel is not None:
            value, gradient = ours.log_marginal_likelihood(kernel.theta + 0.1, eval_gradient=True)
            expected, slope = theirs.log_marginal_likelihood(kernel.theta + 0.1, eval_gradient=True)
            assert value == pytest.approx(expected, abs=1e-6)
            np.testing.assert_allclose(gradient, slope, rtol=1e-5, atol=1e-5)

    def test_learnt_kernel(self):
        """The learnt kernel has at least scikit-learn's evidence, and its gradient vanishes."""
        kernel = 1.0 * RBF(1.0)
        theirs, ours = Theirs(kernel).fit(X, Y), GaussianProcessClassifier(kernel).fit(X, Y)
        assert ours.log_marginal_likelihood() >= theirs.log_marginal_likelihood() - 1e-4
        assert ours.log_marginal_likelihood(theirs.kernel_.theta) == pytest.approx(
            theirs.log_marginal_likelihood(), abs=1e-6
        )
        _, gradient = ours.log_marginal_likelihood(ours.kernel_.theta, eval_gradient=True)
        inside = np.all(
            np.diff(np.c_[ours.kernel_.bounds[:, 0], ours.kernel_.theta, ours.kernel_.bounds[:, 1]]) > 1e-6, 1
        )
        assert np.abs(gradient[inside]).max() < 1e-2

    @pytest.mark.parametrize("multi_class", ["one_vs_rest", "one_vs_one"])
    def test_three_classes(self, multi_class):
        """Three classes: the mean evidence, the labels and the probabilities of scikit-learn."""
        kernel, given = 3.0 * RBF(1.2), np.arange(6) / 5.0
        theirs = Theirs(kernel, multi_class=multi_class, optimizer=None).fit(*IRIS)
        ours = GaussianProcessClassifier(kernel, multi_class=multi_class, optimizer=None).fit(*IRIS)
        assert isinstance(ours.kernel_, CompoundKernel) and ours.kernel_ == theirs.kernel_
        for theta in (given, given[:2]):
            assert ours.log_marginal_likelihood(theta) == pytest.approx(theirs.log_marginal_likelihood(theta), abs=1e-6)
        np.testing.assert_array_equal(ours.predict(IRIS[0]), theirs.predict(IRIS[0]))
        learnt = GaussianProcessClassifier(kernel, multi_class=multi_class).fit(*IRIS)
        their_learnt = Theirs(kernel, multi_class=multi_class).fit(*IRIS)
        assert learnt.log_marginal_likelihood() >= their_learnt.log_marginal_likelihood() - 1e-3
        if multi_class == "one_vs_rest":
            np.testing.assert_allclose(ours.predict_proba(IRIS[0]), theirs.predict_proba(IRIS[0]), atol=1e-6)
        else:
            with pytest.raises(ValueError, match="one_vs_one multi-class mode does not support predicting probability"):
                ours.predict_proba(IRIS[0])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("params", [{}, {"kernel": 1.0 * Gaussian()}, {"approximation": "ep"}], ids=named)
def test_conformance(params):
    """scikit-learn's checks pass, all of them."""
    results = check_estimator(GaussianProcessClassifier(**params), on_fail=None, on_skip=None)
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}


def test_mode_is_kernel_logistic_regression():
    """The latent mean is the decision function of kernel logistic regression with C = 1 and no intercept."""
    kernel = 3.0 * Gaussian(0.4)
    model = GaussianProcessClassifier(kernel, optimizer=None).fit(X, Y)
    other = KernelLogisticRegression(kernel=kernel, C=1.0, fit_intercept=False, tol=1e-12).fit(X, Y)
    np.testing.assert_allclose(model.latent_mean_and_variance(NEW)[0], other.decision_function(NEW), atol=1e-5)
    assert model.certificate_.primal == pytest.approx(other.certificate_.primal, rel=1e-9)
    assert model.certificate_.valid and 0 <= model.certificate_.relative_gap < 1e-9


def test_large_problem_uses_products_only():
    """With more samples than are factored at once, conjugate gradients find the same mode."""
    rng = np.random.default_rng(1)
    samples = rng.normal(size=(700, 4))
    labels = samples[:, 0] * samples[:, 1] > 0
    for scale in (1.0, 1e4):
        kernel = scale * Gaussian(0.3)
        model = GaussianProcessClassifier(kernel, optimizer=None).fit(samples, labels)
        assert model.certificate_.relative_gap < 1e-9
        f = kernel(samples) @ model.processes_[0].posterior.coef
        np.testing.assert_allclose(model.processes_[0].posterior.coef, labels - expit(f), atol=1e-9)


def test_one_vs_rest_shares_matrix():
    """Without a search all processes have one kernel, and each is the two-class process of its class."""
    kernel = 2.0 * Gaussian(0.5)
    model = GaussianProcessClassifier(kernel, optimizer=None).fit(*IRIS)
    assert model.kernel_ == (kernel, kernel, kernel)
    for k, process in enumerate(model.processes_):
        alone = GaussianProcessClassifier(kernel, optimizer=None).fit(IRIS[0], IRIS[1] == k)
        assert process.posterior.value == pytest.approx(alone.log_marginal_likelihood(), abs=1e-9)
    pairs = GaussianProcessClassifier(kernel, optimizer=None, multi_class="one_vs_one").fit(*IRIS)
    for (i, j), process in zip([(0, 1), (0, 2), (1, 2)], pairs.processes_, strict=True):
        some = (IRIS[1] == i) | (IRIS[1] == j)
        alone = GaussianProcessClassifier(kernel, optimizer=None).fit(IRIS[0][some], IRIS[1][some])
        assert process.posterior.value == pytest.approx(alone.log_marginal_likelihood(), abs=1e-9)


def test_gradient_of_several_processes():
    """The gradient of the mean evidence, for one kernel or one each, is that of finite differences."""
    model = GaussianProcessClassifier(2.0 * Gaussian(0.5), optimizer=None).fit(*IRIS)
    for theta in (np.array([0.3, -0.5]), np.array([0.3, -0.5, 0.1, 0.0, 1.0, -1.0])):
        value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
        assert value == pytest.approx(model.log_marginal_likelihood(theta))
        h = 1e-5 * np.eye(len(theta))
        slope = [
            (model.log_marginal_likelihood(theta + e) - model.log_marginal_likelihood(theta - e)) / 2e-5 for e in h
        ]
        np.testing.assert_allclose(gradient, slope, rtol=1e-5, atol=1e-6)


def test_strings():
    """Strings are classified by a kernel on strings, with a learnt variance."""
    texts = ["ab" * k + "b" for k in range(1, 9)] + ["cd" * k + "d" for k in range(1, 9)]
    labels = ["early"] * 8 + ["late"] * 8
    model = GaussianProcessClassifier(1.0 * mercer.Normalized(Spectrum(2))).fit(texts, labels)
    assert model.predict(["ababab", "cdcd"]).tolist() == ["early", "late"]
    assert model.kernel_.factor > 1.0


def test_ep_is_close_to_the_exact_integral():
    """For one sample EP is exact: log p(y) = log ½, and its moments are those of the tilted density."""
    model = GaussianProcessClassifier(3.0 * Gaussian(1.0), optimizer=None, approximation="ep").fit(
        [[0.0], [50.0]], [0, 1]
    )
    assert model.log_marginal_likelihood() == pytest.approx(2 * np.log(0.5), abs=1e-9)
    grid = np.linspace(-30, 30, 200_001)
    density = ndtr(grid) * np.exp(-0.5 * grid**2 / 3.0)
    density /= density.sum()
    mean, variance = model.latent_mean_and_variance([[50.0]])
    assert mean[0] == pytest.approx(density @ grid, abs=1e-6)
    assert variance[0] == pytest.approx(density @ grid**2 - (density @ grid) ** 2, abs=1e-6)
    assert not model.certificate_.valid and "fixed point" in model.certificate_.reason


def test_logistic_average():
    """The five error functions give E σ(f) up to 1e-4, at any mean and variance."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    for mean in (-3.0, 0.0, 0.5, 8.0):
        for variance in (0.01, 1.0, 9.0):
            exact = weights @ expit(mean + np.sqrt(variance) * nodes) / weights.sum()
            assert logistic_average(np.array([mean]), np.array([variance]))[0] == pytest.approx(exact, abs=3e-4)


def test_warm_start_and_n_jobs():
    """A warm start needs no Newton step for the same data; threads change nothing."""
    model = GaussianProcessClassifier(2.0 * Gaussian(0.5), optimizer=None, warm_start=True).fit(X, Y)
    assert model.processes_[0].posterior.steps > 2
    before = model.predict_proba(NEW)
    assert model.fit(X, Y).processes_[0].posterior.steps <= 1
    np.testing.assert_allclose(model.predict_proba(NEW), before, atol=1e-9)
    one, two = (GaussianProcessClassifier(2.0 * Gaussian(0.5), n_jobs=jobs).fit(X, Y) for jobs in (1, 2))
    np.testing.assert_allclose(one.predict_proba(NEW), two.predict_proba(NEW), atol=1e-9)


def test_sparse_samples():
    """CSR rows give what dense rows give."""
    dense = GaussianProcessClassifier(2.0 * Gaussian(0.5), optimizer=None).fit(X, Y).predict_proba(NEW)
    rows = GaussianProcessClassifier(2.0 * Gaussian(0.5), optimizer=None).fit(sp.csr_array(X), Y)
    np.testing.assert_allclose(rows.predict_proba(sp.csr_array(NEW)), dense, atol=1e-9)


def test_precomputed():
    """With a kernel matrix the labels are those of the kernel; probabilities are refused."""
    kernel = Gaussian(0.5)
    model = GaussianProcessClassifier("precomputed").fit(kernel(X), Y)
    expected = GaussianProcessClassifier(kernel, optimizer=None).fit(X, Y).predict(NEW)
    np.testing.assert_array_equal(model.predict(kernel(NEW, X)), expected)
    with pytest.raises(InvalidInputError, match="Probabilities need k\\(x, x\\)"):
        model.predict_proba(kernel(NEW, X))


class TestBadInput:
    def test_before_fit(self):
        """Nothing is predicted before fit."""
        with pytest.raises(NotFittedError):
            GaussianProcessClassifier().predict(X)
        with pytest.raises(NotFittedError):
            GaussianProcessClassifier().log_marginal_likelihood()

    def test_one_class(self):
        """One class is refused in scikit-learn's words."""
        with pytest.raises(ValueError, match="requires 2 or more distinct classes; got 1 class \\(only class 1"):
            GaussianProcessClassifier().fit(X, np.ones(len(X)))

    def test_wrong_values(self):
        """NaN, infinite and real-valued targets are refused."""
        for wrong in (np.nan, np.inf):
            with pytest.raises(ValueError, match="Input X contains"):
                GaussianProcessClassifier().fit(np.where(X > 2, wrong, X), Y)
        with pytest.raises(ValueError, match="Unknown label type"):
            GaussianProcessClassifier().fit(X, X[:, 0])

    def test_kernels(self):
        """A class, a CompoundKernel and a kernel without finite values are refused."""
        with pytest.raises(InvalidInputError, match="is a class, not a kernel"):
            GaussianProcessClassifier(Gaussian).fit(X, Y)
        with pytest.raises(ValueError, match="kernel cannot be a CompoundKernel"):
            GaussianProcessClassifier(CompoundKernel([RBF()])).fit(X, Y)
        for approximation in ("laplace", "ep"):
            with pytest.raises(np.linalg.LinAlgError, match="not returning a positive semidefinite matrix of finite"):
                kernel = mercer.CallableKernel(lambda a, b: -10.0 * a @ b.T)
                GaussianProcessClassifier(kernel, approximation=approximation).fit(X, Y)

    def test_theta(self):
        """theta of another length, or a gradient without theta, is refused in scikit-learn's words."""
        model = GaussianProcessClassifier(1.0 * Gaussian(1.0), optimizer=None).fit(*IRIS)
        with pytest.raises(ValueError, match="Shape of theta must be either 2 or 6"):
            model.log_marginal_likelihood(np.zeros(3))
        with pytest.raises(ValueError, match="Gradient can only be evaluated for theta!=None"):
            model.log_marginal_likelihood(eval_gradient=True)
        with pytest.raises(ValueError, match="only supported for binary"):
            model.latent_mean_and_variance(IRIS[0])

    def test_constant_samples(self):
        """Equal samples of both classes have the share of their class."""
        model = GaussianProcessClassifier(1.0 * Gaussian(1.0), optimizer=None).fit(np.zeros((8, 2)), [0, 1] * 4)
        np.testing.assert_allclose(model.predict_proba([[0.0, 0.0]]), 0.5, atol=1e-6)

    def test_large_kernel_values(self):
        """The mode is found for values up to 1e12, and a warning names values of which rounding hides it."""
        for amplitude in (1e4, 1e8, 1e12):
            model = GaussianProcessClassifier(amplitude * Gaussian(1.0), optimizer=None).fit(X, Y)
            assert model.certificate_.relative_gap < 1e-6
        for amplitude in (1e16, 1e20):
            with pytest.warns(ConvergenceWarning, match=r"The kernel's values reach 1e\+\d\d, and rounding of values"):
                model = GaussianProcessClassifier(amplitude * Gaussian(1.0), optimizer=None).fit(X, Y)
            assert model.certificate_.relative_gap > 1e-6

    def test_large_samples(self):
        """Samples that are not scaled have large kernel values; the mode is found."""
        X, y = load_wine(return_X_y=True)
        model = GaussianProcessClassifier(Polynomial(2, gamma=1.0, coef0=1.0), optimizer=None).fit(X, y)
        assert model.score(X, y) > 0.95 and model.certificate_.relative_gap < 1e-6

    def test_limits(self):
        """An early end is a warning, with the reason, and leaves a model."""
        with pytest.warns(ConvergenceWarning, match="ended after max_iter_predict=1 Newton steps"):
            model = GaussianProcessClassifier(100.0 * Gaussian(1.0), optimizer=None, max_iter_predict=1).fit(X, Y)
        assert model.certificate_.gap > 1e-6
        with pytest.warns(ConvergenceWarning, match="ended after time_limit=0.0 s, before its first step"):
            model = GaussianProcessClassifier(1.0 * Gaussian(1.0) + White(0.1), time_limit=0.0).fit(X, Y)
        assert model.score(X, Y) > 0.8
        with pytest.warns(ConvergenceWarning, match="ended after max_iter=1 iterations"):
            GaussianProcessClassifier(1.0 * Gaussian(1.0), max_iter=1).fit(X, Y)
