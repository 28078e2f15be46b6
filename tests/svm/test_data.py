"""Samples of a problem and of its parts, prepared in each precision."""

import numpy as np
import pytest

from mercer import SVC
from mercer.gram.operator import Data, GramOperator
from mercer.kernels import Gaussian, Precomputed


@pytest.mark.parametrize("asked", [(np.float64,), (np.float32,), ()], ids=["double", "single", "neither"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parts_of_a_kernel_matrix_keep_their_columns(asked, dtype):
    """All samples in another order, as those of two classes are: rows and columns change their places together."""
    rng = np.random.default_rng(0)
    K = rng.normal(size=(9, 9))
    K = K + K.T
    data = Data(Precomputed(), K, 9)
    for first in asked:
        data.features(first)
    order = rng.permutation(9)
    part = data.take(order)
    found = GramOperator(part.kernel, part.features(dtype)).dense()
    np.testing.assert_allclose(found, K[np.ix_(order, order)], rtol=1e-6)
    assert found.dtype == dtype


def test_precomputed_matrix_is_as_quick_as_the_kernel():
    """With labels in any order a kernel matrix takes as many steps as its kernel does."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = X[:, 0] + 0.5 * rng.normal(size=600) > 0
    kernel = Gaussian(0.5)
    steps = [SVC(kernel=k).fit(A, y).n_iter_.sum() for k, A in ((kernel, X), ("precomputed", kernel(X)))]
    assert steps[1] <= 2 * steps[0]
