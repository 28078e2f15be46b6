"""Kernels as double loops in plain Python: slow, and too short to be wrong.

Samples are lists of lists of floats. ``gram(k, X, Z)`` calls k for every pair; sums are exact (``math.fsum``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, fsum, sqrt, tanh

Sample = Sequence[float]
Pair = Callable[[Sample, Sample], float]


def gram(k: Pair, X: Sequence[Sample], Z: Sequence[Sample]) -> list[list[float]]:
    """K[i][j] = k(X[i], Z[j])."""
    return [[k(x, z) for z in Z] for x in X]


def dot(x: Sample, z: Sample) -> float:
    return fsum(a * b for a, b in zip(x, z, strict=True))


def squared_distance(x: Sample, z: Sample, weights: Sample | None = None) -> float:
    weights = [1.0] * len(x) if weights is None else weights
    return fsum(w * (a - b) ** 2 for w, a, b in zip(weights, x, z, strict=True))


def distance(x: Sample, z: Sample, scales: Sample | None = None) -> float:
    return sqrt(squared_distance(x, z, None if scales is None else [s**-2 for s in scales]))


def linear() -> Pair:
    return dot


def polynomial(degree: int, gamma: float, coef0: float) -> Pair:
    return lambda x, z: (gamma * dot(x, z) + coef0) ** degree


def weighted_polynomial(degree: int, gammas: Sample, coef0: float) -> Pair:
    return lambda x, z: (fsum(g * a * b for g, a, b in zip(gammas, x, z, strict=True)) + coef0) ** degree


def power_series(coefficients: Sample) -> Pair:
    return lambda x, z: fsum(c * dot(x, z) ** k for k, c in enumerate(coefficients))


def sigmoid(gamma: float, coef0: float) -> Pair:
    return lambda x, z: tanh(gamma * dot(x, z) + coef0)


def cosine() -> Pair:
    def k(x: Sample, z: Sample) -> float:
        lengths = sqrt(dot(x, x)) * sqrt(dot(z, z))
        return dot(x, z) / lengths if lengths > 0 else 0.0

    return k


def minimum() -> Pair:
    return lambda x, z: fsum(min(a, b) for a, b in zip(x, z, strict=True))


def gaussian(gamma: float) -> Pair:
    return lambda x, z: exp(-gamma * squared_distance(x, z))


def weighted_gaussian(gammas: Sample) -> Pair:
    return lambda x, z: exp(-squared_distance(x, z, gammas))


def laplacian(gamma: float) -> Pair:
    return lambda x, z: exp(-gamma * fsum(abs(a - b) for a, b in zip(x, z, strict=True)))


def weighted_laplacian(gammas: Sample) -> Pair:
    return lambda x, z: exp(-fsum(g * abs(a - b) for g, a, b in zip(gammas, x, z, strict=True)))


def matern(nu: float, scales: float | Sample) -> Pair:
    """Rasmussen & Williams (4.14) and (4.17)."""

    def k(x: Sample, z: Sample) -> float:
        r = distance(x, z, scales) if isinstance(scales, Sequence) else distance(x, z) / scales
        if nu == 0.5:
            return exp(-r)
        if nu == 1.5:
            return (1 + sqrt(3) * r) * exp(-sqrt(3) * r)
        return (1 + sqrt(5) * r + 5 * r**2 / 3) * exp(-sqrt(5) * r)

    return k


def chi2(gamma: float) -> Pair:
    def k(x: Sample, z: Sample) -> float:
        return exp(-gamma * fsum((a - b) ** 2 / (a + b) for a, b in zip(x, z, strict=True) if a + b > 0))

    return k


def additive_chi2() -> Pair:
    return lambda x, z: -fsum((a - b) ** 2 / (a + b) for a, b in zip(x, z, strict=True) if a + b > 0)


def normalized(k: Pair) -> Pair:
    def normal(x: Sample, z: Sample) -> float:
        lengths = sqrt(k(x, x)) * sqrt(k(z, z))
        return k(x, z) / lengths if lengths > 0 else 0.0

    return normal
