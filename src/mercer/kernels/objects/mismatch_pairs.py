"""The mismatch kernel without lists of neighbours: all pairs of runs, and how many strings each pair shares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mercer.kernels.features import Matrix, Vector
from mercer.kernels.objects.string_base import Text, TextFeatures, TextKernel


@dataclass(frozen=True, repr=False)
class MismatchPairs(TextKernel):
    """k(x, z) = Σ N(a, b) over runs a of x and b of z: the number of strings with at most m mismatches to both.

    It equals ``Mismatch``, whose lists grow with the power m of the alphabet; this takes time |x| |z| for any alphabet.
    """

    k: int
    m: int
    alphabet: str
    normalize: bool = False

    def compare(self, a: TextFeatures, b: TextFeatures, diagonal: bool, out: Matrix) -> None:
        from mercer.kernels.objects._string_loops import mismatches_block

        letters = Text.of([self.alphabet]).alphabet
        own, other = a.text.over(letters), b.text.over(letters)
        table = shared_neighbours(self.k, self.m, len(letters))
        mismatches_block(own.digits, own.starts, other.digits, other.starts, self.k, table, diagonal, out)


@lru_cache(maxsize=16)
def shared_neighbours(k: int, m: int, letters: int) -> Vector:
    """N for runs of k characters, at the place d + x(k+1) + y(k+1)² + z(k+1)³.

    The runs differ in d positions; in x, y and z positions the first, the second or both have a character that is not
    among the letters. At each position, let s and t count the mismatches of a letter u with the two runs. Summed over
    the letters this is 1 + (A-1)st if the runs are equal there, s + t + (A-2)st if they differ, s + (A-1)st or
    t + (A-1)st if one has no letter, and A st if both have none. N is the sum of the coefficients of sⁱtʲ, i, j ≤ m, in
    the product over the positions.
    """
    A = float(letters)
    other, first, second, both = (
        _polynomial(m, s=1.0, t=1.0, st=A - 2.0),
        _polynomial(m, s=1.0, st=A - 1.0),
        _polynomial(m, t=1.0, st=A - 1.0),
        _polynomial(m, st=A),
    )
    # reversed cumulative sums of the coefficients of (1 + (A-1)st)^e: their inner product with the coefficients of P is
    # the sum of the coefficients of the product, i, j ≤ m
    equal, sums = _polynomial(m, one=1.0), []
    for _ in range(k + 1):
        sums.append(equal.cumsum(axis=0).cumsum(axis=1)[::-1, ::-1])
        equal = _product(_polynomial(m, one=1.0, st=A - 1.0), equal)
    table = np.zeros((k + 1,) * 4)
    of_both = _polynomial(m, one=1.0)
    for z in range(min(k, m) + 1):
        of_second = of_both
        for y in range(min(k - z, m - z) + 1):
            of_first = of_second
            for x in range(min(k - z - y, m - z) + 1):
                P, rest = of_first, k - x - y - z
                for d in range(min(rest, 2 * m) + 1):
                    table[z, y, x, d] = float(np.sum(P * sums[rest - d]))
                    P = _product(other, P)
                of_first = _product(first, of_first)
            of_second = _product(second, of_second)
        of_both = _product(both, of_both)
    return table.ravel()


def _polynomial(m: int, one: float = 0.0, s: float = 0.0, t: float = 0.0, st: float = 0.0) -> Matrix:
    """Coefficients of sⁱtʲ up to i, j = m."""
    P = np.zeros((m + 1, m + 1))
    P[0, 0] = one
    if m:
        P[1, 0], P[0, 1], P[1, 1] = s, t, st
    return P


def _product(few: Matrix, P: Matrix) -> Matrix:
    """The product of two polynomials, the first of which has powers 0 and 1 only."""
    found = few[0, 0] * P
    if len(P) > 1:
        found[1:] += few[1, 0] * P[:-1]
        found[:, 1:] += few[0, 1] * P[:, :-1]
        found[1:, 1:] += few[1, 1] * P[:-1, :-1]
    return found
