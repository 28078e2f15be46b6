"""Stored columns of K for samples that may be added and removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.gram.operator import GramOperator, check_finite
from mercer.kernels.base import Kernel
from mercer.kernels.features import Features, Matrix, Vector, VectorFeatures

# new memory is this many times the memory that is needed
GROWTH = 1.5
# of a float64
BYTES = 8


def without(values: Vector, removed: Any, axis: int = 0) -> Vector:
    """The entries along an axis, the first or the last, without those at sorted positions."""
    if len(removed) != 1:
        return np.delete(values, removed, axis=axis)
    i = removed[0]  # numpy.delete would take several times as long
    if axis == 0:
        return np.concatenate((values[:i], values[i + 1 :]))
    return np.concatenate((values[..., :i], values[..., i + 1 :]), axis=-1)


def kernel_columns(kernel: Kernel, features: Features, samples: Vector) -> Matrix:
    """K[samples, :]."""
    few = features.take(samples)  # few columns are prepared faster than all samples
    values = GramOperator(kernel, features).rows(features, few).T
    check_finite(values)
    if isinstance(features, VectorFeatures) and isinstance(few, VectorFeatures):
        features.known_formula = few.known_formula  # for the next columns
    return values


class KernelColumns:
    """Columns k(x_i, ·) of some samples i at all samples, in float64; each column is a row of ``values``.

    The samples are numbered 0, 1, … in the user's order. In ``values`` they stand in an order of their own: those with
    stored columns first, and a removed sample is overwritten by the last one. Thus an update moves few numbers, and
    blocks of stored columns lie close together.

    Attributes
    ----------
    values : values[place[i], place[j]] = k(x_i, x_j) if the column of i is stored; entries without a sample are 0.
    place, sample : where each sample stands, and which sample stands at each place.
    count : the number of stored columns, those of the samples at the places 0, 1, …
    """

    def __init__(self, n: int) -> None:
        self.values = np.zeros((0, 0))
        self.place, self.sample = np.arange(n), np.arange(n)
        self.count = 0

    @property
    def n(self) -> int:
        """The number of samples."""
        return len(self.place)

    def has(self, samples: Vector) -> Vector:
        """Whether the columns of these samples are stored."""
        return self.place[samples] < self.count

    def columns(self, samples: Vector) -> Matrix:
        """K[samples, :] in the samples' order. Their columns are stored."""
        return self.values[self.place[samples]][:, self.place]

    def block(self, samples: Vector) -> Matrix:
        """K[samples, samples]. Their columns are stored."""
        from mercer.updates._working_set_loops import copy_block

        out = np.empty((len(samples), len(samples)))
        copy_block(self.values, self.place[samples], out)
        return out

    def add_product(self, samples: Vector, weights: Vector, out: Vector) -> None:
        """out += Σ weights_t K[:, samples_t]. Their columns are stored."""
        from mercer._compiled.tiles import add_rows_product

        change = np.zeros(self.n)
        add_rows_product(self.values, self.place[samples], weights, 0, self.n, change)
        out += change[self.place]

    # ---- changes ---------------------------------------------------------------------------------------------

    def ensure(self, compute: Callable[[Vector], Matrix], samples: Vector, budget: int) -> bool:
        """Store the columns of these samples; False if they do not fit into the budget of bytes.

        ``compute`` gives K[missing, :] for samples whose columns are not stored.
        """
        missing = samples[self.place[samples] >= self.count]
        if len(missing) == 0:
            return True
        if BYTES * (self.count + len(missing)) * self.n > budget:
            if BYTES * len(samples) * self.n > budget:
                return False
            self._keep(samples)
        columns = compute(missing)
        self._reserve(self.count + len(missing), self.n)
        for i in missing.tolist():
            self._swap(int(self.place[i]), self.count)
            self.count += 1
        self.values[self.count - len(missing) : self.count, self.place] = columns
        return True

    def _keep(self, samples: Vector) -> None:
        """Forget the columns of all other samples."""
        others = np.setdiff1d(self.sample[: self.count], samples)
        for i in others.tolist():
            self._forget(i)

    def _forget(self, i: int) -> None:
        """Forget the column of sample i."""
        self.count -= 1
        p, last = int(self.place[i]), self.count
        self.values[p] = self.values[last]
        self.values[last] = 0.0
        self._swap(p, last)

    def _swap(self, p: int, q: int) -> None:
        """Exchange the samples at two places; rows of ``values`` stay."""
        if p == q:
            return
        if self.count:
            values = self.values[: self.count]
            before = values[:, p].copy()
            values[:, p] = values[:, q]
            values[:, q] = before
        i, j = int(self.sample[p]), int(self.sample[q])
        self.sample[p], self.sample[q], self.place[i], self.place[j] = j, i, q, p

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

    def append(self, values: Matrix) -> None:
        """Add samples behind the others. ``values[p]`` are their kernel values with the sample at place p < count."""
        m, n = values.shape[1], self.n
        self._reserve(self.count, n + m)
        self.values[: self.count, n : n + m] = values
        new = np.arange(n, n + m)
        self.place, self.sample = np.concatenate((self.place, new)), np.concatenate((self.sample, new))

    def remove(self, samples: Vector) -> None:
        """Remove samples at sorted positions, and overwrite their values."""
        for i in reversed(samples.tolist()):
            if self.place[i] < self.count:
                self._forget(i)
            last = self.n - 1
            self._swap(int(self.place[i]), last)
            self.values[: self.count, last : last + 1] = 0.0
            self.place = without(self.place, [i])
            self.sample = self.sample[:last] - (self.sample[:last] > i)

    def permute(self, order: Vector) -> None:
        """Number the samples anew: sample order[0] comes first."""
        self.place = self.place[order]
        self.sample[self.place] = np.arange(self.n)
