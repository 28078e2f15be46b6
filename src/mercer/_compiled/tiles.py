"""Blocks of kernel values, K[i, j] = phi(sum_k term(a_ik, b_jk)), tile by tile.

Rows are compared with panels: the samples of the columns, transposed in groups of a register tile's width. The sums of
a tile stay in cache, or in registers, until phi has been applied. CSR samples: see `sparse_tiles`.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from mercer._compiled.compile import compiled
from mercer._compiled.exp import emit_exp
from mercer._compiled.kernel_maps import EXPONENTIAL, apply_map, map_address
from mercer._compiled.pointers import address_of, emit_call, vectors
from mercer._compiled.register_tiles import (
    ROWS,
    VECTOR_BYTES,
    call,
    emit_sums,
    load_vector,
    register_tile_chi2,
    register_tile_dot,
    register_tile_l1,
    register_tile_min,
    register_tile_sq,
    spread,
    store_vector,
)

DOT, SQUARE, L1, MIN, CHI2 = range(5)
TILE_BYTES, ROWS_BYTES = 1 << 17, 1 << 18
GROUP = 96


@compiled()
def _pack(X, panels):
    """Write the samples into panels (see `VectorFeatures.panels`); pad the last one with zeros."""
    width = panels.shape[2]
    n, d = X.shape
    for p in range(panels.shape[0]):
        for c in range(width):
            sample = p * width + c
            if sample < n:
                for k in range(d):
                    panels[p, k, c] = X[sample, k]
            else:
                for k in range(d):
                    panels[p, k, c] = 0


# Loops for each term, called by address: a fit compiles that of its kernel. A has a multiple of ROWS rows.


@compiled()
def dot_sums(A, panels, first, last, sums):
    """sums = inner products of the rows of A and the samples in the panels first:last."""
    width = panels.shape[2]
    for p in range(first, last):
        for r in range(0, A.shape[0], ROWS):
            register_tile_dot(A, r, panels, p, sums, r, (p - first) * width)


@compiled()
def square_sums(A, panels, first, last, sums):
    """sums = squared distances of the rows of A and the samples in the panels first:last."""
    width = panels.shape[2]
    for p in range(first, last):
        for r in range(0, A.shape[0], ROWS):
            register_tile_sq(A, r, panels, p, sums, r, (p - first) * width)


@compiled()
def distance_sums(A, panels, first, last, sums):
    """sums = absolute distances of the rows of A and the samples in the panels first:last."""
    width = panels.shape[2]
    for p in range(first, last):
        for r in range(0, A.shape[0], ROWS):
            register_tile_l1(A, r, panels, p, sums, r, (p - first) * width)


@compiled()
def min_sums(A, panels, first, last, sums):
    """sums = sums of minima of the rows of A and the samples in the panels first:last."""
    width = panels.shape[2]
    for p in range(first, last):
        for r in range(0, A.shape[0], ROWS):
            register_tile_min(A, r, panels, p, sums, r, (p - first) * width)


@compiled()
def chi2_sums(A, panels, first, last, sums):
    """sums = chi-squared distances of the rows of A and the samples in the panels first:last."""
    width = panels.shape[2]
    for p in range(first, last):
        for r in range(0, A.shape[0], ROWS):
            register_tile_chi2(A, r, panels, p, sums, r, (p - first) * width)


SUMS = {DOT: dot_sums, SQUARE: square_sums, L1: distance_sums, MIN: min_sums, CHI2: chi2_sums}


@lru_cache
def sums_address(term: int, dtype: np.dtype[Any]) -> int:
    """The address of the loop that sums a term over the features of samples of this dtype."""
    return address_of(SUMS[term], vectors(dtype, 2), vectors(dtype, 3), types.int64, types.int64, vectors(dtype, 2))


@intrinsic
def _call_sums(typingctx, address, A, panels, first, last, sums):
    return types.none(types.int64, A, panels, types.int64, types.int64, sums), emit_call


def is_gaussian(term, code, params):
    """Whether values are exp(-gamma |x - z|^2)."""
    return code == EXPONENTIAL and (term == SQUARE or (term == DOT and params[0] != 0))


def dense_block(term, code, params, A, a_norms, panels, b_norms, start, stop, out):
    """out[:, :] = K of the rows A against the samples start*L : stop*L of the panels.

    out has a column for each sample from start*L on, or more; the last panel may be cut short.
    """
    gaussian = is_gaussian(term, code, params) and out.dtype == A.dtype and out.strides[1] == out.itemsize
    block, sums, phi = (
        (gaussian_block, term, 0)
        if gaussian
        else (mapped_block, sums_address(term, A.dtype), map_address(code, A.dtype))
    )
    block(sums, phi, params, A, a_norms, panels, b_norms, start, stop, out)


@compiled()
def mapped_block(sum_term, phi, params, A, a_norms, panels, b_norms, start, stop, out):
    """`dense_block` by a tile of sums in memory (`sums_address`), then the map (`map_address`), row by row."""
    m, d = A.shape
    width = panels.shape[2]
    size = A.itemsize
    # a group of rows stays in L1 and L2 while the panels pass; a tile has long rows, on which the map is quick
    group = max(ROWS, min(GROUP, ROWS_BYTES // (d * size + 1)) // ROWS * ROWS)
    # equal groups: a short last one would take as long as a full one
    many = (m + group - 1) // group
    group = ((m + many - 1) // many + ROWS - 1) // ROWS * ROWS
    step = max(1, TILE_BYTES // (group * width * size))
    rows = np.zeros((group, d), A.dtype)
    sums = np.empty((group, step * width), A.dtype)
    for top in range(0, m, group):
        height = min(group, m - top)
        for r in range(height):
            for k in range(d):
                rows[r, k] = A[top + r, k]
        padded = (height + ROWS - 1) // ROWS * ROWS
        for r in range(height, padded):
            for k in range(d):
                rows[r, k] = 0
        for first in range(start, stop, step):
            last = min(first + step, stop)
            _call_sums(sum_term, rows[:padded], panels, first, last, sums)
            left, base = (first - start) * width, first * width
            count = min(last * width, start * width + out.shape[1], b_norms.shape[0]) - base
            for r in range(height):
                values, here = sums[r, :count], out[top + r, left : left + count]
                apply_map(phi, params, values, a_norms[top + r], b_norms[base : base + count])
                for j in range(count):
                    here[j] = values[j]


@compiled(fast=True)
def _dot(values, weights):
    total = values.dtype.type(0.0)
    for j in range(values.shape[0]):
        total += values[j] * weights[j]
    return total


@compiled()
def add_block_product(block, weights, out):
    """out[i] += sum_j block[i, j] weights[j], each row by itself.

    Short runs are summed in the dtype of the block (and of the weights), the runs in float64.
    """
    run = 256
    for i in range(block.shape[0]):
        total = 0.0
        for first in range(0, block.shape[1], run):
            total += _dot(block[i, first : first + run], weights[first : first + run])
        out[i] += total


@compiled()
def add_rows_product(store, slots, weights, start, stop, out):
    """out[start:stop] += sum_t weights[t] store[slots[t], start:stop], in float64."""
    step = 2048
    for first in range(start, stop, step):
        last = min(first + step, stop)
        target = out[first:last]
        t = 0
        # four rows at a time: out is read and written once for the four
        while t + 4 <= slots.shape[0]:
            a, b = store[slots[t], first:last], store[slots[t + 1], first:last]
            c, d = store[slots[t + 2], first:last], store[slots[t + 3], first:last]
            wa, wb, wc, wd = weights[t], weights[t + 1], weights[t + 2], weights[t + 3]
            for j in range(target.shape[0]):
                target[j] += wa * a[j] + wb * b[j] + (wc * c[j] + wd * d[j])
            t += 4
        while t < slots.shape[0]:
            a, wa = store[slots[t], first:last], weights[t]
            for j in range(target.shape[0]):
                target[j] += wa * a[j]
            t += 1


# rows of a tile whose exponentials are interleaved: with fewer the processor waits for results, with more it runs out
# of registers
ROWS_AT_ONCE = 3
# bytes of the panels that stay in L2 while all rows pass
PANELS_BYTES = 1 << 17


def _function(module, name, arguments):
    """(function, builder) of a new LLVM function without a result that is never inlined."""
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), arguments), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    function.attributes.add("nounwind")
    return function, ir.IRBuilder(function.append_basic_block())


def _distance(builder, product, norm, norms):
    """Emit norm + norms - 2 product, or 0 if rounding made it negative; NaN stays NaN."""
    vector = product.type
    zero, minus_two = ir.Constant(vector, None), ir.Constant(vector, [-2.0] * vector.count)
    square = call(builder, "fmuladd", vector, [minus_two, product, builder.fadd(norm, norms)])
    return builder.select(builder.fcmp_ordered("<", square, zero), zero, square)


def _finish_function(module, op, vector, intp):
    """An LLVM function (factor, sums, a_norms, b_norms, out, stride): the sums of ROWS_AT_ONCE rows to values."""
    name = f"mercer_gaussian_finish_{op}_{vector.count}"
    if name in module.globals:
        return module.globals[name]
    numbers = vector.element.as_pointer()
    function, builder = _function(
        module, name, [vector.element, vector.as_pointer(), numbers, numbers, numbers, intp]
    )  # fmt: skip
    factor, sums, a_norms, b_norms, out, stride = function.args

    def at(pointer, place):
        return builder.gep(pointer, [ir.Constant(intp, place)])

    values = [builder.load(at(sums, i), typ=vector) for i in range(2 * ROWS_AT_ONCE)]
    if op == "dot":
        rows = [spread(builder, vector, builder.load(at(a_norms, r), typ=vector.element)) for r in range(ROWS_AT_ONCE)]
        columns = [load_vector(builder, vector, at(b_norms, half * vector.count)) for half in range(2)]
        values = [_distance(builder, value, rows[i // 2], columns[i % 2]) for i, value in enumerate(values)]
    factors = spread(builder, vector, factor)
    values = emit_exp(builder, [builder.fmul(factors, value) for value in values], bounded=True)
    for i, value in enumerate(values):
        line = builder.gep(out, [builder.mul(ir.Constant(intp, i // 2), stride)])
        store_vector(builder, value, at(line, i % 2 * vector.count))
    builder.ret_void()
    return function


def _tile_function(module, op, vector, intp):
    """A function (factor, rows, a_norms, panel, b_norms, d, out, stride): the values of one tile to out."""
    name = f"mercer_gaussian_{op}_{vector.count}"
    if name in module.globals:
        return module.globals[name]
    finish = _finish_function(module, op, vector, intp)
    numbers = vector.element.as_pointer()
    function, builder = _function(
        module, name, [vector.element, numbers, numbers, numbers, numbers, intp, numbers, intp]
    )  # fmt: skip
    factor, rows, a_norms, panel, b_norms, d, out, stride = function.args

    def at(pointer, place):
        return builder.gep(pointer, [ir.Constant(intp, place)])

    kept = builder.alloca(vector, size=2 * ROWS)
    for i, total in enumerate(emit_sums(builder, op, vector, rows, panel, d)):
        builder.store(total, at(kept, i))
    for r in range(0, ROWS, ROWS_AT_ONCE):
        line = builder.gep(out, [builder.mul(ir.Constant(intp, r), stride)])
        builder.call(finish, [factor, at(kept, 2 * r), at(a_norms, r), b_norms, line, stride])
    builder.ret_void()
    return function


def _gaussian_tile(op):
    @intrinsic
    def gaussian_tile(typingctx, factor, A, row, a_norms, panels, panel, b_norms, b_first, out, out_row, out_col):
        """Write exp(factor |A[row + r] - panels[panel, :, c]|^2) to out[out_row + r, out_col + c].

        From inner products (op "dot") and the squared norms a_norms[row + r] and b_norms[b_first + c], or from
        differences ("sq"). The entries of a row of out follow each other in memory.
        """
        signature = types.void(factor, A, row, a_norms, panels, panel, b_norms, b_first, out, out_row, out_col)

        def codegen(context, builder, sig, args):
            row, panel, b_first, out_row, out_col = (
                context.cast(builder, args[i], sig.args[i], types.intp) for i in (2, 5, 7, 9, 10)
            )
            a, a_norms, p, b_norms, o = (
                context.make_array(sig.args[i])(context, builder, args[i]) for i in (1, 3, 4, 6, 8)
            )
            size = sig.args[1].dtype.bitwidth // 8
            vector = ir.VectorType(context.get_data_type(sig.args[1].dtype), VECTOR_BYTES // size)
            d = cgutils.unpack_tuple(builder, p.shape)[1]
            panel_size = builder.mul(d, ir.Constant(d.type, 2 * vector.count))
            stride = builder.sdiv(cgutils.unpack_tuple(builder, o.strides)[0], ir.Constant(d.type, size))
            target = builder.add(builder.mul(out_row, stride), out_col)
            rows, norm, columns, norms, values = (
                builder.gep(array.data, [place])
                for array, place in zip(
                    (a, a_norms, p, b_norms, o),
                    (builder.mul(row, d), row, builder.mul(panel, panel_size), b_first, target),
                    strict=True,
                )
            )
            compare = _tile_function(builder.module, op, vector, d.type)
            builder.call(compare, [args[0], rows, norm, columns, norms, d, values, stride])
            return context.get_dummy_value()

        return signature, codegen

    return gaussian_tile


gaussian_tile_dot = _gaussian_tile("dot")
gaussian_tile_sq = _gaussian_tile("sq")


@compiled(compact=True)
def _fill(products, factor, rows, begin, end, norms, panels, first, last, b_norms, b_first, out, out_row, out_col):
    """Write the values of rows begin:end (whole tiles) with the panels first:last to out[out_row:, out_col:]."""
    width = panels.shape[2]
    for r in range(begin, end, ROWS):
        i = out_row + r - begin
        for p in range(first, last):
            j = (p - first) * width
            if products:
                gaussian_tile_dot(factor, rows, r, norms, panels, p, b_norms, b_first + j, out, i, out_col + j)
            else:
                gaussian_tile_sq(factor, rows, r, norms, panels, p, b_norms, b_first + j, out, i, out_col + j)


@compiled(compact=True)
def _copy(values, height, count, out, top, left):
    """Copy values[:height, :count] to out[top:, left:]."""
    for r in range(height):
        for j in range(count):
            out[top + r, left + j] = values[r, j]


@compiled(compact=True)
def gaussian_block(term, _, params, A, a_norms, panels, b_norms, start, stop, out):
    """`dense_block` of a Gaussian kernel: the map is applied to sums that are still in registers.

    Distances come from inner products and squared norms (the term is DOT), or from differences. The rows of out must be
    contiguous. Rows and columns that do not fill a tile are computed in a full tile and copied: no value depends on its
    place in a tile.
    """
    m, d = A.shape
    width, size = panels.shape[2], A.itemsize
    # the rows of out may be longer: no more columns than norms
    n = min(out.shape[1], (stop - start) * width, b_norms.shape[0] - start * width)
    step = max(1, min(n // width, PANELS_BYTES // (d * width * size + 1)))
    full, whole, right = m // ROWS * ROWS, start + n // width, n // width * width
    lowest, rightmost = np.empty((ROWS, step * width), A.dtype), np.empty((full, width), A.dtype)
    last_rows, last_row_norms = np.zeros((ROWS, d), A.dtype), np.zeros(ROWS, A.dtype)
    for r in range(full, m):
        last_row_norms[r - full] = a_norms[r]
        for k in range(d):
            last_rows[r - full, k] = A[r, k]
    last_norms = np.zeros(width, A.dtype)
    for j in range(right, n):
        last_norms[j - right] = b_norms[start * width + j]
    products, factor = term == DOT, -params[1]
    o, tile = np.int64(0), np.int64(ROWS)  # literals would compile the callees again
    # each panel is read from memory once
    for first in range(start, whole, step):
        last, left, b = min(first + step, whole), (first - start) * width, first * width
        _fill(products, factor, A, o, full, a_norms, panels, first, last, b_norms, b, out, o, left)
        if full < m:
            _fill(products, factor, last_rows, o, tile, last_row_norms, panels, first, last, b_norms, b, lowest, o, o)
            _copy(lowest, m - full, (last - first) * width, out, full, left)
    if right < n:
        _fill(products, factor, A, o, full, a_norms, panels, whole, whole + 1, last_norms, o, rightmost, o, o)
        _copy(rightmost, full, n - right, out, o, right)
        if full < m:
            _fill(
                products, factor, last_rows, o, tile, last_row_norms, panels, whole, whole + 1, last_norms, o, lowest,
                o, o,
            )  # fmt: skip
            _copy(lowest, m - full, n - right, out, full, right)


# Compiled code calls the loop of a block by its address: code that needs kernel values is the same for all kernels, and
# the loop is compiled once.


class Formula(NamedTuple):
    """A kernel as compiled code takes it: the address of the loop of a block, and the first arguments of this loop.

    ``term`` is the code of a Gaussian kernel's term, or the address of the loop that sums it for any other kernel.
    """

    block: Any
    term: Any
    phi: Any
    params: Any


def formula_of(term: int, code: int, params: Any) -> Formula:
    """The formula of a kernel (see `dense_block`); params has the dtype of the samples."""
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
    """`dense_block` for a formula; out is in C order."""
    block, term, phi, params = formula
    call_block(block, term, phi, params, A, a_norms, panels, b_norms, start, stop, out)
