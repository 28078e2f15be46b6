"""Statistics of a column that is read block by block: distinct values, mean and variance, the exact median, words.

Mean and variance are those of all values (Chan, Golub & LeVeque 1983). The median is exact: each pass counts the values
in an interval of float64 numbers and chooses a smaller one for the next pass. The first interval surrounds the median
of a few rows and nearly always contains the median. The number of distinct values is exact up to `KEPT`, beyond that an
estimate from the values with the smallest hashes (Bar-Yossef et al. 2002).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.io.tables.cells import EXACT, Cells
from mercer.io.tables.columns import FEW, SHARE, Column, kind_of_words, seems_text, why_useless
from mercer.kernels.features import Vector

# hashes of distinct values that are kept
KEPT = 1 << 16
# words that are kept as categories at most
MOST_WORDS = 1_000_000
# bins into which a pass divides the interval that contains the median
BINS = 1024
# half the width of the first interval around the sample's median, in standard deviations of the median's rank
SURE = 5.0
TOP = np.uint64(1 << 63)
LAST = (1 << 64) - 1


class DistinctCount:
    """Counts distinct values by their hashes."""

    def __init__(self) -> None:
        self._hashes = np.zeros(0, np.uint64)
        self._counts = np.zeros(0, np.int64)
        self._limit = LAST  # hashes up to this one are kept

    def update(self, keys: Vector) -> None:
        """Add values, given as uint64 numbers that are equal if and only if the values are."""
        # the finaliser of SplitMix64: a bijection, so that different values keep different hashes
        with np.errstate(over="ignore"):
            h = keys.astype(np.uint64, copy=True)
            for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
                h = (h ^ (h >> np.uint64(shift))) * np.uint64(factor)
            h ^= h >> np.uint64(31)
        new, counts = np.unique(h[h <= np.uint64(self._limit)], return_counts=True)
        self._hashes, places = np.unique(np.concatenate([self._hashes, new]), return_inverse=True)
        self._counts = np.bincount(places, np.concatenate([self._counts, counts]), len(self._hashes)).astype(np.int64)
        if len(self._hashes) > KEPT:  # sorted: the smallest ones are kept
            self._hashes, self._counts = self._hashes[:KEPT], self._counts[:KEPT]
            self._limit = int(self._hashes[-1])

    @property
    def exact(self) -> bool:
        """Whether all distinct values are counted."""
        return self._limit == LAST

    def count(self, n: int) -> int:
        """Return the number of distinct values among n; n if no value was seen twice."""
        if self.exact:
            return len(self._hashes)
        if (self._counts == 1).all():
            return n
        return min(n - 1, int(len(self._hashes) / (self._limit / LAST)))


class MedianSearch:
    """Finds the exact median of values that are read again in each pass.

    ``sample`` are some of the values, ``room`` is how many may be kept.
    """

    def __init__(self, sample: Vector, room: int) -> None:
        self.median: float | None = None
        self._room = max(BINS, room)
        ordered = np.sort(float_keys(sample))
        m = len(ordered)
        reach = int(SURE * 0.5 * np.sqrt(m)) + 1
        self._low = int(ordered[max(0, m // 2 - reach)]) if m else 0
        self._high = int(ordered[min(m - 1, m // 2 + reach)]) if m else LAST
        self._begin()

    def _begin(self) -> None:
        self._below = self._n = 0
        self._width = max(1, -(-(self._high - self._low + 1) // BINS))
        self._bins = np.zeros(BINS, np.int64)
        self._kept: list[Vector] | None = []
        self._n_kept = 0

    def update(self, values: Vector) -> None:
        """Count values that are not missing in the present pass."""
        if self.median is not None:
            return
        keys = float_keys(values)
        self._n += len(keys)
        self._below += int((keys < np.uint64(self._low)).sum())
        inside = keys[(keys >= np.uint64(self._low)) & (keys <= np.uint64(self._high))]
        if len(inside):
            bins = ((inside - np.uint64(self._low)) // np.uint64(self._width)).astype(np.int64)
            self._bins += np.bincount(bins, minlength=BINS)
        self._n_kept += len(inside)
        if self._kept is not None and self._n_kept <= self._room:
            self._kept.append(inside)
        else:
            self._kept = None

    def end_pass(self) -> None:
        """Set ``median`` if this pass has found it, else choose a smaller interval for the next pass."""
        if self.median is not None:
            return
        if self._n == 0:
            self.median = np.nan
            return
        first, second = (self._n - 1) // 2 - self._below, self._n // 2 - self._below
        if first < 0:
            self._low, self._high = 0, self._high if second >= 0 else self._low - 1
        elif second >= self._n_kept:
            self._low, self._high = self._low if first < self._n_kept else self._high + 1, LAST
        elif self._kept is not None:
            ordered = np.sort(np.concatenate(self._kept))
            self.median = float(np.mean(floats_of(ordered[[first, second]])))
            return
        else:
            upto = np.cumsum(self._bins)
            a, b = (int(np.searchsorted(upto, rank, side="right")) for rank in (first, second))
            if self._width == 1:
                keys = np.array([self._low + a, self._low + b], dtype=np.uint64)
                self.median = float(np.mean(floats_of(keys)))
                return
            high = min(self._high, self._low + (b + 1) * self._width - 1)
            self._low, self._high = self._low + a * self._width, high
        self._begin()


def float_keys(values: Vector) -> Vector:
    """Return uint64 numbers in the same order as these float64 numbers."""
    bits = (np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    return np.where(bits & TOP, ~bits, bits | TOP)


def floats_of(keys: Vector) -> Vector:
    """Return the float64 numbers of `float_keys`."""
    return np.where(keys & TOP, keys ^ TOP, ~keys).view(np.float64)


class NumberStatistics:
    """The statistics that the preparation of a numeric column needs."""

    def __init__(self, sample: Vector, room: int) -> None:
        self.search = MedianSearch(sample[~np.isnan(sample)], room)
        self._distinct = DistinctCount()
        self._n = self._known = 0
        self._low, self._high = np.inf, -np.inf
        self._whole, self._large = True, False
        self._mean = self._squares = 0.0

    def update(self, values: Vector, cells: Cells) -> None:
        """Add the values of a block, NaN where missing, and the cells that they were read from."""
        known = values[~np.isnan(values)]
        self._n += len(values)
        if not len(known):
            return
        self._low, self._high = min(self._low, float(known.min())), max(self._high, float(known.max()))
        self._whole = self._whole and bool(np.all(known == np.round(known)))
        self._large = self._large or cells.large
        self._distinct.update(cells.integers().astype(np.uint64) if cells.large else float_keys(known))
        self.search.update(known)
        m, mean = len(known), float(known.mean())
        total = self._known + m
        self._squares += float(((known - mean) ** 2).sum()) + (mean - self._mean) ** 2 * self._known * m / total
        self._mean += (mean - self._mean) * m / total
        self._known = total

    def describe(self, column: Column) -> Column:
        """Return the description of the whole column; a column without information is left out."""
        column = replace(column, missing=self._n - self._known, different=self._distinct.count(self._known))
        large = self._large or (self._whole and max(abs(self._low), abs(self._high)) >= EXACT and self._known > 0)
        why = why_useless(column, self._n, whole=self._whole, large=large, spread=self._high - self._low)
        return replace(column, kind="left out", why=why) if why else column

    def moments(self) -> tuple[float, float, float]:
        """Return the median, and mean and variance after missing values have been replaced by it."""
        median = self.search.median
        assert median is not None
        missing, n = self._n - self._known, self._n
        if not missing:
            return median, self._mean, self._squares / n
        mean = self._mean + (median - self._mean) * missing / n
        return median, mean, (self._squares + (median - self._mean) ** 2 * self._known * missing / n) / n


class WordStatistics:
    """The statistics that a category or free text needs for its preparation. The table has ``n`` rows."""

    def __init__(self, n: int) -> None:
        self._most = min(MOST_WORDS, max(FEW, SHARE * n))
        self._words: dict[str, None] = {}
        self._distinct = DistinctCount()
        self._n = self._missing = self._length = self._spaces = 0

    def update(self, words: Any) -> None:
        """Add the words of a block, None or empty where missing."""
        from pandas.util import hash_array

        present = [word for word in words if word]
        self._n += len(words)
        self._missing += len(words) - len(present)
        self._length += sum(map(len, present))
        self._spaces += sum(" " in word for word in present)
        if present:
            self._distinct.update(hash_array(np.array(present, dtype=object), categorize=True))
        if len(self._words) <= self._most:  # a column with more words is not a category
            self._words |= dict.fromkeys(present)

    def describe(self, column: Column) -> Column:
        """Return the description of the whole column."""
        known = self._n - self._missing
        text = seems_text(known, self._length, self._spaces)
        example = next(iter(self._words), "")
        column = replace(column, kind="category", missing=self._missing, different=len(self._words), categories=())
        if len(self._words) > self._most:
            column = replace(column, different=max(len(self._words), self._distinct.count(known)))
            names = f"{column.different:,} different names in {self._n:,} rows, such as {example[:20]!r}"
            return replace(column, kind="text") if text else replace(column, kind="left out", why=names)
        kind, why = kind_of_words(column, self._n, lambda: text, example)
        if why:
            return replace(column, kind="left out", why=why)
        return replace(column, kind=kind, categories=tuple(sorted(self._words)) if kind == "category" else ())
