"""Coordinate ascent on the dual ([M5] "coordinate ascent"), one variable after the other on a stored matrix."""

import numpy as np

from mercer._compiled.compile import compiled


@compiled()
def best_value(i, K, linear, l1, ridge, lower, upper, beta, F):
    """(optimum of variable i without its bounds, optimum within them, gain of the objective) if the others stay."""
    before = beta[i]
    score = linear[i] - F[i] - ridge[i] * before
    curvature = K[i, i] + ridge[i]
    if curvature > 0.0:
        total = curvature * before + score
        free = np.sign(total) * max(abs(total) - l1[i], 0.0) / curvature
        value = min(max(free, lower[i]), upper[i])
    else:  # k(x, x) <= 0: the better end of the line, or 0, where l1 |beta| has its kink
        low, high = lower[i] - before, upper[i] - before
        gain_low = score * low - 0.5 * curvature * low * low - l1[i] * abs(lower[i])
        gain_high = score * high - 0.5 * curvature * high * high - l1[i] * abs(upper[i])
        gain_zero = -score * before - 0.5 * curvature * before * before
        if lower[i] < 0.0 < upper[i] and gain_zero >= max(gain_low, gain_high):
            value = free = 0.0
        else:
            value = upper[i] if gain_high > gain_low else lower[i]
            free = np.inf if gain_high > gain_low else -np.inf
    change = value - before
    gain = score * change - 0.5 * curvature * change * change - l1[i] * (abs(value) - abs(before))
    return free, value, gain


@compiled()
def ascend(K, linear, l1, ridge, lower, upper, order, greedy, beta, F, steps):
    """Take a step for each entry of ``order``; return their number and their gain. Edits beta and F = K beta.

    A step moves the variable order[s], or with ``greedy`` the one with the largest gain, until no step gains. Row s of
    ``steps`` becomes (variable, optimum without bounds, new value, gain).
    """
    n, total, taken = beta.shape[0], 0.0, 0
    for s in range(order.shape[0]):
        i = order[s]
        free, value, gain = best_value(i, K, linear, l1, ridge, lower, upper, beta, F)
        for other in range(n if greedy else 0):
            other_free, other_value, other_gain = best_value(other, K, linear, l1, ridge, lower, upper, beta, F)
            if other_gain > gain or other == 0:
                i, free, value, gain = other, other_free, other_value, other_gain
        if greedy and not gain > 0.0:
            break
        change = value - beta[i]
        if change != 0.0:
            beta[i] = value
            for k in range(n):
                F[k] += change * K[i, k]
        steps[s, 0], steps[s, 1], steps[s, 2], steps[s, 3] = i, free, value, gain
        total += gain
        taken += 1
    return taken, total
