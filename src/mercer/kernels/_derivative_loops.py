"""Derivatives of vector kernels with respect to their widths.

Every vector kernel is k = ψ(u), where u is a sum over features times a power of the width (see
``mercer._compiled.kernel_maps``): γ times a distance or an inner product, or 2ν |x - z|² / length². All derivatives
with respect to widths follow from ψ'(u).
"""

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.exp import exp
from mercer._compiled.intrinsics import smaller
from mercer._compiled.kernel_maps import EXPONENTIAL, MATERN12, MATERN32, MATERN52, POLYNOMIAL, RATIONAL, TANH
from mercer._compiled.tiles import L1, SQUARE


@compiled()
def slopes(code, factor, params, values, weights, out):
    """Multiply the sums over features by ``factor`` in place, which gives u; write weights ψ'(u) to ``out``.

    ``params`` as in ``apply_map``; all arrays are one-dimensional.
    """
    n = values.shape[0]
    constant = params[2]
    for j in range(n):
        values[j] = smaller(factor * values[j], 1e300)  # infinity times a slope of 0 would be NaN
    if code == EXPONENTIAL:
        for j in range(n):
            out[j] = -exp(-values[j])
    elif code == MATERN12 or code == MATERN32 or code == MATERN52:
        for j in range(n):
            r = smaller(np.sqrt(values[j]), 1e4)
            decay = -0.5 * exp(-r)
            if code == MATERN12:
                out[j] = decay / r if r > 0.0 else 0.0
            elif code == MATERN32:
                out[j] = decay
            else:
                out[j] = decay * (1.0 + r) / 3.0
    elif code == RATIONAL:
        for j in range(n):
            out[j] = -constant * exp(-(constant + 1.0) * np.log1p(values[j]))
    elif code == POLYNOMIAL:
        degree = int(params[3])
        for j in range(n):
            out[j] = degree * (values[j] + constant) ** (degree - 1) if degree > 0 else 0.0
    elif code == TANH:
        for j in range(n):
            e = exp(-2.0 * abs(values[j] + constant))
            out[j] = 4.0 * e / ((1.0 + e) * (1.0 + e))
    else:  # IDENTITY; power series are differentiated in `feature_sums`
        for j in range(n):
            out[j] = 1.0
    for j in range(n):
        out[j] *= weights[j]


@compiled(fast=True)
def add_moments(term, A, B, weights, out):
    """out[k] += sum_ij weights[i, j] term(A[i, k], B[k, j]), feature by feature; distances from differences."""
    for i in range(A.shape[0]):
        line = weights[i]
        for k in range(A.shape[1]):
            x, column = A[i, k], B[k]
            total = 0.0
            if term == SQUARE:
                for j in range(column.shape[0]):
                    difference = x - column[j]
                    total += line[j] * difference * difference
            elif term == L1:
                for j in range(column.shape[0]):
                    total += line[j] * abs(x - column[j])
            else:
                for j in range(column.shape[0]):
                    total += line[j] * column[j]
                total *= x
            out[k] += total
