"""Passes over the kernel matrix of a Gaussian process, by NumPy."""

import numpy as np
import pytest

from mercer.process import _evidence_loops as loops


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize(("top", "left"), [(0, 0), (2, 5), (5, 2), (3, 0)])
@pytest.mark.parametrize("shape", [(4, 4), (1, 1), (3, 4), (4, 3), (0, 3)])
def test_weigh_pairs(top, left, shape, m):
    """A block of αα' − m K⁻¹, above the diagonal whole, on it half, below it zero."""
    rng = np.random.default_rng(0)
    alpha, inverse = rng.normal(size=(m, 9)), rng.normal(size=(9, 9))
    whole = np.triu(alpha.T @ alpha - m * inverse)
    whole[np.diag_indices(9)] *= 0.5
    out = np.full(shape, np.nan)
    loops.weigh_pairs(alpha, inverse, top, left, out)
    np.testing.assert_allclose(out, whole[top : top + shape[0], left : left + shape[1]], rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_clear_below(n):
    """The upper triangle remains, whatever stood below it."""
    A = np.random.default_rng(0).normal(size=(n, n))
    expected = np.triu(A)
    A[np.tril_indices(n, -1)] = np.nan
    loops.clear_below(A)
    np.testing.assert_array_equal(A, expected)
