"""The Gram matrices of several kernels on the same samples: stored if memory allows, else recomputed."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from mercer.gram.operator import Evaluations, GramOperator, product, symmetric_product
from mercer.kernels.base import Kernel
from mercer.kernels.features import Features, Matrix, Vector

# bytes of a block of rows of all matrices
BLOCK_BYTES = 64 << 20


class Moments(NamedTuple):
    """For each kernel: the mean of k(x, x), the weighted sum of each row, and the mean of all values."""

    trace: Vector
    rows: Matrix
    mean: Vector

    @property
    def variance(self) -> Vector:
        """The mean squared distance of the samples from their mean in feature space."""
        return self.trace - self.mean


class SeveralGrams:
    """K_m[i, j] = k_m(x_i, x_j) / scale_m for several bound kernels.

    ``scale`` is 1 until it is set.
    """

    def __init__(
        self, kernels: Sequence[Kernel], samples: Any, n: int, budget: int, n_threads: int, evaluations: Evaluations
    ) -> None:
        self.kernels = tuple(kernels)
        self.n = n
        self.n_threads = n_threads
        self.evaluations = evaluations
        self.scale = np.ones(len(self.kernels))
        prepared: dict[Hashable, Features] = {}
        for kernel in self.kernels:
            if kernel.preparation in prepared:
                kernel.check_samples(samples)
            else:
                prepared[kernel.preparation] = kernel.prepare(samples, np.float64)
        self.features = [prepared[kernel.preparation] for kernel in self.kernels]
        # two more: the weighted sum, and the solver's copy of it
        self.kept = 8 * (len(self.kernels) + 2) * n * n <= budget
        self._matrices: list[Matrix | None] = [None] * len(self.kernels)

    def __len__(self) -> int:
        return len(self.kernels)

    def matrix(self, m: int) -> Matrix:
        """The whole matrix of one kernel, not divided by its scale."""
        K = self._matrices[m]
        if K is None:
            K = GramOperator(self.kernels[m], self.features[m], self.n_threads, self.evaluations).dense()
            if self.kept:
                self._matrices[m] = K
        return K

    def weighted_sum(self, weights: Vector) -> Matrix:
        """Σ weights[m] K_m / scale[m] over the kernels with a weight."""
        total = np.zeros((self.n, self.n))
        part = np.empty_like(total)
        for m in np.flatnonzero(weights).tolist():
            total += np.multiply(self.matrix(m), weights[m] / self.scale[m], out=part)
        return total

    def block(self, m: int, rows: Vector, columns: Vector) -> Matrix:
        """K_m[rows, columns] / scale[m]."""
        K = self._matrices[m]
        if K is not None:
            return K[np.ix_(rows, columns)] / self.scale[m]
        operator = GramOperator(self.kernels[m], self.features[m], self.n_threads, self.evaluations)
        return operator.block(rows, columns) / self.scale[m]

    def product(self, m: int, rows: Vector, columns: Vector, beta: Vector) -> Vector:
        """K_m[rows, columns] β / scale[m], summed in float64."""
        K, kernel, features = self._matrices[m], self.kernels[m], self.features[m]
        if K is not None:
            return K[np.ix_(rows, columns)] @ beta / self.scale[m]
        a, b = features.take(rows), features.take(columns)
        return product(kernel, a, b, beta, self.n_threads, self.evaluations) / self.scale[m]

    def energy(self, m: int, support: Vector, beta: Vector) -> float:
        """β'K_mβ / scale[m] for the coefficients of some samples: |w_m|² for a weight of 1."""
        K = self._matrices[m]
        if K is not None:
            F = K[np.ix_(support, support)] @ beta
        else:
            part = self.features[m].take(support)
            F = symmetric_product(self.kernels[m], part, beta, self.n_threads, self.evaluations)
        return float(beta @ F) / self.scale[m]

    # ---- statistics ------------------------------------------------------------------------------------------

    def moments(self, share: Vector) -> Moments:
        """Means over the samples, weighted by shares that sum to 1.

        Row sums are 0 for samples with share 0.
        """
        rows, used = np.zeros((len(self), self.n)), np.flatnonzero(share)
        for m in range(len(self)):
            if self.kept:
                rows[m, used] = (self.matrix(m) @ share)[used] / self.scale[m]
            else:
                rows[m, used] = self.product(m, used, used, share[used])
        diagonals = [k.diagonal(a) for k, a in zip(self.kernels, self.features, strict=True)]
        return Moments(np.array([d @ share for d in diagonals]) / self.scale, rows, rows @ share)

    def centred_rows(self, share: Vector, moments: Moments) -> Iterator[tuple[Vector, Matrix]]:
        """Yield blocks of samples with the rows √share_i (K_m)ᶜ_ij √share_j of all kernels.

        Kᶜ is the centred matrix: that of the kernel after moving the mean of the samples to the origin. Rows and
        columns are those of samples with a share.
        """
        used, root = np.flatnonzero(share), np.sqrt(share)
        step = max(1, BLOCK_BYTES // (8 * len(self) * max(1, len(used))))
        for start in range(0, len(used), step):
            rows = used[start : start + step]
            parts = np.empty((len(self), len(rows), len(used)))
            for m in range(len(self)):
                own = moments.rows[m]
                np.subtract(self.block(m, rows, used), own[used], out=parts[m])
                parts[m] += moments.mean[m] - own[rows, None]
            parts *= root[used]
            parts *= root[rows, None]
            yield rows, parts
