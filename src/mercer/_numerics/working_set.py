"""Passes over all active variables: scores, extremes, the choice of a working set, what may be left out."""

import numpy as np

from mercer._numerics.compile import compiled
from mercer._numerics.extrema import larger, smaller

BINS = 1024


@compiled(fast=True)
def score_all(program, beta, F, up, low):
    """Fill up and low: the rates at which each variable gains by growing and by shrinking (see smo).

    A variable at its upper bound has up = -inf, one at its lower bound has low = +inf.
    """
    sample, linear, l1, ridge = program.sample, program.linear, program.l1, program.ridge
    lower, upper = program.lower, program.upper
    # first what must be looked up, so that the rest is vectorised
    for v in range(beta.shape[0]):
        up[v] = F[sample[v]]
    for v in range(beta.shape[0]):
        b = beta[v]
        s = linear[v] - up[v] - ridge[v] * b
        grown = s - l1[v] if b >= 0.0 else s + l1[v]
        shrunk = s + l1[v] if b <= 0.0 else s - l1[v]
        up[v] = -np.inf if b >= upper[v] else grown
        low[v] = np.inf if b <= lower[v] else shrunk


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


@compiled()
def near_kinks(slack, F, exact, done, margin, safety, near):
    """Samples that are not done and nearer to a kink than the margin, or safety times the largest error of F.

    F of those that are done is known to be ``exact``. Fills the beginning of ``near``: (how many, the margin).
    """
    error = 0.0
    for i in range(F.shape[0]):
        if done[i]:
            off = abs(exact[i] - F[i])
            if off > error or off != off:
                error = off
    margin = max(margin, safety * error) if error < np.inf else np.inf  # NaN is no error that is known
    count = 0
    for i in range(F.shape[0]):
        if not done[i] and slack[i] < margin:
            near[count] = i
            count += 1
    return count, margin


@compiled(fast=True)
def group_extremes(up, low, group, extremes):
    """extremes[g] = (largest up, smallest low) of group g."""
    for g in range(extremes.shape[0]):
        best, worst = -np.inf, np.inf
        for v in range(up.shape[0]):
            mine = group[v] == g
            best = larger(best, up[v] if mine else -np.inf)
            worst = smaller(worst, low[v] if mine else np.inf)
        extremes[g, 0], extremes[g, 1] = best, worst


@compiled()
def survey_scores(program, beta, F, up, low, extremes):
    """Fill all scores and the extremes of the groups; the largest violation, NaN if one is."""
    score_all(program, beta, F, up, low)
    group_extremes(up, low, program.group, extremes)
    violation = -np.inf
    for g in range(extremes.shape[0]):
        span = extremes[g, 0] - extremes[g, 1]
        if span > violation or span != span:
            violation = span
    return violation


@compiled(fast=True)
def _sort_in(rates, level, scale, group, g, place):
    """place[v] = (rates[v] - level) scale as a whole number from 0 to BINS, 0 for other groups than g."""
    for v in range(rates.shape[0]):
        excess = smaller(larger((rates[v] - level) * scale, 0.0), 1.0 * BINS)
        place[v] = np.int32(excess) if group[v] == g else np.int32(0)


@compiled()
def _pick(place, count, chosen, n_chosen, histogram):
    """Append up to count variables, not chosen before, of the largest places above 0, roughly in order.

    Sorting into equal bins replaces an exact selection: two passes, no comparison sort.
    """
    for t in range(n_chosen):
        place[chosen[t]] = 0
    for t in range(histogram.shape[0]):
        histogram[t] = 0
    for v in range(place.shape[0]):
        histogram[np.uint32(place[v])] += 1  # unsigned: spares the test for a negative index
    total, threshold = 0, BINS
    while threshold > 1 and total + histogram[threshold] <= count:
        total += histogram[threshold]
        threshold -= 1
    room = count - total  # of the bin at the threshold only so many
    for v in range(place.shape[0]):
        if place[v] >= threshold:
            if place[v] == threshold:
                if room <= 0:
                    continue
                room -= 1
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
    chosen, place, histogram = np.empty(size, np.int64), np.empty(n, np.int32), np.empty(BINS + 1, np.int64)
    count = 0
    if keep_first >= 0:
        chosen[0] = keep_first
        count = 1
    widest = 0.0
    for g in range(n_groups):
        widest = max(widest, extremes[g, 0] - extremes[g, 1])
    for g in range(n_groups):
        span = extremes[g, 0] - extremes[g, 1]
        # a group near its optimum leaves the room to the other
        if not span > 0.1 * widest:
            continue
        share = max(1, (n_new - count) // (2 * (n_groups - g)))
        _sort_in(up, extremes[g, 1], BINS / span, group, g, place)
        count = _pick(place, min(share, size - count), chosen, count, histogram)
        _sort_in(low, extremes[g, 0], -BINS / span, group, g, place)
        count = _pick(place, min(share, size - count), chosen, count, histogram)
    for v in range(n):
        place[v] = 0
    for t in range(count):
        place[chosen[t]] = 1
    for k in range(previous.shape[0]):
        if count >= size:
            break
        v = previous[k]
        if place[v] == 0:
            place[v] = 1
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


@compiled()
def most_of(values, scale, group, count, place, chosen):
    """The variables of group 0 with the largest values above 0, roughly, up to count: how many there are.

    Values times scale are at most BINS; fills ``chosen`` in increasing order. ``place`` is scratch space.
    """
    _sort_in(values, 0.0, scale, group, 0, place)
    return _pick(place, count, chosen, 0, np.empty(BINS + 1, np.int64))
