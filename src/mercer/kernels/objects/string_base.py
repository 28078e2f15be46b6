"""The base of string kernels: strings as arrays of characters, and a class for kernels computed pair by pair."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mercer._compiled.thread_pool import cached_property
from mercer.exceptions import InvalidInputError
from mercer.kernels.base import Kernel, check_number, check_whole
from mercer.kernels.domains import as_objects
from mercer.kernels.features import Features, Matrix, Vector

# the number of Unicode code points
CODE_POINTS = 0x110000


class Text(NamedTuple):
    """Concatenated strings. String i has the characters digits[starts[i] : starts[i + 1]].

    ``digits`` are positions in ``alphabet``, the sorted code points; -1 for a character that is not in it.
    """

    digits: Vector
    starts: Vector
    alphabet: Vector

    @classmethod
    def of(cls, strings: list[str], alphabet: Vector | None = None) -> Text:
        """Encode strings in a given alphabet of sorted code points, or in that of all characters that occur.

        Lone surrogates count as characters.
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
        # positions in the result, shifted to those of the same string here
        places = np.arange(starts[-1]) + np.repeat(self.starts[:-1][index] - starts[:-1], lengths)
        return Text(self.digits[places], starts, self.alphabet)

    def over(self, alphabet: Vector) -> Text:
        """The same strings in another alphabet; -1 for a character that is not in it."""
        if alphabet is self.alphabet:
            return self
        places = np.searchsorted(alphabet, self.alphabet)
        known = places < len(alphabet)
        known[known] = alphabet[places[known]] == self.alphabet[known]
        # the last entry is for -1
        table = np.append(np.where(known, places, -1), -1).astype(np.int32)
        return Text(table[self.digits], self.starts, alphabet)


class TextFeatures:
    """Strings prepared for comparison pair by pair. ``scale`` is 1 / sqrt(k(x, x)), or None without normalisation."""

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
        """planes[i, b]: bit b of the digits of string i, 64 characters a word. The last plane marks its characters."""
        from mercer.kernels.objects._string_loops import bit_planes

        words = -(-max(1, self.text.longest) // 64)
        bits = max(1, (len(self.text.alphabet) - 1).bit_length())
        planes = np.zeros((len(self), bits + 1, words), dtype=np.uint64)
        bit_planes(self.text.digits, self.text.starts, planes)
        return planes

    def over(self, other: TextFeatures) -> TextFeatures:
        """The same samples in the alphabet of ``other``."""
        if self.text.alphabet is other.text.alphabet:
            return self
        return TextFeatures(self.text.over(other.text.alphabet), self.dtype, self.scale)


@dataclass(frozen=True, repr=False)
class TextKernel(Kernel):
    """A kernel on strings that a compiled loop computes pair by pair.

    If the field ``normalize`` is true, values are divided by sqrt(k(x, x) k(z, z)); they are 0 if k(x, x) is 0.
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
        """The encoded strings, with their scales if the kernel is normalised."""
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
    """Convert a parameter that counts characters to int, or raise. For ``__post_init__``: edits the kernel."""
    object.__setattr__(kernel, name, check_whole(name, getattr(kernel, name), least))


def check_flag(kernel: Kernel, name: str) -> None:
    """Convert a parameter to bool, or raise. For ``__post_init__``: edits the kernel."""
    value = getattr(kernel, name)
    if not isinstance(value, bool | np.bool_):
        raise InvalidInputError(f"{name}={value!r} must be True or False.")
    object.__setattr__(kernel, name, bool(value))


def check_weights(name: str, weights: Any, count: int, what: str) -> tuple[float, ...]:
    """Return ``count`` non-negative numbers, not all of them 0, or raise. ``what`` names what each one belongs to."""
    if isinstance(weights, str) or not hasattr(weights, "__iter__"):
        raise InvalidInputError(f"{name}={weights!r} must be a sequence of {count} numbers, one for each {what}.")
    values = tuple(check_number(name, value) for value in weights)
    if len(values) != count or min(values) < 0 or max(values) == 0:
        raise InvalidInputError(
            f"{name}={values!r} must be {count} numbers of at least 0, one for each {what}, and not all 0."
        )
    return values
