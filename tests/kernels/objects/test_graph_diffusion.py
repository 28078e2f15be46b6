"""The diffusion kernel is the matrix exponential of the Laplacian."""

import pickle

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from tests.naming import named
from tests.reference import structured as reference

import mercer.kernels.objects.graph_diffusion as module
from mercer import SVC
from mercer.exceptions import InvalidInputError
from mercer.kernels import Graph, GraphDiffusion
from mercer.testing import check_kernel


def some_graph(n=12, p=0.25, seed=0):
    """A graph with a node without edges, an edge from a node to itself, and weights."""
    rng = np.random.default_rng(seed)
    A = np.triu(np.where(rng.random((n, n)) < p, rng.exponential(size=(n, n)), 0.0), 1)
    A[:, -1] = 0
    A += A.T
    A[2, 2] = 5.0
    return A


def among_many_nodes(A):
    """The graph of A and so many nodes without edges that its Laplacian is not decomposed."""
    n = module.DECOMPOSED + 1 - len(A)
    graph = Graph.from_adjacency(sp.block_diag([A, sp.coo_array((n, n))]))
    assert graph.n_nodes > module.DECOMPOSED
    return graph


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("beta", [0.0, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("decomposed", [True, False])
def test_the_definition(beta, normalized, decomposed):
    """exp(-βL), by the decomposition of L and by Chebyshev's series."""
    A = some_graph()
    graph = Graph.from_adjacency(A) if decomposed else among_many_nodes(A)
    kernel = GraphDiffusion(graph, beta, normalized)
    expected = reference.diffusion(A, beta, normalized)
    np.testing.assert_allclose(kernel(np.arange(12)), expected, atol=1e-13)
    np.testing.assert_allclose(kernel([3, 3, 11], [0, 11]), expected[np.ix_([3, 3, 11], [0, 11])], atol=1e-13)
    if not decomposed:
        # more nodes than are computed together
        alone = np.arange(12, 14 + 2 * module.TOGETHER)
        np.testing.assert_allclose(kernel(alone), reference.diffusion(np.zeros((len(alone),) * 2), beta, normalized))
        np.testing.assert_array_equal(kernel(np.arange(12), alone), 0.0)


@pytest.mark.parametrize("kernel", [GraphDiffusion(Graph([(0, 1), (1, 2), (2, 0), (3, 4)]), 0.7)], ids=named)
def test_the_contract(kernel):
    """check_kernel passes on nodes of two components."""
    check_kernel(kernel, [0, 1, 2, 3, 4, 1])


def test_heat():
    """None is lost, none crosses to another component, and in the end it is spread evenly."""
    graph = Graph([("a", "b"), ("b", "c"), ("d", "e")])
    K = GraphDiffusion(graph, 0.5)(list("abcde"))
    np.testing.assert_allclose(K.sum(axis=1), 1.0)
    np.testing.assert_allclose(K[:3, 3:], 0.0, atol=1e-15)
    assert (K[:3, :3] > 0).all()
    np.testing.assert_allclose(GraphDiffusion(graph, 100.0)(list("abc")), 1 / 3, atol=1e-12)


def test_a_closed_form():
    """Kondor & Lafferty (2002): on a complete graph of n nodes, (1 + (n-1) e^{-nβ})/n and (1 - e^{-nβ})/n."""
    n, beta = 6, 0.3
    K = GraphDiffusion(nx.complete_graph(n), beta)(range(n))
    same, other = (1 + (n - 1) * np.exp(-n * beta)) / n, (1 - np.exp(-n * beta)) / n
    np.testing.assert_allclose(K, np.where(np.eye(n), same, other), rtol=1e-13)


def test_a_large_graph():
    """A path of 3000 nodes, where heat after time 1 is e^{-2} I_{|i-j|}(2) far from its ends."""
    from scipy.special import ive

    kernel = GraphDiffusion(Graph([(i, i + 1) for i in range(2999)]), 1.0)
    features = kernel.prepare([1500, 1503, 2000])
    assert features.sparse and len(features.X.data) < 300
    K = kernel.block(features, features)
    np.testing.assert_allclose(K[0], [ive(0, 2.0), ive(3, 2.0), 0.0], atol=1e-15)


def test_the_decomposition_is_kept():
    """The decomposition is stored with the graph, for all beta; pickles leave it out."""
    graph = Graph.from_adjacency(some_graph())
    GraphDiffusion(graph, 1.0)([0])
    kept = graph.spectra[False]
    GraphDiffusion(graph, 2.0)([0])
    assert graph.spectra[False] is kept
    assert "spectra" not in vars(pickle.loads(pickle.dumps(graph)))


def test_the_club():
    """Zachary's karate club: two labelled nodes tell on which side almost all others are."""
    club = nx.karate_club_graph()
    for _, _, data in club.edges(data=True):
        data.clear()
    y = np.array([club.nodes[i]["club"] for i in club])
    model = SVC(kernel=GraphDiffusion(club, 0.5), C=10).fit([0, 33], y[[0, 33]])
    assert model.score(np.arange(34), y) > 0.9


@pytest.mark.parametrize("decomposed", [True, False])
def test_features(decomposed):
    """The heat of each node after half of the time is its feature map."""
    graph = Graph.from_adjacency(some_graph()) if decomposed else among_many_nodes(some_graph())
    kernel = GraphDiffusion(graph, 0.7)
    psi = kernel.feature_map(range(12))
    product = psi([1, 5]) @ psi(range(12)).T
    product = product if decomposed else product.toarray()
    np.testing.assert_allclose(product, kernel([1, 5], range(12)), atol=1e-14)


def test_names_of_nodes():
    """Nodes may be named by strings, in lists and arrays."""
    graph = Graph([("a", "b"), ("b", "c")])
    K = GraphDiffusion(graph)(["a", "c"])
    np.testing.assert_array_equal(GraphDiffusion(graph)(np.array(["a", "c"])), K)
    np.testing.assert_array_equal(GraphDiffusion(graph)(np.array([["a"], ["c"]], dtype=object)), K)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: GraphDiffusion(Graph([(0, 1)], directed=True)), "GraphDiffusion needs an undirected graph"),
        (lambda: GraphDiffusion(Graph([(0, 1)], weights=[-1.0])), "needs positive weights of edges, but the smallest"),
        (lambda: GraphDiffusion(Graph([(0, 1)]), -1.0), "beta=-1.0 is a time: it must be at least 0"),
        (lambda: GraphDiffusion(Graph([(0, 1)]), np.nan), "beta=nan must be a finite number"),
        (lambda: GraphDiffusion("abc"), "A graph is a mercer Graph"),
        (lambda: GraphDiffusion(Graph([(0, 1)]))([0, 2]), r"Sample 1 is 2, which is not one of the 2 nodes .*\(0, 1\)"),
        (lambda: GraphDiffusion(Graph([(0, 1)]))(["a"]), "Sample 0 is 'a', which is not one of the 2 nodes"),
        (lambda: GraphDiffusion(Graph([(0, 1)]))([0, None]), "compares nodes of a graph, but sample 1 is missing"),
        (lambda: GraphDiffusion(Graph([(i, 9) for i in range(9)]))([0.5]), "Sample 0 is 0.5, .*: 0, 1, 2, ..."),
    ],
    ids=named,
)
def test_errors(build, message):
    """Errors say what was found and what is allowed."""
    with pytest.raises(InvalidInputError, match=message):
        build()
