"""The passes over all samples of Newton's method for squared losses (see `mercer.solvers.linear.newton`)."""

import numpy as np

from mercer._numerics.compile import compiled
from mercer._numerics.extrema import larger, smaller


@compiled(fast=True, inline=True)
def _answer(t, l1, ridge, lower, upper):
    """(c, dc/dt) for the c in the box that maximises  t c - l1|c| - 1/2 ridge c^2; ridge > 0, or lower = upper.

    Without branches, so that the loops around it are vectorised: they are ten times as fast.
    """
    beyond = larger(t - l1, 0.0) + smaller(t + l1, 0.0)
    inverse = 1.0 / ridge if ridge > 0.0 else 0.0
    c = smaller(larger(beyond * inverse, lower), upper)
    return c, inverse if (lower < c) & (c < upper) & (beyond != 0.0) else 0.0


@compiled(fast=True)
def respond(f, linear, l1, ridge, lower, upper, beta, D):
    """Fill beta, the negative derivative of each sample's loss at f, and D, its second derivative; the losses' sum."""
    total = 0.0
    for i in range(f.shape[0]):
        t = linear[i] - f[i]
        c, slope = _answer(t, l1[i], ridge[i], lower[i], upper[i])
        beta[i], D[i] = c, slope
        total += c * (t - 0.5 * ridge[i] * c) - l1[i] * abs(c)
    return total


@compiled(fast=True)
def along(f, q, s, linear, l1, ridge, lower, upper):
    """First and second derivative of the losses' sum at f + s q, by s."""
    first, second = 0.0, 0.0
    for i in range(f.shape[0]):
        c, slope = _answer(linear[i] - f[i] - s * q[i], l1[i], ridge[i], lower[i], upper[i])
        first -= c * q[i]
        second += slope * q[i] * q[i]
    return first, second


@compiled()
def column_squares(indptr, indices, data, D, out):
    """Add the diagonal of X'DX to out, for CSR."""
    for i in range(indptr.shape[0] - 1):
        for t in range(indptr[i], indptr[i + 1]):
            out[indices[t]] += D[i] * np.float64(data[t]) * np.float64(data[t])
