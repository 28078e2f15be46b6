"""Counts of named features: any hashable names, other samples, tiles and lists of matches."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.exceptions import InvalidInputError
from mercer.kernels.feature_sums import DOT, MIN
from mercer.kernels.features import Csr
from mercer.kernels.objects.counts import Counted, CountFeatures, Names, count_block, count_items

ITEMS = [["a", "b", "a"], {"b": 2.5, ("x", 1): 1.0}, [], [3, 3, "b"], frozenset({"a", 3})]


def dense(items, names):
    """The counts over given names, by asking each sample for each name."""
    rows = [dict(x) if isinstance(x, dict) else {name: list(x).count(name) for name in names} for x in items]
    return np.array([[float(row.get(name, 0.0)) for name in names] for row in rows])


def test_counting():
    """Repeats add up, mappings say how much; names come in the order in which they occur."""
    counted = count_items(ITEMS)
    assert counted.names.names[:4] == ["a", "b", ("x", 1), 3]
    np.testing.assert_array_equal(counted.counts.toarray(), dense(ITEMS, counted.names.names))


def test_items_must_be_hashable():
    """A list cannot be an item: the error says so."""
    with pytest.raises(InvalidInputError) as caught:
        count_items([["a"], [["b"]]])
    assert str(caught.value) == (
        "Items are compared by equality and must be hashable, but sample 1 has an item of type list. Use strings, "
        "numbers or tuples."
    )


@pytest.mark.parametrize("term", [DOT, MIN], ids=["dot", "min"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("crowded", [False, True], ids=["matches", "tiles"])
def test_products(term, dtype, crowded):
    """Sums over common names, for samples counted together and apart."""
    rng = np.random.default_rng(0)
    here, there = ([rng.integers(0, 40, rng.integers(0, 30)).tolist() for _ in range(n)] for n in (70, 33))
    names = range(40)
    combine = np.multiply if term == DOT else np.minimum
    a, b = (CountFeatures.of(count_items(items), dtype) for items in (here, there))
    a.crowded = b.crowded = crowded
    if not crowded:
        a, b = (_sparse(features) for features in (a, b))
    for left, right, A, B in ((a, a, here, here), (a, b, here, there), (b, a, there, here)):
        expected = combine(dense(A, names)[:, None], dense(B, names)[None]).sum(axis=2)
        values = count_block(term, left, right)
        assert values.dtype == dtype
        np.testing.assert_array_equal(values, expected)
        part = count_block(term, left.take(np.array([5, 2])), right.take(np.array([7])))
        np.testing.assert_array_equal(part, expected[[5, 2]][:, [7]])


def _sparse(features):
    counts = Csr.of(sp.csr_array(features.counts.toarray()), features.dtype)
    found = CountFeatures.of(Counted(counts, features.names), features.dtype)
    vectors = type(found.vectors)(counts, features.dtype)
    return CountFeatures(vectors, features.names, crowded=False)


def test_names_that_are_unknown():
    """No name in common: zeros, and no trouble with no names at all."""
    a, b, nothing = (CountFeatures.of(count_items(items), np.float64) for items in ([["a"]], [["b"]], [[], []]))
    assert count_block(DOT, a, b).tolist() == [[0.0]]
    assert count_block(DOT, a, nothing).tolist() == [[0.0, 0.0]]
    assert count_block(MIN, nothing, a).tolist() == [[0.0], [0.0]]
    assert Names([]).places_in(Names(["a"])).tolist() == []


def test_equal_numbers_are_one_name():
    """1, 1.0 and True are equal in Python, so they are the same item."""
    a, b = (CountFeatures.of(count_items(items), np.float64) for items in ([[1, "1"]], [[1.0, True]]))
    assert count_block(DOT, a, b).tolist() == [[2.0]]
