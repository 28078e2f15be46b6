"""Kernels on strings as loops over places in plain Python: slow, and too short to be wrong."""

from itertools import combinations, product
from math import fsum, prod, sqrt

import numpy as np

# short and long, empty, one character, repeats, other scripts, beyond 16 bits, the character 0, blanks, lone surrogates
STRINGS = [
    "abab",
    "ba",
    "cab",
    "",
    "a",
    "aab",
    "日本語日本",
    "𝒳a\0b𝒳a\0",
    "abcabcabc",
    "xyzxyz ab",
    "aaaaaaa",
    "b a\ud800c",
]


def gram(k, X, Z):
    return np.array([[k(x, z) for z in Z] for x in X], dtype=float).reshape(len(X), len(Z))


def normalized(k):
    def value(x, z):
        squares = k(x, x) * k(z, z)
        return k(x, z) / sqrt(squares) if squares > 0 else 0.0

    return value


def runs(x, k):
    return [x[p : p + k] for p in range(len(x) - k + 1)]


def substrings(x):
    return [run for k in range(1, len(x) + 1) for run in runs(x, k)]


def spectrum(weights):
    """``weights`` by length."""
    return lambda x, z: fsum(w * sum(u == v for u in runs(x, k) for v in runs(z, k)) for k, w in weights.items())


def mismatch(k, m, alphabet):
    def count(x, u):
        return sum(sum(a != b for a, b in zip(run, u, strict=True)) <= m for run in runs(x, k))

    words = ["".join(letters) for letters in product(alphabet, repeat=k)]
    return lambda x, z: sum(count(x, u) * count(z, u) for u in words)


def common_substrings(x, z):
    return len(set(substrings(x)) & set(substrings(z)))


def repeated_substrings(x, z):
    return sum(u == v for u in substrings(x) for v in substrings(z))


def subsequence(k, decay):
    def weighted(x):
        found = [
            ("".join(x[p] for p in places), places[-1] - places[0] + 1) for places in combinations(range(len(x)), k)
        ]
        return [(run, decay**span) for run, span in found]

    return lambda x, z: fsum(v * w for run, v in weighted(x) for other, w in weighted(z) if run == other)


def window(k, similarity, markers=()):
    def value(x, z):
        pairs = product(runs(x, k), runs(z, k))
        total = fsum(prod(similarity(a, b) for a, b in zip(u, v, strict=True)) for u, v in pairs)
        return total + sum(runs(x, len(m)).count(m) * runs(z, len(m)).count(m) for m in markers)

    return value


def weighted_degree(weights):
    """``weights`` of the lengths 1, 2, …"""

    def value(x, z):
        places = range(min(len(x), len(z)))
        return fsum(
            w * sum(x[p : p + k] == z[p : p + k] for p in places if p + k <= min(len(x), len(z)))
            for k, w in enumerate(weights, 1)
        )

    return value
