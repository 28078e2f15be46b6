"""Stored rows are the kernel's rows, and their bytes keep the budget."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer._compiled.shared_loops import add_rows_product
from mercer.gram.operator import GramOperator, MatrixRows, RowStore
from mercer.kernels import Gaussian

N = 120
X = np.random.default_rng(0).normal(size=(N, 4))
KERNEL = Gaussian(0.2)
GRAMS = {dtype: GramOperator(KERNEL, KERNEL.prepare(X, dtype)) for dtype in (np.float32, np.float64)}
DENSE = {dtype: gram.dense() for dtype, gram in GRAMS.items()}


def check_rows(store, samples, K):
    """Assert that the slots hold the rows of these samples."""
    slots = store.ensure(samples)
    np.testing.assert_array_equal(store.values[slots], K[samples])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_rows", [10, 25, 60, 119, 120, 500])
def test_any_row_at_any_time(dtype, n_rows):
    """Random requests, most of which need rows given up before, have the dense matrix's rows; bytes keep the budget."""
    rng = np.random.default_rng(1)
    budget = n_rows * N * np.dtype(dtype).itemsize + 17
    store = RowStore(GRAMS[dtype], budget, at_least=10)
    for _ in range(60):
        samples = rng.permutation(N)[: rng.integers(1, min(n_rows, N) + 1)]
        check_rows(store, samples, DENSE[dtype])
        assert store.values.nbytes <= store.buffer.nbytes <= budget
    assert store.capacity == min(n_rows, N)
    used = store.sample_of[: store.used]
    np.testing.assert_array_equal(store.slot_of[used], np.arange(store.used))
    assert np.count_nonzero(store.slot_of >= 0) == store.used


def test_a_working_set_fits_whatever_the_budget():
    """With no bytes at all there is room for at_least rows, and for no more."""
    store = RowStore(GRAMS[np.float64], 0, at_least=7)
    assert store.capacity == 7 and store.buffer.nbytes == 7 * N * 8
    check_rows(store, np.arange(3, 10), DENSE[np.float64])


def test_rows_that_are_there_are_not_computed_again():
    """The counter stands still for rows in store, and repeated samples count once."""
    gram = GramOperator(KERNEL, KERNEL.prepare(X))
    store = RowStore(gram, 1 << 30)
    store.ensure(np.array([3, 5, 3]))
    assert gram.evaluations.count == 2 * N
    store.ensure(np.array([5, 3]))
    assert gram.evaluations.count == 2 * N
    store.ensure(np.arange(N))
    assert gram.evaluations.count == N * N


def test_finding_computes_nothing():
    """Slots of rows that are there, -1 for others; there is room until the last row."""
    gram = GramOperator(KERNEL, KERNEL.prepare(X))
    store = RowStore(gram, 4 * N * 8)
    slots = store.ensure(np.array([3, 5]))
    assert store.has_room
    np.testing.assert_array_equal(store.find(np.array([5, 7, 3])), [slots[1], -1, slots[0]])
    assert gram.evaluations.count == 2 * N
    store.ensure(np.array([8, 9]))
    assert not store.has_room
    np.testing.assert_array_equal(MatrixRows(gram.dense(), 1).find(np.array([4, 2])), [4, 2])


def test_rows_asked_for_now_are_not_given_up():
    """A full store keeps those of the present request, in any order of requests."""
    store = RowStore(GRAMS[np.float64], 12 * N * 8)
    for start in range(0, N - 12, 5):
        check_rows(store, np.arange(start, start + 12), DENSE[np.float64])
        check_rows(store, np.array([start, start + 11, *range(60, 70)]), DENSE[np.float64])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(8, 200), st.booleans())
def test_columns_leave_and_join(seed, n_rows, single):
    """After any sequence of restrictions, extensions and requests each row is right, within the same memory."""
    rng = np.random.default_rng(seed)
    dtype = np.float32 if single else np.float64
    whole, K = GRAMS[dtype], DENSE[dtype]
    store = RowStore(whole, n_rows * N * np.dtype(dtype).itemsize, at_least=8)
    buffer, active = store.buffer, np.arange(N)
    for _ in range(12):
        wanted = rng.permutation(len(active))[: min(store.capacity, rng.integers(1, 30))]
        check_rows(store, wanted, K[np.ix_(active, active)])
        if rng.random() < 0.5 and len(active) > 20:
            kept = np.sort(rng.permutation(len(active))[: rng.integers(10, len(active))])
            active = active[kept]
            store.restrict(kept, whole.take(active))
        else:
            new = np.union1d(active, rng.integers(0, N, size=rng.integers(1, 60)))
            keep = rng.random(len(active)) < 0.5
            store.extend(np.searchsorted(new, active), whole.take(new), keep)
            active = new
        part = K[np.ix_(active, active)]
        stored = store.sample_of[: store.used]
        np.testing.assert_array_equal(store.values[: store.used], part[stored])
        assert store.buffer is buffer and store.values.nbytes <= buffer.nbytes
        assert store.values.shape[1] == len(active)


def test_what_stays_is_not_computed_again():
    """A restriction computes nothing; an extension the new entries of the rows that stay."""
    gram = GramOperator(KERNEL, KERNEL.prepare(X))
    store = RowStore(gram, 1 << 30)
    store.ensure(np.arange(0, 50))
    before, half = gram.evaluations.count, np.arange(0, N, 2)
    store.restrict(half, gram.take(half))
    assert gram.evaluations.count == before and store.used == 25
    keep = np.zeros(60, np.bool_)
    keep[:10] = True
    store.extend(half, gram, keep)
    assert store.used == 10 and gram.evaluations.count == before + 10 * 60


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_stored_rows(dtype):
    """out += weights' rows, in float64, for a store and for a whole matrix, whatever the number of threads."""
    rng = np.random.default_rng(2)
    samples, weights, start = rng.permutation(N)[:30], rng.normal(size=30), rng.normal(size=N)
    expected = start + weights @ DENSE[dtype][samples].astype(np.float64)
    for store in (RowStore(GRAMS[dtype], 1 << 30), MatrixRows(DENSE[dtype], 3)):
        out = start.copy()
        store.add_product(store.ensure(samples), weights, out)
        np.testing.assert_allclose(out, expected, rtol=0, atol=1e-13)
    wide = rng.normal(size=(120, 9001)).astype(dtype)
    weights = rng.normal(size=120)
    outs = [np.zeros(9001) for _ in range(3)]
    for n_threads, out in enumerate(outs, start=1):
        add_rows_product(wide, np.arange(120), weights, out, n_threads)
        np.testing.assert_array_equal(out, outs[0])
    np.testing.assert_allclose(outs[0], weights @ wide.astype(np.float64), rtol=0, atol=1e-12)
