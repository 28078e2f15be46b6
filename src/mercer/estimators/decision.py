"""Decision values from support vectors alone: tiled, threaded, each row independent of its batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.gram.operator import product
from mercer.kernels import Kernel, Precomputed
from mercer.kernels.features import Features, Matrix, Vector, count_samples, take_samples
from mercer.kernels.functions import PrecomputedFeatures
from mercer.kernels.radial import RadialKernel

# samples prepared at a time
BATCH = 8192
# float32 kernel values of size at most 1, and their sums, are off by less than this share of the sum of |coef|
SINGLE_ERROR = 4e-6


class SupportVectors:
    """The support vectors of a model, in LIBSVM's order: class by class."""

    def __init__(self, kernel: Kernel, vectors: Any, support: Vector, n_support: Vector) -> None:
        self.kernel = kernel
        self.vectors = vectors
        self.support = support
        self.ends = np.cumsum(n_support)
        self._features: dict[np.dtype[Any], Features] = {}

    def features(self, dtype: Any, n_train: int) -> Features:
        """All of them, prepared."""
        dtype = np.dtype(dtype)
        if dtype not in self._features:
            if isinstance(self.kernel, Precomputed):
                columns = self.support.astype(np.intp)
                self._features[dtype] = PrecomputedFeatures(None, dtype, columns, columns, (n_train, n_train))
            else:
                self._features[dtype] = self.kernel.prepare(self.vectors, dtype)
        return self._features[dtype]

    def decision(
        self, X: Any, coef: Matrix, intercept: Vector, n_threads: int, labels_only: bool = False
    ) -> Matrix:
        """The value of every sample for each problem: one, or one for each pair of classes.

        With ``labels_only`` only the signs must be right: values are computed in float32 and again in float64 where
        the float32 error might hide the sign.
        """
        n = count_samples(X)
        out = np.empty((n, len(intercept)))
        bound = SINGLE_ERROR * float(np.abs(coef).sum(axis=1).max(initial=0.0)) * max(1, coef.shape[0])
        quick = labels_only and isinstance(self.kernel, RadialKernel) and coef.shape[1] > 0
        for start in range(0, n, BATCH):
            part = take_samples(X, np.arange(start, min(start + BATCH, n))) if n > BATCH else X
            values = out[start : start + BATCH]
            if quick:
                values[:] = self._values(part, coef, np.float32, n_threads) + intercept
                unsure = np.flatnonzero(np.abs(values).min(axis=1) <= bound)
                if len(unsure):
                    exact = self._values(take_samples(part, unsure), coef, np.float64, n_threads)
                    values[unsure] = exact + intercept
            else:
                values[:] = self._values(part, coef, np.float64, n_threads) + intercept
        return out

    def _values(self, X: Any, coef: Matrix, dtype: Any, n_threads: int) -> Matrix:
        n_train = X.shape[1] if isinstance(self.kernel, Precomputed) else 0
        a = self.kernel.prepare(X, dtype)
        b = self.features(dtype, n_train)
        if coef.shape[0] == 1:
            return product(self.kernel, a, b, coef[0], n_threads)[:, None]
        n_classes = coef.shape[0] + 1
        parts = []
        for c in range(n_classes):
            inside = np.arange(self.ends[c - 1] if c else 0, self.ends[c])
            parts.append(product(self.kernel, a, b.take(inside), coef[:, inside].T, n_threads))
        # the pair (i, j) takes row j - 1 of the coefficients of class i and row i of those of class j
        pairs = [(i, j) for i in range(n_classes) for j in range(i + 1, n_classes)]
        return np.stack([parts[i][:, j - 1] + parts[j][:, i] for i, j in pairs], axis=1)
