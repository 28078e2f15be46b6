"""Samples of a problem and of its parts, prepared in each precision."""

import numpy as np
import pytest

from mercer.kernels import Precomputed
from mercer.solvers.data import Data


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
    features = data.take(order).features(dtype)
    np.testing.assert_allclose(Precomputed().block(features, features), K[np.ix_(order, order)], rtol=1e-6)
