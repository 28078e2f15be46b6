"""The passes over all samples of Newton's method for squared losses (see `mercer.linear.newton`)."""

import numpy as np

from mercer._numerics.compile import compiled
from mercer._numerics.extrema import larger, smaller
from mercer.linear._row_loops import dense_dot, dense_tdot, sparse_dot, sparse_tdot

# numbers of a block of rows that stays in the cache between the two products with it
BLOCK = 1 << 13


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


@compiled()
def dense_answers(X, u, bias, linear, l1, ridge, lower, upper, f, beta, D, v):
    """`respond` at f = Xu, which is filled too, and v = X'beta added to v: one pass over X. Returns the losses' sum."""
    n, stored = X.shape
    size = max(8, BLOCK // max(1, stored) // 8 * 8)
    total = 0.0
    for start in range(0, n, size):
        part = slice(start, min(start + size, n))
        dense_dot(X[part], u, f[part])
        if bias != 0.0:
            f[part] += bias * u[stored]
        total += respond(f[part], linear[part], l1[part], ridge[part], lower[part], upper[part], beta[part], D[part])
        dense_tdot(X[part], beta[part], v)
        if bias != 0.0:
            v[stored] += bias * beta[part].sum()
    return total


@compiled()
def sparse_answers(indptr, indices, data, u, bias, linear, l1, ridge, lower, upper, f, beta, D, v):
    """The same for CSR; indices are unsigned, and there are len(indptr) - 1 rows."""
    n, last = indptr.shape[0] - 1, v.shape[0] - 1
    size = max(8, BLOCK * n // max(1, indptr[n] - indptr[0]))
    total = 0.0
    for start in range(0, n, size):
        stop = min(start + size, n)
        part, ends = slice(start, stop), indptr[start : stop + 1]
        sparse_dot(ends, indices, data, u, f[part])
        if bias != 0.0:
            f[part] += bias * u[last]
        total += respond(f[part], linear[part], l1[part], ridge[part], lower[part], upper[part], beta[part], D[part])
        sparse_tdot(ends, indices, data, beta[part], v)
        if bias != 0.0:
            v[last] += bias * beta[part].sum()
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
