"""Cholesky factorisation A = U'U of a symmetric matrix of some hundred rows, and solutions with the factor.

The matrix is processed in register tiles of ROWS rows: a tile is read once, the contributions of all rows above are
subtracted in registers, and it is divided by the diagonal triangle before it is written. LLVM code by hand, as in
`register_tiles`.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from mercer._compiled.compile import compiled
from mercer._compiled.register_tiles import ROWS, VECTOR_BYTES, call, spread

# columns of a tile: two vectors of float64
WIDTH = 2 * VECTOR_BYTES // 8


@intrinsic
def _eliminate(typingctx, U, row, column, inverse, finish):
    """Subtract from the tile at (row, column) the contributions of the rows k above: U[k, rows]' U[k, columns].

    With ``finish`` also divide it by the triangle at (row, row), the inverses of whose diagonal are given.
    """
    signature = types.void(U, row, column, inverse, finish)

    def codegen(context, builder, sig, args):
        u = context.make_array(U)(context, builder, args[0])
        scales = context.make_array(inverse)(context, builder, args[3])
        scalar = context.get_data_type(U.dtype)
        vector = ir.VectorType(scalar, VECTOR_BYTES * 8 // U.dtype.bitwidth)
        intp = context.get_value_type(types.intp)
        row, column = (context.cast(builder, args[i], sig.args[i], types.intp) for i in (1, 2))
        stride = cgutils.unpack_tuple(builder, u.shape)[1]

        def line(first, r, second):
            index = builder.mul(builder.add(first, ir.Constant(intp, r)), stride)
            return builder.gep(u.data, [builder.add(index, second)])

        def vector_at(pointer, half):
            there = builder.gep(pointer, [ir.Constant(intp, half * vector.count)])
            return builder.bitcast(there, vector.as_pointer())

        def load(pointer, half):
            value = builder.load(vector_at(pointer, half), typ=vector)
            value.align = U.dtype.bitwidth // 8
            return value

        def in_all_lanes(pointer, r):
            return spread(builder, vector, builder.load(builder.gep(pointer, [ir.Constant(intp, r)]), typ=scalar))

        lines = [line(row, r, column) for r in range(ROWS)]
        tile = [[cgutils.alloca_once(builder, vector) for _ in range(2)] for _ in range(ROWS)]
        for r in range(ROWS):
            for half in range(2):
                builder.store(load(lines[r], half), tile[r][half])

        def subtract(r, half, a, b):
            before = builder.load(tile[r][half], typ=vector)
            builder.store(call(builder, "fmuladd", vector, [a, builder.fneg(b), before]), tile[r][half])

        with cgutils.for_range(builder, row, intp=intp) as loop:
            above = line(loop.index, 0, column)
            b = [load(above, half) for half in range(2)]
            for r in range(ROWS):
                a = in_all_lanes(line(loop.index, 0, row), r)
                for half in range(2):
                    subtract(r, half, a, b[half])
        with builder.if_then(args[4]):
            for r in range(ROWS):
                for s in range(r):
                    a = in_all_lanes(line(row, s, row), r)
                    for half in range(2):
                        subtract(r, half, a, builder.load(tile[s][half], typ=vector))
                scale = in_all_lanes(builder.gep(scales.data, [row]), r)
                for half in range(2):
                    before = builder.load(tile[r][half], typ=vector)
                    builder.store(builder.fmul(scale, before), tile[r][half])
        for r in range(ROWS):
            for half in range(2):
                store = builder.store(builder.load(tile[r][half], typ=vector), vector_at(lines[r], half))
                store.align = U.dtype.bitwidth // 8
        return context.get_dummy_value()

    return signature, codegen


@compiled()
def room_for(m):
    """Rows and columns of the array for a matrix of m rows. Entries beyond m are read and written, but not used.

    A row has an odd number of cache lines: otherwise the entries of a column would compete for the same cache sets.
    """
    return m + ROWS, ((m + WIDTH - 1) // WIDTH + 1 | 1) * WIDTH


@compiled(fast=True)
def factorise(U, m, inverse, smallest):
    """Overwrite the upper triangle of A by U with U'U = A, and fill inverse = 1 / diagonal of U.

    A row whose pivot is at most ``smallest`` becomes zero. U has the shape that `room_for` gives, inverse as many
    entries as U has rows.
    """
    for i in range(0, m, ROWS):
        _eliminate(U, i, i, inverse, False)
        end = i + WIDTH
        for r in range(i, i + ROWS):
            for s in range(i, r):
                w = U[s, r]
                for j in range(r, end):
                    U[r, j] -= w * U[s, j]
            # an indefinite kernel, or equal samples, may leave no pivot
            scale = 1.0 / np.sqrt(U[r, r]) if U[r, r] > smallest else 0.0
            inverse[r] = scale
            for j in range(r, end):
                U[r, j] *= scale
        for j in range(end, m, WIDTH):
            _eliminate(U, i, j, inverse, True)


@compiled(fast=True)
def solve(U, inverse, x, first):
    """x <- A^-1 x. The entries of x before ``first`` are zero. Entries without a pivot become zero."""
    m = x.shape[0]
    for k in range(first, m):
        w = x[k] * inverse[k]
        x[k] = w
        row, rest = U[k, k + 1 : m], x[k + 1 :]
        for j in range(rest.shape[0]):
            rest[j] -= w * row[j]
    for t in range(m):
        k = m - 1 - t
        row, rest = U[k, k + 1 : m], x[k + 1 :]
        total = 0.0
        for j in range(rest.shape[0]):
            total += row[j] * rest[j]
        x[k] = (x[k] - total) * inverse[k]
