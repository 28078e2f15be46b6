"""Loops that a team shares give the bits of the same loops alone, whoever helps and whenever."""

import os
import threading
import time

import numpy as np
import pytest

from mercer._compiled import shared_loops as shared
from mercer._compiled import spin_pool as team
from mercer._compiled import stored_rows, tiles
from mercer._compiled.thread_pool import run_shares, run_tasks
from mercer.kernels import Gaussian, Polynomial

pytestmark = pytest.mark.skipif(not team.CAN_SPIN, reason="teams are for Linux")


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """Share however short a loop is, with three helpers on any machine."""
    monkeypatch.setattr(shared, "SHARED_FROM", 0)
    monkeypatch.setattr(shared, "PART_FROM", 1)
    monkeypatch.setattr(team, "available_cores", lambda: 4)


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
    with team.gathered(4):
        for _ in range(20):
            around = np.zeros((m + 2, 700), dtype)
            kernel.block(a, b, around[1:-1])
            np.testing.assert_array_equal(around[1:-1], alone)
            assert not around[0].any() and not around[-1].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_rows(dtype):
    """In float64, beside an entry that belongs to nobody."""
    store, rng = rows(dtype=dtype), np.random.default_rng(1)
    slots, weights = rng.permutation(300)[:97], rng.normal(size=97)
    alone, together = np.zeros(1502), np.zeros(1502)
    tiles.add_rows_product(store, slots, weights, 0, 1501, alone)
    with team.gathered(4):
        shared.add_rows_product(store, slots, weights, together)
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("block_dtype", [np.float32, np.float64])
def test_rows_of_newcomers(dtype, block_dtype):
    """Read into a block of the same or another precision."""
    store, rng, m = rows(dtype=dtype), np.random.default_rng(2), 128
    slots, order, fresh = rng.permutation(300)[:m], rng.permutation(m), rng.permutation(m)[:60]
    column = np.sort(rng.permutation(1501)[:m])
    alone, together = np.zeros((150, 150), block_dtype), np.zeros((150, 150), block_dtype)
    stored_rows.read_rows(store, slots, order, column, fresh, 0, len(fresh), alone)
    with team.gathered(4):
        shared.read_rows(store, slots, order, column, fresh, together)
    np.testing.assert_array_equal(together, alone)


def comes_true(condition, seconds=60.0):
    """Whether the condition holds before so many seconds are over, which a busy machine may need."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def test_helpers_help():
    """Another thread takes parts, if it is given the time to come."""
    if os.cpu_count() == 1:
        pytest.skip("one core")
    kernel = Gaussian(0.1)
    b = kernel.prepare(rows(2000, 50), np.float32)
    with team.gathered(2):
        mine = team.current()
        for _ in range(2000):
            kernel.block(b, b)
            helped = len(mine._desks) == 1 and mine._desks[0][team.WANTED] == mine.mail.ctypes.data
            if mine.mail[team.NEXT] > 0 and helped:
                break
        assert helped
    assert comes_true(lambda: mine._desks[0][team.WANTED] == 0), "the helper was dismissed, but is still there"


def test_idle_helpers_sleep_and_come_back():
    """One that finds nothing to do leaves the processor to others, and is asked again."""
    store, out = rows(), np.zeros(1502)
    with team.gathered(2):
        desk = team.current()._desks[0]
        assert comes_true(lambda: desk[team.WANTED] == 0), "the helper spins for ever"
        shared.add_rows_product(store, np.arange(5), np.ones(5), out)
        assert len(team.current()._desks) == 1
    np.testing.assert_allclose(out[:-1], store[:5].sum(axis=0, dtype=np.float64))


def test_many_owners_at_once():
    """Teams of several threads do not mix; who finds no helper works alone."""
    kernel, failures = Gaussian(0.1), []
    b = kernel.prepare(rows(400, 20), np.float32)
    alone = kernel.block(b, b)

    def work():
        for _ in range(30):
            with team.gathered(3):
                if not np.array_equal(kernel.block(b, b), alone):
                    failures.append(1)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_around_shared_loops_there_is_one_thread():
    """The pool is not woken by one who has a team; a team within a team is the same; one thread needs none."""
    seen = []
    with team.gathered(2):
        outer = team.current()
        run_tasks(lambda task: seen.append((task, threading.get_ident())), 3, 2)
        run_shares(lambda start, stop: seen.append((start, stop)), 10, 2)
        with team.gathered(2):
            assert team.current() is outer
        assert team.current() is outer
    assert seen == [(k, threading.get_ident()) for k in range(3)] + [(0, 10)]
    assert team.current() is None
    with team.gathered(1):
        assert team.current() is None
