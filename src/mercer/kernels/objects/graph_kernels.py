"""Kernels between graphs: common subtrees, common shortest paths, common walks.

In a graph without node labels each node has the label None; without edge labels, each edge. All kernels compare labels
by equality. The neighbours of a node of a directed graph are those to which its edges lead.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mercer._compiled.thread_pool import cached_property
from mercer.exceptions import InvalidInputError
from mercer.kernels.base import Kernel, check_positive, check_whole
from mercer.kernels.domains import as_objects
from mercer.kernels.features import Csr, Features, Matrix, Vector
from mercer.kernels.objects.counts import Counted, CountKernel, Names
from mercer.kernels.objects.graphs import Graph, Stacked, as_graphs, stack

# the series over all walks is summed if decay times the norms of the two graphs is at most this
LARGEST_RATIO = 0.999


class Labelled(NamedTuple):
    """Stacked graphs with the number of the label of each node and of each CSR entry, and the labels themselves."""

    graphs: Stacked
    nodes: Vector
    edges: Vector
    node_names: Names
    edge_names: Names


def labelled(graphs: Sequence[Graph]) -> Labelled:
    """Stack the graphs and number their labels in order of appearance."""
    stacked = stack(graphs)
    nodes, node_names = _numbered((graph.node_labels, graph.n_nodes) for graph in graphs)
    edges, edge_names = _numbered((graph.edge_labels, len(graph.edges)) for graph in graphs)
    return Labelled(stacked, nodes, edges[stacked.edge], node_names, edge_names)


def _numbered(parts: Any) -> tuple[Vector, Names]:
    numbers: dict[Hashable, int] = {}
    labels = chain.from_iterable(repeat(None, n) if given is None else given for given, n in parts)
    found = [numbers.setdefault(label, len(numbers)) for label in labels]
    return np.array(found, dtype=np.int64), Names(numbers)


# ---- subtrees --------------------------------------------------------------------------------------------------------


class Level(NamedTuple):
    """The subtrees of one height that occur: each is a root and its neighbours with their subtrees of the height below.

    Subtree r has the root head[r] and the neighbours values[indptr[r] : indptr[r + 1]], in ascending order, where a
    neighbour is (number of the edge label) * n_below + (subtree of the height below).
    """

    head: Vector
    indptr: Vector
    values: Vector
    n_below: int

    def moved(self, places: Vector, edge_places: Vector, n_below: int) -> Level:
        """The same subtrees in other numbers: head[r] is negative if a part of r does not occur among the others."""
        from mercer.kernels.objects._graph_loops import sort_rows

        edges, subtrees = np.divmod(self.values, self.n_below)
        edges, subtrees = edge_places[edges], places[subtrees]
        rows = np.repeat(np.arange(len(self.head)), np.diff(self.indptr))
        head = places[self.head]
        head[rows[(edges < 0) | (subtrees < 0)]] = -1
        values = edges * n_below + subtrees
        sort_rows(self.indptr, values)
        return Level(head, self.indptr, values, n_below)


class SubtreeNames(Names):
    """Subtrees of all heights, the lowest first. Each is defined by subtrees of the height below, down to labels."""

    def __init__(self, labels: Names, edge_labels: Names, levels: Sequence[Level]) -> None:
        super().__init__(())
        self.labels, self.edge_labels, self.levels = labels, edge_labels, tuple(levels)

    def __len__(self) -> int:
        return len(self.labels) + sum(len(level.head) for level in self.levels)

    @property
    def names(self) -> list[Any]:
        """The label for height 0; (subtree, ((edge label, subtree), ...)) for a node with its neighbours."""
        below = found = list(self.labels.names)
        edges = self.edge_labels.names
        for level in self.levels:
            above = []
            for r, head in enumerate(level.head.tolist()):
                row = level.values[level.indptr[r] : level.indptr[r + 1]].tolist()
                pairs = tuple((edges[value // level.n_below], below[value % level.n_below]) for value in row)
                above.append((below[head], pairs))
            found, below = found + above, above
        return found

    def _find(self, other: Names) -> Vector:
        from mercer.kernels.objects._graph_loops import find_rows

        assert isinstance(other, SubtreeNames) and len(self.levels) == len(other.levels)
        edge_places = self.edge_labels.places_in(other.edge_labels)
        below = self.labels.places_in(other.labels)
        found, offset = [below], len(other.labels)
        for ours, theirs in zip(self.levels, other.levels, strict=True):
            moved = ours.moved(below, edge_places, theirs.n_below)
            below = find_rows(*moved[:3], theirs.head, theirs.indptr, theirs.values)
            found.append(np.where(below >= 0, below + offset, -1))
            offset += len(theirs.head)
        return np.concatenate(found)


@dataclass(frozen=True, repr=False)
class WeisfeilerLehman(CountKernel):
    """k(G, H) = Σ_t c_t(G) c_t(H), where c_t counts the nodes at which the subtree t is rooted, of each height up to h.

    A subtree of height 0 is the label of a node. One of height i + 1 is a node's subtree of height i together with
    those of its neighbours and the labels of the edges to them: the colours of Weisfeiler and Lehman; Shervashidze et
    al., JMLR 12 (2011). Subtrees are compared exactly, not by hashes. The time is linear in the number of edges.

    Parameters
    ----------
    height : int, default=5
        The h of the formula; 0 compares only the labels of nodes.
    normalize : bool, default=False
        Whether to divide by sqrt(k(G, G) k(H, H)); a graph without nodes has k = 0.

    Examples
    --------
    >>> from mercer.kernels import Graph
    >>> triangle, path = Graph([(0, 1), (1, 2), (0, 2)]), Graph([(0, 1), (1, 2)])
    >>> WeisfeilerLehman(height=1)([triangle, path])
    array([[18., 12.],
           [12., 14.]])
    """

    height: int = 5
    normalize: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "height", check_whole("height", self.height, 0))

    @property
    def domain(self) -> str:
        return "graphs"

    def count(self, samples: list[Any]) -> Counted:
        graph, numbers, names = self.subtrees(samples)
        rows, columns = np.tile(graph, len(numbers)), np.concatenate(numbers)
        counts = sp.coo_array((np.ones(len(rows)), (rows, columns)), shape=(len(samples), len(names))).tocsr()
        counts.sum_duplicates()
        return Counted(Csr.of(counts, np.dtype(np.float64)), names)

    def subtrees(self, samples: list[Any]) -> tuple[Vector, list[Vector], SubtreeNames]:
        """The graph of each node, the number of the subtree of each height at each node, and their names."""
        from mercer._compiled.stored_rows import take_rows
        from mercer.kernels.objects._graph_loops import number_rows, sort_rows

        (stacked, labels, edges, node_names, edge_names) = labelled(as_graphs(samples))
        levels, numbers, n_below, offset = [], [labels], len(node_names), len(node_names)
        for _ in range(self.height):
            values = edges * n_below + labels[stacked.indices]
            sort_rows(stacked.indptr, values)
            codes, first = number_rows(labels, stacked.indptr, values)
            indptr, _, row_values = take_rows(stacked.indptr, values, values, first)
            levels.append(Level(labels[first], indptr, row_values, n_below))
            labels, n_below = codes, len(first)
            numbers.append(codes + offset)
            offset += n_below
        return stacked.graph, numbers, SubtreeNames(node_names, edge_names, levels)


# ---- shortest paths --------------------------------------------------------------------------------------------------


class PathNames(Names):
    """The features of ShortestPath: pairs of labels and a distance."""

    def __init__(self, labels: Names, first: Vector, last: Vector, distance: Vector) -> None:
        super().__init__(())
        self.labels, self.first, self.last, self.distance = labels, first, last, distance

    def __len__(self) -> int:
        return len(self.first)

    @property
    def names(self) -> list[Any]:
        """(label, label, distance)."""
        labels, ends = self.labels.names, zip(self.first.tolist(), self.last.tolist(), strict=True)
        return [(labels[u], labels[v], d) for (u, v), d in zip(ends, self.distance.tolist(), strict=True)]

    def _rows(self, places: Vector) -> tuple[Vector, Vector, Vector]:
        """Rows (first label, last label, distance); the first label is negative if one of the two does not occur."""
        first, last = places[self.first], places[self.last]
        values = np.stack([last, self.distance], axis=1).ravel()
        return np.where(last < 0, -1, first), np.arange(0, 2 * len(self) + 1, 2), values

    def _find(self, other: Names) -> Vector:
        from mercer.kernels.objects._graph_loops import find_rows

        assert isinstance(other, PathNames)
        theirs = other._rows(np.arange(len(other.labels)))
        return find_rows(*self._rows(self.labels.places_in(other.labels)), *theirs)


@dataclass(frozen=True, repr=False)
class ShortestPath(CountKernel):
    """k(G, H) = Σ c(G) c(H), where c counts the pairs u ≠ v of nodes with two given labels at a given distance.

    The distance is the number of edges of a shortest path from u to v; pairs without a path are not counted. Both
    (u, v) and (v, u) are counted. Borgwardt & Kriegel (2005), with equality of labels and lengths. The time is that of
    a breadth-first search from each node. Edge labels and weights are ignored.

    Parameters
    ----------
    normalize : bool, default=False
        Whether to divide by sqrt(k(G, G) k(H, H)); a graph without edges has k = 0.

    Examples
    --------
    >>> from mercer.kernels import Graph
    >>> triangle, path = Graph([(0, 1), (1, 2), (0, 2)]), Graph([(0, 1), (1, 2)])
    >>> ShortestPath()([triangle, path])
    array([[36., 24.],
           [24., 20.]])
    """

    normalize: bool = False

    @property
    def domain(self) -> str:
        return "graphs"

    def count(self, samples: list[Any]) -> Counted:
        from mercer.kernels.objects._graph_loops import path_counts

        stacked, labels, _, names, _ = labelled(as_graphs(samples))
        n_labels, longest = max(1, len(names)), int(np.diff(stacked.start).max(initial=0)) + 1
        if n_labels**2 * longest >= 2**62:
            raise InvalidInputError(
                f"{n_labels:,} different labels and paths of up to {longest:,} nodes are more combinations than 2^62. "
                "Use fewer labels."
            )
        indptr, keys, counts = path_counts(stacked.start, stacked.indptr, stacked.indices, labels, n_labels, longest)
        distinct, numbers = np.unique(keys, return_inverse=True)
        pairs, distance = np.divmod(distinct, longest)
        found = sp.csr_array((counts, numbers, indptr), shape=(len(samples), len(distinct)))
        found.sort_indices()
        return Counted(Csr.of(found, np.dtype(np.float64)), PathNames(names, *np.divmod(pairs, n_labels), distance))


# ---- walks -----------------------------------------------------------------------------------------------------------


class GraphFeatures:
    """Labelled graphs with edge weights. Parts share all arrays but ``which``, the numbers of their graphs."""

    def __init__(self, whole: Labelled, weights: Vector, which: Vector, dtype: Any) -> None:
        self.whole, self.weights, self.which = whole, weights, which
        self.dtype = np.dtype(dtype)

    def __len__(self) -> int:
        return len(self.which)

    def take(self, index: Vector) -> GraphFeatures:
        """The graphs at these positions."""
        part = GraphFeatures(self.whole, self.weights, self.which[index], self.dtype)
        part.__dict__["norms"] = self.norms
        return part

    @cached_property
    def norms(self) -> Vector:
        """An upper bound on the norm of the matrix of each graph, for all graphs prepared together."""
        from mercer.kernels.objects._graph_loops import norm_bounds

        stacked = self.whole.graphs
        out = np.empty(len(stacked.start) - 1)
        norm_bounds(stacked.start, stacked.indptr, stacked.indices, self.weights, out)
        return out


@dataclass(frozen=True, repr=False)
class RandomWalk(Kernel):
    """k(G, H) = Σ_l decay^l Σ w(p) w(q), over all walks p of G and q of H of l edges with the same sequence of labels.

    w is the product of the weights along the walk, 1 for edges without weights. With W[(u, v), (u', v')] =
    A[u, u'] B[v, v'] for pairs of nodes and edges with equal labels, it is 1'(1 - decay W)⁻¹1: the geometric kernel of
    Gärtner, Flach & Wrobel (2003). W is not computed; each step takes O(nodes x edges).

    Parameters
    ----------
    decay : float, default=0.1
        Without ``length``, decay |A| |B| must be below 0.999 for each pair of graphs, where the norm |A| is at most the
        largest degree.
    length : int, default=None
        The largest number of edges of a walk; None for walks of all lengths.

    Examples
    --------
    >>> from mercer.kernels import Graph
    >>> edge, path = Graph([(0, 1)]), Graph([(0, 1), (1, 2)])
    >>> RandomWalk(decay=0.1, length=1)([edge, path])  # 2 x 2 nodes + 0.1 x 2 x 2 steps to either side, ...
    array([[ 4.4,  6.8],
           [ 6.8, 10.6]])
    """

    decay: float = 0.1
    length: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "decay", check_positive("decay", self.decay))
        if self.length is not None:
            object.__setattr__(self, "length", check_whole("length", self.length, 0))

    @property
    def domain(self) -> str:
        return "graphs"

    @property
    def preparation(self) -> Hashable:
        return "labelled graphs"

    def check_samples(self, samples: Any) -> None:
        as_objects(self, samples)

    def prepare(self, samples: Any, dtype: Any = np.float64) -> GraphFeatures:
        graphs = as_graphs(as_objects(self, samples))
        whole = labelled(graphs)
        weights = [np.ones(len(g.edges)) if g.weights is None else g.weights for g in graphs]
        return GraphFeatures(
            whole, np.concatenate([np.empty(0), *weights])[whole.graphs.edge], np.arange(len(graphs)), dtype
        )

    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        from mercer.kernels.objects._graph_loops import walk_block

        assert isinstance(a, GraphFeatures) and isinstance(b, GraphFeatures)
        if out is None:
            out = np.empty((len(a), len(b)), b.dtype)
        if len(a) == 0 or len(b) == 0:
            return out
        self._check_series(float(a.norms[a.which].max()), float(b.norms[b.which].max()))
        ours, theirs = a.whole, b.whole
        nodes = ours.node_names.places_in(theirs.node_names)
        edges = ours.edge_names.places_in(theirs.edge_names)
        values = np.empty((len(a), len(b)))
        walk_block(
            a.which, *ours.graphs[:3], _moved(ours.edges, edges), a.weights, _moved(ours.nodes, nodes), a.norms,
            b.which, *theirs.graphs[:3], theirs.edges, b.weights, theirs.nodes, b.norms,
            len(theirs.edge_names), self.decay, -1 if self.length is None else self.length, values,
        )  # fmt: skip
        out[...] = values
        return out

    def diagonal(self, a: Features) -> Vector:
        assert isinstance(a, GraphFeatures)
        out = np.empty((len(a), 1))
        for i in range(len(a)):
            one = a.take(np.array([i]))
            self.block(one, one, out[i : i + 1])
        return out[:, 0]

    def __repr__(self) -> str:
        return self.brief()

    def _check_series(self, left: float, right: float) -> None:
        """Raise if the sum over all walks may diverge."""
        if self.length is None and self.decay * left * right > LARGEST_RATIO:
            allowed = LARGEST_RATIO / max(left, right) ** 2
            raise InvalidInputError(
                f"{self!r} sums over walks of any length, which needs decay |A| |B| <= {LARGEST_RATIO:g}, but two of "
                f"these graphs have matrices of norm {left:.4g} and {right:.4g}. Use decay={allowed:.2g} or less, or "
                "a longest length, such as length=4."
            )


def _moved(numbers: Vector, places: Vector) -> Vector:
    return places[numbers] if len(numbers) else numbers
