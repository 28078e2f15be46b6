"""Spectral clustering: scikit-learn's partitions, true residuals, graphs of neighbours, any kernel, and errors."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import SpectralClustering as Theirs
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import kneighbors_graph
from sklearn.utils.estimator_checks import check_estimator
from tests.naming import named

from mercer import SpectralClustering, certify, load, save
from mercer.estimators.clusters.graph_cut import embed, neighbour_graph
from mercer.exceptions import InvalidInputError
from mercer.gram.products import StoredMatrix
from mercer.kernels import Gaussian, Normalized, Spectrum


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "model",
    [SpectralClustering(), SpectralClustering(affinity="nearest_neighbors", n_neighbors=3, assign_labels="cluster_qr")],
    ids=named,
)
def test_conformance(model):
    """scikit-learn's checks pass."""
    check_estimator(model)


@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
@pytest.mark.parametrize("assign_labels", ["kmeans", "discretize", "cluster_qr"])
@pytest.mark.parametrize(
    "params",
    [
        {"gamma": 30.0},
        {"affinity": "nearest_neighbors"},
        {"affinity": "laplacian", "gamma": 20.0},
    ],
    ids=named,
)
def test_same_as_sklearn(params, assign_labels):
    """On moons labels and affinities are scikit-learn's, up to the numbers of the clusters."""
    X, y = make_moons(360, noise=0.04, random_state=0)
    params = {"n_clusters": 2, "assign_labels": assign_labels, "random_state": 0, **params}
    ours, theirs = SpectralClustering(**params).fit(X), Theirs(**params).fit(X)
    assert adjusted_rand_score(ours.labels_, theirs.labels_) == 1.0
    a, b = (sp.csr_array(m.affinity_matrix_).toarray() for m in (ours, theirs))
    np.testing.assert_allclose(a, b, atol=1e-12)
    if assign_labels != "discretize":
        assert adjusted_rand_score(ours.labels_, y) == 1.0


@pytest.mark.parametrize("assign_labels", ["kmeans", "discretize", "cluster_qr"])
def test_many_blobs(assign_labels):
    """Six separated blobs are found by every way to assign labels."""
    X, y = make_blobs(400, 5, centers=6, cluster_std=0.8, random_state=1)
    found = SpectralClustering(6, gamma=0.05, assign_labels=assign_labels, random_state=0).fit_predict(X)
    assert adjusted_rand_score(found, y) == 1.0


@pytest.mark.parametrize("n", [60, 500])
@pytest.mark.parametrize("sparse", [False, True])
def test_eigenvectors(n, sparse):
    """Eigenvalues, and residuals of the dense Laplacian, are as stated; nodes without edges are allowed."""
    X, _ = make_blobs(n, 2, centers=3, random_state=0)
    W = neighbour_graph(X, 6).toarray() if sparse else Gaussian(0.5)(X)
    W[0, 1:] = W[1:, 0] = 0.0
    degrees = W.sum(axis=1) - np.diagonal(W)
    degrees[degrees == 0] = 1.0
    A = W / np.sqrt(np.outer(degrees, degrees))
    np.fill_diagonal(A, 0.0)
    L = np.eye(n) - A
    found = embed(sp.csr_array(W) if sparse else StoredMatrix(W, 1), 4, 1e-9, np.random.RandomState(0))
    np.testing.assert_allclose(found.eigenvalues, np.linalg.eigvalsh(L)[:4], atol=1e-7)
    v = found.nodes * np.sqrt(degrees)[:, None]
    v /= np.linalg.norm(v, axis=0)
    np.testing.assert_allclose(v.T @ v, np.eye(4), atol=1e-7)
    actual = np.linalg.norm(L @ v - v * found.eigenvalues, axis=0)
    np.testing.assert_allclose(actual, found.residuals, atol=1e-12)
    assert found.residuals.max() < 1e-5


@pytest.mark.parametrize("d", [2, 20])
def test_neighbour_graph(d):
    """The graph of neighbours is scikit-learn's, by tree and by distances, dense and sparse."""
    X = np.random.default_rng(0).normal(size=(150, d))
    C = kneighbors_graph(X, 7, include_self=True)
    expected = (0.5 * (C + C.T)).toarray()
    np.testing.assert_array_equal(neighbour_graph(X, 7).toarray(), expected)
    np.testing.assert_array_equal(neighbour_graph(sp.csr_array(X), 7).toarray(), expected)


@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
def test_precomputed():
    """An affinity matrix, dense or sparse, and given neighbours lead to the same clusters."""
    X, y = make_circles(300, factor=0.3, noise=0.03, random_state=0)
    K = Gaussian(40.0)(X)
    for W in (K, sp.csr_array(K)):
        found = SpectralClustering(2, affinity="precomputed", random_state=0).fit_predict(W)
        assert adjusted_rand_score(y, found) == 1.0
    distances = kneighbors_graph(X, 15, mode="distance", include_self=True)
    params = {"n_clusters": 2, "affinity": "precomputed_nearest_neighbors", "n_neighbors": 8, "random_state": 0}
    ours, theirs = SpectralClustering(**params).fit(distances), Theirs(**params).fit(distances)
    np.testing.assert_allclose(ours.affinity_matrix_.toarray(), theirs.affinity_matrix_.toarray())
    assert adjusted_rand_score(ours.labels_, theirs.labels_) == 1.0


@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
@pytest.mark.parametrize("sparse", [False, True])
def test_asymmetric_affinities(sparse):
    """An edge in one direction only counts half, as in scikit-learn; rounding is averaged without a word."""
    X, y = make_moons(400, noise=0.06, random_state=0)
    W = kneighbors_graph(X, 8) if sparse else kneighbors_graph(X, 8).toarray()
    params = {"affinity": "precomputed", "random_state": 0, "assign_labels": "cluster_qr"}
    with pytest.warns(UserWarning, match="Array is not symmetric, and will be converted to symmetric by average"):
        ours = SpectralClustering(2, **params).fit(W)
    with pytest.warns(UserWarning, match="Array is not symmetric, and will be converted to symmetric by average"):
        theirs = Theirs(2, **params).fit(W)
    assert adjusted_rand_score(theirs.labels_, ours.labels_) == 1.0
    assert adjusted_rand_score(y, ours.labels_) == 1.0
    symmetric = SpectralClustering(2, **params).fit(1e6 * 0.5 * (W + W.T))
    np.testing.assert_array_equal(symmetric.labels_, ours.labels_)
    np.testing.assert_allclose(symmetric.eigenvalues_, ours.eigenvalues_, atol=1e-9)


def test_any_kernel_and_little_memory():
    """Kernel objects, strings, functions, and matrices that are computed tile by tile."""
    X, y = make_moons(400, noise=0.04, random_state=0)
    tiled = SpectralClustering(2, affinity=Gaussian(30.0), cache_size=0.1, random_state=0).fit(X)
    assert adjusted_rand_score(y, tiled.labels_) == 1.0 and not hasattr(tiled, "affinity_matrix_")
    words = ["kernel", "kernels", "kernelled", "margin", "margins", "marginal"]
    found = SpectralClustering(2, affinity=Normalized(Spectrum(2)), random_state=0).fit_predict(words)
    assert adjusted_rand_score([0, 0, 0, 1, 1, 1], found) == 1.0
    function = SpectralClustering(2, affinity=lambda x, z: np.exp(-30 * (x - z) @ (x - z)), random_state=0)
    assert adjusted_rand_score(y[:100], function.fit_predict(X[:100])) > 0.9
    changed = SpectralClustering(affinity=Gaussian(1.0)).set_params(kernel__gamma=2.0)
    assert changed.affinity == Gaussian(2.0)


def test_files(tmp_path):
    """A saved model keeps labels, affinities and residuals."""
    X, _ = make_moons(100, noise=0.04, random_state=0)
    for affinity in ("rbf", "nearest_neighbors"):
        model = SpectralClustering(2, affinity=affinity, random_state=0).fit(X)
        save(model, tmp_path / "model.mercer")
        again = load(tmp_path / "model.mercer")
        np.testing.assert_array_equal(again.labels_, model.labels_)
        np.testing.assert_array_equal(again.residuals_, model.residuals_)


def test_bad_input():
    """Errors name what was found and what is allowed."""
    X, _ = make_moons(30, random_state=0)
    with pytest.raises(InvalidInputError, match="n_clusters=31 was given, but X has n_samples=30"):
        SpectralClustering(31).fit(X)
    with pytest.raises(InvalidInputError, match="n_neighbors=40 was given, but X has n_samples=30"):
        SpectralClustering(2, affinity="nearest_neighbors", n_neighbors=40).fit(X)
    with pytest.raises(InvalidInputError, match="a cut is defined for affinities that are not negative"):
        SpectralClustering(2, affinity="linear").fit(X - X.mean(axis=0))
    with pytest.raises(InvalidInputError, match="must be a square matrix"):
        SpectralClustering(2, affinity="precomputed").fit(np.ones((4, 3)))
    with pytest.raises(InvalidInputError, match="row 0 of the graph has 3: store more neighbours"):
        SpectralClustering(2, affinity="precomputed_nearest_neighbors").fit(kneighbors_graph(X, 3, mode="distance"))
    with pytest.raises(ValueError, match="Input X contains NaN"):
        SpectralClustering(2).fit(np.full((5, 2), np.nan))
    with pytest.raises(InvalidInputError, match=r"A SpectralClustering has no certificate\."):
        certify(SpectralClustering(2).fit(X), X)
