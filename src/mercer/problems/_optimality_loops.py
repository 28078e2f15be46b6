"""The sums of the optimality conditions in one pass: a dozen numpy calls would take longer than a small problem."""

import numpy as np

from mercer._compiled.compile import compiled

# of each group: the largest rate of variables that may increase, the smallest rate of variables that may decrease, the
# sum of s - l1 sign(beta) over the free variables, the number of these, the sum of beta
M_UP, M_LOW, LEVELS, N_FREE, TOTAL = range(5)
# of all variables: the largest distance of beta from the box, and the sums of F beta, |F beta|, linear beta,
# |linear beta|, l1 |beta| and ridge beta^2
OUTSIDE, NORM, ABS_NORM, LINEAR, ABS_LINEAR, PAID, RIDGE = range(7)


@compiled()
def optimality_sums(beta, F, linear, l1, ridge, lower, upper, group, groups, totals):
    """Fill groups[g] and totals (see above). A NaN in beta or in a rate stays NaN."""
    for g in range(groups.shape[0]):
        for k in range(groups.shape[1]):
            groups[g, k] = 0.0
        groups[g, M_UP], groups[g, M_LOW] = -np.inf, np.inf
    outside, norm, abs_norm, line, abs_line, paid, squares = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for v in range(beta.shape[0]):
        b = beta[v]
        mine = groups[group[v]]
        s = linear[v] - F[v] - ridge[v] * b
        if not b >= upper[v]:
            rate = s - l1[v] if b >= 0.0 else s + l1[v]
            if rate > mine[M_UP] or rate != rate:
                mine[M_UP] = rate
        if not b <= lower[v]:
            rate = s + l1[v] if b <= 0.0 else s - l1[v]
            if rate < mine[M_LOW] or rate != rate:
                mine[M_LOW] = rate
        mine[TOTAL] += b
        norm += F[v] * b
        abs_norm += abs(F[v] * b)
        line += linear[v] * b
        abs_line += abs(linear[v] * b)
        paid += l1[v] * abs(b)
        squares += ridge[v] * b * b
        if lower[v] < b < upper[v] and (b != 0.0 or l1[v] == 0.0):
            mine[LEVELS] += s - l1[v] * np.sign(b)
            mine[N_FREE] += 1.0
        distance = max(lower[v] - b, b - upper[v])
        if not distance <= outside and outside == outside:
            outside = distance
    totals[OUTSIDE], totals[NORM], totals[ABS_NORM], totals[LINEAR] = outside, norm, abs_norm, line
    totals[ABS_LINEAR], totals[PAID], totals[RIDGE] = abs_line, paid, squares


@compiled()
def threshold(sums):
    """The threshold of a group from its sums, groups[g]: see ``Survey.thresholds``."""
    if sums[N_FREE] > 0.0:
        return sums[LEVELS] / sums[N_FREE]
    low, high = sums[M_UP], sums[M_LOW]
    if np.isfinite(low) and np.isfinite(high):
        return 0.5 * (low + high)
    return low if np.isfinite(low) else (high if np.isfinite(high) else 0.0)
