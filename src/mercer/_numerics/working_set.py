"""Passes over all active variables: scores, extremes, the choice of a working set, what may be left out."""

import numpy as np

from mercer._numerics.compile import compiled
from mercer._numerics.extrema import larger, smaller

BINS = 1024


@compiled()
def score_all(beta, F, sample, linear, l1, ridge, lower, upper, up, low):
    """Fill up and low: the rates at which each variable gains by growing and by shrinking (see smo).

    A variable at its upper bound has up = -inf, one at its lower bound has low = +inf.
    """
    for v in range(beta.shape[0]):
        b = beta[v]
        s = linear[v] - F[sample[v]] - ridge[v] * b
        up[v] = -np.inf if b >= upper[v] else (s - l1[v] if b >= 0.0 else s + l1[v])
        low[v] = np.inf if b <= lower[v] else (s + l1[v] if b <= 0.0 else s - l1[v])


@compiled()
def slack_of(beta, F, linear, l1, ridge, lower, upper, group, level, slack):
    """slack[v] = how far the rates of a variable without weight are from making it move; -inf for one with weight."""
    for v in range(beta.shape[0]):
        s = linear[v] - F[v] - ridge[v] * beta[v]
        slack[v] = np.inf
        if beta[v] != 0.0:
            slack[v] = -np.inf
        if beta[v] < upper[v]:
            slack[v] = min(slack[v], level[group[v]] - (s - l1[v]))
        if beta[v] > lower[v]:
            slack[v] = min(slack[v], s + l1[v] - level[group[v]])


@compiled(fast=True)
def group_extremes(up, low, group, extremes):
    """extremes[g] = (largest up, smallest low) of group g, for two groups."""
    for g in range(2):
        best, worst = -np.inf, np.inf
        for v in range(up.shape[0]):
            mine = group[v] == g
            best = larger(best, up[v] if mine else -np.inf)
            worst = smaller(worst, low[v] if mine else np.inf)
        extremes[g, 0], extremes[g, 1] = best, worst


@compiled()
def _pick(excess, group, g, span, count, taken, chosen, n_chosen):
    """Append up to count untaken variables of group g with the largest positive excess, roughly in order.

    Sorting into equal bins of [0, span] replaces an exact selection: two passes, no comparison sort.
    """
    histogram = np.zeros(BINS + 1, np.int64)
    scale = BINS / span
    for v in range(excess.shape[0]):
        if group[v] == g and not taken[v] and excess[v] > 0.0:
            histogram[min(BINS, int(excess[v] * scale))] += 1
    total, threshold = 0, BINS
    while threshold > 0 and total + histogram[threshold] <= count:
        total += histogram[threshold]
        threshold -= 1
    room = count - total  # of the bin at the threshold only so many
    for v in range(excess.shape[0]):
        if group[v] == g and not taken[v] and excess[v] > 0.0:
            place = min(BINS, int(excess[v] * scale))
            if place > threshold or (place == threshold and room > 0):
                if place == threshold:
                    room -= 1
                taken[v] = True
                chosen[n_chosen] = v
                n_chosen += 1
    return n_chosen


@compiled()
def choose(up, low, group, n_groups, extremes, previous, n_new, size, keep_first):
    """The next working set: the worst violators of each group, then the newest of the previous set.

    At most n_new of the new ones; at most size in all. With keep_first variable keep_first is always in.
    Returns the variables, new ones first.
    """
    n = up.shape[0]
    taken = np.zeros(n, np.bool_)
    chosen = np.empty(size, np.int64)
    count = 0
    if keep_first >= 0:
        chosen[0] = keep_first
        taken[keep_first] = True
        count = 1
    excess = np.empty(n)
    widest = 0.0
    for g in range(n_groups):
        widest = max(widest, extremes[g, 0] - extremes[g, 1])
    for g in range(n_groups):
        span = extremes[g, 0] - extremes[g, 1]
        # a group near its optimum leaves the room to the other
        if not span > 0.1 * widest:
            continue
        share = max(1, (n_new - count) // (2 * (n_groups - g)))
        for v in range(n):
            excess[v] = up[v] - extremes[g, 1]
        count = _pick(excess, group, g, span, min(share, size - count), taken, chosen, count)
        for v in range(n):
            excess[v] = extremes[g, 0] - low[v]
        count = _pick(excess, group, g, span, min(share, size - count), taken, chosen, count)
    for k in range(previous.shape[0]):
        if count >= size:
            break
        v = previous[k]
        if not taken[v]:
            taken[v] = True
            chosen[count] = v
            count += 1
    return chosen[:count]


@compiled()
def removable(up, low, group, extremes, slack, keep):
    """keep[v] = False for variables at a bound whose gain stays negative by a margin; how many those are."""
    count = 0
    for v in range(up.shape[0]):
        margin = slack * max(0.0, extremes[group[v], 0] - extremes[group[v], 1])
        grows = up[v] > extremes[group[v], 1] - margin
        shrinks = low[v] < extremes[group[v], 0] + margin
        keep[v] = grows or shrinks
        if not keep[v]:
            count += 1
    return count
