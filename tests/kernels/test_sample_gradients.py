"""Derivatives of kernels with respect to samples equal finite differences."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.gaussian_process import kernels as theirs
from tests.kernels.test_gradients import KERNELS
from tests.naming import named

from mercer.exceptions import InvalidInputError
from mercer.kernels import (
    AdditiveChi2,
    CallableKernel,
    Chi2,
    Cosine,
    Gaussian,
    Laplacian,
    Linear,
    Min,
    Normalized,
    On,
    Polynomial,
    Precomputed,
    SklearnKernel,
    Spectrum,
)
from mercer.kernels.combinators import LearnedKernel

ALL = [
    *KERNELS,
    AdditiveChi2(),
    Normalized(Min()),
    Normalized(Polynomial(3, 0.5, 1.0)) * Cosine() + Chi2(0.3),
    On(-1, Laplacian(0.4)) + On((1, 1), Linear()),
    On((2, 0), Normalized(Linear() + 1.0)) ** 2,
    LearnedKernel((Gaussian(gamma=0.5), Linear(), Min()), (0.25, 0.75, 0.0)),
    SklearnKernel(theirs.RBF(0.7) + theirs.DotProduct(1.0)),
]


def differences(kernel, X, Z, weights, step=1e-6):
    """Central differences of Σ_j weights[i, j] k(x_i, z_j)."""

    def values(X):
        return np.einsum("ij,ij->i", weights, kernel.block(kernel.prepare(X), kernel.prepare(Z)))

    G = np.empty(X.shape)
    for k in range(X.shape[1]):
        moved = np.zeros(X.shape[1])
        moved[k] = step
        G[:, k] = (values(X + moved) - values(X - moved)) / (2.0 * step)
    return G


@pytest.mark.parametrize("kernel", ALL, ids=named)
def test_equals_differences(kernel):
    """Every kernel on vectors, dense and sparse, has the slopes that its values have."""
    random = np.random.default_rng(3)
    # away from 0, where histograms end, and from each other, where terms have kinks
    X, Z = random.uniform(0.2, 2.0, (5, 3)), random.uniform(0.2, 2.0, (7, 3))
    Z[random.random(Z.shape) < 0.4] = 0.0
    Z[0] = [0.3, 0.7, 1.1]
    weights = random.normal(size=(5, 7))
    kernel = kernel.bind(Z)
    expected = differences(kernel, X, Z, weights)
    size = 1.0 + np.abs(expected).max()
    found = kernel.sample_gradients(X, Z, weights)
    assert found.shape == X.shape
    assert np.abs(found - expected).max() < 1e-7 * size
    sparse = kernel.sample_gradients(sp.csr_array(X), sp.csr_array(Z), weights)
    assert np.abs(sparse - found).max() < 1e-10 * size
    mixed = kernel.sample_gradients(X, sp.csr_array(Z), weights)
    assert np.abs(mixed - found).max() < 1e-10 * size


def test_columns_of_a_frame():
    """Columns that were chosen by name have their place in the frame."""
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "c": [0.5, 0.1]})
    found = On(("c", "a"), Gaussian(0.3)).sample_gradients(X, X, np.array([[0.0, 1.0], [1.0, 0.0]]))
    expected = On((2, 0), Gaussian(0.3)).sample_gradients(
        X.to_numpy(), X.to_numpy(), np.array([[0.0, 1.0], [1.0, 0.0]])
    )
    assert np.array_equal(found, expected) and not found[:, 1].any() and found[:, [0, 2]].all()


def test_kinks_and_zeros_are_finite():
    """At x = z, at zeros and far away there is a finite slope; that of |x|/|x| at 0 is 0."""
    X = np.array([[0.0, 0.0], [1.0, 2.0], [1e8, 0.0]])
    for kernel in (Laplacian(1.0), Min(), Chi2(1.0), AdditiveChi2(), Cosine(), Normalized(Linear()), Normalized(Min())):
        for samples in (X, sp.csr_array(X)):
            assert np.isfinite(kernel.sample_gradients(samples, samples, np.ones((3, 3)))).all(), kernel
    assert not Cosine().sample_gradients(X[:1], X, np.ones((1, 3))).any()


def test_large_shifts_lose_no_digits():
    """Derivatives of distances do not depend on the origin."""
    random = np.random.default_rng(0)
    X, Z, weights = random.normal(size=(4, 20)), random.normal(size=(6, 20)), random.normal(size=(4, 6))
    found = Gaussian(0.05).sample_gradients(X + 1e6, Z + 1e6, weights)
    assert np.allclose(found, Gaussian(0.05).sample_gradients(X, Z, weights), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "kernel", [Spectrum(2), Precomputed(), CallableKernel(np.dot), Gaussian(1.0) + CallableKernel(np.dot)], ids=named
)
def test_no_vectors(kernel):
    """Kernels that do not compare vectors raise an error."""
    with pytest.raises(InvalidInputError, match="has no derivatives with respect to samples"):
        kernel.sample_gradients(np.ones((1, 2)), np.ones((1, 2)), np.ones((1, 1)))
