"""Blocks of kernel values within compiled code, which calls their loop by its address.

So code that needs kernel values is the same for all kernels, and the loop of a block is compiled once.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from mercer._compiled.compile import compiled
from mercer._compiled.kernel_maps import map_address
from mercer._compiled.pointers import address_of, emit_call, vectors
from mercer._compiled.tiles import gaussian_block, is_gaussian, mapped_block, sums_address


class Formula(NamedTuple):
    """A kernel as compiled code takes it: the address of the loop of a block, and the first arguments of this loop.

    ``term`` is the code of a Gaussian kernel's term, or the address of the loop that sums it for any other kernel.
    """

    block: Any
    term: Any
    phi: Any
    params: Any


def formula_of(term: int, code: int, params: Any) -> Formula:
    """The formula of a kernel (see `tiles.dense_block`); params has the dtype of the samples."""
    gaussian = is_gaussian(term, code, params)
    sums, phi = (term, 0) if gaussian else (sums_address(term, params.dtype), map_address(code, params.dtype))
    return Formula(_block_address(params.dtype, gaussian), sums, phi, params)


@lru_cache
def _block_address(dtype: np.dtype[Any], gaussian: bool) -> int:
    line, table, panels = vectors(dtype), vectors(dtype, 2), vectors(dtype, 3)
    given = types.int64, types.int64, line, table, line, panels, line, types.int64, types.int64, table
    return address_of(gaussian_block if gaussian else mapped_block, *given)


@intrinsic
def call_block(typingctx, block, term, phi, params, A, a_norms, panels, b_norms, start, stop, out):
    """Call the loop of a block by its address."""
    whole = types.int64
    return types.none(whole, whole, whole, params, A, a_norms, panels, b_norms, whole, whole, out), emit_call


@compiled(compact=True)
def fill_block(formula, A, a_norms, panels, b_norms, start, stop, out):
    """`tiles.dense_block` for a formula; out is in C order."""
    block, term, phi, params = formula
    call_block(block, term, phi, params, A, a_norms, panels, b_norms, start, stop, out)
