"""Kernels that are functions of a distance."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mercer.exceptions import InvalidInputError
from mercer.kernels.base import Width, bind_gamma, check_gamma, check_positive, check_width, gamma_number
from mercer.kernels.feature_sums import (
    CHI2,
    DOT,
    EXPONENTIAL,
    L1,
    MATERN12,
    MATERN32,
    MATERN52,
    RATIONAL,
    SERIES,
    SQUARE,
    SumFormula,
    SumKernel,
)
from mercer.kernels.features import Features, Matrix, Vector, VectorFeatures, as_matrix

# up to this many features, distances from differences cost no more than from inner products, and lose no digits
FEW_FEATURES = 16
# largest rounding error of the exponent by cancellation at which inner products are used instead of differences
CANCELLATION = 2e-5
# with outliers among the columns, rows are compared by inner products if their error is below this share of it
NEAR = 0.9
# the same for CSR samples, for which float64 is used instead of differences: it takes twice as long
SPARSE_CANCELLATION = 1e-4


def rounding_of_distances(b: VectorFeatures, gamma: float) -> float:
    """The rounding error of γ |x - z|² if it is computed from inner products and norms."""
    return _rounding(b, gamma * b.largest_norm)


def _rounding(b: VectorFeatures, squared_length: Any) -> Any:
    return 4.0 * float(np.finfo(b.dtype).eps) * squared_length


def rounding_of_sums(b: VectorFeatures, gamma: float) -> float:
    """The rounding error of γ Σ term(x, z) if it is computed as γ Σ |x| plus corrections for the non-zeros of z."""
    return float(np.finfo(b.dtype).eps) * gamma * b.largest_total


def squared_distance_term(b: VectorFeatures, gamma: float) -> tuple[int, float]:
    """(term, 1.0 if the sum must be turned into a distance): differences if as fast, or if products lose digits."""
    cancels = rounding_of_distances(b, gamma) > CANCELLATION
    differences = not b.sparse and (b.d <= FEW_FEATURES or cancels)
    return (SQUARE, 0.0) if differences else (DOT, 1.0)


@dataclass(frozen=True)
class RadialKernel(SumKernel):
    """A function of |x - z|, with one width or one width per feature."""

    def diagonal(self, a: Features) -> Vector:
        return np.ones(len(a))


@dataclass(frozen=True)
class Gaussian(RadialKernel):
    """k(x, z) = exp(-γ |x - z|²), or exp(-Σ γ_k (x_k - z_k)²) with one γ per feature.

    The notes write the width in three ways: see ``from_width``.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> Gaussian(gamma=0.5)([[0.0], [2.0]]).round(3)
    array([[1.   , 0.135],
           [0.135, 1.   ]])
    >>> Gaussian(gamma=(1.0, 0.0))([[0.0, 5.0]], [[0.0, 9.0]])
    array([[1.]])
    """

    learnable: ClassVar[tuple[str, ...]] = ("gamma",)
    gamma: Width = "scale"

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", check_gamma(self.gamma))

    @classmethod
    def from_sigma(cls, sigma: Any) -> Gaussian:
        """exp(-|x - z|² / (2σ²)), as [CS229] and [M5] write it."""
        return cls(0.5 / np.square(check_width("sigma", sigma, np.finfo(float).tiny)))

    @classmethod
    def from_width(cls, sigma: Any, convention: str = "m5") -> Gaussian:
        """The kernel of a width σ, in one of the notes' three conventions.

        Parameters
        ----------
        sigma : float or sequence of float
            σ > 0, or one for each feature.
        convention : {"ssbd", "l8", "cs229", "m5"}, default="m5"
            "ssbd": exp(-|x - z|² / (2σ)), [SSBD] Example 16.2; "l8": exp(-|x - z|² / σ), [L8]; "cs229" and "m5":
            exp(-|x - z|² / (2σ²)), as in ``from_sigma``.

        Examples
        --------
        >>> [Gaussian.from_width(2.0, convention) for convention in ("ssbd", "l8", "cs229")]
        [Gaussian(gamma=0.25), Gaussian(gamma=0.5), Gaussian(gamma=0.125)]
        """
        if convention in ("cs229", "m5"):
            return cls.from_sigma(sigma)
        factors = {"ssbd": 0.5, "l8": 1.0}
        if convention not in factors:
            raise InvalidInputError(
                f"convention={convention!r} is not known: it must be 'ssbd', for exp(-|x - z|²/(2σ)), 'l8', for "
                "exp(-|x - z|²/σ), or 'cs229' or 'm5', for exp(-|x - z|²/(2σ²))."
            )
        width: Any = np.asarray(check_width("sigma", sigma, np.finfo(float).tiny))
        return cls(factors[convention] / width)

    def bind(self, samples: Any) -> Gaussian:
        return bind_gamma(self, samples)

    def weights(self) -> Vector | None:
        return np.sqrt(self.gamma) if isinstance(self.gamma, tuple) else None

    def needs_double(self, b: VectorFeatures) -> bool:
        return rounding_of_distances(b, gamma_number(self, self.gamma)) > SPARSE_CANCELLATION

    def sum_formula(self, b: VectorFeatures) -> tuple[int, int, list[float]]:
        gamma = gamma_number(self, self.gamma)
        term, distances = squared_distance_term(b, gamma)
        return term, EXPONENTIAL, [distances, _finite(gamma, b), 0.0, 0.0]

    def _compare(self, a: VectorFeatures, b: VectorFeatures, formula: SumFormula, out: Matrix | None) -> Matrix:
        """The kernel values by a formula.

        If only a few columns are outliers, rows near the origin are still compared by inner products. These lose digits
        only for columns far away, where k is almost zero, since |x - z| ≥ |z| - |x|.
        """
        term, code, params = formula
        if term != SQUARE or b.d <= FEW_FEATURES or not np.isfinite(b.largest_norm):
            return self._tiles(a, b, formula, out)
        gamma = gamma_number(self, self.gamma)
        if not _rounding(b, gamma * b.common_norm) <= NEAR * CANCELLATION:
            return self._tiles(a, b, formula, out)
        a = a.stored_like(b)
        far = np.flatnonzero(~(_rounding(b, gamma * a.norms) <= NEAR * CANCELLATION))
        out = self._tiles(a, b, (DOT, code, [1.0, *params[1:]]), out)
        if len(far):
            out[far] = self._tiles(a.take(far), b, formula)
        return out


@dataclass(frozen=True)
class Laplacian(RadialKernel):
    """k(x, z) = exp(-γ Σ |x_k - z_k|), or exp(-Σ γ_k |x_k - z_k|) with one γ per feature.

    Examples
    --------
    >>> from mercer.kernels import Laplacian
    >>> Laplacian(gamma=0.5)([[0.0, 0.0]], [[1.0, 1.0]]).round(3)
    array([[0.368]])
    """

    learnable: ClassVar[tuple[str, ...]] = ("gamma",)
    gamma: Width = "auto"

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", check_gamma(self.gamma))

    def bind(self, samples: Any) -> Laplacian:
        return bind_gamma(self, samples)

    def weights(self) -> Vector | None:
        return np.asarray(self.gamma) if isinstance(self.gamma, tuple) else None

    def needs_double(self, b: VectorFeatures) -> bool:
        return rounding_of_sums(b, gamma_number(self, self.gamma)) > SPARSE_CANCELLATION

    def sum_formula(self, b: VectorFeatures) -> tuple[int, int, list[float]]:
        return L1, EXPONENTIAL, [0.0, _finite(gamma_number(self, self.gamma), b), 0.0, 0.0]


@dataclass(frozen=True)
class Matern(RadialKernel):
    """Matérn's kernel of smoothness ν = 1/2, 3/2 or 5/2 with r = |x - z| / length_scale.

    ν = 1/2: exp(-r);  ν = 3/2: (1 + √3 r) exp(-√3 r);  ν = 5/2: (1 + √5 r + 5r²/3) exp(-√5 r).

    Examples
    --------
    >>> from mercer.kernels import Matern
    >>> Matern(nu=0.5, length_scale=2.0)([[0.0, 0.0]], [[3.0, 4.0]]).round(3)
    array([[0.082]])
    """

    learnable: ClassVar[tuple[str, ...]] = ("length_scale",)
    width_power: ClassVar[float] = -2.0
    nu: float = 1.5
    length_scale: float | tuple[float, ...] = 1.0

    _CODES: ClassVar[dict[float, int]] = {0.5: MATERN12, 1.5: MATERN32, 2.5: MATERN52}

    def __post_init__(self) -> None:
        if self.nu not in self._CODES:
            raise InvalidInputError(f"nu={self.nu!r} is not available: Matern has nu=0.5, 1.5 and 2.5.")
        object.__setattr__(self, "nu", float(self.nu))
        scale = check_width("length_scale", self.length_scale, np.finfo(float).tiny)
        object.__setattr__(self, "length_scale", scale)

    def weights(self) -> Vector | None:
        return 1.0 / np.asarray(self.length_scale) if isinstance(self.length_scale, tuple) else None

    def needs_double(self, b: VectorFeatures) -> bool:
        return True  # the square root turns a rounding error of 1e-7 into 3e-4

    def sum_formula(self, b: VectorFeatures) -> tuple[int, int, list[float]]:
        scale = 1.0 if isinstance(self.length_scale, tuple) else self.length_scale
        # dense samples by differences: the square root magnifies the rounding error of small distances
        term, distances = (DOT, 1.0) if b.sparse else (SQUARE, 0.0)
        return term, self._CODES[self.nu], [distances, _finite(sqrt(2.0 * self.nu) / scale, b), 0.0, 0.0]

    def width_factor(self, b: VectorFeatures) -> float:
        return self.sum_formula(b)[2][1] ** 2


@dataclass(frozen=True)
class RationalQuadratic(RadialKernel):
    """k(x, z) = (1 + |x - z|² / (2 α length_scale²))^-α: a mixture of Gaussian kernels of all widths.

    α → ∞ is the Gaussian kernel with that length scale; Rasmussen & Williams (4.19).

    Examples
    --------
    >>> from mercer.kernels import RationalQuadratic
    >>> RationalQuadratic(alpha=1.0)([[0.0], [2.0]]).round(3)
    array([[1.   , 0.333],
           [0.333, 1.   ]])
    """

    learnable: ClassVar[tuple[str, ...]] = ("alpha", "length_scale")
    width_power: ClassVar[float] = -2.0
    alpha: float = 1.0
    length_scale: float | tuple[float, ...] = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", check_positive("alpha", self.alpha))
        scale = check_width("length_scale", self.length_scale, np.finfo(float).tiny)
        object.__setattr__(self, "length_scale", scale)

    def weights(self) -> Vector | None:
        return 1.0 / np.asarray(self.length_scale) if isinstance(self.length_scale, tuple) else None

    def needs_double(self, b: VectorFeatures) -> bool:
        return rounding_of_distances(b, self._gamma) > SPARSE_CANCELLATION

    def sum_formula(self, b: VectorFeatures) -> tuple[int, int, list[float]]:
        term, distances = squared_distance_term(b, self._gamma)
        return term, RATIONAL, [distances, _finite(self._gamma, b), self.alpha, 0.0]

    @property
    def _gamma(self) -> float:
        scale = 1.0 if isinstance(self.length_scale, tuple) else self.length_scale
        return 0.5 / self.alpha / scale / scale

    def _derivative(self, name: str, a: VectorFeatures, b: VectorFeatures, u: Matrix | None, change: Matrix) -> Vector:
        if name == "alpha":
            assert u is not None
            # ∂k/∂α = k (u / (1 + u) - log(1 + u)), and k = -ψ'(u) (1 + u) / α
            return np.array([np.vdot(change, (1.0 + u) * np.log1p(u) - u)])
        return super()._derivative(name, a, b, u, change)


@dataclass(frozen=True)
class Chi2(RadialKernel):
    """k(x, z) = exp(-γ Σ (x_k - z_k)² / (x_k + z_k)), for non-negative features.

    Examples
    --------
    >>> from mercer.kernels import Chi2
    >>> Chi2(gamma=0.5)([[1.0, 3.0]], [[1.0, 1.0]]).round(3)
    array([[0.607]])
    """

    learnable: ClassVar[tuple[str, ...]] = ("gamma",)
    nonnegative: ClassVar[bool] = True
    gamma: float = 1.0

    def __post_init__(self) -> None:
        gamma = check_width("gamma", self.gamma)
        if not isinstance(gamma, float):
            raise InvalidInputError(f"gamma={self.gamma!r} must be one number for Chi2.")
        object.__setattr__(self, "gamma", gamma)

    def needs_double(self, b: VectorFeatures) -> bool:
        return rounding_of_sums(b, self.gamma) > SPARSE_CANCELLATION

    def sum_formula(self, b: VectorFeatures) -> tuple[int, int, list[float]]:
        return CHI2, EXPONENTIAL, [0.0, _finite(self.gamma, b), 0.0, 0.0]


@dataclass(frozen=True)
class AdditiveChi2(SumKernel):
    """k(x, z) = -Σ (x_k - z_k)² / (x_k + z_k), for non-negative features.

    It is only conditionally positive semidefinite (for coefficients that sum to 0), so a machine needs an intercept.

    Examples
    --------
    >>> from mercer.kernels import AdditiveChi2
    >>> AdditiveChi2()([[1.0, 3.0]], [[1.0, 1.0]])
    array([[-1.]])
    """

    nonnegative: ClassVar[bool] = True
    psd: ClassVar[bool] = False

    def sum_formula(self, b: VectorFeatures) -> tuple[int, int, list[float]]:
        return CHI2, SERIES, [0.0, 0.0, 0.0, 0.0, 0.0, -1.0]

    def diagonal(self, a: Features) -> Vector:
        return np.zeros(len(a))


class CircleFeatures(VectorFeatures):
    """Features as points on the unit circle (all cosines, then all sines), and the features divided by the period."""

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

    It is the Gaussian kernel between points on circles, whose squared distance is 4 sin²(π (x - z) / period). So it is
    positive semidefinite for any number of features; MacKay (1998), Rasmussen & Williams (4.31).

    Examples
    --------
    >>> from mercer.kernels import Periodic
    >>> Periodic(period=1.0)([[0.0], [0.5], [1.0]]).round(3)
    array([[1.   , 0.135, 1.   ],
           [0.135, 1.   , 0.135],
           [1.   , 0.135, 1.   ]])
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
        """The features as points on circles of radius 1. A zero that CSR does not store is such a point, too."""
        samples = as_matrix(samples)
        dense = samples.toarray() if sp.issparse(samples) else samples
        return CircleFeatures(np.divide(dense, self.period, dtype=np.float64), dtype)

    def sum_formula(self, b: VectorFeatures) -> tuple[int, int, list[float]]:
        gamma = min(0.5 / self.length_scale / self.length_scale, float(np.finfo(b.dtype).max))
        return SQUARE, EXPONENTIAL, [0.0, gamma, 0.0, 0.0]

    def _before_preparation(self, X: Any, a: VectorFeatures, gradients: Matrix) -> Matrix:
        """The chain rule: the derivative of a point on the circle with respect to the feature."""
        d = gradients.shape[1] // 2
        cos, sin = a.X[:, :d], a.X[:, d:]
        return np.asarray(2.0 * np.pi / self.period * (gradients[:, d:] * cos - gradients[:, :d] * sin))

    def _derivative(self, name: str, a: VectorFeatures, b: VectorFeatures, u: Matrix | None, change: Matrix) -> Vector:
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


def _finite(factor: float, b: VectorFeatures) -> float:
    """The factor, at most the largest number of the dtype: infinity times a distance of 0 would be NaN."""
    return min(factor, float(np.finfo(b.dtype).max))
