"""BLAS and LAPACK in place do what their formulas say, to parts of matrices and to nothing else."""

import numpy as np
import pytest

from mercer.ridge.inplace import add_product, add_symmetric, reflect_rows, times_symmetric

RNG = np.random.default_rng(0)


def part(rows, columns, dtype=np.float64):
    """A part of a larger matrix, with all of it."""
    whole = RNG.normal(size=(rows + 3, columns + 5)).astype(dtype)
    return whole[2 : 2 + rows, 1 : 1 + columns], whole


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("m", "k", "n"), [(5, 3, 7), (1, 1, 1), (40, 33, 2), (4, 3, 0), (0, 3, 4)])
def test_add_product(m, k, n, dtype):
    """out += factor A B, and nothing around it changes."""
    (out, whole), (A, _), (B, _) = part(m, n, dtype), part(m, k, dtype), part(k, n, dtype)
    expected = whole.copy()
    expected[2 : 2 + m, 1 : 1 + n] += dtype(-0.5) * (A @ B)
    add_product(out, A, B, -0.5)
    np.testing.assert_allclose(whole, expected, rtol=1e-12 if dtype is np.float64 else 1e-4, atol=1e-6)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (7, 2), (60, 32)])
def test_symmetric(n, k):
    """Products and updates read and write the upper triangle alone."""
    (K, whole), V, W = part(n, n), RNG.normal(size=(k, n)), RNG.normal(size=(k, n))
    full = np.triu(K) + np.triu(K, 1).T
    np.testing.assert_allclose(times_symmetric(V, K), V @ full, atol=1e-12)
    expected = whole.copy()
    expected[2 : 2 + n, 1 : 1 + n] += np.triu(-2.0 * (V.T @ W + W.T @ V))
    add_symmetric(K, V, W, -2.0)
    np.testing.assert_allclose(whole, expected, atol=1e-12)


@pytest.mark.parametrize(("rows", "columns"), [(3, 8), (8, 3), (4, 4), (32, 1)])
def test_reflect_rows(rows, columns):
    """E' = QR with Q from the reflections that are left behind."""
    E, whole = part(rows, columns)
    given, around = E.copy(), whole.copy()
    tau = np.zeros(min(rows, columns))
    reflect_rows(E, tau, np.empty(64 * columns + 64 * rows))
    Q = np.eye(columns)
    for j, t in enumerate(tau):
        v = np.concatenate([np.zeros(j), [1.0], E[j, j + 1 :]])
        Q = Q @ (np.eye(columns) - t * np.outer(v, v))
    np.testing.assert_allclose(Q @ np.triu(E.T), given.T, atol=1e-13)
    around[2 : 2 + rows, 1 : 1 + columns] = E
    np.testing.assert_array_equal(whole, around)


def test_columns_are_refused():
    """A matrix whose rows are not contiguous is an error, not a wrong answer."""
    A = np.ones((4, 4))
    with pytest.raises(ValueError, match="must be contiguous"):
        add_product(np.ones((4, 4), order="F")[:3], A[:3], A, 1.0)
