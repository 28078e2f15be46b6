"""The class Graph, and conversion from adjacency matrices, lists of edges and networkx graphs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mercer._compiled.thread_pool import cached_property
from mercer.exceptions import InvalidInputError
from mercer.kernels.base import check_whole
from mercer.kernels.features import Vector
from mercer.kernels.objects.graph_input import (
    attributes_of,
    edge_labels_of,
    ends_of_named,
    ends_of_numbered,
    is_symmetric,
    labels_of,
    named_by_edges,
    pairs_of,
    sequence_of,
    square_of_numbers,
    weights_of,
)

# number of nodes and edges up to which a graph is printed as the expression that builds it
PRINTED = 40


class Graph:
    """A graph: nodes, edges between them, and labels of nodes and edges.

    It is immutable, and equal to any graph with the same nodes, edges, weights and labels. An edge that is given twice
    counts once. A node may have an edge to itself.

    Parameters
    ----------
    edges : pairs of nodes, or an array of shape (m, 2)
        Nodes are numbers or any other hashable objects, such as strings.
    n_nodes : int, default=None
        The nodes are 0, ..., n_nodes - 1, including those without edges. None: the nodes of ``node_labels`` if given,
        else those that have edges.
    node_labels : sequence or dict, default=None
        A hashable label for each node 0, 1, ..., or ``{node: label}``. None: no labels.
    edge_labels : sequence or dict, default=None
        A hashable label for each edge, in their order, or ``{(node, node): label}``. None: no labels.
    weights : sequence of float, default=None
        A number for each edge, in their order. None: all are 1.
    directed : bool, default=False
        Whether the edge (u, v) leads only from u to v.

    Attributes
    ----------
    n_nodes : the number of nodes.
    names : the nodes as they were given, in order; None if they are 0, ..., n_nodes - 1.
    edges : one row per edge with the numbers of its two nodes; an undirected edge has one row.

    Examples
    --------
    >>> water = Graph([(0, 1), (0, 2)], node_labels=["O", "H", "H"])
    >>> water
    Graph([(0, 1), (0, 2)], node_labels=('O', 'H', 'H'))
    >>> water == Graph.from_adjacency([[0, 1, 1], [1, 0, 0], [1, 0, 0]], node_labels="OHH")
    True
    >>> Graph([("Rome", "Milan"), ("Milan", "Turin")]).names
    ('Rome', 'Milan', 'Turin')
    """

    n_nodes: int
    names: tuple[Hashable, ...] | None
    edges: Vector
    weights: Vector | None
    node_labels: tuple[Hashable, ...] | None
    edge_labels: tuple[Hashable, ...] | None
    directed: bool

    def __init__(
        self,
        edges: Any = (),
        n_nodes: int | None = None,
        node_labels: Any = None,
        edge_labels: Any = None,
        weights: Any = None,
        directed: bool = False,
    ) -> None:
        given, of_numbers = pairs_of(edges)
        names: Any = None
        if isinstance(node_labels, Mapping):
            names, node_labels = list(node_labels), list(node_labels.values())
            if n_nodes is not None and n_nodes != len(names):
                raise InvalidInputError(f"n_nodes={n_nodes}, but node_labels has {len(names)} nodes.")
            n_nodes, names = len(names), None if names == list(range(len(names))) else names
        elif node_labels is not None:
            node_labels = sequence_of("node_labels", node_labels)
            if n_nodes is not None and n_nodes != len(node_labels):
                raise InvalidInputError(f"n_nodes={n_nodes}, but there are {len(node_labels)} node labels.")
            n_nodes = len(node_labels)
        elif n_nodes is not None:
            n_nodes = check_whole("n_nodes", n_nodes, 0)
        if n_nodes is None:
            names, ends = named_by_edges(given, of_numbers)
            n_nodes = int(ends.max(initial=-1)) + 1 if names is None else len(names)
        elif names is not None:
            ends = ends_of_named(given, {name: i for i, name in enumerate(names)})
        else:
            ends = ends_of_numbered(given, of_numbers, int(n_nodes))
        pairs = given.tolist() if of_numbers and isinstance(edge_labels, Mapping) else given
        self._set(
            n_nodes=int(n_nodes),
            directed=bool(directed),
            names=None if names is None else tuple(names),
            node_labels=labels_of("node", node_labels),
        )
        self._set_edges(ends, edge_labels_of(edge_labels, pairs, self.directed), weights_of(weights, len(ends)))

    def _set_edges(self, ends: Vector, labels: list[Hashable] | None, weights: Vector | None) -> None:
        """Set the edges, sorted and without repeats; the smaller node of an undirected edge comes first."""
        if not self.directed:
            ends = np.sort(ends, axis=1)
        keys, first, inverse = np.unique(ends[:, 0] * self.n_nodes + ends[:, 1], return_index=True, return_inverse=True)
        if len(keys) < len(ends):
            for what, values in (("label", labels), ("weight", None if weights is None else weights.tolist())):
                for i, value in enumerate(values or ()):
                    other = values[first[inverse[i]]]  # type: ignore[index]
                    if value != other:
                        u, v = (self.name(int(k)) for k in ends[i])
                        raise InvalidInputError(
                            f"The edge ({u!r}, {v!r}) is given twice, with the {what}s {other!r} and {value!r}: give "
                            "it once."
                        )
        self._set(
            edges=ends[first],
            edge_labels=labels_of("edge", None if labels is None else [labels[i] for i in first]),
            weights=None if weights is None else weights[first],
        )

    def _set(self, **values: Any) -> None:
        """Set attributes during construction. Edits the arrays' flags: they become read-only."""
        for value in values.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"A Graph cannot be changed: make a new one with another {name}.")

    @classmethod
    def from_adjacency(
        cls, matrix: Any, node_labels: Any = None, edge_labels: Any = None, directed: bool | None = None
    ) -> Graph:
        """The graph with an edge from i to j of weight matrix[i, j] wherever that is not 0.

        Parameters
        ----------
        matrix : array or sparse matrix of shape (n_nodes, n_nodes)
        node_labels : sequence, default=None
            A label for each row.
        edge_labels : array of shape (n_nodes, n_nodes) or dict, default=None
            Labels at the positions of the edges, or ``{(i, j): label}``.
        directed : bool, default=None
            None: directed if the matrix differs from its transpose.
        """
        A = sp.coo_array(square_of_numbers(matrix))
        A.sum_duplicates()
        A.eliminate_zeros()
        if not np.all(np.isfinite(A.data)):
            raise InvalidInputError("An adjacency matrix must be finite, but this one contains NaN or infinity.")
        n, (rows, columns) = A.shape[0], A.coords
        symmetric = is_symmetric(n, rows, columns, A.data)
        directed = not symmetric if directed is None else bool(directed)
        if not directed and not symmetric:
            raise InvalidInputError("directed=False, but the adjacency matrix differs from its transpose.")
        if isinstance(node_labels, Mapping):
            if set(node_labels) != set(range(n)):
                raise InvalidInputError(f"node_labels must have the keys 0, ..., {n - 1}: the rows of the matrix.")
            node_labels = [node_labels[i] for i in range(n)]
        elif node_labels is not None:
            node_labels = sequence_of("node_labels", node_labels)
            if len(node_labels) != n:
                found = len(node_labels)
                raise InvalidInputError(f"The adjacency matrix has {n} rows, but there are {found} node labels.")
        if edge_labels is not None and not isinstance(edge_labels, Mapping):
            table = np.asarray(edge_labels, dtype=None if isinstance(edge_labels, np.ndarray) else object)
            if table.shape != (n, n):
                raise InvalidInputError(
                    f"edge_labels has the shape {table.shape}, the adjacency matrix {(n, n)}: give a label at each "
                    "edge's place, or a dict {(i, j): label}."
                )
            edge_labels = table[rows, columns].tolist()
        weights = None if np.all(A.data == 1) else A.data.astype(np.float64)
        ends = np.stack([rows, columns], axis=1).astype(np.int64)
        return cls(ends, n, node_labels, edge_labels, weights, directed)

    @classmethod
    def from_networkx(
        cls, graph: Any, node_label: str = "label", edge_label: str = "label", weight: str = "weight"
    ) -> Graph:
        """A networkx graph; the attributes with these names become labels and weights."""
        nodes = list(graph.nodes)
        edges = list(graph.edges(data=True))
        node_labels = attributes_of("nodes", node_label, [graph.nodes[node] for node in nodes])
        return cls(
            [(u, v) for u, v, _ in edges],
            node_labels=dict.fromkeys(nodes) if node_labels is None else dict(zip(nodes, node_labels, strict=True)),
            edge_labels=attributes_of("edges", edge_label, [data for *_, data in edges]),
            weights=attributes_of("edges", weight, [data for *_, data in edges]),
            directed=graph.is_directed(),
        )

    def name(self, i: int) -> Hashable:
        """The name of node i, as it was given."""
        return i if self.names is None else self.names[i]

    @cached_property
    def numbers(self) -> dict[Hashable, int]:
        """The number of each node by its name."""
        names: Iterable[Hashable] = range(self.n_nodes) if self.names is None else self.names
        return {name: i for i, name in enumerate(names)}

    @cached_property
    def adjacency(self) -> Any:
        """The weights as a CSR matrix, symmetric unless the graph is directed."""
        stacked = stack([self])
        weights = np.ones(len(stacked.indices)) if self.weights is None else self.weights[stacked.edge]
        return sp.csr_array((weights, stacked.indices, stacked.indptr), shape=(self.n_nodes, self.n_nodes))

    def _value(self) -> tuple[Any, ...]:
        weights = None if self.weights is None else self.weights.tobytes()
        labels = (self.names, self.node_labels, self.edge_labels)
        return self.n_nodes, self.directed, self.edges.tobytes(), weights, labels

    def __eq__(self, other: object) -> bool:
        return self._value() == other._value() if isinstance(other, Graph) else NotImplemented

    def __hash__(self) -> int:
        if "hash" not in self.__dict__:
            self.__dict__["hash"] = hash(self._value())
        return int(self.__dict__["hash"])

    def __getstate__(self) -> dict[str, Any]:
        # without cached values: hashes of strings differ between processes
        return {name: self.__dict__[name] for name in Graph.__annotations__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._set(**state)

    def __repr__(self) -> str:
        if self.n_nodes + len(self.edges) > PRINTED:
            kind = "directed Graph" if self.directed else "Graph"
            return f"<{kind} of {self.n_nodes} nodes and {len(self.edges)} edges>"
        parts = [repr([(self.name(u), self.name(v)) for u, v in self.edges.tolist()])]
        if self.names is not None:
            labels = (None,) * self.n_nodes if self.node_labels is None else self.node_labels
            parts.append(f"node_labels={dict(zip(self.names, labels, strict=True))!r}")
        elif self.node_labels is not None:
            parts.append(f"node_labels={self.node_labels!r}")
        elif self.n_nodes != self.edges.max(initial=-1) + 1 or len(np.unique(self.edges)) < self.n_nodes:
            parts.append(f"n_nodes={self.n_nodes}")
        if self.edge_labels is not None:
            parts.append(f"edge_labels={self.edge_labels!r}")
        if self.weights is not None:
            parts.append(f"weights={self.weights.tolist()!r}")
        if self.directed:
            parts.append("directed=True")
        return f"Graph({', '.join(parts)})"


# ---- conversion ------------------------------------------------------------------------------------------------------


def as_graph(sample: Any) -> Graph:
    """The graph that a sample describes.

    * a ``Graph``, or a networkx graph whose nodes and edges may have the attributes "label" and "weight";
    * a square array or sparse matrix, or nested lists of more than two rows: the adjacency matrix;
    * a list of pairs: the edges;
    * a tuple of an adjacency matrix or list of edges, node labels, and edge labels if there are any.

    >>> as_graph([("a", "b"), ("b", "c")]).n_nodes
    3
    >>> as_graph((np.array([[0, 1], [1, 0]]), ["C", "O"]))
    Graph([(0, 1)], node_labels=('C', 'O'))
    """
    if isinstance(sample, Graph):
        return sample
    if hasattr(sample, "is_directed") and hasattr(sample, "nodes") and hasattr(sample, "edges"):
        return Graph.from_networkx(sample)
    if isinstance(sample, tuple) and 2 <= len(sample) <= 3 and _is_structure(sample[0]):
        labels = dict(zip(("node_labels", "edge_labels"), sample[1:], strict=False))
        if _is_matrix(sample[0]):
            return Graph.from_adjacency(sample[0], **labels)
        return Graph(sample[0], **labels)
    if _is_matrix(sample):
        return Graph.from_adjacency(sample)
    if isinstance(sample, Sequence) and not isinstance(sample, str):
        return Graph(sample)
    raise InvalidInputError(
        f"A graph is a mercer Graph, a networkx graph, an adjacency matrix or a list of edges, but this is of type "
        f"{type(sample).__name__}."
    )


def as_graphs(samples: Sequence[Any]) -> list[Graph]:
    """Convert all samples to graphs. The error says which sample is not a graph."""
    graphs = []
    for i, sample in enumerate(samples):
        try:
            graphs.append(as_graph(sample))
        except InvalidInputError as error:
            raise InvalidInputError(f"Sample {i} is not a graph: {error}") from None
    return graphs


def _is_structure(part: Any) -> bool:
    """Whether this is a matrix or a list of edges (as opposed to an edge)."""
    return _is_matrix(part) or isinstance(part, list)


def _is_matrix(sample: Any) -> bool:
    if sp.issparse(sample) or isinstance(sample, np.ndarray):
        return True
    if not isinstance(sample, list) or not sample or not all(isinstance(row, list) for row in sample):
        return False
    if all(len(row) == 2 for row in sample):
        if len(sample) == 2:
            raise InvalidInputError(
                f"{sample!r} may be an adjacency matrix or two edges: write np.array({sample!r}) for a matrix, "
                f"{[tuple(row) for row in sample]!r} for edges."
            )
        return False
    return True


# ---- stacked graphs --------------------------------------------------------------------------------------------------


class Stacked(NamedTuple):
    """Several graphs as one: all nodes are numbered consecutively, and the neighbours of each are stored as CSR.

    The nodes of graph g are start[g], ..., start[g + 1] - 1. Entry t of the CSR arrays belongs to the edge edge[t],
    with the edges of all graphs numbered consecutively. An undirected edge has two entries, a loop has one.
    """

    start: Vector
    indptr: Vector
    indices: Vector
    edge: Vector

    @property
    def graph(self) -> Vector:
        """The number of the graph of each node."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))


def stack(graphs: Sequence[Graph]) -> Stacked:
    """Stack the graphs."""
    start = np.concatenate([[0], np.cumsum([graph.n_nodes for graph in graphs], dtype=np.int64)]).astype(np.int64)
    counts = np.array([len(graph.edges) for graph in graphs], dtype=np.int64)
    ends = np.concatenate([graph.edges for graph in graphs]) if graphs else np.empty((0, 2), np.int64)
    ends = ends + np.repeat(start[:-1], counts)[:, None]
    edge = np.arange(len(ends))
    both = np.repeat(np.array([not graph.directed for graph in graphs], dtype=bool), counts) & (
        ends[:, 0] != ends[:, 1]
    )
    rows, columns = np.concatenate([ends[:, 0], ends[both, 1]]), np.concatenate([ends[:, 1], ends[both, 0]])
    order = np.argsort(rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=int(start[-1])))]).astype(np.int64)
    return Stacked(start, indptr, columns[order], np.concatenate([edge, edge[both]])[order])
