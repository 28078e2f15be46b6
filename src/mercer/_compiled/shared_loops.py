"""Compiled loops shared among threads, and the pool of spinning threads that share the short ones.

The loops are blocks of kernel values, sums of stored rows, and the reading of rows into a block. Each has three pieces:

- a *job*, a compiled function(address of the slot, part) that runs one part of the loop;
- a compiled function (`share_...`) that writes the arguments into the job slot and runs the job;
- a Python function with the signature of the loop, which shares it if this thread has a spin pool and the loop is long
  enough, and else runs it in the threads of `thread_pool`, or alone.

Waking a thread of a `ThreadPoolExecutor` takes 0.1 to 0.25 ms, as long as a small loop, and needs the interpreter lock.
The workers of the spin pool are compiled code. While a fit runs they spin, and find the next loop within a microsecond;
when they find none for MOST_TURNS turns, they sleep on a semaphore. They can be passed integers only, so arrays travel
as addresses and shapes in the slot. Each part of a loop writes to memory of its own: the result does not depend on
which thread runs which part.

A fit and its workers communicate through a *job slot*, an array of int64:

1. the owner writes the function's address, its arguments and the number of parts, then opens the job by storing its
   number (1, 2, ...) in CURRENT;
2. the owner and each worker that sees a new number take parts by an atomic increment of NEXT_PART;
3. when no part is left, the owner closes the job (CURRENT = 0) and waits until no worker is inside (INSIDE = 0).

A worker enters (INSIDE + 1) before it reads CURRENT again, the owner closes before it reads INSIDE. With sequentially
consistent atomics one of them sees the other, so no worker runs a part of a closed job.

Each worker has an array of its own: the address of the slot that it serves (0 if it is idle) and its semaphore. All
atomic operations, the pause instruction and the semaphore calls are LLVM code written by hand, as numba has none.
"""

from __future__ import annotations

import os
import platform
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

from mercer._compiled import stored_rows as storage
from mercer._compiled import tiles
from mercer._compiled.compile import compiled
from mercer._compiled.forks import hold_in_forks
from mercer._compiled.pointers import at, call, job_address
from mercer._compiled.thread_pool import available_cores, current_spin_pool, local, run_shares, value_nanoseconds

# entries of a job slot. The four that threads write to are on cache lines of their own
CURRENT, NEXT_PART, INSIDE, QUIT, N_PARTS, FUNCTION, ARGUMENTS = 0, 8, 16, 24, 32, 33, 40
SLOT_SIZE = 64
# entries of a worker's array: the address of the slot that it serves, 0 if it is idle, and a semaphore
SERVES, SEMAPHORE, WORKER_SIZE = 0, 8, 16
# turns of waiting: with a pause instruction up to the first number, then with sched_yield. A worker sleeps after the
# second number
PAUSES, MOST_TURNS = 4_000, 12_000
# nanoseconds that a loop must take to be shared, and each part at least: the caches of a worker are cold
SHARED_FROM, PART_FROM = 80_000, 30_000
# other systems lack unnamed semaphores or sched_yield
CAN_SPIN = sys.platform == "linux"
# parts of a loop for each thread: a slow or busy core takes fewer of them
PARTS_PER_THREAD = 4
# nanoseconds from which waking the threads of `thread_pool` pays
THREADS_FROM = 150_000
# nanoseconds of a term of a sum of rows, of an entry of a block
ENTRY_NS, READ_NS = 0.15, 1.0
# the columns of a part of a sum of rows are a multiple of this number
COLUMNS = 256


# ---- atomic operations and semaphores --------------------------------------------------------------------------------


def _pointer(context, builder, array, value, index):
    """A pointer to value[index], ``array`` being the type of the value."""
    data = context.make_array(array)(context, builder, value).data
    return builder.gep(data, [index])


@intrinsic
def load(typingctx, array, index):
    """array[index], atomically (sequentially consistent)."""

    def codegen(context, builder, signature, args):
        return builder.load_atomic(_pointer(context, builder, array, *args), "seq_cst", 8)

    return types.int64(array, types.intp), codegen


@intrinsic
def store(typingctx, array, index, value):
    """array[index] = value, atomically, after all earlier writes."""

    def codegen(context, builder, signature, args):
        builder.store_atomic(args[2], _pointer(context, builder, array, *args[:2]), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int64), codegen


@intrinsic
def add(typingctx, array, index, value):
    """array[index] += value, atomically. Returns the old value."""

    def codegen(context, builder, signature, args):
        return builder.atomic_rmw("add", _pointer(context, builder, array, *args[:2]), args[2], "seq_cst")

    return types.int64(array, types.intp, types.int64), codegen


@intrinsic
def _back_off(typingctx, turn):
    """Wait a little: the pause instruction in the first turns, sched_yield in later ones."""

    def codegen(context, builder, signature, args):
        late = builder.icmp_signed(">", args[0], ir.Constant(args[0].type, PAUSES))
        with builder.if_else(late) as (then, otherwise):
            with then:
                function = cgutils.get_or_insert_function(
                    builder.module, ir.FunctionType(ir.IntType(32), []), "sched_yield"
                )
                builder.call(function, [])
            with otherwise:
                if platform.machine().lower() in ("x86_64", "amd64"):
                    function = cgutils.get_or_insert_function(
                        builder.module, ir.FunctionType(ir.VoidType(), []), "llvm.x86.sse2.pause"
                    )
                    builder.call(function, [])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


def _semaphore(name, *constants):
    """A C function that takes the semaphore of a worker, and some integer constants."""

    @intrinsic
    def function(typingctx, worker):
        def codegen(context, builder, signature, args):
            numbers = [ir.Constant(ir.IntType(32), value) for value in constants]
            kind = ir.FunctionType(ir.IntType(32), [ir.IntType(64).as_pointer(), *(n.type for n in numbers)])
            index = ir.Constant(context.get_value_type(types.intp), SEMAPHORE)
            system = cgutils.get_or_insert_function(builder.module, kind, name)
            return builder.call(system, [_pointer(context, builder, worker, args[0], index), *numbers])

        return types.int32(worker), codegen

    return function


_sem_init, _sem_wait, _sem_post = _semaphore("sem_init", 0, 0), _semaphore("sem_wait"), _semaphore("sem_post")


# ---- workers ---------------------------------------------------------------------------------------------------------


@compiled()
def _take_parts(slot):
    """Run parts of the open job until none is left."""
    parts, function = load(slot, N_PARTS), load(slot, FUNCTION)
    while True:
        part = add(slot, NEXT_PART, 1)
        if part >= parts:
            return
        call(function, slot, part)


@compiled()
def _serve(slot):
    """Take parts of every job of a slot, until its owner releases it or no job comes for MOST_TURNS turns."""
    done, turn = 0, 0
    while load(slot, QUIT) == 0 and turn < MOST_TURNS:
        number = load(slot, CURRENT)
        if number == 0 or number == done:
            _back_off(turn)
            turn += 1
            continue
        add(slot, INSIDE, 1)
        # the owner closes the job before it reads INSIDE: one of the two sees the other
        if load(slot, CURRENT) == number:
            _take_parts(slot)
            done = number
        add(slot, INSIDE, -1)
        turn = 0


@compiled()
def init_worker(worker):
    """Initialise the semaphore of a worker."""
    _sem_init(worker)


@compiled()
def run_worker(worker):
    """The main loop of a worker thread: sleep until a slot is assigned, serve it, sleep again. It never returns."""
    while True:
        address = load(worker, SERVES)
        if address == 0:
            _sem_wait(worker)
            continue
        _serve(carray(at(address), (SLOT_SIZE,), np.int64))
        store(worker, SERVES, 0)


@compiled()
def assign(worker, slot):
    """Assign a slot to an idle worker, and wake it."""
    store(worker, SERVES, slot.ctypes.data)
    _sem_post(worker)


@compiled()
def run_job(slot, number, function, parts):
    """Run all parts of a job, together with the workers that serve the slot. Its arguments are in the slot already.

    A job of one part is not shared, nor one of none.
    """
    if parts < 2:
        call(function, slot, 0)
        return
    store(slot, FUNCTION, function)
    store(slot, N_PARTS, parts)
    store(slot, NEXT_PART, 0)
    store(slot, CURRENT, number)
    _take_parts(slot)
    store(slot, CURRENT, 0)
    turn = 0
    while load(slot, INSIDE) != 0:
        _back_off(turn)
        turn += 1


# ---- the pool of a fit -----------------------------------------------------------------------------------------------


class SpinPool:
    """The threads of one fit: its own, and up to ``n_workers`` spinning workers, which serve its job slot.

    A loop is shared if it takes ``shared_from`` nanoseconds, each part of it at least about ``part_from``.
    """

    def __init__(
        self,
        n_workers: int,
        shared_from: float = SHARED_FROM,
        part_from: float = PART_FROM,
        n_cores: int | None = None,
    ) -> None:
        self.size = 1 + n_workers
        self.shared_from, self.part_from = shared_from, part_from
        self._n_cores = n_cores
        self._number = 0
        self._workers: list[np.ndarray] = []
        self.slot = _acquire_slot()
        self._address = self.slot.ctypes.data
        self._acquire_workers()

    def _acquire_workers(self) -> None:
        """Acquire idle workers, at most as many as are missing."""
        self._workers = [worker for worker in self._workers if worker[SERVES] == self._address]
        while len(self._workers) < self.size - 1:
            worker = _acquire_worker(self.slot, available_cores() if self._n_cores is None else self._n_cores)
            if worker is None:
                return
            self._workers.append(worker)

    def next_job(self) -> int:
        """The number of the next job. Replaces workers that were busy before, or have gone to sleep since."""
        self._number += 1
        serving = sum(int(worker[SERVES]) == self._address for worker in self._workers)
        if serving < self.size - 1:
            self._acquire_workers()
        return self._number

    def release(self) -> None:
        """End: the workers go back to sleep."""
        self.slot[QUIT] = 1
        _free_slots.append(self.slot)


_lock = threading.RLock()
hold_in_forks(_lock.acquire, _lock.release)
# the workers of each process, since threads do not survive a fork
_workers: dict[int, list[np.ndarray]] = {}
# slots of released pools. Their memory is never freed: a worker may still read one
_free_slots: list[np.ndarray] = []


def _acquire_slot() -> np.ndarray:
    """A slot that no worker serves."""
    with _lock:
        served = {int(worker[SERVES]) for worker in _workers.get(os.getpid(), ())}
        for k, slot in enumerate(_free_slots):
            if slot.ctypes.data not in served:
                slot[:] = 0
                return _free_slots.pop(k)
    return np.zeros(SLOT_SIZE, np.int64)


def _acquire_worker(slot: np.ndarray, n_cores: int) -> np.ndarray | None:
    """Assign the slot to an idle worker, or to a new one if there is a core for it; None if there is not."""
    with _lock:
        mine = _workers.setdefault(os.getpid(), [])
        worker = next((worker for worker in mine if worker[SERVES] == 0), None)
        if worker is None:
            if len(mine) >= n_cores - 1:
                return None
            worker = np.zeros(WORKER_SIZE, np.int64)
            init_worker(worker)
            threading.Thread(target=run_worker, args=(worker,), name="mercer-worker", daemon=True).start()
            mine.append(worker)
        assign(worker, slot)
        return worker


@contextmanager
def spinning_workers(n_threads: int, **limits: Any) -> Iterator[None]:
    """Share the loops of this thread among ``n_threads`` threads, or fewer if other fits use the cores.

    Within such a block, or where threads cannot spin, nothing changes. ``limits`` are those of the `SpinPool`.
    """
    if n_threads <= 1 or not CAN_SPIN or current_spin_pool() is not None:
        yield
        return
    pool = SpinPool(n_threads - 1, **limits)
    local.spin_pool = pool
    try:
        yield
    finally:
        local.spin_pool = None
        pool.release()


# ---- the loops -------------------------------------------------------------------------------------------------------

# compiled code takes functions, not attributes of modules
_add_rows_product, _read_rows, _call_block = tiles.add_rows_product, storage.read_rows, tiles.call_block


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
        _call_block(args[15], args[0], args[1], params, *_block_arrays(args, part, kind))

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
def _block_job_address(dtype: np.dtype[Any]) -> int:
    return job_address(_block_job(dtype.type))


@lru_cache
def _product_job_address(dtype: np.dtype[Any]) -> int:
    return job_address(_product_job(dtype.type))


@lru_cache
def _read_job_address(dtype: np.dtype[Any], block_dtype: np.dtype[Any]) -> int:
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


def _per_part(n: int, nanoseconds: float, pool: SpinPool, align: int = 1) -> int:
    """How many of n items a part has: several parts for each thread, unless they would be too short to be shared."""
    if nanoseconds < pool.shared_from:
        return max(n, 1)
    parts = min(PARTS_PER_THREAD * pool.size, max(2, int(nanoseconds / pool.part_from)))
    size = -(-n // parts)
    return -(-size // align) * align


def dense_block(term, code, params, A, a_norms, panels, b_norms, out):  # type: ignore[no-untyped-def]
    """`tiles.dense_block` against all panels, shared if that pays."""
    nanoseconds, pool = value_nanoseconds(out.size, A.shape[1]), current_spin_pool()
    if pool is None or nanoseconds < pool.shared_from or not out.flags.c_contiguous:
        tiles.dense_block(term, code, params, A, a_norms, panels, b_norms, 0, len(panels), out)
        return
    job, per_part = _block_job_address(A.dtype), _per_part(len(panels), nanoseconds, pool)
    formula = tiles.formula_of(term, code, params)
    share_block(pool.slot, pool.next_job(), job, formula, A, a_norms, panels, b_norms, out, per_part)


def add_rows_product(store, rows, weights, out, n_threads=1):  # type: ignore[no-untyped-def]
    """`tiles.add_rows_product` over all columns of the store, shared if that pays; out may be longer. Edits out."""
    n, pool = store.shape[1], current_spin_pool()
    nanoseconds = ENTRY_NS * len(rows) * n
    if pool is None:
        threads = n_threads if nanoseconds >= THREADS_FROM else 1
        run_shares(lambda start, stop: _add_rows_product(store, rows, weights, start, stop, out), n, threads, COLUMNS)
        return
    job, width = _product_job_address(store.dtype), _per_part(n, nanoseconds, pool, COLUMNS)
    share_product(pool.slot, pool.next_job(), job, store, rows, weights, out, width)


def read_rows(values, rows, order, column, new_places, block, n_threads=1):  # type: ignore[no-untyped-def]
    """`stored_rows.read_rows` of all new members, shared if that pays. Edits the block."""
    nanoseconds, pool = READ_NS * len(new_places) * len(rows), current_spin_pool()
    if pool is None:
        threads = n_threads if nanoseconds >= THREADS_FROM else 1
        run_shares(
            lambda start, stop: _read_rows(values, rows, order, column, new_places, start, stop, block),
            len(new_places), threads,
        )  # fmt: skip
        return
    job, height = _read_job_address(values.dtype, block.dtype), _per_part(len(new_places), nanoseconds, pool)
    share_reading(pool.slot, pool.next_job(), job, values, rows, order, column, new_places, block, height)
