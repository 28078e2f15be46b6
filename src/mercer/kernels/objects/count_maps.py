"""Explicit feature maps of kernels that count features, and of some that prepare vectors.

With many samples, a linear machine on these features is faster than the kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.kernels.base import Kernel
from mercer.kernels.feature_maps import FeatureMap, MapOptions, _explicit, _of_width
from mercer.kernels.objects.counts import CountFeatures, CountKernel, counted
from mercer.kernels.objects.distributions import Hellinger
from mercer.kernels.objects.graph_diffusion import GraphDiffusion
from mercer.kernels.objects.sequences import WeightedDegree
from mercer.kernels.objects.substrings import CommonSubstrings


class CountMap(FeatureMap):
    """ψ(x)_f = how often f occurs in x, for the features f of the samples that the map was made for.

    <ψ(x), ψ(z)> = k(x, z) holds if x or z is one of those samples, or has no other features. Features that occur only
    in new samples are not in the map.
    """

    def __init__(self, kernel: Kernel, samples: Any) -> None:
        self.kernel = kernel
        self._names = counted(kernel, samples).names
        self.dimension = len(self._names)

    @property
    def names(self) -> list[Any]:
        """What each feature counts: a k-gram, an item, a subtree."""
        return list(self._names.names)

    def _features(self, samples: Any) -> Any:
        features = CountFeatures.of(counted(self.kernel, samples), np.float64)
        X = features.over(self._names).X
        return sp.csr_array(X if isinstance(X, np.ndarray) else (X.data, X.indices, X.indptr), shape=X.shape)


@_explicit.register
def _(kernel: CountKernel | WeightedDegree | CommonSubstrings, samples: Any, options: MapOptions) -> FeatureMap:
    return CountMap(kernel, samples)


class PreparedMap(FeatureMap):
    """ψ(x) = the vector that the kernel prepares for x: the root of a distribution, the heat of a node."""

    def __init__(self, kernel: Hellinger | GraphDiffusion, samples: Any) -> None:
        self.kernel = kernel
        self.dimension = kernel.prepare(samples).d

    def _features(self, samples: Any) -> Any:
        X = self.kernel.prepare(samples).X
        X = X if isinstance(X, np.ndarray) else sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
        return _of_width(X, self.dimension)


@_explicit.register
def _(kernel: Hellinger | GraphDiffusion, samples: Any, options: MapOptions) -> FeatureMap:
    return PreparedMap(kernel, samples)
