"""Regression of variables on Z for the conditional independence test: kernels and ridge by cross-validation.

A regression is a linear map to residuals, R = I − 11'/n − U diag(s) U' with s = m / (m + λ), where m and U are the
eigenvalues and eigenvectors of a centred Gram matrix of Z. λ and the Gram matrix minimise generalised cross-validation,
|RF|² / (tr R)² (Golub, Heath & Wahba, Technometrics 21, 1979). The candidates for vectors are Gaussian kernels of
several widths, sums of one Gaussian kernel per feature, and Gaussian kernels of the metric A = mean ∇f ∇f' of the best
fit so far, which finds the directions on which f depends (Radhakrishnan et al., Science 383, 2024).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy import linalg

from mercer.exceptions import InvalidInputError
from mercer.gram.low_rank import pivoted_cholesky
from mercer.gram.operator import GramOperator
from mercer.kernels import Gaussian, Kernel
from mercer.kernels.features import Matrix, Vector
from mercer.tests.sample_grams import centred_matrix, median_gamma

# squared widths of Gaussian kernels, in units of the squared median distance
WIDTHS = (1.0, 4.0, 16.0)
# the same for sums over features, and for learnt metrics
SUM_WIDTHS, METRIC_WIDTHS = (0.3, 1.0), (0.3, 1.0, 4.0)
# candidates for λ, in units of the mean diagonal of the Gram matrix
RIDGES = 10.0 ** np.arange(-4.0, 2.01, 0.5)
# λ is this share of the best one: bias that X and Y share raises the level
UNDERSMOOTHING = 0.3
# most features for which kernels beyond the Gaussian of all of them are tried
FEATURES = 20
# most steps of learning a metric, and the share of the identity in it
STEPS, IDENTITY = 3, 0.02
# factors of Gram matrices have at most this many columns, fewer if they leave at most this share of the trace
RANK, RESIDUAL = 600, 1e-6
# eigenvalues below this share of the largest are 0
SMALLEST = 1e-10


class Basis(NamedTuple):
    """Eigenvalues and eigenvectors of a centred Gram matrix, its mean diagonal, its kernel and the kernel's points."""

    values: Vector
    vectors: Matrix
    scale: float
    kernel: Kernel | None = None
    points: Matrix | None = None
    transform: Matrix | None = None


class Regression(NamedTuple):
    """A basis, the shares s = m / (m + λ) that the fit takes of its eigenvectors, λ, and the score to be minimised."""

    basis: Basis
    shares: Vector
    ridge: float
    score: float

    def residuals(self, F: Matrix) -> Matrix:
        """RF of centred targets."""
        U = self.basis.vectors
        return np.asarray(F - U @ (self.shares[:, None] * (U.T @ F)))

    def residual_gram(self, K: Matrix) -> Matrix:
        """RKR of a centred Gram matrix."""
        U = self.basis.vectors * self.shares
        P = U @ (self.basis.vectors.T @ K)
        return np.asarray(K - P - P.T + (P @ self.basis.vectors) @ U.T)

    def covariance(self) -> Matrix:
        """R², the covariance of the residuals of noise with variance 1."""
        U = self.basis.vectors
        return np.asarray(np.eye(len(U)) - 1.0 / len(U) - (U * (self.shares * (2.0 - self.shares))) @ U.T)


def basis_of_matrix(M: Matrix) -> Basis:
    """The basis of any Gram matrix."""
    values, vectors = linalg.eigh(centred_matrix(M))
    largest = float(values[-1])
    if values[0] < -1e-6 * max(largest, 0.0) or largest < 0:
        raise InvalidInputError("The kernel of Z is not positive semidefinite: choose another kernel_z.")
    kept = values > SMALLEST * largest
    return Basis(values[kept], vectors[:, kept], float(np.trace(M)) / len(M))


def bases_of_vectors(Z: Any, n_threads: int) -> list[Basis]:
    """The bases that are tried for any target: Gaussian kernels of all features, and sums over features."""
    gamma = median_gamma(Z)
    bases = [_gaussian_basis(gamma / width, Z, n_threads) for width in WIDTHS]
    if not _has_few_features(Z) or not np.ptp(Z, axis=0).any():
        return bases
    spread = Z.std(axis=0)
    columns = [Z[:, j : j + 1] / spread[j] for j in np.flatnonzero(spread > 0)]
    for width in SUM_WIDTHS:
        parts = [_factor(Gaussian(median_gamma(z) / width), z, n_threads) for z in columns]
        bases.append(_basis_of_factor(np.hstack([*parts, *columns]) / np.sqrt(max(1, len(columns)))))
    return bases


def _has_few_features(Z: Any) -> bool:
    return not sp.issparse(Z) and 1 < Z.shape[1] <= FEATURES


def _factor(kernel: Kernel, points: Any, n_threads: int) -> Matrix:
    gram = GramOperator(kernel, kernel.prepare(points), n_threads)
    return pivoted_cholesky(gram, RANK, RESIDUAL * gram.n).L


def _gaussian_basis(gamma: float, points: Any, n_threads: int, transform: Matrix | None = None) -> Basis:
    kernel = Gaussian(gamma)
    return _basis_of_factor(_factor(kernel, points, n_threads), kernel, points, transform)


def _basis_of_factor(
    factor: Matrix, kernel: Kernel | None = None, points: Any = None, transform: Matrix | None = None
) -> Basis:
    scale = float(np.square(factor).sum()) / len(factor)
    factor = factor - factor.mean(axis=0)
    values, vectors = linalg.eigh(factor.T @ factor)
    kept = values > SMALLEST * max(float(values[-1]), 1e-300)
    vectors = (factor @ vectors[:, kept]) / np.sqrt(values[kept])
    return Basis(values[kept], vectors, scale, kernel, points, transform)


def best_regression(bases: list[Basis], energies: list[Vector], total: float, n: int) -> Regression:
    """The basis and λ of the smallest score. ``energies``: |U'F|² per eigenvector; ``total``: |F|²."""
    found = [_best_ridge(basis, energy, total, n) for basis, energy in zip(bases, energies, strict=True)]
    return min(found, key=lambda regression: regression.score)


def _best_ridge(basis: Basis, energy: Vector, total: float, n: int) -> Regression:
    ridges = RIDGES * basis.scale
    shares = basis.values / (basis.values + ridges[:, None])
    errors = total - energy.sum() + np.square(1.0 - shares) @ energy
    scores = errors / np.maximum(n - 1.0 - shares.sum(axis=1), 1e-9) ** 2
    best = int(np.argmin(scores))
    return with_ridge(basis, UNDERSMOOTHING * ridges[best], float(scores[best]))


def with_ridge(basis: Basis, ridge: float, score: float = np.nan) -> Regression:
    """The regression with this λ."""
    return Regression(basis, basis.values / (basis.values + ridge), ridge, score)


def regression_of_gram(bases: list[Basis], K: Matrix) -> Regression:
    """The best regression of features with this centred Gram matrix."""
    energies = [np.einsum("ik,ik->k", b.vectors, K @ b.vectors) for b in bases]
    return best_regression(bases, energies, float(np.trace(K)), len(K))


def regression_of_columns(bases: list[Basis], F: Matrix, Z: Any, n_threads: int) -> Regression:
    """The best regression of centred columns; with few features also in learnt metrics."""
    total, n = float(np.square(F).sum()), len(F)

    def best_of(among: list[Basis]) -> Regression:
        return best_regression(among, [np.square(b.vectors.T @ F).sum(axis=1) for b in among], total, n)

    best, gaussian = best_of(bases), [basis for basis in bases if basis.kernel is not None]
    if not gaussian or not _has_few_features(Z):
        return best
    learnt = best_of(gaussian)
    for _ in range(STEPS):
        tried = list(_metric_bases(learnt, F, Z, n_threads))
        found = best_of(tried) if tried else learnt
        if not found.score < learnt.score:
            break
        learnt = found
    return learnt if learnt.score < best.score else best


def _metric_bases(regression: Regression, F: Matrix, Z: Matrix, n_threads: int) -> Iterator[Basis]:
    """Gaussian kernels of A^½ z, A = mean ∇f ∇f' over samples and columns of F, plus a share of the identity."""
    basis = regression.basis
    assert basis.kernel is not None
    slopes = []
    # λα = RF are the coefficients of f, up to a factor
    for alpha in regression.residuals(F).T:
        weights = np.broadcast_to(alpha, (len(alpha), len(alpha)))
        gradient = basis.kernel.sample_gradients(basis.points, basis.points, weights)
        slopes.append(gradient if basis.transform is None else gradient @ basis.transform.T)
    A = np.sum([G.T @ G for G in slopes], axis=0)
    size = float(np.trace(A))
    if not size > 0:
        return
    values, vectors = linalg.eigh(A / size + IDENTITY * np.eye(len(A)))
    transform = vectors * np.sqrt(np.maximum(values, 0.0))
    points = Z @ transform
    gamma = median_gamma(points)
    for width in METRIC_WIDTHS:
        yield _gaussian_basis(gamma / width, points, n_threads, transform)
