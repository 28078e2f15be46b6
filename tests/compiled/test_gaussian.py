"""Gaussian values computed without sums in memory are those of the formula, and the same at every position."""

import numpy as np
import pytest

from mercer._compiled.kernel_maps import EXPONENTIAL, map_address
from mercer._compiled.register_tiles import ROWS, lanes
from mercer._compiled.tiles import DOT, SQUARE, dense_block, mapped_block, sums_address
from mercer.kernels.features import VectorFeatures

# relative error of the exponential alone
ERROR = {np.float32: 4e-7, np.float64: 1e-14}
SIZES = [
    (1, 1, 1),
    (5, 15, 3),
    (6, 16, 8),
    (7, 17, 1),
    (13, 33, 5),
    (49, 100, 31),
    (97, 257, 2),
    (3, 40, 0),
    (203, 50, 90),
]

both_terms = pytest.mark.parametrize("term", [DOT, SQUARE], ids=["products", "differences"])
both_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def panels_of(B):
    return VectorFeatures(B, B.dtype).panels


def norms_of(X):
    return np.sum(X.astype(np.float64) ** 2, axis=1).astype(X.dtype)


def gaussian(term, gamma, A, B, out=None, start=0, compute=dense_block):
    """exp(-gamma |a - b|^2) of all rows with the samples from panel ``start`` on."""
    params, panels = np.array([term == DOT, gamma, 0.0, 0.0], A.dtype), panels_of(B)
    if out is None:
        out = np.full((len(A), len(B) - start * lanes(B.dtype)), 7.0, A.dtype)
    compute(term, EXPONENTIAL, params, A, norms_of(A), panels, norms_of(B), start, len(panels), out)
    return out


def by_passes(term, code, params, *arguments):
    """`dense_block` by a tile of sums in memory and a map."""
    mapped_block(sums_address(term, params.dtype), map_address(code, params.dtype), params, *arguments)


def reference(gamma, A, B):
    A, B = A.astype(np.float64), B.astype(np.float64)
    return np.array([[np.exp(-gamma * sum((x - z) ** 2 for x, z in zip(a, b, strict=True))) for b in B] for a in A])


@both_terms
@both_dtypes
def test_values_of_exact_distances(term, dtype):
    """With whole numbers the distances are exact, and the error is that of the exponential: blocks of any size."""
    rng = np.random.default_rng(0)
    for m, n, d in SIZES:
        A, B = (rng.integers(-3, 4, size=(size, d)).astype(dtype) for size in (m, n))
        gamma = 1 / 64
        np.testing.assert_allclose(gaussian(term, gamma, A, B), reference(gamma, A, B), rtol=ERROR[dtype])


@both_terms
@both_dtypes
def test_values_of_rounded_distances(term, dtype):
    """What rounding adds is at most gamma times the rounding of the sums."""
    rng = np.random.default_rng(1)
    eps = np.finfo(dtype).eps
    for m, n, d in SIZES[:-2]:
        A, B = (rng.normal(size=(size, d)).astype(dtype) for size in (m, n))
        gamma = 0.5 / d
        size = norms_of(A)[:, None] + norms_of(B) if term == DOT else -np.log(reference(1.0, A, B))
        allowed = ERROR[dtype] + gamma * (d + 4) * eps * size
        exact = reference(gamma, A, B)
        assert np.all(np.abs(gaussian(term, gamma, A, B) - exact) <= allowed * exact)


@both_terms
@both_dtypes
def test_the_passes_over_sums_give_the_same_bits(term, dtype):
    """So that values do not depend on which of the two computes them."""
    rng = np.random.default_rng(2)
    for m, n, d in SIZES:
        A, B = (rng.normal(size=(size, d)).astype(dtype) for size in (m, n))
        fused, passes = (gaussian(term, 0.3, A, B, compute=compute) for compute in (dense_block, by_passes))
        np.testing.assert_array_equal(fused, passes)


@both_terms
@both_dtypes
def test_a_value_does_not_depend_on_its_place(term, dtype):
    """Alone, in a tile that is not full, in another tile or from a later panel on: the same bits."""
    rng = np.random.default_rng(3)
    m, n, d = 18 * ROWS + 1, 5 * lanes(np.dtype(dtype)) + 3, 19
    A, B = (rng.normal(size=(size, d)).astype(dtype) for size in (m, n))
    whole = gaussian(term, 0.05, A, B)
    for i, j in ((0, 0), (4, 11), (m // 2, n // 2), (m - 1, n - 1)):
        assert gaussian(term, 0.05, A[i : i + 1], B[j : j + 1])[0, 0] == whole[i, j]
    for rows, columns in ((slice(3, 17), slice(1, 20)), (slice(m - 4, m), slice(n - 5, n)), (slice(1, m), slice(2, n))):
        np.testing.assert_array_equal(gaussian(term, 0.05, A[rows], B[columns]), whole[rows, columns])
    for start in (1, 5):
        np.testing.assert_array_equal(
            gaussian(term, 0.05, A, B, start=start), whole[:, start * lanes(np.dtype(dtype)) :]
        )


@both_terms
@both_dtypes
@pytest.mark.parametrize("compute", [dense_block, by_passes])
def test_lines_that_are_longer_end_with_the_samples(term, dtype, compute):
    """Lines of a part of a matrix are longer: the columns beyond the samples are not written."""
    rng = np.random.default_rng(5)
    A, B = rng.normal(size=(8, 3)).astype(dtype), rng.normal(size=(lanes(np.dtype(dtype)) + 2, 3)).astype(dtype)
    out = np.full((8, 100), np.nan, dtype)
    whole = gaussian(term, 0.3, A, B, compute=compute)
    np.testing.assert_array_equal(gaussian(term, 0.3, A, B, out, compute=compute)[:, : len(B)], whole)
    assert np.isnan(out[:, len(B) :]).all()


@both_terms
@both_dtypes
def test_nothing_else_is_written(term, dtype):
    """Parts of a larger matrix are filled; all around them stays, also where columns are apart in memory."""
    rng = np.random.default_rng(4)
    for m, n, d in SIZES:
        A, B = (rng.normal(size=(size, d)).astype(dtype) for size in (m, n))
        expected = gaussian(term, 0.3, A, B)
        around, apart = np.full((m + 2, n + 2), 7.0, dtype), np.full((n + 2, m + 2), 7.0, dtype).T
        for matrix in (around, apart):
            part = matrix[1:-1, 1:-1]
            np.testing.assert_array_equal(gaussian(term, 0.3, A, B, part), expected)
            part[...] = 7.0
            assert np.all(matrix == 7.0)


@both_terms
@both_dtypes
def test_missing_values_stay_visible(term, dtype):
    """NaN in a sample makes its values NaN, and those of no other sample."""
    rng = np.random.default_rng(5)
    A, B = (rng.normal(size=(size, 4)).astype(dtype) for size in (20, 40))
    clean = gaussian(term, 0.5, A, B)
    for sign in (np.nan, -np.nan):
        a, b = A.copy(), B.copy()
        a[7, 2], b[[3, 39], 1] = sign, sign
        expected = clean.copy()
        expected[7], expected[:, [3, 39]] = np.nan, np.nan
        np.testing.assert_array_equal(gaussian(term, 0.5, a, b), expected)


@both_dtypes
def test_infinite_samples(dtype):
    """An infinite distance gives 0, inf - inf gives NaN, which inner products meet more often than differences."""
    A, B = np.zeros((7, 3), dtype), np.ones((18, 3), dtype)
    A[4, 1], B[[2, 17], 1] = np.inf, (np.inf, -np.inf)
    by_differences, by_products = gaussian(SQUARE, 0.5, A, B), gaussian(DOT, 0.5, A, B)
    expected = np.full((7, 18), by_differences[0, 0])
    expected[4], expected[:, [2, 17]] = 0.0, 0.0
    expected[4, 2] = np.nan
    np.testing.assert_array_equal(by_differences, expected)
    expected[4], expected[:, [2, 17]] = np.nan, np.nan
    expected[4, 17] = 0.0  # inf + inf - 2 (-inf)
    np.testing.assert_array_equal(by_products, expected)


@both_terms
@both_dtypes
def test_near_and_far(term, dtype):
    """No value exceeds 1, a sample has 1 with itself by differences, and one far away has exactly 0 with it."""
    rng = np.random.default_rng(6)
    A = (100 + rng.normal(size=(30, 25))).astype(dtype)
    values = gaussian(term, 1e-3, A, A)
    assert values.max() <= 1.0
    if term == SQUARE:
        np.testing.assert_array_equal(np.diag(values), 1.0)
    np.testing.assert_array_equal(gaussian(term, 1.0, A, -A), 0.0)
