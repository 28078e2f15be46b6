"""The graph of nearest neighbours in the feature space of a kernel, and the kernel that it deforms."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy import linalg

from mercer.kernels.features import Matrix, Vector

# rows of the matrix whose neighbours are searched at a time
ROWS = 512


def neighbour_graph(K: Matrix, n_neighbors: int) -> sp.csr_array:
    """Edges of weight 1 between samples of which one is among the nearest neighbours of the other.

    Distances are those of the feature space, |φ(x) − φ(z)|² = k(x, x) − 2k(x, z) + k(z, z); for a Gaussian kernel its
    neighbours are the Euclidean ones.
    """
    n = len(K)
    count = min(n_neighbors, n - 1)
    diagonal = K.diagonal()
    nearest = np.empty((n, count), dtype=np.intp)
    for start in range(0, n, ROWS):
        distance = diagonal - 2.0 * K[start : start + ROWS]
        own = np.arange(len(distance))
        distance[own, start + own] = np.inf
        nearest[start : start + ROWS] = np.argpartition(distance, count - 1, axis=1)[:, :count] if count else 0
    rows = np.repeat(np.arange(n), count)
    graph = sp.csr_array((np.ones(n * count), (rows, nearest.ravel())), shape=(n, n))
    return graph.maximum(graph.T).tocsr()


def normalised_laplacian(graph: sp.csr_array) -> sp.csr_array:
    """I − D^(-½) W D^(-½), whose eigenvalues are between 0 and 2; 0 for samples without neighbours."""
    degree = np.asarray(graph.sum(axis=1)).ravel()
    root = np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    scaled = sp.diags_array(root) @ graph @ sp.diags_array(root)
    return (sp.diags_array((degree > 0).astype(np.float64)) - scaled).tocsr()


def deformation(K: Matrix, laplacian: sp.csr_array, power: int, smoothness: float, labelled: Vector) -> Matrix:
    """P = (I + s LᵖK)⁻¹, the columns of the labelled samples: k̃(x_l, ·) = Σᵢ P[i, l] k(xᵢ, ·).

    k̃ is the reproducing kernel of the norm |f|² + s f'Lᵖf, f the values at all samples (Sindhwani, Niyogi & Belkin,
    *Beyond the point cloud*, ICML 2005).
    """
    A = K
    for _ in range(power):
        A = laplacian @ A
    A = smoothness * A
    A[np.diag_indices_from(A)] += 1.0
    right = np.zeros((len(K), len(labelled)))
    right[labelled, np.arange(len(labelled))] = 1.0
    found: Matrix = linalg.solve(A, right, overwrite_a=True, overwrite_b=True, check_finite=False)
    return found
