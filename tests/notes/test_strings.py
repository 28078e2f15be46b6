"""Row 22: kernels on strings."""

from itertools import product

import numpy as np
import pytest

from mercer import SVC, CommonSubstrings, Mismatch, Spectrum, Subsequence, Window, check_mercer


def substrings(x):
    return {x[p:q] for p in range(len(x)) for q in range(p + 1, len(x) + 1)}


def test_22_length_k_substrings():
    """[CS229] 5.4: φ(x) counts all strings of k letters; written out for three letters, k = 2, 3² features."""
    letters, k = "abc", 2
    strings = ["abcab", "bca", "aaaa", "c"]
    words = ["".join(word) for word in product(letters, repeat=k)]
    phi = np.array([[sum(x[p : p + k] == u for p in range(len(x))) for u in words] for x in strings], dtype=float)
    assert phi.shape[1] == len(letters) ** k
    np.testing.assert_array_equal(Spectrum(k)(strings), phi @ phi.T)


def test_22_common_substrings():
    """[SSBD] 16.2.1: ψ(x) says which strings occur in x; w = e_v of norm 1 finds v with the margin ½, b = −½."""
    rng = np.random.default_rng(0)
    files = ["".join(rng.choice(list("01"), 12)) for _ in range(40)]
    K = CommonSubstrings()(files)
    expected = [[len(substrings(x) & substrings(z)) for z in files] for x in files]
    np.testing.assert_array_equal(K, expected)
    # |ψ(x)| = O(d): no more substrings than pairs of places
    d = 12
    assert np.sqrt(np.diag(K)).max() <= np.sqrt(d * (d + 1) / 2)
    virus = np.where(["1011" in x for x in files], 1, -1)
    machine = SVC(kernel=CommonSubstrings(), C=np.inf).fit(files, virus)
    assert machine.score(files, virus) == 1.0
    assert machine.margin_[0] >= 0.5 - 1e-3
    # through the origin, with the constant feature that stands for the empty string: w = 2 e_v - e_"", y⟨w, ψ⟩ = 1
    machine = SVC(kernel=CommonSubstrings() + 1, C=np.inf, fit_intercept=False).fit(files, virus)
    assert machine.score(files, virus) == 1.0
    assert machine.rkhs_norm_[0] <= np.sqrt(5) + 1e-3
    assert machine.margin_[0] >= 1 / np.sqrt(5) - 1e-3


def test_22_gaps():
    """[M5], Lodhi et al. 2002: k(cat, car) = λ⁴ for pairs of letters, and 2λ⁴ + λ⁶ for cat with itself."""
    decay = 0.7
    K = Subsequence(k=2, decay=decay)(["cat", "car", "bat", "bar"])
    assert K[0, 1] == pytest.approx(decay**4)
    assert K[0, 0] == pytest.approx(2 * decay**4 + decay**6)
    normalized = Subsequence(k=2, decay=decay, normalize=True)(["cat", "car"])
    assert normalized[0, 1] == pytest.approx(1 / (2 + decay**2))


def test_22_mismatches():
    """[M5], Leslie et al. 2002: a run counts for every string that differs in at most m letters."""
    K = Mismatch(k=3, m=1, alphabet="ACGT")(["AAA", "AAC", "ACC", "CCC"])
    # equal: 1 + 3·3 strings; one letter apart: the 4 that differ there; two apart: the 2 in between; three: none
    np.testing.assert_array_equal(K[0], [10, 4, 2, 0])


def test_22_sliding_window():
    """[M5]: exact matches, mismatches by how bad they are, and markers such as AGT; the sum is a kernel."""
    x, z = "AAGTC", "GAGTT"
    exact, weighed = Window(3), Window(3, mismatch=0.1, weights={"AG": 0.5, "CT": 0.5})
    similarity = {("A", "G"): 0.5, ("C", "T"): 0.5}

    def worth(u, v):
        pairs = [tuple(sorted(pair)) for pair in zip(u, v, strict=True)]
        return np.prod([1.0 if a == b else similarity.get((a, b), 0.1) for a, b in pairs])

    windows = [[s[p : p + 3] for p in range(3)] for s in (x, z)]
    assert exact([x], [z])[0, 0] == sum(u == v for u, v in product(*windows)) == 1
    assert weighed([x], [z])[0, 0] == pytest.approx(sum(worth(u, v) for u, v in product(*windows)))
    marked = weighed.set_params(markers=("AGT",))
    assert marked([x], [z])[0, 0] == pytest.approx(weighed([x], [z])[0, 0] + 1)
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list("ACGT"), 12)) for _ in range(40)]
    assert check_mercer(marked, strings).positive_semidefinite
