"""LLVM code for arrays without reference counts, and for calls of functions by their address.

Counting the references of an array takes longer than a short loop. A function that is called by its address is
compiled once, not again as a part of each caller, and threads that wait in compiled code can call it.
"""

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def borrow(typingctx, array):
    """The array without a reference: its owner must be used after the last use of this array and its views."""

    def codegen(context, builder, signature, args):
        value = context.make_array(array)(context, builder, args[0])
        value.meminfo = cgutils.get_null_value(value.meminfo.type)
        return value._getvalue()

    return array(array), codegen


@intrinsic
def call(typingctx, function, given, part):
    """Call function(address of the array ``given``, part); ``function`` is the address of machine code."""

    def codegen(context, builder, signature, args):
        whole = ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [whole, whole])
        address = builder.ptrtoint(context.make_array(given)(context, builder, args[1]).data, whole)
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [address, args[2]])
        return context.get_dummy_value()

    return types.void(types.int64, given, types.int64), codegen


@intrinsic
def at(typingctx, address):
    """An integer address as a pointer."""

    def codegen(context, builder, signature, args):
        return builder.inttoptr(args[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), codegen


def emit_call(context, builder, signature, args):
    """Emit the call of a compiled function: args[0] is its address, the others are its arguments.

    The types of the arguments must be those that `address_of` was given: arrays in C order.
    """
    if any(isinstance(kind, types.Array) and kind.layout != "C" for kind in signature.args):
        raise TypeError(f"a call by address needs arrays in C order: {signature.args}")
    kinds = [context.get_value_type(kind) for kind in (signature.return_type, *signature.args[1:])]
    function = ir.FunctionType(kinds[0], kinds[1:]).as_pointer()
    return builder.call(builder.inttoptr(args[0], function), args[1:])


def address_of(function: Any, *kinds: Any) -> int:
    """The address of the machine code of a compiled function for arguments of these types."""
    function.compile(kinds)
    found = function.overloads[kinds]
    return int(found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name))


def job_address(job: Any) -> int:
    """The address of a compiled function(address of an array, part)."""
    return address_of(job, types.int64, types.int64)


def vectors(dtype: Any, ndim: int = 1) -> Any:
    """The type of arrays in C order."""
    return types.Array(numba.from_dtype(np.dtype(dtype)), ndim, "C")
