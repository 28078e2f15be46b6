"""Coordinate descent on the dual of a linear machine, and conjugate gradients on its free variables.

    min  1/2 |w|^2 - linear'b + sum l1|b| + 1/2 sum ridge b^2     s.t.  lower <= b <= upper,     w = X'b

The state is (b, w). With g = x_i.w - linear_i + ridge_i b_i the exact step of variable i is a soft threshold clipped to
its box: algorithm 1 of Hsieh, Chang, Lin, Keerthi & Sundararajan, ICML 25 (2008), with their shrinking rule; [M5]
"coordinate ascent".

Row i of X is values[indptr[i] : indptr[i + 1]] in the columns indices[...]. For dense data indices is empty and the
columns are 0, 1, .... Each row has one more entry, ``bias``, which is multiplied by the last entry of w.

The data of a variable are one row of ``table``, as wide as a cache line because variables are visited in random order:
b, linear, l1, ridge, lower, upper, the curvature |x|^2 + bias^2 + ridge, and its inverse (0 for 0).
"""

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.intrinsics import prefetch
from mercer._compiled.pointers import borrow
from mercer.linear._row_loops import dot, sparse_row_add, sparse_row_dot

# columns of the table
BETA, LINEAR, L1, RIDGE, LOWER, UPPER, DIAGONAL, INVERSE = range(8)
WIDTH = 8
# positions are unsigned: numba tests signed ones for negative values at each access
ONE = np.uint64(1)
# a row is prefetched this many steps ahead
AHEAD = 2
# entries of a row that are prefetched without a loop; a loop handles only rows of more than twice as many, since the
# processor would mispredict its end for short rows
SHORT = 32


@compiled(fast=True, inline=True)
def row_dot(indices, values, start, stop, w):
    """Row times w, without the bias."""
    if indices.shape[0] == 0:
        return dot(values[start:stop], w)
    return sparse_row_dot(indices, values, start, stop, w)


@compiled(inline=True)
def prefetch_row(indices, values, start, stop):
    """Load a row into the cache without waiting for it."""
    for t in range(0, SHORT, 8):
        prefetch(values, start + t)
    if indices.shape[0] > 0:
        for t in range(0, SHORT, 16):
            prefetch(indices, start + t)
    if stop > start + 2 * SHORT:
        for t in range(start + SHORT, stop, 16):
            prefetch(values, t)
            prefetch(values, t + 8)
            if indices.shape[0] > 0:
                prefetch(indices, t)


@compiled(fast=True, inline=True)
def add_row(indices, values, start, stop, step, w):
    """Add step times row to w, without the bias."""
    if indices.shape[0] == 0:
        part = values[start:stop]
        for t in range(part.shape[0]):
            w[t] += step * part[t]
    else:
        sparse_row_add(indices, values, start, stop, step, w)


@compiled(fast=True)
def row_norms(indptr, values, norms):
    """Squared norm of each row, in float64."""
    for i in range(norms.shape[0]):
        total = 0.0
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            total += np.float64(values[t]) * np.float64(values[t])
        norms[i] = total


@compiled()
def fill_table(linear, l1, ridge, lower, upper, norms, bias, table):
    """Fill the table, with b = 0, which every box contains."""
    for i in range(table.shape[0]):
        curvature = norms[i] + bias * bias + ridge[i]
        table[i, BETA] = 0.0
        table[i, LINEAR], table[i, L1], table[i, RIDGE] = linear[i], l1[i], ridge[i]
        table[i, LOWER], table[i, UPPER] = lower[i], upper[i]
        table[i, DIAGONAL], table[i, INVERSE] = curvature, 1.0 / curvature if curvature > 0.0 else 0.0


@compiled(inline=True)
def slopes(b, g, l1, lower, upper):
    """(rate, room): the rate of descent in the better direction, and how far b can move in it.

    A rate > 0 is a violation of optimality; the more negative it is, the more certain is b to stay.
    """
    grow = -(g + (l1 if b >= 0.0 else -l1)) if b < upper else -np.inf
    shrink = g + (l1 if b > 0.0 else -l1) if b > lower else -np.inf
    return (grow, upper - b) if grow > shrink else (shrink, b - lower)


@compiled(inline=True)
def gain(rate, room, ridge):
    """The part of the duality gap of a variable with rate > 0; an upper bound if its move crosses a kink."""
    step = min(rate / ridge, room)
    return step * (rate - 0.5 * ridge * step)


@compiled(inline=True)
def best_value(b, g, l1, lower, upper, inverse):
    """The optimal b while the others are fixed; if its objective is linear (inverse = 0), an end of the box or 0."""
    if inverse == 0.0:
        return upper if g < -l1 else (lower if g > l1 else min(max(0.0, lower), upper))
    z, threshold = b - g * inverse, l1 * inverse
    z = max(z - threshold, 0.0) + min(z + threshold, 0.0)
    return min(max(z, lower), upper)


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

    Variables at a bound or kink with a rate below -``level`` become inactive; the active ones are moved to the front of
    order. Fills out with (largest violation, gap, decrease of the objective, variables that met or left a bound,
    entries of X read, free variables that moved, entries of their rows). The gap sums the parts of the visited
    variables, each at the time of its visit.
    """
    # rows of dense data are views, and counting references to them takes longer than reading a short row
    indices, values, w, table = borrow(indices), borrow(values), borrow(w), borrow(table)
    last = w.shape[0] - 1
    flat = table.ravel()
    largest, gap, decrease, crossed, work = 0.0, 0.0, 0.0, 0, np.uint64(0)
    free, entries = 0, np.uint64(0)
    kept, n = 0, order.shape[0]
    for k in range(n):
        if k + 4 * AHEAD < n:
            prefetch(indptr, order[k + 4 * AHEAD])
        if k + AHEAD < n:
            i = order[k + AHEAD]
            prefetch(flat, WIDTH * np.intp(i))
            prefetch_row(indices, values, np.intp(indptr[i]), np.intp(indptr[i + ONE]))
        i = order[k]
        start, stop = indptr[i], indptr[i + ONE]
        b, l1, ridge = table[i, BETA], table[i, L1], table[i, RIDGE]
        lower, upper = table[i, LOWER], table[i, UPPER]
        g = row_dot(indices, values, start, stop, w) + bias * w[last] - table[i, LINEAR] + ridge * b
        work += stop - start
        rate, room = slopes(b, g, l1, lower, upper)
        if rate < -level:
            continue
        order[kept] = i
        kept += 1
        if rate <= 0.0:
            continue
        largest = max(largest, rate)
        c = best_value(b, g, l1, lower, upper, table[i, INVERSE])
        gap += gain(rate, room, ridge)
        step = c - b
        if step != 0.0:
            table[i, BETA] = c
            add_row(indices, values, start, stop, step, w)
            w[last] += step * bias
            work += stop - start
            decrease -= step * (g + 0.5 * table[i, DIAGONAL] * step) + l1 * (abs(c) - abs(b))
            inside = c > lower and c < upper
            crossed += (b > lower and b < upper) != inside
            if inside:
                free += 1
                entries += stop - start
    out[0], out[1], out[2], out[3], out[4], out[5], out[6] = largest, gap, decrease, crossed, work, free, entries
    return kept


@compiled()
def check_variables(F, table, level, order, out):
    """Find the variables to visit next, given F = Xw: fill order with them and return their number.

    Variables with a rate below -``level`` are left out. Fills out with (largest violation, gap, dual value without
    -1/2|w|^2).
    """
    kept = 0
    largest, gap, value = 0.0, 0.0, 0.0
    for i in range(F.shape[0]):
        b, l1, ridge = table[i, BETA], table[i, L1], table[i, RIDGE]
        rate, room = slopes(b, F[i] - table[i, LINEAR] + ridge * b, l1, table[i, LOWER], table[i, UPPER])
        value += (table[i, LINEAR] - 0.5 * ridge * b) * b - l1 * abs(b)
        if rate > 0.0:
            largest = max(largest, rate)
            gap += gain(rate, room, ridge)
        if rate >= -level:
            order[kept] = i
            kept += 1
    out[0], out[1], out[2] = largest, gap, value
    return kept


@compiled()
def greedy_steps(indptr, indices, values, bias, F, w, table, row, count, gained):
    """Take exact steps, each of the variable that decreases the objective most. Edits F = Xw, w and table.

    Adds the decrease to gained[0]. Returns the number of steps: ``count``, or fewer if no step decreases the objective.
    ``row`` is a work array of zeros, as long as w, and is left as zeros.
    """
    indices, values, w, table = borrow(indices), borrow(values), borrow(w), borrow(table)
    row = borrow(row)
    n, last = F.shape[0], w.shape[0] - 1
    for done in range(count):
        most, at, to = 0.0, -1, 0.0
        for i in range(n):
            b, l1 = table[i, BETA], table[i, L1]
            g = F[i] - table[i, LINEAR] + table[i, RIDGE] * b
            c = best_value(b, g, l1, table[i, LOWER], table[i, UPPER], table[i, INVERSE])
            decrease = -((c - b) * (g + 0.5 * table[i, DIAGONAL] * (c - b)) + l1 * (abs(c) - abs(b)))
            if decrease > most:
                most, at, to = decrease, i, c
        if at < 0:
            return done
        gained[0] += most
        step = to - table[at, BETA]
        table[at, BETA] = to
        add_row(indices, values, indptr[at], indptr[at + 1], step, row)
        row[last] = step * bias
        for t in range(w.shape[0]):
            w[t] += row[t]
        for i in range(n):
            F[i] += row_dot(indices, values, indptr[i], indptr[i + 1], row) + bias * row[last]
        row[:] = 0.0
    return count


@compiled(fast=True)
def face_step(indptr, indices, values, bias, w, table, goal, max_steps, out):
    """A Newton step on these free variables by conjugate gradients, clipped to the box. Edits w and table.

    Solves (XX' + ridge) p = -grad, with the diagonal as preconditioner, until the gap due to the residual is at most
    ``goal``. The clipped step is halved until the objective decreases. Fills out with (iterations of the conjugate
    gradients, share of the step taken, number of clipped variables, decrease of the objective, entries of X read).
    """
    indices, values, w, table = borrow(indices), borrow(values), borrow(w), borrow(table)
    m, d = table.shape[0], w.shape[0]
    last = d - 1
    r, z, p, Kp, step = np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.zeros(m)
    u = np.empty(d)
    rz, entries = 0.0, float(indptr[m] - indptr[0])
    work = entries
    for k in range(m):
        b = table[k, BETA]
        g = row_dot(indices, values, indptr[k], indptr[k + 1], w) + bias * w[last] - table[k, LINEAR]
        g += table[k, RIDGE] * b + (table[k, L1] if b > 0.0 else -table[k, L1])
        r[k] = -g
        z[k] = -g * table[k, INVERSE]
        p[k] = z[k]
        rz += r[k] * z[k]
    done, gap = 0, np.inf
    while done < max_steps and rz > 0.0 and gap > goal:
        u[:] = 0.0
        for k in range(m):
            add_row(indices, values, indptr[k], indptr[k + 1], p[k], u)
            u[last] += bias * p[k]
        curvature = 0.0
        for k in range(m):
            Kp[k] = row_dot(indices, values, indptr[k], indptr[k + 1], u) + bias * u[last] + table[k, RIDGE] * p[k]
            curvature += p[k] * Kp[k]
        work += 2.0 * entries
        if not curvature > 0.0:
            break
        a = rz / curvature
        new, gap = 0.0, 0.0
        for k in range(m):
            step[k] += a * p[k]
            r[k] -= a * Kp[k]
            z[k] = r[k] * table[k, INVERSE]
            new += r[k] * z[k]
            # the gain of variable k while w is fixed
            if r[k] != 0.0:
                b = table[k, BETA] + step[k]
                room = table[k, UPPER] - b if r[k] > 0.0 else b - table[k, LOWER]
                gap += gain(abs(r[k]), max(room, 0.0), table[k, RIDGE])
        for k in range(m):
            p[k] = z[k] + new / rz * p[k]
        rz = new
        done += 1
    share, decrease, clipped = 1.0, 0.0, 0
    for _ in range(12):
        u[:] = 0.0
        change, clipped = 0.0, 0
        work += entries
        for k in range(m):
            b, l1 = table[k, BETA], table[k, L1]
            low, high = table[k, LOWER], table[k, UPPER]
            # do not cross the kink
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


# ---- descent over features -------------------------------------------------------------------------------------------


@compiled()
def descend_features(indptr, indices, values, curvature, q, l1, r, w, u, z, order, goal, max_passes, seed, out):
    """Minimise the quadratic model of `linear.proximal` by passes over features. Edits u, z = M (u - w) and order.

        min over u   -r'(u - w) + 1/2 sum q (u - w)^2 + 1/2 |M (u - w)|^2 + sum l1 |u|

    Column k of M is stored as row k of X above. Passes end when no violation exceeds ``goal``.

    Violations are divided by the root of the curvature, so that half their square is the decrease of the objective.
    Features at 0 whose slack exceeds the largest violation of the last pass are left out until the others are done.
    Fills out with (largest violation of the last pass, passes, changes of sign in the last pass, entries read).
    """
    indices, values, z = borrow(indices), borrow(values), borrow(z)
    m = order.shape[0]
    active, level, work = m, np.inf, 0.0
    largest, changed, done = np.inf, 0, 0
    while done < max_passes:
        whole = active == m
        shuffle(order[:active], seed + 2 * done)
        largest, changed, kept = 0.0, 0, 0
        for at in range(active):
            k = order[at]
            start, stop = indptr[k], indptr[k + ONE]
            old, price = u[k], l1[k]
            if curvature[k] <= 0.0:
                continue
            unit = 1.0 / np.sqrt(curvature[k])
            g = row_dot(indices, values, start, stop, z) + q[k] * (old - w[k]) - r[k]
            work += stop - start
            if old == 0.0:
                violation = (abs(g) - price) * unit
                if violation < -level:
                    continue
            else:
                violation = abs(g + (price if old > 0.0 else -price)) * unit
            order[at], order[kept] = order[kept], k
            kept += 1
            if violation <= 0.0:
                continue
            largest = max(largest, violation)
            x = curvature[k] * old - g
            new = (max(x - price, 0.0) + min(x + price, 0.0)) / curvature[k]
            if new != old:
                u[k] = new
                add_row(indices, values, start, stop, new - old, z)
                work += stop - start
                changed += (new > 0.0) != (old > 0.0) or (new < 0.0) != (old < 0.0)
        done += 1
        if largest <= goal:
            if whole:
                break
            active, level = m, np.inf
        else:
            active, level = kept, largest
    out[0], out[1], out[2], out[3] = largest, done, changed, work
