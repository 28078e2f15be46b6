"""Kernels between sets: of items, and of what another kernel compares."""

import pickle
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.naming import named

from mercer import SVC
from mercer.exceptions import InvalidInputError
from mercer.kernels import Gaussian, Intersection, Jaccard, Linear, Normalized, Precomputed, SetOf, Spectrum
from mercer.kernels.objects.sets import MEMBER_VALUES
from mercer.testing import check_kernel

BASKETS = [{"milk", "bread"}, {"milk", "eggs", "tea"}, set(), {"tea"}, {"bread", "milk"}, {("a", 1), 7, None}]
SETS = st.lists(st.frozensets(st.integers(0, 9) | st.sampled_from("abc"), max_size=6), min_size=1, max_size=6)


RNG = np.random.default_rng(0)
BAGS = [RNG.normal(size=(n, 3)) for n in (4, 1, 0, 6, 2)]


class TestItems:
    @settings(max_examples=50, deadline=None)
    @given(SETS, SETS)
    def test_the_definition(self, X, Z):
        """The number of common items, and its share of all items."""
        np.testing.assert_array_equal(Intersection()(X, Z), [[len(x & z) for z in Z] for x in X])
        jaccard = [[float(Fraction(len(x & z), len(x | z))) if x | z else 1.0 for z in Z] for x in X]
        np.testing.assert_allclose(Jaccard()(X, Z), jaccard, rtol=1e-15)

    @pytest.mark.parametrize(
        "kernel", [Intersection(), Intersection(normalize=True), Jaccard(), Normalized(Jaccard())], ids=named
    )
    def test_the_contract(self, kernel):
        """check_kernel, with an empty set."""
        check_kernel(kernel, BASKETS)
        check_kernel(kernel, [set(), set()])

    @settings(max_examples=50, deadline=None)
    @given(SETS)
    def test_eigenvalues(self, X):
        """Both kernels are positive semidefinite on random sets."""
        for kernel in (Intersection(), Jaccard()):
            assert np.linalg.eigvalsh(kernel(X))[0] > -1e-12 * len(X) * 10

    def test_containers(self):
        """Sets, lists with repeated items, tuples, arrays and a pandas column hold the same sets."""
        import pandas as pd

        plain = [{1, 2}, {2, 3, 4}]
        expected = Intersection()(plain)
        column = np.empty(2, dtype=object)
        column[:] = plain
        for samples in (
            [[1, 2, 2, 1], (2, 3, 4, 4)],
            [frozenset([1, 2]), np.array([2, 3, 4])],
            column,
            pd.Series(plain),
            (plain[0], plain[1]),
        ):
            np.testing.assert_array_equal(Intersection()(samples), expected)

    def test_single_precision(self):
        """Values in float32 agree with those in float64."""
        features = Jaccard().prepare(BASKETS, np.float32)
        block = Jaccard().block(features, features)
        assert block.dtype == np.float32
        np.testing.assert_allclose(block, Jaccard()(BASKETS), rtol=1e-6)

    def test_many_rare_items(self):
        """More items than samples: lists of matches are used, and give the same."""
        rng = np.random.default_rng(0)
        X = [set(rng.integers(5000, size=20).tolist()) for _ in range(60)]
        np.testing.assert_array_equal(Intersection()(X), [[len(x & z) for z in X] for x in X])
        np.testing.assert_allclose(Jaccard()(X), [[len(x & z) / len(x | z) for z in X] for x in X], rtol=1e-15)

    @pytest.mark.parametrize(
        ("samples", "message"),
        [
            (["milk"], "compares sets, but sample 0 is the string 'milk'. Use a kernel on strings"),
            ({"milk", "bread"}, "compares sets, but was given a set"),
            ([{"milk"}, None], "compares sets, but sample 1 is missing"),
            ([{"milk"}, 3], "compares sets, but sample 1 is the number 3"),
            ([[["milk"]]], "must be hashable, but sample 0 has an item of type list"),
            ([{"milk": 2}], "compares sets, but sample 0 is a dict"),
        ],
    )
    def test_what_is_no_set(self, samples, message):
        """The error says which sample is not a set."""
        for kernel in (Intersection(), Jaccard()):
            with pytest.raises(InvalidInputError, match=message):
                kernel(samples)


class TestSetOf:
    @pytest.mark.parametrize("average", [True, False])
    def test_the_definition(self, average):
        """The sum over all pairs of members, or their mean; 0 for an empty set."""
        kernel = SetOf(Gaussian(0.3), average)
        expected = [
            [
                sum(np.exp(-0.3 * ((a - b) ** 2).sum()) for a in A for b in B)
                / (max(1, len(A)) * max(1, len(B)) if average else 1)
                for B in BAGS
            ]
            for A in BAGS
        ]
        np.testing.assert_allclose(kernel(BAGS), expected, rtol=1e-13)
        np.testing.assert_allclose(kernel(BAGS, BAGS[:2]), np.array(expected)[:, :2], rtol=1e-13)

    @pytest.mark.parametrize(
        "kernel", [SetOf(Gaussian()), SetOf(Linear(), average=False), Normalized(SetOf(Linear()))], ids=named
    )
    def test_the_contract(self, kernel):
        """check_kernel; gamma="scale" looks at all members."""
        check_kernel(kernel, BAGS)
        members = np.concatenate(BAGS)
        assert SetOf(Gaussian()).bind(BAGS).kernel == Gaussian().bind(members)

    def test_in_parts(self):
        """Sets of more members than are compared at a time, one of them alone, give sums over all pairs of members."""
        rng = np.random.default_rng(0)
        sizes = [40, 700, 3, 400, 1, 900, 60]
        members, start = rng.normal(size=(sum(sizes), 2)), np.append(0, np.cumsum(sizes))
        assert len(members) ** 2 > 2 * MEMBER_VALUES and max(sizes) > MEMBER_VALUES // len(members)
        bags = [members[a:b] for a, b in pairwise(start)]
        sums = np.add.reduceat(np.add.reduceat(Gaussian(0.3)(members), start[:-1], axis=0), start[:-1], axis=1)
        np.testing.assert_allclose(SetOf(Gaussian(0.3))(bags), sums / np.outer(sizes, sizes), rtol=1e-13)

    def test_sets_of_strings_and_of_sets(self):
        """Members may be strings or sets, if the inner kernel compares them."""
        words = [["banana", "bandana"], ["tomato"], []]
        K = Spectrum(2)
        expected = [[sum(K([a], [b])[0, 0] for a in A for b in B) for B in words] for A in words]
        np.testing.assert_allclose(SetOf(Spectrum(2), average=False)(words), expected)
        check_kernel(SetOf(Spectrum(2)), words)
        check_kernel(SetOf(Jaccard()), [[{1, 2}, {2}], [{2, 3}]])
        check_kernel(SetOf(SetOf(Linear())), [[BAGS[0], BAGS[1]], [BAGS[3]]])

    def test_an_array_of_samples(self):
        """Sets of equal size may be given as one array."""
        X = np.random.default_rng(0).normal(size=(5, 4, 2))
        np.testing.assert_allclose(SetOf(Linear())(X), X.mean(axis=1) @ X.mean(axis=1).T)

    def test_a_set_of_tuples(self):
        """A set of tuples counts as a set of vectors."""
        np.testing.assert_allclose(SetOf(Linear())([{(1.0, 2.0), (3.0, 0.0)}, frozenset()]), [[5.0, 0.0], [0.0, 0.0]])

    def test_all_empty(self):
        """Empty sets have k = 0."""
        np.testing.assert_array_equal(SetOf(Linear())([[], []]), 0.0)

    def test_parameters_of_the_kernel_inside(self):
        """A search can set parameters of the inner kernel."""
        assert SetOf(Gaussian(1.0)).set_params(kernel__gamma=2.0) == SetOf(Gaussian(2.0))
        assert repr(SetOf(Linear(), average=False)) == "SetOf(Linear(), average=False)"

    @pytest.mark.parametrize(
        ("samples", "message"),
        [
            ([[[1.0, 2.0]], [[1.0]]], r"sample 1 has the shape \(1, 1\), and sample 0 the shape \(1, 2\)"),
            ([[1.0, 2.0]], r"sample 0 has the shape \(2,\). Give each set as a matrix"),
            ([{1.0, 2.0}], r"sample 0 has the shape \(2,\). Give each set as a matrix"),
            (["ab"], "compares sets, but sample 0 is the string 'ab'"),
        ],
    )
    def test_wrong_members(self, samples, message):
        """Members of the wrong shape or type raise an error."""
        with pytest.raises(InvalidInputError, match=message):
            SetOf(Linear())(samples)

    def test_wrong_kernels(self):
        """SetOf refuses kernels on rows of a matrix."""
        with pytest.raises(InvalidInputError, match="SetOf needs a kernel between single members"):
            SetOf(Precomputed())
        with pytest.raises(InvalidInputError):
            SetOf("rbf")

    def test_bags_are_learnt(self):
        """A bag is positive if its points are spread: no single point tells."""
        rng = np.random.default_rng(1)
        y = np.arange(80) % 2
        X = [rng.normal(scale=1.0 + 2.0 * label, size=(int(rng.integers(5, 15)), 2)) for label in y]
        model = SVC(kernel=SetOf(Gaussian(0.5)), C=100).fit(X[:60], y[:60])
        assert pickle.loads(pickle.dumps(model)).score(X[60:], y[60:]) > 0.9
