"""One round of decomposition: a working set is taken from stored rows and solved.

Two calls do what needs no kernel value: `form_set` before the rows are there, `solve_set` when they are.
"""

import numpy as np

from mercer._numerics.compile import compiled
from mercer._numerics.smo import NEEDS_NEWTON, solve_members
from mercer._numerics.working_set import choose

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
def read_rows(values, rows, order, column, fresh, start, stop, block):
    """Write the rows of newcomers, at the places fresh[start:stop], into a block.

    block[a, b] = values[rows[a], column of b]. The null sample has row -1, and zeros.
    """
    m = rows.shape[0]
    for k in range(start, stop):
        here, row = block[fresh[k]], values[max(0, rows[fresh[k]])]
        for t in range(m):  # unsigned numbers spare the test for a negative index
            here[np.uint64(order[t])] = row[np.uint64(column[t])]


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
