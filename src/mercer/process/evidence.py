"""The marginal likelihood (evidence) of a Gaussian process and its gradient.

For targets y = h(x) + noise, where h has the Gaussian prior with covariance k and the noise has the variances Λ
([M5] "Gaussian process regression"; Rasmussen & Williams, Algorithm 2.1, (2.30) and (5.9)):

    K + Λ = L L',   α = (K + Λ)⁻¹ y
    log p(y)            = -½ y'α - Σ log Lᵢᵢ - ½ n log 2π
    ∂ log p(y) / ∂θ     = ½ tr((α α' - (K + Λ)⁻¹) ∂K/∂θ)

Several targets are independent processes with one kernel: their log likelihoods add up. Only one n × n matrix is
stored: K, its factor and its inverse overwrite each other, and the derivatives are summed tile by tile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh, lapack

from mercer._compiled.blas import one_blas_thread
from mercer._compiled.thread_pool import run_tasks
from mercer.gram.operator import GramOperator, prepare_columns, product
from mercer.kernels.base import Kernel
from mercer.kernels.features import Features, Matrix, Vector, count_samples

# the tile in which derivatives are summed: small enough for the cache, large enough that calls cost nothing
ROWS, COLUMNS = 256, 1024
# the most samples whose eigenvalues a message may wait for: about a second
MOST_EIGENVALUES = 2000


@dataclass(frozen=True)
class Factor:
    """L, α and log p(y) of one kernel."""

    L: Matrix
    alpha: Matrix
    value: float


class Evidence:
    """log p(y) as a function of the kernel, for given samples, targets (n × m) and noise variances."""

    def __init__(self, samples: Any, y: Matrix, variances: Any, n_threads: int = 1) -> None:
        self.samples = samples
        self.y = y
        self.variances = variances
        self.n_threads = n_threads
        self.n = count_samples(samples)
        self._memory: Matrix | None = None

    def factor(self, kernel: Kernel) -> Factor | int:
        """L and α, in memory that the next call reuses; if L fails, the order of the minor that is not positive."""
        found = self._factor(kernel, kernel.prepare(self.samples))
        if isinstance(found, Factor):
            for i, column in enumerate(found.L.T):
                column[:i] = 0.0
        return found

    def value_and_gradient(self, kernel: Kernel) -> tuple[float, Vector]:
        """log p(y) and its derivatives with respect to ``kernel.theta``; -inf and zeros if K + Λ is singular."""
        features = kernel.prepare(self.samples)
        found = self._factor(kernel, features)
        if isinstance(found, int):
            return -np.inf, np.zeros(len(kernel.theta))
        _, failed = lapack.dpotri(found.L, lower=1, overwrite_c=1)
        if failed:
            return -np.inf, np.zeros(len(kernel.theta))
        return found.value, self._gradient(kernel, features, found.alpha)

    def residual(self, kernel: Kernel, alpha: Matrix) -> float:
        """max |y - (K + Λ) α|, with K recomputed."""
        features = kernel.prepare(self.samples)
        noise = np.asarray(self.variances).reshape(-1, 1)
        left = self.y - product(kernel, features, features, alpha, self.n_threads) - noise * alpha
        return float(np.abs(left).max())

    def _factor(self, kernel: Kernel, features: Features) -> Factor | int:
        if self._memory is None:
            self._memory = np.empty((self.n, self.n))
        # LAPACK is column-major: its lower triangle is the upper one of our rows, and the other is not read
        K = GramOperator(kernel, features, self.n_threads).dense(self._memory, mirrored=False)
        np.einsum("ii->i", K)[...] += self.variances
        L, order = lapack.dpotrf(K.T, lower=1, overwrite_a=1, clean=0)
        diagonal = np.diagonal(L)
        if order or not np.all(np.isfinite(diagonal)):
            return int(order) or 1 + int(np.argmin(np.isfinite(diagonal)))
        alpha, _ = lapack.dpotrs(L, self.y, lower=1)
        logarithms = float(np.log(diagonal).sum()) + 0.5 * self.n * np.log(2.0 * np.pi)
        value = -0.5 * float(np.vdot(self.y, alpha)) - self.y.shape[1] * logarithms
        return Factor(L, alpha, value)

    def _gradient(self, kernel: Kernel, features: Features, alpha: Matrix) -> Vector:
        """½ Σ (α α' - K⁻¹) ∂K, from the upper triangle."""
        inverse, columns_of_alpha = self._memory, np.ascontiguousarray(alpha.T)
        assert inverse is not None

        def weights(rows: slice, columns: slice) -> Matrix:
            found = alpha[rows] @ columns_of_alpha[:, columns]
            found -= alpha.shape[1] * inverse[rows, columns]
            return found

        return 0.5 * derivative_sums(kernel, features, weights, self.n_threads)


def derivative_sums(
    kernel: Kernel, features: Features, weights: Callable[[slice, slice], Matrix], n_threads: int = 1
) -> Vector:
    """Σ Wᵢⱼ ∂k(xᵢ, xⱼ)/∂θ over all pairs, for a symmetric W of which only the upper triangle is read.

    ``weights(rows, columns)`` returns a tile of W in memory of its own. Tiles are summed by several threads.
    """
    n = len(features)
    height, width = (n, n) if kernel.whole else (ROWS, COLUMNS)
    tiles = [(top, left) for top in range(0, n, height) for left in range(top, n, width)]
    parts = np.zeros((len(tiles), len(kernel.theta)))
    prepare_columns(features)

    def one(task: int) -> None:
        top, left = tiles[task]
        rows, columns = np.arange(top, min(top + height, n)), np.arange(left, min(left + width, n))
        tile = weights(slice(top, top + len(rows)), slice(left, left + len(columns)))
        if left < top + height:  # each pair counts once; entries below the diagonal were never written
            after = columns - rows[:, None]
            tile = np.where(after > 0, tile, np.where(after == 0, 0.5 * tile, 0.0))
        parts[task] = kernel.gradient_products(features.take(rows), features.take(columns), tile)

    with one_blas_thread():  # in each of our threads
        run_tasks(one, len(tiles), n_threads)
    return 2.0 * parts.sum(axis=0)


def _smallest_eigenvalue(kernel: Kernel, features: Features, order: int) -> float:
    """The smallest eigenvalue of K, or of its part that has no Cholesky factor; 0 if both are too large."""
    n = len(features)
    if n > MOST_EIGENVALUES:
        n = order
    chosen = features.take(np.arange(n if n <= MOST_EIGENVALUES else 1))
    K = kernel.block(chosen, chosen).astype(np.float64)
    return min(0.0, float(eigvalsh(0.5 * (K + K.T), subset_by_index=[0, 0], check_finite=False)[0]))


def not_definite(name: Any, kernel: Kernel, evidence: Evidence, order: int) -> str:
    """The message for K + alpha without Cholesky factor: scikit-learn's words, then the cause and the remedy."""
    features = kernel.prepare(evidence.samples)
    last = features.take(np.array([order - 1]))
    row = kernel.block(last, features.take(np.arange(order)))[0].astype(np.float64)
    diagonal = kernel.diagonal(features)
    message = (
        f"The kernel, {name}, is not returning a positive definite matrix. Try gradually increasing the 'alpha' "
        "parameter of your GaussianProcessRegressor estimator."
    )
    if not (np.all(np.isfinite(row)) and np.all(np.isfinite(diagonal))):
        return f"{message} It has values that are NaN or infinite: scale the samples, or bound the kernel's parameters."
    if row[-1] <= 0:
        return f"{message} Here k(x, x) is {row[-1]:g} for sample {order - 1}: a covariance has k(x, x) > 0."
    least = len(diagonal) * np.finfo(np.float64).eps * float(np.abs(diagonal).max())
    alpha = float(np.max(evidence.variances))
    smallest = _smallest_eigenvalue(kernel, features, order)
    if smallest < -10.0 * least:
        return (
            f"{message} Here the kernel is not positive semidefinite: its matrix has the eigenvalue {smallest:.3g}, "
            f"and alpha is {alpha:g}. Use alpha above {-1.01 * smallest:.3g}, or another kernel."
        )
    twin = int(np.argmin(np.abs(row[:-1] - row[-1]) + np.abs(diagonal[: order - 1] - row[-1]))) if order > 1 else 0
    if order > 1 and abs(row[twin] - row[-1]) + abs(diagonal[twin] - row[-1]) <= 1e-12 * abs(row[-1]):
        what = f"the kernel does not distinguish samples {twin} and {order - 1}"
    else:
        what = f"sample {order - 1} is a linear combination of earlier samples in feature space, up to rounding"
    return (
        f"{message} Here {what}, and alpha is {alpha:g}: use at least {least:.1g}, or "
        "add White(noise) to the kernel to learn the noise."
    )
