"""What the optimality conditions need, in one pass each: small problems have no time for a dozen array operations."""

import numpy as np

from mercer._numerics.compile import compiled


@compiled()
def bracket(beta, F, linear, l1, ridge, lower, upper, group, extremes):
    """extremes[g] = (largest rate of those that may grow, smallest of those that may shrink) of group g.

    NaN among the rates stays NaN.
    """
    for g in range(extremes.shape[0]):
        extremes[g, 0], extremes[g, 1] = -np.inf, np.inf
    for v in range(beta.shape[0]):
        b, g = beta[v], group[v]
        s = linear[v] - F[v] - ridge[v] * b
        if not b >= upper[v]:
            rate = s - l1[v] if b >= 0.0 else s + l1[v]
            if not rate <= extremes[g, 0]:
                extremes[g, 0] = rate
        if not b <= lower[v]:
            rate = s + l1[v] if b <= 0.0 else s - l1[v]
            if not rate >= extremes[g, 1]:
                extremes[g, 1] = rate


@compiled()
def free_levels(beta, F, linear, l1, ridge, lower, upper, group, total, count):
    """Add up s - l1 sign(beta) of the free variables of each group, and count them."""
    for v in range(beta.shape[0]):
        b = beta[v]
        if lower[v] < b < upper[v] and (b != 0.0 or l1[v] == 0.0):
            level = linear[v] - F[v] - ridge[v] * b
            total[group[v]] += level - l1[v] * np.sign(b)
            count[group[v]] += 1


@compiled()
def excess(beta, lower, upper, group, sums):
    """The largest distance from the box; subtracts each group's total from its sum. NaN stays NaN."""
    worst = 0.0
    for v in range(beta.shape[0]):
        outside = max(lower[v] - beta[v], beta[v] - upper[v])
        if not outside <= worst:
            worst = outside
        if group[v] < sums.shape[0]:
            sums[group[v]] -= beta[v]
    return worst
