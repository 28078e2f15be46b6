"""Explicit feature maps ψ with <ψ(x), ψ(z)> = k(x, z).

    <x, z>                ψ(x) = x
    Σ_k a_k <x, z>^k      ψ(x)_α = √(a_k k!/α!) x^α  for all monomials x^α of degree k           [SSBD] 16.1, 16.2
    (γ<x, z> + c)^p       the same with a_k = binom(p, k) γ^k c^(p-k)
    exp(-γ|x - z|²)       the same with a_k = (2γ)^k/k!, times exp(-γ|x|²), up to a degree r     [SSBD] Example 16.2
    min(x, z)             ψ(x)_t = 1 if x ≥ t, for t = 1, …, N and whole x in 0, …, N            [SSBD] Exercise 16.4
    k₁ + k₂               both side by side
    k₁ k₂                 all products of a feature of one with a feature of the other
    k^p                   the monomials of degree p of the features of k, as above

There are binom(d+k-1, k) monomials of degree k, not d^k: each is counted once.

The Taylor features of the Gaussian kernel omit the terms of degree above r. For |x|, |z| ≤ R the omitted part is

    e^{-γ(|x|²+|z|²)} Σ_{k>r} (2γ|x||z|)^k/k!  ≤  P(N > r)   for a Poisson variable N with mean 2γR²

since γ(|x|²+|z|²) ≥ 2γ|x||z| and the tail of a Poisson variable grows with its mean. For x = z, |x| = R, equality
holds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import singledispatch
from itertools import combinations_with_replacement
from math import comb, factorial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import gammainc

from mercer.exceptions import InvalidInputError
from mercer.kernels.base import Kernel, gamma_number
from mercer.kernels.combinators import Constant, Power, Product, Scaled, Sum
from mercer.kernels.features import Matrix, Vector, as_matrix, count_samples
from mercer.kernels.radial import Gaussian
from mercer.kernels.vectors import Cosine, Linear, Min, Polynomial, PowerSeries, unit_rows
from mercer.kernels.wrappers import Normalized, On

# largest degree of Taylor features: 1/k! underflows beyond it
LARGEST_DEGREE = 160


class FeatureMap(ABC):
    """ψ: a function of samples that returns a row of ``dimension`` features for each.

    ``error`` bounds |<ψ(x), ψ(z)> - k(x, z)| for samples no longer than those that the map was made for. It is 0 if ψ
    is exact.
    """

    dimension: int
    error: float = 0.0

    def __call__(self, samples: Any) -> Any:
        """The features, one row per sample: CSR where a map keeps sparse samples sparse, else a float64 array."""
        features = self._features(samples)
        return features if sp.issparse(features) else np.ascontiguousarray(features, dtype=np.float64)

    @abstractmethod
    def _features(self, samples: Any) -> Any: ...

    def __repr__(self) -> str:
        about = f", error <= {self.error:.2g}" if self.error else ""
        return f"<{type(self).__name__} to {self.dimension} features{about}>"


class MapOptions(NamedTuple):
    """The options of `Kernel.feature_map`."""

    degree: int | None
    error: float
    max_dimension: int


def feature_map(kernel: Kernel, samples: Any, degree: int | None, error: float, max_dimension: int) -> FeatureMap:
    """The feature map of a kernel: see `Kernel.feature_map`."""
    return _explicit(kernel.bind(samples), samples, MapOptions(degree, error, max_dimension))


def _allowed(kernel: Kernel, dimension: int, options: MapOptions) -> int:
    """Return the dimension, or raise if it exceeds ``max_dimension``."""
    if dimension > options.max_dimension:
        raise InvalidInputError(
            f"The feature map of {kernel!r} has {dimension:,} features, {dimension * 8 / 1e6:,.3g} MB a sample, but "
            f"max_dimension={options.max_dimension:,}. Use the kernel itself, fewer features or a lower degree, or a "
            "larger max_dimension."
        )
    return dimension


# ---- the maps --------------------------------------------------------------------------------------------------------


class IdentityMap(FeatureMap):
    """ψ(x) = x, or x/|x|."""

    def __init__(self, d: int, unit: bool = False) -> None:
        self.dimension = d
        self.unit = unit

    def _features(self, samples: Any) -> Any:
        X = _of_width(as_matrix(samples), self.dimension)
        return unit_rows(X) if self.unit else X


class MonomialMap(FeatureMap):
    """√(a_k k!/α!) u^α over all monomials of degree k, for each k with a_k > 0, of u = weights · inner(x).

    With ``damping`` it is multiplied by exp(-damping |u|²).
    """

    def __init__(self, inner: FeatureMap, coefficients: Sequence[float], weights: Any = 1.0) -> None:
        self.inner = inner
        self.coefficients = tuple(coefficients)
        self.weights = weights
        self.damping = 0.0
        self.dimension = _n_monomials(inner.dimension, self.coefficients)

    def _features(self, samples: Any) -> Any:
        u = self.inner(samples)
        u = (u.toarray() if sp.issparse(u) else u) * self.weights
        n, d = u.shape
        parts = []
        for k, a in enumerate(self.coefficients):
            if a == 0.0:
                continue
            chosen = np.array(list(combinations_with_replacement(range(d), k)), dtype=np.intp)
            chosen = chosen.reshape(_n_monomials(d, (0.0,) * k + (1.0,)), k)
            part = np.full((n, len(chosen)), np.sqrt(a))
            for place in range(k):
                part *= u[:, chosen[:, place]]
            part *= np.sqrt(_multinomials(chosen))
            parts.append(part)
        found = np.hstack(parts) if parts else np.zeros((n, 0))
        if self.damping:
            found *= np.exp(-self.damping * np.einsum("ij,ij->i", u, u))[:, None]
        return found


class ThresholdMap(FeatureMap):
    """1 if x_j ≥ t, for each feature j and t = 1, …, N_j."""

    def __init__(self, largest: Vector) -> None:
        self.largest = largest
        self.dimension = int(largest.sum())

    def _features(self, samples: Any) -> Any:
        X = _of_width(as_matrix(samples), len(self.largest))
        X = X.toarray() if sp.issparse(X) else X
        _check_whole(X)
        beyond = self.largest < X
        if beyond.any():
            i, j = (int(v[0]) for v in np.nonzero(beyond))
            raise InvalidInputError(
                f"Sample {i} has {X[i, j]:g} in feature {j}, but this feature map was made for at most "
                f"{self.largest[j]:g} there. Make it from samples that contain the largest values."
            )
        return np.hstack([X[:, [j]] >= np.arange(1, top + 1) for j, top in enumerate(self.largest.astype(int))])


class ConstantMap(FeatureMap):
    """√value, for any sample."""

    dimension = 1

    def __init__(self, value: float) -> None:
        self.value = value

    def _features(self, samples: Any) -> Any:
        return np.full((count_samples(samples), 1), np.sqrt(self.value))


class SideBySide(FeatureMap):
    """The features of both."""

    def __init__(self, left: FeatureMap, right: FeatureMap) -> None:
        self.left, self.right = left, right
        self.dimension = left.dimension + right.dimension
        self.error = left.error + right.error

    def _features(self, samples: Any) -> Any:
        parts = [self.left(samples), self.right(samples)]
        return sp.hstack(parts, format="csr") if any(sp.issparse(part) for part in parts) else np.hstack(parts)


class AllProducts(FeatureMap):
    """Each feature of one times each feature of the other."""

    def __init__(self, left: FeatureMap, right: FeatureMap, largest: tuple[float, float]) -> None:
        self.left, self.right = left, right
        self.dimension = left.dimension * right.dimension
        self.error = left.error * largest[1] + right.error * largest[0] + left.error * right.error

    def _features(self, samples: Any) -> Any:
        a, b = (part.toarray() if sp.issparse(part) else part for part in (self.left(samples), self.right(samples)))
        return (a[:, :, None] * b[:, None, :]).reshape(len(a), -1)


class Multiple(FeatureMap):
    """√factor times the features."""

    def __init__(self, factor: float, inner: FeatureMap) -> None:
        self.root, self.inner = np.sqrt(factor), inner
        self.dimension, self.error = inner.dimension, factor * inner.error

    def _features(self, samples: Any) -> Any:
        return self.inner(samples) * self.root


class UnitLength(FeatureMap):
    """ψ(x)/√k(x, x)."""

    def __init__(self, kernel: Kernel, inner: FeatureMap) -> None:
        self.kernel, self.inner = kernel, inner
        self.dimension = inner.dimension

    def _features(self, samples: Any) -> Any:
        found, length = self.inner(samples), np.sqrt(self.kernel.diagonal(self.kernel.prepare(samples)))
        scale = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
        return (sp.diags_array(scale) @ found).tocsr() if sp.issparse(found) else found * scale[:, None]


class Selected(FeatureMap):
    """The features of some columns."""

    def __init__(self, kernel: On, inner: FeatureMap) -> None:
        self.kernel, self.inner = kernel, inner
        self.dimension, self.error = inner.dimension, inner.error

    def _features(self, samples: Any) -> Any:
        return self.inner(self.kernel.select(samples))


# ---- the map of each kernel ------------------------------------------------------------------------------------------


@singledispatch
def _explicit(kernel: Kernel, samples: Any, options: MapOptions) -> FeatureMap:
    """The map of a kernel that is bound to the samples."""
    raise InvalidInputError(
        f"{kernel!r} has no known feature map of finite length. Kernels that have one are Linear, Polynomial, "
        "PowerSeries, Cosine, Min of whole numbers, Constant, their sums, products, multiples and powers, and "
        "Normalized and On of them; Gaussian has a truncated one."
    )


@_explicit.register
def _(kernel: Linear | Cosine, samples: Any, options: MapOptions) -> FeatureMap:
    return IdentityMap(_allowed(kernel, as_matrix(samples).shape[1], options), unit=isinstance(kernel, Cosine))


@_explicit.register
def _(kernel: Constant, samples: Any, options: MapOptions) -> FeatureMap:
    _check_psd(kernel)
    return ConstantMap(kernel.value)


@_explicit.register
def _(kernel: Polynomial, samples: Any, options: MapOptions) -> FeatureMap:
    _check_psd(kernel)
    p, gamma = kernel.degree, gamma_number(kernel, kernel.gamma)
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.float64(gamma) ** np.arange(p + 1) * np.float64(kernel.coef0) ** np.arange(p, -1, -1)
        coefficients = [float(comb(p, k)) * float(powers[k]) for k in range(p + 1)] if p < 1000 else [np.inf]
    return _monomials(kernel, coefficients, samples, options)


@_explicit.register
def _(kernel: PowerSeries, samples: Any, options: MapOptions) -> FeatureMap:
    _check_psd(kernel)
    return _monomials(kernel, kernel.coefficients, samples, options)


@_explicit.register
def _(kernel: Gaussian, samples: Any, options: MapOptions) -> FeatureMap:
    gamma = gamma_number(kernel, kernel.gamma)
    mean = 2.0 * gamma * float(kernel.prepare(samples).norms.max(initial=0.0))
    degree = options.degree
    if degree is None:
        degree = next((r for r in range(LARGEST_DEGREE + 1) if taylor_error(mean, r) <= options.error), None)
    if degree is None or not 0 <= degree <= LARGEST_DEGREE:
        raise InvalidInputError(
            f"Taylor features of {kernel!r} can be used up to degree {LARGEST_DEGREE}, but degree={options.degree} and "
            f"error={options.error:g} were asked for, with 2 gamma R^2 = {mean:.4g} for samples of length R: about "
            f"{mean + 5 * np.sqrt(mean):.0f} are needed. Scale the samples, or use a smaller gamma."
        )
    # of u = √(2γ) x, with exp(-½|u|²)
    found = _monomials(kernel, [1.0 / factorial(k) for k in range(degree + 1)], samples, options, np.sqrt(2.0 * gamma))
    found.damping, found.error = 0.5, taylor_error(mean, degree)
    return found


@_explicit.register
def _(kernel: Min, samples: Any, options: MapOptions) -> FeatureMap:
    X = as_matrix(samples)
    kernel.check_samples(X)
    _check_whole(X.data if sp.issparse(X) else X)
    largest = np.asarray(X.max(axis=0).toarray() if sp.issparse(X) else X.max(axis=0), dtype=np.float64).ravel()
    _allowed(kernel, int(largest.sum()), options)
    return ThresholdMap(largest)


@_explicit.register
def _(kernel: Sum, samples: Any, options: MapOptions) -> FeatureMap:
    found = SideBySide(_explicit(kernel.left, samples, options), _explicit(kernel.right, samples, options))
    _allowed(kernel, found.dimension, options)
    return found


@_explicit.register
def _(kernel: Product, samples: Any, options: MapOptions) -> FeatureMap:
    parts = (kernel.left, kernel.right)
    left, right = (_explicit(part, samples, options) for part in parts)
    _allowed(kernel, left.dimension * right.dimension, options)
    first, second = (float(part.diagonal(part.prepare(samples)).max(initial=0.0)) for part in parts)
    return AllProducts(left, right, (first, second))


@_explicit.register
def _(kernel: Scaled, samples: Any, options: MapOptions) -> FeatureMap:
    if kernel.factor < 0:
        _check_psd(kernel)
    return Multiple(kernel.factor, _explicit(kernel.kernel, samples, options))


@_explicit.register
def _(kernel: Power, samples: Any, options: MapOptions) -> FeatureMap:
    inner = _explicit(kernel.kernel, samples, options)
    coefficients = [0.0] * kernel.exponent + [1.0]
    _allowed(kernel, _n_monomials(inner.dimension, coefficients), options)
    found = MonomialMap(inner, coefficients)
    largest = float(kernel.kernel.diagonal(kernel.kernel.prepare(samples)).max(initial=0.0))
    found.error = (largest + inner.error) ** kernel.exponent - largest**kernel.exponent
    return found


@_explicit.register
def _(kernel: Normalized, samples: Any, options: MapOptions) -> FeatureMap:
    inner = _explicit(kernel.kernel, samples, options)
    if inner.error:
        raise InvalidInputError(
            f"{kernel!r} divides by the lengths of features, but those of the inner kernel are truncated: the error "
            "has no bound. Use the inner kernel without Normalized."
        )
    return UnitLength(kernel.kernel, inner)


@_explicit.register
def _(kernel: On, samples: Any, options: MapOptions) -> FeatureMap:
    return Selected(kernel, _explicit(kernel.kernel, kernel.select(samples), options))


def _monomials(
    kernel: Any, coefficients: Sequence[float], samples: Any, options: MapOptions, scale: float = 1.0
) -> MonomialMap:
    if not np.isfinite(coefficients).all():
        raise InvalidInputError(
            f"The features of {kernel!r} exceed the range of floating-point numbers: lower the degree."
        )
    d, weights = as_matrix(samples).shape[1], kernel.weights()
    _allowed(kernel, _n_monomials(d, coefficients), options)
    return MonomialMap(IdentityMap(d), coefficients, scale if weights is None else scale * weights)


def taylor_error(mean: float, degree: int) -> float:
    """P(N > degree) for a Poisson variable N: the error bound of Taylor features of a degree, with mean = 2γR²."""
    return float(gammainc(degree + 1, mean)) if mean > 0 else 0.0


def _n_monomials(d: int, coefficients: Sequence[float]) -> int:
    return sum(comb(d + k - 1, k) if d else int(k == 0) for k, a in enumerate(coefficients) if a != 0.0)


def _multinomials(chosen: Matrix) -> Vector:
    """k!/α! of monomials, each given by its features in ascending order."""
    n, k = chosen.shape
    value, run = np.ones(n), np.ones(n)
    for place in range(1, k):
        run = np.where(chosen[:, place] == chosen[:, place - 1], run + 1.0, 1.0)
        value *= (place + 1.0) / run
    return value


def _check_psd(kernel: Kernel) -> None:
    if not kernel.positive_semidefinite:
        raise InvalidInputError(
            f"{kernel!r} is not positive semidefinite, so it has no feature map. Use a positive semidefinite kernel."
        )


def _check_whole(values: Any) -> None:
    if np.any(values != np.floor(values)):
        found = values[values != np.floor(values)].flat[0]
        raise InvalidInputError(
            f"Min has a feature map of finite length for whole numbers, but a sample contains {found:g}. Round or "
            "scale the features."
        )


def _of_width(X: Any, d: int) -> Any:
    if X.shape[1] != d:
        raise InvalidInputError(f"This feature map was made for samples of {d} features, but these have {X.shape[1]}.")
    return X
