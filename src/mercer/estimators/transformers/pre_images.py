"""Pre-images: a sample x whose φ(x) is close to a given point of feature space, P = Σ cᵢ φ(xᵢ).

Three ways: ridge regression of samples on their components (Bakır, Weston & Schölkopf, 2003), distances to neighbours
(Kwok & Tsang, *The pre-image problem in kernel methods*, 2004), and the fixed point of Mika et al. (1999). The last two
are for the Gaussian kernel, whose values are functions of distances.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from mercer.exceptions import InvalidInputError
from mercer.gram.operator import product
from mercer.kernels import Gaussian
from mercer.kernels.base import gamma_number
from mercer.kernels.features import Features, Matrix, Vector

PRE_IMAGES = ("ridge", "fixed_point", "distances")
# neighbours whose distances place a pre-image
NEIGHBOURS = 10
# steps of the fixed-point iteration, and the relative change at which it ends
MOST_STEPS, SMALL_STEP = 100, 1e-6
# samples whose pre-images are computed together
BATCH = 512
# smallest kernel value whose logarithm is taken
SMALLEST = 1e-12


def ridge_coefficients(K: Matrix, alpha: float, targets: Matrix) -> Matrix:
    """(K + α I)⁻¹ targets. Edits K."""
    K.flat[:: len(K) + 1] += alpha
    try:
        return linalg.cho_solve(linalg.cho_factor(K, lower=True, overwrite_a=True, check_finite=False), targets)
    except linalg.LinAlgError:
        raise InvalidInputError(
            f"alpha={alpha:g} is too small: the kernel matrix of the components plus alpha is not positive definite. "
            "Raise alpha."
        ) from None


class PreImages(NamedTuple):
    """Pre-images under a Gaussian kernel of points given by coordinates z: c = coef z + mean_coef."""

    kernel: Gaussian
    samples: Matrix
    features: Features
    coef: Matrix
    mean_coef: Vector

    def find(self, Z: Matrix, improve: bool, n_threads: int) -> Matrix:
        """The pre-image of each row of coordinates."""
        out = np.empty((len(Z), self.samples.shape[1]))
        for start in range(0, len(Z), BATCH):
            part = slice(start, start + BATCH)
            C = np.asarray(Z[part], np.float64) @ self.coef.T + self.mean_coef
            out[part] = self._place(C, n_threads)
            if improve:
                out[part] = self._iterate(C, out[part])
        return out

    def _place(self, C: Matrix, n_threads: int) -> Matrix:
        """Place each pre-image by its distances in feature space from the nearest training samples."""
        inner = product(self.kernel, self.features, self.features, np.ascontiguousarray(C.T), n_threads).T
        square = np.einsum("ij,ij->i", C, inner)
        gamma = gamma_number(self.kernel, self.kernel.gamma)
        count = min(NEIGHBOURS, len(self.samples))
        out = np.empty((len(C), self.samples.shape[1]))
        for row, (values, length) in enumerate(zip(inner, square, strict=True)):
            near = np.argpartition(-values, count - 1)[:count]
            # |P - φ(x)|² = |P|² + 1 - 2<P, φ(x)> = 2 - 2 exp(-γ d²) for the sought distance d
            half = 0.5 * (length + 1.0 - 2.0 * values[near])
            squares = -np.log(np.clip(1.0 - half, SMALLEST, 1.0)) / gamma
            out[row] = by_distances(self.samples[near], squares)
        return out

    def _iterate(self, C: Matrix, X: Matrix) -> Matrix:
        """x ← Σ cᵢ k(x, xᵢ) xᵢ / Σ cᵢ k(x, xᵢ), until it moves no more or the sum is not positive."""
        X, todo = X.copy(), np.arange(len(X))
        for _ in range(MOST_STEPS):
            values = C[todo] * self.kernel.block(self.kernel.prepare(X[todo], np.float64), self.features)
            total = values.sum(axis=1)
            usable = total > SMALLEST
            todo, values, total = todo[usable], values[usable], total[usable]
            moved = values @ self.samples / total[:, None]
            step = np.linalg.norm(moved - X[todo], axis=1)
            X[todo] = moved
            todo = todo[step > SMALL_STEP * (1.0 + np.linalg.norm(moved, axis=1))]
            if len(todo) == 0:
                break
        return X


def by_distances(neighbours: Matrix, squares: Vector) -> Vector:
    """The point in the span of the neighbours with these squared distances from them, in the least-squares sense.

    With Y = UΣV' the centred neighbours: x = ȳ + V z, z = ½ Σ⁻¹ U' (|yᵢ|² − squaresᵢ) (Gower's formula).
    """
    mean = neighbours.mean(axis=0)
    Y = neighbours - mean
    U, s, Vt = np.linalg.svd(Y, full_matrices=False)
    kept = s > 1e-6 * max(s[0], SMALLEST)
    if not kept.any():
        return mean
    target = np.einsum("ij,ij->i", Y, Y) - squares
    found: Vector = mean + 0.5 * (U[:, kept].T @ (target - target.mean()) / s[kept]) @ Vt[kept]
    return found
