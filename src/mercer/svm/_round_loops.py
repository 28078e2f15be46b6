"""Compiled steps of decomposition: scores, selection of the working set, shrinking, and the block of a working set.

A round is `score_and_extremes`, then `form_working_set`, then the rows of its new members are read, then
`solve_working_set`. Scores and violation are those of `_smo_loops`. Selection follows
Joachims, "Making large-scale SVM learning practical" (1999): the worst violators of each group, half of them variables
that may increase and half that may decrease. Shrinking is LIBSVM's (Chang & Lin, ACM TIST 2, 2011, section 5.1), with a
margin.

Terms:

- *member*: a variable in the working set. Its *place* is its row and column in the block;
- *null sample*: a free variable with a zero kernel row, which stands for a missing equality constraint.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.intrinsics import larger, smaller
from mercer.svm._block_newton_loops import NEEDS_NEWTON, newton_address, newton_addresses
from mercer.svm._smo_loops import solve_members

BINS = 1024
# a group whose violation is below this share of the largest one leaves its share of the working set to other groups
NEAR_OPTIMUM = 0.1
# most pair steps in a block, for each of its members
STEPS_PER_MEMBER = 200


@compiled(fast=True)
def score_all(program, beta, F, up, low):
    """Fill up and low, the rates of each variable for an increase and a decrease (see `_smo_loops`).

    A variable at its upper bound has up = -inf, a variable at its lower bound has low = +inf.
    """
    sample, linear, l1, ridge = program.sample, program.linear, program.l1, program.ridge
    lower, upper = program.lower, program.upper
    # gather first, so that LLVM vectorises the second loop
    for v in range(beta.shape[0]):
        up[v] = F[sample[v]]
    for v in range(beta.shape[0]):
        b = beta[v]
        s = linear[v] - up[v] - ridge[v] * b
        grown = s - l1[v] if b >= 0.0 else s + l1[v]
        shrunk = s + l1[v] if b <= 0.0 else s - l1[v]
        up[v] = -np.inf if b >= upper[v] else grown
        low[v] = np.inf if b <= lower[v] else shrunk


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
def score_and_extremes(program, beta, F, up, low, extremes):
    """Fill the scores of all variables and the extremes of each group. Returns the largest violation; NaN stays NaN."""
    score_all(program, beta, F, up, low)
    group_extremes(up, low, program.group, extremes)
    violation = -np.inf
    for g in range(extremes.shape[0]):
        span = extremes[g, 0] - extremes[g, 1]
        if span > violation or span != span:
            violation = span
    return violation


@compiled(fast=True)
def _fill_bins(rates, level, scale, group, g, bins):
    """bins[v] = (rates[v] - level) scale, rounded down to an integer from 0 to BINS; 0 outside group g."""
    for v in range(rates.shape[0]):
        excess = smaller(larger((rates[v] - level) * scale, 0.0), 1.0 * BINS)
        bins[v] = np.int32(excess) if group[v] == g else np.int32(0)


@compiled()
def _take_highest(bins, count, chosen, n_chosen, histogram):
    """Append to ``chosen`` up to count variables of the highest bins above 0 that are not in it; its new length.

    Equal bins replace an exact selection: two passes, no comparison sort. Edits bins and histogram.
    """
    for t in range(n_chosen):
        bins[chosen[t]] = 0
    for t in range(histogram.shape[0]):
        histogram[t] = 0
    for v in range(bins.shape[0]):
        histogram[np.uint32(bins[v])] += 1  # unsigned: no test for a negative index
    total, threshold = 0, BINS
    while threshold > 1 and total + histogram[threshold] <= count:
        total += histogram[threshold]
        threshold -= 1
    # take as many of the bin at the threshold as fit, evenly spaced: at beta = 0 all variables of a class share a bin
    room, alike, seen = min(count - total, histogram[threshold]), max(1, histogram[threshold]), 0
    for v in range(bins.shape[0]):
        if bins[v] >= threshold:
            if bins[v] == threshold:
                seen += room
                if seen < alike:
                    continue
                seen -= alike
            chosen[n_chosen] = v
            n_chosen += 1
    return n_chosen


@compiled()
def select_working_set(up, low, group, n_groups, extremes, previous, n_new, size, always):
    """The next working set: up to n_new of the worst violators of all groups, then members of the previous set.

    Returns at most ``size`` variables. If ``always`` >= 0, this variable comes first.
    """
    n = up.shape[0]
    chosen, bins, histogram = np.empty(size, np.int64), np.empty(n, np.int32), np.empty(BINS + 1, np.int64)
    count = 0
    if always >= 0:
        chosen[0] = always
        count = 1
    widest = 0.0
    for g in range(n_groups):
        widest = max(widest, extremes[g, 0] - extremes[g, 1])
    for g in range(n_groups):
        span = extremes[g, 0] - extremes[g, 1]
        if not span > NEAR_OPTIMUM * widest:
            continue
        share = max(1, (n_new - count) // (2 * (n_groups - g)))
        _fill_bins(up, extremes[g, 1], BINS / span, group, g, bins)
        count = _take_highest(bins, min(share, size - count), chosen, count, histogram)
        _fill_bins(low, extremes[g, 0], -BINS / span, group, g, bins)
        count = _take_highest(bins, min(share, size - count), chosen, count, histogram)
    for v in range(n):
        bins[v] = 0
    for t in range(count):
        bins[chosen[t]] = 1
    for k in range(previous.shape[0]):
        if count >= size:
            break
        v = previous[k]
        if bins[v] == 0:
            bins[v] = 1
            chosen[count] = v
            count += 1
    return chosen[:count]


@compiled()
def shrinkable(up, low, group, extremes, slack, keep):
    """Shrinking: keep[v] = False if no rate of v is within slack * violation of moving it; returns how many."""
    count = 0
    for v in range(up.shape[0]):
        margin = slack * max(0.0, extremes[group[v], 0] - extremes[group[v], 1])
        grows = up[v] > extremes[group[v], 1] - margin
        shrinks = low[v] < extremes[group[v], 0] + margin
        keep[v] = grows or shrinks
        if not keep[v]:
            count += 1
    return count


# size of the tiles in which a block is mirrored
TILE_LINES, TILE_COLUMNS = 16, 64
# rows of the layout of a working set: see form_working_set
MEMBERS, POSITIONS, ORDER, COLUMN, NEW, SAMPLES = range(6)


@compiled()
def place_members(chosen, place, members, m, block, new_places):
    """Give the chosen variables places in the block: (number of members, number of new members).

    ``place[v]`` is the place of a variable, -1 for none; ``members[t]`` the variable at place t, of m places. Variables
    that stay keep their rows and columns. New members take the places of those that leave. If more leave, the last
    members move up. ``new_places``, twice as long as the block, begins with the places of the new members. Edits all
    arguments but chosen.
    """
    stays = members.shape[0]  # added to the places of variables that stay, until the loop below reaches them
    n_added = 0
    # the end of ``new_places`` lists the new variables, its beginning their places
    for t in range(chosen.shape[0]):
        v = chosen[t]
        if place[v] >= 0:
            place[v] += stays
        else:
            n_added += 1
            new_places[new_places.shape[0] - n_added] = v
    taken, t = 0, 0
    while t < m:
        v = members[t]
        if place[v] >= stays:
            place[v] -= stays
            t += 1
            continue
        place[v] = -1
        if taken < n_added:
            taken += 1
            v = new_places[new_places.shape[0] - taken]
            members[t], place[v], new_places[taken - 1] = v, t, t
            t += 1
            continue
        m -= 1
        if t < m:  # the last member moves here; the next turn checks whether it stays
            v = members[m]
            members[t], place[v] = v, place[v] - m + t
            here, there = block[t], block[m]
            for u in range(m):
                here[u] = there[u]
            for u in range(m):
                block[u, t] = block[u, m]
            here[t] = there[m]
    while taken < n_added:
        taken += 1
        v = new_places[new_places.shape[0] - taken]
        members[m], place[v], new_places[taken - 1] = v, m, m
        m += 1
    return m, n_added


@compiled()
def sort_members(place, positions, order, column):
    """Fill the places and columns of all members, sorted by variable, so that stored rows are read in order.

    ``positions`` are the columns of the members, -1 for the null sample, for which column 0 stands in.
    """
    count = 0
    for v in range(place.shape[0]):
        if place[v] >= 0:
            order[count], column[count] = place[v], max(0, positions[place[v]])
            count += 1


@compiled()
def mirror_rows(rows, new_places, block):
    """Copy the rows of new members to their columns; the null sample gets zeros. Edits the block."""
    m = rows.shape[0]
    for a in range(m):
        if rows[a] < 0:
            here = block[a]
            for u in range(m):
                here[u], block[u, a] = 0.0, 0.0
    # by tiles that stay in the cache while their columns are read
    for top in range(0, m, TILE_LINES):
        bottom = min(top + TILE_LINES, m)
        for first in range(0, new_places.shape[0], TILE_COLUMNS):
            columns = new_places[first : first + TILE_COLUMNS]
            for u in range(top, bottom):
                here = block[u]
                for k in range(columns.shape[0]):
                    here[np.uint64(columns[k])] = block[np.uint64(columns[k]), np.uint64(u)]


@compiled()
def by_group(chosen, group):
    """The variables sorted by group; the order within a group is kept."""
    ordered = np.empty(chosen.shape[0], chosen.dtype)
    count, g = 0, 0
    while count < chosen.shape[0]:
        for t in range(chosen.shape[0]):
            if group[chosen[t]] == g:
                ordered[count] = chosen[t]
                count += 1
        g += 1
    return ordered


@compiled(compact=True)
def form_working_set(
    up, low, program, extremes, previous, n_new, size, null, place, layout, m, block, new_places,
):  # fmt: skip
    """Select a working set and place it in the block: (variables chosen, members, new members, rows to read).

    ``m`` is the number of members of the last set. The rows of ``layout`` are
    MEMBERS, the variables; POSITIONS, their columns, -1 for the null variable; ORDER and COLUMN, see `sort_members`;
    NEW, the places of new members that have a sample; SAMPLES, these samples.
    ``new_places`` begins with the places of all new members. Edits all arguments from ``place`` on.
    """
    members, positions, order, column = layout[MEMBERS], layout[POSITIONS], layout[ORDER], layout[COLUMN]
    new, samples, group, sample = layout[NEW], layout[SAMPLES], program.group, program.sample
    n_groups = extremes.shape[0]
    chosen = select_working_set(up, low, group, n_groups, extremes, previous, n_new, size, null)
    ordered = chosen
    if n_groups > 1:  # the groups must be contiguous: place all members again
        ordered = by_group(chosen, group)
        for t in range(m):
            place[members[t]] = -1
        m = 0
    m, n_added = place_members(ordered, place, members, m, block, new_places)
    for t in range(m):
        positions[t] = -1 if members[t] == null else sample[members[t]]
    sort_members(place, positions[:m], order, column)
    count = 0
    for k in range(n_added):
        if positions[new_places[k]] >= 0:
            new[count], samples[count] = new_places[k], positions[new_places[k]]
            count += 1
    return chosen, m, n_added, count


@compiled(compact=True)
def solve_working_set(
    layout, m, n_added, block, new_places, program, beta, F, tol, max_steps, newton, scratch, score, change
):  # fmt: skip
    """Solve the working set, after the rows of its new members were read.

    Returns (steps, gain of the objective, unbounded) of `solve_members`, and the number of samples that moved. SAMPLES
    of ``layout`` begins with these samples, ``change`` with their change of beta. Edits block, beta, layout, change.
    """
    members, positions, moved = layout[MEMBERS, :m], layout[POSITIONS, :m], layout[SAMPLES]
    mirror_rows(positions, new_places[:n_added], block)
    steps, gained, unbounded = solve_members(
        members, block, program, beta, F, tol, max_steps, newton, scratch, score, change
    )  # fmt: skip
    count = 0
    if steps != NEEDS_NEWTON:
        for t in range(m):
            if change[t] != 0.0 and positions[t] >= 0:
                moved[count], change[count] = positions[t], change[t]
                count += 1
    return steps, gained, unbounded, count


@compiled()
def count_used(chosen, previous, beta):
    """How many chosen variables were not in the previous set, and how many of these have a weight."""
    known = np.zeros(beta.shape[0], np.bool_)
    for t in range(previous.shape[0]):
        known[previous[t]] = True
    n_new, n_used = 0, 0
    for t in range(chosen.shape[0]):
        if not known[chosen[t]]:
            n_new += 1
            n_used += beta[chosen[t]] != 0.0
    return n_new, n_used


def with_newton(run: Callable[[int], Any], dtype: Any, score_dtype: Any) -> Any:
    """The result of run(address of Newton's step), which is compiled only if run(0) needs it.

    The result is a tuple that begins with the steps. If these are NEEDS_NEWTON, the run is repeated.
    """
    result = run(newton_addresses.get((np.dtype(dtype), np.dtype(score_dtype)), 0))
    return result if result[0] != NEEDS_NEWTON else run(newton_address(dtype, score_dtype))
