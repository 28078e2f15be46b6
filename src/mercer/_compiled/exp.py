"""exp in straight-line arithmetic, so that LLVM vectorises every loop that calls it.

    exp(x) = 2^j exp(r),   j = round(x / log 2),   r = x - j log 2,   |r| <= log(2)/2

Adding 1.5 * 2^(mantissa bits) rounds x / log 2 to an integer in the low bits of the sum; shifting those bits
into the exponent multiplies by 2^j. log 2 is split in two parts so that j log 2 is subtracted exactly.
Relative error below 4e-7 (float32) and 1e-14 (float64) where the result is a normal number; smaller results
become 0, larger ones inf, NaN stays NaN.

It is written as LLVM code, because numba widens int32 arithmetic to int64, which halves the vectors.
"""

from dataclasses import dataclass

from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic


@dataclass(frozen=True)
class _Format:
    """The constants that depend on the floating point format."""

    bits: int
    mantissa: int
    lowest: float  # smallest x with a normal result
    highest: float  # largest x with a finite result
    log2_high: float  # leading bits of log 2: its products with j are exact
    log2_low: float
    polynomial: tuple[float, ...]  # (exp(r) - 1 - r) / r^2, highest power first


# polynomials: in float32 Cephes' minimax, in float64 interpolation at Chebyshev's nodes, whose error is 1.6e-17
_SINGLE = _Format(
    32, 23, -87.33654, 88.72283, 0.693359375, -2.12194440e-4,
    (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1),
)  # fmt: skip
_DOUBLE = _Format(
    64, 52, -708.396418532264, 709.782712893384, 6.93147180369123816490e-01, 1.90821492927058770002e-10,
    (
        2.51003758422237e-08, 2.7620075892548164e-07, 2.7557268480289716e-06, 2.480152132234228e-05,
        1.9841269863040559e-04, 1.3888888917196736e-03, 8.333333333330065e-03, 4.1666666666624164e-02,
        1.6666666666666669e-01, 5.000000000000001e-01,
    ),
)  # fmt: skip


def emit_exp(builder, xs, bounded=False):
    """Emit code for exp(x) of several numbers or vectors of one type, interleaved step by step.

    Each step waits for the result of the one before it; interleaving lets the processor work on the others meanwhile.
    With ``bounded`` no x is too large, and overflow is not tested.
    """
    real = xs[0].type
    lanes = real.count if isinstance(real, ir.VectorType) else 0
    form = _DOUBLE if isinstance(real.element if lanes else real, ir.DoubleType) else _SINGLE
    integer = ir.VectorType(ir.IntType(form.bits), lanes) if lanes else ir.IntType(form.bits)
    name = f"llvm.fmuladd.v{lanes}f{form.bits}" if lanes else f"llvm.fmuladd.f{form.bits}"
    fused = cgutils.get_or_insert_function(builder.module, ir.FunctionType(real, [real] * 3), name)
    magic = 1.5 * 2.0**form.mantissa

    def constant(kind, value):
        return ir.Constant(kind, [value] * lanes if lanes else value)

    def number(value):
        return constant(real, value)

    def each(step, *operands):
        return [step(*several) for several in zip(*operands, strict=True)]

    def multiply_add(a, b, c):
        return builder.call(fused, [a, b, c])

    too_small = [builder.fcmp_ordered("<", x, number(form.lowest)) for x in xs]
    inside = each(lambda small, x: builder.select(small, number(form.lowest), x), too_small, xs)
    if not bounded:
        too_large = [builder.fcmp_ordered(">", x, number(form.highest)) for x in xs]
        inside = each(lambda large, x: builder.select(large, number(form.highest), x), too_large, inside)
    # with the bias added, the low bits are the exponent of 2^j
    bias = 2 ** (form.bits - form.mantissa - 2) - 1 if bounded else 0
    shifted = [multiply_add(x, number(1.4426950408889634), number(magic + bias)) for x in inside]
    j = [builder.fsub(x, number(magic + bias)) for x in shifted]
    # the shift drops the magic number's own bits and leaves j in the exponent field
    power = [builder.shl(builder.bitcast(x, integer), constant(integer, form.mantissa)) for x in shifted]
    if bounded:
        power = each(lambda small, e: builder.select(small, constant(integer, 0), e), too_small, power)
    r = each(lambda j, x: multiply_add(j, number(-form.log2_high), x), j, inside)
    r = each(lambda j, r: multiply_add(j, number(-form.log2_low), r), j, r)
    # pairs of coefficients are independent of each other, unlike the steps of Horner's rule
    squares = [builder.fmul(x, x) for x in r]
    p = None
    for odd, even in zip(form.polynomial[::2], form.polynomial[1::2], strict=True):
        pair = [multiply_add(number(odd), x, number(even)) for x in r]
        p = pair if p is None else each(multiply_add, p, squares, pair)
    p = each(lambda p, square, x: multiply_add(p, square, builder.fadd(x, number(1.0))), p, squares, r)
    if bounded:
        return each(lambda p, e: builder.fmul(p, builder.bitcast(e, real)), p, power)
    # 2^j alone may overflow: adding j to the exponent bits of p multiplies p by 2^j; the bounds on x keep it in range
    values = each(lambda p, e: builder.bitcast(builder.add(builder.bitcast(p, integer), e), real), p, power)
    values = each(lambda small, value: builder.select(small, number(0.0), value), too_small, values)
    return each(lambda large, value: builder.select(large, number(float("inf")), value), too_large, values)


@intrinsic
def exp(typingctx, x):
    """e^x for one float32 or float64; compiled code only."""

    def codegen(context, builder, signature, args):
        return emit_exp(builder, args)[0]

    return x(x), codegen


@intrinsic
def bounded_exp(typingctx, x):
    """e^x for one float32 or float64 that is at most 88; compiled code only."""

    def codegen(context, builder, signature, args):
        return emit_exp(builder, args, bounded=True)[0]

    return x(x), codegen
