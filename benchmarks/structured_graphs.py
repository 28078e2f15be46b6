"""Gram matrices of graphs: mercer's against GraKeL's and against a plain double loop, one thread each."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from measure import in_turns, say
from table import digits, table

from mercer import GlobalAlignment, Graph, Kernel, RandomWalk, ShortestPath, WeisfeilerLehman

HEADER = ["kernel", "samples", "mercer, s", "peer", "peer, s", "ratio"]
HEIGHT = 5
# graphs of a double loop over linear systems
FEW = 20


def load(name: str, folder: Path) -> tuple[list[Graph], np.ndarray]:
    """The graphs of a set with their labels; those of edges, too, where it has them."""
    with np.load(folder / f"{name}.graph.npz") as file:
        data = dict(file)
    n = len(data["y"])
    start = np.searchsorted(data["graph"], np.arange(n + 1))
    owner = data["graph"][data["edges"][:, 0]]
    order = np.argsort(owner, kind="stable")
    first = np.searchsorted(owner[order], np.arange(n + 1))
    edges = data["edges"][order]
    edge_labels = data["edge_labels"][order] if "edge_labels" in data else None
    graphs = [
        Graph(
            edges[first[i] : first[i + 1]] - start[i],
            node_labels=data["node_labels"][start[i] : start[i + 1]],
            edge_labels=None if edge_labels is None else edge_labels[first[i] : first[i + 1]],
        )
        for i in range(n)
    ]
    return graphs, data["y"]


def grakel_graphs(graphs: list[Graph]) -> list[Any]:
    """[edges in both directions, {node: label}], as GraKeL reads graphs."""
    found = []
    for graph in graphs:
        pairs = graph.edges.tolist()
        edges = {(u, v): 1.0 for a, b in pairs for u, v in ((a, b), (b, a))}
        found.append([edges, dict(enumerate(graph.node_labels))])
    return found


def subtree_loop(graphs: list[Graph], height: int) -> np.ndarray:
    """Weisfeiler and Lehman's kernel in plain Python: a dictionary of compressed labels, a double loop of products."""
    compressed: dict[Any, int] = {}
    counts = []
    for graph in graphs:
        ends: list[list[int]] = [[] for _ in range(graph.n_nodes)]
        for u, v in graph.edges.tolist():
            ends[u].append(v)
            ends[v].append(u)
        labels = [compressed.setdefault(("", label), len(compressed)) for label in graph.node_labels]
        count = Counter(labels)
        for level in range(height):
            keys = [(level, labels[v], tuple(sorted(labels[u] for u in ends[v]))) for v in range(graph.n_nodes)]
            labels = [compressed.setdefault(key, len(compressed)) for key in keys]
            count.update(labels)
        counts.append(count)
    return np.array([[sum(a[t] * b[t] for t in a) for b in counts] for a in counts], dtype=float)


def path_loop(graphs: list[Graph]) -> np.ndarray:
    """Pairs of labels at a distance, by Floyd and Warshall; a double loop of products."""
    counts = []
    for graph in graphs:
        d = np.where(graph.adjacency.toarray() > 0, 1.0, np.inf)
        np.fill_diagonal(d, 0.0)
        for w in range(graph.n_nodes):
            d = np.minimum(d, d[:, [w]] + d[[w]])
        labels, n = graph.node_labels, graph.n_nodes
        pairs = [(u, v) for u in range(n) for v in range(n) if u != v and d[u, v] < np.inf]
        counts.append(Counter((labels[u], labels[v], d[u, v]) for u, v in pairs))
    return np.array([[sum(a[t] * b[t] for t in a) for b in counts] for a in counts], dtype=float)


def walk_loop(graphs: list[Graph], decay: float) -> np.ndarray:
    """One linear system of the product graph for each pair."""

    def value(g: Graph, h: Graph) -> float:
        same = np.array([[a == b for b in h.node_labels] for a in g.node_labels]).ravel()
        W = np.kron(g.adjacency.toarray(), h.adjacency.toarray())[np.ix_(same, same)]
        one = np.ones(len(W))
        return float(one @ np.linalg.solve(np.eye(len(W)) - decay * W, one)) if len(W) else 0.0

    return np.array([[value(g, h) for h in graphs] for g in graphs])


def alignment_loop(series: list[np.ndarray], gamma: float) -> np.ndarray:
    """Dynamic programming in Python, with numpy for the local kernel."""

    def log_value(x: np.ndarray, z: np.ndarray) -> float:
        g = np.exp(-gamma * (x[:, None] - z) ** 2)
        kappa = g / (2.0 - g)
        M = np.zeros((len(x) + 1, len(z) + 1))
        M[0, 0] = 1.0
        for i in range(len(x)):
            for j in range(len(z)):
                M[i + 1, j + 1] = kappa[i, j] * (M[i, j] + M[i, j + 1] + M[i + 1, j])
        return float(np.log(M[-1, -1]))

    logs = np.array([[log_value(x, z) for z in series] for x in series])
    return np.exp(logs - 0.5 * np.diag(logs)[:, None] - 0.5 * np.diag(logs))


def compare(kernel: Kernel, what: str, samples: list[Any], peer: str, call: Any, repeats: int) -> list[str]:
    """One row: both in turns in one process, by the time of the processor; they must agree."""
    calls = {"mercer": lambda: kernel(samples), "peer": call}
    found = in_turns(calls, repeats, process_time)
    ours, theirs = found["mercer"], found["peer"]
    np.testing.assert_allclose(ours.result, theirs.result, rtol=1e-6, atol=1e-9)
    row = [repr(kernel), what, digits(ours.median), peer, digits(theirs.median), digits(theirs.median / ours.median)]
    say(f"  {row}")
    return row


def grakel_calls(graphs: list[Graph]) -> dict[str, tuple[Kernel, Any]]:
    """GraKeL's kernels, if it is installed; its graphs are read within the call, as ours are."""
    try:
        from grakel.kernels import ShortestPath as TheirPaths
        from grakel.kernels import VertexHistogram
        from grakel.kernels import WeisfeilerLehman as TheirSubtrees
    except ImportError:
        say("grakel is not installed: its rows are left out")
        return {}
    given = grakel_graphs(graphs)
    return {
        "subtrees": (
            WeisfeilerLehman(HEIGHT),
            lambda: TheirSubtrees(n_iter=HEIGHT, base_graph_kernel=VertexHistogram).fit_transform(given),
        ),
        "paths": (ShortestPath(), lambda: TheirPaths(with_labels=True).fit_transform(given)),
    }


def looped(graphs: list[Graph]) -> list[list[str]]:
    """Against plain Python."""
    few = graphs[:: len(graphs) // FEW][:FEW]
    calls: list[tuple[Kernel, list[Graph], Any]] = [
        (WeisfeilerLehman(HEIGHT), graphs, lambda: subtree_loop(graphs, HEIGHT)),
        (ShortestPath(), graphs, lambda: path_loop(graphs)),
        (RandomWalk(0.05), few, lambda: walk_loop(few, 0.05)),
    ]
    return [compare(kernel, f"mutag, {len(part)}", part, "double loop", call, 1) for kernel, part, call in calls]


def run(folder: Path | None, repeats: int = 3) -> str:
    """The table of graphs and series, in Markdown."""
    rows = []
    if folder is not None:
        for name in ("mutag", "proteins", "nci1"):
            graphs = [Graph(g.edges, node_labels=g.node_labels) for g in load(name, folder)[0]]
            say(f"{name}: {len(graphs):,} graphs")
            for kernel, call in grakel_calls(graphs).values():
                rows.append(compare(kernel, f"{name}, {len(graphs):,}", graphs, "GraKeL", call, repeats))
        rows += looped([Graph(g.edges, node_labels=g.node_labels) for g in load("mutag", folder)[0]])
    rng = np.random.default_rng(0)
    series = [np.cumsum(rng.normal(size=50)) for _ in range(20)]
    call = lambda: alignment_loop(series, 0.01)  # noqa: E731
    rows.append(compare(GlobalAlignment(0.01), "20 series of 50 points", series, "double loop", call, repeats))
    return table(HEADER, rows)
