"""Loops that a spin pool shares give the same bits as one thread, however many workers take part."""

import os
import threading
import time

import numpy as np
import pytest

from mercer._compiled import shared_loops as shared
from mercer._compiled import stored_rows, tiles
from mercer._compiled.thread_pool import current_spin_pool, run_shares, run_tasks
from mercer._compiled.tiles import formula_of
from mercer.kernels import Gaussian, Polynomial

pytestmark = pytest.mark.skipif(not shared.CAN_SPIN, reason="workers spin on Linux only")


def workers(n_threads):
    """Share loops of any length among this many threads, on any machine with up to three workers."""
    return shared.spinning_workers(n_threads, shared_from=0, part_from=1, n_cores=4)


def rows(n=300, d=1501, dtype=np.float32):
    return np.random.default_rng(0).normal(size=(n, d)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [Gaussian(0.1), Polynomial(degree=3, gamma=0.1)], ids=["fused", "mapped"])
@pytest.mark.parametrize("m", [1, 6, 131])
def test_kernel_values(dtype, kernel, m):
    """Blocks of any height, within other arrays, which stay as they are around them."""
    b = kernel.prepare(rows(700, 9), dtype)
    a = b.take(np.arange(m))
    alone = kernel.block(a, b)
    with workers(4):
        for _ in range(20):
            around = np.zeros((m + 2, 700), dtype)
            kernel.block(a, b, around[1:-1])
            np.testing.assert_array_equal(around[1:-1], alone)
            assert not around[0].any() and not around[-1].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_rows(dtype):
    """In float64; the last entry of out has no column and stays zero."""
    store, rng = rows(dtype=dtype), np.random.default_rng(1)
    slots, weights = rng.permutation(300)[:97], rng.normal(size=97)
    alone, together = np.zeros(1502), np.zeros(1502)
    tiles.add_rows_product(store, slots, weights, 0, 1501, alone)
    with workers(4):
        shared.add_rows_product(store, slots, weights, together)
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("block_dtype", [np.float32, np.float64])
def test_rows_of_new_members(dtype, block_dtype):
    """Read into a block of the same or of another precision."""
    store, rng, m = rows(dtype=dtype), np.random.default_rng(2), 128
    slots, order, new_places = rng.permutation(300)[:m], rng.permutation(m), rng.permutation(m)[:60]
    column = np.sort(rng.permutation(1501)[:m])
    alone, together = np.zeros((150, 150), block_dtype), np.zeros((150, 150), block_dtype)
    stored_rows.read_rows(store, slots, order, column, new_places, 0, len(new_places), alone)
    with workers(4):
        shared.read_rows(store, slots, order, column, new_places, together)
    np.testing.assert_array_equal(together, alone)


def comes_true(condition, seconds=60.0):
    """Whether the condition comes true within this many seconds; a busy machine may need them."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def test_workers_take_parts():
    """Another thread takes parts, once it has been woken."""
    if os.cpu_count() == 1:
        pytest.skip("one core")
    kernel = Gaussian(0.1)
    b = kernel.prepare(rows(2000, 50), np.float32)
    with workers(2):
        mine = current_spin_pool()
        for _ in range(2000):
            kernel.block(b, b)
            serves = len(mine._workers) == 1 and mine._workers[0][shared.SERVES] == mine.slot.ctypes.data
            if mine.slot[shared.NEXT_PART] > 0 and serves:
                break
        assert serves
    assert comes_true(lambda: mine._workers[0][shared.SERVES] == 0), "a released worker still serves"


def test_idle_workers_sleep_and_are_acquired_again():
    """A worker without jobs sleeps, and the next job wakes it."""
    store, out = rows(), np.zeros(1502)
    with workers(2):
        worker = current_spin_pool()._workers[0]
        assert comes_true(lambda: worker[shared.SERVES] == 0), "an idle worker does not sleep"
        shared.add_rows_product(store, np.arange(5), np.ones(5), out)
        assert len(current_spin_pool()._workers) == 1
    np.testing.assert_allclose(out[:-1], store[:5].sum(axis=0, dtype=np.float64))


def test_many_owners_at_once():
    """Pools of several threads do not mix; a thread that finds no idle worker works alone."""
    kernel, failures = Gaussian(0.1), []
    b = kernel.prepare(rows(400, 20), np.float32)
    alone = kernel.block(b, b)

    def work():
        for _ in range(30):
            with workers(3):
                if not np.array_equal(kernel.block(b, b), alone):
                    failures.append(1)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_around_shared_loops_there_is_one_thread():
    """A thread with a spin pool does not use the thread pool; nested blocks share one pool; one thread needs none."""
    seen = []
    with workers(2):
        outer = current_spin_pool()
        run_tasks(lambda task: seen.append((task, threading.get_ident())), 3, 2)
        run_shares(lambda start, stop: seen.append((start, stop)), 10, 2)
        with workers(2):
            assert current_spin_pool() is outer
        assert current_spin_pool() is outer
    assert seen == [(k, threading.get_ident()) for k in range(3)] + [(0, 10)]
    assert current_spin_pool() is None
    with workers(1):
        assert current_spin_pool() is None


def test_machine_code_of_jobs_is_found_on_disk():
    """numba's cache compares what a function closes over: types and numbers are equal in every process."""
    kinds = (np.float32, np.float64)
    jobs = [make(kind) for make in (shared._block_job, shared._product_job) for kind in kinds]
    jobs += [shared._read_job(kind, other) for kind in kinds for other in kinds]
    for job in jobs:
        assert all(isinstance(cell.cell_contents, type | int) for cell in job.py_func.__closure__ or ()), job


@pytest.mark.parametrize("n_threads", [1, 3])
def test_shared_loops_called_directly(n_threads):
    """A job slot with its arguments gives NumPy's values, with and without workers, whatever the size of a part."""
    store, rng = rows(40, 700), np.random.default_rng(3)
    pool = shared.SpinPool(n_threads - 1, n_cores=4)
    try:
        chosen, weights = rng.permutation(40)[:9], rng.normal(size=9)
        for width in (256, 512, 4096):
            out = np.ones(700)
            job = shared._product_job_address(store.dtype)
            shared.share_product(pool.slot, pool.next_job(), job, store, chosen, weights, out, width)
            np.testing.assert_allclose(out, 1.0 + weights @ store[chosen].astype(np.float64), rtol=1e-12, atol=1e-12)
        m = 20
        slots, order, new_places = rng.permutation(40)[:m], rng.permutation(m), rng.permutation(m)[:7]
        column, expected = np.sort(rng.permutation(700)[:m]), np.zeros((m, m), np.float32)
        expected[np.ix_(new_places, order)] = store[np.ix_(slots[new_places], column)]
        for height in (1, 3, 100):
            block = np.zeros((m, m), np.float32)
            job = shared._read_job_address(store.dtype, block.dtype)
            arguments = store, slots, order, column, new_places, block, height
            shared.share_reading(pool.slot, pool.next_job(), job, *arguments)
            np.testing.assert_array_equal(block, expected)
        kernel = Gaussian(0.3)
        b = kernel.prepare(store[:, :5], np.float32)
        a, formula, found = b.take(np.arange(11)), formula_of(*kernel.formula(b)), np.empty((11, 40), np.float32)
        job = shared._block_job_address(found.dtype)
        for per_part in (1, 2, 100):
            found[:] = np.nan
            shared.share_block(
                pool.slot, pool.next_job(), job, formula, a.X, a.norms, b.panels, b.norms, found, per_part
            )
            exact = store[:, :5].astype(np.float64)
            squares = ((exact[:11, None] - exact) ** 2).sum(axis=2)
            np.testing.assert_allclose(found, np.exp(-0.3 * squares), rtol=1e-4)
    finally:
        pool.release()
