"""A cache of rows of the Gram matrix within a byte budget; the oldest rows are replaced first."""

from __future__ import annotations

import numpy as np

from mercer.gram.memory import Loan
from mercer.gram.operator import GramOperator
from mercer.kernels.features import Matrix, Vector


class MatrixRows:
    """The interface of `RowStore` for a Gram matrix that is stored in full."""

    def __init__(self, K: Matrix, n_threads: int) -> None:
        self.values = K
        self.n = len(K)
        self.diagonal: Vector = np.diagonal(K)
        self.n_threads = n_threads

    def find(self, samples: Vector) -> Vector:
        """The slots of the rows of these samples: the numbers of the samples."""
        return samples

    ensure = find

    def add_product(self, slots: Vector, weights: Vector, out: Vector) -> None:
        """out += sum_t weights[t] K[slots[t], :], in float64."""
        from mercer._compiled.shared_loops import add_rows_product

        add_rows_product(self.values, slots, weights, out, self.n_threads)


class RowStore:
    """Stored rows K[i, :] of samples i that are used repeatedly, over the columns of one operator.

    The budget is a hard limit on the bytes of stored rows. Memory is reserved at once, but touched only when rows are
    stored. When the columns change, rows are moved within the same memory.
    """

    def __init__(self, gram: GramOperator, budget: int, at_least: int = 2) -> None:
        n, size = max(1, gram.n), gram.dtype.itemsize
        # at least one working set, at most the whole matrix
        entries = max(min(at_least, n) * n, min(n * n, budget // size))
        self._loan = Loan(entries, gram.dtype)
        self.buffer = self._loan.array
        self.clock = 0
        self._lay_out(gram)

    def _lay_out(self, gram: GramOperator) -> None:
        """Start without rows, with the columns of this operator."""
        self.gram = gram
        self.capacity = min(gram.n, len(self.buffer) // max(1, gram.n))
        self.values = self.buffer[: self.capacity * gram.n].reshape(self.capacity, gram.n)
        self.slot_of = np.full(gram.n, -1, np.intp)
        self.sample_of = np.full(self.capacity, -1, np.intp)
        self.last_used = np.zeros(self.capacity, np.int64)
        self.used = 0
        self._next = 0

    @property
    def has_room(self) -> bool:
        """Whether there are unused slots, so that no row has been replaced yet."""
        return self.used < self.capacity

    def _adopt(self, samples: Vector, last_used: Vector) -> None:
        """Assign the first slots to these samples, whose rows are in place."""
        count = len(samples)
        self.slot_of[samples] = np.arange(count)
        self.sample_of[:count] = samples
        self.last_used[:count] = last_used
        self.used = count

    def find(self, samples: Vector) -> Vector:
        """The slots of the rows of these samples; -1 for rows that are not stored."""
        return self._look_up(samples)[0]

    def _look_up(self, samples: Vector) -> tuple[Vector, Vector]:
        """The slots of the rows of these samples, and the samples whose rows are missing, without repeats."""
        from mercer._compiled.stored_rows import find_rows

        self.clock += 1
        slots, missing = np.empty((2, len(samples)), np.intp)
        count = find_rows(self.slot_of, self.last_used, self.clock, samples, slots, missing)
        return slots, missing[:count]

    def ensure(self, samples: Vector) -> Vector:
        """The slots of the rows of these samples. Missing rows are computed."""
        slots, missing = self._look_up(samples)
        if len(missing):
            missing.sort()
            self._compute(missing)
            slots = self.slot_of[samples]
        return slots

    def _free_slots(self, count: int) -> Vector:
        """Unused slots, then those of the oldest rows that are not in use now.

        They are in memory order, so that consecutive new rows are written without a copy.
        """
        fresh = min(count, self.capacity - self.used)
        slots = np.arange(self.used, self.used + fresh)
        self.used += fresh
        if fresh < count:
            around = np.roll(np.arange(self.capacity), -self._next)
            around = around[self.last_used[around] != self.clock]
            old = around[~np.isin(around, slots)][: count - fresh]
            self._next = (int(old[-1]) + 1) % self.capacity
            self.slot_of[self.sample_of[old]] = -1
            slots = np.concatenate([slots, old])
        return slots

    def _compute(self, samples: Vector) -> None:
        """Compute the missing rows of these samples, in groups of adjacent slots."""
        slots = self._free_slots(len(samples))
        ends = [len(slots)]
        if slots[-1] - slots[0] != len(slots) - 1:
            ends = [*(np.flatnonzero(np.diff(slots) != 1) + 1).tolist(), *ends]
        start = 0
        for end in ends:
            features, first = self.gram.features.take(samples[start:end]), slots[start]
            self.gram.rows(features, out=self.values[first : first + end - start])
            start = end
        self.slot_of[samples] = slots
        self.sample_of[slots] = samples
        self.last_used[slots] = self.clock

    def add_product(self, slots: Vector, weights: Vector, out: Vector) -> None:
        """out += sum_t weights[t] K[sample of slots[t], :], in float64."""
        from mercer._compiled.shared_loops import add_rows_product

        add_rows_product(self.values, slots, weights, out, self.gram.n_threads)

    def restrict(self, index: Vector, gram: GramOperator) -> None:
        """Keep only the columns ``index`` and the rows of the same samples; ``gram`` is their operator."""
        from mercer._compiled.stored_rows import compact

        n_old = self.gram.n
        old = self.slot_of[index]
        kept = np.flatnonzero(old >= 0)
        kept = kept[np.argsort(old[kept])]
        slots, last_used = old[kept], self.last_used[old[kept]]
        compact(self.buffer, n_old, slots, index)
        self._lay_out(gram)
        self._adopt(kept, last_used)

    def extend(self, columns: Vector, gram: GramOperator, keep: Vector) -> None:
        """Add columns: the old columns have the positions ``columns`` among those of ``gram``.

        Rows of samples marked in ``keep``, a mask over the old columns, stay, and their new entries are computed.
        """
        from mercer._compiled.stored_rows import compact, fill, spread

        n_old = self.gram.n
        slots = np.flatnonzero(keep[self.sample_of[: self.used]])
        slots = slots[: len(self.buffer) // gram.n]
        owners, last_used = columns[self.sample_of[slots]], self.last_used[slots]
        compact(self.buffer, n_old, slots, np.arange(n_old))
        spread(self.buffer, n_old, len(slots), columns, gram.n)
        self._lay_out(gram)
        self._adopt(owners, last_used)
        fresh = np.setdiff1d(np.arange(gram.n), columns, assume_unique=True)
        if len(fresh) and len(owners):
            features = gram.features
            fill(self.buffer, gram.n, fresh, gram.rows(features.take(owners), features.take(fresh)))
