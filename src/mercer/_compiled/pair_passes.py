"""The two passes over the members of a block that a pair step of SMO takes, in LLVM code written by hand.

`update_scores` changes the scores and finds the extreme rates; `best_partner` finds the second member of a pair. Each
lane of a vector keeps its extreme and its place: LLVM does not vectorise a search for the position of a maximum.
"""

from functools import partial

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from mercer._compiled.register_tiles import VECTOR_BYTES, call, spread


class _Variable:
    """A variable of LLVM code: a place on the stack, which LLVM turns into a register."""

    def __init__(self, builder, value):
        self._builder, self._type = builder, value.type
        self._pointer = cgutils.alloca_once(builder, value.type)
        self.set(value)

    def get(self):
        return self._builder.load(self._pointer, typ=self._type)

    def set(self, value):
        self._builder.store(value, self._pointer)


class _Pass:
    """A loop over start:stop of arrays, two vectors in each turn; ``array`` has the dtype of the computation."""

    def __init__(self, context, builder, array, start, stop):
        self.context, self.builder, self.start, self.stop = context, builder, start, stop
        self.bits = array.dtype.bitwidth
        self.scalar, self.whole = context.get_data_type(array.dtype), ir.IntType(self.bits)
        self.lanes = VECTOR_BYTES * 8 // self.bits
        self.vector, self.places = ir.VectorType(self.scalar, self.lanes), ir.VectorType(self.whole, self.lanes)
        self.intp = context.get_value_type(types.intp)
        self.kind = f"v{self.lanes}f{self.bits}"

    def floats(self, value):
        """A vector with this constant in every lane."""
        return ir.Constant(self.vector, [value] * self.lanes)

    def variables(self, value):
        """Two variables, one for each vector of a turn."""
        return [_Variable(self.builder, value) for _ in range(2)]

    def part_of(self, array, value):
        """(pointer to the first entry of the loop, vector type of its entries, their bits)."""
        data = self.context.make_array(array)(self.context, self.builder, value).data
        vector = ir.VectorType(self.context.get_data_type(array.dtype), self.lanes)
        return self.builder.gep(data, [self.start]), vector, array.dtype.bitwidth

    def _in_all_lanes(self, number):
        """A vector with this integer, as wide as the floats, in every lane."""
        short = self.builder.trunc(number, self.whole) if self.bits < self.intp.width else number
        return spread(self.builder, self.places, short)

    def run(self, body):
        """Emit body(half, place, load, store) for both vectors of a turn.

        ``place`` holds the positions of the lanes, counted from the start; load(part, other) gives ``other`` beyond
        the end.
        """
        builder = self.builder
        size, step = builder.sub(self.stop, self.start), ir.Constant(self.intp, 2 * self.lanes)
        turns = builder.sdiv(size, step)
        done = builder.mul(turns, step)
        with cgutils.for_range(builder, turns, intp=self.intp) as loop:
            self._turn(body, builder.mul(loop.index, step), masked=False)
        with builder.if_then(builder.icmp_signed("<", done, size)):
            self._turn(body, done, masked=True)

    def _turn(self, body, offset, masked):
        builder = self.builder
        for half in range(2):
            here = builder.add(offset, ir.Constant(self.intp, half * self.lanes))
            place = builder.add(self._in_all_lanes(here), ir.Constant(self.places, list(range(self.lanes))))
            size = builder.sub(self.stop, self.start)
            mask = builder.icmp_signed("<", place, self._in_all_lanes(size)) if masked else None
            body(half, place, partial(self._load, here, mask), partial(self._store, here, mask))

    def _load(self, here, mask, part, other=0.0):
        pointer, vector, bits = part
        there = self.builder.bitcast(self.builder.gep(pointer, [here]), vector.as_pointer())
        if mask is None:
            value = self.builder.load(there, typ=vector)
            value.align = bits // 8
        else:
            kind, others = f"v{self.lanes}f{bits}", ir.Constant(vector, [other] * self.lanes)
            arguments = [there, ir.Constant(ir.IntType(32), bits // 8), mask, others]
            value = self._call(f"llvm.masked.load.{kind}.p0{kind}", vector, arguments)
        # scores may be float64 and the matrix float32
        return value if bits == self.bits else self.builder.fpext(value, self.vector)

    def _store(self, here, mask, value, part):
        pointer, vector, bits = part
        there = self.builder.bitcast(self.builder.gep(pointer, [here]), vector.as_pointer())
        if mask is None:
            self.builder.store(value, there).align = bits // 8
            return
        arguments = [value, there, ir.Constant(ir.IntType(32), bits // 8), mask]
        self._call(f"llvm.masked.store.{self.kind}.p0{self.kind}", ir.VoidType(), arguments)

    def _call(self, name, result, arguments, **options):
        function_type = ir.FunctionType(result, [one.type for one in arguments])
        function = cgutils.get_or_insert_function(self.builder.module, function_type, name)
        return self.builder.call(function, arguments, **options)

    def extreme(self, name, best):
        """The largest ("fmax") or smallest ("fmin") of all lanes of both vectors."""
        a, b = (one.get() for one in best)
        more = self.builder.fcmp_ordered(">" if name == "fmax" else "<", b, a)
        both = self.builder.select(more, b, a)
        return self._call(f"llvm.vector.reduce.{name}.{self.kind}", self.scalar, [both], fastmath=("nnan", "nsz"))

    def first(self, best, where, value):
        """The smallest index at which ``best`` has this value; -1 if there is none."""
        builder, value = self.builder, spread(self.builder, self.vector, value)
        nowhere = ir.Constant(self.places, [-1] * self.lanes)  # the largest unsigned number
        a, b = (
            builder.select(builder.fcmp_ordered("==", one.get(), value), place.get(), nowhere)
            for one, place in zip(best, where, strict=True)
        )
        both = builder.select(builder.icmp_unsigned("<", b, a), b, a)
        first = self._call(f"llvm.vector.reduce.umin.v{self.lanes}i{self.bits}", self.whole, [both])
        first = builder.sext(first, self.intp) if self.bits < self.intp.width else first
        nothing = builder.icmp_signed("<", first, ir.Constant(self.intp, 0))
        return builder.select(nothing, first, builder.add(first, self.start))

    def keep_larger(self, half, value, place, best, where):
        """Keep the larger value of each lane, and its position."""
        before = best[half].get()
        larger = self.builder.fcmp_ordered(">", value, before)
        best[half].set(self.builder.select(larger, value, before))
        where[half].set(self.builder.select(larger, place, where[half].get()))


@intrinsic
def update_scores(typingctx, score, column_i, column_j, step, grow, shrink, start, stop):
    """score -= step (column_i - column_j) from start to stop. Edits score.

    Returns (largest score + grow, its index, smallest score + shrink). The index is -1 if no rate is above -inf.
    """
    result = types.Tuple([score.dtype, types.intp, score.dtype])
    signature = result(score, column_i, column_j, score.dtype, grow, shrink, types.intp, types.intp)

    def codegen(context, builder, sig, args):
        over = _Pass(context, builder, score, args[6], args[7])
        scores, a, b, up, down = (over.part_of(sig.args[i], args[i]) for i in (0, 1, 2, 4, 5))
        step = spread(builder, over.vector, args[3])
        best, worst = over.variables(over.floats(float("-inf"))), over.variables(over.floats(float("inf")))
        where = over.variables(ir.Constant(over.places, [-1] * over.lanes))

        def body(half, place, load, store):
            difference = builder.fsub(load(b), load(a))
            value = call(builder, "fmuladd", over.vector, [step, difference, load(scores)])
            store(value, scores)
            over.keep_larger(half, builder.fadd(value, load(up, float("-inf"))), place, best, where)
            low, before = builder.fadd(value, load(down, float("inf"))), worst[half].get()
            worst[half].set(builder.select(builder.fcmp_ordered("<", low, before), low, before))

        over.run(body)
        top = over.extreme("fmax", best)
        values = [top, over.first(best, where, top), over.extreme("fmin", worst)]
        return context.make_tuple(builder, result, values)

    return signature, codegen


@intrinsic
def best_partner(typingctx, score, shrink, diagonal, column_i, up, diagonal_i, start, stop):
    """The j from start to stop with the largest gain of a pair step with i (WSS 2); -1 if no step gains.

    The gain is half of (up - score - shrink)^2 / (diagonal_i + diagonal - 2 column_i).
    """
    signature = types.intp(score, shrink, diagonal, column_i, score.dtype, score.dtype, types.intp, types.intp)

    def codegen(context, builder, sig, args):
        over = _Pass(context, builder, score, args[6], args[7])
        scores, down, squares, column = (over.part_of(sig.args[i], args[i]) for i in range(4))
        up, square = spread(builder, over.vector, args[4]), spread(builder, over.vector, args[5])
        zero, minus_two = over.floats(0.0), over.floats(-2.0)
        # an indefinite kernel, or equal samples, may give a curvature <= 0
        tiny = over.floats(1e-12)
        best, where = over.variables(zero), over.variables(ir.Constant(over.places, [-1] * over.lanes))

        def body(half, place, load, store):
            slope = builder.fsub(up, builder.fadd(load(scores), load(down, float("inf"))))
            slope = builder.select(builder.fcmp_ordered(">", slope, zero), slope, zero)
            total = builder.fadd(square, load(squares))
            curvature = call(builder, "fmuladd", over.vector, [minus_two, load(column), total])
            curvature = builder.select(builder.fcmp_ordered(">", curvature, tiny), curvature, tiny)
            gain = builder.fdiv(builder.fmul(slope, slope), curvature)
            over.keep_larger(half, gain, place, best, where)

        over.run(body)
        return over.first(best, where, over.extreme("fmax", best))

    return signature, codegen
