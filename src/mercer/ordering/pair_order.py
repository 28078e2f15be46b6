"""Sums over ordered pairs in O(n log² n), without forming the pairs.

Samples have a group and a rank in it. A pair (i, j) is ordered if i and j are in one group, the rank of i is higher,
and j may be the lower one of a pair (of survival times only events may). At the highest bit in which two ranks differ,
i has a 1 and j a 0, and the bits above are equal. So all pairs are, bit by bit, those of the high and the low samples
of each node (group, bits above). Within a node the low samples are sorted by their value F: the pairs with
F_j > F_i − 1 of a high sample i are then an interval, and sums over intervals are differences of cumulative sums.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer.kernels.features import Matrix, Vector


class Level(NamedTuple):
    """The pairs of one bit: samples ``high`` and ``low`` with their nodes; low ones are sorted by node.

    ``ends`` is the end of each node among the low ones.
    """

    high: Vector
    low: Vector
    high_node: Vector
    low_node: Vector
    ends: Vector


class Intervals(NamedTuple):
    """For each high sample of a level the interval [start, stop) of its partners in ``order``, the sorted low ones."""

    high: Vector
    order: Vector
    start: Vector
    stop: Vector

    def over_partners(self, values: Matrix) -> Matrix:
        """Σ values_j over the partners j of each high sample; ``values`` may have several columns."""
        total = np.zeros((len(self.order) + 1, *values.shape[1:]))
        np.cumsum(values[self.order], axis=0, out=total[1:])
        return total[self.stop] - total[self.start]

    def over_high(self, values: Vector) -> Vector:
        """Σ values_i over the high samples i whose partner each low sample is; ``values`` are those of ``high``."""
        n = len(self.order) + 1
        change = np.bincount(self.start, weights=values, minlength=n) - np.bincount(
            self.stop, weights=values, minlength=n
        )
        return np.cumsum(change)[:-1]

    @property
    def n_pairs(self) -> int:
        """The number of pairs in all intervals."""
        return int((self.stop - self.start).sum())

    def pairs(self) -> tuple[Vector, Vector]:
        """The samples i and j of all pairs, one by one."""
        count = self.stop - self.start
        ends = np.cumsum(count)
        place = np.arange(int(count.sum())) + np.repeat(self.start - (ends - count), count)
        return np.repeat(self.high, count), self.order[place]


class PairOrder:
    """The ordered pairs of samples with groups and ranks; ``may_be_low`` marks samples that may be the lower one."""

    def __init__(self, rank: Vector, group: Vector | None = None, may_be_low: Vector | None = None) -> None:
        self.n = len(rank)
        group = np.zeros(self.n, np.intp) if group is None else group
        allowed = np.ones(self.n, bool) if may_be_low is None else may_be_low
        rank = _dense_ranks(rank, group)
        self.levels: list[Level] = []
        self.n_pairs = 0
        for bit in range(int(rank.max(initial=0)).bit_length()):
            is_high = (rank >> bit) & 1 == 1
            above = rank >> (bit + 1)
            node = np.unique(np.stack([group, above]), axis=1, return_inverse=True)[1].ravel()
            size = int(node.max()) + 1
            n_low = np.bincount(node[~is_high & allowed], minlength=size)
            high = np.flatnonzero(is_high & (n_low[node] > 0))
            low = np.flatnonzero(~is_high & allowed)
            low = low[np.argsort(node[low], kind="stable")]
            if len(high):
                self.n_pairs += int(n_low[node[high]].sum())
                self.levels.append(Level(high, low, node[high], node[low], np.cumsum(n_low)))

    def intervals(self, F: Vector, margin: float, ties: bool = False) -> list[Intervals]:
        """The pairs with F_j > F_i − margin, or F_j ≥ F_i − margin with ``ties``."""
        values = np.sort(F)
        place = np.searchsorted(values, F, side="left")
        first = np.searchsorted(values, F - margin, side="left" if ties else "right")
        found = []
        for level in self.levels:
            key = level.low_node * (self.n + 1) + place[level.low]
            order = np.argsort(key, kind="stable")
            start = np.searchsorted(key[order], level.high_node * (self.n + 1) + first[level.high], side="left")
            found.append(Intervals(level.high, level.low[order], start, level.ends[level.high_node]))
        return found


def _dense_ranks(rank: Vector, group: Vector) -> Vector:
    """Ranks 0, 1, … within each group, equal where the given ones are."""
    order = np.lexsort((rank, group))
    new_group = np.diff(group[order], prepend=-1) != 0
    grows = np.diff(rank[order], prepend=0) != 0
    count = np.cumsum(grows & ~new_group)
    # the count at the start of each group is subtracted
    starts = np.flatnonzero(new_group)
    offset = np.repeat(count[starts], np.diff(np.append(starts, len(rank))))
    dense = np.empty(len(rank), np.int64)
    dense[order] = count - offset
    return dense


def concordance(order: PairOrder, F: Vector) -> float:
    """The share of ordered pairs with F_i > F_j; ties count half. NaN if there are no pairs."""
    if order.n_pairs == 0:
        return float("nan")
    ones = np.ones(order.n)
    wrong = sum(float(part.over_partners(ones).sum()) for part in order.intervals(F, 0.0))
    wrong_or_tied = sum(float(part.over_partners(ones).sum()) for part in order.intervals(F, 0.0, ties=True))
    return 1.0 - 0.5 * (wrong + wrong_or_tied) / order.n_pairs
