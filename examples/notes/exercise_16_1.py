"""Which margin has "v is a substring of x"? ([SSBD] Exercise 16.1, 16.2.1)

    python examples/notes/exercise_16_1.py

ψ(x) has a coordinate for every string v: 1 if v is a substring of x, else 0. The exercise asks for a halfspace of norm
1 and margin 1.

Answer: there is one of norm 1 and margin 1/2, w = e_v and b = -1/2, as <e_v, ψ(x)> is 1 or 0. The margin 1 cannot be
had: for v = "a" the strings "a" and "" are on different sides, and their features differ in one coordinate, so that
they are at distance 1. No hyperplane is farther than 1/2 from both. Through the origin, with the constant feature of
the empty string, w = 2e_v - e_"" has y<w, ψ(x)> = 1 and the norm √5: the margin 1/√5.

Checked with Hard-SVM on all strings of at most four letters a and b, for several v among them.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from mercer import SVC, CommonSubstrings

STRINGS = ["".join(letters) for length in range(5) for letters in product("ab", repeat=length)]


def labels(v: str) -> np.ndarray:
    """h_v of all strings."""
    return np.where([v in x for x in STRINGS], 1, -1)


def distance(x: str, z: str) -> float:
    """|ψ(x) - ψ(z)|, by kernel values."""
    K = CommonSubstrings()([x, z])
    return float(np.sqrt(K[0, 0] + K[1, 1] - 2 * K[0, 1]))


def largest_margin(v: str, bias: bool = True) -> float:
    """That of Hard-SVM on all strings, with a bias, or through the origin with the constant feature."""
    kernel = CommonSubstrings() if bias else CommonSubstrings() + 1
    return float(SVC(kernel=kernel, C=np.inf, fit_intercept=bias, tol=1e-9).fit(STRINGS, labels(v)).margin_[0])


def main() -> None:
    """Print the largest margins beside 1/2 and 1/√5, and half the distance of the closest strings of both sides."""
    print(f"{len(STRINGS)} strings of at most 4 letters")
    print("v      largest margin   through the origin   half the distance of the closest pair")
    for v in ("a", "b", "ab", "aa", "aba", "abb", "abab"):
        y = labels(v)
        pairs = product(np.flatnonzero(y > 0), np.flatnonzero(y < 0))
        closest = min(distance(STRINGS[i], STRINGS[j]) for i, j in pairs) / 2
        biased, homogeneous = largest_margin(v), largest_margin(v, bias=False)
        print(f"{v:<4}   {biased:14.4f}   {homogeneous:18.4f}   {closest:37.4f}")
        # e_v has this margin, so the largest is not smaller; and no margin is larger than half of the least distance
        assert 0.5 - 1e-6 <= biased <= closest + 1e-6
        assert homogeneous >= 1 / np.sqrt(5) - 1e-6
    assert distance("a", "") == 1.0
    assert abs(largest_margin("a") - 0.5) < 1e-6
    print('"a" and "" are at distance 1: for v = "a" the margin 1/2 is the largest, and the claimed 1 impossible.')


if __name__ == "__main__":
    main()
