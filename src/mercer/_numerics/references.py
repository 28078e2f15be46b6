"""Arrays without a count of references, for loops that are shorter than the counting."""

from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj


@intrinsic
def borrow(typingctx, array):
    """The same array, and views of it, without ownership: the owner must be used after the last use of these."""

    def codegen(context, builder, signature, args):
        value = arrayobj.make_array(array)(context, builder, args[0])
        value.meminfo = cgutils.get_null_value(value.meminfo.type)
        return value._getvalue()

    return array(array), codegen
