"""Pivoted Cholesky: K − LL' has the properties that are reported."""

import numpy as np
import pytest
from tests.naming import named

from mercer.gram.low_rank import pivoted_cholesky
from mercer.gram.operator import GramOperator
from mercer.kernels import Gaussian, Linear, Polynomial, Precomputed


def operator(kernel, n=300, d=3, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    return GramOperator(kernel, kernel.prepare(X)), kernel(X)


@pytest.mark.parametrize("rank", [1, 40, 100, 300])
@pytest.mark.parametrize("scaled", [False, True])
def test_the_rest(rank, scaled):
    """The residual is positive semidefinite, zero at the pivots, and has the trace that is reported."""
    gram, K = operator(Gaussian(0.3))
    scale = np.random.default_rng(1).uniform(0.5, 2.0, 300) if scaled else None
    if scaled:
        K = K * np.outer(scale, scale)
    low = pivoted_cholesky(gram, rank, 0.0, scale)
    rest = K - low.L @ low.L.T
    assert low.L.shape[1] <= rank and len(set(low.pivots.tolist())) == low.L.shape[1]
    np.testing.assert_allclose(np.trace(rest), low.rest, atol=1e-10)
    assert np.linalg.eigvalsh(rest)[0] > -1e-10
    assert np.abs(rest[low.pivots]).max() < 1e-9


@pytest.mark.parametrize(("kernel", "rank"), [(Linear(), 3), (Polynomial(2, 1.0, 1.0), 10)], ids=named)
def test_exact_where_the_rank_is_low(kernel, rank):
    """A kernel with a finite feature map is reproduced by as many columns as that has."""
    gram, K = operator(kernel)
    low = pivoted_cholesky(gram, 150, 1e-12, only_exact=True)
    assert low.exact and low.L.shape[1] == rank
    np.testing.assert_allclose(low.L @ low.L.T, K, atol=1e-10 * np.abs(K).max())


def test_gives_up_soon_where_it_is_not():
    """A matrix whose trace falls slowly is not factored to the end."""
    gram, _ = operator(Gaussian(5.0), d=10)
    low = pivoted_cholesky(gram, 150, 1e-12, only_exact=True)
    assert not low.exact and low.L.shape[1] < 100


def test_tolerance():
    """The search ends when the trace of the residual is within tol."""
    gram, _ = operator(Gaussian(0.1), d=1)
    low = pivoted_cholesky(gram, 300, 1e-3)
    assert low.exact and low.rest <= 1e-3 and low.L.shape[1] < 70


@pytest.mark.parametrize("K", [np.zeros((5, 5)), np.diag([1.0, -2.0, 0.0]), np.ones((4, 4))], ids=named)
def test_degenerate_matrices(K):
    """Zeros have rank 0, ones rank 1; an indefinite matrix is not called explained."""
    low = pivoted_cholesky(GramOperator(Precomputed(), Precomputed().prepare(K)), len(K), 1e-12)
    assert low.exact == (np.linalg.eigvalsh(K)[0] > -1e-12)
    if low.exact:
        assert low.L.shape[1] == np.linalg.matrix_rank(K)
