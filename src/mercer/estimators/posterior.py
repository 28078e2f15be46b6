"""What a Gaussian process says of new samples: before it has seen targets, and after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack

from mercer.estimators.progress import warn_user
from mercer.gram.memory import MEGABYTE
from mercer.gram.operator import GramOperator, product
from mercer.kernels import Kernel
from mercer.kernels.features import Features, Matrix, Vector

# bytes of kernel values between new and training samples held at a time
ROWS_BYTES = 64 * MEGABYTE


def prior(kernel: Kernel, X: Any, n_targets: int, return_std: bool, return_cov: bool) -> Any:
    """Mean 0 and covariance k, for each target; in the forms that `Posterior.at` returns."""
    features = kernel.prepare(X)
    mean = np.zeros((len(features), n_targets) if n_targets > 1 else len(features))
    if not (return_std or return_cov):
        return mean
    spread = kernel.block(features, features) if return_cov else np.sqrt(kernel.diagonal(features))
    return mean, np.repeat(spread[..., None], n_targets, axis=-1) if n_targets > 1 else spread


@dataclass(frozen=True)
class Posterior:
    """The process given targets: K + Λ = LL' of the training samples and α = (K + Λ)⁻¹ y.

    Targets were shifted by ``shift`` and divided by ``scale``, numbers or one for each.
    """

    kernel: Kernel
    samples: Any
    L: Matrix
    alpha: Matrix
    shift: Vector
    scale: Vector
    n_threads: int

    def at(self, X: Any, return_std: bool, return_cov: bool) -> Any:
        """Means at X, and standard deviations or covariances if they are asked for."""
        a, b = self.kernel.prepare(X), self.kernel.prepare(self.samples)
        # one target is a vector, however it was given: the sums are the same to the last digit
        alpha = self.alpha[:, 0] if self.alpha.ndim > 1 and self.alpha.shape[1] == 1 else self.alpha
        mean = product(self.kernel, a, b, alpha, self.n_threads) * self.scale + self.shift
        if return_cov:
            return mean, self._covariance(a, b)
        return (mean, self._deviation(a, b)) if return_std else mean

    def _covariance(self, a: Features, b: Features) -> Matrix:
        """k(x*, z*) - k*' (K + Λ)⁻¹ k*."""
        V = self._solved(GramOperator(self.kernel, b, self.n_threads), a)
        return self._scaled(GramOperator(self.kernel, a, self.n_threads).dense() - V.T @ V)

    def _deviation(self, a: Features, b: Features) -> Matrix:
        """The square root of the diagonal of the covariance, of some samples at a time."""
        gram, variance = GramOperator(self.kernel, b, self.n_threads), self.kernel.diagonal(a)
        step = max(1, ROWS_BYTES // (8 * len(b)))
        for start in range(0, len(a), step):
            part = np.arange(start, min(start + step, len(a)))
            V = self._solved(gram, a if len(part) == len(a) else a.take(part))
            variance[part] -= np.einsum("ij,ij->j", V, V)
        if np.any(variance < 0):
            warn_user("Predicted variances smaller than 0. Setting those variances to 0.", UserWarning)
            variance[variance < 0] = 0.0
        return np.sqrt(self._scaled(variance))

    def _solved(self, gram: GramOperator, a: Features) -> Matrix:
        """L⁻¹ k* for each new sample, a column each."""
        V, _ = lapack.dtrtrs(self.L, gram.rows(a).T, lower=1, overwrite_b=1)
        return V

    def _scaled(self, spread: Matrix) -> Matrix:
        """Variances or covariances of the targets as they were given, for each target if there are several."""
        squares = np.square(self.scale)
        return spread * float(squares.item()) if np.size(squares) == 1 else np.multiply.outer(spread, squares)
