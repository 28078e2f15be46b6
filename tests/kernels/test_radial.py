"""Limits of the kernels of a distance, and samples whose numbers are badly scaled."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.naming import named
from tests.reference import formulas as reference

from mercer.exceptions import InvalidInputError
from mercer.kernels import Chi2, Cosine, Gaussian, Laplacian, Linear, Matern, Min, Polynomial
from mercer.kernels.feature_sums import SQUARE
from mercer.kernels.radial import CANCELLATION, SPARSE_CANCELLATION

DTYPES = [np.float32, np.float64]


def block(kernel, X, Z, dtype):
    return kernel.block(kernel.prepare(X, dtype), kernel.prepare(Z, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
class TestLimits:
    @pytest.mark.parametrize("kernel", [Gaussian(0.0), Laplacian(0.0), Chi2(0.0), Matern(1.5, 1e300)], ids=named)
    def test_the_widest_kernel_is_one(self, kernel, dtype, storage):
        """For γ = 0 all values are 1."""
        X = storage(np.random.default_rng(0).exponential(size=(20, 30)))
        np.testing.assert_array_equal(block(kernel, X, X, dtype), 1.0)

    @pytest.mark.parametrize("kernel", [Gaussian(1e300), Laplacian(1e300), Chi2(1e300)], ids=named)
    def test_the_narrowest_kernel_is_the_identity(self, kernel, dtype, storage):
        """γ → ∞: each sample is like itself alone, also where γ is beyond the dtype."""
        X = storage(np.arange(1.0, 25.0).reshape(12, 2))
        np.testing.assert_array_equal(block(kernel, X, X, dtype), np.eye(12))

    @pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
    def test_matern_of_short_length_is_the_identity(self, nu, dtype, storage):
        """For length_scale → 0 the matrix is the identity."""
        X = storage(np.arange(1.0, 25.0).reshape(12, 2))
        np.testing.assert_array_equal(block(Matern(nu, 1e-6), X, X, dtype), np.eye(12))

    @pytest.mark.parametrize(
        "kernel", [Gaussian(0.5), Laplacian(0.5), Chi2(0.5), Matern(0.5), Matern(1.5), Matern(2.5)], ids=named
    )
    def test_a_sample_is_like_itself(self, kernel, dtype, storage):
        """k(x, x) = 1 up to rounding, for any x."""
        X = storage(np.random.default_rng(0).exponential(size=(30, 40)))
        of_csr = SPARSE_CANCELLATION if dtype == np.float32 else 1e-6
        of_arrays = CANCELLATION if dtype == np.float32 else 1e-13
        tolerance = of_csr if storage is sp.csr_array else of_arrays
        np.testing.assert_allclose(np.diagonal(block(kernel, X, X, dtype)), 1.0, atol=tolerance)


def test_matern_one_half_is_the_exponential_of_the_distance():
    """In one dimension Matérn 1/2 is the Laplacian kernel."""
    X = np.linspace(-3, 3, 17)[:, None]
    np.testing.assert_allclose(Matern(0.5, 2.0)(X), Laplacian(0.5)(X), rtol=1e-13)


class TestBadlyScaled:
    @pytest.mark.parametrize("d", [3, 40])
    def test_a_far_away_mean_costs_no_digits(self, d):
        """Mean 1e4, deviation 1, float32: as exact as the differences of the rounded samples in float64."""
        X = (1e4 + np.random.default_rng(0).normal(size=(60, d))).astype(np.float32)
        gamma = 0.5 / d
        K = np.array(reference.gram(reference.gaussian(gamma), X.tolist(), X.tolist()))
        np.testing.assert_allclose(block(Gaussian(gamma), X, X, np.float32), K, atol=2e-6)
        np.testing.assert_allclose(block(Gaussian((gamma,) * d), X, X, np.float32), K, atol=2e-3)
        np.testing.assert_allclose(block(Gaussian(gamma), sp.csr_array(X), sp.csr_array(X), np.float32), K, atol=2e-6)

    def test_a_few_outliers_cost_no_digits(self):
        """Some rows up to 400 times as long as the others, some near one another: exact to 1e-5, in any batch."""
        random = np.random.default_rng(0)
        X = random.normal(size=(400, 40))
        X[:20] *= np.exp(random.uniform(0, 6, size=(20, 1)))
        X[20:30] = 100 * X[50] + random.normal(size=(10, 40))
        X = X.astype(np.float32)
        for gamma in (0.003, 0.02, 0.1):
            kernel = Gaussian(gamma)
            features = kernel.prepare(X, np.float32)
            outliers = kernel.sum_formula(features)[0] == SQUARE  # by differences, if for all
            assert outliers and 4 * np.finfo(np.float32).eps * gamma * features.common_norm < CANCELLATION
            K = kernel.block(features, features)
            np.testing.assert_allclose(K, kernel(X.astype(np.float64)), atol=CANCELLATION)
            assert K[20, 21] > 0.0
            for row in (0, 25, 100):
                np.testing.assert_array_equal(kernel.block(features.take(np.array([row])), features)[0], K[row])

    @pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
    def test_nor_do_sums_of_absolute_differences(self, storage):
        """The same for the Laplacian and the chi-squared kernel."""
        X = (1e4 + np.random.default_rng(0).normal(size=(40, 20))).astype(np.float32)
        for kernel, formula in ((Laplacian(0.1), reference.laplacian(0.1)), (Chi2(1e3), reference.chi2(1e3))):
            K = np.array(reference.gram(formula, X.tolist(), X.tolist()))
            np.testing.assert_allclose(block(kernel, storage(X), storage(X), np.float32), K, atol=3e-6)

    @pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
    def test_nor_do_the_roots_of_distances(self, nu):
        """The same for Matérn's kernels, whose root magnifies rounding."""
        X = (1e4 + np.random.default_rng(0).normal(size=(40, 20))).astype(np.float32)
        K = np.array(reference.gram(reference.matern(nu, 5.0), X.tolist(), X.tolist()))
        np.testing.assert_allclose(block(Matern(nu, 5.0), X, X, np.float32), K, atol=2e-6)
        np.testing.assert_allclose(block(Matern(nu, 5.0), sp.csr_array(X), sp.csr_array(X), np.float32), K, atol=2e-4)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_one_column_of_hundreds_of_millions(self, dtype):
        """Columns 1e8 and 1: the kernel is that of the rounded samples, finite everywhere."""
        random = np.random.default_rng(0)
        X = np.column_stack([1e8 * random.exponential(size=30), random.exponential(size=(30, 20))])
        X = X.astype(dtype).astype(np.float64)
        cases = [
            (Gaussian(1e-16), reference.gaussian(1e-16)),
            (Gaussian(1.0), reference.gaussian(1.0)),
            (Laplacian(1e-8), reference.laplacian(1e-8)),
            (Matern(1.5, 1e8), reference.matern(1.5, 1e8)),
            (Chi2(1e-8), reference.chi2(1e-8)),
            (Polynomial(3, 1e-16, 1.0), reference.polynomial(3, 1e-16, 1.0)),
            (Cosine(), reference.cosine()),
            (Linear(), reference.linear()),
            (Min(), reference.minimum()),
        ]
        tolerance = 2e-5 if dtype == np.float32 else 1e-11
        for kernel, formula in cases:
            K = np.array(reference.gram(formula, X.tolist(), X.tolist()))
            for S in (X, sp.csr_array(X)):
                close = tolerance if not (sp.issparse(S) and isinstance(kernel, Matern)) else 1e-6
                np.testing.assert_allclose(
                    block(kernel, S, S, dtype), K, rtol=close, atol=close * K.max(), err_msg=repr(kernel)
                )

    @pytest.mark.parametrize("size", [1e-30, 1e30])
    def test_angles_do_not_depend_on_lengths(self, size):
        """Cosine of vectors whose squared norms are beyond float32."""
        X = np.random.default_rng(0).normal(size=(10, 4))
        for S in (X * size, sp.csr_array(X * size)):
            np.testing.assert_allclose(block(Cosine(), S, S, np.float32), Cosine()(X), atol=3e-7)

    def test_distances_beyond_the_dtype_are_no_similarity(self):
        """Squared distances that overflow give 0, and equal samples 1."""
        X = np.array([[1e30] * 20, [2e30] * 20, [1e30] * 20])
        np.testing.assert_array_equal(block(Gaussian(1.0), X, X, np.float32), [[1, 0, 1], [0, 1, 0], [1, 0, 1]])
        S = sp.csr_array(X)
        np.testing.assert_array_equal(block(Gaussian(1.0), S, S, np.float32)[0, 1], 0)


@pytest.mark.parametrize(("convention", "gamma"), [("ssbd", 0.25), ("l8", 0.5), ("cs229", 0.125), ("m5", 0.125)])
def test_widths(convention, gamma):
    """σ = 2 is γ = 1/(2σ), 1/σ or 1/(2σ²); with one σ per feature, one γ per feature."""
    assert Gaussian.from_width(2.0, convention) == Gaussian(gamma)
    assert Gaussian.from_width([2.0, 2], convention) == Gaussian((gamma, gamma))


def test_widths_of_no_convention():
    """The error names all of them; σ must be positive in each."""
    with pytest.raises(InvalidInputError) as error:
        Gaussian.from_width(1.0, "SSBD")
    assert str(error.value) == (
        "convention='SSBD' is not known: it must be 'ssbd', for exp(-|x - z|²/(2σ)), 'l8', for exp(-|x - z|²/σ), or "
        "'cs229' or 'm5', for exp(-|x - z|²/(2σ²))."
    )
    for convention in ("ssbd", "l8", "m5"):
        with pytest.raises(InvalidInputError, match="must be a finite number, positive"):
            Gaussian.from_width(0.0, convention)
