"""Feature maps have the kernel's values as their products, or say by how much they may miss them."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.naming import named

from mercer import InvalidInputError
from mercer.kernels import (
    Constant,
    Cosine,
    Gaussian,
    Laplacian,
    Linear,
    Min,
    Normalized,
    On,
    Polynomial,
    PowerSeries,
    Precomputed,
    Sigmoid,
)

X = np.random.default_rng(0).normal(size=(12, 3))
Z = np.random.default_rng(1).normal(size=(7, 3))

EXACT = [
    Linear(),
    Cosine(),
    Constant(2.5),
    Polynomial(degree=0),
    Polynomial(degree=1),
    Polynomial(degree=3),
    Polynomial(degree=4, gamma=0.5, coef0=2.0),
    Polynomial(degree=2, gamma=(1.0, 2.0, 0.0), coef0=1.0),
    Polynomial(degree=2, gamma="scale", coef0=1.0),
    PowerSeries(),
    PowerSeries((0.5, 0.0, 2.0)),
    Linear() + 1.0,
    0.5 * Polynomial(degree=2) + Linear(),
    Linear() * Polynomial(degree=2, coef0=1.0),
    (Linear() + 2.0) ** 3,
    Polynomial(degree=2) ** 2,
    Normalized(Polynomial(degree=2, coef0=1.0)),
    On([0, 2], Polynomial(degree=2)) + On(1, Linear()),
    0.0 * Linear() + 1.0,
]


@pytest.mark.parametrize("kernel", EXACT, ids=named)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_products_are_kernel_values(kernel, storage):
    """<ψ(x), ψ(z)> = k(x, z) ([SSBD] 16.1), for new samples too."""
    psi = kernel.feature_map(storage(X))
    a, b = psi(storage(X)), psi(storage(Z))
    assert psi.error == 0.0 and a.shape == (12, psi.dimension)
    expected = kernel.bind(X)(X, Z)
    found = a @ b.T
    found = found.toarray() if sp.issparse(found) else found
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_example_16_1():
    """(1 + xz)² on the line has the features 1, √2 x, x²; those of degree k are counted once each."""
    psi = Polynomial(degree=2, coef0=1.0).feature_map([[3.0]])
    np.testing.assert_allclose(psi([[3.0]]), [[1.0, np.sqrt(2) * 3, 9.0]])
    assert Polynomial(degree=3).feature_map(np.ones((1, 4))).dimension == 20
    assert Polynomial(degree=3, coef0=1.0).feature_map(np.ones((1, 4))).dimension == 35


def test_example_16_2():
    """Taylor features of exp(−(x−z)²/2) on the line are e^{−x²/2} xⁿ/√n!."""
    x = 0.7
    psi = Gaussian(gamma=0.5).feature_map([[x]], degree=3)
    expected = np.exp(-(x**2) / 2) * np.array([1, x, x**2 / np.sqrt(2), x**3 / np.sqrt(6)])
    np.testing.assert_allclose(psi([[x]])[0], expected)


def test_exercise_16_4():
    """min(x, z) of whole numbers counts the thresholds below both."""
    M = np.random.default_rng(0).integers(0, 6, size=(10, 3))
    psi = Min().feature_map(M)
    assert psi.dimension == M.max(axis=0).sum()
    np.testing.assert_array_equal(psi(M) @ psi(M).T, Min()(M))
    np.testing.assert_array_equal(psi(sp.csr_array(M)), psi(M))
    np.testing.assert_array_equal(Min().feature_map([[3]])([[0], [1], [2], [3]]), np.tri(4, 3, -1))


class TestTaylor:
    @settings(max_examples=40, deadline=None)
    @given(st.floats(0.01, 2.0), st.integers(0, 8), st.floats(0.1, 1.5), st.integers(1, 3))
    def test_the_error_bound(self, gamma, degree, radius, d):
        """No two samples of at most this length miss the kernel by more than the bound, which one of them reaches."""
        rng = np.random.default_rng(0)
        S = rng.normal(size=(30, d))
        S *= (radius * rng.random(30) ** 0.5 / np.linalg.norm(S, axis=1))[:, None]
        S[0] *= radius / np.linalg.norm(S[0])
        kernel = Gaussian(gamma=gamma)
        psi = kernel.feature_map(S, degree=degree)
        missing = np.abs(psi(S) @ psi(S).T - kernel(S))
        assert missing.max() <= psi.error + 1e-12
        assert missing[0, 0] == pytest.approx(psi.error, abs=1e-12, rel=1e-6)

    @pytest.mark.parametrize("kernel", [Gaussian(gamma=0.2), Gaussian(gamma=(0.1, 0.3, 0.2)), Gaussian()], ids=named)
    def test_the_degree_is_found(self, kernel):
        """The lowest degree with a small enough error is chosen."""
        psi = kernel.feature_map(X, error=1e-4)
        assert psi.error <= 1e-4
        np.testing.assert_allclose(psi(X) @ psi(X).T, kernel(X), atol=1e-4)
        degree = len(psi.coefficients) - 1
        assert kernel.feature_map(X, degree=degree - 1).error > 1e-4

    @pytest.mark.parametrize(
        "kernel",
        [
            Gaussian(gamma=0.1) + Linear(),
            3.0 * Gaussian(gamma=0.1),
            Gaussian(gamma=0.1) * Linear(),
            Gaussian(gamma=0.05) ** 2,
        ],
        ids=named,
    )
    def test_combinations(self, kernel):
        """Errors are carried through sums, multiples, products and powers."""
        psi = kernel.feature_map(X, degree=3)
        missing = np.abs(psi(X) @ psi(X).T - kernel(X)).max()
        assert 0 < missing <= psi.error + 1e-12


class TestErrors:
    @pytest.mark.parametrize("kernel", [Laplacian(gamma=1.0), Sigmoid(), Linear() + Laplacian(gamma=1.0)], ids=named)
    def test_none(self, kernel):
        """The error for a kernel without a known map lists the kernels that have one."""
        with pytest.raises(InvalidInputError, match="has no known feature map of finite length"):
            kernel.feature_map(X)

    def test_matrix(self):
        """Precomputed has no feature map."""
        with pytest.raises(InvalidInputError, match="has no known feature map"):
            Precomputed().feature_map(np.eye(3))

    @pytest.mark.parametrize(
        "kernel",
        [Polynomial(degree=3, coef0=-1.0), PowerSeries((1.0, -1.0)), Constant(-1.0), -1.0 * Linear()],
        ids=named,
    )
    def test_indefinite(self, kernel):
        """Kernels that are not positive semidefinite have no feature map."""
        with pytest.raises(InvalidInputError) as found:
            kernel.feature_map(X)
        assert str(found.value) == (
            f"{kernel!r} is not positive semidefinite, so it has no feature map. Use a positive semidefinite kernel."
        )

    def test_too_large(self):
        """The message says how many features there would be, before any memory is taken."""
        with pytest.raises(InvalidInputError) as found:
            Polynomial(degree=5, coef0=1.0).feature_map(np.ones((2, 50)))
        assert str(found.value) == (
            "The feature map of Polynomial(degree=5, gamma=1.0, coef0=1.0) has 3,478,761 features, 27.8 MB a sample, "
            "but max_dimension=100,000. Use the kernel itself, fewer features or a lower degree, or a larger "
            "max_dimension."
        )
        with pytest.raises(InvalidInputError, match="max_dimension=10"):
            (Polynomial(degree=2) * Polynomial(degree=2)).feature_map(X, max_dimension=10)
        with pytest.raises(InvalidInputError, match=r"features, .* MB a sample"):
            Gaussian(gamma=5.0).feature_map(X)
        with pytest.raises(
            InvalidInputError, match=r"up to degree 160, but degree=None and error=1e-06 were asked for"
        ):
            Gaussian(gamma=100.0).feature_map(X)
        with pytest.raises(InvalidInputError, match="exceed the range of floating-point numbers"):
            Polynomial(degree=400, gamma=1e6).feature_map(X[:, :1])

    def test_min_of_fractions(self):
        """Min needs whole numbers, none larger than those it was made for."""
        with pytest.raises(InvalidInputError, match=r"whole numbers, but a sample contains 1.5"):
            Min().feature_map([[1.5]])
        with pytest.raises(InvalidInputError, match=r"Sample 1 has 7 in feature 0, but .* at most 3 there"):
            Min().feature_map([[3]])([[2], [7]])

    def test_other_width(self):
        """Samples with another number of features raise an error."""
        with pytest.raises(InvalidInputError, match="made for samples of 3 features, but these have 2"):
            Linear().feature_map(X)(X[:, :2])
