"""String kernels with gaps (Subsequence), mismatches (Window) or positions (WeightedDegree); [M5] "String kernels"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.kernels.base import check_number
from mercer.kernels.features import Matrix, Vector
from mercer.kernels.objects.counts import Counted
from mercer.kernels.objects.string_base import Text, TextFeatures, TextKernel, check_flag, check_length, check_weights
from mercer.kernels.objects.substrings import count_long_grams

# tolerance for negative eigenvalues of the similarity matrix of characters, which rounding may cause
ROUNDING = 1e-12


@dataclass(frozen=True, repr=False)
class Subsequence(TextKernel):
    """k(x, z) = Σ λ^(l(i) + l(j)) over all index sequences i in x and j in z that select the same k characters.

    The characters need not be contiguous: l(i) is the distance from the first to the last of them, so that each
    character in a gap costs a factor λ = ``decay`` (Lodhi et al. 2002). Dynamic programming takes time k |x| |z|.

    Parameters
    ----------
    k : int, default=3
        The number of characters of a subsequence.
    decay : float, default=0.5
        λ, above 0 and at most 1. With 1 gaps cost nothing.
    normalize : bool, default=False
        Divide by sqrt(k(x, x) k(z, z)), as Lodhi et al. do; if x has fewer than k characters, all its values are 0.

    Examples
    --------
    >>> from mercer.kernels import Subsequence
    >>> Subsequence(k=2, decay=0.5)(["cat", "car", "bat"]) * 64
    array([[9., 4., 4.],
           [4., 9., 0.],
           [4., 0., 9.]])
    """

    k: int = 3
    decay: float = 0.5
    normalize: bool = False

    def __post_init__(self) -> None:
        check_length(self, "k")
        decay = check_number("decay", self.decay)
        if not 0 < decay <= 1:
            raise InvalidInputError(f"decay={self.decay!r} must be above 0 and at most 1.")
        object.__setattr__(self, "decay", decay)
        check_flag(self, "normalize")

    def compare(self, a: TextFeatures, b: TextFeatures, diagonal: bool, out: Matrix) -> None:
        from mercer.kernels.objects._string_loops import subsequences_block

        own, other = a.over(b).text, b.text
        if self.k > min(own.longest, other.longest):
            out[...] = 0.0
            return
        subsequences_block(own.digits, own.starts, other.digits, other.starts, self.k, self.decay, diagonal, out)


@dataclass(frozen=True, repr=False)
class Window(TextKernel):
    """k(x, z) = Σ_ij Π_p S(x[i+p], z[j+p]) + Σ_m count(m in x) count(m in z): windows slide over both strings.

    S is the similarity of two characters: 1 if they are equal, else their entry in ``weights``, or ``mismatch`` if they
    have none. Markers m are strings whose occurrences are counted in addition ([M5]).

    It is positive semidefinite if the matrix S is, since sums and products of kernels are kernels. This is checked for
    the characters in ``weights``; with ``mismatch`` alone it always holds. With ``mismatch=0`` and no ``weights`` the
    sum over windows is ``Spectrum(k)``.

    Parameters
    ----------
    k : int, default=3
        The length of the window.
    mismatch : float, default=0.0
        The similarity of two different characters, from 0 to 1.
    weights : dict, default=()
        Other similarities of pairs of characters, such as {"AG": 0.5, "CT": 0.5}: in DNA, transitions matter less than
        other mismatches. Stored as a tuple of pairs.
    markers : tuple of str, default=()
        Strings to be counted, such as ("AGT",).
    normalize : bool, default=False
        Divide by sqrt(k(x, x) k(z, z)); where k(x, x) is 0, every value is 0.

    Examples
    --------
    >>> from mercer.kernels import Window
    >>> Window(k=2, mismatch=0.5)(["ab", "ac", "cd"])
    array([[1.  , 0.5 , 0.25],
           [0.5 , 1.  , 0.25],
           [0.25, 0.25, 1.  ]])
    >>> Window(k=2, weights={"AG": 0.5}, markers=("AGT",))(["AGT", "GGT", "AAGT"])
    array([[3.  , 1.5 , 3.5 ],
           [1.5 , 2.  , 1.75],
           [3.5 , 1.75, 5.  ]])
    """

    k: int = 3
    mismatch: float = 0.0
    weights: tuple[tuple[str, float], ...] = ()
    markers: tuple[str, ...] = ()
    normalize: bool = False

    def __post_init__(self) -> None:
        check_length(self, "k")
        mismatch = check_number("mismatch", self.mismatch)
        if not 0 <= mismatch <= 1:
            raise InvalidInputError(
                f"mismatch={self.mismatch!r} must be from 0 to 1: equal characters have similarity 1."
            )
        object.__setattr__(self, "mismatch", mismatch)
        object.__setattr__(self, "weights", _check_pair_weights(self.weights))
        markers = (self.markers,) if isinstance(self.markers, str) else tuple(self.markers)
        if not all(isinstance(marker, str) and marker for marker in markers):
            raise InvalidInputError(f"markers={self.markers!r} must be strings of at least one character.")
        object.__setattr__(self, "markers", tuple(sorted({str(marker) for marker in markers})))
        check_flag(self, "normalize")
        # S = mismatch + (S - mismatch). Outside of the characters in weights the second part is a multiple of the
        # identity, so S is positive semidefinite if and only if S - mismatch is so on the characters in weights
        smallest = float(np.linalg.eigvalsh(self._similarities()[0] - mismatch).min(initial=0.0))
        if smallest < -ROUNDING:
            raise InvalidInputError(
                f"{self!r} is not a kernel: the similarity matrix of the characters {''.join(self._letters)!r}, minus "
                f"mismatch, has the eigenvalue {smallest:.3g}. Choose smaller weights, nearer to mismatch."
            )

    @property
    def _letters(self) -> list[str]:
        return sorted({letter for pair, _ in self.weights for letter in pair})

    def _similarities(self) -> tuple[Matrix, Vector]:
        """S among the characters in ``weights``, and their code points."""
        letters = self._letters
        S = np.full((len(letters), len(letters)), self.mismatch)
        np.fill_diagonal(S, 1.0)
        for pair, value in self.weights:
            i, j = letters.index(pair[0]), letters.index(pair[1])
            S[i, j] = S[j, i] = value
        return S, np.array([ord(letter) for letter in letters], dtype=np.int32)

    def compare(self, a: TextFeatures, b: TextFeatures, diagonal: bool, out: Matrix) -> None:
        from mercer.kernels.objects._string_loops import windows_block

        S, letters = self._similarities()
        own, other = a.over(b).text, b.text
        if self.k > min(own.longest, other.longest):
            out[...] = 0.0
        else:
            kinds, others = a.text.over(letters).digits, other.over(letters).digits
            windows_block(
                own.digits,
                own.starts,
                kinds,
                other.digits,
                other.starts,
                others,
                self.k,
                self.mismatch,
                S,
                diagonal,
                out,
            )
        for marker in self.markers:
            x, z = (_occurrences(marker, features.text) for features in (a, b))
            if diagonal:
                out[:, 0] += x * z
            else:
                out += np.outer(x, z)


@dataclass(frozen=True, repr=False)
class WeightedDegree(TextKernel):
    """k(x, z) = Σ_l w_l (number of positions p at which x[p:p+l] and z[p:p+l] are equal), l = 1, …, d.

    For aligned strings, in which the position matters, such as DNA around a splice site (Rätsch & Sonnenburg 2004). A
    string that ends before position p + l matches nothing there.

    Parameters
    ----------
    d : int, default=20
        The length of the longest substrings that are compared; longer matches count through their parts.
    weights : tuple of float, default=None
        w_1, …, w_d ≥ 0; None for w_l = 2 (d - l + 1) / (d (d + 1)), which sum to 1.
    normalize : bool, default=False
        Divide by sqrt(k(x, x) k(z, z)); where k(x, x) is 0, every value is 0.

    Examples
    --------
    >>> from mercer.kernels import WeightedDegree
    >>> WeightedDegree(d=2, weights=(1, 1))(["ACGT", "ACGA", "CACG"])
    array([[7., 5., 0.],
           [5., 7., 0.],
           [0., 0., 7.]])
    """

    d: int = 20
    weights: tuple[float, ...] | None = None
    normalize: bool = False

    def __post_init__(self) -> None:
        check_length(self, "d")
        if self.weights is not None:
            weights = check_weights("weights", self.weights, self.d, f"length from 1 to {self.d}")
            object.__setattr__(self, "weights", weights)
        check_flag(self, "normalize")

    def count(self, samples: list[Any]) -> Counted:
        """√w_l for each run of l characters and its position. Only the feature map needs it."""
        text = Text.of(samples)
        found = count_long_grams(text, 1, min(self.d, text.longest), placed=True)
        lengths = np.array([len(run) for _, run in found.names.names], dtype=np.intp)
        factors = np.sqrt(self._weights(text.longest))[lengths - 1]
        return found._replace(counts=found.counts._replace(data=factors[found.counts.indices]))

    def compare(self, a: TextFeatures, b: TextFeatures, diagonal: bool, out: Matrix) -> None:
        from mercer.kernels.objects._string_loops import degrees_block

        longest = min(a.text.longest, b.text.longest)
        degrees_block(a.over(b).planes, b.planes, self._weights(longest), diagonal, out)

    def _weights(self, longest: int) -> Vector:
        """w_1, w_2, … up to the longest possible match."""
        if self.weights is not None:
            return np.array(self.weights[:longest], dtype=np.float64)
        d = float(self.d)
        return 2.0 * (d - np.arange(min(self.d, longest))) / (d * (d + 1.0))


def _check_pair_weights(weights: Any) -> tuple[tuple[str, float], ...]:
    """Return the weights of pairs of characters, each pair once and in order, or raise."""
    pairs = weights.items() if isinstance(weights, Mapping) else weights
    checked: dict[str, float] = {}
    try:
        for pair, value in pairs:
            one, other = sorted(pair)
            number = check_number(f"weights[{pair!r}]", value)
            if one == other or not 0 <= number <= 1 or checked.get(one + other, number) != number:
                raise ValueError(pair)
            checked[one + other] = number
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"weights={weights!r} must give each pair of different characters one number from 0 to 1, such as "
            "{'AG': 0.5, 'CT': 0.5}."
        ) from error
    return tuple(sorted(checked.items()))


def _occurrences(marker: str, text: Text) -> Vector:
    """How often a marker occurs in each string, overlaps included."""
    pattern = Text.of([marker]).over(text.alphabet).digits
    starts, size = text.starts, len(pattern)
    if np.any(pattern < 0) or len(text.digits) < size:
        return np.zeros(len(starts) - 1)
    found = np.all(np.lib.stride_tricks.sliding_window_view(text.digits, size) == pattern, axis=1)
    before = np.concatenate([[0], np.cumsum(found)])
    # a marker must not extend beyond the end of its string
    last = np.clip(starts[1:] - size + 1, starts[:-1], len(found))
    return (before[last] - before[np.minimum(starts[:-1], last)]).astype(np.float64)
