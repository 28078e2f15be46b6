"""Single instructions that numba lacks: minimum and maximum that LLVM vectorises, prefetching, counting bits."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _extremum(name):
    # numba's own min and max, and comparisons, stay scalar
    @intrinsic
    def extremum(typingctx, a, b):
        """The smaller or larger of two floats of one type; neither is NaN."""

        def codegen(context, builder, signature, args):
            real = args[0].type
            suffix = "f32" if a is types.float32 else "f64"
            function = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(real, [real, real]), f"llvm.{name}.{suffix}"
            )
            return builder.call(function, args, fastmath=("nnan", "nsz"))

        return a(a, b), codegen

    return extremum


smaller = _extremum("minnum")
larger = _extremum("maxnum")


@intrinsic
def prefetch(typingctx, array, position):
    """Load the cache line of array[position], a one-dimensional contiguous array, without waiting for it.

    Samples drawn at random are seldom in the cache.
    """

    def codegen(context, builder, signature, args):
        view = context.make_array(signature.args[0])(context, builder, args[0])
        index = context.cast(builder, args[1], signature.args[1], types.intp)
        place = builder.gep(view.data, [index])
        address = builder.bitcast(place, cgutils.voidptr_t)
        whole = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, whole, whole, whole])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        # to read, into the nearest cache, data rather than code
        builder.call(function, [address, whole(0), whole(3), whole(1)])
        return context.get_dummy_value()

    return types.void(array, position), codegen


@intrinsic
def popcount(typingctx, word):
    """The number of bits that are set in a 64-bit word."""

    def codegen(context, builder, signature, arguments):
        function = builder.module.declare_intrinsic("llvm.ctpop", [ir.IntType(64)])
        return builder.call(function, arguments)

    return types.int64(types.uint64), codegen
