"""Eigenvectors of the normalised Laplacian of a graph, and partitions from them.

    L = I − D^(-½) W D^(-½),   D = diag(W 1), without loops

The eigenvectors of the k smallest eigenvalues of L solve the relaxation of the normalised cut (Shi & Malik, 2000; von
Luxburg, *A tutorial on spectral clustering*, 2007).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy import linalg
from scipy.sparse.linalg import splu
from scipy.spatial import cKDTree

from mercer.exceptions import InvalidInputError
from mercer.gram.eigenpairs import dense_eigenpairs, largest_eigenpairs, prefers_dense
from mercer.gram.products import StoredMatrix
from mercer.kernels.features import Matrix, Vector

# up to this many features a tree finds neighbours faster than all distances
TREE_UP_TO = 12
# distances that are computed at a time
DISTANCES_AT_A_TIME = 1 << 22
# added to L before it is inverted, since its smallest eigenvalue is 0
SHIFT = 1e-5
# rotations that are tried, and rounds of each
RESTARTS, ROUNDS = 30, 20


class Embedding(NamedTuple):
    """Coordinates D^(-½) v of each node, eigenvalues of L in ascending order, and norms of L v − λ v."""

    nodes: Matrix
    eigenvalues: Vector
    residuals: Vector
    converged: bool


def embed(W: Any, count: int, tol: float, random: Any) -> Embedding:
    """The eigenvectors of the ``count`` smallest eigenvalues of L for a graph, as a sparse matrix or as `Products`."""
    is_sparse = sp.issparse(W)
    n = W.shape[0] if is_sparse else W.n
    loops = W.diagonal() if is_sparse else W.diagonal
    degrees = np.asarray(W.sum(axis=1)).ravel() if is_sparse else W.product(np.ones((n, 1)))[:, 0]
    degrees = degrees - loops
    if degrees.min() < -1e-10 * np.abs(degrees).max():
        raise InvalidInputError(
            f"The affinities of sample {int(degrees.argmin())} add up to {degrees.min():.4g}: a cut is defined for "
            "affinities that are not negative. Use a kernel without negative values, such as 'rbf'."
        )
    degrees[degrees <= 0] = 1.0  # nodes without edges
    scale = 1.0 / np.sqrt(degrees)
    count = min(count, n)

    def product(V: Matrix) -> Matrix:
        V = scale[:, None] * V
        return scale[:, None] * ((W @ V if is_sparse else W.product(V)) - loops[:, None] * V)

    if prefers_dense(n, count) and (is_sparse or isinstance(W, StoredMatrix)):
        A = (W.toarray() if is_sparse else W.K) * scale * scale[:, None]
        np.fill_diagonal(A, 0.0)
        found = dense_eigenpairs(A, count)
    elif is_sparse:
        found = _inverted(W, loops, scale, count, tol, random)
    else:
        found = largest_eigenpairs(product, n, count, random, tol, start=np.sqrt(degrees)[:, None])
    v = found.vectors
    image = product(v)
    values = np.einsum("ij,ij->j", v, image)
    residuals = np.linalg.norm(image - v * values, axis=0)
    nodes = scale[:, None] * v
    nodes *= np.sign(nodes[np.abs(nodes).argmax(axis=0), np.arange(count)])
    return Embedding(nodes, 1.0 - values, residuals, found.converged)


def _inverted(W: Any, loops: Vector, scale: Vector, count: int, tol: float, random: Any) -> Any:
    """Eigenpairs of (L + shift I)⁻¹, where small eigenvalues of L that are close together are far apart."""
    n = W.shape[0]
    D = sp.diags(scale)
    L = (1.0 + SHIFT) * sp.identity(n) - D @ (W - sp.diags(loops)) @ D
    solve = splu(sp.csc_matrix(L)).solve
    return largest_eigenpairs(lambda V: solve(np.asfortranarray(V)), n, count, random, tol)


def neighbour_graph(X: Any, n_neighbors: int) -> Any:
    """½(C + C'), where C joins each sample to itself and its n_neighbors − 1 nearest others."""
    n, count = X.shape[0], n_neighbors
    if not sp.issparse(X) and X.shape[1] <= TREE_UP_TO:
        near = cKDTree(X).query(X, count)[1].reshape(n, count)
    else:
        near = np.empty((n, count), np.intp)
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel() if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
        step = max(1, DISTANCES_AT_A_TIME // n)
        for start in range(0, n, step):
            inner = X[start : start + step] @ X.T
            away = squares - 2.0 * (inner.toarray() if sp.issparse(inner) else inner)
            away[np.arange(len(away)), start + np.arange(len(away))] = -np.inf
            near[start : start + step] = np.argpartition(away, count - 1, axis=1)[:, :count]
    C = sp.csr_array((np.ones(n * count), near.ravel(), np.arange(0, n * count + 1, count)), shape=(n, n))
    return sp.csr_array(0.5 * (C + C.T))


def given_neighbour_graph(distances: Any, n_neighbors: int) -> Any:
    """The same from a sparse matrix with the distances of each sample to some others."""
    distances = sp.csr_array(distances)
    rows, columns = [], []
    for i in range(distances.shape[0]):
        part = slice(distances.indptr[i], distances.indptr[i + 1])
        nearest = distances.indices[part][np.argsort(distances.data[part], kind="stable")]
        if len(nearest) < n_neighbors:
            raise InvalidInputError(
                f"{n_neighbors} neighbors are required for each samples, but row {i} of the graph has {len(nearest)}: "
                "store more neighbours, or lower n_neighbors."
            )
        rows.append(np.full(n_neighbors, i))
        columns.append(nearest[:n_neighbors])
    from_, to = np.concatenate(rows), np.concatenate(columns)
    C = sp.coo_array((np.ones(len(to)), (from_, to)), shape=distances.shape).tocsr()
    return sp.csr_array(0.5 * (C + C.T))


def pivoted_labels(nodes: Matrix) -> Vector:
    """The largest entry of each row in the basis of k nodes that a pivoted QR factorisation selects.

    Damle, Minden & Ying, *Simple, direct and efficient multi-way spectral clustering* (2019).
    """
    k = nodes.shape[1]
    _, _, pivots = linalg.qr(nodes.T, pivoting=True, mode="economic")
    U, _, Vt = linalg.svd(nodes[pivots[:k]].T)
    return np.abs(nodes @ (U @ Vt)).argmax(axis=1)


def rotated_labels(nodes: Matrix, random: Any) -> Vector:
    """The largest entry of each row after the rotation that brings rows closest to unit vectors.

    Yu & Shi, *Multiclass spectral clustering* (2003). Raises LinAlgError if no rotation is found.
    """
    n, k = nodes.shape
    rows = nodes / np.linalg.norm(nodes, axis=0) * np.sqrt(n)
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(float).tiny)
    best, best_labels = -np.inf, None
    for _ in range(RESTARTS):
        rotation = np.zeros((k, k))
        rotation[:, 0] = rows[random.randint(n)]
        alike = np.zeros(n)
        for j in range(1, k):  # rows that are as orthogonal as possible
            alike += np.abs(rows @ rotation[:, j - 1])
            rotation[:, j] = rows[alike.argmin()]
        last = 0.0
        for _ in range(ROUNDS):
            labels = (rows @ rotation).argmax(axis=1)
            sums = np.zeros((k, k))
            np.add.at(sums, labels, rows)
            U, s, Vt = linalg.svd(sums)
            value = float(s.sum())
            if abs(value - last) < np.finfo(float).eps * n:
                break
            last, rotation = value, Vt.T @ U.T
        if last > best and np.isfinite(last):
            best, best_labels = last, labels
        if len(np.unique(labels)) == k:
            break
    assert best_labels is not None
    return best_labels
