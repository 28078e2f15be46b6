"""Kernels on strings equal loops over places, whatever the characters."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from tests.naming import named
from tests.reference import string as reference
from tests.reference.string import STRINGS, gram

from mercer import SVC
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import GramOperator
from mercer.kernels import (
    CommonSubstrings,
    Linear,
    Mismatch,
    Normalized,
    Spectrum,
    Subsequence,
    WeightedDegree,
    Window,
    parse_kernel,
)
from mercer.kernels.features import VectorFeatures
from mercer.kernels.objects.counts import CountFeatures, CountKernel, Names, counted
from mercer.kernels.objects.mismatch_pairs import MismatchPairs
from mercer.kernels.objects.string_base import TextFeatures
from mercer.kernels.objects.substrings import Grams
from mercer.testing import check_kernel

LETTERS = "".join(sorted({c for x in STRINGS for c in x if c in "abc𝒳"}))
PAIRS = {("a", "b"): 0.5, ("b", "c"): 0.25}


def similarity(mismatch, pairs):
    return lambda a, b: 1.0 if a == b else pairs.get((min(a, b), max(a, b)), mismatch)


KERNELS = {
    Spectrum(1): reference.spectrum({1: 1.0}),
    Spectrum(3): reference.spectrum({3: 1.0}),
    Spectrum(3, shortest=1): reference.spectrum({1: 1.0, 2: 1.0, 3: 1.0}),
    Spectrum(4, shortest=2, weights=(0.5, 0.0, 2.0)): reference.spectrum({2: 0.5, 3: 0.0, 4: 2.0}),
    Spectrum(2, normalize=True): reference.normalized(reference.spectrum({2: 1.0})),
    # runs that 64 bits do not hold
    Spectrum(25, shortest=1): reference.spectrum(dict.fromkeys(range(1, 26), 1.0)),
    Spectrum(20, shortest=2, weights=range(19)): reference.spectrum({k: k - 2.0 for k in range(2, 21)}),
    Mismatch(2, 0, LETTERS): reference.mismatch(2, 0, LETTERS),
    Mismatch(3, 1, LETTERS): reference.mismatch(3, 1, LETTERS),
    Mismatch(3, 2, "ab"): reference.mismatch(3, 2, "ab"),
    Mismatch(2, 1, LETTERS, normalize=True): reference.normalized(reference.mismatch(2, 1, LETTERS)),
    MismatchPairs(2, 0, LETTERS): reference.mismatch(2, 0, LETTERS),
    MismatchPairs(3, 2, "ab"): reference.mismatch(3, 2, "ab"),
    MismatchPairs(3, 1, LETTERS, normalize=True): reference.normalized(reference.mismatch(3, 1, LETTERS)),
    CommonSubstrings(): reference.common_substrings,
    CommonSubstrings(repeated=True): reference.repeated_substrings,
    CommonSubstrings(normalize=True): reference.normalized(reference.common_substrings),
    Subsequence(1, 1.0): reference.subsequence(1, 1.0),
    Subsequence(2, 0.5): reference.subsequence(2, 0.5),
    Subsequence(4, 0.8): reference.subsequence(4, 0.8),
    Subsequence(3, 0.7, normalize=True): reference.normalized(reference.subsequence(3, 0.7)),
    Window(1): reference.window(1, similarity(0.0, {})),
    Window(3, mismatch=0.3): reference.window(3, similarity(0.3, {})),
    Window(2, weights={"ab": 0.5, "cb": 0.25}): reference.window(2, similarity(0.0, PAIRS)),
    Window(2, 0.1, {"ba": 0.5, "bc": 0.25}, ("aa", "cab")): reference.window(2, similarity(0.1, PAIRS), ("aa", "cab")),
    Window(3, 0.3, normalize=True): reference.normalized(reference.window(3, similarity(0.3, {}))),
    WeightedDegree(1): reference.weighted_degree([1.0]),
    WeightedDegree(3): reference.weighted_degree([1 / 2, 1 / 3, 1 / 6]),
    WeightedDegree(4, weights=(1, 0, 2, 0.5)): reference.weighted_degree([1, 0, 2, 0.5]),
    WeightedDegree(2, normalize=True): reference.normalized(reference.weighted_degree([2 / 3, 1 / 3])),
}
CASES = pytest.mark.parametrize(("kernel", "expected"), KERNELS.items(), ids=named)


def random_strings(n, longest, alphabet="ACGT", seed=0):
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list(alphabet), rng.integers(0, longest + 1))) for _ in range(n)]


@CASES
def test_equal_to_loops(kernel, expected):
    """The matrix of strange strings, and between two sets that share some characters only."""
    np.testing.assert_allclose(kernel(STRINGS), gram(expected, STRINGS, STRINGS), rtol=1e-12, atol=1e-12)
    X, Z = STRINGS[:7], ["ab", "cb𝒳", "", "ddd", "a\0", "日本"]
    np.testing.assert_allclose(kernel(X, Z), gram(expected, X, Z), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(kernel(Z, X), gram(expected, Z, X), rtol=1e-12, atol=1e-12)


@CASES
@pytest.mark.slow
def test_random_dna(kernel, expected):
    """Of 40 strings of four letters, in which many things occur twice."""
    if isinstance(kernel, Mismatch | MismatchPairs):
        kernel = kernel.set_params(alphabet="ACG")  # T differs from all
        expected = reference.mismatch(kernel.k, kernel.m, "ACG")
        expected = reference.normalized(expected) if kernel.normalize else expected
    X, Z = random_strings(20, 14), random_strings(20, 14, "ACGTN", seed=1)
    np.testing.assert_allclose(kernel(X, Z), gram(expected, X, Z), rtol=1e-11, atol=1e-12)


@CASES
def test_contract(kernel, expected):
    """Blocks, parts, diagonals, float32, eigenvalues, equality, printing and pickling."""
    check_kernel(kernel, STRINGS)


@pytest.mark.parametrize("kernel", [k for k in KERNELS if not k.normalize], ids=named)
def test_normalize_is_normalized(kernel):
    """The option gives the values of the wrapper, and 0 for strings without features."""
    K = kernel.set_params(normalize=True)(STRINGS)
    np.testing.assert_allclose(K, Normalized(kernel)(STRINGS), rtol=1e-12, atol=1e-14)
    assert K[3, 3] == 0.0


@pytest.mark.parametrize("kernel", KERNELS, ids=named)
def test_nothing_in_common(kernel):
    """No samples, only empty strings, and strings of one character."""
    assert kernel([]).shape == (0, 0)
    assert kernel(["", ""]).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert kernel(["a"], ["b", "", "a"]).shape == (1, 3)


@pytest.mark.parametrize("huge", [10**3, 10**9, 10**30], ids=["1e3", "1e9", "1e30"])
def test_lengths_that_no_string_has(huge):
    """Lengths that no string has cost neither time nor memory, and match nothing."""
    X = ["abab", "ab", ""]
    zeros = np.zeros((3, 3))
    for kernel in (Spectrum(huge), Subsequence(huge), Window(huge, 0.5), Spectrum(huge, normalize=True)):
        np.testing.assert_array_equal(kernel(X), zeros)
    np.testing.assert_array_equal(Spectrum(huge, shortest=1)(X), CommonSubstrings(repeated=True)(X))
    np.testing.assert_array_equal(Window(huge, markers=("ab",))(X), [[4, 2, 0], [2, 1, 0], [0, 0, 0]])
    K = WeightedDegree(huge, normalize=True)(X)
    np.testing.assert_allclose(np.diag(K), [1.0, 1.0, 0.0])
    with pytest.raises(InvalidInputError, match=r"at most 2\^62 different runs are supported"):
        Mismatch(huge, 1, "ab")(X)
    assert Spectrum(huge).feature_map(X).dimension == 0
    assert WeightedDegree(huge).feature_map(X).dimension == len(reference.substrings("abab"))


def test_expressions():
    """String kernels can be written as text."""
    assert parse_kernel("spectrum(4)") == Spectrum(4)
    assert (
        parse_kernel("weighted_degree(d=5) + 0.5 * common_substrings") == WeightedDegree(5) + 0.5 * CommonSubstrings()
    )
    assert parse_kernel("window(3, weights=(('AG', 0.5),), markers=('AGT',))") == Window(
        3, weights={"GA": 0.5}, markers="AGT"
    )


def test_windows_without_mismatches_are_spectra():
    """A window that must match counts common runs; the marker AGT adds what a spectrum of length 3 has of it."""
    X = random_strings(15, 20)
    np.testing.assert_array_equal(Window(4)(X), Spectrum(4)(X))
    counts = np.array([x.count("AGT") for x in X], dtype=float)
    np.testing.assert_array_equal(Window(4, markers=("AGT",))(X) - Spectrum(4)(X), np.outer(counts, counts))


def test_mismatches_without_mismatches_are_spectra():
    """Mismatch with m = 0 equals Spectrum on the characters of the alphabet."""
    X = random_strings(15, 20)
    np.testing.assert_array_equal(Mismatch(3, 0)(X), Spectrum(3)(X))


AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"


@pytest.mark.parametrize("normalize", [False, True])
def test_mismatches_of_large_alphabets(normalize):
    """Where runs have many neighbours, pairs of runs are compared; the values are those of lists, also for X and B."""
    kernel = Mismatch(4, 2, AMINO_ACIDS, normalize=normalize)
    X, Z = (random_strings(6, 25, AMINO_ACIDS[:4] + "XB", seed=seed) for seed in (0, 1))
    assert isinstance(kernel.prepare(X), TextFeatures)
    lists = [CountFeatures.of(counted(kernel, samples), np.float64) for samples in (X, Z)]
    np.testing.assert_allclose(kernel(X), CountKernel.block(kernel, lists[0], lists[0]), rtol=1e-12)
    np.testing.assert_allclose(kernel(X, Z), CountKernel.block(kernel, *lists), rtol=1e-12)
    check_kernel(kernel, X)


def test_mismatches_of_many_proteins():
    """Machines need no lists of neighbours, feature maps do; where few runs are possible they are listed."""
    X = random_strings(40, 200, AMINO_ACIDS)
    machine = SVC(kernel=Mismatch(5, 2, normalize=True)).fit(X, np.arange(40) % 2)
    assert machine.certificate_.relative_gap < 1e-3
    with pytest.raises(InvalidInputError, match="would list"):
        Mismatch(5, 2, AMINO_ACIDS).feature_map(random_strings(120, 200, AMINO_ACIDS))
    assert isinstance(Mismatch(3, 2, AMINO_ACIDS).prepare(X[:2]), CountFeatures)


def test_all_lengths_are_repeated_substrings():
    """A spectrum up to the longest string is the sum over all common substrings."""
    X = random_strings(15, 20)
    np.testing.assert_array_equal(Spectrum(20, shortest=1)(X), CommonSubstrings(repeated=True)(X))


def test_long_strings():
    """Automata of 20,000 characters, by closed formulas: a^n has n substrings, of which n - k + 1 are of length k."""
    a, b = 20_000, 15_000
    K = CommonSubstrings()(["a" * a, "a" * b])
    assert K.tolist() == [[a, b], [b, b]]
    repeated = CommonSubstrings(repeated=True)(["a" * 300, "a" * 200])[0, 1]
    assert repeated == sum((300 - k + 1) * (200 - k + 1) for k in range(1, 201))


@pytest.mark.parametrize("m", [7, 63, 64, 65, 128, 200])
def test_word_boundaries(m):
    """Weighted degrees across the 64-bit words that hold the places."""
    rng = np.random.default_rng(m)
    X = ["".join(rng.choice(list("AC"), m, p=[0.85, 0.15])) for _ in range(4)]
    expected = gram(reference.weighted_degree([1.0, 2.0, 3.0, 4.0, 5.0]), X, X)
    np.testing.assert_array_equal(WeightedDegree(5, (1, 2, 3, 4, 5))(X), expected)


MAPPED = [k for k in KERNELS if isinstance(k, Spectrum | Mismatch | CommonSubstrings | WeightedDegree)]


@pytest.mark.parametrize("kernel", MAPPED, ids=named)
def test_feature_maps(kernel):
    """<ψ(x), ψ(z)> = k(x, z) if x is among the samples that the map was made for; ψ is sparse and has names."""
    X, Z = STRINGS, [*random_strings(10, 12, "abc"), "日本", ""]
    psi = kernel.feature_map(X)
    A, B = psi(X), psi(Z)
    assert A.shape == (len(X), psi.dimension) and len(set(psi.names)) == psi.dimension
    np.testing.assert_allclose((A @ A.T).toarray(), kernel(X), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose((A @ B.T).toarray(), kernel(X, Z), rtol=1e-12, atol=1e-12)


def test_maps_of_sums():
    """Feature maps of sums are put together from those of the operands."""
    kernel = 2.0 * Spectrum(2) + Normalized(WeightedDegree(2))
    psi = kernel.feature_map(STRINGS)
    A = psi(STRINGS)
    np.testing.assert_allclose((A @ A.T).toarray() if hasattr(A, "toarray") else A @ A.T, kernel(STRINGS), atol=1e-12)
    with pytest.raises(InvalidInputError, match=r"Subsequence\(k=3\) has no known feature map of finite length"):
        Subsequence(3).feature_map(STRINGS)


class TestNames:
    """Features prepared separately find each other."""

    def test_runs_in_other_alphabets(self):
        """Equal runs are found with any characters around them, packed or not."""
        here, there = ["abcab" * 10, "b"], ["zab\U0001f600" + "abcab" * 9, "bcd"]
        for k, packed in ((3, True), (40, False)):
            ours, theirs = (Spectrum(k, shortest=1).prepare(strings).names for strings in (here, there))
            assert isinstance(ours, Grams) == isinstance(theirs, Grams) == packed
            names, others = ours.names, theirs.names
            assert sorted(names) == sorted({u for x in here for u in reference.substrings(x) if len(u) <= k})
            expected = [others.index(name) if name in others else -1 for name in names]
            assert ours.places_in(theirs).tolist() == expected
            assert Names(names).places_in(theirs).tolist() == expected
            assert ours.places_in(Names(others)).tolist() == expected

    def test_crowded_or_not(self):
        """Tiles and lists of matches give the same values."""
        X = random_strings(30, 40)
        kernel = Spectrum(3)
        features = kernel.prepare(X)
        assert features.crowded
        K = kernel.block(features, features)
        sparse = CountFeatures(features.vectors, features.names, crowded=False)
        if not features.vectors.sparse:
            sparse = CountFeatures(VectorFeatures(features.counts, np.float64), features.names, crowded=False)
        np.testing.assert_array_equal(kernel.block(sparse, sparse), K)

    def test_many_rows(self):
        """More columns than one list of matches has; what was in the memory before does not matter."""
        X = random_strings(4200, 8, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
        kernel = Spectrum(2)
        features = kernel.prepare(X)
        assert not features.crowded
        Y = sp.csr_array((features.counts.data, features.counts.indices, features.counts.indptr))
        some = np.arange(0, 4200, 100)
        expected = (Y[some] @ Y.T).toarray()
        np.testing.assert_array_equal(kernel.block(features.take(some), features), expected)
        used = np.full(expected.shape, np.nan)
        np.testing.assert_array_equal(kernel.block(features.take(some), features, used), expected)

    @pytest.mark.parametrize("letters", ["ABCD", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"], ids=["crowded", "not crowded"])
    def test_the_whole_matrix(self, letters):
        """Whether all of it is computed, or a triangle in parts, on one thread or two, the values are the same."""
        kernel, X = Spectrum(2), random_strings(700, 12, letters)
        features = kernel.prepare(X)
        assert features.crowded == (letters == "ABCD") == (kernel.triangle_rows(features) > 0)
        K = kernel.block(features, features)
        for n_threads in (1, 2):
            np.testing.assert_array_equal(GramOperator(kernel, features, n_threads).dense(), K)

    def test_pickle(self):
        """Prepared strings can be pickled."""
        features = Spectrum(2).prepare(STRINGS)
        copy = pickle.loads(pickle.dumps(features))
        np.testing.assert_array_equal(Spectrum(2).block(copy, features), Spectrum(2)(STRINGS))


class TestErrors:
    """Parameters that make no sense are named."""

    @pytest.mark.parametrize(
        ("build", "message"),
        [
            (lambda: Spectrum(0), "k=0 must be a whole number, at least 1."),
            (lambda: Spectrum("3"), "k='3' must be a whole number, at least 1."),
            (lambda: Spectrum(2, shortest=3), "shortest=3 must be at most k=2."),
            (
                lambda: Spectrum(3, shortest=2, weights=(1, 2, 3)),
                "weights=(1.0, 2.0, 3.0) must be 2 numbers of at least 0, one for each length from 2 to 3, and "
                "not all 0.",
            ),
            (
                lambda: Spectrum(3, weights=2.0),
                "weights=2.0 must be a sequence of 1 numbers, one for each length from 3 to 3.",
            ),
            (lambda: Spectrum(3, normalize="yes"), "normalize='yes' must be True or False."),
            (lambda: Mismatch(2, 2), "m=2 must be less than k=2: otherwise all strings would match."),
            (lambda: Mismatch(2, 1, ""), "alphabet='' must be a string of characters, such as 'ACGT'."),
            (lambda: Subsequence(2, 0.0), "decay=0.0 must be above 0 and at most 1."),
            (lambda: Subsequence(2, float("nan")), "decay=nan must be a finite number."),
            (lambda: Window(2, 1.5), "mismatch=1.5 must be from 0 to 1: equal characters have similarity 1."),
            (lambda: Window(2, markers=("",)), "markers=('',) must be strings of at least one character."),
            (
                lambda: Window(2, weights={"AA": 0.5}),
                "weights={'AA': 0.5} must give each pair of different characters one number from 0 to 1, such as "
                "{'AG': 0.5, 'CT': 0.5}.",
            ),
            (
                lambda: Window(2, weights={"AB": 1.0, "BC": 1.0}),
                "Window(k=2, weights=(('AB', 1.0), ('BC', 1.0))) is not a kernel: "
                "the similarity matrix of the characters 'ABC', minus mismatch, has the eigenvalue -0.414. Choose "
                "smaller weights, nearer to mismatch.",
            ),
            (
                lambda: Mismatch(40, 1, "ACGT")(["A"]),
                "Mismatch(k=40, alphabet='ACGT') compares runs of 40 characters out of 4, but "
                "at most 2^62 different runs are supported. Choose a smaller k, or a smaller alphabet.",
            ),
            (
                lambda: Mismatch(2, 1).prepare(["A"]),
                "Mismatch(k=2) is not bound to samples: its alphabet depends on them. Use kernel.bind(samples) first.",
            ),
            (
                lambda: Spectrum(2) + Linear(),
                "Spectrum(k=2) compares strings, Linear() compares "
                "vectors: no sample is both. Put them into records, and say which part each kernel sees: On('name', "
                "Spectrum(k=2)) + On('other', Linear()).",
            ),
        ],
        ids=range(17),
    )
    def test_messages(self, build, message):
        """Errors say what was found and what is allowed."""
        with pytest.raises(InvalidInputError) as caught:
            build()
        assert str(caught.value) == message

    def test_a_kernel_on_characters_is_one(self):
        """Weights that pass have no negative eigenvalue on any strings, also of characters that they do not name."""
        rng = np.random.default_rng(0)
        for _ in range(20):
            weights = dict(zip(("ab", "ac", "bc"), rng.uniform(0, 1, 3), strict=True))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                try:
                    kernel = Window(1, float(rng.uniform(0, 0.5)), weights)
                except InvalidInputError:
                    continue
            K = kernel([*"abcdefghijklmnopqrstuvwxyz"])
            assert np.linalg.eigvalsh(K)[0] >= -1e-10
