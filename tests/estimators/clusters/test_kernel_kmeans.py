"""Kernel k-means: the partitions of k-means, a valid lower bound, weights, landmarks, new samples and errors."""

from itertools import product as pairs

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_blobs, make_circles
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator
from tests.naming import named

from mercer import KernelKMeans, certify, load, save
from mercer.estimators.clusters.lloyd import lloyd, seeds, spectral_bound
from mercer.exceptions import InvalidInputError
from mercer.gram.products import FactorMatrix, StoredMatrix
from mercer.kernels import Gaussian, Graph, Normalized, Spectrum, WeisfeilerLehman

# the order of samples changes which are drawn as seeds; scikit-learn's KMeans fails them as well
BY_CHANCE = {
    f"check_sample_weight_equivalence_on_{kind}_data": "seeds are drawn at random" for kind in ("dense", "sparse")
}


def blobs(n=300, k=4, seed=0, **kwargs):
    return make_blobs(n, 3, centers=k, random_state=seed, **kwargs)


def inertia_of(K, labels, weight):
    """The sum over clusters of Σ wᵢ Kᵢᵢ − (w'Kw)/Σw, from the definition."""
    total = 0.0
    for c in np.unique(labels):
        inside = labels == c
        w, part = weight[inside], K[np.ix_(inside, inside)]
        total += w @ np.diagonal(part) - w @ part @ w / max(w.sum(), 1e-300)
    return total


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", [KernelKMeans(), KernelKMeans(3, kernel="linear", landmarks=3)], ids=named)
def test_conformance(model):
    """scikit-learn's checks pass, except those that no random seeding passes."""
    check_estimator(model, expected_failed_checks=BY_CHANCE)


def test_linear_kernel_is_kmeans():
    """On the linear kernel the inertia is that of scikit-learn's KMeans, or smaller by moves of single samples."""
    for X, k in ((blobs()[0], 4), (load_digits().data[:300] / 16.0, 3)):
        theirs = KMeans(k, n_init=20, random_state=0, tol=0.0).fit(X)
        ours = KernelKMeans(k, kernel="linear", n_init=20, random_state=0).fit(X)
        assert ours.inertia_ <= theirs.inertia_ * (1 + 1e-12)
        assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-3)
        assert ours.inertia_ == pytest.approx(-ours.score(X))
        assert adjusted_rand_score(ours.labels_, theirs.labels_) > 0.98
        np.testing.assert_array_equal(ours.predict(X), ours.labels_)


def test_same_steps_as_kmeans():
    """From the same labels, Lloyd's iteration ends where scikit-learn's does, by a factor and by the kernel matrix."""
    X, _ = blobs(cluster_std=3.0)
    begin = np.random.default_rng(0).integers(0, 4, len(X))
    centres = np.array([X[begin == c].mean(axis=0) for c in range(4)])
    theirs = KMeans(4, init=centres, n_init=1, tol=0.0, algorithm="lloyd").fit(X)
    for K in (FactorMatrix(X), StoredMatrix(X @ X.T, 2)):
        ours = lloyd(K, np.ones(len(X)), [begin], 4, 300, tol=1e-14)
        np.testing.assert_array_equal(ours.labels, theirs.labels_)
        assert ours.inertia == pytest.approx(theirs.inertia_)


def test_bound_holds_for_every_partition():
    """Of all partitions of eight samples none is below the bound, and the best is found."""
    rng = np.random.default_rng(0)
    for k, seed in pairs((2, 3), range(3)):
        X, weight = rng.normal(size=(8, 2)), rng.uniform(0.2, 2.0, 8)
        K = Gaussian(0.7)(X)
        best = min(inertia_of(K, np.array(labels), weight) for labels in pairs(range(k), repeat=8))
        model = KernelKMeans(k, kernel=Gaussian(0.7), n_init=30, random_state=seed).fit(X, sample_weight=weight)
        assert model.lower_bound_ <= best + 1e-12
        assert model.inertia_ == pytest.approx(best)
        assert model.inertia_ == pytest.approx(inertia_of(K, model.labels_, weight))
        assert model.relative_gap_ == pytest.approx(1.0 - model.lower_bound_ / model.inertia_)


def test_bound_is_reached():
    """For clusters of equal samples, and for clusters far from each other, the bound is the inertia or close to it."""
    X = np.repeat([[0.0], [1.0], [3.0]], 5, axis=0)
    model = KernelKMeans(3, kernel=Gaussian(1.0), random_state=0).fit(X)
    assert model.inertia_ == pytest.approx(0.0, abs=1e-10)
    assert model.lower_bound_ == pytest.approx(0.0, abs=1e-10)
    X, _ = make_blobs(200, 40, centers=[[0.0] * 40, [30.0] * 40], random_state=0)
    assert KernelKMeans(2, kernel="linear", random_state=0).fit(X).relative_gap_ < 0.05


@pytest.mark.parametrize("k", [1, 2, 5])
def test_bounds_agree(k):
    """A stored matrix, a factor and a large matrix by products give the same bound."""
    rng = np.random.default_rng(0)
    F, weight = rng.normal(size=(400, 4)), rng.uniform(0.0, 2.0, 400)
    A = np.sqrt(weight)[:, None] * F
    unit = np.sqrt(weight) / np.linalg.norm(np.sqrt(weight))
    A = A - np.outer(unit, unit @ A)
    values = np.linalg.eigvalsh(A.T @ A)[::-1]
    expected = values.sum() - values[: k - 1].sum()
    for K in (FactorMatrix(F), StoredMatrix(F @ F.T, 1)):
        assert spectral_bound(K, weight, k, np.random.RandomState(0)).value == pytest.approx(expected, abs=1e-5)


def test_weights():
    """Samples with weight 2 count as two samples; weight 0 leaves the means alone."""
    X, _ = blobs(60, 3)
    begin = np.arange(60) % 3
    weight = np.random.default_rng(0).integers(0, 3, 60)
    ours = KernelKMeans(3, init=begin).fit(X, sample_weight=weight)
    repeated = KernelKMeans(3, kernel=Gaussian(ours._kernel.gamma), init=np.repeat(begin, weight)).fit(
        np.repeat(X, weight, axis=0)
    )
    assert ours.inertia_ == pytest.approx(repeated.inertia_)
    np.testing.assert_array_equal(ours.predict(X), repeated.predict(X))


@pytest.mark.parametrize("cache_size", ["auto", 0.01])
def test_memory_changes_nothing(cache_size):
    """Tiles and a stored matrix, sparse and dense rows give the same clusters."""
    X, _ = blobs(cluster_std=2.0)
    expected = KernelKMeans(4, random_state=0).fit(X)
    for rows in (X, sp.csr_array(X)):
        model = KernelKMeans(4, random_state=0, cache_size=cache_size).fit(rows)
        np.testing.assert_array_equal(model.labels_, expected.labels_)
        assert model.inertia_ == pytest.approx(expected.inertia_)
        assert model.lower_bound_ == pytest.approx(expected.lower_bound_, rel=1e-6)


def test_landmarks():
    """Means in the span of landmarks: a larger inertia, a smaller bound, and the same numbers when all are "
    "landmarks."""
    X, _ = blobs()
    exact = KernelKMeans(4, kernel=Gaussian(0.05), random_state=0).fit(X)
    few = KernelKMeans(4, kernel=Gaussian(0.05), landmarks=20, random_state=0).fit(X)
    assert few.inertia_ >= exact.inertia_ - 1e-9
    assert few.lower_bound_ <= exact.lower_bound_ + 1e-6
    assert few.inertia_ == pytest.approx(-few.score(X))
    np.testing.assert_array_equal(few.predict(X), few.labels_)
    every = KernelKMeans(4, kernel=Gaussian(0.05), landmarks=X, random_state=0).fit(X)
    assert every.inertia_ == pytest.approx(exact.inertia_, rel=1e-6)
    many = np.random.default_rng(0).normal(size=(30_000, 2)).astype(np.float32)
    large = KernelKMeans(2, landmarks=10, n_init=1, max_iter=3, tol=1.0, random_state=0).fit(many)
    assert len(large.labels_) == 30_000 and large.X_fit_.shape == (10, 2)


def test_circles_strings_graphs_and_matrices():
    """Any kernel: circles by their radius, words, graphs, and the matrix of each."""
    X, y = make_circles(100, factor=0.2, noise=0.03, random_state=0)
    model = KernelKMeans(2, kernel=lambda x, z: (x @ x) * (z @ z), random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    words = ["kernel", "kernels", "kernelled", "margin", "margins", "marginal"]
    kernel = Normalized(Spectrum(3))
    found = KernelKMeans(2, kernel=kernel, random_state=0).fit(words)
    assert adjusted_rand_score([0, 0, 0, 1, 1, 1], found.labels_) == 1.0
    assert found.predict(["kernell"])[0] == found.labels_[0]
    matrix = KernelKMeans(2, kernel="precomputed", random_state=0).fit(kernel(words))
    np.testing.assert_array_equal(matrix.labels_, found.labels_)
    np.testing.assert_array_equal(matrix.predict(kernel(["kernell"], words)), found.predict(["kernell"]))
    graphs = [Graph([(0, 1), (1, 2)] + [(2, 0)] * (k % 2)) for k in range(8)]
    assert adjusted_rand_score(np.arange(8) % 2, KernelKMeans(2, kernel=WeisfeilerLehman(2)).fit_predict(graphs)) == 1.0


def test_seeds_are_far_apart():
    """k-means++ starts with one sample of each of k distant clusters."""
    X, y = make_blobs(200, 2, centers=[[0, 0], [99, 0], [0, 99], [99, 99]], random_state=0)
    for seed in range(10):
        labels = seeds(FactorMatrix(X), np.ones(200), 4, np.random.RandomState(seed))
        assert adjusted_rand_score(labels, y) == 1.0


def test_empty_clusters_are_filled():
    """A start without samples in some clusters still ends with k of them."""
    X, _ = blobs()
    found = lloyd(FactorMatrix(X), np.ones(len(X)), [np.zeros(len(X), np.intp)], 4, 100)
    assert len(np.unique(found.labels)) == 4 and found.converged


def test_files(tmp_path):
    """A saved model predicts the same clusters."""
    X, _ = blobs()
    for params in ({}, {"landmarks": 15}, {"kernel": "linear"}):
        model = KernelKMeans(3, random_state=0, **params).fit(X)
        save(model, tmp_path / "model.mercer")
        again = load(tmp_path / "model.mercer")
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.lower_bound_ == model.lower_bound_


def test_bad_input():
    """Errors name what was found and what is allowed."""
    X, _ = blobs(20)
    with pytest.raises(InvalidInputError, match="n_clusters=21 was given, but X has n_samples=20"):
        KernelKMeans(21).fit(X)
    with pytest.raises(InvalidInputError, match=r"init has the shape \(2,\)"):
        KernelKMeans(2, init=[0, 1]).fit(X)
    with pytest.raises(InvalidInputError, match="a label from 0 to 1 for each of the 20 samples"):
        KernelKMeans(2, init=np.full(20, 2)).fit(X)
    with pytest.raises(InvalidInputError, match="all samples have zero or negative weights"):
        KernelKMeans(2).fit(X, sample_weight=np.zeros(20))
    with pytest.raises(ValueError, match="Input X contains infinity"):
        KernelKMeans(2).fit(np.full((3, 2), np.inf))
    with pytest.raises(ValueError, match="not finite"):
        KernelKMeans(2, kernel="poly", degree=3000).fit(X)
    with pytest.raises(InvalidInputError, match=r"A KernelKMeans has no certificate\."):
        certify(KernelKMeans(2).fit(X), X)


def test_warnings():
    """Too few distinct samples and too few rounds are said."""
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(1\) found smaller than n_clusters \(2\)"):
        KernelKMeans(2).fit(np.ones((5, 2)))
    X, _ = blobs(cluster_std=5.0)
    with pytest.warns(ConvergenceWarning, match="ended by max_iter=1: labels would still change"):
        KernelKMeans(4, init=np.arange(300) % 4, max_iter=1).fit(X)
