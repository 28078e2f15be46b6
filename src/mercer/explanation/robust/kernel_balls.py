"""Bounds on kernel values k(z, sᵢ), their curvature and feature distances for all z in a ball around x.

    |z − x| ≤ r.   Gaussian: the scaled distance of z and s is within √γ r of that of x and s
                   Laplacian: the same with γ √d r, since |δ|₁ ≤ √d |δ|
                   linear, polynomial: ⟨z, s⟩ is within r |s| of ⟨x, s⟩

A kernel on vectors is turned into a `Ball` once for some rows and points; its methods take a radius for each row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import singledispatch
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from mercer.exceptions import InvalidInputError
from mercer.kernels import Kernel
from mercer.kernels.combinators import Constant, LearnedKernel, Product, Scaled, Sum
from mercer.kernels.features import Matrix, Vector
from mercer.kernels.radial import Gaussian, Laplacian
from mercer.kernels.vectors import Linear, Polynomial

Pair = tuple[Matrix, Matrix]

# rounds of tangents to the exponential function
TANGENTS = 2


class Ball(ABC):
    """Bounds of one kernel around each of some rows, for values with each of some points."""

    @abstractmethod
    def values(self, r: Vector) -> Pair:
        """The smallest and the largest k(z, s) that |z − x| ≤ r allows, or bounds on them."""

    def curvature(self, r: Vector) -> Pair | None:
        """Bounds on the second derivative of k(z, s) along a unit vector, for |z − x| ≤ r; None if there are none."""
        return None

    def squared_distance(self, r: Vector) -> Vector:
        """A bound on k(x, x) + k(z, z) − 2k(x, z) for |z − x| ≤ r."""
        return np.full(len(r), np.inf)

    def relaxed(self, signed: Matrix, r: Vector, unit: float) -> Vector | None:
        """A bound on Σᵢ signedᵢ k(z, sᵢ) for |z − x| ≤ r that all points share z for; None if there is none.

        Rounding errors, relative to ``unit``, are subtracted.
        """
        return None

    @abstractmethod
    def magnitude(self, r: Vector) -> Pair:
        """The scale of rounding errors: the size of the terms of values within r, and of gradients at x."""


@singledispatch
def ball(kernel: Kernel, X: Matrix, S: Matrix) -> Ball:
    """The bounds of a kernel around the rows of X, for its values with the points S."""
    raise InvalidInputError(
        f"No bound is known for {kernel!r} in a ball: robustness supports Linear, Polynomial, Gaussian and Laplacian "
        "kernels, and their sums, products and multiples."
    )


class GaussianBall(Ball):
    """φ(t) = exp(−t²) of the scaled distance t, which a step of length r changes by at most √γ r."""

    def __init__(self, gamma: Any, X: Matrix, S: Matrix) -> None:
        root = np.sqrt(np.broadcast_to(np.asarray(gamma, dtype=np.float64), X.shape[1]))
        self.X, self.S = X * root, S * root
        self.steepest = float(root.max(initial=0.0))
        self.distance = cdist(self.X, self.S)
        self.lengths = np.linalg.norm(self.X, axis=1)[:, None] + np.linalg.norm(self.S, axis=1)
        self.size = np.ones_like(self.distance), 2.0 * self.steepest * self.lengths

    def values(self, r: Vector) -> Pair:
        step = (self.steepest * r)[:, None]
        return np.exp(-((self.distance + step) ** 2)), np.exp(-(np.maximum(0.0, self.distance - step) ** 2))

    def curvature(self, r: Vector) -> Pair:
        """φ'' along a unit vector of the scaled space is between −2φ and (4t² − 2)φ, whose maximum is at t² = 3/2."""
        step, peak = (self.steepest * r)[:, None], np.sqrt(1.5)
        near, far = np.maximum(0.0, self.distance - step), self.distance + step
        t = np.clip(peak, near, far)
        high = np.maximum(0.0, 4.0 * t**2 - 2.0) * np.exp(-(t**2))
        return -2.0 * self.steepest**2 * np.exp(-(near**2)), self.steepest**2 * high

    def squared_distance(self, r: Vector) -> Vector:
        return -2.0 * np.expm1(-((self.steepest * r) ** 2))

    def relaxed(self, signed: Matrix, r: Vector, unit: float) -> Vector:
        """Lines that bound exp(a), a = −2⟨δ, x − s⟩, where k(x + δ, s) = k(x, s) exp(a) exp(−|δ|²).

        |a| ≤ R = 2|δ|t. Where a term is positive, the tangent is below exp; where it is negative, the chord from −R to
        R is above. The sum of the lines is linear in δ: its minimum is at −|δ| times the length of its gradient. The
        tangents are first at a = 0, then at the a of that minimum.
        """
        step, t = (self.steepest * r)[:, None], self.distance
        R, positive = 2.0 * step * t, signed > 0
        up, down, fall = np.exp(R - t**2), np.exp(-R - t**2), np.exp(-(step[:, 0] ** 2))
        chord = np.divide(up - down, 2.0 * R, out=np.exp(-(t**2)) * (1.0 + R**2 / 6.0), where=R > 1e-4)
        best, a = np.full(len(r), -np.inf), np.zeros_like(t)
        for _ in range(TANGENTS):
            tangent = np.exp(a - t**2)
            level = signed * np.where(positive, tangent * (1.0 - a), 0.5 * (up + down))
            slope = signed * np.where(positive, tangent, chord)
            gradient = 2.0 * (slope.sum(axis=1)[:, None] * self.X - slope @ self.S)
            length = np.linalg.norm(gradient, axis=1)
            size = np.abs(level).sum(axis=1) + step[:, 0] * (length + 2.0 * (np.abs(slope) * self.lengths).sum(axis=1))
            lowest = level.sum(axis=1) - step[:, 0] * length - unit * size
            best = np.fmax(best, np.minimum(lowest, fall * lowest))
            unit_gradient = gradient / np.maximum(length, 1e-300)[:, None]
            a = -2.0 * step * (np.einsum("ij,ij->i", unit_gradient, self.X)[:, None] - unit_gradient @ self.S.T)
        return best

    def magnitude(self, r: Vector) -> Pair:
        return self.size


class LaplacianBall(Ball):
    """φ(t) = exp(−t) of t = Σ γ_k |x_k − s_k|, which a step of length r changes by at most |γ| r."""

    def __init__(self, gamma: Any, X: Matrix, S: Matrix) -> None:
        widths = np.broadcast_to(np.asarray(gamma, dtype=np.float64), X.shape[1])
        self.steepest = float(np.linalg.norm(widths))
        self.distance = cdist(X * widths, S * widths, "cityblock")

    def values(self, r: Vector) -> Pair:
        step = (self.steepest * r)[:, None]
        return np.exp(-(self.distance + step)), np.exp(-np.maximum(0.0, self.distance - step))

    def squared_distance(self, r: Vector) -> Vector:
        return -2.0 * np.expm1(-self.steepest * r)

    def magnitude(self, r: Vector) -> Pair:
        ones = np.ones_like(self.distance)
        return ones, self.steepest * ones


class PolynomialBall(Ball):
    """(t + c)^p of t = γ⟨x, s⟩, which a step of length r changes by at most r |γs|."""

    def __init__(self, gamma: Any, coef0: float, degree: int, X: Matrix, S: Matrix) -> None:
        scaled = S * np.broadcast_to(np.asarray(gamma, dtype=np.float64), X.shape[1])
        self.inner, self.lengths = X @ scaled.T + coef0, np.linalg.norm(scaled, axis=1)
        self.degree = degree
        self.size = np.linalg.norm(X, axis=1)[:, None] * self.lengths + abs(coef0)
        self.linear_in_x = degree == 1 and np.ndim(gamma) == 0
        self.gamma = float(np.max(gamma))

    def values(self, r: Vector) -> Pair:
        return self._powers(self.degree, r)

    def _powers(self, p: int, r: Vector) -> Pair:
        low, high = self.inner - r[:, None] * self.lengths, self.inner + r[:, None] * self.lengths
        if p % 2 == 1 or p == 0:
            return low**p, high**p
        least = np.where((low < 0) & (high > 0), 0.0, np.minimum(low**p, high**p))
        return least, np.maximum(low**p, high**p)

    def curvature(self, r: Vector) -> Pair:
        """p(p − 1) t^(p−2) ⟨γs, u⟩² for a unit vector u."""
        p = self.degree
        if p < 2:
            zero = np.zeros_like(self.inner)
            return zero, zero
        low, high = self._powers(p - 2, r)
        factor = p * (p - 1) * self.lengths**2
        return factor * np.minimum(low, 0.0), factor * np.maximum(high, 0.0)

    def squared_distance(self, r: Vector) -> Vector:
        return self.gamma * r**2 if self.linear_in_x else super().squared_distance(r)

    def magnitude(self, r: Vector) -> Pair:
        p = max(1, self.degree)
        return p * (self.size + r[:, None] * self.lengths) ** self.degree, p * p * self.size ** (p - 1) * self.lengths


class ConstantBall(Ball):
    """A constant does not change."""

    def __init__(self, value: float, X: Matrix, S: Matrix) -> None:
        self.block = np.full((len(X), len(S)), value)

    def values(self, r: Vector) -> Pair:
        return self.block, self.block

    def curvature(self, r: Vector) -> Pair:
        return np.zeros_like(self.block), np.zeros_like(self.block)

    def squared_distance(self, r: Vector) -> Vector:
        return np.zeros(len(r))

    def magnitude(self, r: Vector) -> Pair:
        return np.abs(self.block), np.zeros_like(self.block)


class SumBall(Ball):
    """factor · (left + right): all bounds add up."""

    def __init__(self, factor: float, *parts: Ball) -> None:
        self.factor, self.parts = factor, parts

    def _added(self, pairs: list[Pair]) -> Pair:
        return self.factor * sum(low for low, _ in pairs), self.factor * sum(high for _, high in pairs)  # type: ignore[return-value]

    def values(self, r: Vector) -> Pair:
        return self._added([part.values(r) for part in self.parts])

    def curvature(self, r: Vector) -> Pair | None:
        found = [part.curvature(r) for part in self.parts]
        known = [pair for pair in found if pair is not None]
        return self._added(known) if len(known) == len(found) else None

    def squared_distance(self, r: Vector) -> Vector:
        return np.asarray(self.factor * np.sum([part.squared_distance(r) for part in self.parts], axis=0))

    def relaxed(self, signed: Matrix, r: Vector, unit: float) -> Vector | None:
        found = self.parts[0].relaxed(signed, r, unit) if len(self.parts) == 1 else None
        return None if found is None else self.factor * found

    def magnitude(self, r: Vector) -> Pair:
        return self._added([part.magnitude(r) for part in self.parts])


class ProductBall(Ball):
    """Interval arithmetic."""

    def __init__(self, left: Ball, right: Ball) -> None:
        self.left, self.right = left, right

    def values(self, r: Vector) -> Pair:
        (a, b), (c, d) = self.left.values(r), self.right.values(r)
        corners = np.stack([a * c, a * d, b * c, b * d])
        return corners.min(axis=0), corners.max(axis=0)

    def magnitude(self, r: Vector) -> Pair:
        (a, da), (b, db) = self.left.magnitude(r), self.right.magnitude(r)
        return a * b, a * db + b * da


@ball.register
def _(kernel: Gaussian, X: Matrix, S: Matrix) -> Ball:
    return GaussianBall(kernel.gamma, X, S)


@ball.register
def _(kernel: Laplacian, X: Matrix, S: Matrix) -> Ball:
    return LaplacianBall(kernel.gamma, X, S)


@ball.register
def _(kernel: Linear, X: Matrix, S: Matrix) -> Ball:
    return PolynomialBall(1.0, 0.0, 1, X, S)


@ball.register
def _(kernel: Polynomial, X: Matrix, S: Matrix) -> Ball:
    return PolynomialBall(kernel.gamma, kernel.coef0, kernel.degree, X, S)


@ball.register
def _(kernel: Constant, X: Matrix, S: Matrix) -> Ball:
    return ConstantBall(kernel.value, X, S)


@ball.register
def _(kernel: Scaled, X: Matrix, S: Matrix) -> Ball:
    if kernel.factor < 0:
        raise InvalidInputError(f"{kernel!r} has a negative factor: robustness supports factors of at least 0.")
    return SumBall(kernel.factor, ball(kernel.kernel, X, S))


@ball.register
def _(kernel: Sum, X: Matrix, S: Matrix) -> Ball:
    return SumBall(1.0, ball(kernel.left, X, S), ball(kernel.right, X, S))


@ball.register
def _(kernel: Product, X: Matrix, S: Matrix) -> Ball:
    return ProductBall(ball(kernel.left, X, S), ball(kernel.right, X, S))


@ball.register
def _(kernel: LearnedKernel, X: Matrix, S: Matrix) -> Ball:
    return ball(kernel.expression(), X, S)
