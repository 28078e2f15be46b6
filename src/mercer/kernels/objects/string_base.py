"""Strings as arrays of characters, and the kernels that compare them pair by pair."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.kernels.base import Kernel
from mercer.kernels.domains import as_objects
from mercer.kernels.features import Features, Matrix, Vector
from mercer.kernels.vectors import check_number, check_whole

# of a character: Unicode goes up to 0x10FFFF
CODE_POINTS = 0x110000


class Text(NamedTuple):
    """Strings one after the other: each character's place in the alphabet, and where each string begins and ends."""

    digits: Vector
    starts: Vector
    alphabet: Vector

    @classmethod
    def of(cls, strings: list[str], alphabet: Vector | None = None) -> Text:
        """The characters of some strings, in an alphabet (of code points, in order) or in that of all that occur.

        A character that the alphabet does not have is -1. Lone surrogates are characters, too.
        """
        joined = "".join(strings).encode("utf-32-le", "surrogatepass")
        characters = np.frombuffer(joined, dtype=np.int32)
        starts = np.zeros(len(strings) + 1, dtype=np.int64)
        np.cumsum([len(string) for string in strings], out=starts[1:])
        if alphabet is None:
            occurs = np.zeros(CODE_POINTS, dtype=bool)
            occurs[characters] = True
            alphabet = np.flatnonzero(occurs).astype(np.int32)
        places = np.full(CODE_POINTS, -1, dtype=np.int32)
        places[alphabet] = np.arange(len(alphabet))
        return cls(places[characters], starts, alphabet)

    @property
    def longest(self) -> int:
        """The number of characters of the longest string."""
        return int(np.diff(self.starts).max(initial=0))

    def take(self, index: Vector) -> Text:
        """The strings at these positions."""
        lengths = np.diff(self.starts)[index]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        # each place of the result, moved to where its string stands here
        places = np.arange(starts[-1]) + np.repeat(self.starts[:-1][index] - starts[:-1], lengths)
        return Text(self.digits[places], starts, self.alphabet)

    def over(self, alphabet: Vector) -> Text:
        """The same strings in another alphabet; -1 for a character that it has not."""
        if alphabet is self.alphabet:
            return self
        places = np.searchsorted(alphabet, self.alphabet)
        known = places < len(alphabet)
        known[known] = alphabet[places[known]] == self.alphabet[known]
        # the last entry is for -1
        table = np.append(np.where(known, places, -1), -1).astype(np.int32)
        return Text(table[self.digits], self.starts, alphabet)


class TextFeatures:
    """Strings made ready to be compared pair by pair, with factors that make k(x, x) = 1 if that is asked for."""

    def __init__(self, text: Text, dtype: Any, scale: Vector | None = None, planes: Vector | None = None) -> None:
        self.text = text
        self.dtype = np.dtype(dtype)
        self.scale = scale
        if planes is not None:
            self.__dict__["planes"] = planes

    def __len__(self) -> int:
        return len(self.text.starts) - 1

    def take(self, index: Vector) -> TextFeatures:
        """The samples at these positions."""
        planes = self.__dict__.get("planes")
        return TextFeatures(
            self.text.take(index),
            self.dtype,
            None if self.scale is None else self.scale[index],
            None if planes is None else planes[index],
        )

    @cached_property
    def planes(self) -> Vector:
        """Bit b of all characters' places in the alphabet, 64 characters a word; the last plane: are there any?"""
        from mercer.kernels.objects._string_loops import bit_planes

        words = -(-max(1, self.text.longest) // 64)
        bits = max(1, (len(self.text.alphabet) - 1).bit_length())
        planes = np.zeros((len(self), bits + 1, words), dtype=np.uint64)
        bit_planes(self.text.digits, self.text.starts, planes)
        return planes

    def over(self, other: TextFeatures) -> TextFeatures:
        """The same samples in the alphabet of the others."""
        if self.text.alphabet is other.text.alphabet:
            return self
        return TextFeatures(self.text.over(other.text.alphabet), self.dtype, self.scale)


@dataclass(frozen=True, repr=False)
class TextKernel(Kernel):
    """A kernel of two strings that a compiled loop computes pair by pair.

    A field ``normalize``, if it is true, divides by sqrt(k(x, x) k(z, z)); where k(x, x) is 0 the value is 0.
    """

    @property
    def domain(self) -> str:
        return "strings"

    @property
    def preparation(self) -> Hashable:
        return self if getattr(self, "normalize", False) else "text"

    @abstractmethod
    def compare(self, a: TextFeatures, b: TextFeatures, diagonal: bool, out: Matrix) -> None:
        """out[i, j] = k(a_i, b_j) before normalisation; with ``diagonal`` out[i, 0] = k(a_i, b_i)."""

    def check_samples(self, samples: Any) -> None:
        as_objects(self, samples)

    def prepare(self, samples: Any, dtype: Any = np.float64) -> TextFeatures:
        """The characters, and what normalisation needs."""
        features = TextFeatures(Text.of(as_objects(self, samples)), dtype)
        if getattr(self, "normalize", False):
            squares = self._squares(features)
            features.scale = np.zeros(len(squares))
            np.divide(1.0, np.sqrt(squares), out=features.scale, where=squares > 0)
        return features

    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        assert isinstance(a, TextFeatures) and isinstance(b, TextFeatures)
        if out is None:
            out = np.empty((len(a), len(b)), b.dtype)
        if len(a) == 0 or len(b) == 0:
            return out
        values = np.empty((len(a), len(b))) if out.dtype != np.float64 else out
        self.compare(a, b, False, values)
        if a.scale is not None and b.scale is not None:
            values *= a.scale[:, None]
            values *= b.scale
        if values is not out:
            out[...] = values
        return out

    def diagonal(self, a: Features) -> Vector:
        assert isinstance(a, TextFeatures)
        return self._squares(a) if a.scale is None else (a.scale > 0).astype(np.float64)

    def __repr__(self) -> str:
        return self.brief()

    def _squares(self, a: TextFeatures) -> Vector:
        out = np.empty((len(a), 1))
        if len(a):
            self.compare(a, a, True, out)
        return out[:, 0]


def check_length(kernel: Kernel, name: str, least: int = 1) -> None:
    """Make a parameter that counts characters an int, or raise. Edits the kernel that is being built."""
    object.__setattr__(kernel, name, check_whole(name, getattr(kernel, name), least))


def check_flag(kernel: Kernel, name: str) -> None:
    """Make a parameter that is true or false a bool, or raise. Edits the kernel that is being built."""
    value = getattr(kernel, name)
    if not isinstance(value, bool | np.bool_):
        raise InvalidInputError(f"{name}={value!r} must be True or False.")
    object.__setattr__(kernel, name, bool(value))


def check_weights(name: str, weights: Any, count: int, what: str) -> tuple[float, ...]:
    """One non-negative number for each of so many things, not all of them 0."""
    if isinstance(weights, str) or not hasattr(weights, "__iter__"):
        raise InvalidInputError(f"{name}={weights!r} must be a sequence of {count} numbers, one for each {what}.")
    values = tuple(check_number(name, value) for value in weights)
    if len(values) != count or min(values) < 0 or max(values) == 0:
        raise InvalidInputError(
            f"{name}={values!r} must be {count} numbers, one for each {what}, none of them negative and not all 0."
        )
    return values
