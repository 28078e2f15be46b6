"""Radii within which a decision function keeps its sign, with a proof.

Let s be the sign of f(x), and g = s f. Each of these is a lower bound on g(z) for all |z − x| ≤ r:

    values      Σ sβᵢ · (the smallest k(z, xᵢ) if sβᵢ > 0, else the largest) + s b
    lines       for Gaussian kernels the same, with lines in z − x that bound each exponential function
    Taylor      g(x) − |∇f(x)| r − ½ r² · (a bound on the negative curvature of g in the ball)
    space       g(x) − |f|_H · (the largest distance of the images of z and x in feature space)

All decrease with r; the largest r at which one of them is positive is certified. The bounds hold for real numbers; a
margin for rounding errors is subtracted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.explanation.robust.kernel_balls import Ball, Pair, ball
from mercer.gram.operator import product
from mercer.kernels import Kernel
from mercer.kernels.features import Matrix, Vector

Mask = NDArray[np.bool_]

EPS = float(np.finfo(np.float64).eps)
# kernel values of a batch of rows
VALUES = 1 << 20
BISECTIONS, DOUBLINGS = 45, 70
# the certified radius is shortened by this part: rounding of distances and of the radius itself
SHORTER = 1e-10


class Decision(NamedTuple):
    """One decision function f = Σ βᵢ k(sᵢ, ·) + b with its support vectors, and |f|_H without b."""

    kernel: Kernel
    points: Matrix
    beta: Vector
    intercept: float
    norm: float

    @classmethod
    def of(cls, kernel: Kernel, points: Matrix, beta: Vector, intercept: float) -> Decision:
        """Leave out points with β = 0."""
        used = np.flatnonzero(beta)
        points, beta = np.ascontiguousarray(points[used]), beta[used]
        if len(used) == 0:
            return cls(kernel, points, beta, intercept, 0.0)
        features = kernel.prepare(points, np.float64)
        square = float(beta @ product(kernel, features, features, beta))
        # rounded up: the square of a small norm may be lost in the rounding of its terms
        slack = 10 * EPS * len(used) * float(np.abs(beta).sum()) ** 2 * float(np.abs(kernel.diagonal(features)).max())
        return cls(kernel, points, beta, intercept, float(np.sqrt(max(0.0, square) + slack)))

    def gradients(self, X: Matrix) -> Matrix:
        """∇f(x) of each row."""
        if len(self.beta) == 0:
            return np.zeros(X.shape)
        return self.kernel.sample_gradients(X, self.points, np.tile(self.beta, (len(X), 1)))


def certified_radii(f: Decision, X: Matrix) -> Vector:
    """A radius for each row within which f keeps its sign; 0 if rounding leaves the sign in doubt."""
    step = max(1, VALUES // max(1, len(f.beta)))
    parts = [_radii(f, X[start : start + step]) for start in range(0, len(X), step)]
    return np.concatenate([np.empty(0), *parts])


def _radii(f: Decision, X: Matrix) -> Vector:
    if len(f.beta) == 0:
        return np.full(len(X), np.inf if f.intercept != 0 else 0.0)
    bound = _Bound(f, X)
    low, high = np.zeros(len(X)), bound.first_guess()
    # an upper end at which the proof fails
    for _ in range(DOUBLINGS):
        proved = bound.positive(high)
        if not proved.any():
            break
        low, high = np.where(proved, high, low), np.where(proved, 2.0 * high, high)
    # a proof for a ball that contains all points by far; distances of rows at 1e200 overflow, and prove nothing
    with np.errstate(over="ignore"):
        reach = np.linalg.norm(X, axis=1) + np.linalg.norm(f.points, axis=1).max()
    everywhere = bound.positive(high) & (high >= 2.0 * reach)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        proved = bound.positive(middle)
        low, high = np.where(proved, middle, low), np.where(proved, high, middle)
    return np.where(everywhere, np.inf, (1.0 - SHORTER) * low)


class _Bound:
    """The best of the lower bounds on s f in balls around some rows."""

    def __init__(self, f: Decision, X: Matrix) -> None:
        self.f = f
        self.ball: Ball = ball(f.kernel, X, f.points)
        # the relative error of a sum over the points, whose terms have the error of a sum over the features
        self.unit = 4.0 * EPS * (len(f.beta) + X.shape[1] + 64)
        at_x = np.zeros(len(X))
        # from the distances and inner products of the ball, which do not suffer from cancellation
        values = self.ball.values(at_x)[0] @ f.beta + f.intercept
        self.sign, self.here = np.where(values >= 0, 1.0, -1.0), np.abs(values)
        self.signed = np.outer(self.sign, f.beta)
        self.rounding = self._rounding(at_x)
        self.slope = np.linalg.norm(f.gradients(X), axis=1)
        self.slope += self.unit * (self.slope + self.ball.magnitude(at_x)[1] @ np.abs(f.beta))

    def _rounding(self, r: Vector) -> Vector:
        return np.asarray(self.unit * (self.ball.magnitude(r)[0] @ np.abs(self.f.beta) + abs(self.f.intercept)))

    def first_guess(self) -> Vector:
        """Where the tangent plane is zero."""
        return np.clip(self.here / np.maximum(self.slope, 1e-300), 1e-12, 1e12)

    def positive(self, r: Vector) -> Mask:
        """Whether one of the bounds proves that f keeps its sign within r."""
        with np.errstate(over="ignore", invalid="ignore"):
            moved = self.f.norm * np.sqrt(np.maximum(0.0, self.ball.squared_distance(r)))
            found = self.here - (1.0 + SHORTER) * moved > self.rounding
            low, high = self.ball.values(r)
            found |= _worst(self.signed, low, high) + self.sign * self.f.intercept > self._rounding(r)
            relaxed = self.ball.relaxed(self.signed, r, self.unit)
            if relaxed is not None:
                found |= relaxed + self.sign * self.f.intercept > self.rounding
            curvature = self.ball.curvature(r)
            if curvature is not None:
                found |= self.here - self.slope * r - 0.5 * r**2 * self._bent(curvature) > self.rounding
        return np.asarray(found)

    def _bent(self, curvature: Pair) -> Vector:
        """A bound on the negative curvature of s f."""
        return np.asarray((1.0 + SHORTER) * np.maximum(0.0, -_worst(self.signed, *curvature)))


def _worst(signed: Matrix, low: Matrix, high: Matrix) -> Vector:
    """The smallest Σ signedᵢ tᵢ for low ≤ t ≤ high."""
    return np.asarray(np.where(signed > 0, signed * low, signed * high).sum(axis=1))


def voted_radii(radii: Matrix, values: Matrix, pairs: list[tuple[int, int]], label: Vector, first_wins: bool) -> Vector:
    """The radius within which the votes of pairs of classes keep their winner, the class ``label`` of each row.

    Within r only the pairs with a certified radius below r may flip. The winner keeps its place if its certain votes
    exceed the votes that each other class may get. ``first_wins``: at a tie the first class wins; else any may.
    """
    first, second = np.array(pairs).T
    n_classes = int(second.max()) + 1
    out = np.full(len(radii), np.inf)
    for row, y in enumerate(label.tolist()):
        winner = np.where(values[row] > 0, first, second)
        certain = np.bincount(winner, minlength=n_classes)
        possible = certain.copy()
        # classes that win a tie with y
        before = np.arange(n_classes) < y if first_wins else np.ones(n_classes, np.bool_)
        before[y] = False
        reached = 0.0
        for p in [-1, *np.argsort(radii[row], kind="stable").tolist()]:
            if p >= 0:
                reached = float(radii[row, p])
                certain[winner[p]] -= 1
                possible[first[p] + second[p] - winner[p]] += 1
            rivals = np.where(np.arange(n_classes) == y, -1, possible)
            if np.any(rivals + before > certain[y]):
                out[row] = reached
                break
    return out
