"""Newton's step on the free members F of a block, projected on their bounds.

Pair steps converge slowly if the matrix of the free members is ill-conditioned. The equations of the face,

    K_FF d + threshold of the group = score_F,     sum of d over each group = 0,

take one Cholesky factorisation of A = K_FF + ridge. Where the way along d meets a bound of member e, this member is
fixed there and the rest of d is projected, which takes one more solution with the same factor:

    v = A^-1 e - sum_c v_c (v_c)_e,    d <- d - v d_e / v_e

Here v_c are the directions of the sums and members that were fixed before, each divided by the root of its v_e.
"""

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from mercer._compiled.cholesky import factorise, room_for, solve
from mercer._compiled.compile import compiled
from mercer._compiled.pointers import address_of, emit_call, vectors

# most bounds that one step may meet
MOST_BOUNDS = 48
# relative to the largest diagonal entry: the shift of the diagonal, and the smallest pivot of a member that moves
SHIFT, SMALLEST_PIVOT = 1e-8, 4e-8
# a member whose distance from its bound is below this, relative to its terms, is at the bound
AT_BOUND = 1e-14


@compiled(fast=True)
def _add(factor, x, y):
    """y += factor x."""
    for j in range(y.shape[0]):
        y[j] += factor * x[j]


@compiled()
def _fix_sum(U, inverse, V, fixed, start, stop, d):
    """Project d so that the sum of the members from start to stop stays fixed; False if this is impossible.

    The first ``fixed`` rows of V are the directions of sums fixed before; the next row is filled. Edits V and d.
    """
    v = V[fixed]
    for i in range(v.shape[0]):
        v[i] = 1.0 if start <= i < stop else 0.0
    if start == stop:
        return True
    solve(U, inverse, v, start)
    for c in range(fixed):
        total = 0.0
        for i in range(start, stop):
            total += V[c, i]
        _add(-total, V[c], v)
    total, moved = 0.0, 0.0
    for i in range(start, stop):
        total += v[i]
        moved += d[i]
    if not total > 0.0:
        return False
    _add(-moved / total, v, d)
    _add(1.0 / np.sqrt(total) - 1.0, v, v)
    return True


@compiled()
def newton_step(K, beta, score, lower, upper, l1, ridge, ends):
    """Move the free members towards the optimum of their face. Returns the gain of the objective, 0 if none moved.

    Edits beta and score in place. Group h has the members from ends[h] to ends[h + 1]. The null sample, an unbounded
    member with a zero row, takes up any sum.
    """
    n = beta.shape[0]
    free = np.empty(n, np.int64)
    m, null, largest = np.int64(0), -1, 0.0  # literals would compile the callees twice
    for k in range(n):
        b = beta[k]
        if lower[k] < b < upper[k] and (b != 0.0 or l1[k] == 0.0):
            diagonal = K[k, k] + ridge[k]
            if diagonal <= 0.0 and upper[k] - lower[k] == np.inf:
                null = k
                continue
            free[m] = k
            m += 1
            largest = max(largest, diagonal)
    if m < 2:
        return 0.0
    # the matrix, five vectors, and the directions of the sums and of the bounds
    n_groups = ends.shape[0] - 1
    n_rows, n_columns = room_for(m)
    U, inverse, vectors = np.empty((n_rows, n_columns)), np.empty(n_rows), np.empty((5 + n_groups + MOST_BOUNDS, m))
    d, slope, low, high, change, V = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4], vectors[5:]
    level = float(score[null]) if null >= 0 else 0.0
    firsts = np.empty(n_groups + 1, np.int64)  # the first free member of each group
    for h in range(n_groups + 1):
        firsts[h] = 0
    for i in range(m):
        k = free[i]
        line, row = U[i], K[k]
        for j in range(i, m):
            line[j] = row[np.uint64(free[j])]  # unsigned: no test for a negative index
        line[i] += ridge[k] + SHIFT * largest
        for h in range(1, n_groups + 1):
            firsts[h] += k < ends[h]
        low[i], high[i] = lower[k], upper[k]
        slope[i] = score[k] - level
        # a kink at zero is a bound of the piece on which the objective is quadratic
        if l1[k] > 0.0 and beta[k] > 0.0:
            slope[i] -= l1[k]
            low[i] = max(low[i], 0.0)
        elif l1[k] > 0.0:
            slope[i] += l1[k]
            high[i] = min(high[i], 0.0)
        d[i], change[i] = slope[i], 0.0
    fixed = zero = np.int64(0)
    factorise(U, m, inverse, SMALLEST_PIVOT * largest)
    solve(U, inverse, d, zero)
    for g in range(n_groups if null < 0 else 0):
        start, stop = firsts[g], firsts[g + 1]
        if not _fix_sum(U, inverse, V, fixed, start, stop, d):
            return 0.0
        fixed += 1
    while True:
        length, first = 1.0, np.int64(-1)
        for i in range(m):
            b = beta[free[i]] + change[i]
            if low[i] == high[i]:  # fixed at a bound
                continue
            if d[i] > 0.0 and b + d[i] > high[i]:
                room = (high[i] - b) / d[i]
            elif d[i] < 0.0 and b + d[i] < low[i]:
                room = (low[i] - b) / d[i]
            else:
                continue
            if room < length:
                length, first = max(room, 0.0), i
        _add(length, d, change)
        if first < 0:
            break
        if d[first] > 0.0:
            low[first] = high[first]
        else:
            high[first] = low[first]
        if fixed == V.shape[0]:
            break
        for i in range(m):
            d[i] *= 1.0 - length
        if not _fix_sum(U, inverse, V, fixed, first, first + 1, d):
            break
        fixed += 1
    # fixed members are exactly at their bounds; the member with the most room takes up the rounding of the sums
    for i in range(m):
        if low[i] == high[i]:
            change[i] = low[i] - beta[free[i]]
    for g in range(n_groups if null < 0 else 0):
        start, stop = firsts[g], firsts[g + 1]
        moved, room, widest = 0.0, 0.0, -1
        for i in range(start, stop):
            moved += change[i]
            b = beta[free[i]] + change[i]
            if min(high[i] - b, b - low[i]) > room:
                room, widest = min(high[i] - b, b - low[i]), i
        if widest >= 0 and abs(moved) > room:
            return 0.0  # the error of the sum is more than rounding
        if widest >= 0:
            change[widest] -= moved
    K_change = np.empty(n)
    for k in range(n):
        K_change[k] = 0.0
    for i in range(m):
        _add(change[i], K[free[i]], K_change)
    gained, total = 0.0, 0.0
    for i in range(m):
        k = free[i]
        K_change[k] += ridge[k] * change[i]
        gained += change[i] * (slope[i] - 0.5 * K_change[k])
        total += change[i]
    if not gained > 0.0:
        return 0.0
    for i in range(m):
        k = free[i]
        b = beta[k] + change[i]
        # another member may have met its bound in the same step: set it there if only rounding keeps it off
        near = AT_BOUND * (abs(beta[k]) + abs(change[i]))
        if b >= high[i] - near:
            b = high[i]
        elif b <= low[i] + near:
            b = low[i]
        beta[k] = b
    if null >= 0:
        beta[null] -= total
    for k in range(n):
        score[k] -= K_change[k]
    return gained


# ---- calls by address ------------------------------------------------------------------------------------------------


@intrinsic
def call_newton(typingctx, address, K, beta, score, lower, upper, l1, ridge, ends):
    """Call `newton_step` by its address. `solve_block` does, so that it is compiled without Newton's step."""
    signature = types.float64(types.int64, K, beta, score, lower, upper, l1, ridge, ends)
    return signature, emit_call


# steps of a run that needs Newton's step and was given no address of it
NEEDS_NEWTON = -2
# the addresses of Newton's step for the dtypes of a block and of its scores, as far as it was needed
newton_addresses: dict[tuple[np.dtype[Any], np.dtype[Any]], int] = {}


def newton_address(dtype: Any, score_dtype: Any) -> int:
    """The address of the machine code of Newton's step for a block and scores of these dtypes."""
    key = np.dtype(dtype), np.dtype(score_dtype)
    if key not in newton_addresses:
        numbers = vectors(np.float64)
        given = vectors(dtype, 2), numbers, vectors(score_dtype), numbers, numbers, numbers, numbers, vectors(np.int64)
        newton_addresses[key] = address_of(newton_step, *given)
    return newton_addresses[key]
