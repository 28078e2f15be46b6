"""Kernels between graphs are the sums over subtrees, paths and walks that they say they are."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.naming import named
from tests.reference import structured as reference

from mercer import SVC
from mercer.exceptions import InvalidInputError
from mercer.kernels import Graph, Normalized, RandomWalk, ShortestPath, WeisfeilerLehman
from mercer.testing import check_kernel


def random_graph(rng, n, p=0.4, n_labels=2, n_edge_labels=0, directed=False):
    """A random graph in the format of the reference, with self-loops."""
    edges = [(u, v) for u in range(n) for v in range(0 if directed else u, n) if rng.random() < p]
    labels = [int(label) for label in rng.integers(n_labels, size=n)] if n_labels else None
    edge_labels = ["-=#"[int(k)] for k in rng.integers(n_edge_labels, size=len(edges))] if n_edge_labels else None
    return n, edges, labels, edge_labels, directed


def graph_of(graph):
    n, edges, labels, edge_labels, directed = graph
    return Graph(edges, n, node_labels=labels, edge_labels=edge_labels, directed=directed)


def some(seed, **how):
    rng = np.random.default_rng(seed)
    return [random_graph(rng, int(n), **how) for n in [0, 1, *rng.integers(2, 7, size=7)]]


KINDS = {
    "plain": {"n_labels": 0},
    "labels": {"n_labels": 2},
    "edge_labels": {"n_labels": 2, "n_edge_labels": 2},
    "directed": {"n_labels": 2, "n_edge_labels": 2, "directed": True},
}
KERNELS = [
    (WeisfeilerLehman(0), reference.weisfeiler_lehman(0)),
    (WeisfeilerLehman(3), reference.weisfeiler_lehman(3)),
    (ShortestPath(), reference.shortest_path()),
    (RandomWalk(0.02), reference.random_walk(0.02)),
    (RandomWalk(0.5, length=3), reference.random_walk(0.5, 3)),
]
IDS = ["labels", "subtrees", "paths", "walks", "short_walks"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("kernel", "k"), KERNELS, ids=IDS)
def test_the_definition(kernel, k, kind):
    """Between samples prepared together, and prepared each by themselves, as training and test samples are."""
    train, test = some(0, **KINDS[kind]), some(1, **KINDS[kind])
    X, Z = [graph_of(g) for g in train], [graph_of(g) for g in test]
    np.testing.assert_allclose(kernel(X), reference.gram(k, train, train), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(kernel(X, Z), reference.gram(k, train, test), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", [kernel for kernel, _ in KERNELS], ids=IDS)
def test_the_contract(kernel):
    """check_kernel, with graphs without nodes and without edges among them."""
    check_kernel(kernel, [graph_of(g) for g in some(2, **KINDS["edge_labels"])])
    check_kernel(Normalized(kernel), [graph_of(g) for g in some(3, **KINDS["labels"])])


@pytest.mark.parametrize("kernel", [kernel for kernel, _ in KERNELS], ids=IDS)
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_the_order_of_the_nodes_does_not_matter(kernel, seed):
    """Isomorphic graphs have equal kernel values."""
    rng = np.random.default_rng(seed)
    n, edges, labels, edge_labels, _ = graph = random_graph(rng, int(rng.integers(1, 9)), n_edge_labels=2)
    order = rng.permutation(n)
    place = np.argsort(order)
    moved = n, [(place[u], place[v]) for u, v in edges], [labels[i] for i in order], edge_labels, False
    K = kernel([graph_of(graph), graph_of(moved), graph_of(random_graph(rng, 5))])
    np.testing.assert_allclose(K[0], K[1], rtol=1e-11)


def test_what_subtrees_cannot_see():
    """Two triangles and a hexagon have the same subtrees of every height; their distances differ."""
    triangles = Graph([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)])
    hexagon = Graph([(i, (i + 1) % 6) for i in range(6)])
    K = WeisfeilerLehman(10)([triangles, hexagon])
    assert (K[0, 0] == K).all()
    paths = Normalized(ShortestPath())([triangles, hexagon])
    assert paths[0, 1] < 0.7


def test_high_subtrees_tell_apart_what_low_ones_do_not():
    """The two ends of a long path are seen from its middle at a height of half its length only."""
    n = 21
    X = [Graph([(i, i + 1) for i in range(n - 1)], node_labels=[end, *"x" * (n - 2), end]) for end in "ab"]
    for height in (0, 9, 10, 11):
        K = WeisfeilerLehman(height)(X)
        # each level has 2 min(level + 1, ...) nodes that see an end
        seen = sum(min(n, 2 * (level + 1)) for level in range(height + 1))
        unseen = [n - min(n, 2 * (level + 1)) for level in range(height + 1)]
        assert K[0, 1] == sum(m * m for m in unseen)
        assert K[0, 0] > K[0, 1] and seen > 0


def test_names_of_features_can_be_read():
    """A label, a node with its neighbours, a pair of labels at a distance."""
    water = Graph([(0, 1), (0, 2)], node_labels="OHH", edge_labels=["-", "-"])
    names = WeisfeilerLehman(1).prepare([water]).names.names
    assert names == ["O", "H", ("O", (("-", "H"), ("-", "H"))), ("H", (("-", "O"),))]
    assert sorted(ShortestPath().prepare([water]).names.names) == [("H", "H", 2), ("H", "O", 1), ("O", "H", 1)]


@pytest.mark.parametrize(
    "kernel", [WeisfeilerLehman(2), WeisfeilerLehman(3, normalize=True), ShortestPath()], ids=named
)
def test_feature_maps(kernel):
    """<ψ(x), ψ(z)> = k(x, z), for new graphs too if the map was made from all others."""
    X, Z = ([graph_of(g) for g in some(seed, **KINDS["edge_labels"])] for seed in (4, 5))
    psi = kernel.feature_map(X)
    np.testing.assert_allclose((psi(X) @ psi(Z).T).toarray(), kernel(X, Z), rtol=1e-12, atol=1e-13)
    assert len(psi.names) == psi.dimension == psi(Z).shape[1]


def test_a_star_has_a_long_list_of_neighbours():
    """Long lists of neighbours are sorted correctly, in any order."""
    rng = np.random.default_rng(0)
    labels = rng.integers(50, size=3000)
    stars = [
        Graph([(0, i + 1) for i in range(3000)], node_labels=[-1, *rng.permutation(labels).tolist()]) for _ in range(2)
    ]
    K = WeisfeilerLehman(2)(stars)
    assert (K[0, 0] == K).all()


class TestRandomWalk:
    def test_weights_multiply(self):
        """Weights multiply along a walk; they may be negative, and differ by direction."""
        one, two = (3, [(0, 1), (1, 2)], None, None, False), (3, [(0, 1), (1, 0), (1, 2)], None, None, True)
        weights = {id(one): [0.5, -2.0], id(two): [1.5, 0.25, 3.0]}
        graphs = [Graph(g[1], 3, weights=weights[id(g)], directed=g[4]) for g in (one, two)]
        for decay, length in ((0.05, None), (0.3, 4)):
            expected = reference.gram(reference.random_walk(decay, length, weights), [one, two], [one, two])
            np.testing.assert_allclose(RandomWalk(decay, length)(graphs), expected, rtol=1e-12)

    def test_a_slow_series_is_summed_to_the_end(self):
        """With decay |A||B| = 0.998 the first seven thousand terms matter."""
        ring = [(i, (i + 1) % 5) for i in range(5)]
        K = RandomWalk(0.998 / 4)([Graph(ring)])
        np.testing.assert_allclose(K, 25 / (1 - 0.998), rtol=1e-10)

    def test_a_series_without_a_sum_is_refused(self):
        """In numbers, with the largest decay; a longest length is a way out."""
        clique = [(i, j) for i in range(5) for j in range(i)]
        with pytest.raises(InvalidInputError) as error:
            RandomWalk(0.1)([Graph(clique)])
        assert str(error.value) == (
            "RandomWalk(decay=0.1) sums over walks of any length, which needs decay |A| |B| <= 0.999, but "
            "two of these graphs have matrices of norm 4 and 4. Use decay=0.062 or less, or a longest length, such as "
            "length=4."
        )
        assert RandomWalk(0.062)([Graph(clique)]).shape == (1, 1)
        assert RandomWalk(0.1, length=4)([Graph(clique)])[0, 0] == pytest.approx(25 * sum(1.6**k for k in range(5)))

    @pytest.mark.parametrize("parameters", [{"decay": 0.0}, {"decay": np.nan}, {"length": -1}, {"length": 1.5}])
    def test_bad_parameters(self, parameters):
        """The error names the parameter."""
        with pytest.raises(InvalidInputError, match=next(iter(parameters))):
            RandomWalk(**parameters)


def test_machines_learn_from_graphs():
    """Rings against paths, from graphs in several formats; prediction after a pickle."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(4, 12, size=40)
    y = np.arange(40) % 2
    X = [[(i, (i + 1) % n) for i in range(n - (1 - ring))] for n, ring in zip(sizes, y, strict=True)]
    for kernel in (WeisfeilerLehman(2, normalize=True), ShortestPath(normalize=True), Normalized(RandomWalk(0.1))):
        model = SVC(kernel=kernel, C=100).fit(X[:30], y[:30])
        copy = pickle.loads(pickle.dumps(model))
        assert copy.score([Graph(edges) for edges in X[30:]], y[30:]) == 1.0


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ("abc", "compares graphs, but was given the string 'abc' instead of a sequence of them"),
        (["abc"], "compares graphs, but sample 0 is the string 'abc'"),
        ([[(0, 1)], None], "compares graphs, but sample 1 is missing"),
        ([[(0, 1)], [(0, 1, 2)]], r"Sample 1 is not a graph: Edge 0 is \(0, 1, 2\): an edge is a pair"),
        ([np.zeros((2, 3))], "Sample 0 is not a graph: An adjacency matrix must be square"),
        ([{0: [1]}], "compares graphs, but sample 0 is a dict"),
        ([3.5], "compares graphs, but sample 0 is the number 3.5"),
    ],
)
def test_what_is_no_graph(samples, message):
    """The error says which sample is not a graph."""
    for kernel in (WeisfeilerLehman(2), ShortestPath(), RandomWalk()):
        with pytest.raises(InvalidInputError, match=message):
            kernel(samples)
