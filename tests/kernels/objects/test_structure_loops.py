"""Loops over counts, graphs and series, by short Python."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from tests.reference import structured as reference

from mercer._compiled.tiles import DOT, MIN
from mercer.kernels.objects import _count_loops as counts
from mercer.kernels.objects import _graph_loops as graphs
from mercer.kernels.objects import _series_loops as series


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("term", [DOT, MIN], ids=["dot", "min"])
@pytest.mark.parametrize(("m", "n", "d"), [(0, 2, 3), (1, 1, 1), (4, 9, 6), (3, 5000, 20)])
def test_add_matches(term, dtype, m, n, d):
    """Products or minima of CSR rows are added to out, which is cleared first if asked for."""
    rng = np.random.default_rng(0)
    A, B = (rng.integers(0, 4, (k, d)) * (rng.random((k, d)) < 0.5) for k in (m, n))
    a, b = sp.csr_array(A.astype(dtype)), sp.csr_array(B.astype(dtype))
    expected = (A[:, None] * B if term == DOT else np.minimum(A[:, None], B)).sum(axis=2)
    for clear in (True, False):
        out = np.ones((m, n), dtype)
        counts.add_matches(term, a.indptr, a.indices, a.data, b.indptr, b.indices, b.data, d, clear, out)
        np.testing.assert_array_equal(out, expected + (not clear))


def ragged(lists):
    """(indptr, values) of lists of numbers."""
    return np.cumsum([0, *map(len, lists)]), np.array([v for row in lists for v in row], np.int64)


ROWS = [[], [3], [5, 1, 4, 1], list(range(50, 0, -1)), [2, 2, 2], [-1, 0, -1], [7, 7, 3], [3]]


def test_sort_rows():
    """Each row is sorted by itself, ties and short rows among them."""
    for lists in (ROWS, [[]], []):
        indptr, values = ragged(lists)
        graphs.sort_rows(indptr, values)
        assert values.tolist() == [v for row in lists for v in sorted(row)]


def test_number_rows():
    """Distinct rows are numbered as they appear; the head counts, and so does the length."""
    lists = [[1, 2], [], [1, 2], [1], [2, 1], [1, 2], [], [1, 2, 0]]
    for head in (np.zeros(8, np.int64), np.array([0, 0, 1, 0, 0, 0, 5, 0])):
        numbers = {}
        expected = [numbers.setdefault((h, *row), len(numbers)) for h, row in zip(head, lists, strict=True)]
        codes, first = graphs.number_rows(head, *ragged(lists))
        assert codes.tolist() == expected
        assert first.tolist() == [expected.index(code) for code in range(len(numbers))]
    codes, first = graphs.number_rows(np.empty(0, np.int64), *ragged([]))
    assert len(codes) == len(first) == 0


def test_many_rows_are_numbered():
    """A table of thousands of rows, most of them equal to another."""
    rng = np.random.default_rng(0)
    lists, head = [list(rng.integers(0, 6, rng.integers(0, 4))) for _ in range(4000)], rng.integers(0, 3, 4000)
    numbers = {}
    expected = [numbers.setdefault((h, *row), len(numbers)) for h, row in zip(head, lists, strict=True)]
    assert graphs.number_rows(head, *ragged(lists))[0].tolist() == expected


def test_find_rows():
    """The number of the equal row among others; -1 for none, and for a negative head."""
    theirs, their_head = [[1, 2], [], [1], [2, 1]], np.array([0, 0, 0, 4])
    ours, head = [[2, 1], [1], [1, 2], [], [9], [1], []], np.array([4, 0, 1, 0, 0, -1, 0])
    known = {(h, *row): k for k, (h, row) in enumerate(zip(their_head, theirs, strict=True))}
    expected = [known.get((h, *row), -1) for h, row in zip(head, ours, strict=True)]
    assert graphs.find_rows(head, *ragged(ours), their_head, *ragged(theirs)).tolist() == expected
    empty = np.empty(0, np.int64), *ragged([])
    assert graphs.find_rows(head, *ragged(ours), *empty).tolist() == [-1] * 7
    assert len(graphs.find_rows(*empty, their_head, *ragged(theirs))) == 0


def stacked(matrices):
    """(start, indptr, indices, weights) of graphs given by adjacency matrices."""
    start = np.cumsum([0, *(len(A) for A in matrices)])
    whole = sp.csr_array(sp.block_diag(matrices, format="csr"))
    whole.eliminate_zeros()
    return start, whole.indptr.astype(np.int64), whole.indices.astype(np.int64), whole.data.astype(np.float64)


def random_graphs(directed=False):
    """One node, no edges, and random edges with weights of both signs."""
    rng = np.random.default_rng(0)
    found = [np.zeros((1, 1)), np.zeros((3, 3))]
    for n in (2, 6, 11):
        A = np.where(rng.random((n, n)) < 0.4, rng.normal(size=(n, n)), 0.0)
        found.append(A if directed else np.triu(A, 1) + np.triu(A, 1).T)
    return found


def test_path_counts():
    """For each graph, the pairs of nodes by labels and distance, by repeated products of the adjacency matrix."""
    matrices = random_graphs()
    start, indptr, indices, _ = stacked(matrices)
    labels, n_labels, longest = np.random.default_rng(1).integers(0, 3, start[-1]), 3, 20
    rows, keys, found = graphs.path_counts(start, indptr, indices, labels, n_labels, longest)
    for g, A in enumerate(matrices):
        mine, distance = labels[start[g] : start[g + 1]], np.where(np.eye(len(A)) > 0, 0, -1)
        reached = np.eye(len(A), dtype=bool)
        for d in range(1, len(A)):
            further = (reached.astype(int) @ (A != 0)) > 0
            distance[further & (distance < 0)] = d
            reached |= further
        pairs = [(u, v) for u in range(len(A)) for v in range(len(A)) if distance[u, v] > 0]
        expected = Counter((mine[u] * n_labels + mine[v]) * longest + distance[u, v] for u, v in pairs)
        part = slice(rows[g], rows[g + 1])
        assert dict(zip(keys[part].tolist(), found[part].tolist(), strict=True)) == expected


def test_norm_bounds():
    """A bound on the largest singular value of |A|, never below it and close to it."""
    matrices = random_graphs(directed=True)
    out = np.full(len(matrices), np.nan)
    graphs.norm_bounds(*stacked(matrices), out)
    exact = np.array([np.linalg.norm(np.abs(A), 2) for A in matrices])
    assert (out >= exact).all() and (out <= 1.2 * exact).all()


@pytest.mark.parametrize("length", [0, 1, 3, -1])
def test_walk_block(length):
    """Weights of pairs of walks with the same labels: powers of the product graph, or its geometric series."""
    matrices = random_graphs()
    start, indptr, indices, weights = stacked(matrices)
    rng = np.random.default_rng(2)
    labels, norms = rng.integers(0, 2, start[-1]), np.empty(len(matrices))
    graphs.norm_bounds(start, indptr, indices, weights, norms)
    edge_codes = (np.abs(weights) > 0.5).astype(np.int64)  # the same in both directions
    decay = 0.5 / norms.max() ** 2
    which, out = np.arange(len(matrices)), np.full((len(matrices),) * 2, np.nan)
    mine = start, indptr, indices, edge_codes, weights, labels, norms
    graphs.walk_block(which, *mine, which, *mine, 2, decay, length, out)
    dense = []
    for g, A in enumerate(matrices):
        part = slice(start[g], start[g + 1])
        by_code = [
            sp.csr_array((weights * (edge_codes == c), indices, indptr), shape=(start[-1],) * 2).toarray()[part, part]
            for c in range(2)
        ]
        dense.append((by_code, labels[part], len(A)))
    for i, (A, a_labels, n) in enumerate(dense):
        for j, (B, b_labels, m) in enumerate(dense):
            match = np.diag((a_labels[:, None] == b_labels).ravel().astype(float))
            W = decay * match @ sum(np.kron(x, z) for x, z in zip(A, B, strict=True)) @ match
            if length < 0:
                total = np.linalg.inv(np.eye(n * m) - W) @ match
            else:
                total = sum(np.linalg.matrix_power(W, k) @ match for k in range(length + 1))
            assert out[i, j] == pytest.approx(total.sum(), rel=1e-11, abs=1e-12)


BANDS = pytest.mark.parametrize("band", [0, 1, 2, 5])


@BANDS
@pytest.mark.parametrize(("n", "m"), [(0, 3), (3, 0), (1, 1), (2, 5), (6, 6), (300, 280)])
def test_log_alignment(n, m, band):
    """The logarithm of the sum over all alignments, beyond the range of float64; -inf if the band allows none."""
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(n, 2)), rng.normal(size=(m, 2))
    found = series.log_alignment(x, z, 0.7, band, *np.empty((4, m)))
    if n == 0 or m == 0 or (band > 0 and abs(n - m) >= band):
        assert found == -np.inf
    else:
        assert found == pytest.approx(reference.log_global_alignment(x, z, 0.7, band or None), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("paired", [False, True])
def test_log_alignments(paired):
    """Of some series with some others, in any order, or of pairs; an empty series among them."""
    rng = np.random.default_rng(0)
    lengths = [3, 0, 5, 1]
    start, points = np.cumsum([0, *lengths]), rng.normal(size=(sum(lengths), 2))
    a_rows, b_rows = np.array([2, 0, 3]), np.array([0, 2, 1])
    out = np.full((3, 1 if paired else 3), np.nan)
    series.log_alignments(points, start, a_rows, points, start, b_rows, 0.4, 0, paired, out)
    parts = [points[begin:end] for begin, end in pairwise(start)]
    for i, r in enumerate(a_rows):
        for j, s in enumerate([b_rows[i]] if paired else b_rows):
            expected = reference.log_global_alignment(parts[r], parts[s], 0.4) if lengths[r] and lengths[s] else -np.inf
            assert out[i, j] == pytest.approx(expected, rel=1e-12, abs=1e-12)
