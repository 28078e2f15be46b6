"""A kernel on what repeats itself."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mercer.kernels import codes
from mercer.kernels.features import Matrix, Vector, VectorFeatures, as_matrix
from mercer.kernels.radial import RadialKernel
from mercer.kernels.vectors import check_positive


class CircleFeatures(VectorFeatures):
    """Each feature as a point on the unit circle, cosines first, and how many periods it is from zero."""

    def __init__(self, turns: Matrix, dtype: Any) -> None:
        angles = 2.0 * np.pi * (turns - np.round(turns))
        super().__init__(np.hstack([np.cos(angles), np.sin(angles)]), dtype)
        self.turns = turns

    def take(self, index: Vector) -> CircleFeatures:
        """The samples at these positions."""
        return CircleFeatures(self.turns[index], self.dtype)

    @property
    def in_double(self) -> CircleFeatures:
        """The same samples in float64."""
        return self if self.dtype == np.float64 else CircleFeatures(self.turns, np.float64)


@dataclass(frozen=True)
class Periodic(RadialKernel):
    """k(x, z) = exp(-2 Σ sin²(π (x_k - z_k) / period) / length_scale²).

    It is the Gaussian kernel between points on circles, of which 4 sin²(π (x - z) / period) is the squared distance, so
    it is positive semidefinite for any number of features; MacKay (1998), Rasmussen & Williams (4.31).
    """

    learnable: ClassVar[tuple[str, ...]] = ("length_scale", "period")
    width_power: ClassVar[float] = -2.0
    length_scale: float = 1.0
    period: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "length_scale", check_positive("length_scale", self.length_scale))
        object.__setattr__(self, "period", check_positive("period", self.period))

    @property
    def preparation(self) -> Hashable:
        return "circles", self.period

    def prepare(self, samples: Any, dtype: Any = np.float64) -> CircleFeatures:
        """The features' places on circles of radius 1; an empty place of a CSR matrix is on one, too."""
        samples = as_matrix(samples)
        dense = samples.toarray() if sp.issparse(samples) else samples
        return CircleFeatures(np.divide(dense, self.period, dtype=np.float64), dtype)

    def plan(self, b: VectorFeatures) -> tuple[int, int, list[float]]:
        gamma = min(0.5 / self.length_scale / self.length_scale, float(np.finfo(b.dtype).max))
        return codes.SQUARE, codes.EXPONENTIAL, [0.0, gamma, 0.0, 0.0]

    def _before_preparation(self, X: Any, a: VectorFeatures, gradients: Matrix) -> Matrix:
        """A feature moves along its circle."""
        d = gradients.shape[1] // 2
        cos, sin = a.X[:, :d], a.X[:, d:]
        return np.asarray(2.0 * np.pi / self.period * (gradients[:, d:] * cos - gradients[:, :d] * sin))

    def _derivative(self, name: str, a: VectorFeatures, b: VectorFeatures, u: Matrix, change: Matrix) -> Vector:
        if name != "period":
            return super()._derivative(name, a, b, u, change)
        assert isinstance(a, CircleFeatures) and isinstance(b, CircleFeatures)
        # with t = (x - z) / period, 4 sin²(π t) changes by -4π t sin(2π t), and sin(2π t) = sin x cos z - cos x sin z
        middle = b.turns.mean(axis=0)
        near, far = a.turns - middle, b.turns - middle
        d = near.shape[1]
        (cos_a, sin_a), (cos_b, sin_b) = ((f.X[:, :d], f.X[:, d:]) for f in (a, b))
        total = near * sin_a * (change @ cos_b) - near * cos_a * (change @ sin_b)
        total += cos_a * (change @ (far * sin_b)) - sin_a * (change @ (far * cos_b))
        return np.array([-4.0 * np.pi * self.width_factor(b) * total.sum()])
