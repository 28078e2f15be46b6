"""Coordinate descent on the dual of a linear machine, and conjugate gradients on its free variables.

    min  1/2 |w|^2 - linear'b + sum l1|b| + 1/2 sum ridge b^2     s.t.  lower <= b <= upper,     w = X'b

The state is (b, w). With g = x_i.w - linear_i + ridge_i b_i the exact step of variable i is a soft threshold clipped to
its box: algorithm 1 of Hsieh, Chang, Lin, Keerthi & Sundararajan, ICML 25 (2008), whose rule of shrinking is used too;
[M5] "coordinate ascent".

A row of X is values[indptr[i] : indptr[i + 1]] in the columns indices[...], or in all columns in turn if indices is
empty: dense data take the same way. Each row has one more entry, ``bias``, that is multiplied by the last of w.

What is known of a variable is one line of the matrix ``table``, as wide as a cache line, since variables are visited
in random order: b, linear, l1, ridge, lower, upper, |x|^2 + bias^2 + ridge.
"""

import numpy as np

from mercer._numerics.compile import compiled
from mercer._numerics.prefetch import prefetch

# columns of the table
BETA, LINEAR, L1, RIDGE, LOWER, UPPER, DIAGONAL = range(7)
WIDTH = 8
# rows ahead for which memory is asked
AHEAD = 2


@compiled(fast=True, inline=True)
def row_dot(indices, values, start, stop, w):
    """Row times w, without the bias."""
    part = values[start:stop]
    total = 0.0
    if indices.shape[0] == 0:
        for t in range(part.shape[0]):
            total += part[t] * w[t]
    else:
        columns = indices[start:stop]
        even, odd = 0.0, 0.0
        half = part.shape[0] // 2
        # two sums: a single one would wait for itself at each term
        for t in range(half):
            even += part[2 * t] * w[columns[2 * t]]
            odd += part[2 * t + 1] * w[columns[2 * t + 1]]
        if 2 * half < part.shape[0]:
            even += part[2 * half] * w[columns[2 * half]]
        total = even + odd
    return total


@compiled(fast=True, inline=True)
def add_row(indices, values, start, stop, step, w):
    """Add step times row to w, without the bias."""
    part = values[start:stop]
    if indices.shape[0] == 0:
        for t in range(part.shape[0]):
            w[t] += step * part[t]
    else:
        columns = indices[start:stop]
        for t in range(part.shape[0]):
            w[columns[t]] += step * part[t]


@compiled(fast=True)
def row_norms(indptr, values, norms):
    """Squared norm of each row, in float64."""
    for i in range(norms.shape[0]):
        part = values[indptr[i] : indptr[i + 1]]
        total = 0.0
        for t in range(part.shape[0]):
            total += float(part[t]) * float(part[t])
        norms[i] = total


@compiled(inline=True)
def best_response(t, l1, ridge, lower, upper):
    """The c in the box that maximises  t c - l1|c| - 1/2 ridge c^2."""
    if t > l1:
        c = (t - l1) / ridge if ridge > 0.0 else np.inf
    elif t < -l1:
        c = (t + l1) / ridge if ridge > 0.0 else -np.inf
    else:
        c = 0.0
    return min(max(c, lower), upper)


@compiled(inline=True)
def excess_slope(b, g, l1, lower, upper):
    """The rate of descent of the better direction: > 0 violates optimality, < 0 says how safely b rests where it is."""
    rate = -np.inf
    if b < upper:
        rate = -(g + (l1 if b >= 0.0 else -l1))
    if b > lower:
        rate = max(rate, g + (l1 if b > 0.0 else -l1))
    return rate


@compiled()
def shuffle(order, seed):
    """Put the entries in random order, in place; seed > 0."""
    state = np.uint64(seed)
    for k in range(order.shape[0] - 1, 0, -1):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        j = np.intp(((state >> np.uint64(32)) * np.uint64(k + 1)) >> np.uint64(32))
        order[k], order[j] = order[j], order[k]


@compiled()
def descend(indptr, indices, values, bias, w, table, order, level, out):
    """One pass over the variables in this order. Edits w, table and order; returns how many remain active.

    Variables that rest at a bound or kink more safely than ``level`` are left out of order, whose first entries are
    those that remain. out becomes (largest violation, gap, decrease of the objective, variables that met or left a
    bound, entries of X read): the gap is that of these variables, each at the moment of its visit.
    """
    last = w.shape[0] - 1
    flat = table.ravel()
    largest, gap, decrease, crossed, work = 0.0, 0.0, 0.0, 0, 0
    kept, n = 0, order.shape[0]
    for k in range(n):
        if k + 4 * AHEAD < n:
            prefetch(indptr, order[k + 4 * AHEAD])
        if k + AHEAD < n:
            i = order[k + AHEAD]
            prefetch(flat, WIDTH * np.intp(i))
            for t in range(indptr[i], indptr[i + 1], 8):
                prefetch(values, t)
            if indices.shape[0] > 0:
                for t in range(indptr[i], indptr[i + 1], 16):
                    prefetch(indices, t)
        i = order[k]
        start, stop = indptr[i], indptr[i + 1]
        b, l1, ridge = table[i, BETA], table[i, L1], table[i, RIDGE]
        lower, upper, diagonal = table[i, LOWER], table[i, UPPER], table[i, DIAGONAL]
        t = table[i, LINEAR] - row_dot(indices, values, start, stop, w) - bias * w[last]
        work += stop - start
        g = ridge * b - t
        rate = excess_slope(b, g, l1, lower, upper)
        if rate < -level:
            continue
        order[kept] = i
        kept += 1
        if rate <= 0.0:
            continue
        largest = max(largest, rate)
        c = best_response(t, l1, ridge, lower, upper)
        gap += (c - b) * t - l1 * (abs(c) - abs(b)) - 0.5 * ridge * (c - b) * (c + b)
        if diagonal > 0.0:
            c = best_response(diagonal * b - g, l1, diagonal, lower, upper)
        step = c - b
        if step != 0.0:
            table[i, BETA] = c
            add_row(indices, values, start, stop, step, w)
            w[last] += step * bias
            work += stop - start
            decrease -= step * (g + 0.5 * diagonal * step) + l1 * (abs(c) - abs(b))
            crossed += (b > lower and b < upper) != (c > lower and c < upper)
    out[0], out[1], out[2], out[3], out[4] = largest, gap, decrease, crossed, work
    return kept


@compiled()
def judge(F, table, level, order, out):
    """Which variables are to be visited next, given F = Xw. Edits order; returns how many it then has.

    Left out are those that rest more safely than ``level``. out becomes (largest violation, gap, dual value but for
    1/2|w|^2).
    """
    kept = 0
    largest, gap, value = 0.0, 0.0, 0.0
    for i in range(F.shape[0]):
        b, l1, ridge = table[i, BETA], table[i, L1], table[i, RIDGE]
        lower, upper = table[i, LOWER], table[i, UPPER]
        t = table[i, LINEAR] - F[i]
        rate = excess_slope(b, ridge * b - t, l1, lower, upper)
        value += (table[i, LINEAR] - 0.5 * ridge * b) * b - l1 * abs(b)
        if rate > 0.0:
            largest = max(largest, rate)
            c = best_response(t, l1, ridge, lower, upper)
            gap += (c - b) * t - l1 * (abs(c) - abs(b)) - 0.5 * ridge * (c - b) * (c + b)
        if rate >= -level:
            order[kept] = i
            kept += 1
    out[0], out[1], out[2] = largest, gap, value
    return kept


@compiled()
def gains(F, table, gain):
    """gain[i] = decrease of the objective by the exact step of variable i, given F = Xw."""
    for i in range(F.shape[0]):
        b, l1, diagonal = table[i, BETA], table[i, L1], table[i, DIAGONAL]
        g = F[i] - table[i, LINEAR] + table[i, RIDGE] * b
        t = diagonal * b - g
        c = best_response(t, l1, diagonal, table[i, LOWER], table[i, UPPER])
        gain[i] = -((c - b) * (g + 0.5 * diagonal * (c - b)) + l1 * (abs(c) - abs(b)))


@compiled(fast=True)
def face_step(indptr, indices, values, bias, w, table, reduction, max_steps, out):
    """Newton's step on these free variables by conjugate gradients, clipped to the box. Edits w and table.

    Solves (XX' + ridge) p = -grad until the residual has fallen by ``reduction``, with the diagonal as preconditioner.
    The clipped step is halved until the objective falls. out becomes (steps of the conjugate gradients, share of the
    step taken, number of variables clipped, decrease of the objective, entries of X read).
    """
    m, d = table.shape[0], w.shape[0]
    last = d - 1
    r, z, p, Kp, step = np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.zeros(m)
    u = np.empty(d)
    rz, work = 0.0, indptr[m] - indptr[0]
    for k in range(m):
        b = table[k, BETA]
        g = row_dot(indices, values, indptr[k], indptr[k + 1], w) + bias * w[last] - table[k, LINEAR]
        g += table[k, RIDGE] * b + (table[k, L1] if b > 0.0 else -table[k, L1])
        r[k] = -g
        z[k] = -g / table[k, DIAGONAL]
        p[k] = z[k]
        rz += r[k] * z[k]
    target = reduction * reduction * rz
    done = 0
    while done < max_steps and rz > target:
        u[:] = 0.0
        for k in range(m):
            add_row(indices, values, indptr[k], indptr[k + 1], p[k], u)
            u[last] += bias * p[k]
        curvature = 0.0
        for k in range(m):
            Kp[k] = row_dot(indices, values, indptr[k], indptr[k + 1], u) + bias * u[last] + table[k, RIDGE] * p[k]
            curvature += p[k] * Kp[k]
        work += 2 * (indptr[m] - indptr[0])
        if not curvature > 0.0:
            break
        a = rz / curvature
        new = 0.0
        for k in range(m):
            step[k] += a * p[k]
            r[k] -= a * Kp[k]
            z[k] = r[k] / table[k, DIAGONAL]
            new += r[k] * z[k]
        for k in range(m):
            p[k] = z[k] + new / rz * p[k]
        rz = new
        done += 1
    share, decrease, clipped = 1.0, 0.0, 0
    for _ in range(12):
        u[:] = 0.0
        change, clipped = 0.0, 0
        work += indptr[m] - indptr[0]
        for k in range(m):
            b, l1 = table[k, BETA], table[k, L1]
            low, high = table[k, LOWER], table[k, UPPER]
            # not across the kink
            if l1 > 0.0 and b > 0.0:
                low = max(low, 0.0)
            elif l1 > 0.0:
                high = min(high, 0.0)
            c = b + share * step[k]
            if c <= low or c >= high:
                c = min(max(c, low), high)
                clipped += 1
            z[k] = c
            add_row(indices, values, indptr[k], indptr[k + 1], c - b, u)
            u[last] += bias * (c - b)
            change += (abs(c) - abs(b)) * l1 + (0.5 * table[k, RIDGE] * (c + b) - table[k, LINEAR]) * (c - b)
        for t in range(d):
            change += u[t] * (w[t] + 0.5 * u[t])
        if change < 0.0:
            decrease = -change
            for k in range(m):
                table[k, BETA] = z[k]
            for t in range(d):
                w[t] += u[t]
            break
        share *= 0.5
    out[0], out[1], out[2], out[3], out[4] = done, share, clipped, decrease, work
