"""Passes over all samples of Newton's method (`mercer.linear.newton`), and all of it for small problems (`small`)."""

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.intrinsics import larger, smaller
from mercer.linear._interior_loops import dense_gram, loss_and_gap
from mercer.linear._row_loops import dense_dot, dense_tdot, dot, sparse_dot, sparse_tdot

# numbers in a block of rows, which stays in the cache between its two products
BLOCK = 1 << 13
LINE_STEPS = 30
# a line search ends when the derivative is this share of that at its start
LINE_ACCURACY = 0.05
# added to the unit diagonal of the scaled matrix
REGULARISATION = 1e-13


@compiled(fast=True, inline=True)
def _maximise(t, l1, ridge, lower, upper):
    """(c, dc/dt) for the c in the box that maximises  t c - l1|c| - 1/2 ridge c^2; ridge > 0, or lower = upper.

    It has no branches, so that the calling loops are vectorised, which makes them ten times as fast.
    """
    beyond = larger(t - l1, 0.0) + smaller(t + l1, 0.0)
    inverse = 1.0 / ridge if ridge > 0.0 else 0.0
    c = smaller(larger(beyond * inverse, lower), upper)
    return c, inverse if (lower < c) & (c < upper) & (beyond != 0.0) else 0.0


@compiled(fast=True)
def differentiate(f, linear, l1, ridge, lower, upper, beta, D):
    """Fill beta, the negative derivative of each loss at f, and D, its second derivative; returns the sum of losses."""
    total = 0.0
    for i in range(f.shape[0]):
        t = linear[i] - f[i]
        c, slope = _maximise(t, l1[i], ridge[i], lower[i], upper[i])
        beta[i], D[i] = c, slope
        total += c * (t - 0.5 * ridge[i] * c) - l1[i] * abs(c)
    return total


@compiled()
def _add_to_all(value, out):
    """Add a number to all entries. numba compiles ``out += value`` with a check of shapes, which takes seconds."""
    for i in range(out.shape[0]):
        out[i] += value


@compiled()
def _total(values):
    total = 0.0
    for i in range(values.shape[0]):
        total += values[i]
    return total


@compiled()
def dense_pass(X, u, bias, linear, l1, ridge, lower, upper, f, beta, D, v):
    """Fill f = Xu, call `differentiate`, and add X'beta to v in one pass over X. Returns the sum of the losses."""
    n, stored = X.shape
    size = max(8, BLOCK // max(1, stored) // 8 * 8)
    total = 0.0
    for start in range(0, n, size):
        part = slice(start, min(start + size, n))
        dense_dot(X[part], u, f[part])
        if bias != 0.0:
            _add_to_all(bias * u[stored], f[part])
        total += differentiate(
            f[part], linear[part], l1[part], ridge[part], lower[part], upper[part], beta[part], D[part]
        )
        dense_tdot(X[part], beta[part], v)
        if bias != 0.0:
            v[stored] += bias * _total(beta[part])
    return total


@compiled()
def sparse_pass(indptr, indices, data, u, bias, linear, l1, ridge, lower, upper, f, beta, D, v):
    """`dense_pass` for CSR; indices are unsigned, and there are len(indptr) - 1 rows."""
    n, last = indptr.shape[0] - 1, v.shape[0] - 1
    size = max(8, BLOCK * n // max(1, indptr[n] - indptr[0]))
    total = 0.0
    for start in range(0, n, size):
        stop = min(start + size, n)
        part, ends = slice(start, stop), indptr[start : stop + 1]
        sparse_dot(ends, indices, data, u, f[part])
        if bias != 0.0:
            _add_to_all(bias * u[last], f[part])
        total += differentiate(
            f[part], linear[part], l1[part], ridge[part], lower[part], upper[part], beta[part], D[part]
        )
        sparse_tdot(ends, indices, data, beta[part], v)
        if bias != 0.0:
            v[last] += bias * _total(beta[part])
    return total


@compiled(fast=True)
def line_derivatives(f, q, s, linear, l1, ridge, lower, upper):
    """First and second derivative of the sum of losses at f + s q with respect to s."""
    first, second = 0.0, 0.0
    for i in range(f.shape[0]):
        c, slope = _maximise(linear[i] - f[i] - s * q[i], l1[i], ridge[i], lower[i], upper[i])
        first -= c * q[i]
        second += slope * q[i] * q[i]
    return first, second


@compiled()
def column_squares(indptr, indices, data, D, out):
    """Add the diagonal of X'DX to out, for CSR."""
    for i in range(indptr.shape[0] - 1):
        for t in range(indptr[i], indptr[i + 1]):
            out[indices[t]] += D[i] * np.float64(data[t]) * np.float64(data[t])


# ---- few samples and features: the method of multipliers in one run (see `mercer.linear.small`) ----------------------


@compiled()
def _solve(H, r, x):
    """x = H^-1 r by a Cholesky factor of H, scaled to a unit diagonal. Overwrites H; False if it has no factor."""
    d = r.shape[0]
    scale = np.empty(d)
    for j in range(d):
        scale[j] = 1.0 / np.sqrt(H[j, j]) if H[j, j] > 0.0 else 1.0
    for j in range(d):
        for k in range(j):
            H[j, k] = (H[j, k] * scale[j] * scale[k] - dot(H[j, :k], H[k, :k])) / H[k, k]
        left = 1.0 + REGULARISATION - dot(H[j, :j], H[j, :j])
        if not left > 0.0:
            return False
        H[j, j] = np.sqrt(left)
        x[j] = (r[j] * scale[j] - dot(H[j, :j], x[:j])) / H[j, j]
    for j in range(d - 1, -1, -1):
        x[j] /= H[j, j]
        for k in range(j):
            x[k] -= H[j, k] * x[j]
    for j in range(d):
        x[j] *= scale[j]
    return True


@compiled()
def _lowest(u, step, penalty, slope, f, q, linear, l1, ridge, lower, upper):
    """The length that minimises the objective along the step; f changes by q, and slope < 0 is that at the start."""
    pull, bend = 0.0, 0.0
    for j in range(u.shape[0]):
        pull += penalty[j] * u[j] * step[j]
        bend += penalty[j] * step[j] * step[j]
    low, high, s = 0.0, np.inf, 1.0
    for _ in range(LINE_STEPS):
        first, second = line_derivatives(f, q, s, linear, l1, ridge, lower, upper)
        first, second = first + pull + s * bend, second + bend
        if abs(first) <= -LINE_ACCURACY * slope:
            break
        if first < 0.0:
            low = s
        else:
            high = s
        s = s - first / second if second > 0.0 else high
        if not (low < s and s < high):
            s = 0.5 * (low + high) if high < np.inf else 2.0 * low + 1.0
    return s


@compiled()
def solve_few(X, penalty, linear, l1, ridge, lower, upper, delta, less, tol, rounds, limit, u, beta, out):
    """Minimise from u and beta, which are edited. Samples without a ridge get delta / (upper - lower).

    delta, at first the size of the targets, is multiplied by ``less`` after each round. Fills out with (Newton steps,
    relative gap of u and beta).
    """
    n, d = X.shape
    f, q, D, v = np.empty(n), np.empty(n), np.empty(n), np.empty(d)
    g, step, H = np.empty(d), np.empty(d), np.empty((d, d))
    centred, wider, t = np.empty(n), np.empty(n), np.empty(n)
    unit = delta
    dense_dot(X, u, f)
    done, gap = 0, 1.0
    for _ in range(rounds):
        straight = False
        for i in range(n):
            added = 0.0
            if ridge[i] <= 0.0 and lower[i] < upper[i]:
                added = delta / (upper[i] - lower[i])
                straight = True
            centred[i], wider[i] = linear[i] + added * beta[i], ridge[i] + added
        previous = np.inf
        while True:
            value = differentiate(f, centred, l1, wider, lower, upper, beta, D)
            v[:] = 0.0
            dense_tdot(X, beta, v)
            excess = 0.0
            for j in range(d):
                value += 0.5 * penalty[j] * u[j] * u[j]
                g[j] = penalty[j] * u[j] - v[j]
                # for an unpenalised weight: the change of the value if the weight moves by a unit
                excess += 0.5 * g[j] * g[j] / penalty[j] if penalty[j] > 0.0 else unit * abs(g[j])
            for i in range(n):
                t[i] = linear[i] - f[i]
            primal, left = loss_and_gap(t, l1, ridge, lower, upper, beta)
            for j in range(d):
                primal += 0.5 * penalty[j] * u[j] * u[j]
            gap = (left + excess) / max(primal, 1e-300)
            if gap <= tol or done >= limit or (straight and excess <= 0.1 * left) or not value < previous:
                break
            previous = value
            dense_gram(X, D, 0.0, H)
            for j in range(d):
                H[j, j] += penalty[j]
                if not H[j, j] > 0.0:
                    # no sample has D > 0: make the step a unit
                    H[j, j] = abs(g[j]) / unit
                g[j] = -g[j]
            if not _solve(H, g, step):
                break
            dense_dot(X, step, q)
            s = _lowest(u, step, penalty, -dot(g, step), f, q, centred, l1, wider, lower, upper)
            for j in range(d):
                u[j] += s * step[j]
            for i in range(n):
                f[i] += s * q[i]
            done += 1
        if gap <= tol or done >= limit or not straight:
            break
        delta *= less
    out[0], out[1] = done, gap
