"""Each loop over strings, by the plain Python of ``tests/reference/string.py``."""

from collections import Counter

import numpy as np
import pytest
from tests.reference import string as reference

from mercer.kernels.objects import _string_loops as loops
from mercer.kernels.objects.mismatch_pairs import shared_neighbours

STRINGS = ["abab", "ba", "cab", "", "a", "aab", "abcabcabc", "aaaaaaa"]
OTHERS = ["ab", "", "ca?b", "aabab?", "bbbb"]
LETTERS = "abc"


def digits(strings):
    """(digits, starts); a letter that is not known has the digit -1."""
    starts = np.cumsum([0, *map(len, strings)])
    return np.array([LETTERS.find(letter) for text in strings for letter in text], np.int32), starts


def blocks(value):
    """(out of all pairs, out of the pairs with themselves) with the values that are expected."""
    return (
        (digits(OTHERS), False, reference.gram(value, STRINGS, OTHERS)),
        (digits(STRINGS), True, np.array([[value(text, text)] for text in STRINGS], float)),
    )


@pytest.mark.parametrize(("shortest", "longest"), [(1, 1), (2, 2), (1, 3), (4, 9)])
def test_gram_counts(shortest, longest):
    """The runs of each string as numbers, sorted, with their counts."""
    indptr, codes, counts = loops.gram_counts(*digits(STRINGS), shortest, longest, 4)
    for i, text in enumerate(STRINGS):
        runs = [run for k in range(shortest, longest + 1) for run in reference.runs(text, k)]
        expected = Counter(sum((LETTERS.index(c) + 1) * 4**p for p, c in enumerate(reversed(run))) for run in runs)
        part = slice(indptr[i], indptr[i + 1])
        assert list(zip(codes[part].tolist(), counts[part].tolist(), strict=True)) == sorted(expected.items())


@pytest.mark.parametrize("base", [4, 1 << 10, 1 << 20])
@pytest.mark.parametrize("n", [30, 35, 90, 500])
def test_codes_of_many_runs_are_sorted(n, base):
    """Few runs are sorted by another method than many, and codes have up to 62 bits."""
    letters = np.random.default_rng(n).integers(0, base - 1, n).astype(np.int32)
    indptr, codes, counts = loops.gram_counts(letters, np.array([0, n]), 3, 3, base)
    a, b, c = letters[:-2].astype(int) + 1, letters[1:-1].astype(int) + 1, letters[2:].astype(int) + 1
    expected, expected_counts = np.unique((a * base + b) * base + c, return_counts=True)
    assert indptr.tolist() == [0, len(expected)]
    np.testing.assert_array_equal(codes, expected)
    np.testing.assert_array_equal(counts, expected_counts)


def test_mark():
    """Codes that occur are marked, once or more often, and no others."""
    seen = np.zeros(6, np.int8)
    loops.mark(np.array([4, 1, 4]), seen)
    loops.mark(np.empty(0, np.int64), seen)
    assert seen.tolist() == [0, 1, 0, 0, 1, 0]


@pytest.mark.parametrize("repeated", [True, False])
def test_substrings_block(repeated):
    """Common substrings, counted by their occurrences or once each."""
    value = reference.repeated_substrings if repeated else reference.common_substrings
    for theirs, diagonal, expected in blocks(value):
        out = np.full(expected.shape, np.nan)
        loops.substrings_block(repeated, *digits(STRINGS), *theirs, 3, diagonal, out)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_subsequences_block(k):
    """Common subsequences of k letters, weighed by their spans."""
    for theirs, diagonal, expected in blocks(reference.subsequence(k, 0.6)):
        out = np.full(expected.shape, np.nan)
        loops.subsequences_block(*digits(STRINGS), *theirs, k, 0.6, diagonal, out)
        np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("mismatch", [0.0, 0.3])
def test_windows_block(k, mismatch):
    """Products of similarities of letters over all pairs of windows; a table for letters that have a kind."""
    kinds, table = {"a": 0, "b": 1}, np.array([[1.0, 0.7], [0.2, 1.0]])

    def similarity(x, z):
        if x == z:
            return 1.0
        return table[kinds[x], kinds[z]] if x in kinds and z in kinds else mismatch

    def kinds_of(strings):
        return np.array([kinds.get(letter, -1) for text in strings for letter in text], np.int32)

    for theirs, diagonal, expected in blocks(reference.window(k, similarity)):
        out = np.full(expected.shape, np.nan)
        others = STRINGS if diagonal else OTHERS
        loops.windows_block(
            *digits(STRINGS), kinds_of(STRINGS), *theirs, kinds_of(others), k, mismatch, table, diagonal, out
        )
        np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("k", "m"), [(1, 0), (2, 1), (3, 1), (3, 2), (4, 3)])
def test_mismatches_block(k, m):
    """Strings with at most m mismatches to both runs, over all pairs of runs; ? differs from every letter."""
    table = shared_neighbours(k, m, len(LETTERS))
    for theirs, diagonal, expected in blocks(reference.mismatch(k, m, LETTERS)):
        out = np.full(expected.shape, np.nan)
        loops.mismatches_block(*digits(STRINGS), *theirs, k, table, diagonal, out)
        np.testing.assert_array_equal(out, expected)


LONG = ["abc" * 50, "", "a" * 64, "abcabd" * 30, "b" * 65 + "c"]


def planes_of(strings):
    """The bit planes of these strings; the last one marks where they have known letters."""
    planes = np.zeros((len(strings), 3, 4), np.uint64)
    loops.bit_planes(*digits(strings), planes)
    return planes


def test_bit_planes():
    """Bit b of the letter at place p is bit p % 64 of word p // 64."""
    planes = planes_of(LONG)
    for i, text in enumerate(LONG):
        for p in range(256):
            digit = LETTERS.find(text[p]) if p < len(text) else -1
            bits = [(int(planes[i, b, p // 64]) >> (p % 64)) & 1 for b in range(3)]
            assert bits == ([digit & 1, digit >> 1 & 1, 1] if digit >= 0 else [0, 0, 0])


def test_degrees_block():
    """Places where the next letters are equal, weighed by how many; runs that cross a word of 64 letters."""
    weights, strings = np.array([1.0, 0.5, 0.25, 2.0]), [text for text in LONG if "d" not in text]
    value = reference.weighted_degree(weights)
    planes = planes_of(strings)
    out = np.full((len(strings),) * 2, np.nan)
    loops.degrees_block(planes, planes, weights, False, out)
    np.testing.assert_allclose(out, reference.gram(value, strings, strings), rtol=1e-13)
    alone = np.full((len(strings), 1), np.nan)
    loops.degrees_block(planes, planes, weights, True, alone)
    np.testing.assert_allclose(alone[:, 0], np.diag(out))
