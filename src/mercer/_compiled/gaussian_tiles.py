"""Blocks of Gaussian kernel values, K[i, j] = exp(-gamma |a_i - b_j|^2).

The sums of a register tile are turned into kernel values before they are written to memory. A second pass over the
sums, as `tiles.mapped_block` makes it, gives the same bits but takes a third of the total time up to 16 features.

Each step is an LLVM function of its own that is not inlined. Inlined, LLVM would keep the constants of the surrounding
loops in registers, and the sums would go to memory and back at every feature.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from mercer._compiled.compile import compiled
from mercer._compiled.exp import emit_exp
from mercer._compiled.register_tiles import (
    ROWS,
    VECTOR_BYTES,
    call,
    emit_sums,
    load_vector,
    spread,
    store_vector,
)

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


@compiled()
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


@compiled()
def _copy(values, height, count, out, top, left):
    """Copy values[:height, :count] to out[top:, left:]."""
    for r in range(height):
        for j in range(count):
            out[top + r, left + j] = values[r, j]


@compiled()
def gaussian_block(products, gamma, A, a_norms, panels, b_norms, start, stop, out):
    """out[:, :] = K of the rows A against the samples start*L : stop*L of the panels, as `tiles.dense_block`.

    Distances come from inner products and squared norms (``products``), or from differences. The rows of out must be
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
    factor, o, tile = -gamma, np.int64(0), np.int64(ROWS)  # literals would compile the callees again
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
