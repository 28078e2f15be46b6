"""Minimise the largest of several cuts over the weights of kernels, near given weights.

    min over η, t of  t + ½(η − centre)'W(η − centre)     s.t.  a_j − ½ S_j'η ≤ t for each cut j,  η ≥ 0,  |η|_p ≤ 1

by a primal-dual interior-point method with Mehrotra's correction, in one variable per kernel. The constraint on the
norm has its own slack, so that intermediate points need not satisfy it exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from mercer.kernels.features import Matrix, Vector
from mercer.mkl.mkl_problem import ball_norm

# the sum of all complementary products, in units of the values of the cuts
TOL = 1e-10
MAX_ITER = 80
# share of the way to the boundary that a step may go
FRACTION = 0.995
# if the optimality conditions fail by more than this many times the products, a step reduces their error first
LAGGING = 10.0


class Lowest(NamedTuple):
    """Weights of norm 1 at most, and a multiplier for each cut; the multipliers sum to 1."""

    weights: Vector
    multipliers: Vector


class _Point(NamedTuple):
    """Variables and multipliers: η, t, the slacks of cuts and norm; λ of the cuts, z of η ≥ 0, s of the norm."""

    eta: Vector
    t: Vector
    cuts: Vector
    ball: Vector
    lam: Vector
    z: Vector
    s: Vector

    @property
    def products(self) -> float:
        """The sum of all complementary products, 0 at the optimum."""
        return float(self.lam @ self.cuts + self.z @ self.eta + self.s @ self.ball)

    def longest(self, step: _Point) -> float:
        """How far a step can be taken with all numbers but t staying positive."""
        length = 1.0
        for name in ("eta", "cuts", "ball", "lam", "z", "s"):
            value, change = getattr(self, name), getattr(step, name)
            falling = change < 0
            if falling.any():
                length = min(length, FRACTION * float(np.min(value[falling] / -change[falling])))
        return length

    def moved(self, step: _Point, length: float) -> _Point:
        """The point after a part of the step."""
        return _Point(*(value + length * change for value, change in zip(self, step, strict=True)))


def lowest_weights(a: Vector, S: Matrix, p: float, centre: Vector, W: Matrix) -> Lowest:
    """Solve the problem above, for values of about 1. If rounding ends the search early, return its last point."""
    n_cuts, n_kernels = S.shape
    slope = 0.5 * S
    eta = centre + 0.1 * n_kernels ** (-1.0 / p)
    eta *= 0.9 / ball_norm(eta, p)
    t = float((a - slope @ eta).max()) + 0.1
    ball = np.array([1.0 - ball_norm(eta, p)])
    start = 0.1
    at = _Point(eta, np.array([t]), t - a + slope @ eta, ball, np.full(n_cuts, 1.0 / n_cuts), start / eta, start / ball)
    for _ in range(MAX_ITER):
        newton = _Newton(at, p, slope, W @ (at.eta - centre), W)
        if at.products <= TOL and newton.error <= 1e3 * TOL:
            break
        try:
            newton.factor()
            step = newton.step(0.0)
            length = at.longest(step)
            left = at.moved(step, length).products / at.products
            lagging = newton.error > LAGGING * at.products
            step = newton.step(1.0) if lagging else newton.step(max(left, 0.0) ** 3, step)
        except (linalg.LinAlgError, ValueError):
            break
        moved = at.moved(step, at.longest(step))
        if not all(np.isfinite(part).all() for part in moved):
            break
        at = moved
    weights = np.maximum(at.eta, 0.0)
    return Lowest(weights / max(1.0, ball_norm(weights, p)), at.lam / at.lam.sum())


class _Newton:
    """The linearised conditions at one point."""

    def __init__(self, at: _Point, p: float, slope: Matrix, pull: Vector, W: Matrix) -> None:
        self.at, self.p, self.slope, self.W = at, p, slope, W
        self.norm = ball_norm(at.eta, p)
        self.normal = -((at.eta / self.norm) ** (p - 1.0))
        self.off_ball = 1.0 - self.norm - at.ball
        self.gradient = pull - slope.T @ at.lam - at.z - at.s * self.normal
        self.off_sum = 1.0 - at.lam.sum()
        self.error = max(float(np.abs(self.gradient).max()), abs(self.off_sum), abs(float(self.off_ball[0])))

    def factor(self) -> None:
        """Eliminate the slacks and factor the remaining system, scaled to a unit diagonal."""
        at, n = self.at, len(self.at.eta)
        # the norm's second derivative is (p − 1)/|η| times diag(u^(p−2)) − u^(p−1) u^(p−1)', u = η/|η|
        bend = at.s * (self.p - 1.0) / self.norm
        curved = at.z / at.eta
        if self.p > 1:
            curved += bend * (at.eta / self.norm) ** (self.p - 2.0)
        self.stiff = at.lam / at.cuts
        matrix = np.empty((n + 1, n + 1))
        matrix[:n, :n] = self.W + self.slope.T @ (self.stiff[:, None] * self.slope)
        matrix[:n, :n] += (at.s / at.ball - bend) * np.outer(self.normal, self.normal)
        matrix[np.arange(n), np.arange(n)] += curved
        matrix[:n, n] = matrix[n, :n] = self.slope.T @ self.stiff
        matrix[n, n] = self.stiff.sum()
        self.unit = 1.0 / np.sqrt(np.diagonal(matrix))
        matrix *= self.unit * self.unit[:, None]
        matrix[np.arange(n + 1), np.arange(n + 1)] += 1e-13
        self.factored = linalg.cho_factor(matrix, lower=True, overwrite_a=True)

    def step(self, centring: float, predicted: _Point | None = None) -> _Point:
        """The step to products of ``centring`` times their mean, with second-order terms of a predicted step."""
        at = self.at
        goal = centring * at.products / (len(at.lam) + len(at.z) + 1)
        lam, z, s = (goal / slack - own for slack, own in ((at.cuts, at.lam), (at.eta, at.z), (at.ball, at.s)))
        if predicted is not None:
            lam = lam - predicted.lam * predicted.cuts / at.cuts
            z = z - predicted.z * predicted.eta / at.eta
            s = s - predicted.s * predicted.ball / at.ball
        pushed = s - at.s / at.ball * self.off_ball
        right = np.append(-self.gradient + self.slope.T @ lam + z + self.normal * pushed, lam.sum() - self.off_sum)
        x = self.unit * linalg.cho_solve(self.factored, self.unit * right)
        eta, t = x[:-1], x[-1:]
        cuts = t + self.slope @ eta
        ball = self.normal @ eta + self.off_ball
        return _Point(eta, t, cuts, ball, lam - self.stiff * cuts, z - at.z / at.eta * eta, s - at.s / at.ball * ball)
