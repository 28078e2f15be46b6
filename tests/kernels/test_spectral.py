"""Spectral measures: expectations of cosines are kernel values, and sums of products are expanded as algebra says."""

import numpy as np
import pytest
from tests.naming import named

from mercer.exceptions import InvalidInputError
from mercer.kernels import (
    Chi2,
    Constant,
    Cosine,
    Fixed,
    Gaussian,
    Laplacian,
    LearnedKernel,
    Linear,
    Matern,
    Min,
    Normalized,
    On,
    Periodic,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Sigmoid,
    Spectrum,
    White,
)
from mercer.kernels.spectral import normal_vectors, spectral_sum

KERNELS = [
    Gaussian(0.3),
    Gaussian((0.1, 0.5, 0.0)),
    Gaussian(0.0),
    Laplacian(0.3),
    Laplacian((0.1, 0.2, 0.5)),
    Matern(0.5, 1.5),
    Matern(1.5, 2.0),
    Matern(2.5, (1.0, 2.0, 3.0)),
    RationalQuadratic(0.7, 1.3),
    RationalQuadratic(3.0, (1.0, 2.0, 0.5)),
    Periodic(1.2, 2.5),
    Periodic(1e-3, 2.5),
    2.5 * Gaussian(0.2),
    Gaussian(0.1) ** 3,
    Laplacian(0.1) ** 2,
    Matern(1.5, 2.0) ** 2,
    RationalQuadratic(0.7, 1.3) ** 2,
    Periodic(1.2, 2.5) ** 2,
    Gaussian(0.2) + 0.5 * Laplacian(0.1),
    Gaussian(0.1) * Matern(1.5, 2.0) * Laplacian(0.1),
    (Gaussian(0.1) + 0.5) * (Laplacian(0.2) + 1.0),
    (Gaussian(0.1) + Laplacian(0.2)) ** 3,
    Gaussian(0.3) + 0.5 * Linear() + 2.0,
    3.0 * (Linear() + 1.0) * Constant(0.5) + Matern(0.5),
    On((0, -1), Gaussian(0.4)) + On(1, Linear()),
    On((1, 1), Gaussian(0.2)) * On((2, 2), Matern(2.5)),
    On((0, 1), On(1, Laplacian(1.0))),
    On(0, Gaussian(0.5)) * On((1, 2), Gaussian(0.2)),
    Normalized(3.0 * Gaussian(0.2) + 1.0),
    LearnedKernel((Gaussian(0.5), Laplacian(0.2)), (0.3, 0.7)),
    Fixed(Gaussian(0.5)),
    Constant(2.0),
    0.0 * Gaussian(1.0) + Linear(),
]
DRAWS = 4000


@pytest.mark.parametrize("orthogonal", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=named)
def test_expected_cosines_are_kernel_values(kernel, orthogonal):
    """The mean over many draws is within five standard errors; what needs no draws is exact."""
    X = np.random.default_rng(0).normal(size=(8, 3))
    found = spectral_sum(kernel, 3)
    expected = kernel(X) - found.constant - X * found.linear @ X.T
    mean, variance = np.zeros((8, 8)), np.zeros((8, 8))
    random = np.random.RandomState(0)
    for term in found.terms:
        # of independent groups: orthogonal draws within a group depend on each other
        groups = [term.draw(3, 3, random, orthogonal) for _ in range(DRAWS // 3)]
        phases = np.einsum("ijk,gkm->gijm", X[:, None] - X[None], np.array(groups))
        values = term.weight * np.cos(phases).mean(axis=3)
        mean += values.mean(axis=0)
        variance += values.var(axis=0) / len(groups)
    assert np.all(np.abs(mean - expected) <= 5.0 * np.sqrt(variance) + 1e-10)


def test_sums_of_products_are_expanded():
    """Equal products are one term, whatever their order; weights follow from the binomial theorem."""
    a, b = Gaussian(1.0), Laplacian(0.5)
    assert [term.weight for term in spectral_sum(a * b + 2.0 * (b * a), 2).terms] == [3.0]
    assert sorted(term.weight for term in spectral_sum((a + b) ** 5, 2).terms) == [1.0, 1.0, 5.0, 5.0, 10.0, 10.0]
    assert [term.weight for term in spectral_sum((a + 2.0) ** 2, 2).terms] == [1.0, 4.0]
    assert spectral_sum((a + 2.0) ** 2, 2).constant == 4.0
    assert spectral_sum(0.0 * a, 2).terms == ()


def test_orthogonal_vectors():
    """Groups of d are orthogonal; lengths and entries are those of normal vectors."""
    random = np.random.RandomState(0)
    for d, count in ((4, 10), (5, 3), (1, 7)):
        Z = normal_vectors(d, count, random, orthogonal=True)
        assert Z.shape == (d, count)
        for start in range(0, count, d):
            products = Z[:, start : start + d].T @ Z[:, start : start + d]
            np.testing.assert_allclose(products, np.diag(np.diagonal(products)), atol=1e-12)
    Z = normal_vectors(3, 30_000, random, orthogonal=True)
    np.testing.assert_allclose([Z.mean(), Z.var(), (Z**4).mean()], [0.0, 1.0, 3.0], atol=0.1)
    np.testing.assert_allclose((Z**2).sum(axis=0).var(), 6.0, rtol=0.05)  # of χ² with 3 degrees of freedom


@pytest.mark.parametrize(
    "kernel",
    [
        Polynomial(2),
        Sigmoid(),
        Cosine(),
        Chi2(),
        Min(),
        White(),
        Precomputed(),
        Spectrum(3),
        Linear() * Gaussian(1.0),
        Linear() ** 2,
        Normalized(Linear()),
        Gaussian(1.0) + Polynomial(2),
        On("a", Gaussian(1.0)),
    ],
    ids=named,
)
def test_kernels_without_a_spectral_measure(kernel):
    """The error names the kernel, those that have a measure, and Nystroem."""
    with pytest.raises(InvalidInputError) as error:
        spectral_sum(kernel, 2)
    message = str(error.value)
    assert "has no known spectral measure, so it has no random features. Kernels that have them are" in message
    assert message.endswith("Use Nystroem, which takes any kernel.")


def test_bad_parameters():
    """Wrong numbers of widths, negative multiples, overflow, and sums that are too long."""
    with pytest.raises(InvalidInputError, match="has 2 widths, but the samples have 3 features"):
        spectral_sum(Gaussian((1.0, 2.0)), 3)
    for kernel in (-1.0 * Gaussian(1.0), Gaussian(1.0) + -2.0):
        with pytest.raises(InvalidInputError, match="is not positive semidefinite, so it has no features"):
            spectral_sum(kernel, 1)
    with pytest.raises(InvalidInputError, match="exceed the range of floating-point numbers"):
        spectral_sum(1e200 * Gaussian(1.0) * (1e200 * Gaussian(1.0)), 1)
    with pytest.raises(InvalidInputError, match="is a sum of more than 10,000 products"):
        spectral_sum(sum(Gaussian(float(g)) for g in range(1, 31)) ** 6, 1)
