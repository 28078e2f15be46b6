"""Register tiles: sums over features for a few rows against one panel of columns.

    out[r, c] = sum_k  term(A[r, k], P[k, c])        r < ROWS, c < LANES

``term`` is a product (dot), a squared difference (sq), an absolute difference (l1), a minimum (min) or
(a - b)^2 / (a + b) (chi2). The accumulators must stay in vector registers. LLVM keeps them there only if the code has
vector types, which numba does not produce from plain loops; so the loops are LLVM code written by hand. LLVM splits
vectors that are wider than the processor's, so this runs everywhere.

Each entry is summed in the order of k, whatever the tile around it: values do not depend on the batch.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

ROWS = 6
VECTOR_BYTES = 32
PANEL_BYTES = 2 * VECTOR_BYTES
SPARSE_VECTORS = 4
SPARSE_ROWS_BYTES = SPARSE_VECTORS * VECTOR_BYTES


def lanes(dtype) -> int:
    """Columns of a panel: two 256-bit vectors."""
    return PANEL_BYTES // dtype.itemsize


def call(builder, name, vector_type, arguments):
    """Call llvm.<name> on vectors, e.g. llvm.fmuladd.v8f32."""
    scalar = "f32" if isinstance(vector_type.element, ir.FloatType) else "f64"
    function_type = ir.FunctionType(vector_type, [vector_type] * len(arguments))
    function = cgutils.get_or_insert_function(
        builder.module, function_type, f"llvm.{name}.v{vector_type.count}{scalar}"
    )
    return builder.call(function, arguments)


def _term(builder, op, vector_type, accumulator, a, b):
    """accumulator + term(a, b) on vectors."""
    if op == "dot":
        return call(builder, "fmuladd", vector_type, [a, b, accumulator])
    if op == "sq":
        difference = builder.fsub(a, b)
        return call(builder, "fmuladd", vector_type, [difference, difference, accumulator])
    if op == "l1":
        return builder.fadd(accumulator, call(builder, "fabs", vector_type, [builder.fsub(a, b)]))
    if op == "min":
        smaller = builder.fcmp_ordered("<", a, b)
        return builder.fadd(accumulator, builder.select(smaller, a, b))
    if op == "chi2":
        zero = ir.Constant(vector_type, None)
        difference, total = builder.fsub(a, b), builder.fadd(a, b)
        ratio = builder.fdiv(builder.fmul(difference, difference), total)
        # two zeros have distance zero, not 0/0
        ratio = builder.select(builder.fcmp_ordered("==", total, zero), zero, ratio)
        return builder.fadd(accumulator, ratio)
    raise ValueError(f"unknown term {op!r}")


def _sparse_term(builder, op, vector_type, accumulator, a, b):
    """accumulator + term(a, b) - term(a, 0), the change by a nonzero b. For min and chi2 a, b >= 0."""
    if op == "dot":
        return call(builder, "fmuladd", vector_type, [a, b, accumulator])
    changed = _term(builder, op, vector_type, accumulator, a, b)
    if op == "min":
        return changed
    return builder.fsub(changed, call(builder, "fabs", vector_type, [a]))


def spread(builder, vector_type, value):
    """A vector with value in every lane."""
    undefined = ir.Constant(vector_type, ir.Undefined)
    single = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(
        single, undefined, ir.Constant(ir.VectorType(ir.IntType(32), vector_type.count), None)
    )


def _rolled_loop(builder, count, values, body):
    """Emit ``for k in range(count): values = body(k, values)``; returns the last values.

    LLVM is told not to unroll the loop: two turns need more registers than there are, sums would go to memory and back,
    and squared differences take a quarter longer.
    """
    integer, module, before = count.type, builder.module, builder.basic_block
    inside, after = builder.append_basic_block("turn"), builder.append_basic_block("after")
    builder.cbranch(builder.icmp_signed(">", count, ir.Constant(integer, 0)), inside, after)
    builder.position_at_end(inside)
    k, carried = builder.phi(integer), [builder.phi(value.type) for value in values]
    results = body(k, carried)
    following = builder.add(k, ir.Constant(integer, 1))
    last = builder.basic_block
    for phi, first, result in zip(
        [k, *carried], [ir.Constant(integer, 0), *values], [following, *results], strict=True
    ):
        phi.add_incoming(first, before)
        phi.add_incoming(result, last)
    branch = builder.cbranch(builder.icmp_signed("<", following, count), inside, after)
    wish = module.add_metadata([ir.MetaDataString(module, "llvm.loop.unroll.disable")])
    # LLVM identifies a loop by a metadata node that refers to itself; the number makes it unique until it does
    name = module.add_metadata([wish, ir.Constant(integer, len(module.metadata))])
    name.operands = (name, wish)
    branch.set_metadata("llvm.loop", name)
    builder.position_at_end(after)
    final = [builder.phi(value.type) for value in values]
    for phi, first, result in zip(final, values, results, strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(result, last)
    return final


def load_vector(builder, vector, pointer):
    """Load a vector; memory is aligned to its numbers only."""
    load = builder.load(builder.bitcast(pointer, vector.as_pointer()), typ=vector)
    load.align = VECTOR_BYTES // vector.count
    return load


def store_vector(builder, value, pointer):
    """Store a vector; memory is aligned to its numbers only."""
    store = builder.store(value, builder.bitcast(pointer, value.type.as_pointer()))
    store.align = VECTOR_BYTES // value.type.count


def emit_sums(builder, op, vector, rows, panel, d):
    """Emit code for the sums of a tile: two vectors for each of ROWS rows, in registers.

    ``rows`` and ``panel`` point to ROWS x d and d x LANES numbers.
    """

    def const(value):
        return ir.Constant(d.type, value)

    starts = [builder.gep(rows, [builder.mul(const(r), d)]) for r in range(ROWS)]

    def add_feature(k, sums):
        line = builder.gep(panel, [builder.mul(k, const(2 * vector.count))])
        b = [load_vector(builder, vector, builder.gep(line, [const(half * vector.count)])) for half in range(2)]
        results = []
        for r in range(ROWS):
            value = spread(builder, vector, builder.load(builder.gep(starts[r], [k]), typ=vector.element))
            for half in range(2):
                results.append(_term(builder, op, vector, sums[2 * r + half], value, b[half]))
        return results

    return _rolled_loop(builder, d, [ir.Constant(vector, None)] * (2 * ROWS), add_feature)


def _register_tile(op):
    @intrinsic
    def register_tile(typingctx, A, row, panels, panel, out, out_row, out_col):
        """Write the ROWS x LANES sums for A[row:row+ROWS] and panels[panel] to out[out_row:, out_col:]."""
        signature = types.void(A, row, panels, panel, out, out_row, out_col)

        def codegen(context, builder, sig, args):
            row, panel, out_row, out_col = (
                context.cast(builder, args[i], sig.args[i], types.intp) for i in (1, 3, 5, 6)
            )
            a, p, o = (context.make_array(sig.args[i])(context, builder, args[i]) for i in (0, 2, 4))
            d = cgutils.unpack_tuple(builder, p.shape)[1]
            stride = cgutils.unpack_tuple(builder, o.shape)[1]
            width = VECTOR_BYTES * 8 // sig.args[0].dtype.bitwidth
            vector = ir.VectorType(context.get_data_type(sig.args[0].dtype), width)
            rows = builder.gep(a.data, [builder.mul(row, d)])
            columns = builder.gep(p.data, [builder.mul(panel, builder.mul(d, ir.Constant(d.type, 2 * width)))])
            for i, total in enumerate(emit_sums(builder, op, vector, rows, columns, d)):
                line = builder.mul(builder.add(out_row, ir.Constant(d.type, i // 2)), stride)
                column = builder.add(out_col, ir.Constant(d.type, i % 2 * width))
                store_vector(builder, total, builder.gep(o.data, [builder.add(line, column)]))
            return context.get_dummy_value()

        return signature, codegen

    return register_tile


register_tile_dot = _register_tile("dot")
register_tile_sq = _register_tile("sq")
register_tile_l1 = _register_tile("l1")
register_tile_min = _register_tile("min")
register_tile_chi2 = _register_tile("chi2")


def _sparse_tile(op):
    @intrinsic
    def sparse_tile(typingctx, indices, data, begin, end, dense, out, out_row):
        """Write sum_t term(dense[indices[t]], data[t]), t in begin:end, to out[out_row], all lanes at once."""
        signature = types.void(indices, data, begin, end, dense, out, out_row)

        def codegen(context, builder, sig, args):
            index_type, data_type, _, _, dense_type, out_type, _ = sig.args
            index = context.make_array(index_type)(context, builder, args[0])
            values = context.make_array(data_type)(context, builder, args[1])
            matrix = context.make_array(dense_type)(context, builder, args[4])
            o = context.make_array(out_type)(context, builder, args[5])
            scalar = context.get_data_type(data_type.dtype)
            align = data_type.dtype.bitwidth // 8
            width = VECTOR_BYTES * 8 // data_type.dtype.bitwidth
            vector = ir.VectorType(scalar, width)
            intp = context.get_value_type(types.intp)
            begin, end, out_row = (context.cast(builder, args[i], sig.args[i], types.intp) for i in (2, 3, 6))
            stride = ir.Constant(intp, SPARSE_VECTORS * width)
            zero = ir.Constant(vector, None)
            sums = [cgutils.alloca_once_value(builder, zero) for _ in range(SPARSE_VECTORS)]
            for total in sums:
                builder.store(zero, total)
            with cgutils.for_range(builder, builder.sub(end, begin), intp=intp) as loop:
                position = builder.add(begin, loop.index)
                feature = builder.load(builder.gep(index.data, [position]))
                feature = context.cast(builder, feature, index_type.dtype, types.intp)
                value = spread(builder, vector, builder.load(builder.gep(values.data, [position]), typ=scalar))
                line = builder.gep(matrix.data, [builder.mul(feature, stride)])
                for v, total in enumerate(sums):
                    pointer = builder.gep(line, [ir.Constant(intp, v * width)])
                    a = builder.load(builder.bitcast(pointer, vector.as_pointer()), typ=vector)
                    a.align = align
                    builder.store(_sparse_term(builder, op, vector, builder.load(total, typ=vector), a, value), total)
            line = builder.gep(o.data, [builder.mul(out_row, stride)])
            for v, total in enumerate(sums):
                pointer = builder.bitcast(builder.gep(line, [ir.Constant(intp, v * width)]), vector.as_pointer())
                builder.store(builder.load(total, typ=vector), pointer).align = align
            return context.get_dummy_value()

        return signature, codegen

    return sparse_tile


sparse_tile_dot = _sparse_tile("dot")
sparse_tile_l1 = _sparse_tile("l1")
sparse_tile_min = _sparse_tile("min")
sparse_tile_chi2 = _sparse_tile("chi2")


@intrinsic
def transpose_tile(typingctx, source, row, column, target, target_row, target_column):
    """target[target_row + c, target_column + r] = source[row + r, column + c] for a square of one vector's width."""
    signature = types.void(source, row, column, target, target_row, target_column)

    def codegen(context, builder, sig, args):
        source_type, _, _, target_type, _, _ = sig.args
        a = context.make_array(source_type)(context, builder, args[0])
        o = context.make_array(target_type)(context, builder, args[3])
        scalar = context.get_data_type(source_type.dtype)
        align = source_type.dtype.bitwidth // 8
        width = VECTOR_BYTES * 8 // source_type.dtype.bitwidth
        vector = ir.VectorType(scalar, width)
        intp = context.get_value_type(types.intp)
        row, column, target_row, target_column = (
            context.cast(builder, args[i], sig.args[i], types.intp) for i in (1, 2, 4, 5)
        )

        def pointer(array, first, second, offset):
            stride = cgutils.unpack_tuple(builder, array.shape)[1]
            line = builder.mul(builder.add(first, ir.Constant(intp, offset)), stride)
            return builder.bitcast(builder.gep(array.data, [builder.add(line, second)]), vector.as_pointer())

        lines = []
        for r in range(width):
            load = builder.load(pointer(a, row, column, r), typ=vector)
            load.align = align
            lines.append(load)
        # interleave rows that are half the width apart, until each vector holds one column
        half = width // 2
        while half:
            mask_low = [k // 2 + (k % 2) * width for k in range(width)]
            mask_high = [k + width // 2 for k in mask_low]
            merged = []
            for k in range(width // 2):
                first, second = lines[k], lines[k + width // 2]
                for mask in (mask_low, mask_high):
                    constant = ir.Constant(ir.VectorType(ir.IntType(32), width), mask)
                    merged.append(builder.shuffle_vector(first, second, constant))
            lines = merged
            half //= 2
        for c, line in enumerate(lines):
            builder.store(line, pointer(o, target_row, target_column, c)).align = align
        return context.get_dummy_value()

    return signature, codegen
