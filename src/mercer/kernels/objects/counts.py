"""Samples as counts of named features: k-grams of strings, items of sets, subtrees of graphs.

Training and test samples are prepared separately, so features have names that mean the same in both: the k-gram, the
item or the subtree itself, never a hash, which two of them might share. When two sets of samples are compared, the
names of one are looked up in the other once; then each kernel value is a product of sparse vectors.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mercer._compiled.thread_pool import cached_property
from mercer.exceptions import InvalidInputError
from mercer.kernels.base import Kernel
from mercer.kernels.domains import as_objects
from mercer.kernels.feature_sums import DOT, MIN
from mercer.kernels.features import Csr, Features, Matrix, Vector, VectorFeatures
from mercer.kernels.vectors import Linear, Min

# share of non-zeros from which the tiles of vector kernels are faster than lists of matches
CROWDED = 1 / 12
# share of non-zeros from which vectors are stored dense
DENSE = 1 / 3
_TERMS: dict[int, Kernel] = {DOT: Linear(), MIN: Min()}


class Names:
    """The hashable names of the features that occur in samples prepared together.

    >>> here, there = Names(["ab", "bc", "cd"]), Names(["cd", "ab"])
    >>> here.places_in(there)
    array([ 1, -1,  0])
    """

    def __init__(self, names: Iterable[Hashable]) -> None:
        self._names = list(names)
        self._last: tuple[Names, Vector] | None = None

    def __len__(self) -> int:
        return len(self._names)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_last": None}

    @property
    def names(self) -> list[Any]:
        """The name of each feature."""
        return self._names

    @cached_property
    def numbers(self) -> dict[Hashable, int]:
        """The number of the feature with each name."""
        return {name: number for number, name in enumerate(self.names)}

    def places_in(self, other: Names) -> Vector:
        """The number of each of these features in ``other``; -1 if it does not occur there."""
        last = self._last  # read once: another thread may replace it
        if last is None or last[0] is not other:
            last = self._last = (other, self._find(other))
        return last[1]

    def _find(self, other: Names) -> Vector:
        found = other.numbers
        return np.array([found.get(name, -1) for name in self.names], dtype=np.intp)


class Counted(NamedTuple):
    """The result of ``CountKernel.count``: a row of counts (or weights) per sample, and the names of the columns."""

    counts: Csr
    names: Names


class CountFeatures:
    """Sparse vectors over named features, in one dtype. Parts of the samples share the names."""

    def __init__(self, vectors: VectorFeatures, names: Names, crowded: bool) -> None:
        self.vectors = vectors
        self.names = names
        self.dtype = vectors.dtype
        # decided once for all samples prepared together, so that a part of them has the same values
        self.crowded = crowded

    @classmethod
    def of(cls, counted: Counted, dtype: Any) -> CountFeatures:
        """The counts in a dtype, stored dense if few of them are zero."""
        counts, names = _in_32_bits(counted.counts), counted.names
        share = len(counts.data) / max(1, counts.shape[0] * counts.shape[1])
        X: Any = counts.astype(np.dtype(dtype))
        return cls(VectorFeatures(X.toarray() if share >= DENSE else X, dtype), names, share >= CROWDED)

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def parts(self) -> tuple[Features, ...]:
        """The vectors, whose cached arrays are built before threads use them."""
        return (self.vectors,)

    @cached_property
    def squares(self) -> Vector:
        """|x|² in float64."""
        return self.vectors.in_double.norms

    @property
    def counts(self) -> Csr:
        """The counts as CSR."""
        X = self.vectors.X
        return X if self.vectors.sparse else Csr.of(sp.csr_array(X), self.dtype)

    def take(self, index: Vector) -> CountFeatures:
        """The samples at these positions."""
        return CountFeatures(self.vectors.take(index), self.names, self.crowded)

    def over(self, names: Names) -> VectorFeatures:
        """The vectors over other names. Features that do not occur there are left out."""
        if names is self.names:
            return self.vectors
        places = self.names.places_in(names)
        counts = self.counts
        columns = places[counts.indices]
        kept = columns >= 0
        lengths = np.concatenate([[0], np.cumsum(kept)])[counts.indptr]
        X = sp.csr_array((counts.data[kept], columns[kept], lengths), shape=(len(self), len(names)))
        X.sort_indices()
        return VectorFeatures(_in_32_bits(Csr(X.indptr, X.indices, X.data, X.shape)), self.dtype)


def _in_32_bits(counts: Csr) -> Csr:
    """The same counts with 32-bit indices, which the compiled loops take."""
    if len(counts.indices) > np.iinfo(np.int32).max:
        raise InvalidInputError(
            f"These samples have {len(counts.indices):,} non-zero counts, but a matrix can hold at most 2^31. Give "
            "fewer samples at a time, or count fewer features."
        )
    return counts._replace(
        indptr=counts.indptr.astype(np.int32, copy=False), indices=counts.indices.astype(np.int32, copy=False)
    )


def count_block(term: int, a: CountFeatures, b: CountFeatures, out: Matrix | None = None) -> Matrix:
    """Σ_f a_if b_jf (term DOT) or Σ_f min(a_if, b_jf) (term MIN, counts ≥ 0) for all i, j."""
    from mercer.kernels.objects._count_loops import add_matches

    left, right = a.over(b.names), b.vectors
    if b.crowded or left.dtype != right.dtype:
        return _TERMS[term].block(left, right, out)
    clear = out is not None
    if out is None:
        out = np.zeros((len(a), len(b)), b.dtype)  # pages without a match are never touched
    A, B = (left.stored_like(right).X, right.X)
    add_matches(term, A.indptr, A.indices, A.data, B.indptr, B.indices, B.data, right.d, clear, out)
    return out


def count_items(samples: Sequence[Iterable[Hashable] | Mapping[Hashable, float]]) -> Counted:
    """How often each item occurs in each sample. A mapping gives the count of each item itself.

    >>> counted = count_items([["a", "b", "a"], {"b": 2.5}, []])
    >>> counted.names.names, counted.counts.toarray().tolist()
    (['a', 'b'], [[2.0, 1.0], [0.0, 2.5], [0.0, 0.0]])
    """
    numbers: dict[Hashable, int] = {}
    lengths, columns, values = [0], [], []
    for i, sample in enumerate(samples):
        found: dict[int, float] = {}
        weighted = sample.items() if isinstance(sample, Mapping) else ((item, 1.0) for item in sample)
        try:
            for item, weight in weighted:
                number = numbers.setdefault(item, len(numbers))
                found[number] = found.get(number, 0.0) + weight
        except TypeError:
            raise InvalidInputError(
                f"Items are compared by equality and must be hashable, but sample {i} has an item of type "
                f"{type(item).__name__}. Use strings, numbers or tuples."
            ) from None
        places = sorted(found)
        columns += places
        values += [found[place] for place in places]
        lengths.append(len(columns))
    counts = Csr(
        np.array(lengths, dtype=np.int64),
        np.array(columns, dtype=np.int32),
        np.array(values, dtype=np.float64),
        (len(lengths) - 1, len(numbers)),
    )
    return Counted(counts, Names(numbers))


def scaled_rows(counts: Csr, factors: Vector) -> Csr:
    """Each row times its factor."""
    return counts._replace(data=counts.data * np.repeat(factors, np.diff(counts.indptr)))


def unit_rows(counts: Csr) -> Csr:
    """Rows scaled to length 1. Rows of zeros do not change."""
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    lengths = np.sqrt(np.bincount(rows, weights=counts.data**2, minlength=counts.shape[0]))
    return scaled_rows(counts, 1.0 / np.where(lengths > 0, lengths, 1.0))


def counted(kernel: Any, samples: Any) -> Counted:
    """Check the samples and count their features; rows have length 1 if the kernel has ``normalize=True``."""
    found: Counted = kernel.count(as_objects(kernel, samples))
    if getattr(kernel, "normalize", False):
        found = found._replace(counts=unit_rows(found.counts))
    return found


@dataclass(frozen=True, repr=False)
class CountKernel(Kernel):
    """k(x, z) = Σ_f c_f(x) c_f(z), over features f that occur in both.

    Subclasses count the features. If a subclass has a field ``normalize`` and it is true, each vector of counts is
    scaled to length 1 (a sample without features stays 0).
    """

    @abstractmethod
    def count(self, samples: list[Any]) -> Counted:
        """The counts in float64. The samples have been checked to be of the kernel's domain."""

    def check_samples(self, samples: Any) -> None:
        as_objects(self, samples)

    def prepare(self, samples: Any, dtype: Any = np.float64) -> CountFeatures:
        """The counts of each sample."""
        return CountFeatures.of(counted(self, samples), dtype)

    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        assert isinstance(a, CountFeatures) and isinstance(b, CountFeatures)
        return count_block(DOT, a, b, out)

    def triangle_rows(self, a: Features) -> int:
        assert isinstance(a, CountFeatures)
        # with lists of matches, copying a triangle takes longer than computing it
        return super().triangle_rows(a) if a.crowded else 0

    def diagonal(self, a: Features) -> Vector:
        assert isinstance(a, CountFeatures)
        return a.squares

    def __repr__(self) -> str:
        return self.brief()
