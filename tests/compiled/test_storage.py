"""Rows that move within one buffer keep their values."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer._compiled.stored_rows import compact, fill, find_rows, join, spread, take_rows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(5))
def test_columns_go_and_come(seed, dtype):
    """compact keeps chosen rows and columns, spread puts columns apart, fill writes between: as numpy's indexing."""
    rng = np.random.default_rng(seed)
    n, rows = 40, 25
    values = rng.normal(size=(rows, n)).astype(dtype)
    buffer = np.append(values.ravel(), np.zeros(500, dtype))
    slots = np.sort(rng.permutation(rows)[:12])
    columns = np.sort(rng.permutation(n)[:17])
    compact(buffer, n, slots, columns)
    kept = values[np.ix_(slots, columns)]
    np.testing.assert_array_equal(buffer[: kept.size].reshape(kept.shape), kept)

    wider = 31
    places = np.sort(rng.permutation(wider)[:17])
    spread(buffer, 17, 12, places, wider)
    result = buffer[: 12 * wider].reshape(12, wider)
    np.testing.assert_array_equal(result[:, places], kept)

    others = np.setdiff1d(np.arange(wider), places)
    new = rng.normal(size=(12, len(others))).astype(dtype)
    fill(buffer, wider, others, new)
    np.testing.assert_array_equal(result[:, others], new)
    np.testing.assert_array_equal(result[:, places], kept)


def test_nothing_moves_without_rows_or_columns():
    """No rows, or all columns in place: the buffer stays."""
    buffer = np.arange(12.0)
    none = np.empty(0, np.intp)
    compact(buffer, 4, none, np.arange(2))
    compact(buffer, 4, np.arange(3), np.arange(4))
    spread(buffer, 4, 0, np.arange(4), 9)
    fill(buffer, 4, none, np.empty((3, 0)))
    np.testing.assert_array_equal(buffer, np.arange(12.0))


@pytest.mark.parametrize(("n_i", "n_j"), [(1, 1), (1, 40), (33, 2), (31, 65)])
def test_join(n_i, n_j):
    """[[first, between], [between', second]], in float32."""
    rng = np.random.default_rng(1)
    first, second, between = (rng.normal(size=s).astype(np.float32) for s in ((n_i, n_i), (n_j, n_j), (n_i, n_j)))
    K = np.full((n_i + n_j, n_i + n_j), np.nan, np.float32)
    join(first, second, between, K)
    np.testing.assert_array_equal(K, np.block([[first, between], [between.T, second]]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_take_rows(dtype):
    """Rows of a CSR matrix in any order, repeated, empty or none, as scipy takes them."""
    X = sp.random_array((30, 9), density=0.2, rng=np.random.default_rng(4), format="csr").astype(dtype)
    for rows in ([], [3], [29, 0, 0, 7], list(range(30))):
        index = np.array(rows, np.intp)
        indptr, indices, data = take_rows(X.indptr, X.indices, X.data, index)
        assert data.dtype == dtype and len(indptr) == len(rows) + 1
        found = sp.csr_array((data, indices, indptr), shape=(len(rows), 9)).toarray()
        np.testing.assert_array_equal(found, X.toarray()[index])


def test_rows_are_found():
    """Each sample's slot, with the time of its use, and those that have none once, in their order."""
    slot_of, last_used = np.array([-1, 2, -1, 0, -1, 1]), np.zeros(4, np.int64)
    samples, known = np.array([4, 3, 0, 4, 1, 0, 3]), slot_of.copy()
    slots, missing = np.empty((2, 7), np.intp)
    count = find_rows(slot_of, last_used, 9, samples, slots, missing)
    np.testing.assert_array_equal(slots, known[samples])
    np.testing.assert_array_equal(missing[:count], [4, 0])
    np.testing.assert_array_equal(slot_of, known)
    np.testing.assert_array_equal(last_used, [9, 0, 9, 0])
