"""Kernels on strings that count substrings ([CS229] 5.4, [SSBD] 16.2.1, [M5] "String kernels")."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb, log2
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._compiled.thread_pool import cached_property
from mercer.exceptions import InvalidInputError
from mercer.kernels.base import Kernel
from mercer.kernels.domains import as_objects
from mercer.kernels.features import Csr, Features, Matrix, Vector
from mercer.kernels.objects.counts import Counted, CountKernel, Names
from mercer.kernels.objects.mismatch_pairs import MismatchPairs
from mercer.kernels.objects.string_base import Text, TextFeatures, TextKernel, check_flag, check_length, check_weights

# k-grams are encoded as 64-bit integers below this
LARGEST_CODE = 1 << 62
# up to this many possible codes, a table of all codes is faster than sorting
TABLE = 1 << 22
# largest number of neighbouring k-grams in `Mismatch`: 24 bytes each, and as much again temporarily
MOST_NEIGHBOURS = 1 << 25
# up to this many neighbours of a k-gram, products of the lists are faster than comparing all pairs of k-grams
LISTED_NEIGHBOURS = 1000


class Grams(Names):
    """k-grams (runs of characters) as integers: the digits, each plus 1, of a number in base ``base``.

    ``codes`` are sorted, so k-grams of other samples are found by binary search. If the other samples have another
    alphabet, the codes are converted to it first.
    """

    def __init__(self, codes: Vector, alphabet: Vector, longest: int) -> None:
        super().__init__([])
        self.codes, self.alphabet, self.longest = codes, alphabet, longest

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def base(self) -> int:
        """One more than the number of characters: the digit 0 stands for no character."""
        return len(self.alphabet) + 1

    @cached_property
    def lengths(self) -> Vector:
        """The number of characters of each k-gram."""
        powers = [self.base**length for length in range(self.longest)]
        return np.searchsorted(np.array(powers, dtype=np.int64), self.codes, side="right")

    @property
    def digits(self) -> Matrix:
        """The positions of the characters in the alphabet, one row per k-gram, last character first; -1 for none."""
        digits = np.empty((len(self.codes), self.longest), dtype=np.int64)
        rest = self.codes
        for place in range(self.longest):
            rest, digits[:, place] = np.divmod(rest, self.base)
        return digits - 1

    @property
    def names(self) -> list[Any]:
        """The k-grams as strings."""
        # the extra last entry stands for no character and is cut off
        characters = np.append(self.alphabet, 0)[self.digits[:, ::-1]].astype("<i4")
        rows = (row.tobytes().decode("utf-32-le", "surrogatepass") for row in characters)
        return [row[self.longest - length :] for row, length in zip(rows, self.lengths.tolist(), strict=True)]

    def _find(self, other: Names) -> Vector:
        if not isinstance(other, Grams):
            return super()._find(other)
        codes = self.codes
        known = np.ones(len(codes), dtype=bool)
        if not np.array_equal(self.alphabet, other.alphabet):
            digits = self.digits
            table = np.append(
                Text(_digits_of(self.alphabet), _NO_STARTS, self.alphabet).over(other.alphabet).digits, -1
            )
            there = table[digits]
            known = ~np.any((there < 0) & (digits >= 0), axis=1) & (self.lengths <= other.longest)
            codes = np.zeros(len(codes), dtype=np.int64)
            for place in range(min(self.longest, other.longest) - 1, -1, -1):
                codes = codes * other.base + there[:, place] + 1
        if len(other.codes) == 0:
            return np.full(len(codes), -1, dtype=np.intp)
        places = np.minimum(np.searchsorted(other.codes, codes), len(other.codes) - 1)
        return np.where(known & (other.codes[places] == codes), places, -1)


_NO_STARTS = np.zeros(1, dtype=np.int64)
_NO_PLACES = np.empty(0, dtype=np.int64)


def _digits_of(alphabet: Vector) -> Vector:
    return np.arange(len(alphabet), dtype=np.int32)


def count_grams(text: Text, shortest: int, longest: int) -> Counted:
    """How often each run of ``shortest`` to ``longest`` characters occurs in each string.

    All characters must be in the alphabet.
    """
    # no run is longer than the longest string
    longest = max(1, min(longest, text.longest))
    shortest = min(shortest, longest + 1)
    base = len(text.alphabet) + 1
    if base**longest >= LARGEST_CODE:
        return count_long_grams(text, shortest, longest)
    from mercer.kernels.objects._string_loops import gram_counts, mark

    indptr, codes, counts = gram_counts(text.digits, text.starts, shortest, longest, base)
    if base**longest <= TABLE:
        seen = np.zeros(base**longest, dtype=np.int32)
        mark(codes, seen)
        distinct = np.flatnonzero(seen)
        seen[distinct] = np.arange(len(distinct))
        columns = seen[codes]
    else:
        distinct, columns = np.unique(codes, return_inverse=True)
    shape = (len(indptr) - 1, len(distinct))
    counted = Csr(indptr, columns.astype(np.int32, copy=False), counts.astype(np.float64), shape)
    return Counted(counted, Grams(distinct, text.alphabet, longest))


def count_long_grams(text: Text, shortest: int, longest: int, placed: bool = False) -> Counted:
    """`count_grams` for runs whose codes exceed 64 bits. Equal runs are numbered by prefix doubling.

    A run of l characters is identified by its first h and its last h characters, where h is the largest power of 2 that
    is at most l. With ``placed``, runs at different positions of their strings are different: they are named (position,
    run).
    """
    n, total = len(text.starts) - 1, len(text.digits)
    strings = np.repeat(np.arange(n), np.diff(text.starts))
    room = np.repeat(text.starts[1:], np.diff(text.starts)) - np.arange(total)
    place_of = np.arange(total) - np.repeat(text.starts[:-1], np.diff(text.starts))
    rank, half = text.digits.astype(np.int64), 1
    rows, columns = [_NO_PLACES], [_NO_PLACES]
    names: list[Any] = []
    for length in range(1, longest + 1):
        if length == 2 * half:
            rank, half = _pairs(rank, rank, half)[1], length
        if length < shortest:
            continue
        places = np.flatnonzero(room >= length)
        firsts, numbers = _pairs(rank, rank, length - half, places)
        if placed:
            keys = numbers * (int(place_of.max(initial=0)) + 1) + place_of[places]
            _, found, numbers = np.unique(keys, return_index=True, return_inverse=True)
            firsts = places[found]
        rows.append(strings[places])
        columns.append(numbers + len(names))
        found_runs = (text.alphabet[text.digits[p : p + length]].astype("<i4").tobytes() for p in firsts.tolist())
        runs = [run.decode("utf-32-le", "surrogatepass") for run in found_runs]
        names += list(zip(place_of[firsts].tolist(), runs, strict=True)) if placed else runs
    row, column = np.concatenate(rows), np.concatenate(columns)
    X = sp.coo_array((np.ones(len(row)), (row, column)), shape=(n, len(names))).tocsr()
    return Counted(Csr.of(X, np.dtype(np.float64)), Names(names))


def _pairs(left: Vector, right: Vector, shift: int, places: Vector | None = None) -> tuple[Vector, Vector]:
    """Number the distinct pairs (left[p], right[p + shift]): a position of each pair, and the number at each p.

    Beyond the end of ``right`` any value will do, since no run that long is used.
    """
    places = np.arange(len(left)) if places is None else places
    second = right[np.minimum(places + shift, len(right) - 1)]
    pairs = left[places] * (int(right.max(initial=0)) + 1) + second
    _, firsts, numbers = np.unique(pairs, return_index=True, return_inverse=True)
    return places[firsts], numbers


@dataclass(frozen=True, repr=False)
class Spectrum(CountKernel):
    """k(x, z) = Σ_u count(u in x) count(u in z) over all strings u of k characters ([CS229] 5.4; Leslie et al. 2002).

    Parameters
    ----------
    k : int, default=3
        The number of characters of u.
    shortest : int, default=None
        If given, strings u of ``shortest`` to ``k`` characters are counted.
    weights : tuple of float, default=None
        A factor ≥ 0 for each length from ``shortest`` to ``k``; None for 1 each.
    normalize : bool, default=False
        Divide by sqrt(k(x, x) k(z, z)). A string of fewer than ``shortest`` characters has k(x, x) = 0, and then every
        value is 0.

    Examples
    --------
    >>> from mercer.kernels import Spectrum
    >>> Spectrum(k=2)(["abab", "ba", "cab"])
    array([[5., 1., 2.],
           [1., 1., 0.],
           [2., 0., 2.]])
    >>> from mercer import SVC
    >>> machine = SVC(kernel=Spectrum(3)).fit(["banana", "bandana", "tomato", "potato"], [0, 0, 1, 1])
    >>> machine.predict(["panama", "automat"])
    array([0, 1])
    """

    k: int = 3
    shortest: int | None = None
    weights: tuple[float, ...] | None = None
    normalize: bool = False

    def __post_init__(self) -> None:
        check_length(self, "k")
        if self.shortest is not None:
            check_length(self, "shortest")
            if self.shortest > self.k:
                raise InvalidInputError(f"shortest={self.shortest} must be at most k={self.k}.")
        if self.weights is not None:
            count = self.k - self.first + 1
            object.__setattr__(
                self, "weights", check_weights("weights", self.weights, count, f"length from {self.first} to {self.k}")
            )
        check_flag(self, "normalize")

    @property
    def first(self) -> int:
        """The smallest length that is counted."""
        return self.k if self.shortest is None else self.shortest

    @property
    def domain(self) -> str:
        return "strings"

    def count(self, samples: list[Any]) -> Counted:
        counted = count_grams(Text.of(samples), self.first, self.k)
        if self.weights is None:
            return counted
        names = counted.names
        lengths = (
            names.lengths if isinstance(names, Grams) else np.array([len(name) for name in names.names], dtype=int)
        )
        factors = np.sqrt(self.weights)[lengths - self.first]
        return counted._replace(
            counts=counted.counts._replace(data=counted.counts.data * factors[counted.counts.indices])
        )


@dataclass(frozen=True, repr=False)
class Mismatch(CountKernel):
    """k(x, z) = Σ_u c_u(x) c_u(z), where c_u(x) counts the runs of k characters in x with at most m mismatches to u.

    The sum is over all strings u of k characters of the alphabet (Leslie, Eskin, Cohen, Weston & Noble 2004). A
    character of x that is not in the alphabet differs from every character of u. The strings u of each run are listed;
    if they are too many, as with k = 5, m = 2 and amino acids, all pairs of runs are compared, in time |x| |z|.

    Parameters
    ----------
    k : int, default=4
        The number of characters of u.
    m : int, default=1
        How many of them may differ.
    alphabet : str, default=None
        The characters of u; None for all that occur in the training samples.
    normalize : bool, default=False
        Divide by sqrt(k(x, x) k(z, z)); where k(x, x) is 0, every value is 0.

    Examples
    --------
    >>> from mercer.kernels import Mismatch
    >>> Mismatch(k=2, m=1, alphabet="ab")(["aa", "ab", "bb"])
    array([[3., 2., 2.],
           [2., 3., 2.],
           [2., 2., 3.]])
    """

    k: int = 4
    m: int = 1
    alphabet: str | None = None
    normalize: bool = False

    def __post_init__(self) -> None:
        check_length(self, "k")
        check_length(self, "m", 0)
        if self.m >= self.k:
            raise InvalidInputError(f"m={self.m} must be less than k={self.k}: otherwise all strings would match.")
        if self.alphabet is not None:
            if not isinstance(self.alphabet, str) or not self.alphabet:
                raise InvalidInputError(f"alphabet={self.alphabet!r} must be a string of characters, such as 'ACGT'.")
            object.__setattr__(self, "alphabet", "".join(sorted(set(self.alphabet))))
        check_flag(self, "normalize")

    @property
    def domain(self) -> str:
        return "strings"

    def bind(self, samples: Any) -> Kernel:
        if self.alphabet is not None:
            return self
        letters = sorted(set().union(*as_objects(self, samples)))
        return replace(self, alphabet="".join(letters) or " ")

    def prepare(self, samples: Any, dtype: Any = np.float64) -> Any:
        """The counts of each sample, or the encoded strings if runs have too many neighbours."""
        return super().prepare(samples, dtype) if self._lists() else self._pairs().prepare(samples, dtype)

    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        return self._pairs().block(a, b, out) if isinstance(b, TextFeatures) else super().block(a, b, out)

    def diagonal(self, a: Features) -> Vector:
        return self._pairs().diagonal(a) if isinstance(a, TextFeatures) else super().diagonal(a)

    def triangle_rows(self, a: Features) -> int:
        return self._pairs().triangle_rows(a) if isinstance(a, TextFeatures) else super().triangle_rows(a)

    def _lists(self) -> bool:
        """Whether to list neighbours: if they are few for each run, or few for all possible runs together."""
        letters = len(self._letters())
        each = self._n_neighbours(letters)
        return each <= LISTED_NEIGHBOURS or each * letters**self.k <= MOST_NEIGHBOURS

    def _pairs(self) -> MismatchPairs:
        assert self.alphabet is not None
        return MismatchPairs(self.k, self.m, self.alphabet, self.normalize)

    def _n_neighbours(self, letters: int) -> int:
        """The number of strings with at most m mismatches to a run."""
        return sum(comb(self.k, r) * (letters - 1) ** r for r in range(self.m + 1))

    def _letters(self) -> Vector:
        """The code points of the alphabet."""
        if self.alphabet is None:
            raise InvalidInputError(
                f"{self!r} is not bound to samples: its alphabet depends on them. Use kernel.bind(samples) first."
            )
        letters = Text.of([self.alphabet]).alphabet
        if self.k * log2(len(letters) + 2) >= log2(LARGEST_CODE):
            raise InvalidInputError(
                f"{self!r} compares runs of {self.k} characters out of {len(letters)}, but at most 2^62 different runs "
                "are supported. Choose a smaller k, or a smaller alphabet."
            )
        return letters

    def count(self, samples: list[Any]) -> Counted:
        letters = self._letters()
        text = Text.of(samples, letters)
        # one extra character stands for all characters that are not in the alphabet
        foreign = np.append(letters, np.int32(-1))
        own = text._replace(digits=np.where(text.digits < 0, len(letters), text.digits), alphabet=foreign)
        counts, runs = count_grams(own, self.k, self.k)
        assert isinstance(runs, Grams)
        neighbours, names = self._neighbours(runs, letters)
        X = sp.csr_array((counts.data, counts.indices, counts.indptr), shape=counts.shape) @ neighbours
        X.sort_indices()
        return Counted(Csr.of(X, np.dtype(np.float64)), names)

    def _neighbours(self, runs: Grams, letters: Vector) -> tuple[Any, Grams]:
        """A sparse matrix with a row per run: 1 for every string of the alphabet with at most m mismatches to it."""
        expected = len(runs) * self._n_neighbours(len(letters))
        if expected > MOST_NEIGHBOURS:
            raise InvalidInputError(
                f"{self!r} would list {expected:,} strings within {self.m} mismatches of the {len(runs):,} runs of "
                f"{self.k} characters in these samples, but at most {MOST_NEIGHBOURS:,} are supported. Choose a "
                "smaller k or m, or fewer samples."
            )
        digits = runs.digits[:, ::-1] if len(runs) else np.empty((0, self.k), dtype=np.int64)
        base, every = len(letters) + 1, np.arange(len(letters))
        # prefixes (run, code, mismatches so far) that are extended by one letter at a time
        near = np.stack(
            [np.arange(len(runs)), np.zeros(len(runs), dtype=np.int64), np.zeros(len(runs), dtype=np.int64)]
        )
        for place in range(self.k):
            run, code, spent = near
            here = digits[run, place]
            same = here < len(letters)
            kept = np.stack([run, code * base + here + 1, spent])[:, same]
            run, code, spent = near[:, spent < self.m].repeat(len(letters), axis=1)
            letter = np.tile(every, len(run) // len(letters))
            changed = np.stack([run, code * base + letter + 1, spent + 1])[:, letter != digits[run, place]]
            near = np.concatenate([kept, changed], axis=1)
        run, codes, _ = near
        distinct, columns = np.unique(codes, return_inverse=True)
        matrix = sp.coo_array((np.ones(len(run)), (run, columns)), shape=(len(runs), len(distinct))).tocsr()
        return matrix, Grams(distinct, letters, self.k)


@dataclass(frozen=True, repr=False)
class CommonSubstrings(TextKernel):
    """k(x, z) = the number of different strings that are substrings of both ([SSBD] 16.2.1).

    In feature space each coordinate is 1 if a string occurs in x. With ``repeated`` it is the number of occurrences:
    k(x, z) is Σ_u count(u in x) count(u in z) over strings u of every length. The empty string is not counted. A suffix
    automaton of one string reads the other: time and memory are linear in the lengths of the two.

    Parameters
    ----------
    repeated : bool, default=False
        Whether to count occurrences, instead of whether there are any.
    normalize : bool, default=False
        Divide by sqrt(k(x, x) k(z, z)); an empty string has k(x, x) = 0, and then every value is 0.

    Examples
    --------
    >>> from mercer.kernels import CommonSubstrings
    >>> CommonSubstrings()(["aab", "ab", "c"])
    array([[5., 3., 0.],
           [3., 3., 0.],
           [0., 0., 1.]])
    >>> CommonSubstrings(repeated=True)(["aab", "ab", "c"])
    array([[8., 4., 0.],
           [4., 3., 0.],
           [0., 0., 1.]])
    """

    repeated: bool = False
    normalize: bool = False

    def __post_init__(self) -> None:
        check_flag(self, "repeated")
        check_flag(self, "normalize")

    def count(self, samples: list[Any]) -> Counted:
        """All substrings of each string. Only the feature map needs them; kernel values do not."""
        text = Text.of(samples)
        found = count_grams(text, 1, text.longest)
        if self.repeated:
            return found
        return found._replace(counts=found.counts._replace(data=np.ones(len(found.counts.data))))

    def compare(self, a: TextFeatures, b: TextFeatures, diagonal: bool, out: Matrix) -> None:
        from mercer.kernels.objects._string_loops import substrings_block

        own, other = a.text, b.over(a).text
        letters = len(own.alphabet)
        substrings_block(self.repeated, own.digits, own.starts, other.digits, other.starts, letters, diagonal, out)
