"""Two classes whose values with themselves are known, without most of the values between them.

    min  1/2 b'Kb - linear'b + sum l1|b| + 1/2 sum ridge b^2     s.t.  lower <= b <= upper,  sum(b) fixed

Of the values between the classes, a sample with weight needs those with all of the other class (a line), any other
sample only those with the members of a small problem. So a few samples are solved; then those without weight go and
those that violate the solution worst come in, until no sample violates it. All of it is one call: a stage takes less
time than the calls from Python that it would need, and threads that solve pairs side by side never wait for each other.
"""

from typing import Any, NamedTuple

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.kernel_blocks import fill_block
from mercer._compiled.program import Program
from mercer._compiled.tiles import add_rows_product, pack
from mercer.problems._optimality_loops import M_LOW, M_UP, survey, threshold
from mercer.svm._round_loops import BINS, TILE_COLUMNS, TILE_LINES, most_of, seat
from mercer.svm._smo_loops import NEEDS_NEWTON, solve_members

# the first members: a share of the samples, at least so many; how far their problem is solved
SAMPLES_PER_FIRST, FEWEST_FIRST, FIRST_TOL = 8, 200, 0.1
# with lines of this share of all values, each of which is on two, nearly all samples have weight
MOSTLY_LINES = 1.6
# newcomers: as many as there are support vectors, at least so many
FEWEST_NEW = 32
# a problem is solved to this share of the violation of all, and to the end once that is small
STAGE_TOL, LAST_STAGE = 0.1, 0.3
STAGES, STEPS_PER_MEMBER, STEPS_AT_LEAST = 40, 100, 1000
# columns of a block whose lines are so long, or a multiple of it, compete for the same places of the cache
CONFLICT = 128
# what is left of tol for the rounding of scores
SHARE_OF_TOL = 0.9
NEVER_BEGUN = -2


class Side(NamedTuple):
    """One of two classes: its samples, as tiles need them, and its Gram matrix."""

    X: Any
    norms: Any
    panels: Any
    own: Any


@compiled()
def _take(X, norms, index, rows, row_norms):
    """Copy some samples and their norms."""
    for t in range(index.shape[0]):
        source, target = X[index[t]], rows[t]
        for k in range(source.shape[0]):
            target[k] = source[k]
        row_norms[t] = norms[index[t]]


@compiled()
def _between(plan, a, index_a, b, index_b):
    """The values of some samples of one class with some of the other, and their transpose."""
    d, width = a.X.shape[1], a.panels.shape[2]
    n_a, n_b = index_a.shape[0], index_b.shape[0]
    rows, row_norms = np.empty((n_a, d), a.X.dtype), np.empty(n_a, a.X.dtype)
    columns, column_norms = np.empty((n_b, d), a.X.dtype), np.empty(n_b, a.X.dtype)
    _take(a.X, a.norms, index_a, rows, row_norms)
    _take(b.X, b.norms, index_b, columns, column_norms)
    count = (n_b + width - 1) // width
    panels, out = np.empty((count, d, width), a.X.dtype), np.empty((n_a, n_b), a.X.dtype)
    zero = np.int64(0)  # a literal would compile what it is passed to twice
    pack(columns, zero, count, panels)
    if n_a > 0 and n_b > 0:
        fill_block(plan, rows, row_norms, panels, column_norms, zero, count, out)
    turned = np.empty((n_b, n_a), a.X.dtype)
    for c in range(n_b):
        here = turned[c]
        for r in range(n_a):
            here[r] = out[r, c]
    return out, turned


@compiled(merged=True)
def _gather(here, places, source, numbers):
    """here[places[t]] = source[numbers[t]]."""
    for t in range(places.shape[0]):  # unsigned numbers spare the test for a negative index
        here[np.uint64(places[t])] = source[np.uint64(numbers[t])]


@compiled()
def _fill_columns(w, n_i, slots, number, own, lines, others_lines, between, same, bare, lined, here):
    """Write a member's values with newcomers into its line of the block, in the order of memory.

    ``same``, ``bare`` and ``lined`` are newcomers of its own class, of the other one without a line and with one: their
    places, and their numbers in their class, or in ``between`` for those without. ``number`` are those of members
    without a line there.
    """
    _gather(here, same[0], own, same[1])
    if slots[w] >= 0:
        line = lines[slots[w]]
        _gather(here, bare[0], line, bare[1])
        _gather(here, lined[0], line, lined[1])
        return
    _gather(here, bare[0], between[number[w]], bare[2])
    mine = w if w < n_i else w - n_i
    for t in range(lined.shape[1]):
        here[lined[0, t]] = others_lines[lined[2, t], mine]


@compiled()
def _sort_newcomers(members, fresh, n_i, slots, number, lists, counts):
    """Newcomers of each class: all, those without a line, those with one; counts of the six lists.

    Each has a place, its number in its class, and its number among the values between the classes, or its line.
    """
    for k in range(6):
        counts[k] = 0
    for t in range(fresh.shape[0]):
        v = members[fresh[t]]
        c = 0 if v < n_i else 1
        mine, lined = (v if c == 0 else v - n_i), slots[v] >= 0
        for k in (c, 4 + c if lined else 2 + c):
            here, place = lists[k], counts[k]
            here[0, place], here[1, place] = fresh[t], mine
            here[2, place] = slots[v] if lined else number[v]
            counts[k] += 1


@compiled()
def _reflect_columns(m, fresh, block):
    """Write the rows of newcomers, whose columns are there: by tiles, which stay in the cache."""
    for start in range(0, fresh.shape[0], TILE_LINES):
        some = fresh[start : start + TILE_LINES]
        for top in range(0, m, TILE_COLUMNS):
            bottom = min(top + TILE_COLUMNS, m)
            for k in range(some.shape[0]):
                here, column = block[some[k]], np.uint64(some[k])
                for u in range(top, bottom):
                    here[u] = block[np.uint64(u), column]


@compiled()
def _add_product(plan, a, b, index, change, slots, used, lines, F_a, F_b):
    """Carry the change of some samples of one class over to F of both; the lines that they lack are computed: how many.

    Edits slots, lines and F.
    """
    d, m = a.X.shape[1], index.shape[0]
    missing, count = np.empty(m, np.int64), 0
    for t in range(m):
        if slots[index[t]] < 0:
            missing[count], slots[index[t]] = index[t], used + count
            count += 1
    if count > 0:
        rows, row_norms = np.empty((count, d), a.X.dtype), np.empty(count, a.X.dtype)
        _take(a.X, a.norms, missing[:count], rows, row_norms)
        fill_block(
            plan, rows, row_norms, b.panels, b.norms, np.int64(0), np.int64(b.panels.shape[0]),
            lines[used : used + count],
        )  # fmt: skip
    place, zero = np.empty(m, np.int64), np.int64(0)
    for t in range(m):
        place[t] = slots[index[t]]
    add_rows_product(a.own, index, change, zero, np.int64(F_a.shape[0]), F_a)
    add_rows_product(lines, place, change, zero, np.int64(F_b.shape[0]), F_b)
    return count


@compiled()
def _next_members(beta, F, linear, l1, group, lower, upper, level, beyond, rank, chosen):
    """Samples with weight and those without that violate the level worst, in increasing order: how many there are."""
    n, most, support = beta.shape[0], 0.0, 0
    for v in range(n):
        beyond[v] = 0.0
        if beta[v] == 0.0:
            s = linear[v] - F[v]
            if upper[v] > 0.0:
                beyond[v] = max(beyond[v], s - l1[v] - level)
            if lower[v] < 0.0:
                beyond[v] = max(beyond[v], level - s - l1[v])
            most = max(most, beyond[v])
        else:
            support += 1
    count = 0
    if most > 0.0:
        count = most_of(beyond, BINS / most, group, max(FEWEST_NEW, support), rank, chosen)
    for v in range(n):
        rank[v] = beta[v] != 0.0
    for t in range(count):
        rank[chosen[t]] = 1
    count = 0
    for v in range(n):
        if rank[v] != 0:
            chosen[count] = v
            count += 1
    return count


@compiled()
def sift(
    plan, first, second, linear, l1, ridge, lower, upper, group, tol, newton, memory, wholes, reals, beta,
    F, groups, totals,
):  # fmt: skip
    """Solve the problem of two classes from beta = 0: (steps, values computed).

    The steps are -1 where this is not the way, NEVER_BEGUN where Newton's step is needed and was not given.

    ``memory`` has as many entries as the whole matrix would have; wholes (9 lines) are twice as long as there are
    samples, reals (9 lines) as long. Fills beta, F = K beta, and what `survey` finds in groups and totals.
    """
    n_i, n_j = first.X.shape[0], second.X.shape[0]
    n, half = n_i + n_j, n_i * n_j
    lines_i, lines_j = memory[:half].reshape((n_i, n_j)), memory[half : 2 * half].reshape((n_j, n_i))
    size = int(np.sqrt(n * n - 2 * half))
    size -= size % CONFLICT == 0
    block = memory[2 * half : 2 * half + size * size].reshape((size, size))
    slots, place, members, fresh = wholes[0, :n], wholes[1, :n], wholes[2, :size], wholes[3]
    chosen, number, bare_i, bare_j = wholes[4], wholes[5], wholes[6], wholes[7]
    lists, counts = np.empty((6, 3, size), np.int64), np.empty(6, np.int64)
    room, held, change, beyond = reals[:6], reals[6], reals[7], reals[8]
    program = Program(wholes[8, :n], group, linear, l1, ridge, lower, upper)
    rank, score = np.empty(n, np.int32), np.empty(size, memory.dtype)
    for v in range(n):
        slots[v], place[v], beta[v], held[v], F[v], program.sample[v] = -1, -1, 0.0, 0.0, 0.0, v
    used_i, used_j, steps, values, m = np.int64(0), np.int64(0), 0, 0, np.int64(0)
    count = min(n, max(FEWEST_FIRST, n // SAMPLES_PER_FIRST))
    for t in range(count):
        chosen[t] = t * n // count
    stage_tol = FIRST_TOL
    for _ in range(STAGES):
        if count > size:
            break
        m, newcomers = seat(chosen[:count], place, members, m, block, fresh)
        free_i, free_j = 0, 0
        for t in range(m):  # one that stays may have no line, either
            v = members[t]
            if slots[v] < 0:
                if v < n_i:
                    number[v], bare_i[free_i] = free_i, v
                    free_i += 1
                else:
                    number[v], bare_j[free_j] = free_j, v - n_i
                    free_j += 1
        between, turned = _between(plan, first, bare_i[:free_i], second, bare_j[:free_j])
        values += free_i * free_j
        _sort_newcomers(members, fresh[:newcomers], n_i, slots, number, lists, counts)
        own_i, own_j = lists[0, :, : counts[0]], lists[1, :, : counts[1]]
        bare_new_i, bare_new_j = lists[2, :, : counts[2]], lists[3, :, : counts[3]]
        lined_i, lined_j = lists[4, :, : counts[4]], lists[5, :, : counts[5]]
        for u in range(m):
            w = members[u]
            if w < n_i:
                _fill_columns(
                    w, n_i, slots, number, first.own[w], lines_i, lines_j, between, own_i, bare_new_j, lined_j, block[u]
                )
            else:
                _fill_columns(
                    w, n_i, slots, number, second.own[w - n_i], lines_j, lines_i, turned, own_j, bare_new_i, lined_i,
                    block[u],
                )  # fmt: skip
        _reflect_columns(m, fresh[:newcomers], block)
        taken, _, unbounded = solve_members(
            members[:m], block, program, beta, F, max(SHARE_OF_TOL * tol, stage_tol),
            STEPS_PER_MEMBER * m + STEPS_AT_LEAST, newton, room, score, change,
        )  # fmt: skip
        if taken == NEEDS_NEWTON:
            return NEVER_BEGUN, values
        steps += taken
        moved, of_first = 0, 0
        for v in range(n):
            if beta[v] != held[v]:
                chosen[moved], change[moved] = (v if v < n_i else v - n_i), beta[v] - held[v]
                held[v] = beta[v]
                moved += 1
                of_first += v < n_i
        added = _add_product(
            plan, first, second, chosen[:of_first], change[:of_first], slots[:n_i], used_i, lines_i, F[:n_i], F[n_i:]
        )  # fmt: skip
        used_i += added
        values += added * n_j
        added = _add_product(
            plan, second, first, chosen[of_first:moved], change[of_first:moved], slots[n_i:], used_j, lines_j, F[n_i:],
            F[:n_i],
        )  # fmt: skip
        used_j += added
        values += added * n_i
        survey(beta, F, linear, l1, ridge, lower, upper, group, groups, totals)
        violation = groups[0, M_UP] - groups[0, M_LOW]
        if violation <= tol:
            return steps, values
        if unbounded or used_i * n_j + used_j * n_i > MOSTLY_LINES * half or not violation < np.inf:
            break
        stage_tol = STAGE_TOL * violation if violation > LAST_STAGE else 0.0
        count = _next_members(beta, F, linear, l1, group, lower, upper, threshold(groups[0]), beyond, rank, chosen)
    return -1, values
