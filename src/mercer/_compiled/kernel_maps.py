"""From sums over features to kernel values, entry by entry.

Every vector kernel is phi(s) of one sum s over features: an inner product, a squared or absolute distance, a sum
of minima, a chi-squared distance. Inner products become squared distances through the norms where a kernel needs
distances: |x - z|^2 = |x|^2 + |z|^2 - 2 <x, z>.
"""

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.exp import bounded_exp

IDENTITY, POLYNOMIAL, SERIES, EXPONENTIAL, MATERN12, MATERN32, MATERN52, TANH, RATIONAL = range(9)


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
def apply_map(code, params, values, norm, norms, out):
    """out[j] = phi(values[j]) for one row; values is scratch space and changes.

    params holds, in the dtype of the tile: [needs distances, gamma, constant, degree, coefficients...].
    norm and norms are squared norms of the row and of the columns.
    """
    n = values.shape[0]
    kind = values.dtype.type
    zero, one, third = kind(0.0), kind(1.0), kind(1.0 / 3.0)
    gamma, constant = params[1], params[2]
    if params[0] != zero:
        _distances(values, norm, norms)
    if code == IDENTITY:
        for j in range(n):
            out[j] = values[j]
    elif code == POLYNOMIAL:
        for j in range(n):
            values[j] = gamma * values[j] + constant
        degree = int(params[3])
        if degree == 2:
            for j in range(n):
                out[j] = values[j] * values[j]
        elif degree == 3:
            for j in range(n):
                out[j] = values[j] * values[j] * values[j]
        else:
            _power(values, degree)
            for j in range(n):
                out[j] = values[j]
    elif code == SERIES:
        for j in range(n):
            out[j] = params[params.shape[0] - 1]
        for k in range(params.shape[0] - 2, 3, -1):
            coefficient = params[k]
            for j in range(n):
                out[j] = out[j] * values[j] + coefficient
    else:
        # all others have one exponential of a multiple of the values. They share its loop, which takes long to compile
        factor = -gamma
        if code == MATERN12 or code == MATERN32 or code == MATERN52:
            factor, far = -one, kind(1e4)  # exp(-r) is zero there in both formats, and r * r still finite
            for j in range(n):
                r = gamma * np.sqrt(values[j])
                values[j] = far if r > far else r  # NaN stays
        elif code == TANH:
            factor, end = kind(-2.0), kind(20.0)  # beyond these ends the tangent is 1 and the exponential may overflow
            for j in range(n):
                t = gamma * values[j] + constant
                values[j] = end if t > end else (-end if t < -end else t)
        elif code == RATIONAL:
            factor = -constant
            for j in range(n):
                values[j] = np.log1p(gamma * values[j])
        for j in range(n):
            out[j] = bounded_exp(factor * values[j])  # the argument is at most 40; 0 for distances
        if code == MATERN32:
            for j in range(n):
                out[j] *= one + values[j]
        elif code == MATERN52:
            for j in range(n):
                r = values[j]
                out[j] *= one + r + r * r * third
        elif code == TANH:
            for j in range(n):
                out[j] = (one - out[j]) / (one + out[j])
