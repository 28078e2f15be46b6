"""Kernels between sets of items ([SSBD] Exercise 16.5), and between sets of objects that another kernel compares."""

from __future__ import annotations

from collections.abc import Hashable, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.kernels.base import Kernel
from mercer.kernels.combinators import check_kernel_operand
from mercer.kernels.domains import as_objects, noun_of
from mercer.kernels.feature_sums import DOT
from mercer.kernels.features import Features, Matrix, Vector, count_samples
from mercer.kernels.objects.counts import Counted, CountFeatures, CountKernel, count_block, count_items

# number of kernel values between members of sets that are computed at a time
MEMBER_VALUES = 1 << 20


def _count_sets(samples: list[Any]) -> Counted:
    """Count 1 for each distinct item of a sample."""
    try:
        return count_items([dict.fromkeys(sample, 1.0) for sample in samples])
    except TypeError:
        return count_items(samples)  # raises the error that names the sample


@dataclass(frozen=True, repr=False)
class Intersection(CountKernel):
    """k(A, B) = |A ∩ B|, the number of common items.

    Items are hashable objects. k is the inner product of the sets' indicator vectors, so a machine learns one weight
    per item, however many there are ([SSBD] Exercise 16.5).

    Parameters
    ----------
    normalize : bool, default=False
        Whether to divide by sqrt(|A| |B|), Ochiai's coefficient; 0 for an empty set.

    Examples
    --------
    >>> Intersection()([{"milk", "bread"}, {"milk", "eggs", "tea"}, set()])
    array([[2., 1., 0.],
           [1., 3., 0.],
           [0., 0., 0.]])
    """

    normalize: bool = False

    @property
    def domain(self) -> str:
        return "sets"

    def count(self, samples: list[Any]) -> Counted:
        return _count_sets(samples)


@dataclass(frozen=True)
class Jaccard(Kernel):
    """k(A, B) = |A ∩ B| / |A ∪ B|, and 1 for two empty sets.

    The share of common items, also called the Tanimoto coefficient. It is positive semidefinite: it is the share of all
    permutations of the items in which the first item of A is also the first one of B.

    >>> Jaccard()([{"milk", "bread"}, {"milk", "eggs", "tea"}, set()])
    array([[1.  , 0.25, 0.  ],
           [0.25, 1.  , 0.  ],
           [0.  , 0.  , 1.  ]])
    """

    @property
    def domain(self) -> str:
        return "sets"

    def check_samples(self, samples: Any) -> None:
        as_objects(self, samples)

    def prepare(self, samples: Any, dtype: Any = np.float64) -> CountFeatures:
        return CountFeatures.of(_count_sets(as_objects(self, samples)), dtype)

    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        assert isinstance(a, CountFeatures) and isinstance(b, CountFeatures)
        out = count_block(DOT, a, b, out)
        union = a.squares[:, None] + b.squares - out
        np.divide(out, union, out=out, where=union > 0)
        out[union == 0] = 1.0
        return out

    def diagonal(self, a: Features) -> Vector:
        return np.ones(len(a))


class SetFeatures:
    """The members of all sets, prepared together, and where the members of each set begin."""

    def __init__(self, members: Features, start: Vector) -> None:
        self.members, self.start = members, start
        self.dtype = members.dtype

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def parts(self) -> tuple[Features, ...]:
        """The members as prepared for the inner kernel."""
        return getattr(self.members, "parts", (self.members,))

    @property
    def sizes(self) -> Vector:
        """The number of members of each set."""
        return np.diff(self.start)

    def take(self, index: Vector) -> SetFeatures:
        """The sets at these positions."""
        sizes = self.sizes[index]
        start = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(start[-1]) - np.repeat(start[:-1], sizes) + np.repeat(self.start[:-1][index], sizes)
        return SetFeatures(self.members.take(places), start)


@dataclass(frozen=True, repr=False)
class SetOf(Kernel):
    """k(A, B) = Σ_{a ∈ A} Σ_{b ∈ B} kernel(a, b), or the mean of these; 0 if one of the sets is empty.

    For sets of vectors, such as the points of a shape or the instances of a bag, and for sets of other objects that a
    kernel compares. The sets may differ in size. The mean is the inner product of the sets' mean embeddings.

    Parameters
    ----------
    kernel : Kernel
        The kernel between members.
    average : bool, default=True
        Whether to divide by the number of pairs |A| |B|.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> SetOf(Linear())([[[1.0, 0.0], [3.0, 0.0]], [[0.0, 1.0]], [[2.0, 5.0]]])
    array([[ 4.,  0.,  4.],
           [ 0.,  1.,  5.],
           [ 4.,  5., 29.]])
    """

    kernel: Kernel
    average: bool = True

    def __post_init__(self) -> None:
        check_kernel_operand(self, "kernel")
        if self.kernel.domain in ("matrix", "records"):
            raise InvalidInputError(
                f"SetOf needs a kernel between single members, but {self.kernel!r} compares "
                f"{noun_of(self.kernel.domain)}."
            )

    @property
    def domain(self) -> str:
        return "sets"

    @property
    def positive_semidefinite(self) -> bool:
        return self.kernel.positive_semidefinite

    @property
    def psd_is_assumed(self) -> bool:
        return self.kernel.psd_is_assumed

    @property
    def preparation(self) -> Hashable:
        return "sets of", self.kernel.preparation

    def check_samples(self, samples: Any) -> None:
        self.kernel.check_samples(self._members(samples)[0])

    def bind(self, samples: Any) -> Kernel:
        bound = self.kernel.bind(self._members(samples)[0])
        return self if bound == self.kernel else replace(self, kernel=bound)

    def _members(self, samples: Any) -> tuple[Any, Vector]:
        """The concatenated members of all sets, and where each set begins."""
        sets = as_objects(self, samples)
        sizes = [count_samples(members) for members in sets]
        start = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
        if self.kernel.domain != "vectors":
            return [member for members in sets for member in members], start
        return _stacked_vectors(self, sets), start

    def prepare(self, samples: Any, dtype: Any = np.float64) -> SetFeatures:
        members, start = self._members(samples)
        return SetFeatures(self.kernel.prepare(members, dtype), start)

    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        """A few sets of a at a time, so that not all values between members are in memory at once."""
        assert isinstance(a, SetFeatures) and isinstance(b, SetFeatures)
        if out is None:
            out = np.empty((len(a), len(b)), b.dtype)
        if a.start[-1] == 0 or b.start[-1] == 0:  # the dimension of empty sets is unknown
            out[...] = 0.0
            return out
        step = max(1, int(MEMBER_VALUES // int(b.start[-1])))
        first = 0
        while first < len(a):
            last = max(first + 1, int(np.searchsorted(a.start, a.start[first] + step, side="right")) - 1)
            part = a if first == 0 and last >= len(a) else a.take(np.arange(first, min(last, len(a))))
            values = self.kernel.block(part.members, b.members).astype(np.float64, copy=False)
            sums = _sums(_sums(values, part.start, 0), b.start, 1)
            if self.average:
                sums /= np.maximum(part.sizes, 1)[:, None]
                sums /= np.maximum(b.sizes, 1)
            out[first : first + len(part)] = sums
            first += len(part)
        return out

    def diagonal(self, a: Features) -> Vector:
        assert isinstance(a, SetFeatures)
        out = np.empty((len(a), 1))
        for i in range(len(a)):
            one = a.take(np.array([i]))
            self.block(one, one, out[i : i + 1])
        return out[:, 0]

    def gradient_products(self, a: Features, b: Features, weights: Matrix) -> Vector:
        """Each pair of members has the weight of their sets, divided by the number of pairs if averaged."""
        assert isinstance(a, SetFeatures) and isinstance(b, SetFeatures)
        if a.start[-1] == 0 or b.start[-1] == 0:
            return np.zeros(len(self.hyperparameters()))
        if self.average:
            weights = weights / np.maximum(a.sizes, 1)[:, None] / np.maximum(b.sizes, 1)
        spread = np.repeat(np.repeat(weights, a.sizes, axis=0), b.sizes, axis=1)
        return self.kernel.gradient_products(a.members, b.members, spread)

    def __repr__(self) -> str:
        return f"SetOf({self.kernel!r})" if self.average else f"SetOf({self.kernel!r}, average=False)"


def _sums(values: Matrix, start: Vector, axis: int) -> Matrix:
    """Sums over consecutive parts of an axis; some parts may be empty."""
    filled = np.flatnonzero(np.diff(start))
    shape = (len(start) - 1, values.shape[1]) if axis == 0 else (values.shape[0], len(start) - 1)
    out = np.zeros(shape)
    if len(filled):
        out[filled if axis == 0 else (slice(None), filled)] = np.add.reduceat(values, start[:-1][filled], axis=axis)
    return out


def _stacked_vectors(kernel: SetOf, sets: list[Any]) -> Any:
    """The vectors of all sets as one matrix; raises if their lengths differ."""
    rows = [np.asarray(list(members) if isinstance(members, Set) else members) for members in sets]
    filled = [(i, part) for i, part in enumerate(rows) if part.shape[0]]
    for i, part in filled:
        if part.ndim != 2 or part.shape[1] != filled[0][1].shape[1]:
            raise InvalidInputError(
                f"{kernel!r} compares sets of vectors of equal length, but sample {i} has the shape {part.shape}"
                + ("." if part.ndim != 2 else f", and sample {filled[0][0]} the shape {filled[0][1].shape}.")
                + " Give each set as a matrix with a row for each member."
            )
    return np.concatenate([part for _, part in filled]) if filled else np.empty((0, 1))
