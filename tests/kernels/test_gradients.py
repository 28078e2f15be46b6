"""Hyper-parameters of kernels: names, values, bounds, and derivatives that equal finite differences."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from tests.kernels.test_vectors import CASES, samples
from tests.naming import named

from mercer.exceptions import InvalidInputError
from mercer.kernels import (
    Bounded,
    Constant,
    Cosine,
    Fixed,
    Gaussian,
    Hyperparameter,
    Laplacian,
    Linear,
    Matern,
    Min,
    Normalized,
    On,
    Periodic,
    Polynomial,
    PowerSeries,
    RationalQuadratic,
    Sigmoid,
    White,
    parse_kernel,
)
from mercer.testing import check_kernel
from mercer.testing.kernels import check_kernel_gradients

WIDTHS = (0.5, 2.0, 0.1)
KERNELS = [
    *(kernel for kernel, _ in CASES),
    Sigmoid(WIDTHS, 0.5),
    Matern(0.5, WIDTHS),
    Matern(1.5, WIDTHS),
    RationalQuadratic(2.0, WIDTHS),
    Gaussian((0.5, 0.0, 0.1)),
    Periodic(0.7, 1.9),
    White(0.3),
    Constant(2.0),
    Fixed(Periodic(1.0, 2.0), "period"),
    Bounded(Gaussian(WIDTHS), 0.1, 10.0),
    2.0 * Gaussian(0.3) + White(0.1),
    2.0 * Gaussian(0.3) * Periodic(1.0, 1.3)
    + 0.5 * RationalQuadratic(0.8, 1.0)
    + Matern(1.5, WIDTHS)
    + White(0.2)
    + 3.0,
    (Gaussian(0.3) + Linear()) ** 3,
    Normalized(Polynomial(2, 0.5, 1.0)),
    Normalized(2.0 * Gaussian(0.2) + Linear() + White(0.1)),
    On((0, 2), Gaussian((0.3, 0.2))),
    Fixed(Polynomial(2, 0.5, 1.0) * Gaussian(0.2), "left"),
    Fixed(Gaussian(0.3) + White(0.2), "right") * Bounded(White(0.2) + Linear(), 0.1, 3.0, "left__noise"),
    -1.0 * Gaussian(0.3) + Laplacian(0.2),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=named)
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_derivatives_equal_finite_differences(kernel, storage):
    """gradient_products is the derivative of Σ weights K by the logarithms of the parameters."""
    X = samples(12, 3, seed=2)
    check_kernel_gradients(kernel, sp.csr_array(X) if storage == "csr" else X)


@pytest.mark.parametrize("kernel", KERNELS[-14:], ids=named)
def test_the_new_ones_conform(kernel):
    """check_kernel passes for kernels with hyper-parameters."""
    check_kernel(kernel, samples(12, 3))


def test_many_features_with_a_width_each():
    """Where distances come from inner products, the derivatives by single widths are still exact."""
    X = np.random.default_rng(0).normal(size=(12, 40))
    check_kernel_gradients(Gaussian(tuple(np.linspace(0.01, 0.05, 40))), X)
    check_kernel_gradients(Gaussian(0.02), X)


def test_derivatives_by_samples_far_from_zero():
    """Years: the derivatives by width and period equal their formulas, nothing cancels."""
    years = np.linspace(1960.0, 2010.0, 30)
    kernel = Gaussian((0.001,)) * Periodic(1.3, 1.07)
    features, weights = kernel.prepare(years[:, None]), np.random.default_rng(0).normal(size=(30, 30))
    difference = years[:, None] - years
    turns, weighted = difference / 1.07, weights * kernel(years[:, None])
    expected = [
        np.sum(weighted * -0.001 * difference**2),
        np.sum(weighted * 4 * np.sin(np.pi * turns) ** 2 / 1.3**2),
        np.sum(weighted * 2 * np.pi * turns * np.sin(2 * np.pi * turns) / 1.3**2),
    ]
    np.testing.assert_allclose(kernel.gradient_products(features, features, weights), expected, rtol=1e-9)


class TestHyperparameters:
    def test_names_follow_the_parameters(self):
        """Each number has the name by which set_params knows its parameter, and a position if there are several."""
        kernel = 2.0 * Gaussian((0.5, 0.0, 3.0)) + White(0.1)
        found = kernel.hyperparameters()
        assert [h.name for h in found] == [
            "left__factor", "left__kernel__gamma[0]", "left__kernel__gamma[2]", "right__noise",
        ]  # fmt: skip
        np.testing.assert_array_equal(kernel.theta, np.log([2.0, 0.5, 3.0, 0.1]))
        assert kernel.with_values([1.0, 2.0, 3.0, 4.0]) == 1.0 * Gaussian((2.0, 0.0, 3.0)) + White(4.0)

    def test_kernels_without_positive_numbers_have_none(self):
        """A factor below 0, a coefficient of 0 and a kernel without parameters cannot be learnt."""
        for kernel in (Linear(), Cosine(), Min(), -1.0 * Linear(), PowerSeries((0.0, -1.0)), Constant(0.0), White(0.0)):
            assert kernel.hyperparameters() == ()
            assert kernel.theta.shape == (0,) and kernel.bounds.shape == (0, 2)
            assert kernel.with_theta([]) == kernel

    def test_bounds_contain_the_value(self):
        """1e-5 to 1e5, and more room where the value is outside of that."""
        assert Gaussian(1.0).hyperparameters() == (Hyperparameter("gamma", 1.0, 1e-5, 1e5),)
        assert Gaussian(1e-8).hyperparameters()[0].lower == pytest.approx(1e-10)
        assert Gaussian(1e9).hyperparameters()[0].upper == pytest.approx(1e11)

    def test_fixed_and_bounded(self):
        """Fixed hides, Bounded limits; values, diagonal and preparation are the kernel's own."""
        X = samples(6, 3)
        inner = Polynomial(2, 0.5, 1.0) * Gaussian(0.2)
        assert [h.name for h in Fixed(inner, "left__coef0").hyperparameters()] == [
            "kernel__left__gamma", "kernel__right__gamma",
        ]  # fmt: skip
        assert Fixed(inner).with_theta([]) == Fixed(inner)
        assert Fixed(inner, "left").with_values([3.0]) == Fixed(Polynomial(2, 0.5, 1.0) * Gaussian(3.0), "left")
        limits = [(h.lower, h.upper) for h in Bounded(inner, 0.1, 2.0, "right").hyperparameters()]
        assert limits == [(1e-5, 1e5), (1e-5, 1e5), (0.1, 2.0)]
        np.testing.assert_array_equal(Bounded(Fixed(inner), 0.1, 2.0)(X), inner(X))
        assert parse_kernel("fixed(rbf(0.1), 'gamma')") == Fixed(Gaussian(0.1), "gamma")
        assert parse_kernel("bounded(rbf(0.1), 0.01, 1)") == Bounded(Gaussian(0.1), 0.01, 1.0)

    @pytest.mark.parametrize(
        ("build", "message"),
        [
            (
                lambda: Fixed(Gaussian(1.0), "sigma"),
                "Gaussian(gamma=1.0) has no parameter 'sigma'. Its parameters are: gamma.",
            ),
            (lambda: Bounded(Gaussian(1.0), 2.0, 1.0), "lower=2.0 is above upper=1.0: exchange the bounds."),
            (lambda: Bounded(Gaussian(1.0), 0.0, 1.0), "lower=0.0 must be positive."),
            (lambda: White(-1.0), "noise=-1.0 is a variance: it must be at least 0."),
            (lambda: Periodic(1.0, 0.0), "period=0.0 must be positive."),
            (lambda: RationalQuadratic(-1.0), "alpha=-1.0 must be positive."),
            (
                lambda: Gaussian(1.0).with_theta([0.0, 0.0]),
                "Gaussian(gamma=1.0) has 1 hyper-parameters, but 2 values were given.",
            ),
            (
                lambda: Gaussian().theta,
                "Gaussian(gamma='scale') is not bound to samples: gamma='scale' depends on them. Use "
                "kernel.bind(samples) first.",
            ),
        ],
        ids=named,
    )  # fmt: skip
    def test_messages(self, build, message):
        """Errors say what is wrong."""
        with pytest.raises(InvalidInputError) as error:
            build()
        assert str(error.value) == message


class TestWhite:
    def test_equal_samples_are_two_observations(self):
        """Noise stands on the diagonal alone, also where samples repeat, and in any part of the matrix."""
        X = np.zeros((5, 2))
        kernel = White(0.5)
        np.testing.assert_array_equal(kernel(X), 0.5 * np.eye(5))
        features = kernel.prepare(X)
        rows, columns = np.array([3, 1, 1]), np.array([1, 0, 3, 1])
        np.testing.assert_array_equal(
            kernel.block(features.take(rows), features.take(columns)), 0.5 * (rows[:, None] == columns)
        )

    def test_other_samples_are_never_the_same(self):
        """A new sample shares no noise with the training samples, whatever its value."""
        X = np.arange(3.0)[:, None]
        np.testing.assert_array_equal(White()(X, X), np.zeros((3, 3)))

    def test_numbers_survive_pickling(self):
        """Samples that are pickled together still count as the same observations."""
        features = White().prepare(np.zeros((3, 1)))
        a, b = pickle.loads(pickle.dumps((features, features.take(np.array([2])))))
        np.testing.assert_array_equal(White().block(a, b), [[0], [0], [1]])


def test_periodic_is_its_formula_and_repeats():
    """exp(-2 Σ sin²(π (x - z) / p) / ℓ²); shifting by a period changes nothing."""
    X = np.random.default_rng(0).normal(size=(8, 2)) * 10
    kernel = Periodic(0.8, 1.7)
    sines = np.sin(np.pi * (X[:, None] - X[None]) / 1.7) ** 2
    np.testing.assert_allclose(kernel(X), np.exp(-2 * sines.sum(-1) / 0.64), rtol=1e-11)
    np.testing.assert_allclose(kernel(X, X + 17.0), kernel(X), rtol=1e-11)


def test_rational_quadratic_is_its_formula_and_tends_to_the_gaussian():
    """(1 + r² / (2 α ℓ²))^-α, and exp(-r² / (2 ℓ²)) for a large α."""
    X = np.random.default_rng(0).normal(size=(8, 2))
    squares = ((X[:, None] - X[None]) ** 2).sum(-1)
    np.testing.assert_allclose(RationalQuadratic(0.7, 1.3)(X), (1 + squares / (2 * 0.7 * 1.69)) ** -0.7, rtol=1e-12)
    np.testing.assert_allclose(RationalQuadratic(1e7, 1.3)(X), Gaussian.from_sigma(1.3)(X), rtol=1e-5)
