"""Kernel values of two classes whose within-class Gram blocks are stored; the cross block is computed lazily.

The *cross row* of a sample holds its kernel values with all samples of the other class. Only samples that move need
one, to update F = Kb. Other samples need values with the members of the working set alone. `read_lazy` fills the block
of a working set, `add_lazy` updates F: the row source of `_driver_loops.drive` that computes values on demand.
"""

from typing import Any, NamedTuple

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.tiles import _pack, add_rows_product, fill_block

# give up when the cross rows of both classes hold this share of the cross block (2 at most): nearly all samples have
# weight, and the dense solver is quicker
MOST_CROSS_ROWS = 1.6
# entries of ``counts``: the cross rows of the two classes that are stored, the kernel values computed so far
VALUES = 2


class ClassBlock(NamedTuple):
    """One of the two classes: its samples, their norms and panels (see `tiles`), and its within-class Gram block."""

    X: Any
    norms: Any
    panels: Any
    gram: Any


class LazyPair(NamedTuple):
    """Two classes and the cross rows stored so far. Samples are numbered from 0, those of the first class first.

    ``slots[v]`` is the cross row of sample v, -1 for none. ``counts``: see VALUES. ``numbers`` (three rows, as long as
    there are samples), ``lists`` (6 x 3 x size of the block) and ``change`` are scratch space.
    """

    formula: Any
    first: Any
    second: Any
    first_rows: Any
    second_rows: Any
    slots: Any
    counts: Any
    numbers: Any
    lists: Any
    change: Any


@compiled()
def _copy_samples(X, norms, index, rows, row_norms):
    """Copy the samples X[index] and their norms."""
    for t in range(index.shape[0]):
        source, target = X[index[t]], rows[t]
        for k in range(source.shape[0]):
            target[k] = source[k]
        row_norms[t] = norms[index[t]]


@compiled(compact=True)
def _cross_values(formula, a, index_a, b, index_b):
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
    _pack(columns, panels)
    if n_a > 0 and n_b > 0:
        fill_block(formula, rows, row_norms, panels, column_norms, zero, count, out)
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
def _fill_row(w, n_i, slots, cross_index, gram, cross_rows, others_rows, cross, same, without, stored, here):
    """Write the kernel values of member w with all members into its row of the block.

    ``same`` lists the members of its own class, ``without`` and ``stored`` those of the other class without and with a
    stored cross row. Each list has rows (place, number in its class, index in the cross block or cross row).
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
def _sort_members(members, n_i, slots, cross_index, lists):
    """Fill six lists of members: for each class all, those without and those with a cross row; their lengths.

    A list has rows (place, number in its class, index in the cross block or cross row).
    """
    counts = np.zeros(6, np.int64)
    for t in range(members.shape[0]):
        v = members[t]
        c = 0 if v < n_i else 1
        position, stored = (v if c == 0 else v - n_i), slots[v] >= 0
        for k in (c, 4 + c if stored else 2 + c):
            here, place = lists[k], counts[k]
            here[0, place], here[1, place] = t, position
            here[2, place] = slots[v] if stored else cross_index[v]
            counts[k] += 1
    return counts


@compiled()
def _update_F(formula, a, b, index, change, slots, used, cross_rows, F_a, F_b):
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
            formula, rows, row_norms, b.panels, b.norms, np.int64(0), np.int64(b.panels.shape[0]),
            cross_rows[used : used + count],
        )  # fmt: skip
    place, zero = np.empty(m, np.int64), np.int64(0)
    for t in range(m):
        place[t] = slots[index[t]]
    add_rows_product(a.gram, index, change, zero, np.int64(F_a.shape[0]), F_a)
    add_rows_product(cross_rows, place, change, zero, np.int64(F_b.shape[0]), F_b)
    return count


@compiled(compact=True)
def read_lazy(pair, members, new_places, block):
    """Write the kernel values of the members at these places with all members into their rows of the block."""
    first, second, slots, lists = pair.first, pair.second, pair.slots, pair.lists
    n_i, cross_index, without_i, without_j = first.X.shape[0], pair.numbers[0], pair.numbers[1], pair.numbers[2]
    n_without_i, n_without_j = 0, 0
    for t in range(members.shape[0]):  # members that stay may also lack a cross row
        v = members[t]
        if slots[v] < 0:
            if v < n_i:
                cross_index[v], without_i[n_without_i] = n_without_i, v
                n_without_i += 1
            else:
                cross_index[v], without_j[n_without_j] = n_without_j, v - n_i
                n_without_j += 1
    cross, transposed = _cross_values(pair.formula, first, without_i[:n_without_i], second, without_j[:n_without_j])
    pair.counts[VALUES] += n_without_i * n_without_j
    counts = _sort_members(members, n_i, slots, cross_index, lists)
    for k in range(new_places.shape[0]):
        u = new_places[k]
        w = members[u]
        if w < n_i:
            _fill_row(
                w, n_i, slots, cross_index, first.gram[w], pair.first_rows, pair.second_rows, cross,
                lists[0, :, : counts[0]], lists[3, :, : counts[3]], lists[5, :, : counts[5]], block[u],
            )  # fmt: skip
        else:
            _fill_row(
                w, n_i, slots, cross_index, second.gram[w - n_i], pair.second_rows, pair.first_rows, transposed,
                lists[1, :, : counts[1]], lists[2, :, : counts[2]], lists[4, :, : counts[4]], block[u],
            )  # fmt: skip


@compiled(compact=True)
def add_lazy(pair, moved, change, F):
    """Add the change of beta of the samples that moved to F; whether few enough cross rows are stored to go on."""
    first, second, index, part = pair.first, pair.second, pair.numbers[1], pair.change
    n_i, n_j = first.X.shape[0], second.X.shape[0]
    for c in range(2):
        count = 0
        for t in range(moved.shape[0]):
            if (moved[t] < n_i) == (c == 0):
                index[count], part[count] = moved[t] if c == 0 else moved[t] - n_i, change[t]
                count += 1
        if c == 0:
            added = _update_F(
                pair.formula, first, second, index[:count], part[:count], pair.slots[:n_i], pair.counts[0],
                pair.first_rows, F[:n_i], F[n_i:],
            )  # fmt: skip
        else:
            added = _update_F(
                pair.formula, second, first, index[:count], part[:count], pair.slots[n_i:], pair.counts[1],
                pair.second_rows, F[n_i:], F[:n_i],
            )  # fmt: skip
        pair.counts[c] += added
        pair.counts[VALUES] += added * (n_j if c == 0 else n_i)
    return pair.counts[0] * n_j + pair.counts[1] * n_i <= MOST_CROSS_ROWS * n_i * n_j
