"""Compiled loops that a spin pool can share: blocks of kernel values, sums of stored rows, reading rows into a block.

Each loop has three pieces:

- a *job*, a compiled function(address of the slot, part) that runs one part of the loop;
- a compiled function (`share_...`) that writes the arguments into the job slot and runs the job;
- a Python function with the signature of the loop, which shares it if this thread has a spin pool and the loop is long
  enough, and else runs it in the threads of `thread_pool`, or alone.

Workers wait in compiled code and can be passed integers only. So arrays travel as addresses and shapes in the slot.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import carray

from mercer._compiled import stored_rows as storage
from mercer._compiled import tiles
from mercer._compiled.compile import compiled
from mercer._compiled.kernel_blocks import call_block, formula_of
from mercer._compiled.pointers import at, job_address
from mercer._compiled.spin_pool import ARGUMENTS, SLOT_SIZE, SpinPool, run_job
from mercer._compiled.thread_pool import current_spin_pool, run_shares, value_nanoseconds

# parts of a loop for each thread: a slow or busy core takes fewer of them
PARTS_PER_THREAD = 4
# nanoseconds from which waking the threads of `thread_pool` pays
THREADS_FROM = 150_000
# nanoseconds of a term of a sum of rows, of an entry of a block
ENTRY_NS, READ_NS = 0.15, 1.0
# the columns of a part of a sum of rows are a multiple of this number
COLUMNS = 256

_add_rows_product, _read_rows = tiles.add_rows_product, storage.read_rows


@compiled()
def _block_arrays(args, part, kind):
    """The arrays of a part of a block of kernel values, and its first and last panel; ``kind`` is their type."""
    m, d, width, count, columns, panels = args[8], args[9], args[10], args[11], args[12], args[13]
    start = part * panels
    samples, norms = carray(at(args[3]), (m, d), kind), carray(at(args[4]), (m,), kind)
    out = carray(at(args[7] + start * width * samples.itemsize), (m, columns), kind)
    return (
        samples, norms, carray(at(args[5]), (count, d, width), kind), carray(at(args[6]), (columns,), kind),
        start, min(start + panels, count), out,
    )  # fmt: skip


def _block_job(kind: Any) -> Any:
    """The job for a block of kernel values.

    A job may close over types and numbers only: with a compiled function among its variables its machine code would not
    be found on disk.
    """

    @compiled()
    def block_job(address, part):
        args = carray(at(address), (SLOT_SIZE,), np.int64)[ARGUMENTS:]
        params = carray(at(args[2]), (args[14],), kind)
        call_block(args[15], args[0], args[1], params, *_block_arrays(args, part, kind))

    return block_job


def _product_job(kind: Any) -> Any:
    @compiled()
    def product_job(address, part):
        args = carray(at(address), (SLOT_SIZE,), np.int64)[ARGUMENTS:]
        n_rows, columns, count, width = args[4], args[5], args[6], args[7]
        _add_rows_product(
            carray(at(args[0]), (n_rows, columns), kind), carray(at(args[1]), (count,), np.int64),
            carray(at(args[2]), (count,), np.float64), part * width, min((part + 1) * width, columns),
            carray(at(args[3]), (columns,), np.float64),
        )  # fmt: skip

    return product_job


def _read_job(kind: Any, block_kind: Any) -> Any:
    @compiled()
    def read_job(address, part):
        args = carray(at(address), (SLOT_SIZE,), np.int64)[ARGUMENTS:]
        n_rows, columns, m, count, side, height = args[6], args[7], args[8], args[9], args[10], args[11]
        _read_rows(
            carray(at(args[0]), (n_rows, columns), kind), carray(at(args[1]), (m,), np.int64),
            carray(at(args[2]), (m,), np.int64), carray(at(args[3]), (m,), np.int64),
            carray(at(args[4]), (count,), np.int64), part * height, min((part + 1) * height, count),
            carray(at(args[5]), (side, side), block_kind),
        )  # fmt: skip

    return read_job


@lru_cache
def _block_address(dtype: np.dtype[Any]) -> int:
    return job_address(_block_job(dtype.type))


@lru_cache
def _product_address(dtype: np.dtype[Any]) -> int:
    return job_address(_product_job(dtype.type))


@lru_cache
def _read_address(dtype: np.dtype[Any], block_dtype: np.dtype[Any]) -> int:
    return job_address(_read_job(dtype.type, block_dtype.type))


@compiled()
def share_block(slot, number, job, formula, A, a_norms, panels, b_norms, out, per_part):
    """Share a block of kernel values. A part is all rows against some panels, which are thus read from memory once."""
    args = slot[ARGUMENTS:]
    block, term, phi, params = formula
    args[0], args[1], args[2], args[14], args[15] = term, phi, params.ctypes.data, params.shape[0], block
    args[3], args[4], args[5], args[6] = A.ctypes.data, a_norms.ctypes.data, panels.ctypes.data, b_norms.ctypes.data
    args[7], args[8], args[9], args[10] = out.ctypes.data, A.shape[0], A.shape[1], panels.shape[2]
    args[11], args[12], args[13] = panels.shape[0], out.shape[1], per_part
    run_job(slot, number, job, (panels.shape[0] + per_part - 1) // per_part)


@compiled()
def share_product(slot, number, job, store, rows, weights, out, width):
    """Share a sum of stored rows."""
    args = slot[ARGUMENTS:]
    args[0], args[1], args[2], args[3] = store.ctypes.data, rows.ctypes.data, weights.ctypes.data, out.ctypes.data
    args[4], args[5], args[6], args[7] = store.shape[0], store.shape[1], rows.shape[0], width
    run_job(slot, number, job, (store.shape[1] + width - 1) // width)


@compiled()
def share_reading(slot, number, job, values, rows, order, column, new_places, block, height):
    """Share the reading of rows into a block."""
    args = slot[ARGUMENTS:]
    args[0], args[1], args[2], args[3] = values.ctypes.data, rows.ctypes.data, order.ctypes.data, column.ctypes.data
    args[4], args[5], args[6], args[7] = new_places.ctypes.data, block.ctypes.data, values.shape[0], values.shape[1]
    args[8], args[9], args[10], args[11] = rows.shape[0], new_places.shape[0], block.shape[0], height
    run_job(slot, number, job, (new_places.shape[0] + height - 1) // height)


def _pool_for(nanoseconds: float) -> SpinPool | None:
    """The spin pool of this thread, if the loop is long enough to be shared."""
    pool: SpinPool | None = current_spin_pool()
    return pool if pool is not None and nanoseconds >= pool.shared_from else None


def _per_part(n: int, nanoseconds: float, pool: SpinPool, align: int = 1) -> int:
    """How many of n items a part has: several parts for each thread, unless they would be too short."""
    parts = min(PARTS_PER_THREAD * pool.size, max(2, int(nanoseconds / pool.part_from)))
    size = -(-n // parts)
    return -(-size // align) * align


def dense_block(term, code, params, A, a_norms, panels, b_norms, out):  # type: ignore[no-untyped-def]
    """`tiles.dense_block` against all panels, shared if that pays."""
    nanoseconds = value_nanoseconds(out.size, A.shape[1])
    pool = _pool_for(nanoseconds)
    if pool is None or not out.flags.c_contiguous:
        tiles.dense_block(term, code, params, A, a_norms, panels, b_norms, 0, len(panels), out)
        return
    job, per_part = _block_address(A.dtype), _per_part(len(panels), nanoseconds, pool)
    formula = formula_of(term, code, params)
    share_block(pool.slot, pool.next_job(), job, formula, A, a_norms, panels, b_norms, out, per_part)


def add_rows_product(store, rows, weights, out, n_threads=1):  # type: ignore[no-untyped-def]
    """`tiles.add_rows_product` over all columns of the store, shared if that pays; out may be longer. Edits out."""
    n = store.shape[1]
    nanoseconds = ENTRY_NS * len(rows) * n
    pool = _pool_for(nanoseconds)
    if pool is None:
        threads = n_threads if nanoseconds >= THREADS_FROM else 1
        run_shares(lambda start, stop: _add_rows_product(store, rows, weights, start, stop, out), n, threads, COLUMNS)
        return
    job, width = _product_address(store.dtype), _per_part(n, nanoseconds, pool, COLUMNS)
    share_product(pool.slot, pool.next_job(), job, store, rows, weights, out, width)


def read_rows(values, rows, order, column, new_places, block, n_threads=1):  # type: ignore[no-untyped-def]
    """`stored_rows.read_rows` of all new members, shared if that pays. Edits the block."""
    nanoseconds = READ_NS * len(new_places) * len(rows)
    pool = _pool_for(nanoseconds)
    if pool is None:
        threads = n_threads if nanoseconds >= THREADS_FROM else 1
        run_shares(
            lambda start, stop: _read_rows(values, rows, order, column, new_places, start, stop, block),
            len(new_places), threads,
        )  # fmt: skip
        return
    job, height = _read_address(values.dtype, block.dtype), _per_part(len(new_places), nanoseconds, pool)
    share_reading(pool.slot, pool.next_job(), job, values, rows, order, column, new_places, block, height)
