"""Descent of the free variables of a block together, where pair steps crawl.

On the face of the box where a block stands its objective is quadratic. Conjugate gradients, projected so that the sum
does not change, find a direction; the step along it is projected back into the box. Moré & Toraldo, SIAM J. Optim. 1
(1991): gradient projection (here, pair steps) finds the face, conjugate gradients its minimum.
"""

import numpy as np

from mercer._numerics.compile import compiled
from mercer._numerics.smo import solve_block
from mercer._numerics.tiles import add_block_product, add_rows_product

# products with the matrix of the free variables in one descent, and the share of the residual that is enough
MOST_PRODUCTS, ENOUGH = 25, 0.1
# pair steps before the first descent and between two, for each member; free variables for which it is worth while
FIRST_STEPS, STEPS, FEWEST_FREE = 4.0, 1.0, 16
SHORTENINGS = 5


@compiled()
def _clipped_sum(z, shift, low, high):
    total = 0.0
    for k in range(z.shape[0]):
        total += min(max(z[k] - shift, low[k]), high[k])
    return total


@compiled()
def project(z, low, high, total):
    """Move z to a near point of its box whose sum is total: clip(z - shift). Edits z; whether there is one."""
    missing = total - _clipped_sum(z, 0.0, low, high)
    if missing == 0.0:
        width = 0.0
    else:
        width = abs(missing) / z.shape[0] + 1e-300
    a, b = 0.0, 0.0
    for _ in range(100):
        if missing == 0.0:
            break
        if missing > 0.0:  # the shift is negative
            a = -width
            if _clipped_sum(z, a, low, high) >= total:
                break
            b = a
        else:
            b = width
            if _clipped_sum(z, b, low, high) <= total:
                break
            a = b
        width *= 4.0
    for _ in range(100):
        middle = 0.5 * (a + b)
        if middle <= a or middle >= b:
            break
        if _clipped_sum(z, middle, low, high) > total:
            a = middle
        else:
            b = middle
    shift = 0.5 * (a + b)
    size, rest = 0.0, total
    for k in range(z.shape[0]):
        z[k] = min(max(z[k] - shift, low[k]), high[k])
        rest -= z[k]
        size += abs(z[k])
    for k in range(z.shape[0]):  # what rounding has left
        moved = min(max(z[k] + rest, low[k]), high[k])
        rest -= moved - z[k]
        z[k] = moved
        if rest == 0.0:
            break
    return abs(rest) <= 1e-9 * size


@compiled()
def _direction(A, r, ridge, tol, d):
    """d = nearly the minimum of d'(A + ridge)d/2 - r'd among d that sum to zero; the products used. Edits r."""
    m = r.shape[0]
    p, q, narrow = np.empty(m), np.empty(m), np.empty(m, A.dtype)
    mean = r.sum() / m
    square = 0.0
    for a in range(m):
        r[a] -= mean
        p[a] = r[a]
        d[a] = 0.0
        square += r[a] * r[a]
    target = max(m * (0.2 * tol) ** 2, ENOUGH**2 * square)
    count = 0
    while square > target and count < MOST_PRODUCTS:
        for a in range(m):
            narrow[a] = p[a]
            q[a] = ridge[a] * p[a]
        add_block_product(A, narrow, q)
        mean = q.sum() / m
        curvature = 0.0
        for a in range(m):
            q[a] -= mean
            curvature += p[a] * q[a]
        if not curvature > 0.0:
            break
        length = square / curvature
        before, square = square, 0.0
        for a in range(m):
            d[a] += length * p[a]
            r[a] -= length * q[a]
            square += r[a] * r[a]
        for a in range(m):
            p[a] = r[a] + square / before * p[a]
        count += 1
    return count


@compiled()
def descend_face(K, beta, score, lower, upper, l1, ridge, tol):
    """Move the free variables of a block, whose sum stays; whether they moved. Edits beta, not score."""
    n = beta.shape[0]
    free = np.empty(n, np.int64)
    m = 0
    for k in range(n):
        if lower[k] < beta[k] < upper[k] and (beta[k] != 0.0 or l1[k] == 0.0):
            free[m] = k
            m += 1
    if m < FEWEST_FREE:
        return False
    free = free[:m]
    column = free.astype(np.uint64)
    A = np.empty((m, m), K.dtype)
    start, slope, weight = np.empty(m), np.empty(m), np.empty(m)
    low, high = np.empty(m), np.empty(m)
    for a in range(m):
        k = free[a]
        row, line = K[k], A[a]
        for b in range(m):
            line[b] = row[column[b]]
        start[a], weight[a] = beta[k], ridge[k]
        slope[a] = score[k] - l1[k] * np.sign(beta[k])
        # a kink at zero is a bound of the piece on which the objective is quadratic
        low[a] = 0.0 if l1[k] > 0.0 and beta[k] > 0.0 else lower[k]
        high[a] = 0.0 if l1[k] > 0.0 and beta[k] < 0.0 else upper[k]
    d = np.empty(m)
    if _direction(A, slope.copy(), weight, tol, d) == 0:
        return False
    z, bent, narrow = np.empty(m), np.empty(m), np.empty(m, K.dtype)
    total, length = start.sum(), 1.0
    for _ in range(SHORTENINGS):
        outside = 0
        for a in range(m):
            z[a] = start[a] + length * d[a]
            outside += z[a] < low[a] or z[a] > high[a]
        if outside == 0 or project(z, low, high, total):
            gain = 0.0
            for a in range(m):
                d_a = z[a] - start[a]
                narrow[a] = d_a
                bent[a] = weight[a] * d_a
                gain += slope[a] * d_a
            add_block_product(A, narrow, bent)
            for a in range(m):
                gain -= 0.5 * bent[a] * (z[a] - start[a])
            if gain > 0.0:
                for a in range(m):
                    beta[free[a]] = z[a]
                return True
        length *= 0.3
    return False


@compiled()
def solve_faces(K, beta, score, lower, upper, l1, ridge, first_group, faces, tol, max_steps):
    """`solve_block`, with descents of all free variables in between where ``faces`` allows them.

    They need one group and no null sample. Edits beta and score; (steps, violation, unbounded).
    """
    n = beta.shape[0]
    begin, first = beta.copy(), score.copy()
    taken, violation, unbounded = 0, np.inf, False
    burst = max(64, int(FIRST_STEPS * n)) if faces else max_steps
    while taken < max_steps:
        steps, violation, unbounded = solve_block(
            K, beta, score, lower, upper, l1, ridge, first_group, tol, min(burst, max_steps - taken)
        )
        taken += steps
        if unbounded or not violation > tol or steps < burst:
            break
        if descend_face(K, beta, score, lower, upper, l1, ridge, tol):
            # from the start, in float64: a large step would leave the rounding of float32 behind
            change = beta - begin
            moved = np.nonzero(change)[0]
            f = np.zeros(n)
            add_rows_product(K, moved, change[moved], 0, n, f)
            for k in range(n):
                score[k] = first[k] - f[k] - ridge[k] * change[k]
            burst = max(64, int(STEPS * n))
        else:
            burst = 4 * n
    return taken, violation, unbounded
