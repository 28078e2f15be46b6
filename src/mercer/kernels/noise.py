"""White noise, which is independent for each observation."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.kernels.base import Kernel, check_number
from mercer.kernels.features import Features, Matrix, Vector, as_matrix, count_samples


class SampleNumbers:
    """The numbers of samples among those prepared together. Samples prepared separately are never the same."""

    def __init__(self, numbers: Vector, origin: object, dtype: Any) -> None:
        self.numbers = numbers
        self.origin = origin
        self.dtype = np.dtype(dtype)

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, index: Vector) -> SampleNumbers:
        """The samples at these positions."""
        return SampleNumbers(self.numbers[index], self.origin, self.dtype)

    def pairs(self, other: SampleNumbers) -> tuple[Vector, Vector]:
        """The positions, here and in ``other``, of all pairs that are the same observation."""
        if self.origin is not other.origin:
            return np.empty(0, np.intp), np.empty(0, np.intp)
        order = np.argsort(other.numbers, kind="stable")
        ranked = other.numbers[order]
        first, last = (np.searchsorted(ranked, self.numbers, side=side) for side in ("left", "right"))
        counts = last - first
        here = np.repeat(np.arange(len(self)), counts)
        ranks = np.arange(len(here)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
        return here, order[ranks]


@dataclass(frozen=True)
class White(Kernel):
    """k(x, z) = noise if x and z are the same observation, else 0: independent noise of variance ``noise``.

    Added to another kernel it models the scatter of observations about a smooth function. Two equal samples are two
    observations, and a new sample is never the same observation as a training sample.

    >>> from mercer.kernels import Linear
    >>> (Linear() + White(0.5))([[1.0], [1.0], [2.0]])
    array([[1.5, 1. , 2. ],
           [1. , 1.5, 2. ],
           [2. , 2. , 4.5]])
    """

    learnable: ClassVar[tuple[str, ...]] = ("noise",)
    noise: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", check_number("noise", self.noise))
        if self.noise < 0:
            raise InvalidInputError(f"noise={self.noise!r} is a variance: it must be at least 0.")

    @property
    def domain(self) -> str:
        return "any"

    @property
    def preparation(self) -> Hashable:
        return "numbers"

    def prepare(self, samples: Any, dtype: Any = np.float64) -> SampleNumbers:
        """Number the samples."""
        return SampleNumbers(np.arange(count_samples(samples)), object(), dtype)

    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        assert isinstance(a, SampleNumbers) and isinstance(b, SampleNumbers)
        if out is None:
            out = np.empty((len(a), len(b)), b.dtype)
        out[...] = 0.0
        out[a.pairs(b)] = self.noise
        return out

    def add_block(self, a: Features, b: Features, out: Matrix) -> None:
        assert isinstance(a, SampleNumbers) and isinstance(b, SampleNumbers)
        out[a.pairs(b)] += self.noise

    def diagonal(self, a: Features) -> Vector:
        return np.full(len(a), self.noise)

    def gradient_products(self, a: Features, b: Features, weights: Matrix) -> Vector:
        assert isinstance(a, SampleNumbers) and isinstance(b, SampleNumbers)
        return np.array([self.noise * weights[a.pairs(b)].sum()] if self.noise > 0 else [])

    def sample_gradients(self, X: Any, Z: Any, weights: Matrix) -> Matrix:
        return np.zeros(as_matrix(X).shape)
