"""Sequential minimal optimisation on a small dense block.

    min  1/2 b'Kb - linear'b + sum l1|b| + 1/2 sum ridge b^2     s.t.  lower <= b <= upper,  sum over each group fixed

The state is the score s = linear - Kb - ridge b. A member that may grow gains at the rate up = s - l1 (b >= 0) or
s + l1 (b < 0); one that may shrink gains if low = s + l1 (b <= 0) or s - l1 (b > 0) is small. The largest ``up`` and
the smallest ``low`` of a group are equal at the optimum; their difference is the violation.

Second-order working set: WSS 2 of Fan, Chen & Lin, JMLR 6 (2005); [M5] "SMO (I-III)", [CS229] section on SMO.
Membership is an addend: -inf for those that cannot grow, +inf for those that cannot shrink, so that the loops have
no branches and LLVM vectorises them.
"""

import numpy as np

from mercer._numerics.compile import compiled
from mercer._numerics.extrema import larger, smaller


@compiled(fast=True)
def _extremes(score, grow, shrink):
    """(largest up, smallest low) of these members."""
    kind = score.dtype.type
    up, low = kind(-np.inf), kind(np.inf)
    for k in range(score.shape[0]):
        up = larger(up, score[k] + grow[k])
        low = smaller(low, score[k] + shrink[k])
    return up, low


@compiled(fast=True)
def _update(score, column_i, column_j, step, grow, shrink):
    """Move the scores by a pair step; (largest up, smallest low) after it."""
    kind = score.dtype.type
    up, low = kind(-np.inf), kind(np.inf)
    for k in range(score.shape[0]):
        value = score[k] - step * (column_i[k] - column_j[k])
        score[k] = value
        up = larger(up, value + grow[k])
        low = smaller(low, value + shrink[k])
    return up, low


@compiled(fast=True)
def _position(score, addend, target):
    """The first k with score + addend = target."""
    for first in range(0, score.shape[0], 64):
        part, extra = score[first : first + 64], addend[first : first + 64]
        hits = 0
        for k in range(part.shape[0]):
            hits += part[k] + extra[k] == target
        if hits > 0:
            for k in range(part.shape[0]):
                if part[k] + extra[k] == target:
                    return first + k
    return score.shape[0]


@compiled(fast=True)
def _gains(score, shrink, up, diagonal, diagonal_i, column_i, gain):
    """gain[k] = decrease of the objective, twice, by the best pair step of i with k; the largest of them."""
    kind = score.dtype.type
    zero, two, tiny = kind(0.0), kind(2.0), kind(1e-12)
    best = zero
    for k in range(score.shape[0]):
        slope = larger(up - (score[k] + shrink[k]), zero)
        # an indefinite kernel, or equal samples, may give a curvature <= 0
        curvature = larger(diagonal_i + diagonal[k] - two * column_i[k], tiny)
        value = slope * slope / curvature
        gain[k] = value
        best = larger(best, value)
    return best


@compiled()
def _mark(k, beta, lower, upper, l1, grow, shrink):
    """Set the addends of member k."""
    b = beta[k]
    grow[k] = -np.inf if b >= upper[k] else (-l1[k] if b >= 0.0 else l1[k])
    shrink[k] = np.inf if b <= lower[k] else (l1[k] if b <= 0.0 else -l1[k])


@compiled()
def solve_block(K, beta, score, lower, upper, l1, ridge, first_group, tol, max_steps):
    """Descend until the violation is at most tol. Edits beta and score in place; (steps, violation, unbounded).

    The members of the first group come first: first_group of them; the others are the second group.
    """
    n = beta.shape[0]
    kind = score.dtype.type
    grow, shrink, gain = np.empty_like(score), np.empty_like(score), np.zeros_like(score)
    diagonal, no_addend = np.empty_like(score), np.zeros_like(score)
    for k in range(n):
        _mark(k, beta, lower, upper, l1, grow, shrink)
        diagonal[k] = K[k, k] + kind(ridge[k])
    g = first_group
    up_0, low_0 = _extremes(score[:g], grow[:g], shrink[:g])
    up_1, low_1 = _extremes(score[g:], grow[g:], shrink[g:])
    steps, stuck = 0, 0
    violation = max(up_0 - low_0, up_1 - low_1)
    while violation > tol and steps < max_steps:
        if up_0 - low_0 >= up_1 - low_1:
            start, stop, up = 0, g, up_0
        else:
            start, stop, up = g, n, up_1
        part, part_shrink, part_gain = score[start:stop], shrink[start:stop], gain[start:stop]
        i = start + _position(part, grow[start:stop], up)
        if i >= stop:
            break  # scores that are no longer numbers
        best = _gains(part, part_shrink, up, diagonal[start:stop], diagonal[i], K[i, start:stop], part_gain)
        j = start + _position(part_gain, no_addend[start:stop], best)
        if j >= stop or i == j:
            break
        slope = float(up) - float(score[j] + shrink[j])
        curvature = float(diagonal[i]) + float(diagonal[j]) - 2.0 * float(K[i, j])
        room_i = upper[i] - beta[i]
        if l1[i] > 0.0 and beta[i] < 0.0:
            room_i = -beta[i]
        room_j = beta[j] - lower[j]
        if l1[j] > 0.0 and beta[j] > 0.0:
            room_j = beta[j]
        room = min(room_i, room_j)
        # curvature below rounding: the objective is linear along the pair, go to the nearer bound
        step = slope / curvature if curvature > 1e-12 * (abs(diagonal[i]) + abs(diagonal[j])) else np.inf
        if step >= room:
            step = room
            if step == np.inf:
                return steps, float(violation), True
        before_i, before_j = beta[i], beta[j]
        beta[i] = upper[i] if step == upper[i] - before_i else before_i + step
        beta[j] = lower[j] if step == before_j - lower[j] else before_j - step
        if l1[i] > 0.0 and before_i < 0.0 and step == -before_i:
            beta[i] = 0.0
        if l1[j] > 0.0 and before_j > 0.0 and step == before_j:
            beta[j] = 0.0
        # a step lost in rounding changes nothing: after a few of them the block is as good as it gets
        stuck = stuck + 1 if beta[i] == before_i and beta[j] == before_j else 0
        if stuck > 2:
            break
        score[i] -= kind(ridge[i] * step)
        score[j] += kind(ridge[j] * step)
        _mark(i, beta, lower, upper, l1, grow, shrink)
        _mark(j, beta, lower, upper, l1, grow, shrink)
        move = kind(step)
        up_0, low_0 = _update(score[:g], K[i, :g], K[j, :g], move, grow[:g], shrink[:g])
        up_1, low_1 = _update(score[g:], K[i, g:], K[j, g:], move, grow[g:], shrink[g:])
        violation = max(up_0 - low_0, up_1 - low_1)
        steps += 1
    return steps, float(violation), False
