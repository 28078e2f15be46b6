"""Factors against scipy's, at sizes around those of the tiles."""

import numpy as np
import pytest
import scipy.linalg

from mercer._compiled.cholesky import factorise, room_for, solve


def factor(A, smallest=1e-12):
    """U and its inverse diagonal, in an array that is filled beyond A with values that must not be used."""
    m = len(A)
    U = np.full(room_for(m), np.nan)
    U[:m, :m] = A
    inverse = np.full(len(U), np.nan)
    factorise(U, m, inverse, smallest)
    return U, inverse


@pytest.mark.parametrize("m", [1, 2, 5, 6, 7, 8, 9, 13, 14, 16, 47, 48, 100, 211])
def test_factor_and_solution(m):
    rng = np.random.default_rng(m)
    A = rng.normal(size=(m, m + 3))
    A = A @ A.T + 0.1 * np.eye(m)
    U, inverse = factor(A)
    expected = scipy.linalg.cholesky(A)
    np.testing.assert_allclose(np.triu(U[:m, :m]), expected, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(inverse[:m], 1 / np.diag(expected), rtol=1e-9)
    for first in {0, m // 2, m - 1}:
        b = rng.normal(size=m)
        b[:first] = 0
        x = b.copy()
        solve(U, inverse, x, first)
        np.testing.assert_allclose(A @ x, b, atol=1e-8 * np.abs(x).max() * m)


@pytest.mark.parametrize("m", [4, 11, 30])
def test_members_without_a_pivot_stay_at_zero(m):
    rng = np.random.default_rng(m)
    A = rng.normal(size=(m, m + 2))
    A = A @ A.T + np.eye(m)
    # the last but one is the same as the first: what is left of it is rounding
    A[m - 2], A[:, m - 2] = A[0], A[:, 0]
    A[m - 2, m - 2] = A[0, 0]
    U, inverse = factor(A, smallest=1e-8)
    assert inverse[m - 2] == 0 and np.all(U[m - 2, m - 2 : m] == 0)
    b = rng.normal(size=m)
    x = b.copy()
    solve(U, inverse, x, 0)
    assert x[m - 2] == 0
    rest = np.delete(np.arange(m), m - 2)
    np.testing.assert_allclose(x[rest], np.linalg.solve(A[np.ix_(rest, rest)], b[rest]), rtol=1e-7, atol=1e-9)
