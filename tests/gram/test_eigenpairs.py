"""Largest eigenpairs of symmetric matrices known by their products, and these products."""

import numpy as np
import pytest

from mercer.gram.eigenpairs import dense_eigenpairs, factor_eigenpairs, largest_eigenpairs, orthonormal
from mercer.gram.operator import GramOperator
from mercer.gram.products import FactorMatrix, StoredMatrix, TiledMatrix, fits, products_of, stored_product
from mercer.kernels import Gaussian


def symmetric(values, seed=0):
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))[0]
    return (Q * values) @ Q.T


@pytest.mark.parametrize("count", [1, 4, 12])
@pytest.mark.parametrize("kind", ["decaying", "flat", "indefinite", "repeated", "zero"])
def test_largest_eigenpairs(kind, count):
    """Values, residuals and orthogonality are those of LAPACK, whatever the spectrum."""
    n = 200
    values = {
        "decaying": 0.9 ** np.arange(n),
        "flat": 1.0 + np.arange(n) / n,
        "indefinite": np.linspace(-3.0, 2.0, n),
        "repeated": np.repeat([5.0, 4.0, 1.0, 0.0], n // 4),
        "zero": np.zeros(n),
    }[kind]
    A = symmetric(values)
    found = largest_eigenpairs(lambda V: A @ V, n, count, np.random.RandomState(0))
    assert found.converged
    largest = np.abs(values).max()
    np.testing.assert_allclose(found.values, np.sort(values)[::-1][:count], atol=1e-8 * largest + 1e-12)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(count), atol=1e-10)
    actual = np.linalg.norm(A @ found.vectors - found.vectors * found.values, axis=0)
    np.testing.assert_allclose(found.residuals, actual, atol=1e-12 * (1 + largest))
    assert found.residuals.max() <= 1e-8 * largest + 1e-12


def test_few_rounds_are_said():
    """A run that is cut short says so, and its residuals are still true."""
    A = symmetric(1.0 + np.arange(500) / 500)
    found = largest_eigenpairs(lambda V: A @ V, 500, 3, np.random.RandomState(0), max_rounds=2)
    assert not found.converged
    actual = np.linalg.norm(A @ found.vectors - found.vectors * found.values, axis=0)
    np.testing.assert_allclose(found.residuals, actual)
    # an eigenvalue lies within each residual
    exact = np.linalg.eigvalsh(A)
    assert all(np.abs(exact - v).min() <= r for v, r in zip(found.values, found.residuals, strict=True))


def test_dense_and_factor():
    """LAPACK on the matrix, and on the small matrix of a factor, agree."""
    F = np.random.default_rng(0).normal(size=(60, 9))
    for count in (2, 9):
        dense, factor = dense_eigenpairs(F @ F.T, count), factor_eigenpairs(F, count)
        np.testing.assert_allclose(dense.values, factor.values, rtol=1e-10)
        np.testing.assert_allclose(np.abs(dense.vectors.T @ factor.vectors), np.eye(count), atol=1e-8)
        assert max(dense.residuals.max(), factor.residuals.max()) < 1e-10 * dense.values[0]


@pytest.mark.parametrize("n", [60, 120, 290])
@pytest.mark.parametrize("count", [1, 2, 10])
def test_equal_eigenvalues(n, count):
    """Eigenvalues that coincide are all found: of the identity, centred or not, and of its negative."""
    for A in (np.eye(n), np.eye(n) - 1.0 / n, 1.0 / n - np.eye(n), np.zeros((n, n))):
        found = dense_eigenpairs(A.copy(), count)
        np.testing.assert_allclose(found.values, np.linalg.eigvalsh(A)[::-1][:count], atol=1e-12)
        np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(count), atol=1e-12)
        assert found.residuals.max() < 1e-12


def test_orthonormal_drops_dependent_columns():
    """The part that is new is orthonormal, and what depends on the basis is left out."""
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(30, 4)))[0]
    V = np.concatenate([Q[:, :2], np.ones((30, 2))], axis=1)
    found = orthonormal(V, Q, 4)
    assert found.shape == (30, 1)
    np.testing.assert_allclose(np.concatenate([Q, found], axis=1).T @ found[:, 0], [0, 0, 0, 0, 1], atol=1e-12)


@pytest.mark.parametrize("columns", [1, 7, 100])
def test_products(columns):
    """A stored matrix, tiles and a factor give the products, columns and squares of the matrix."""
    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(150, 3)), rng.normal(size=(150, columns))
    kernel = Gaussian(0.5)
    K = kernel(X)
    gram = GramOperator(kernel, kernel.prepare(X), 2)
    w, W = np.linalg.eigh(K)
    factor = W * np.sqrt(np.maximum(w, 0.0))
    for matrix in (StoredMatrix(K, 2), TiledMatrix(gram), FactorMatrix(factor)):
        np.testing.assert_allclose(matrix.product(V), K @ V, atol=1e-10)
        np.testing.assert_allclose(matrix.columns(np.array([3, 140])), K[:, [3, 140]], atol=1e-10)
        np.testing.assert_allclose(matrix.part(np.array([3, 140]), V[:2]), K[:, [3, 140]] @ V[:2], atol=1e-10)
        np.testing.assert_allclose(matrix.diagonal, np.ones(150), atol=1e-10)
        assert matrix.squares() == pytest.approx((K**2).sum())
    np.testing.assert_allclose(stored_product(K, V, 1), K @ V, atol=1e-11)


def test_cache_size_decides_about_storage():
    """A matrix is stored if cache_size allows it."""
    kernel = Gaussian(1.0)
    gram = GramOperator(kernel, kernel.prepare(np.zeros((500, 1))))
    assert fits(500, 2.0) and not fits(500, 1.0)
    assert isinstance(products_of(gram, 2.0), StoredMatrix)
    assert isinstance(products_of(gram, 1.0), TiledMatrix)
