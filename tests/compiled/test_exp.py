"""The exponential of the tiles is exact to a few units in the last place, over its whole range."""

import numpy as np
import pytest
from numba import njit

from mercer._compiled.exp import bounded_exp, exp

# (dtype, smallest and largest argument with a normal result, relative error promised)
FORMATS = [(np.float32, -87.3365, 88.7228, 4e-7), (np.float64, -708.3964, 709.7827, 1e-14)]


@njit
def _exponential(values):
    for i in range(values.shape[0]):
        values[i] = exp(values[i])


def exponential(values, dtype):
    result = np.array(values, dtype)
    _exponential(result)
    return result


@njit
def _bounded(values):
    for i in range(values.shape[0]):
        values[i] = bounded_exp(values[i])


@pytest.mark.parametrize(("dtype", "lowest", "highest", "error"), FORMATS)
class TestExp:
    def test_it_is_exact_over_its_whole_range(self, dtype, lowest, highest, error):
        """Relative error against extended precision, on a fine grid and on random arguments near 0."""
        x = np.concatenate(
            [np.linspace(lowest, highest, 400_001), np.random.default_rng(0).normal(0, 0.5, 100_000)]
        ).astype(dtype)
        x = np.clip(x, dtype(lowest), dtype(highest))
        exact = np.exp(x.astype(np.longdouble))
        assert float(np.max(np.abs(exponential(x, dtype) - exact) / exact)) < error

    def test_what_is_too_small_is_zero(self, dtype, lowest, highest, error):
        """Results below the normal numbers underflow to 0, at -inf too."""
        far = [1.01 * lowest, 10 * lowest, float(np.finfo(dtype).min), -np.inf]
        np.testing.assert_array_equal(exponential(far, dtype), 0.0)

    def test_what_is_too_large_is_infinite(self, dtype, lowest, highest, error):
        """Results beyond the largest number are inf, and none before it is."""
        far = [highest + 0.01, 10 * highest, float(np.finfo(dtype).max), np.inf]
        np.testing.assert_array_equal(exponential(far, dtype), np.inf)
        assert np.isfinite(exponential([highest], dtype)[0])

    def test_nan_stays_nan(self, dtype, lowest, highest, error):
        """A missing value remains visible, and does not spread."""
        np.testing.assert_array_equal(exponential([0.0, np.nan, 0.0], dtype), [1.0, np.nan, 1.0])

    def test_the_exponential_of_zero_is_one(self, dtype, lowest, highest, error):
        """Exactly, so that k(x, x) = 1."""
        tiny = np.finfo(dtype).tiny
        np.testing.assert_array_equal(exponential([0.0, -0.0, tiny, -tiny], dtype), 1.0)

    def test_it_falls_with_its_argument(self, dtype, lowest, highest, error):
        """A larger distance never gives a larger similarity, beyond one unit in the last place."""
        values = exponential(np.linspace(lowest, 0, 200_001), dtype).astype(np.float64)
        assert np.all(np.diff(values) >= -2 * np.finfo(dtype).eps * values[1:])

    def test_a_bound_changes_no_value(self, dtype, lowest, highest, error):
        """Up to 88 the form without a test for large results has the same bits; 0, 1 and NaN are as they are."""
        x = np.linspace(lowest, 88.0, 200_001).astype(dtype)
        x = np.concatenate([np.maximum(x, dtype(lowest)), np.array([-np.inf, 1.01 * lowest, 0.0, np.nan], dtype)])
        values = x.copy()
        _bounded(values)
        np.testing.assert_array_equal(values, exponential(x, dtype))
