"""The passes of a pair step against numpy, at lengths around those of the vectors."""

import numpy as np
import pytest

from mercer._compiled.compile import compiled
from mercer._compiled.pair_passes import best_partner, update_scores

LENGTHS = [0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 127, 300]


@compiled()
def moved(score, a, b, step, grow, shrink, start, stop):
    return update_scores(score, a, b, step, grow, shrink, start, stop)


@compiled()
def partner(score, shrink, diagonal, column, up, own, start, stop):
    return best_partner(score, shrink, diagonal, column, up, own, start, stop)


def addends(rng, n, sign, dtype):
    """Zero, or an infinity of this sign for about a third."""
    return np.where(rng.random(n) < 0.3, sign * np.inf, 0.0).astype(dtype)


# of scores and matrix: the scores may have more digits
DTYPES = [(np.float32, np.float32), (np.float64, np.float64), (np.float64, np.float32)]


@pytest.mark.parametrize(("dtype", "stored"), DTYPES)
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("start", [0, 5])
def test_update_scores(n, start, dtype, stored):
    rng = np.random.default_rng(n)
    score = rng.normal(size=n + start + 9).astype(dtype)
    a, b = (rng.normal(size=len(score)).astype(stored) for _ in range(2))
    grow, shrink = addends(rng, len(score), -1, dtype), addends(rng, len(score), 1, dtype)
    step, part = dtype(0.7), slice(start, start + n)
    after = score.copy()
    after[part] -= step * (a.astype(dtype) - b)[part]
    up, place, low = moved(score, a, b, step, grow, shrink, start, start + n)
    np.testing.assert_allclose(score, after, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(np.delete(score, np.r_[part]), np.delete(after, np.r_[part]))
    rates = (score + grow)[part]
    if np.any(rates > -np.inf):
        assert place == start + np.argmax(rates) and up == rates.max()
    else:
        assert place == -1 and up == -np.inf
    assert low == np.min((score + shrink)[part], initial=np.inf)


@pytest.mark.parametrize(("dtype", "stored"), DTYPES)
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("start", [0, 5])
def test_best_partner(n, start, dtype, stored):
    rng = np.random.default_rng(n)
    score, column = (rng.normal(size=n + start + 9).astype(kind) for kind in (dtype, stored))
    shrink, diagonal = addends(rng, len(score), 1, dtype), rng.uniform(0.5, 2, len(score)).astype(dtype)
    up, own = dtype(0.3), dtype(1.0)
    slope = np.maximum(up - (score + shrink), 0)
    gain = (slope**2 / np.maximum(own + diagonal - 2 * column, 1e-12))[start : start + n]
    place = partner(score, shrink, diagonal, column, up, own, start, start + n)
    if np.any(gain > 0):
        assert gain[place - start] >= gain.max() * (1 - 1e-5)
    else:
        assert place == -1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_of_equal_values_the_first_counts(dtype):
    zeros, ones = np.zeros(50, dtype), np.ones(50, dtype)
    score = zeros.copy()
    score[[40, 13, 21]] = 1
    assert moved(score, zeros, zeros, dtype(0), zeros, zeros, 2, 50)[1] == 13
    assert partner(-score, zeros, ones, zeros, dtype(0), dtype(1), 2, 50) == 13


def test_scores_that_are_no_numbers_have_no_place():
    score, zeros = np.full(20, np.nan, np.float32), np.zeros(20, np.float32)
    assert moved(score, zeros, zeros, np.float32(0), zeros, zeros, 0, 20)[1] == -1
    assert partner(score, zeros, zeros, zeros, np.float32(1), np.float32(1), 0, 20) == -1
