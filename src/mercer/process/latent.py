"""Gaussian approximations of the posterior of a latent function, whose sign is the class.

Two classes y ∈ {0, 1} have the probability p(y = 1 | f) = σ(f), where the latent function f has the Gaussian prior with
covariance K. Each approximation of the posterior of f is determined by a vector c, the non-negative weights S² of its
samples and the factor of B = I + SKS (Rasmussen & Williams, 3.4.2 and 3.6.3):

    mean  k*'c        variance  k(x*, x*) − |L⁻¹ S k*|²        B = LL'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack
from scipy.special import erf, ndtr

from mercer.gram.operator import GramOperator, product
from mercer.kernels.base import Kernel
from mercer.kernels.features import Features, Matrix, Vector
from mercer.process.evidence import derivative_sums

# rows of a triangle that are scaled together
ROWS = 256
# bytes of kernel values between new and training samples held at a time
ROWS_BYTES = 64 << 20
# a variance is at least this share of k(x, x): rounding may make it negative
LEAST_VARIANCE = 1e-14

# The logistic function as a sum of five error functions, Σ cₖ (1 + erf(λₖ x)) / 2, exact at 0, 0.6, 2, 3.5, 4.5 and ∞
# (Williams & Barber, 1998, appendix A). scikit-learn uses the same numbers.
LAMBDAS = np.array([0.41, 0.4, 0.37, 0.44, 0.39])[:, None]
COEFFICIENTS = np.array([-1854.8214151, 3516.89893646, 221.29346712, 128.12323805, -2010.49422654])[:, None]


@dataclass(frozen=True)
class LatentPosterior:
    """A Gaussian approximation: c, S, L, and the approximate log p(y); ``probit`` if σ is Φ instead of the logistic.

    ``steps`` counts Newton steps or sweeps. ``primal`` and ``dual`` bound the value of the convex problem that
    c solves, ``violation`` is that of its optimality conditions; inf if there is no such problem.
    """

    coef: Vector
    root: Vector
    L: Matrix
    value: float
    probit: bool
    steps: int
    converged: bool
    primal: float = np.inf
    dual: float = -np.inf
    violation: float = np.inf

    def probability(self, mean: Vector, variance: Vector) -> Vector:
        """The probability of the second class, E σ(f) for f with this mean and variance."""
        return probit_average(mean, variance) if self.probit else logistic_average(mean, variance)


def latent_means(kernel: Kernel, a: Features, b: Features, coefs: Matrix, n_threads: int) -> Matrix:
    """Means at the samples a, a column for each column of ``coefs``; b are the training samples."""
    return product(kernel, a, b, coefs, n_threads)


def latent_moments(
    kernel: Kernel, a: Features, b: Features, parts: list[tuple[LatentPosterior, Vector | None]], n_threads: int
) -> tuple[Matrix, Matrix]:
    """Means and variances at the samples a, a column for each posterior. Values of k are computed once for all.

    ``parts`` are posteriors with one kernel, each with the indices of its training samples in b; None for all.
    """
    gram, prior = GramOperator(kernel, b, n_threads), kernel.diagonal(a)
    means, variances = np.empty((len(a), len(parts))), np.repeat(prior[:, None], len(parts), axis=1)
    step = max(1, ROWS_BYTES // (8 * len(b)))
    for start in range(0, len(a), step):
        batch = np.arange(start, min(start + step, len(a)))
        rows = gram.rows(a if len(batch) == len(a) else a.take(batch))
        for k, (posterior, index) in enumerate(parts):
            own = rows if index is None else rows[:, index]
            means[batch, k] = own @ posterior.coef
            V, _ = lapack.dtrtrs(posterior.L, (own * posterior.root).T, lower=1, overwrite_b=1)
            variances[batch, k] -= np.einsum("ij,ij->j", V, V)
    return means, np.maximum(variances, LEAST_VARIANCE * np.abs(prior)[:, None])


def logistic_average(mean: Vector, variance: Vector) -> Vector:
    """E 1/(1 + exp(-f)) for Gaussian f, with the logistic function replaced by five error functions.

    >>> logistic_average(np.array([0.0, 2.0]), np.array([1.0, 4.0])).round(4)
    array([0.5   , 0.7752])
    """
    scaled = LAMBDAS * mean / np.sqrt(1.0 + 2.0 * LAMBDAS**2 * variance)
    return np.asarray(0.5 * (COEFFICIENTS * (1.0 + erf(scaled))).sum(axis=0))


def probit_average(mean: Vector, variance: Vector) -> Vector:
    """E Φ(f) = Φ(mean / √(1 + variance)) for Gaussian f.

    >>> probit_average(np.array([0.0, 2.0]), np.array([1.0, 3.0])).round(4)
    array([0.5   , 0.8413])
    """
    return np.asarray(ndtr(mean / np.sqrt(1.0 + variance)))


class Covariance:
    """The covariance matrix of the last kernel: its upper triangle, in memory that is reused for the next kernel.

    ``index`` are the samples of this part, None for all. A part takes its matrix from ``whole`` if that has it.
    """

    def __init__(self, samples: Any, n: int, n_threads: int, index: Vector | None = None, whole: Any = None) -> None:
        self.samples, self.n, self.n_threads, self.index = samples, n, n_threads, index
        self._whole: Covariance | None = whole
        self._kernel: Kernel | None = None
        self._memory: Matrix | None = None
        self._factor: Matrix | None = None

    def part(self, index: Vector) -> Covariance:
        """The covariance of some samples, in increasing order."""
        return Covariance(self.samples, len(index), self.n_threads, index, self)

    def features(self, kernel: Kernel) -> Features:
        """The samples, prepared for this kernel."""
        features = kernel.prepare(self.samples)
        return features if self.index is None else features.take(self.index)

    def matrix(self, kernel: Kernel) -> Matrix:
        """K: entries below the diagonal are not written."""
        if self._memory is not None and self._kernel == kernel:
            return self._memory
        if self._memory is None:
            self._memory = np.empty((self.n, self.n))
        whole = self._whole
        index = self.index
        if index is not None and whole is not None and whole._memory is not None and whole._kernel == kernel:
            for i, row in enumerate(index):
                self._memory[i, i:] = whole._memory[row, index[i:]]
        else:
            GramOperator(kernel, self.features(kernel), self.n_threads).dense(self._memory, mirrored=False)
        self._kernel = kernel
        return self._memory

    def factor(self, K: Matrix, root: Vector) -> Matrix | None:
        """The factor L of B = I + SKS, in memory that the next call reuses; None if B is not positive definite.

        Only its lower triangle is written.
        """
        if self._factor is None:
            self._factor = np.empty((self.n, self.n))
        B = self._factor
        with np.errstate(all="ignore"):  # the unwritten triangle may hold any values
            for i in range(0, self.n, ROWS):
                tile = B[i : i + ROWS, i:]
                np.multiply(K[i : i + ROWS, i:], root[i:], out=tile)
                tile *= root[i : i + ROWS, None]
        np.einsum("ii->i", B)[...] += 1.0
        L, order = lapack.dpotrf(B.T, lower=1, overwrite_a=1, clean=0)
        return None if order or not np.all(np.isfinite(np.diagonal(L))) else L

    @property
    def factor_memory(self) -> Matrix:
        """The memory of the last factor, row-major: LAPACK's lower triangle is the upper one here."""
        assert self._factor is not None
        return self._factor

    def release_factor(self, L: Matrix) -> Matrix:
        """The factor with zeros above its diagonal, in memory that no later call reuses. Edits L."""
        for i, column in enumerate(L.T):
            column[:i] = 0.0
        self._factor = None
        return L


def times(K: Matrix, x: Vector) -> Vector:
    """K x for a symmetric K of which only the upper triangle is read."""
    return np.asarray(blas.dsymv(1.0, K.T, x, lower=1))


def log_determinant(L: Matrix) -> float:
    """½ log |LL'|."""
    return float(np.log(np.diagonal(L)).sum())


def evidence_gradient(
    covariance: Covariance, kernel: Kernel, inverse: Matrix, root: Vector, coef: Vector, implicit: Vector
) -> Vector:
    """½ Σ (c c' − S B⁻¹ S + v c' + c v')ᵢⱼ ∂Kᵢⱼ: the derivatives of log p(y) with respect to ``kernel.theta``.

    ``inverse`` has B⁻¹ in its upper triangle. v (``implicit``) accounts for the change of the posterior.
    """
    left, right = np.column_stack([coef + implicit, coef]), np.vstack([coef, implicit])

    def weights(rows: slice, columns: slice) -> Matrix:
        tile = inverse[rows, columns] * root[columns]
        tile *= -root[rows, None]
        tile += left[rows] @ right[:, columns]
        return tile

    return 0.5 * derivative_sums(kernel, covariance.features(kernel), weights, covariance.n_threads)
