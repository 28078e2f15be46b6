"""Stored columns of K for samples that may be added and removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.gram.operator import GramOperator, check_finite
from mercer.kernels.base import Kernel
from mercer.kernels.features import Features, Matrix, Vector

# new memory is larger than what is needed by this factor
GROWTH = 1.25


def without(values: Vector, removed: Any, axis: int = 0) -> Vector:
    """The entries along an axis, the first or the last, without those at sorted positions."""
    if len(removed) != 1:
        return np.delete(values, removed, axis=axis)
    i = removed[0]  # numpy.delete would take several times as long
    if axis == 0:
        return np.concatenate((values[:i], values[i + 1 :]))
    return np.concatenate((values[..., :i], values[..., i + 1 :]), axis=-1)


class KernelColumns:
    """Columns k(x_i, ·) of some samples i at all samples, in float64; each column is a row of ``values``.

    The samples are numbered 0, 1, … in the user's order. In ``values`` they stand in an order of their own, so that a
    removed sample is overwritten by the last one: everything else stays where it is.

    Attributes
    ----------
    values : the memory; what belongs to no sample is 0.
    place : where each sample stands along a column.
    row : the row of ``values`` that holds the column of each sample; -1 if it is not stored.
    count : the number of stored columns.
    """

    def __init__(self, n: int) -> None:
        self.values = np.zeros((0, 0))
        self.place = np.arange(n)
        self.row = np.full(n, -1, np.intp)
        self.count = 0

    @property
    def n(self) -> int:
        """The number of samples."""
        return len(self.place)

    def ensure(self, kernel: Kernel, features: Callable[[], Features], samples: Vector, budget: int) -> bool:
        """Compute the columns of these samples that are not stored; False if they do not fit into the budget of bytes.

        ``features`` prepares all samples.
        """
        missing = samples[self.row[samples] < 0]
        if len(missing) == 0:
            return True
        if 8 * (self.count + len(missing)) * self.n > budget:
            if 8 * len(samples) * self.n > budget:
                return False
            self._keep(samples)
        all_samples = features()
        # few columns are prepared faster than all samples
        columns = GramOperator(kernel, all_samples).rows(all_samples, all_samples.take(missing)).T
        check_finite(columns)
        self._reserve(self.count + len(missing), self.n)
        rows = np.arange(self.count, self.count + len(missing))
        self.values[self.count : self.count + len(missing), self.place] = columns
        self.row[missing] = rows
        self.count += len(missing)
        return True

    def _keep(self, samples: Vector) -> None:
        """Forget the columns of all other samples."""
        kept = samples[self.row[samples] >= 0]
        self.values = self.values[self.row[kept]]
        self.row[:] = -1
        self.row[kept] = np.arange(len(kept))
        self.count = len(kept)

    def _reserve(self, rows: int, columns: int) -> None:
        """Enlarge the memory if it has fewer rows or columns."""
        height, width = self.values.shape
        if rows <= height and columns <= width:
            return
        height = height if rows <= height else int(GROWTH * rows) + 16
        width = width if columns <= width else int(GROWTH * columns) + 16
        values = np.zeros((height, width))
        n = min(self.n, self.values.shape[1])
        values[: self.count, :n] = self.values[: self.count, :n]
        self.values = values

    def append(self, columns: Matrix) -> None:
        """Add samples behind the others. ``columns`` are their values with all samples, old and new, one row each."""
        m, n = len(columns), self.n
        stored = np.flatnonzero(self.row >= 0)
        self._reserve(self.count + m, n + m)
        self.place = np.append(self.place, np.arange(n, n + m))
        self.values[self.row[stored], n : n + m] = columns[:, stored].T
        self.values[self.count : self.count + m, self.place] = columns
        self.row = np.append(self.row, np.arange(self.count, self.count + m))
        self.count += m

    def remove(self, samples: Vector) -> None:
        """Remove samples, and overwrite their values."""
        for i in sorted(samples.tolist(), reverse=True):
            if self.row[i] >= 0:
                self.count -= 1
                self.values[self.row[i]] = self.values[self.count]
                self.row[self.row == self.count] = self.row[i]
                self.values[self.count] = 0.0
            last = self.n - 1
            if self.count:
                self.values[: self.count, self.place[i]] = self.values[: self.count, last]
                self.values[: self.count, last] = 0.0
            self.place[self.place == last] = self.place[i]
            self.place, self.row = without(self.place, [i]), without(self.row, [i])

    def add_product(self, samples: Vector, weights: Vector, out: Vector) -> None:
        """out += Σ weights_t K[:, samples_t]. Their columns are stored."""
        from mercer._compiled.tiles import add_rows_product

        change = np.zeros(self.n)
        add_rows_product(self.values, self.row[samples], weights, 0, self.n, change)
        out += change[self.place]

    def block(self, samples: Vector) -> Matrix:
        """K[samples, samples]. Their columns are stored."""
        return self.values[self.row[samples][:, None], self.place[samples]]
