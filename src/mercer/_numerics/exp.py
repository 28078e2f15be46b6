"""exp in straight-line arithmetic, so that LLVM vectorises every loop that calls it.

    exp(x) = 2^j exp(r),   j = round(x / log 2),   r = x - j log 2,   |r| <= log(2)/2

Adding 1.5 * 2^(mantissa bits) rounds x / log 2 to an integer in the low bits of the sum; shifting those bits
into the exponent multiplies by 2^j. log 2 is split in two parts so that j log 2 is subtracted exactly.
Relative error below 4e-7 (float32) and 1e-14 (float64) where the result is a normal number; smaller results
become 0, larger ones inf, NaN stays NaN.

It is written as intermediate code because numba widens int32 arithmetic to int64, which halves the vectors.
"""

from dataclasses import dataclass
from math import factorial

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from mercer._numerics.compile import compiled


@dataclass(frozen=True)
class _Format:
    """What the two floating point formats differ in."""

    bits: int
    mantissa: int
    lowest: float  # smallest x with a normal result
    highest: float  # largest x with a finite result
    log2_high: float  # leading bits of log 2: its products with j are exact
    log2_low: float
    polynomial: tuple[float, ...]  # (exp(r) - 1 - r) / r^2, highest power first


# Cephes' minimax coefficients
_SINGLE = _Format(
    32, 23, -87.33654, 88.72283, 0.693359375, -2.12194440e-4,
    (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1),
)  # fmt: skip
_DOUBLE = _Format(
    64, 52, -708.396418532264, 709.782712893384, 6.93147180369123816490e-01, 1.90821492927058770002e-10,
    tuple(1.0 / factorial(k) for k in range(12, 1, -1)),
)  # fmt: skip


def _emit(builder, x, form, bounded=False):
    """Code for exp(x), without a test for results that are too large if x is known to be bounded."""
    real, integer = x.type, ir.IntType(form.bits)
    magic = 1.5 * 2.0**form.mantissa

    def number(value):
        return ir.Constant(real, value)

    def multiply_add(a, b, c):
        name = f"llvm.fmuladd.f{form.bits}"
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(real, [real] * 3), name)
        return builder.call(function, [a, b, c])

    too_small = builder.fcmp_ordered("<", x, number(form.lowest))
    inside = builder.select(too_small, number(form.lowest), x)
    if not bounded:
        too_large = builder.fcmp_ordered(">", x, number(form.highest))
        inside = builder.select(too_large, number(form.highest), inside)
    shifted = multiply_add(inside, number(1.4426950408889634), number(magic))
    j = builder.fsub(shifted, number(magic))
    r = multiply_add(j, number(-form.log2_high), inside)
    r = multiply_add(j, number(-form.log2_low), r)
    p = number(form.polynomial[0])
    for coefficient in form.polynomial[1:]:
        p = multiply_add(p, r, number(coefficient))
    p = multiply_add(builder.fmul(p, r), r, builder.fadd(r, number(1.0)))
    # the shift drops the magic number's own bits and leaves j in the exponent field, where adding it to the bits of
    # p multiplies p by 2^j; the bounds on x keep the field in range
    exponent = builder.shl(builder.bitcast(shifted, integer), ir.Constant(integer, form.mantissa))
    value = builder.bitcast(builder.add(builder.bitcast(p, integer), exponent), real)
    value = builder.select(too_small, number(0.0), value)
    return value if bounded else builder.select(too_large, number(float("inf")), value)


@intrinsic
def exp(typingctx, x):
    """e^x for one float32 or float64; compiled code only."""

    def codegen(context, builder, signature, args):
        return _emit(builder, args[0], _SINGLE if x is types.float32 else _DOUBLE)

    return x(x), codegen


@intrinsic
def bounded_exp(typingctx, x):
    """e^x for one float32 or float64 that is at most 88; compiled code only."""

    def codegen(context, builder, signature, args):
        return _emit(builder, args[0], _SINGLE if x is types.float32 else _DOUBLE, bounded=True)

    return x(x), codegen


@compiled()
def exp_inplace(values):
    """Replace each entry of a vector by its exponential."""
    for i in range(values.shape[0]):
        values[i] = exp(values[i])
