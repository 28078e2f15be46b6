"""Passes over all active variables, and one round of a working set.

Scores, extremes, the choice of a working set, what may become inactive. Two calls do what a round of decomposition
needs besides kernel values: `form_set` before the rows of new members are there, `solve_set` when they are.
"""

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.extrema import larger, smaller
from mercer.svm._smo_loops import NEEDS_NEWTON, solve_members

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


# of the tiles in which a block is reflected
TILE_LINES, TILE_COLUMNS = 16, 64
# what is known of a working set: see form_set
MEMBERS, POSITIONS, ORDER, COLUMN, WANTED, ASKED = range(6)


@compiled()
def seat(chosen, place, members, m, block, fresh):
    """Give the chosen variables places in the block, which keeps what it has of them: (members, newcomers).

    ``place`` is the place of each variable, -1 for none; ``members`` the variable at each of the m places. Newcomers
    take the places of those that leave; ``fresh``, twice as long as the members can be many, begins with these. Where
    more leave, the last ones move up. Edits all but chosen.
    """
    stays = members.shape[0]  # added to the places of those that stay, until they are found
    newcomers = 0
    # they wait at the end of ``fresh``, the places that they are given are written from its beginning
    for t in range(chosen.shape[0]):
        v = chosen[t]
        if place[v] >= 0:
            place[v] += stays
        else:
            newcomers += 1
            fresh[fresh.shape[0] - newcomers] = v
    taken, t = 0, 0
    while t < m:
        v = members[t]
        if place[v] >= stays:
            place[v] -= stays
            t += 1
            continue
        place[v] = -1
        if taken < newcomers:
            taken += 1
            v = fresh[fresh.shape[0] - taken]
            members[t], place[v], fresh[taken - 1] = v, t, t
            t += 1
            continue
        m -= 1
        if t < m:  # the last one moves here, and may leave in its turn
            v = members[m]
            members[t], place[v] = v, place[v] - m + t
            here, there = block[t], block[m]
            for u in range(m):
                here[u] = there[u]
            for u in range(m):
                block[u, t] = block[u, m]
            here[t] = there[m]
    while taken < newcomers:
        taken += 1
        v = fresh[fresh.shape[0] - taken]
        members[m], place[v], fresh[taken - 1] = v, m, m
        m += 1
    return m, newcomers


@compiled()
def line_up(place, positions, order, column):
    """Those who have places, in the order of the variables, which is that of memory: their places and columns.

    ``positions`` are the columns of the members, -1 for the null sample, which gets any.
    """
    count = 0
    for v in range(place.shape[0]):
        if place[v] >= 0:
            order[count], column[count] = place[v], max(0, positions[place[v]])
            count += 1


@compiled()
def reflect(rows, fresh, block):
    """Write the columns of newcomers, whose rows are there, and zeros for the null sample."""
    m = rows.shape[0]
    for a in range(m):
        if rows[a] < 0:
            here = block[a]
            for u in range(m):
                here[u], block[u, a] = 0.0, 0.0
    # by tiles, which stay in the cache while they are read down their columns
    for top in range(0, m, TILE_LINES):
        bottom = min(top + TILE_LINES, m)
        for first in range(0, fresh.shape[0], TILE_COLUMNS):
            columns = fresh[first : first + TILE_COLUMNS]
            for u in range(top, bottom):
                here = block[u]
                for k in range(columns.shape[0]):
                    here[np.uint64(columns[k])] = block[np.uint64(columns[k]), np.uint64(u)]


@compiled()
def by_group(chosen, group):
    """The variables of the first group, then the others, each in their order."""
    ordered = np.empty(chosen.shape[0], chosen.dtype)
    count = 0
    for g in range(2):
        for t in range(chosen.shape[0]):
            if (group[chosen[t]] == 0) == (g == 0):
                ordered[count] = chosen[t]
                count += 1
    return ordered


@compiled()
def form_set(
    up, low, program, extremes, previous, n_new, size, null, place, seats, m, block, fresh,
):  # fmt: skip
    """Choose a working set and seat it: (the variables chosen, members, newcomers, those of them that want rows).

    ``m`` is how many members the last set has. The rows of ``seats`` are the members; for each the position of its
    sample among the columns, -1 for the null variable; `line_up`'s order and columns; the places of the newcomers that
    have a sample, and these samples. ``fresh`` begins with the places of all newcomers. Edits all from ``place`` on.
    """
    members, positions, order, column = seats[MEMBERS], seats[POSITIONS], seats[ORDER], seats[COLUMN]
    wanted, asked, group, sample = seats[WANTED], seats[ASKED], program.group, program.sample
    n_groups = extremes.shape[0]
    chosen = choose(up, low, group, n_groups, extremes, previous, n_new, size, null)
    seated = chosen
    if n_groups > 1:  # groups must not mix: all anew
        seated = by_group(chosen, group)
        for t in range(m):
            place[members[t]] = -1
        m = 0
    m, newcomers = seat(seated, place, members, m, block, fresh)
    for t in range(m):
        positions[t] = -1 if members[t] == null else sample[members[t]]
    line_up(place, positions[:m], order, column)
    count = 0
    for k in range(newcomers):
        if positions[fresh[k]] >= 0:
            wanted[count], asked[count] = fresh[k], positions[fresh[k]]
            count += 1
    return chosen, m, newcomers, count


@compiled()
def solve_set(
    seats, m, newcomers, block, fresh, program, beta, F, tol, max_steps, newton, room, score, chosen, previous, change,
):  # fmt: skip
    """Solve the set whose newcomers' rows have been written: (steps, gained, unbounded, moved, new, of use).

    The first three are those of `solve_members`; how many samples have moved: the row ASKED of ``seats`` begins with
    them and ``change`` with how far; how many of those chosen are not of the previous set, and how many of these
    are not zero now. Edits block, beta, seats, change.
    """
    members, positions, moved = seats[MEMBERS, :m], seats[POSITIONS, :m], seats[ASKED]
    reflect(positions, fresh[:newcomers], block)
    steps, gained, unbounded = solve_members(
        members, block, program, beta, F, tol, max_steps, newton, room, score, change
    )  # fmt: skip
    if steps == NEEDS_NEWTON:
        return steps, 0.0, False, 0, 0, 0
    count = 0
    for t in range(members.shape[0]):
        if change[t] != 0.0 and positions[t] >= 0:
            moved[count], change[count] = positions[t], change[t]
            count += 1
    known = np.zeros(beta.shape[0], np.bool_)
    for t in range(previous.shape[0]):
        known[previous[t]] = True
    n_new, n_used = 0, 0
    for t in range(chosen.shape[0]):
        if not known[chosen[t]]:
            n_new += 1
            n_used += beta[chosen[t]] != 0.0
    return steps, gained, unbounded, count, n_new, n_used
