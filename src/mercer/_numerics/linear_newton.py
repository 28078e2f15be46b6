"""The passes over all samples of Newton's method for squared losses (see `mercer.solvers.linear.newton`)."""

import numpy as np

from mercer._numerics.compile import compiled


@compiled(inline=True)
def _answer(t, l1, ridge, lower, upper):
    """(c, dc/dt) for the c in the box that maximises  t c - l1|c| - 1/2 ridge c^2; ridge > 0, or lower = upper."""
    if lower == upper:
        return lower, 0.0
    c, slope = 0.0, 0.0
    if t > l1:
        c, slope = (t - l1) / ridge, 1.0 / ridge
    elif t < -l1:
        c, slope = (t + l1) / ridge, 1.0 / ridge
    if c <= lower or c >= upper:
        return min(max(c, lower), upper), 0.0
    return c, slope


@compiled()
def respond(f, linear, l1, ridge, lower, upper, beta, D):
    """Fill beta, the negative derivative of each sample's loss at f, and D, its second derivative; the losses' sum."""
    total = 0.0
    for i in range(f.shape[0]):
        t = linear[i] - f[i]
        beta[i], D[i] = _answer(t, l1[i], ridge[i], lower[i], upper[i])
        total += beta[i] * (t - 0.5 * ridge[i] * beta[i]) - l1[i] * abs(beta[i])
    return total


@compiled()
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
