"""Kernels between discrete distributions, such as histograms or word counts. Each sample is divided by its sum."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mercer.kernels.base import check_positive
from mercer.kernels.feature_sums import DOT, IDENTITY, SumKernel
from mercer.kernels.features import Features, Matrix, Vector, VectorFeatures, as_matrix

# up to this time exp(-arccos²(s)/t) has Taylor coefficients that are at least -1e-16
CERTAIN = 0.25


@dataclass(frozen=True)
class RootKernel(SumKernel):
    """A function of the Bhattacharyya coefficient s(x, z) = Σ √(θ_k η_k), where θ = x / Σx and η = z / Σz.

    √θ is a point of the unit sphere, and s the cosine of the angle between two of them.
    """

    nonnegative: ClassVar[bool] = True

    @property
    def preparation(self) -> Hashable:
        return "roots of distributions"

    def prepare(self, samples: Any, dtype: Any = np.float64) -> VectorFeatures:
        """√θ. A sample of zeros is not a distribution and stays 0."""
        samples = as_matrix(samples)
        self.check_samples(samples)
        sparse = sp.issparse(samples)
        roots: Any = sp.csr_array(samples, dtype=np.float64, copy=True) if sparse else np.array(samples, np.float64)
        if sparse:
            roots.sum_duplicates()
        # divide by the largest entry first: the sum of very large numbers may overflow
        for largest in (True, False):
            if largest:
                size = roots.max(axis=1).toarray() if sparse else roots.max(axis=1, initial=0.0)
            else:
                size = roots.sum(axis=1)
            size = np.asarray(size).ravel()
            size[size == 0] = 1.0
            if sparse:
                roots.data /= np.repeat(size, np.diff(roots.indptr))
            else:
                roots /= size[:, None]
        if sparse:
            roots.data **= 0.5
        else:
            np.sqrt(roots, out=roots)
        return VectorFeatures(roots, dtype)

    def sum_formula(self, b: VectorFeatures) -> tuple[int, int, list[float]]:
        return DOT, IDENTITY, [0.0, 0.0, 0.0, 0.0]


@dataclass(frozen=True)
class Hellinger(RootKernel):
    """k(x, z) = Σ √(θ_k η_k), where θ = x / Σx and η = z / Σz: the Bhattacharyya coefficient of two distributions.

    1 - k is the squared Hellinger distance. The feature map is √θ. A sample of zeros has k = 0.

    >>> Hellinger()([[1.0, 0.0], [1.0, 1.0], [2.0, 6.0]]).round(3)
    array([[1.   , 0.707, 0.5  ],
           [0.707, 1.   , 0.966],
           [0.5  , 0.966, 1.   ]])
    """

    def diagonal(self, a: Features) -> Vector:
        assert isinstance(a, VectorFeatures)
        return (a.norms > 0).astype(np.float64)


@dataclass(frozen=True)
class InformationDiffusion(RootKernel):
    """k(x, z) = exp(-arccos²(Σ √(θ_k η_k)) / t), where θ = x / Σx and η = z / Σz.

    2 arccos(Σ √(θ_k η_k)) is the geodesic distance between two distributions under the Fisher information metric, and k
    is the leading term of its heat kernel after time t, without the constant factor: Lafferty & Lebanon, JMLR 6 (2005),
    [M5] "Kernels". For word counts and other histograms.

    It is positive semidefinite, up to rounding, for t ≤ 0.25. For larger t it may have small negative eigenvalues, of
    the order of exp(-π²/t), and a fit checks the matrix first. A sample of zeros is not a distribution; it counts as
    orthogonal to every sample and to itself, k = exp(-π²/(4t)).

    Parameters
    ----------
    t : float, default=0.25
        How long heat spreads; a large t makes all distributions similar.

    Examples
    --------
    >>> InformationDiffusion(t=0.25)([[1.0, 0.0], [1.0, 1.0], [2.0, 6.0]]).round(3)
    array([[1.   , 0.085, 0.012],
           [0.085, 1.   , 0.76 ],
           [0.012, 0.76 , 1.   ]])
    """

    t: float = 0.25

    def __post_init__(self) -> None:
        object.__setattr__(self, "t", check_positive("t", self.t))

    @property
    def psd_is_assumed(self) -> bool:
        return self.t > CERTAIN

    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        return self._of_cosines(super().block(a, b, out))

    def diagonal(self, a: Features) -> Vector:
        assert isinstance(a, VectorFeatures)
        return self._of_cosines((a.norms > 0).astype(np.float64))

    def _of_cosines(self, s: Matrix) -> Matrix:
        """exp(-arccos²(s) / t). Edits s."""
        np.minimum(s, 1.0, out=s)  # rounding may make a cosine larger than 1
        np.arccos(s, out=s)
        s *= s
        s *= -1.0 / self.t
        return np.exp(s, out=s)
