"""Newton's method within the method of multipliers, on few samples and features (see `mercer.linear.small`)."""

import numpy as np

from mercer._numerics.compile import compiled
from mercer.linear._interior_loops import dense_gram, paid
from mercer.linear._newton_loops import along, respond
from mercer.linear._row_loops import dense_dot, dense_tdot, dot

LINE_STEPS = 30
# of the derivative along a step, what may be left where it ends
LINE_ACCURACY = 0.05
# added to the unit diagonal of the scaled matrix
REGULARISATION = 1e-13


@compiled()
def _solve(H, r, x):
    """x = H^-1 r by Cholesky's factors of H with a unit diagonal. Overwrites H; False if it cannot be factored."""
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
    """How far to go along the step, by which f changes by q, to the lowest point; slope < 0 is that where it begins."""
    pull, bend = 0.0, 0.0
    for j in range(u.shape[0]):
        pull += penalty[j] * u[j] * step[j]
        bend += penalty[j] * step[j] * step[j]
    low, high, s = 0.0, np.inf, 1.0
    for _ in range(LINE_STEPS):
        first, second = along(f, q, s, linear, l1, ridge, lower, upper)
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
    """Edits u and beta, where it starts. To ridges of 0 is added delta, the size of the targets, over the box.

    delta becomes ``less`` of itself from round to round. out becomes (Newton steps, relative gap as far as it is known
    here).
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
            value = respond(f, centred, l1, wider, lower, upper, beta, D)
            v[:] = 0.0
            dense_tdot(X, beta, v)
            excess = 0.0
            for j in range(d):
                value += 0.5 * penalty[j] * u[j] * u[j]
                g[j] = penalty[j] * u[j] - v[j]
                # without a penalty it is what a sum of beta that is not 0 costs if the weight moves by a unit
                excess += 0.5 * g[j] * g[j] / penalty[j] if penalty[j] > 0.0 else unit * abs(g[j])
            for i in range(n):
                t[i] = linear[i] - f[i]
            primal, left = paid(t, l1, ridge, lower, upper, beta)
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
                    # no sample is on a curved piece: go by a unit
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
