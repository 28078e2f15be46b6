"""Small sets for examples."""

import numpy as np
import pytest
from scipy.ndimage import zoom
from sklearn.datasets import dump_svmlight_file

from mercer import CommonSubstrings, InvalidInputError, datasets, separability

MAKERS = [datasets.__dict__[name] for name in datasets.__all__ if name.startswith("make_")]


@pytest.mark.parametrize("name", datasets.NAMES)
def test_sets_are_scaled(name):
    data = datasets.load(name)
    assert data.X.min() == 0 and data.X.max() == 1 and len(data.X) == len(data.y) and data.description
    assert len(data.feature_names) == data.X.shape[1]


def test_unknown_sets_are_refused():
    with pytest.raises(InvalidInputError, match="iris, wine"):
        datasets.load("boston")


def test_promoters_can_be_learnt_and_repeated():
    X, y = datasets.make_promoters(60, seed=3)
    assert X == datasets.make_promoters(60, seed=3)[0] != datasets.make_promoters(60, seed=4)[0]
    hits = np.array([max(sum(a == b for a, b in zip(x[i:], "TTGACA", strict=False)) for i in range(50)) for x in X])
    assert hits[y == 1].mean() > hits[y == 0].mean() + 0.5
    with pytest.raises(InvalidInputError, match="length=10"):
        datasets.make_promoters(4, length=10)


def test_libsvm_files(tmp_path):
    dump_svmlight_file(np.eye(3), [1, 0, 1], str(tmp_path / "a"), zero_based=False)
    X, y = datasets.load_libsvm(tmp_path / "a")
    np.testing.assert_array_equal(X.toarray(), np.eye(3))
    assert y.tolist() == [1, 0, 1]
    (tmp_path / "a.csv").write_text("x,y\n1,a\n2,b\n")
    assert datasets.read(tmp_path / "a.csv").target == "y"


def test_digits_of_16_by_16_pixels_are_interpolated():
    """As scipy.ndimage.zoom with linear interpolation between the centres of pixels."""
    small, large = datasets.load("digits"), datasets.load("digits16")
    expected = zoom(small.X.reshape(-1, 8, 8), (1, 2, 2), order=1, mode="nearest", grid_mode=True)
    np.testing.assert_allclose(large.X.reshape(-1, 16, 16), expected, atol=1e-12)
    np.testing.assert_array_equal(large.y, small.y)


@pytest.mark.parametrize("make", [make for make in MAKERS if make is not datasets.make_line], ids=lambda f: f.__name__)
def test_generated_sets_can_be_repeated(make):
    """The same samples for the same seed, others for another, and as many as were asked for."""
    X, y = samples(make(30, seed=1))
    again, _ = samples(make(30, seed=1))
    other, _ = samples(make(30, seed=2))
    assert len(X) == len(y) == 30
    assert as_lists(X) == as_lists(again) != as_lists(other)


def samples(data):
    return data if isinstance(data, tuple) else (data.X, data.y)


def as_lists(X):
    return X.tolist() if isinstance(X, np.ndarray) else X


@pytest.mark.parametrize("make", [datasets.make_line, datasets.make_circle, datasets.make_ellipse])
def test_curves_are_hyperplanes_among_their_features(make):
    """No line separates the samples; w separates ψ(x), and gives the labels."""
    data = make()
    assert not separability(data.X, data.y).separable
    np.testing.assert_array_equal(np.sign(data.psi @ data.w + data.get("b", 0.0)), data.y)
    assert separability(data.psi, data.y).separable


def test_ellipse_is_its_matrix():
    """w of the monomials is 1 − (x − c)'A(x − c), at least the gap away from 0."""
    data = datasets.make_ellipse(50, gap=0.2)
    away = data.X - data.center
    form = np.einsum("ni,ij,nj->n", away, data.matrix, away)
    np.testing.assert_allclose(data.psi @ data.w, 1 - form, atol=1e-12)
    assert np.abs(1 - form).min() >= 0.2 - 1e-12
    with pytest.raises(InvalidInputError, match="gap=1"):
        datasets.make_ellipse(gap=1)


def test_margin_is_the_one_that_is_asked_for():
    """Samples of length 1 whose distance from the hyperplane of w is γ, on the right side but for wrong labels."""
    data = datasets.make_margin(500, d=20, gamma=0.3, wrong=0.2)
    np.testing.assert_allclose(np.linalg.norm(data.X, axis=1), 1.0)
    distance = data.y * (data.X @ data.w)
    np.testing.assert_allclose(np.abs(distance), 0.3)
    np.testing.assert_array_equal(np.flatnonzero(distance < 0), data.wrong)
    assert 60 < len(data.wrong) < 140
    with pytest.raises(InvalidInputError, match=r"gamma=1\.5 and d=100"):
        datasets.make_margin(gamma=1.5)


@pytest.mark.parametrize("signature,alphabet", [("e8f1", "0123456789abcdef"), ("a", "ab"), ("abab", "ab")])
def test_signatures_are_substrings(signature, alphabet):
    """Of exactly the positive strings, whose lengths differ; the kernel of common substrings sees it."""
    data = datasets.make_signatures(60, 20, signature, alphabet)
    np.testing.assert_array_equal(np.where([signature in x for x in data.X], 1, -1), data.y)
    assert set("".join(data.X)) <= set(alphabet) and 10 <= min(map(len, data.X)) < max(map(len, data.X)) <= 20
    assert separability(data.X, data.y, CommonSubstrings()).separable
    with pytest.raises(InvalidInputError, match="signature='xyz'"):
        datasets.make_signatures(signature="xyz")


def test_motifs_have_as_many_mutations_as_asked_for():
    """At the places that are given, and nowhere else comes a negative string as close."""
    data = datasets.make_motifs(80, mutations=1)
    k = len(data.motif)
    for x, label, place in zip(data.X, data.y, data.places, strict=True):
        distances = [sum(a != b for a, b in zip(x[p : p + k], data.motif, strict=True)) for p in range(len(x) - k + 1)]
        assert distances[place] == 1 if label > 0 else min(distances) > 1
        assert label > 0 or place == -1
    with pytest.raises(InvalidInputError, match="motif='BOX'"):
        datasets.make_motifs(motif="BOX")


def test_outliers_lie_where_the_set_says():
    """All others are on the line but for the noise."""
    data = datasets.make_outliers(200, share=0.2, size=5.0, noise=0.01)
    np.testing.assert_allclose(data.truth, data.w * data.X[:, 0] + data.b)
    np.testing.assert_array_equal(np.flatnonzero(data.y - data.truth > 1.0), data.outliers)
    assert len(data.outliers) == 40
    with pytest.raises(InvalidInputError, match="share=1"):
        datasets.make_outliers(share=1)


def test_baskets_with_a_secret_item_are_those_of_babies():
    """Baskets have at most s items, and one of the k secret ones if and only if there is a baby."""
    data = datasets.make_baskets(200, d=50, s=6, k=3)
    np.testing.assert_array_equal(np.where([bool(x & data.secret) for x in data.X], 1, -1), data.y)
    assert max(map(len, data.X)) <= 6 and len(data.secret) == 3
    with pytest.raises(InvalidInputError, match="s=1"):
        datasets.make_baskets(s=1)
