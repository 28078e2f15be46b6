"""The loops against NumPy."""

import numpy as np
from numpy.polynomial import polynomial

from mercer.explanation import _shapley_loops as loops
from mercer.explanation.exact_values import quadrature


def without_each(F):
    """Π_{l≠j} F[l], along the first axis."""
    return np.stack([np.delete(F, j, axis=0).prod(axis=0) for j in range(len(F))])


def test_products():
    """Each product without a factor, weighted by the nodes."""
    rng = np.random.default_rng(0)
    A, C = rng.random((3, 8, loops.LANES * 2)), rng.random((4, 8, loops.LANES * 2))
    nodes, weights = quadrature(8)
    found = np.ones(A.shape)
    loops.add_products(A, C, nodes, weights, found)
    expected = np.ones(A.shape)
    for i in range(len(A)):
        for c in C:
            for t, w in zip(nodes, weights, strict=True):
                expected[i] += w * (A[i] - c) * without_each(c + t * (A[i] - c))
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_series():
    """Products of power series, whose coefficients are weighted by those of the polynomial and by k!."""
    rng = np.random.default_rng(0)
    (A, U), (C, V) = rng.random((2, 2, 3, 4)), rng.random((2, 3, 3, 4))
    nodes, weights = quadrature(3)
    g = np.array([0.3, 1.0, 0.5, 2.0])
    found = np.ones(A.shape)
    loops.add_series(A, C, U, V, nodes, weights, g, found)
    factorials = np.array([1.0, 1.0, 2.0, 6.0])
    series = lambda a, u: a * u ** np.arange(4) / factorials  # noqa: E731
    expected = np.ones(A.shape)
    for i, z, s in np.ndindex(2, 3, 4):
        a, c = (np.array([series(F[k, j, s], S[k, j, s]) for j in range(3)]) for F, S, k in ((A, U, i), (C, V, z)))
        for t, w in zip(nodes, weights, strict=True):
            for j in range(3):
                product = a[j] - c[j]
                for other in set(range(3)) - {j}:
                    product = polynomial.polymul(product, c[other] + t * (a[other] - c[other]))[:4]
                expected[i, j, s] += w * np.sum(product * g * factorials)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_quadrature_is_exact():
    """∫₀¹ t^k dt = 1 / (k + 1) for all powers below the number of features."""
    for d in (1, 2, 3, 10, 41):
        nodes, weights = quadrature(d)
        assert len(nodes) % 2 == 0
        for k in range(d):
            np.testing.assert_allclose(weights @ nodes**k, 1.0 / (k + 1), rtol=1e-13)
    nodes, weights = quadrature(100, degree=3)
    np.testing.assert_allclose([weights @ nodes**k for k in range(3)], [1.0, 0.5, 1.0 / 3.0], rtol=1e-13)
