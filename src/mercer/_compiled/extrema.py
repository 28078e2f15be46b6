"""min and max that LLVM turns into vector reductions (numba's own min and max, and comparisons, stay scalar)."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _extremum(name):
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
