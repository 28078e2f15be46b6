"""Solve a two-class problem whose within-class Gram blocks are stored; the cross block is computed lazily.

    min  1/2 b'Kb - linear'b + sum l1|b| + 1/2 sum ridge b^2     s.t.  lower <= b <= upper,  sum(b) fixed

A *cross row* of a sample are its kernel values with all samples of the other class. Only samples with weight need
theirs, to update F = Kb. Other samples need values with the members of the working set alone. Each stage

1. places the members in a block, computing the cross values that members without a cross row need,
2. solves the block by SMO,
3. computes the cross rows of members that have moved, and updates F of all samples,
4. selects the next members: all samples with weight, and the worst violators of the rest,

until no sample violates by more than tol. All stages are one compiled call: a stage takes less time than the calls from
Python that it would need, and threads that solve pairs side by side never wait for the interpreter.
"""

from typing import Any, NamedTuple

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.kernel_blocks import fill_block
from mercer._compiled.program import Program
from mercer._compiled.tiles import add_rows_product, pack
from mercer.problems._optimality_loops import M_LOW, M_UP, optimality_sums, threshold
from mercer.svm._newton_loops import NEEDS_NEWTON
from mercer.svm._round_loops import BINS, TILE_COLUMNS, TILE_LINES, largest_values, place_members
from mercer.svm._smo_loops import solve_members

# the first members: one in so many samples, at least so many; the tolerance of their problem
SAMPLES_PER_FIRST, FEWEST_FIRST, FIRST_TOL = 8, 200, 0.1
# give up when the cross rows of both classes hold this share of the cross block (2 at most): nearly all samples have
# weight, and the dense solver is quicker
MOST_CROSS_ROWS = 1.6
# new members: as many as there are support vectors, at least so many
FEWEST_NEW = 32
# a stage is solved to this share of the violation of all samples; to tol once that violation is below the second
STAGE_TOL, LAST_STAGE = 0.1, 0.3
STAGES, STEPS_PER_MEMBER, STEPS_AT_LEAST = 40, 100, 1000
# entries of a column of a block compete for the same cache sets if the row length is a multiple of this
CONFLICT = 128
# share of tol for a stage: the rest is left for the rounding of float32 scores
SHARE_OF_TOL = 0.9


class ClassBlock(NamedTuple):
    """One of the two classes: its samples, their norms and panels (see `tiles`), and its within-class Gram block."""

    X: Any
    norms: Any
    panels: Any
    gram: Any


@compiled()
def _copy_samples(X, norms, index, rows, row_norms):
    """Copy the samples X[index] and their norms."""
    for t in range(index.shape[0]):
        source, target = X[index[t]], rows[t]
        for k in range(source.shape[0]):
            target[k] = source[k]
        row_norms[t] = norms[index[t]]


@compiled()
def _cross_values(plan, a, index_a, b, index_b):
    """The kernel values of some samples of class a with some of class b, and their transpose."""
    d, width = a.X.shape[1], a.panels.shape[2]
    n_a, n_b = index_a.shape[0], index_b.shape[0]
    rows, row_norms = np.empty((n_a, d), a.X.dtype), np.empty(n_a, a.X.dtype)
    columns, column_norms = np.empty((n_b, d), a.X.dtype), np.empty(n_b, a.X.dtype)
    _copy_samples(a.X, a.norms, index_a, rows, row_norms)
    _copy_samples(b.X, b.norms, index_b, columns, column_norms)
    count = (n_b + width - 1) // width
    panels, out = np.empty((count, d, width), a.X.dtype), np.empty((n_a, n_b), a.X.dtype)
    zero = np.int64(0)  # a literal would compile the callee twice
    pack(columns, zero, count, panels)
    if n_a > 0 and n_b > 0:
        fill_block(plan, rows, row_norms, panels, column_norms, zero, count, out)
    transposed = np.empty((n_b, n_a), a.X.dtype)
    for c in range(n_b):
        here = transposed[c]
        for r in range(n_a):
            here[r] = out[r, c]
    return out, transposed


@compiled(merged=True)
def _gather(here, places, source, index):
    """here[places[t]] = source[index[t]]."""
    for t in range(places.shape[0]):  # unsigned: no test for a negative index
        here[np.uint64(places[t])] = source[np.uint64(index[t])]


@compiled()
def _fill_columns(w, n_i, slots, cross_index, gram, cross_rows, others_rows, cross, same, without, stored, here):
    """Write the kernel values of member w with all new members into its row of the block.

    ``same`` lists the new members of its own class, ``without`` and ``stored`` those of the other class without and
    with a stored cross row. Each list has rows (place, number in its class, index in the cross block or cross row).
    ``cross_index`` are the indices in ``cross`` of members without a cross row.
    """
    _gather(here, same[0], gram, same[1])
    if slots[w] >= 0:
        row = cross_rows[slots[w]]
        _gather(here, without[0], row, without[1])
        _gather(here, stored[0], row, stored[1])
        return
    _gather(here, without[0], cross[cross_index[w]], without[2])
    position = w if w < n_i else w - n_i
    for t in range(stored.shape[1]):
        here[stored[0, t]] = others_rows[stored[2, t], position]


@compiled()
def _sort_new_members(members, new_places, n_i, slots, cross_index, lists, counts):
    """Fill six lists of new members: for each class all, those without and those with a cross row; and their counts.

    A list has rows (place, number in its class, index in the cross block or cross row).
    """
    for k in range(6):
        counts[k] = 0
    for t in range(new_places.shape[0]):
        v = members[new_places[t]]
        c = 0 if v < n_i else 1
        position, stored = (v if c == 0 else v - n_i), slots[v] >= 0
        for k in (c, 4 + c if stored else 2 + c):
            here, place = lists[k], counts[k]
            here[0, place], here[1, place] = new_places[t], position
            here[2, place] = slots[v] if stored else cross_index[v]
            counts[k] += 1


@compiled()
def _mirror_columns(m, new_places, block):
    """Copy the columns of new members to their rows, by tiles that stay in the cache."""
    for start in range(0, new_places.shape[0], TILE_LINES):
        some = new_places[start : start + TILE_LINES]
        for top in range(0, m, TILE_COLUMNS):
            bottom = min(top + TILE_COLUMNS, m)
            for k in range(some.shape[0]):
                here, column = block[some[k]], np.uint64(some[k])
                for u in range(top, bottom):
                    here[u] = block[np.uint64(u), column]


@compiled()
def _update_F(plan, a, b, index, change, slots, used, cross_rows, F_a, F_b):
    """Add the change of beta of some samples of class a to F of both classes; the number of cross rows computed.

    Cross rows that are missing are stored from row ``used`` on. Edits slots, cross_rows, F_a and F_b.
    """
    d, m = a.X.shape[1], index.shape[0]
    missing, count = np.empty(m, np.int64), 0
    for t in range(m):
        if slots[index[t]] < 0:
            missing[count], slots[index[t]] = index[t], used + count
            count += 1
    if count > 0:
        rows, row_norms = np.empty((count, d), a.X.dtype), np.empty(count, a.X.dtype)
        _copy_samples(a.X, a.norms, missing[:count], rows, row_norms)
        fill_block(
            plan, rows, row_norms, b.panels, b.norms, np.int64(0), np.int64(b.panels.shape[0]),
            cross_rows[used : used + count],
        )  # fmt: skip
    place, zero = np.empty(m, np.int64), np.int64(0)
    for t in range(m):
        place[t] = slots[index[t]]
    add_rows_product(a.gram, index, change, zero, np.int64(F_a.shape[0]), F_a)
    add_rows_product(cross_rows, place, change, zero, np.int64(F_b.shape[0]), F_b)
    return count


@compiled()
def _select_members(beta, F, linear, l1, group, lower, upper, level, excess, marks, chosen):
    """Fill ``chosen`` with the samples with weight and the worst violators of the rest, sorted; their number.

    ``level`` is the threshold b; ``excess`` and ``marks`` are scratch space.
    """
    n, most, support = beta.shape[0], 0.0, 0
    for v in range(n):
        excess[v] = 0.0
        if beta[v] == 0.0:
            s = linear[v] - F[v]
            if upper[v] > 0.0:
                excess[v] = max(excess[v], s - l1[v] - level)
            if lower[v] < 0.0:
                excess[v] = max(excess[v], level - s - l1[v])
            most = max(most, excess[v])
        else:
            support += 1
    count = 0
    if most > 0.0:
        count = largest_values(excess, BINS / most, group, max(FEWEST_NEW, support), marks, chosen)
    for v in range(n):
        marks[v] = beta[v] != 0.0
    for t in range(count):
        marks[chosen[t]] = 1
    count = 0
    for v in range(n):
        if marks[v] != 0:
            chosen[count] = v
            count += 1
    return count


@compiled()
def solve_lazy_pair(
    plan, first, second, linear, l1, ridge, lower, upper, group, tol, newton, memory, integers, reals, beta,
    F, groups, totals,
):  # fmt: skip
    """Solve the problem of two classes from beta = 0: (steps, number of kernel values computed).

    The steps are -1 if tol was not reached (the dense solver is to take over), NEEDS_NEWTON if Newton's step is
    needed and its address is 0. ``memory`` has as many entries as the whole Gram matrix. ``integers`` (9 rows, twice as
    long as there are samples) and ``reals`` (9 rows, as long) are scratch space. Fills beta, F = K beta, and groups and
    totals (see `optimality_sums`).
    """
    n_i, n_j = first.X.shape[0], second.X.shape[0]
    n, cross_size = n_i + n_j, n_i * n_j
    cross_rows_i = memory[:cross_size].reshape((n_i, n_j))
    cross_rows_j = memory[cross_size : 2 * cross_size].reshape((n_j, n_i))
    size = int(np.sqrt(n * n - 2 * cross_size))
    size -= size % CONFLICT == 0
    block = memory[2 * cross_size : 2 * cross_size + size * size].reshape((size, size))
    slots, place, members, new_places = integers[0, :n], integers[1, :n], integers[2, :size], integers[3]
    chosen, cross_index, without_i, without_j = integers[4], integers[5], integers[6], integers[7]
    lists, counts = np.empty((6, 3, size), np.int64), np.empty(6, np.int64)
    room, old_beta, change, excess = reals[:6], reals[6], reals[7], reals[8]
    program = Program(integers[8, :n], group, linear, l1, ridge, lower, upper)
    marks, score = np.empty(n, np.int32), np.empty(size, memory.dtype)
    for v in range(n):
        slots[v], place[v], beta[v], old_beta[v], F[v], program.sample[v] = -1, -1, 0.0, 0.0, 0.0, v
    used_i, used_j, steps, values, m = np.int64(0), np.int64(0), 0, 0, np.int64(0)
    count = min(n, max(FEWEST_FIRST, n // SAMPLES_PER_FIRST))
    for t in range(count):
        chosen[t] = t * n // count
    stage_tol = FIRST_TOL
    for _ in range(STAGES):
        if count > size:
            break
        m, n_added = place_members(chosen[:count], place, members, m, block, new_places)
        n_without_i, n_without_j = 0, 0
        for t in range(m):  # members that stay may have no cross row, either
            v = members[t]
            if slots[v] < 0:
                if v < n_i:
                    cross_index[v], without_i[n_without_i] = n_without_i, v
                    n_without_i += 1
                else:
                    cross_index[v], without_j[n_without_j] = n_without_j, v - n_i
                    n_without_j += 1
        cross, transposed = _cross_values(plan, first, without_i[:n_without_i], second, without_j[:n_without_j])
        values += n_without_i * n_without_j
        _sort_new_members(members, new_places[:n_added], n_i, slots, cross_index, lists, counts)
        same_i, same_j = lists[0, :, : counts[0]], lists[1, :, : counts[1]]
        new_without_i, new_without_j = lists[2, :, : counts[2]], lists[3, :, : counts[3]]
        new_stored_i, new_stored_j = lists[4, :, : counts[4]], lists[5, :, : counts[5]]
        for u in range(m):
            w = members[u]
            if w < n_i:
                _fill_columns(
                    w, n_i, slots, cross_index, first.gram[w], cross_rows_i, cross_rows_j, cross, same_i, new_without_j,
                    new_stored_j, block[u],
                )  # fmt: skip
            else:
                _fill_columns(
                    w, n_i, slots, cross_index, second.gram[w - n_i], cross_rows_j, cross_rows_i, transposed, same_j,
                    new_without_i, new_stored_i, block[u],
                )  # fmt: skip
        _mirror_columns(m, new_places[:n_added], block)
        taken, _, unbounded = solve_members(
            members[:m], block, program, beta, F, max(SHARE_OF_TOL * tol, stage_tol),
            STEPS_PER_MEMBER * m + STEPS_AT_LEAST, newton, room, score, change,
        )  # fmt: skip
        if taken == NEEDS_NEWTON:
            return NEEDS_NEWTON, values
        steps += taken
        moved, of_first = 0, 0
        for v in range(n):
            if beta[v] != old_beta[v]:
                chosen[moved], change[moved] = (v if v < n_i else v - n_i), beta[v] - old_beta[v]
                old_beta[v] = beta[v]
                moved += 1
                of_first += v < n_i
        added = _update_F(
            plan, first, second, chosen[:of_first], change[:of_first], slots[:n_i], used_i, cross_rows_i, F[:n_i],
            F[n_i:],
        )  # fmt: skip
        used_i += added
        values += added * n_j
        added = _update_F(
            plan, second, first, chosen[of_first:moved], change[of_first:moved], slots[n_i:], used_j, cross_rows_j,
            F[n_i:], F[:n_i],
        )  # fmt: skip
        used_j += added
        values += added * n_i
        optimality_sums(beta, F, linear, l1, ridge, lower, upper, group, groups, totals)
        violation = groups[0, M_UP] - groups[0, M_LOW]
        if violation <= tol:
            return steps, values
        if unbounded or used_i * n_j + used_j * n_i > MOST_CROSS_ROWS * cross_size or not violation < np.inf:
            break
        stage_tol = STAGE_TOL * violation if violation > LAST_STAGE else 0.0
        count = _select_members(beta, F, linear, l1, group, lower, upper, threshold(groups[0]), excess, marks, chosen)
    return -1, values
