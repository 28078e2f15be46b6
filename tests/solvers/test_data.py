"""Samples and their kernel: parts of them are the parts that are meant."""

import numpy as np
import pytest

from mercer import SVC
from mercer.gram.operator import GramOperator
from mercer.kernels import Gaussian, Precomputed
from mercer.solvers.data import Data


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
def test_part_of_a_kernel_matrix(dtype):
    """Rows and columns of a kernel matrix are taken together, in either precision, whatever was prepared before."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    K = Gaussian(0.5)(X)
    for index in (np.random.default_rng(1).permutation(30), np.array([4, 2, 9])):
        part = Data(Precomputed(), K, 30).take(index)
        found = GramOperator(part.kernel, part.features(dtype)).dense()
        np.testing.assert_allclose(found, K[np.ix_(index, index)], rtol=1e-6)
        assert found.dtype == dtype


def test_precomputed_matrix_is_as_quick_as_the_kernel():
    """With labels in any order a kernel matrix takes as many steps as its kernel does."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = X[:, 0] + 0.5 * rng.normal(size=600) > 0
    kernel = Gaussian(0.5)
    steps = [SVC(kernel=k).fit(A, y).n_iter_.sum() for k, A in ((kernel, X), ("precomputed", kernel(X)))]
    assert steps[1] <= 2 * steps[0]
