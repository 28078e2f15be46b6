"""Centred alignment: how well kernels fit the targets, without training a machine.

    A(K, T) = <Kᶜ, Tᶜ> / (|Kᶜ| |Tᶜ|)

where Kᶜ is K after moving the mean of the samples to the origin of feature space, T the matrix of an ideal kernel
computed from the targets, and <·,·> the sum of products of entries. Cortes, Mohri & Rostamizadeh, *Algorithms for
learning kernels based on centered alignment*, JMLR 13 (2012).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from mercer.kernels.features import Matrix, Vector
from mercer.mkl.grams import SeveralGrams

# relative eigenvalues of the kernels' inner products below this are rounding
RANK = 1e-12
# centred values below this, relative to k(x, x), are rounding: the kernel is constant on the samples
NO_SPREAD = 1e-12


class Alignments(NamedTuple):
    """The alignment of each kernel with the targets.

    Attributes
    ----------
    values : A(K_m, T), between -1 and 1; 0 for a kernel without spread.
    inner : <K_mᶜ, Tᶜ> / |Tᶜ|.
    products : <K_mᶜ, K_nᶜ>; None if not requested.
    """

    values: Vector
    inner: Vector
    products: Matrix | None


def alignments(grams: SeveralGrams, targets: Matrix, share: Vector, with_products: bool) -> Alignments:
    """Alignments with the kernel <targets_i, targets_j>. Targets are a column of labels or values, or class indicators.

    Samples are weighted by their share, as if they were repeated.
    """
    moments = grams.moments(share)
    centred = (targets - share @ targets) * np.sqrt(share)[:, None]
    norm = float(np.sqrt(((centred.T @ centred) ** 2).sum()))
    inner, squares = np.zeros(len(grams)), np.zeros(len(grams))
    products = np.zeros((len(grams), len(grams))) if with_products else None
    for rows, parts in grams.centred_rows(share, moments):
        ideal = centred[rows] @ centred[share > 0].T
        flat = parts.reshape(len(grams), -1)
        inner += flat @ ideal.ravel()
        squares += np.einsum("ij,ij->i", flat, flat)
        if products is not None:
            products += flat @ flat.T
    spread = np.sqrt(squares) > NO_SPREAD * np.abs(moments.trace)
    inner = np.where(spread, inner / (norm if norm > 0 else 1.0), 0.0)
    values = np.divide(inner, np.sqrt(squares), out=np.zeros(len(grams)), where=spread)
    return Alignments(values, inner, products)


def best_alignment(found: Alignments) -> Vector:
    """The weights η ≥ 0 whose sum of kernels has the largest alignment, up to a factor.

    They solve min η'Mη − 2η'a, η ≥ 0, with the products M and the inner products a (Proposition 9 of the paper): a
    nonnegative least-squares problem.
    """
    assert found.products is not None
    values, vectors = np.linalg.eigh(found.products)
    kept = values > RANK * values.max(initial=0.0)
    roots = np.sqrt(values[kept])
    if not kept.any():
        return np.zeros(len(found.inner))
    weights, _ = nnls(roots[:, None] * vectors[:, kept].T, vectors[:, kept].T @ found.inner / roots)
    return np.asarray(weights)
