"""From sums over features to kernel values, entry by entry.

Every vector kernel is phi(s) of one sum s over features: an inner product, a squared or absolute distance, a sum
of minima, a chi-squared distance. Inner products become squared distances through the norms where a kernel needs
distances: |x - z|^2 = |x|^2 + |z|^2 - 2 <x, z>.

Each map is a function(params, values) that replaces sums by kernel values. params holds, in the dtype of the values,
[needs distances, gamma, constant, degree, coefficients...]. Loops call a map by its address: a fit compiles the map of
its kernel only, and only once.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from mercer._compiled.compile import compiled
from mercer._compiled.exp import bounded_exp
from mercer._compiled.pointers import address_of, emit_call, vectors

IDENTITY, POLYNOMIAL, SERIES, EXPONENTIAL, MATERN12, MATERN32, MATERN52, TANH, RATIONAL = range(9)
# the largest r of a Matérn kernel: exp(-r) is zero there in both formats, and r * r still finite
FAR = 1e4


@compiled()
def _distances(values, norm, norms):
    """Turn inner products of one row with the columns into squared distances, in place."""
    zero, two = values.dtype.type(0.0), values.dtype.type(2.0)
    for j in range(values.shape[0]):
        square = norm + norms[j] - two * values[j]
        values[j] = zero if square < zero else square  # NaN stays


@compiled()
def _power(values, degree):
    """values ** degree, in place, by repeated squaring."""
    one = values.dtype.type(1.0)
    for j in range(values.shape[0]):
        base, result, e = values[j], one, degree
        while e > 0:
            if e & 1:
                result *= base
            base *= base
            e >>= 1
        values[j] = result


@compiled()
def polynomial(params, values):
    """(gamma s + constant)^degree."""
    gamma, constant, degree = params[1], params[2], int(params[3])
    for j in range(values.shape[0]):
        values[j] = gamma * values[j] + constant
    if degree == 2:
        for j in range(values.shape[0]):
            values[j] *= values[j]
    elif degree == 3:
        for j in range(values.shape[0]):
            values[j] = values[j] * values[j] * values[j]
    else:
        _power(values, degree)


@compiled()
def series(params, values):
    """sum_k coefficient_k s^k, by Horner's rule."""
    for j in range(values.shape[0]):
        s, total = values[j], params[params.shape[0] - 1]
        for k in range(params.shape[0] - 2, 3, -1):
            total = total * s + params[k]
        values[j] = total


@compiled()
def exponential(params, values):
    """exp(-gamma s). The exponent is at most 40, and at most 0 for distances."""
    factor = -params[1]
    for j in range(values.shape[0]):
        values[j] = bounded_exp(factor * values[j])


@compiled(merged=True)
def _length(gamma, s, far):
    """r = gamma sqrt(s), at most ``far``; NaN stays."""
    r = gamma * np.sqrt(s)
    return far if r > far else r


@compiled()
def matern12(params, values):
    """exp(-r)."""
    gamma, far = params[1], values.dtype.type(FAR)
    for j in range(values.shape[0]):
        values[j] = bounded_exp(-_length(gamma, values[j], far))


@compiled()
def matern32(params, values):
    """(1 + r) exp(-r)."""
    gamma, far, one = params[1], values.dtype.type(FAR), values.dtype.type(1.0)
    for j in range(values.shape[0]):
        r = _length(gamma, values[j], far)
        values[j] = (one + r) * bounded_exp(-r)


@compiled()
def matern52(params, values):
    """(1 + r + r^2 / 3) exp(-r)."""
    gamma, kind = params[1], values.dtype.type
    far, one, third = kind(FAR), kind(1.0), kind(1.0 / 3.0)
    for j in range(values.shape[0]):
        r = _length(gamma, values[j], far)
        values[j] = (one + r + r * r * third) * bounded_exp(-r)


@compiled()
def tangent(params, values):
    """tanh(t) of t = gamma s + constant, from exp(-2t). Beyond |t| = 20 it is 1, and the exponential may overflow."""
    gamma, constant, kind = params[1], params[2], values.dtype.type
    one, end, factor = kind(1.0), kind(20.0), kind(-2.0)
    for j in range(values.shape[0]):
        t = gamma * values[j] + constant
        e = bounded_exp(factor * (end if t > end else (-end if t < -end else t)))
        values[j] = (one - e) / (one + e)


@compiled()
def rational(params, values):
    """(1 + gamma s)^-constant."""
    gamma, factor = params[1], -params[2]
    for j in range(values.shape[0]):
        values[j] = np.log1p(gamma * values[j])
    for j in range(values.shape[0]):
        values[j] = bounded_exp(factor * values[j])


MAPS = {
    POLYNOMIAL: polynomial, SERIES: series, EXPONENTIAL: exponential, MATERN12: matern12, MATERN32: matern32,
    MATERN52: matern52, TANH: tangent, RATIONAL: rational,
}  # fmt: skip


@lru_cache
def map_address(code: int, dtype: np.dtype[Any]) -> int:
    """The address of a map for values of this dtype; 0 for the identity."""
    return 0 if code == IDENTITY else address_of(MAPS[code], vectors(dtype), vectors(dtype))


@intrinsic
def _call_map(typingctx, address, params, values):
    return types.none(types.int64, params, values), emit_call


@compiled()
def apply_map(address, params, values, norm, norms):
    """Replace the sums of one row by kernel values. ``address``: see `map_address`.

    norm and norms are squared norms of the row and of the columns, for kernels that need distances.
    """
    if params[0] != 0:
        _distances(values, norm, norms)
    if address != 0:
        _call_map(address, params, values)
