"""Prefetch memory that will be needed soon: samples drawn at random are seldom in the cache."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def prefetch(typingctx, array, position):
    """Load the cache line of array[position], a one-dimensional contiguous array, without waiting for it."""

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
