"""Loops that a team shares: of each a job, which runs one part of it, and a door, which decides whether to share.

Arrays reach a job as addresses in the mail: threads that wait in compiled code can be passed nothing else.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import carray

from mercer._compiled import stored_rows as storage
from mercer._compiled import tiles
from mercer._compiled.compile import compiled
from mercer._compiled.gaussian_tiles import gaussian_block
from mercer._compiled.pointers import address_of, at
from mercer._compiled.spin_pool import MAIL, NEEDS, Team, current, share
from mercer._compiled.thread_pool import price
from mercer._compiled.tiles import DOT, mapped_block

# parts of a loop for each thread, so that a core that is slower, or busy, gets fewer of them
PARTS_PER_THREAD = 4
# about how many nanoseconds a loop must take to be shared, and a part of it at least: a helper's memory is cold
SHARED_FROM, PART_FROM = 80_000, 30_000
# nanoseconds of a term of a sum of rows, of an entry of a block
ENTRY, READ = 0.15, 1.0
# the columns of a part of a sum of rows are a multiple of it
COLUMNS = 256

_add_rows_product, _read_rows = tiles.add_rows_product, storage.read_rows


def _block_job(kind: Any, size: int, gaussian: bool) -> Any:
    """One of two jobs, since one that could do both would have to compile both."""

    @compiled(inline=True)
    def arrays(need, part):
        m, d, width, count, columns, panels = need[8], need[9], need[10], need[11], need[12], need[13]
        start = part * panels
        return (
            carray(at(need[3]), (m, d), kind), carray(at(need[4]), (m,), kind),
            carray(at(need[5]), (count, d, width), kind), carray(at(need[6]), (columns,), kind),
            start, min(start + panels, count), carray(at(need[7] + start * width * size), (m, columns), kind),
        )  # fmt: skip

    @compiled()
    def gaussian_job(address, part):
        need = carray(at(address), (MAIL,), np.int64)[NEEDS:]
        gamma = carray(at(need[2]), (need[14],), kind)[1]
        gaussian_block(need[0] == DOT, gamma, *arrays(need, part))

    @compiled()
    def mapped_job(address, part):
        need = carray(at(address), (MAIL,), np.int64)[NEEDS:]
        mapped_block(need[0], need[1], carray(at(need[2]), (need[14],), kind), *arrays(need, part))

    return gaussian_job if gaussian else mapped_job


def _product_job(kind: Any) -> Any:
    @compiled()
    def product_job(address, part):
        need = carray(at(address), (MAIL,), np.int64)[NEEDS:]
        lines, columns, count, width = need[4], need[5], need[6], need[7]
        _add_rows_product(
            carray(at(need[0]), (lines, columns), kind), carray(at(need[1]), (count,), np.int64),
            carray(at(need[2]), (count,), np.float64), part * width, min((part + 1) * width, columns),
            carray(at(need[3]), (columns,), np.float64),
        )  # fmt: skip

    return product_job


def _read_job(kind: Any, block_kind: Any) -> Any:
    @compiled()
    def read_job(address, part):
        need = carray(at(address), (MAIL,), np.int64)[NEEDS:]
        lines, columns, m, count, side, height = need[6], need[7], need[8], need[9], need[10], need[11]
        _read_rows(
            carray(at(need[0]), (lines, columns), kind), carray(at(need[1]), (m,), np.int64),
            carray(at(need[2]), (m,), np.int64), carray(at(need[3]), (m,), np.int64),
            carray(at(need[4]), (count,), np.int64), part * height, min((part + 1) * height, count),
            carray(at(need[5]), (side, side), block_kind),
        )  # fmt: skip

    return read_job


_KINDS = {np.dtype(np.float32): np.float32, np.dtype(np.float64): np.float64}


@lru_cache
def _block_address(dtype: np.dtype[Any], gaussian: bool) -> int:
    return address_of(_block_job(_KINDS[dtype], dtype.itemsize, gaussian))


@lru_cache
def _product_address(dtype: np.dtype[Any]) -> int:
    return address_of(_product_job(_KINDS[dtype]))


@lru_cache
def _read_address(dtype: np.dtype[Any], block_dtype: np.dtype[Any]) -> int:
    return address_of(_read_job(_KINDS[dtype], _KINDS[block_dtype]))


@compiled()
def share_block(mail, ticket, job, term, code, params, A, a_norms, panels, b_norms, out, per_part):
    """Fill the mail for `block_job`, and share it: all rows with so many panels at a time, which then come from memory
    once.
    """
    need = mail[NEEDS:]
    need[0], need[1], need[2], need[14] = term, code, params.ctypes.data, params.shape[0]
    need[3], need[4], need[5], need[6] = A.ctypes.data, a_norms.ctypes.data, panels.ctypes.data, b_norms.ctypes.data
    need[7], need[8], need[9], need[10] = out.ctypes.data, A.shape[0], A.shape[1], panels.shape[2]
    need[11], need[12], need[13] = panels.shape[0], out.shape[1], per_part
    share(mail, ticket, job, (panels.shape[0] + per_part - 1) // per_part)


@compiled()
def share_product(mail, ticket, job, store, slots, weights, out, width):
    """Fill the mail for `product_job`, and share it."""
    need = mail[NEEDS:]
    need[0], need[1], need[2], need[3] = store.ctypes.data, slots.ctypes.data, weights.ctypes.data, out.ctypes.data
    need[4], need[5], need[6], need[7] = store.shape[0], store.shape[1], slots.shape[0], width
    share(mail, ticket, job, (store.shape[1] + width - 1) // width)


@compiled()
def share_reading(mail, ticket, job, values, slots, order, column, fresh, block, height):
    """Fill the mail for `read_job`, and share it."""
    need = mail[NEEDS:]
    need[0], need[1], need[2], need[3] = values.ctypes.data, slots.ctypes.data, order.ctypes.data, column.ctypes.data
    need[4], need[5], need[6], need[7] = fresh.ctypes.data, block.ctypes.data, values.shape[0], values.shape[1]
    need[8], need[9], need[10], need[11] = slots.shape[0], fresh.shape[0], block.shape[0], height
    share(mail, ticket, job, (fresh.shape[0] + height - 1) // height)


def _team(nanoseconds: float) -> Team | None:
    """The team of this thread, if the loop is long enough to be shared."""
    return current() if nanoseconds >= SHARED_FROM else None


def _per_part(n: int, nanoseconds: float, team: Team, align: int = 1) -> int:
    """How many of n go into a part: several parts for each thread, unless they would be too short."""
    parts = min(PARTS_PER_THREAD * team.size, max(2, int(nanoseconds / PART_FROM)))
    size = -(-n // parts)
    return -(-size // align) * align


def dense_block(term, code, params, A, a_norms, panels, b_norms, out):  # type: ignore[no-untyped-def]
    """`tiles.dense_block` against all panels."""
    took = price(out.size, A.shape[1])
    team = _team(took)
    if team is None or not out.flags.c_contiguous:
        tiles.dense_block(term, code, params, A, a_norms, panels, b_norms, 0, len(panels), out)
        return
    job = _block_address(A.dtype, tiles.is_gaussian(term, code, params))
    per_part = _per_part(len(panels), took, team)
    share_block(team.mail, team.ticket(), job, term, code, params, A, a_norms, panels, b_norms, out, per_part)


def add_rows_product(store, slots, weights, out):  # type: ignore[no-untyped-def]
    """`tiles.add_rows_product` over all columns of the store; out may be longer. Edits out."""
    n = store.shape[1]
    took = ENTRY * len(slots) * n
    team = _team(took)
    if team is None:
        _add_rows_product(store, slots, weights, 0, n, out)
        return
    share_product(
        team.mail,
        team.ticket(),
        _product_address(store.dtype),
        store,
        slots,
        weights,
        out,
        _per_part(n, took, team, COLUMNS),
    )


def read_rows(values, slots, order, column, fresh, block):  # type: ignore[no-untyped-def]
    """`storage.read_rows` of all newcomers. Edits the block."""
    took = READ * len(fresh) * len(slots)
    team = _team(took)
    if team is None:
        _read_rows(values, slots, order, column, fresh, 0, len(fresh), block)
        return
    share_reading(
        team.mail, team.ticket(), _read_address(values.dtype, block.dtype), values, slots, order, column, fresh, block,
        _per_part(len(fresh), took, team),
    )  # fmt: skip
