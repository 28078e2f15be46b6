"""Each loop of products with rows, and that of optimality, has the values of its formula in NumPy."""

import numpy as np
import pytest
from tests.linear.loop_data import SHAPES, boxes, csr, inside, matrix

from mercer.linear import _row_loops as loops

TYPES = [np.float32, np.float64]


def test_dot():
    """a'b, also without numbers."""
    rng = np.random.default_rng(0)
    for n in (0, 1, 5, 100):
        a, b = rng.normal(size=(2, n))
        assert loops.dot(a, b) == pytest.approx(a @ b, rel=1e-13, abs=1e-15)


@pytest.mark.parametrize("dtype", TYPES)
def test_sparse_rows(dtype):
    """The product of a row with w, and a multiple of a row added to w; entries outside the row are not touched."""
    rng = np.random.default_rng(0)
    for size in (0, 1, 3, 4, 7, 16):
        columns = np.sort(rng.permutation(30)[:size]).astype(np.uint32)
        values, w = rng.normal(size=size).astype(dtype), rng.normal(size=30)
        row = np.zeros(30)
        row[columns] = values
        around = np.concatenate([[np.nan], values, [np.nan]]).astype(dtype)
        places = np.concatenate([[0], columns, [0]]).astype(np.uint32)
        ends = np.uint64(1), np.uint64(1 + size)
        assert loops.sparse_row_dot(places, around, *ends, w) == pytest.approx(row @ w, rel=1e-13, abs=1e-14)
        expected = w - 0.7 * row
        loops.sparse_row_add(places, around, *ends, -0.7, w)
        np.testing.assert_allclose(w, expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n, d", SHAPES)
def test_products(n, d, dtype):
    """Xw and X'β in float64, dense and sparse, some β being 0."""
    rng = np.random.default_rng(1)
    X, w, beta = matrix(n, d, dtype=dtype), rng.normal(size=d), rng.normal(size=n) * (rng.random(n) < 0.5)
    exact, f, v = X.astype(np.float64), np.full(n, np.nan), np.ones(d)
    loops.dense_dot(X, w, f)
    np.testing.assert_allclose(f, exact @ w, rtol=1e-12, atol=1e-13)
    loops.dense_tdot(X, beta, v)
    np.testing.assert_allclose(v, 1.0 + exact.T @ beta, rtol=1e-12, atol=1e-13)
    f[:], v[:] = np.nan, 1.0
    loops.sparse_dot(*csr(X), w, f)
    np.testing.assert_allclose(f, exact @ w, rtol=1e-12, atol=1e-13)
    loops.sparse_tdot(*csr(X), beta, v)
    np.testing.assert_allclose(v, 1.0 + exact.T @ beta, rtol=1e-12, atol=1e-13)


def test_repeats():
    """A column twice in a row is found; a column of several rows is not meant."""
    for lists, expected in (([], False), ([[]], False), ([[0, 2], [2, 0]], False), ([[1], [], [0, 3, 0]], True)):
        indptr = np.cumsum([0, *map(len, lists)])
        indices = np.array([column for row in lists for column in row], np.uint32)
        assert loops.repeats(indptr, indices, 4) == expected


def violation(b, f, linear, l1, ridge, lower, upper, largest):
    """The violation of one sample, by the text of `check_optimality`."""
    s = linear - f - ridge * b
    best = 0.0
    rates = s - (l1 if b >= 0 else -l1), -s - (l1 if b <= 0 else -l1)
    for rate, room, towards_0 in zip(rates, (upper - b, b - lower), (b < 0, b > 0), strict=True):
        if rate < max(rates) or rate <= 0 or room <= 0:
            continue
        if l1 > 0 and towards_0 and rate < 2 * l1:
            room = min(room, abs(b))  # at 0 the rate changes its sign
        width = max(upper, -lower)
        share = min(1.0, room / (width if np.isfinite(width) else largest))
        best = max(best, min(rate, ridge * room) if ridge > 0 else rate * share)
    return best


@pytest.mark.parametrize("n", [0, 1, 200])
def test_check_optimality(n):
    """The largest violation, the largest distance from the box, and the sum of β."""
    rng = np.random.default_rng(2)
    linear, l1, ridge, lower, upper = boxes(n)
    upper[rng.random(n) < 0.2] = np.inf
    beta, f = inside(lower, np.minimum(upper, 2.0)), rng.normal(size=n)
    largest = float(np.abs(beta).max(initial=0.0))
    vectors = linear, l1, ridge, lower, upper
    worst, outside, total = loops.check_optimality(beta, f, *vectors, largest)
    each = [violation(*numbers, largest) for numbers in zip(beta, f, *vectors, strict=True)]
    assert worst == pytest.approx(max(each, default=0.0), rel=1e-13)
    assert outside == 0.0 and total == pytest.approx(beta.sum(), rel=1e-13, abs=1e-15)
    if n:
        beta[n // 2] = lower[n // 2] - 0.25
        assert loops.check_optimality(beta, f, *vectors, largest)[1] == pytest.approx(0.25)


@pytest.mark.parametrize("what", ["beta", "f"])
def test_optimality_keeps_nan(what):
    """One NaN makes the violation NaN, wherever it is; a NaN of β makes the others NaN, too."""
    linear, l1, ridge, lower, upper = boxes(9)
    for place in (0, 4, 8):
        beta, f = inside(lower, upper), np.ones(9)
        (beta if what == "beta" else f)[place] = np.nan
        worst, outside, total = loops.check_optimality(beta, f, linear, l1, ridge, lower, upper, 1.0)
        assert np.isnan(worst) and np.isnan(outside) == np.isnan(total) == (what == "beta")
