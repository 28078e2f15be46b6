"""Tiles give numpy's sums at any size, and do not write beyond their place."""

import numpy as np
import pytest
import scipy.sparse as sp
from numba import njit

from mercer._compiled.kernel_maps import IDENTITY, map_address
from mercer._compiled.register_tiles import ROWS, VECTOR_BYTES, transpose_tile
from mercer._compiled.sparse_tiles import absolute_sums, sparse_block, squared_norms
from mercer._compiled.tiles import (
    CHI2,
    DOT,
    L1,
    MIN,
    SQUARE,
    add_block_product,
    add_rows_product,
    chi2_sums,
    dense_block,
    distance_sums,
    dot_sums,
    min_sums,
    square_sums,
)
from mercer.kernels import Chi2, Gaussian, Laplacian, Linear, Min, Polynomial, Sigmoid
from mercer.kernels.features import VectorFeatures

EPSILON = {np.float32: 1e-6, np.float64: 1e-14}


def chi2(a, b):
    return np.where(a + b > 0, (a - b) ** 2 / np.where(a + b > 0, a + b, 1.0), 0.0)


TERMS = {
    DOT: lambda a, b: a * b,
    SQUARE: lambda a, b: (a - b) ** 2,
    L1: lambda a, b: np.abs(a - b),
    MIN: np.minimum,
    CHI2: chi2,
}
PLAIN = np.zeros(4)


def nonnegative(rng, shape, dtype, density=1.0):
    return np.where(rng.random(shape) < density, rng.random(shape), 0.0).astype(dtype)


def reference(term, A, B):
    return TERMS[term](A.astype(np.float64)[:, None], B.astype(np.float64)).sum(axis=2)


def panels_of(B):
    return VectorFeatures(B, B.dtype).panels


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("term", TERMS)
def test_dense_sums_of_any_size(term, dtype):
    """Odd numbers of rows, columns and features; values around the result stay as they were."""
    rng = np.random.default_rng(0)
    for m, n, d in [(1, 1, 1), (5, 15, 3), (6, 16, 8), (7, 17, 1), (13, 33, 5), (49, 100, 31), (97, 257, 2)]:
        A, B = nonnegative(rng, (m, d), dtype, 0.8), nonnegative(rng, (n, d), dtype, 0.8)
        around = np.full((m + 2, n + 2), 7.0, dtype)
        out = around[1:-1, 1:-1]
        panels = panels_of(B)
        dense_block(
            term, IDENTITY, PLAIN.astype(dtype), A, np.zeros(m, dtype), panels, np.zeros(n, dtype), 0, len(panels), out
        )
        np.testing.assert_allclose(out, reference(term, A, B), rtol=0, atol=d * EPSILON[dtype])
        out[...] = 7.0
        assert np.all(around == 7.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("term", "loop"),
    [(DOT, dot_sums), (SQUARE, square_sums), (L1, distance_sums), (MIN, min_sums), (CHI2, chi2_sums)],
)
def test_sums_of_some_panels(term, loop, dtype):
    """The loop of a term, for two of the three panels."""
    rng = np.random.default_rng(4)
    width = panels_of(np.zeros((1, 1), dtype)).shape[2]
    A, B = nonnegative(rng, (2 * ROWS, 7), dtype, 0.8), nonnegative(rng, (3 * width, 7), dtype, 0.8)
    sums = np.empty((2 * ROWS, 2 * width), dtype)
    loop(A, panels_of(B), 1, 3, sums)
    np.testing.assert_allclose(sums, reference(term, A, B[width:]), rtol=0, atol=7 * EPSILON[dtype])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("term", [DOT, L1, MIN, CHI2])
def test_sparse_sums_of_any_size(term, dtype):
    """As the dense ones; rows without entries, and any choice of rows."""
    rng = np.random.default_rng(1)
    for m, n, d in [(1, 1, 1), (5, 15, 3), (31, 127, 8), (33, 129, 20), (70, 300, 5)]:
        A, B = nonnegative(rng, (m, d), dtype, 0.3), nonnegative(rng, (n, d), dtype, 0.3)
        a, b = sp.csr_array(A), sp.csr_array(B)
        rows = rng.integers(0, m, size=m + 1)
        around = np.full((m + 3, n + 2), 7.0, dtype)
        out = around[1:-1, 1:-1]
        totals = A.sum(axis=1) if term in (L1, CHI2) else np.zeros(m, dtype)
        sparse_block(
            term, map_address(IDENTITY, np.dtype(dtype)), PLAIN.astype(dtype),
            a.indptr, a.indices, a.data, np.zeros(m, dtype), totals, rows,
            b.indptr, b.indices, b.data, np.zeros(n, dtype), d, out,
        )  # fmt: skip
        np.testing.assert_allclose(out, reference(term, A, B)[rows], rtol=0, atol=4 * d * EPSILON[dtype])
        out[...] = 7.0
        assert np.all(around == 7.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "kernel",
    [Linear(), Gaussian(0.3), Laplacian(0.2), Min(), Chi2(0.5), Polynomial(3, 0.1, 1.0), Sigmoid(0.1, 0.5)],
    ids=str,
)
def test_sparse_products(kernel, dtype):
    """Σ_j k(a_i, b_j) w_j is the same with and without the block, and for a row in any batch."""
    rng = np.random.default_rng(5)
    for m, n, d in [(1, 1, 1), (5, 15, 3), (31, 127, 8), (33, 129, 20), (70, 300, 5)]:
        A, B = nonnegative(rng, (m, d), dtype, 0.3), nonnegative(rng, (n, d), dtype, 0.3)
        a, b = kernel.prepare(sp.csr_array(A), dtype), kernel.prepare(sp.csr_array(B), dtype)
        if not b.sparse:
            continue
        w, scratch, out = rng.normal(size=n).astype(dtype), np.empty((m, n), dtype), np.ones(m)
        kernel.add_product(a, b, w, out, scratch)
        block = kernel.block(a, b).astype(np.float64)
        size = np.abs(block) @ np.abs(w.astype(np.float64)) + 1.0
        np.testing.assert_array_less(np.abs(out - 1.0 - block @ w.astype(np.float64)), 10 * EPSILON[dtype] * size)
        for i in {0, m // 2, m - 1}:
            alone = np.ones(1)
            kernel.add_product(a.take(np.array([i])), b, w, alone, scratch[:1])
            assert alone[0] == out[i]


def test_a_value_does_not_depend_on_its_tile():
    """Each entry has the same bits in a block of any shape around it."""
    rng = np.random.default_rng(2)
    A, B = rng.normal(size=(50, 37)).astype(np.float32), rng.normal(size=(70, 37)).astype(np.float32)

    def sums(A, B):
        panels, out = panels_of(B), np.empty((len(A), len(B)), np.float32)
        norms = np.zeros(len(B), np.float32)
        dense_block(
            DOT, IDENTITY, PLAIN.astype(np.float32), A, np.zeros(len(A), np.float32), panels, norms, 0, len(panels), out
        )
        return out

    whole = sums(A, B)
    for i, j in ((0, 0), (17, 33), (49, 69)):
        np.testing.assert_array_equal(sums(A[i : i + ROWS], B[j : j + 3]), whole[i : i + ROWS, j : j + 3])


@njit
def _transposed(source, row, column, target, target_row, target_column):
    transpose_tile(source, row, column, target, target_row, target_column)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transposed_square(dtype):
    """A square of one vector's width, from any place to any place, and nothing else."""
    width = VECTOR_BYTES // np.dtype(dtype).itemsize
    source = np.arange(20.0 * 23).reshape(20, 23).astype(dtype)
    target, expected = np.zeros((30, 29), dtype), np.zeros((30, 29), dtype)
    _transposed(source, 3, 5, target, 7, 2)
    expected[7 : 7 + width, 2 : 2 + width] = source[3 : 3 + width, 5 : 5 + width].T
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_in_double(dtype):
    """Values of either dtype are summed in float64; ranges and rows are as asked."""
    rng = np.random.default_rng(3)
    for m, n in [(1, 1), (3, 7), (5, 2049), (9, 4100)]:
        block, w, v = rng.normal(size=(m, n)).astype(dtype), rng.normal(size=n), rng.normal(size=m)
        out = np.ones(m)
        add_block_product(block, w, out)
        np.testing.assert_allclose(out, 1.0 + block.astype(np.float64) @ w, rtol=0, atol=1e-12 * n)
        slots = rng.permutation(m)
        out = np.ones(n)
        add_rows_product(block, slots, v, n // 3, n, out)
        expected = np.ones(n)
        expected[n // 3 :] += (v @ block[slots].astype(np.float64))[n // 3 :]
        np.testing.assert_allclose(out, expected, rtol=0, atol=1e-13 * m)


def test_sums_of_csr_rows():
    """Squared norms and absolute sums, of empty rows too."""
    X = sp.random_array((30, 9), density=0.2, rng=np.random.default_rng(4), format="csr")
    X.data -= 0.5
    squares, totals = np.empty(30), np.empty(30)
    squared_norms(X.indptr, X.data, squares)
    absolute_sums(X.indptr, X.data, totals)
    np.testing.assert_allclose(squares, (X.toarray() ** 2).sum(axis=1), atol=1e-15)
    np.testing.assert_allclose(totals, np.abs(X.toarray()).sum(axis=1), atol=1e-15)
