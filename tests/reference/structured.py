"""Kernels on graphs, distributions and series by their definitions: slow, and too short to be wrong.

A graph is (n, edges, node labels, edge labels, directed), where edges are pairs of numbers; labels may be None.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from math import acos, exp, log, sqrt

import numpy as np
import scipy.linalg


def gram(k, X, Z):
    return np.array([[k(x, z) for z in Z] for x in X], dtype=float).reshape(len(X), len(Z))


# ---- graphs ----------------------------------------------------------------------------------------------------------


def neighbours(graph):
    """For each node a list of (label of the edge, node)."""
    n, edges, _, edge_labels, directed = graph
    found = [set() for _ in range(n)]
    for t, (u, v) in enumerate(edges):
        label = None if edge_labels is None else edge_labels[t]
        found[u].add((repr(label), v))
        if not directed:
            found[v].add((repr(label), u))
    return [sorted(one) for one in found]


def node_labels(graph):
    return [repr(None)] * graph[0] if graph[2] is None else [repr(label) for label in graph[2]]


def subtree(graph, node, height):
    """The subtree itself, as a text."""
    if height == 0:
        return node_labels(graph)[node]
    below = sorted(f"{label}>{subtree(graph, v, height - 1)}" for label, v in neighbours(graph)[node])
    return f"({subtree(graph, node, height - 1)}: {'; '.join(below)})"


def weisfeiler_lehman(height):
    def counts(graph):
        return Counter((h, subtree(graph, v, h)) for h in range(height + 1) for v in range(graph[0]))

    def k(g, h):
        a, b = counts(g), counts(h)
        return sum(a[t] * b[t] for t in a)

    return k


def distances(graph):
    """Floyd and Warshall."""
    n = graph[0]
    d = np.full((n, n), np.inf)
    for u, ends in enumerate(neighbours(graph)):
        d[u, u] = 0
        for _, v in ends:
            d[u, v] = min(d[u, v], 1)
    for w, u, v in product(range(n), repeat=3):
        d[u, v] = min(d[u, v], d[u, w] + d[w, v])
    return d


def shortest_path():
    def k(g, h):
        total = 0
        dg, dh, lg, lh = distances(g), distances(h), node_labels(g), node_labels(h)
        for u, v in product(range(g[0]), repeat=2):
            for x, y in product(range(h[0]), repeat=2):
                same = (lg[u], lg[v], dg[u, v]) == (lh[x], lh[y], dh[x, y])
                total += u != v and x != y and dg[u, v] < np.inf and same
        return total

    return k


def random_walk(decay, length=None, weights=None):
    """By the matrix of the product graph. ``weights`` maps the identity of a graph to the weights of its edges."""

    def k(g, h):
        pairs = [(u, x) for u, x in product(range(g[0]), range(h[0])) if node_labels(g)[u] == node_labels(h)[x]]
        W = np.zeros((len(pairs), len(pairs)))
        steps = [
            {(u, v): (label, weight(graph, u, v)) for u, ends in enumerate(neighbours(graph)) for label, v in ends}
            for graph in (g, h)
        ]
        for i, (u, x) in enumerate(pairs):
            for j, (v, y) in enumerate(pairs):
                if (u, v) in steps[0] and (x, y) in steps[1] and steps[0][u, v][0] == steps[1][x, y][0]:
                    W[i, j] = steps[0][u, v][1] * steps[1][x, y][1]
        one = np.ones(len(pairs))
        if length is None:
            return one @ np.linalg.solve(np.eye(len(pairs)) - decay * W, one) if pairs else 0.0
        return sum(decay**step * one @ np.linalg.matrix_power(W, step) @ one for step in range(length + 1))

    def weight(graph, u, v):
        if weights is None or id(graph) not in weights:
            return 1.0
        table = {tuple(edge): w for edge, w in zip(graph[1], weights[id(graph)], strict=True)}
        return table[u, v] if (u, v) in table or graph[4] else table[v, u]

    return k


def diffusion(A, beta, normalized=False):
    """The matrix exponential, of all nodes."""
    A = A - np.diag(np.diag(A))
    D = A.sum(axis=1)
    L = np.diag(D) - A
    if normalized:
        scale = np.diag([1 / sqrt(d) if d > 0 else 0.0 for d in D])
        L = scale @ L @ scale
    return scipy.linalg.expm(-beta * L)


# ---- distributions ---------------------------------------------------------------------------------------------------


def bhattacharyya(x, z):
    a, b = sum(x) or 1.0, sum(z) or 1.0
    return sum(sqrt(p / a * q / b) for p, q in zip(x, z, strict=True))


def information_diffusion(t):
    return lambda x, z: exp(-(acos(min(1.0, bhattacharyya(x, z))) ** 2) / t)


# ---- series ----------------------------------------------------------------------------------------------------------


def local(x, z, i, j, gamma, band):
    g = exp(-gamma * float(((np.atleast_1d(x[i]) - np.atleast_1d(z[j])) ** 2).sum()))
    g *= 1.0 if band is None else max(0.0, 1.0 - abs(i - j) / band)
    return g / (2 - g)


def alignments(n, m):
    """All of them, one by one."""
    if n == 1 and m == 1:
        return [[(0, 0)]]
    found = []
    for i, j in ((n - 1, m), (n, m - 1), (n - 1, m - 1)):
        if i >= 1 and j >= 1:
            found += [[*path, (n - 1, m - 1)] for path in alignments(i, j)]
    return found


def global_alignment(gamma, band=None):
    """The sum over all alignments, exactly."""

    def k(x, z):
        total = Fraction(0)
        for path in alignments(len(x), len(z)) if len(x) and len(z) else []:
            term = Fraction(1)
            for i, j in path:
                term *= Fraction(local(x, z, i, j, gamma, band))
            total += term
        return float(total)

    return k


def log_global_alignment(x, z, gamma, band=None):
    """For long series, by dynamic programming with logarithms."""
    M = np.full((len(x) + 1, len(z) + 1), -np.inf)
    M[0, 0] = 0.0
    for i in range(len(x)):
        for j in range(len(z)):
            u = gamma * float(((np.atleast_1d(x[i]) - np.atleast_1d(z[j])) ** 2).sum())
            w = 1.0 if band is None else max(0.0, 1.0 - abs(i - j) / band)
            if w > 0:
                before = np.logaddexp(np.logaddexp(M[i, j], M[i, j + 1]), M[i + 1, j])
                M[i + 1, j + 1] = before + log(w) - u - log(2 - w * exp(-u))
    return float(M[-1, -1])
