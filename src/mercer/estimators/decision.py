"""Decision values from support vectors alone: tiled, threaded, each row independent of its batch."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from mercer.estimators.pairs import class_pairs
from mercer.gram.operator import product
from mercer.kernels import Gaussian, Kernel
from mercer.kernels.features import Features, Matrix, Vector, VectorFeatures, count_samples, take_samples
from mercer.kernels.radial import CANCELLATION, SPARSE_CANCELLATION, rounding_of_distances
from mercer.kernels.user_defined import PrecomputedFeatures

# samples prepared at a time
BATCH = 8192
# float32 is of use while a kernel value is wrong by less than this
LARGEST_ERROR = 1e-3
# and while squared distances of the size 1/gamma are far from the ends of its range
SMALLEST_GAMMA = 1e-28


class SupportVectors:
    """The support vectors of a model, in LIBSVM's order: class by class.

    ``vectors`` are the samples, which rows of a kernel matrix do not need; ``support`` their numbers in the training
    set of n_train samples, ``n_support`` how many each class has; ``norms`` is |w| of each problem.
    """

    def __init__(
        self, kernel: Kernel, vectors: Any, support: Vector, n_support: Vector, n_train: int, norms: Vector
    ) -> None:
        self.kernel = kernel
        self.vectors = vectors
        self.support = support
        self.ends = np.concatenate([[0], np.cumsum(n_support)])
        self.n_train = n_train
        self.norms = norms
        self._features: dict[tuple[np.dtype[Any], int], Features] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_features": {}}

    def number_anew(self) -> None:
        """Rows of a kernel matrix have a column for each support vector from now on, not for each training sample."""
        self.n_train = len(self.support)
        self.support = np.arange(self.n_train, dtype=np.int32)
        self._features = {}

    def features(self, dtype: Any, part: int = -1) -> Features:
        """All of them, or those of one class, prepared once."""
        key = np.dtype(dtype), part
        if key not in self._features:
            if part >= 0:
                self._features[key] = self.features(dtype).take(np.arange(self.ends[part], self.ends[part + 1]))
            elif self.kernel.domain == "matrix":
                columns, n = self.support.astype(np.intp), self.n_train
                self._features[key] = PrecomputedFeatures(None, dtype, columns, columns, (n, n))
            else:
                self._features[key] = self.kernel.prepare(self.vectors, dtype)
        return self._features[key]

    def decision(self, X: Any, coef: Matrix, intercept: Vector, n_threads: int, labels_only: bool = False) -> Matrix:
        """The value of every sample for each problem: one, or one for each pair of classes.

        With ``labels_only`` only the signs must be right: values are computed in float32, and again in float64 where
        the rounding of float32 might hide the sign.
        """
        n = count_samples(X)
        out = np.empty((n, len(intercept)))
        out[:] = intercept
        if coef.shape[1] == 0:
            return out
        doubtful = self._single_error(coef) if labels_only else None
        for start in range(0, n, BATCH):
            part = take_samples(X, np.arange(start, min(start + BATCH, n))) if n > BATCH else X
            values = out[start : start + BATCH]
            if doubtful is None:
                values += self._values(part, coef, np.float64, n_threads)
                continue
            with np.errstate(over="ignore", invalid="ignore"):
                values += self._values(part, coef, np.float32, n_threads)
            unsure = np.flatnonzero(~(np.abs(values) > doubtful).all(axis=1))  # where it is not a number, too
            if len(unsure):
                values[unsure] = intercept + self._values(take_samples(part, unsure), coef, np.float64, n_threads)
        return out

    def _values(self, X: Any, coef: Matrix, dtype: Any, n_threads: int) -> Matrix:
        """The values without the intercepts."""
        a = self.kernel.prepare(X, dtype)
        if coef.shape[0] == 1:
            return product(self.kernel, a, self.features(dtype), coef[0], n_threads)[:, None]
        parts = [
            product(self.kernel, a, self.features(dtype, c), coef[:, start:stop].T, n_threads)
            for c, (start, stop) in enumerate(pairwise(self.ends))
        ]
        return np.stack(pair_values(parts), axis=1)

    def _single_error(self, coef: Matrix) -> Vector | None:
        """By how much the value of each problem may be wrong in float32; None where float32 is of no use.

        Rounding a sample x by δ changes the value by at most |w| |φ(x) - φ(x + δ)| ≤ |w| √(2γ) |δ|. The exponent of a
        Gaussian kernel is rounded where support vectors are, where its terms are added (√d of them by chance), and
        where it is a difference of products; errors of different support vectors meet by chance, too. Farther out
        than the support vectors the kernel falls faster than these errors grow.
        """
        if not isinstance(self.kernel, Gaussian):
            return None
        with np.errstate(over="ignore"):
            b = self.features(np.float32)
        assert isinstance(b, VectorFeatures)
        gamma = self.kernel.gamma if isinstance(self.kernel.gamma, float) else 1.0
        if not SMALLEST_GAMMA < gamma < 1.0 / SMALLEST_GAMMA:
            return None
        eps, length = float(np.finfo(np.float32).eps), np.sqrt(gamma * b.largest_norm)
        error = eps * (16.0 + np.sqrt(b.d) + 2.0 * length)
        error += min(rounding_of_distances(b, gamma), SPARSE_CANCELLATION if b.sparse else CANCELLATION)
        if not error < LARGEST_ERROR:
            return None
        if len(coef) == 1:
            squares = (coef**2).sum(axis=1)
        else:
            parts = [(coef[:, start:stop] ** 2).sum(axis=1)[None, :] for start, stop in pairwise(self.ends)]
            squares = np.concatenate(pair_values(parts))
            error += eps * np.sqrt(coef.shape[1])  # several problems are also summed in float32
        return error * np.sqrt(squares) + 2.0 * eps * length * self.norms


class Expansion(SupportVectors):
    """Several functions of the form Σ βᵢ k(xᵢ, ·) over the same samples: a row of coefficients for each."""

    def __init__(self, kernel: Kernel, vectors: Any, support: Vector, n_train: int) -> None:
        super().__init__(kernel, vectors, support, np.array([len(support)]), n_train, np.empty(0))

    def _values(self, X: Any, coef: Matrix, dtype: Any, n_threads: int) -> Matrix:
        a, b = self.kernel.prepare(X, dtype), self.features(dtype)
        if coef.shape[0] == 1:
            return product(self.kernel, a, b, coef[0], n_threads)[:, None]
        return product(self.kernel, a, b, np.ascontiguousarray(coef.T), n_threads)


def pair_values(parts: list[Matrix]) -> list[Vector]:
    """What each pair of classes gets from the classes' parts, which have a row per sample and LIBSVM's columns.

    The pair (i, j) takes row j - 1 of the coefficients of class i and row i of those of class j.
    """
    return [parts[i][:, j - 1] + parts[j][:, i] for i, j in class_pairs(len(parts))]
