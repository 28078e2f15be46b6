"""The diffusion kernel between the nodes of one graph; Kondor & Lafferty (2002), [M5]."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.special import ive

from mercer.exceptions import InvalidInputError
from mercer.kernels.base import Kernel, check_number
from mercer.kernels.domains import as_objects
from mercer.kernels.features import Features, Matrix, Vector, VectorFeatures
from mercer.kernels.objects.graphs import Graph, as_graph
from mercer.kernels.vectors import Linear

# up to this many nodes: eigendecomposition of the Laplacian, once per graph and for all beta
DECOMPOSED = 1500
# nodes whose heat is computed together
TOGETHER = 64
# a share of heat that is below the rounding of 1 in float64
NEGLIGIBLE = 1e-17
_LINEAR = Linear()


@dataclass(frozen=True, repr=False)
class GraphDiffusion(Kernel):
    """k(u, v) = exp(-β L)[u, v] between the nodes u, v of one graph, where L = D - A is its Laplacian.

    A unit of heat starts at u; k(u, v) is the part that has arrived at v after time β. Nodes that no path connects have
    k = 0. The samples are nodes: their names, or numbers from 0. Each node is prepared as its heat after time β/2, so
    that k is an inner product, which is positive semidefinite in spite of rounding.

    Parameters
    ----------
    graph : Graph, adjacency matrix, list of edges or networkx graph
        Undirected, with positive weights if it has any. Edges from a node to itself have no effect.
    beta : float, default=1.0
        How long heat spreads; 0 for not at all.
    normalized : bool, default=False
        Whether L is D^-½ (D - A) D^-½, so that nodes of high degree lose heat no faster than others.

    Notes
    -----
    Up to 1500 nodes the eigenvectors of the Laplacian are computed once, for all β. For larger graphs the heat of the
    given nodes is computed by the Chebyshev series of exp, to rounding, with about 6 sqrt(β |L|) products with L, and
    stored sparse.

    Examples
    --------
    >>> from mercer.kernels import Graph
    >>> chain = Graph([("a", "b"), ("b", "c"), ("c", "d")])
    >>> GraphDiffusion(chain, beta=0.5)(["a", "b", "d"]).round(3)
    array([[0.674, 0.258, 0.01 ],
           [0.258, 0.474, 0.058],
           [0.01 , 0.058, 0.674]])
    """

    graph: Graph
    beta: float = 1.0
    normalized: bool = False

    def __post_init__(self) -> None:
        graph = as_graph(self.graph)
        if graph.directed:
            raise InvalidInputError(
                "GraphDiffusion needs an undirected graph: heat flows both ways. Leave out directed=True, or use "
                "Graph.from_adjacency(A + A.T)."
            )
        if graph.weights is not None and graph.weights.min() < 0:
            raise InvalidInputError(
                f"GraphDiffusion needs positive weights of edges, but the smallest is {graph.weights.min():g}."
            )
        object.__setattr__(self, "graph", graph)
        object.__setattr__(self, "beta", check_number("beta", self.beta))
        object.__setattr__(self, "normalized", bool(self.normalized))
        if self.beta < 0:
            raise InvalidInputError(f"beta={self.beta!r} is a time: it must be at least 0.")

    @property
    def domain(self) -> str:
        return "nodes"

    @property
    def preparation(self) -> Hashable:
        return self

    def check_samples(self, samples: Any) -> None:
        self._numbers(samples)

    def _numbers(self, samples: Any) -> Vector:
        """The numbers of the nodes. Raises if a sample is not a node of the graph."""
        nodes, numbers = as_objects(self, samples), self.graph.numbers
        found = []
        for i, node in enumerate(nodes):
            try:
                number = numbers.get(node)
            except TypeError:
                number = None
            if number is None:
                known = ", ".join(repr(self.graph.name(k)) for k in range(min(3, self.graph.n_nodes)))
                raise InvalidInputError(
                    f"Sample {i} is {node!r}, which is not one of the {self.graph.n_nodes} nodes of the graph"
                    + (f": {known}, ..." if self.graph.n_nodes > 3 else f" ({known})." if known else ".")
                )
            found.append(number)
        return np.array(found, dtype=np.intp)

    def prepare(self, samples: Any, dtype: Any = np.float64) -> VectorFeatures:
        """exp(-½βL)[u] for each node u."""
        nodes = self._numbers(samples)
        if self.graph.n_nodes <= DECOMPOSED:
            values, vectors = self._decomposed()
            return VectorFeatures(vectors[nodes] * np.exp(-0.5 * self.beta * values), dtype)
        distinct, places = np.unique(nodes, return_inverse=True)
        return VectorFeatures(_heat(self._laplacian(), distinct, 0.5 * self.beta)[places], dtype)

    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        return _LINEAR.block(a, b, out)

    def diagonal(self, a: Features) -> Vector:
        return _LINEAR.diagonal(a)

    def __repr__(self) -> str:
        return self.brief()

    def _laplacian(self) -> Any:
        """L as a sparse matrix."""
        A = self.graph.adjacency
        A = (A - sp.diags_array(A.diagonal())).tocsr()
        degrees = np.asarray(A.sum(axis=1)).ravel()
        if not self.normalized:
            return (sp.diags_array(degrees) - A).tocsr()
        root = np.zeros(len(degrees))
        np.divide(1.0, np.sqrt(degrees), out=root, where=degrees > 0)
        scale = sp.diags_array(root)
        return (sp.diags_array((degrees > 0).astype(np.float64)) - scale @ A @ scale).tocsr()

    def _decomposed(self) -> tuple[Vector, Matrix]:
        """Eigenvalues and eigenvectors of L, stored with the graph."""
        kept = self.graph.__dict__.setdefault("spectra", {})
        if self.normalized not in kept:
            kept[self.normalized] = scipy.linalg.eigh(self._laplacian().toarray())
        return kept[self.normalized]


def _heat(L: Any, nodes: Vector, time: float) -> Any:
    """exp(-time L)[nodes] as a CSR matrix, by the Chebyshev series of exp(-time λ) on 0 ≤ λ ≤ 2 max L_ii.

    With λ = r (1 + s), r = max L_ii: exp(-time λ) = Σ c_k T_k(-s), c_k = 2 e^{-r time} I_k(r time), c_0 half of that.
    All c_k are positive and sum to 1, so that the size of the omitted terms is known.
    """
    r = float(L.diagonal().max(initial=0.0))
    n = L.shape[0]
    coefficients = [float(ive(0, r * time))]
    while sum(coefficients) < 1.0 - NEGLIGIBLE and len(coefficients) < 10 * (1 + r * time) + 100:
        coefficients.append(2.0 * float(ive(len(coefficients), r * time)))
        if len(coefficients) > r * time / 4 and coefficients[-1] < NEGLIGIBLE:
            break
    # -s(L) = 1 - L / r
    M = (sp.eye_array(n) - L / r).tocsr() if r > 0 else sp.eye_array(n, format="csr")
    parts = []
    for first in range(0, len(nodes), TOGETHER):
        chosen = nodes[first : first + TOGETHER]
        before = np.zeros((n, len(chosen)))
        before[chosen, np.arange(len(chosen))] = 1.0
        now = M @ before
        total = coefficients[0] * before
        for c in coefficients[1:]:
            total += c * now
            before, now = now, 2.0 * (M @ now) - before
        total[np.abs(total) < NEGLIGIBLE] = 0.0
        parts.append(sp.csr_array(total.T))
    return sp.vstack(parts, format="csr") if parts else sp.csr_array((0, n))
