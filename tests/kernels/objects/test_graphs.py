"""Graphs from adjacency matrices, lists of edges and networkx are the same values."""

import pickle

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from tests.naming import named

from mercer.exceptions import InvalidInputError
from mercer.kernels import Graph
from mercer.kernels.objects.graphs import as_graph, stack

A = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
EDGES = [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    "given",
    [
        A, A.astype(bool), A.astype(np.float32), A.tolist(), sp.csr_array(A), sp.coo_matrix(A), sp.csc_array(A),
        Graph(EDGES, 4), (EDGES, range(4)), nx.from_numpy_array(A),
    ],
    ids=["int", "bool", "float", "lists", "csr", "coo", "csc", "graph", "labels", "networkx"],
)  # fmt: skip
def test_formats_of_one_graph(given):
    """A graph of two edges and an isolated node is the same value in all formats."""
    graph = as_graph(given)
    if isinstance(given, tuple):
        assert graph == Graph(EDGES, node_labels=range(4)) and graph.node_labels == (0, 1, 2, 3)
    else:
        assert graph == Graph(EDGES, n_nodes=4)
    assert graph.n_nodes == 4 and graph.names is None
    np.testing.assert_array_equal(graph.adjacency.toarray(), A)


@pytest.mark.parametrize(
    "edges",
    [
        [(1, 0), (2, 1)], [(0, 1), (1, 2), (1, 0), (0, 1)], {(1, 2), (0, 1)}, np.array([[2, 1], [0, 1]]),
        [[0, 1], [1, 2]], iter(EDGES), [np.array([0, 1]), np.array([2, 1])],
    ],
    ids=["other_way", "repeated", "set", "array", "lists", "iterator", "arrays"],
)  # fmt: skip
def test_edges_are_a_set_of_pairs(edges):
    """Edges in any order and direction, or given twice, make the same graph."""
    assert Graph(edges, 4) == Graph(EDGES, 4)
    assert hash(Graph(iter(EDGES), 4)) == hash(Graph(EDGES, 4))


def test_nodes_that_edges_name():
    """0, 1, ... are numbers; other names are kept in the order of appearance, other numbers in their own."""
    assert Graph([(2, 0), (1, 0)]).names is None
    assert Graph([(7, 3)]).names == (3, 7)
    assert Graph([("b", "a"), ("a", "c")]).names == ("b", "a", "c")
    assert Graph([("b", 1), (1, (2, 3))]).names == ("b", 1, (2, 3))
    labelled = Graph([("b", "a")], node_labels={"a": 1, "b": 2, "lonely": 3})
    assert labelled.names == ("a", "b", "lonely") and labelled.n_nodes == 3
    assert labelled.numbers == {"a": 0, "b": 1, "lonely": 2}


def test_empty_graphs():
    """A graph may have no nodes, or no edges."""
    assert Graph() == as_graph([]) == as_graph(np.zeros((0, 0))) == as_graph(nx.Graph())
    assert Graph().n_nodes == 0
    assert Graph([], 3) == as_graph(np.zeros((3, 3))) == as_graph(nx.empty_graph(3))
    assert Graph([], node_labels=[]) == Graph()


def test_directions():
    """A matrix that differs from its transpose has directed edges, as a DiGraph has."""
    B = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 1]])
    graph = as_graph(B)
    assert graph.directed and graph == Graph([(0, 1), (1, 2), (2, 2)], directed=True)
    assert graph == as_graph(nx.from_numpy_array(B, create_using=nx.DiGraph))
    np.testing.assert_array_equal(graph.adjacency.toarray(), B)
    assert graph != Graph([(0, 1), (1, 2), (2, 2)])
    np.testing.assert_array_equal(
        Graph([(0, 1), (1, 2), (2, 2)]).adjacency.toarray(), [[0, 1, 0], [1, 0, 1], [0, 1, 1]]
    )
    assert Graph.from_adjacency(A, directed=True).directed


def test_weights_and_labels_of_edges():
    """A matrix, a dict, a list and networkx give the same weights and labels."""
    W = np.array([[0, 2.5, 0], [2.5, 0, -1], [0, -1, 0]])
    names = np.array([["", "double", ""], ["double", "", "single"], ["", "single", ""]])
    expected = Graph([(1, 2), (0, 1)], 3, edge_labels=["single", "double"], weights=[-1, 2.5])
    assert expected.edge_labels == ("double", "single") and expected.weights.tolist() == [2.5, -1.0]
    assert Graph.from_adjacency(W, edge_labels=names) == expected
    assert Graph.from_adjacency(W, edge_labels={(1, 0): "double", (1, 2): "single"}) == expected
    assert Graph([(0, 1), (1, 2)], 3, edge_labels={(0, 1): "double", (2, 1): "single"}, weights=[2.5, -1]) == expected
    other = nx.Graph()
    other.add_nodes_from(range(3))
    other.add_edge(1, 0, weight=2.5, label="double")
    other.add_edge(1, 2, weight=-1.0, label="single")
    assert as_graph(other) == expected
    assert Graph.from_networkx(other, edge_label="none", weight="none") == Graph([(0, 1), (1, 2)])


def test_networkx_labels_and_multigraphs():
    """The attribute "label" becomes node labels; parallel edges count once."""
    graph = nx.MultiGraph([("a", "b"), ("a", "b"), ("b", "b")])
    nx.set_node_attributes(graph, {"a": "C", "b": "O"}, "label")
    assert as_graph(graph) == Graph([("a", "b"), ("b", "b")], node_labels={"a": "C", "b": "O"})
    nx.set_node_attributes(graph, {"a": 1}, "partly")
    with pytest.raises(InvalidInputError, match="1 of the 2 nodes have no attribute 'partly': give it to all of them"):
        Graph.from_networkx(graph, node_label="partly")


@pytest.mark.parametrize(
    "graph",
    [
        Graph(), Graph([], 2), Graph(EDGES), Graph([(0, 1)], 5), Graph([("a", "b")]), Graph([(3, 7)]),
        Graph(EDGES, node_labels="abc"), Graph([("a", "b")], node_labels={"b": 1, "a": (2, "x"), "c": None}),
        Graph([(1, 0)], directed=True, edge_labels=["x"], weights=[0.1]),
    ],
)  # fmt: skip
def test_a_graph_is_a_value(graph):
    """Printed as what builds it; its copies are equal; nothing in it can be changed."""
    assert eval(repr(graph)) == graph
    copy = pickle.loads(pickle.dumps(graph))
    assert copy == graph and hash(copy) == hash(graph)
    with pytest.raises(AttributeError, match="A Graph cannot be changed: make a new one with another directed"):
        graph.directed = False
    with pytest.raises(ValueError, match="read-only"):
        graph.edges[...] = 0
    assert graph != "graph"


def test_large_graphs_are_printed_shortly():
    """Large graphs print the numbers of nodes and edges instead of lists."""
    assert repr(Graph([(i, i + 1) for i in range(99)])) == "<Graph of 100 nodes and 99 edges>"
    assert repr(Graph([(i, i + 1) for i in range(99)], directed=True)) == "<directed Graph of 100 nodes and 99 edges>"


def test_stacked():
    """Nodes in one numbering; the neighbours of each; which edge leads to them."""
    stacked = stack([Graph(EDGES), Graph(), Graph([(0, 0), (1, 0)], directed=True)])
    np.testing.assert_array_equal(stacked.start, [0, 3, 3, 5])
    np.testing.assert_array_equal(stacked.graph, [0, 0, 0, 2, 2])
    np.testing.assert_array_equal(stacked.indptr, [0, 1, 3, 4, 5, 6])
    ends = [sorted(stacked.indices[a:b].tolist()) for a, b in zip(stacked.indptr, stacked.indptr[1:], strict=False)]
    assert ends == [[1], [0, 2], [1], [3], [3]]
    assert sorted(stacked.edge.tolist()) == [0, 0, 1, 1, 2, 3]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Graph([(0, 3)], 3), "The edge (0, 3) leads out of the graph: it has 3 nodes, numbered 0 to 2."),
        (lambda: Graph([(0, -1)], 3), "The edge (0, -1) leads out of the graph: it has 3 nodes, numbered 0 to 2."),
        (lambda: Graph([(0, 1)], 0), "The edge (0, 1) leads out of the graph: it has no nodes."),
        (lambda: Graph([("a", "b")], 2), "The edge ('a', 'b') leads to 'a', which is not a node of the graph."),
        (
            lambda: Graph([("a", "c")], node_labels={"a": 1, "b": 2}),
            "The edge ('a', 'c') leads to 'c', which is not a node of the graph.",
        ),
        (lambda: Graph([(0, 1)], 3, node_labels="ab"), "n_nodes=3, but there are 2 node labels."),
        (lambda: Graph([], 1, node_labels={"a": 1, "b": 2}), "n_nodes=1, but node_labels has 2 nodes."),
        (lambda: Graph([], -1), "n_nodes=-1 must be a whole number, at least 0."),
        (lambda: Graph([], "a"), "n_nodes='a' must be a whole number, at least 0."),
        (lambda: Graph([([0], 1)], 2), "The edge ([0], 1) leads to [0], which is not a node of the graph."),
        (
            lambda: Graph([(0, 1, 5.0)]),
            "Edge 0 is (0, 1, 5.0): an edge is a pair of nodes. Give labels and weights as edge_labels and weights.",
        ),
        (
            lambda: Graph(["ab"]),
            "Edge 0 is 'ab': an edge is a pair of nodes. Give labels and weights as edge_labels and weights.",
        ),
        (lambda: Graph("ab"), "edges must be pairs of nodes such as [(0, 1), (1, 2)], but is 'ab'."),
        (lambda: Graph(3), "edges must be pairs of nodes such as [(0, 1), (1, 2)], but is 3."),
        (
            lambda: Graph(np.zeros((2, 3), int)),
            "An array of edges must have the shape (m, 2), but the shape is (2, 3).",
        ),
        (lambda: Graph([([0], [1])]), "The nodes of a graph must be hashable: numbers, strings or tuples."),
        (
            lambda: Graph([(0, 1)], node_labels=[[1], [2]]),
            "A node label must be hashable: a number, a string or a tuple.",
        ),
        (
            lambda: Graph([(0, 1)], node_labels=[1.0, np.nan]),
            "A node label is NaN, which is not equal to itself: replace missing labels.",
        ),
        (
            lambda: Graph([(0, 1)], edge_labels=["a", "b"]),
            "There are 1 edges, but 2 edge labels: give one label for each edge.",
        ),
        (lambda: Graph([(0, 1)], edge_labels={(0, 2): "a"}), "edge_labels has no label for the edge (0, 1)."),
        (
            lambda: Graph([(0, 1), (1, 0)], edge_labels=["a", "b"]),
            "The edge (0, 1) is given twice, with the labels 'a' and 'b': give it once.",
        ),
        (
            lambda: Graph([(0, 1), (1, 0)], weights=[1.0, 2.0]),
            "The edge (0, 1) is given twice, with the weights 1.0 and 2.0: give it once.",
        ),
        (lambda: Graph([(0, 1)], weights=[1, 2]), "There are 1 edges, but weights has the shape (2,)."),
        (lambda: Graph([(0, 1)], weights=[0]), "weights must be finite and not 0: leave out edges of weight 0."),
        (lambda: Graph([(0, 1)], weights=["x"]), "weights must be numbers, one for each edge."),
        (
            lambda: Graph.from_adjacency(np.zeros((3, 2))),
            "An adjacency matrix must be square, but the shape is (3, 2). For an array of edges, use Graph(edges).",
        ),
        (
            lambda: Graph.from_adjacency([[0], [1, 2]]),
            "An adjacency matrix must be square, but its rows differ in length.",
        ),
        (
            lambda: Graph.from_adjacency(np.array([["a"]])),
            "An adjacency matrix must contain numbers, but it is of type <U1.",
        ),
        (
            lambda: Graph.from_adjacency([[0, np.nan], [np.nan, 0]]),
            "An adjacency matrix must be finite, but this one contains NaN or infinity.",
        ),
        (
            lambda: Graph.from_adjacency([[0, 1], [0, 0]], directed=False),
            "directed=False, but the adjacency matrix differs from its transpose.",
        ),
        (
            lambda: Graph.from_adjacency(A, node_labels="ab"),
            "The adjacency matrix has 4 rows, but there are 2 node labels.",
        ),
        (
            lambda: Graph.from_adjacency(A, node_labels={0: "a"}),
            "node_labels must have the keys 0, ..., 3: the rows of the matrix.",
        ),
        (
            lambda: Graph.from_adjacency(A, edge_labels=np.zeros((2, 2))),
            "edge_labels has the shape (2, 2), the adjacency matrix (4, 4): give a label at each edge's place, or a "
            "dict {(i, j): label}.",
        ),
        (
            lambda: as_graph([[0, 1], [1, 0]]),
            "[[0, 1], [1, 0]] may be an adjacency matrix or two edges: write np.array([[0, 1], [1, 0]]) for a matrix, "
            "[(0, 1), (1, 0)] for edges.",
        ),
        (
            lambda: as_graph(3.5),
            "A graph is a mercer Graph, a networkx graph, an adjacency matrix or a list of edges, but this is of type "
            "float.",
        ),
    ],
    ids=named,
)
def test_errors(build, message):
    """Errors say what is wrong and what to do."""
    with pytest.raises(InvalidInputError) as error:
        build()
    assert str(error.value) == message
