"""Smooth sums of losses, as Newton's method needs them: value, gradient and curvature at decision values f.

f has a row for each sample and a column for each function: one, or one for each class of the softmax. The curvature of
a sample is a number, or a positive semidefinite matrix over the classes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from mercer.erm.convex_losses import called
from mercer.kernels.features import Matrix, Vector

EPS = float(np.finfo(np.float64).eps)
# the sum of the gradients over all samples counts as 0 up to this share of the sum of their absolute values
BALANCED = 1e-14
# most steps of a search for the intercept
SEARCH = 200
# a search for the intercept does not go further than this
FURTHEST = 1e12
# halvings of an interval until its ends are neighbours in float64
HALVINGS = 64


class Curved(Protocol):
    """Second derivatives W of a sum."""

    def apply(self, V: Matrix) -> Matrix:
        """W V."""

    def total(self) -> Matrix:
        """The sum of all matrices."""

    def within(self, L: Matrix) -> Matrix:
        """L'WL, for one function."""


class Curvature(NamedTuple):
    """The second derivatives of a sum: ``weights`` for one function; ``weights`` and ``shares`` p for the softmax.

    The matrix of sample i is wᵢ, or wᵢ (diag(pᵢ) − pᵢpᵢ').
    """

    weights: Vector
    shares: Matrix | None = None

    def apply(self, V: Matrix) -> Matrix:
        """W V: the matrix of each sample times its row of V."""
        if self.shares is None:
            return self.weights[:, None] * V
        V = self.shares * V
        return self.weights[:, None] * (V - self.shares * V.sum(axis=1, keepdims=True))

    def total(self) -> Matrix:
        """The sum of all matrices."""
        if self.shares is None:
            return np.array([[self.weights.sum()]])
        weighted = self.weights[:, None] * self.shares
        return np.diag(weighted.sum(axis=0)) - self.shares.T @ weighted

    def within(self, L: Matrix) -> Matrix:
        """L'WL, for one function."""
        scaled = np.sqrt(self.weights)[:, None] * L
        return scaled.T @ scaled


class SmoothSum(ABC):
    """Σ weight · loss as a function of the decision values."""

    n: int
    n_functions: int = 1

    @abstractmethod
    def evaluate(self, f: Matrix, far: bool = False) -> tuple[float, Matrix]:
        """The value and the gradient with respect to f; if f is ``far`` away, they may be infinite."""

    @abstractmethod
    def curvature(self, f: Matrix) -> Curved:
        """The second derivatives."""

    @abstractmethod
    def best_intercept(self, F: Matrix, start: Vector) -> Vector:
        """The b that minimises the sum at F + b, so that the gradients of all samples add up to 0."""


class OneFunction(SmoothSum):
    """Σ weight · ℓ(y, f) for a loss with two derivatives."""

    def __init__(self, loss: Any, y: Vector, weight: Vector) -> None:
        self.loss, self.y, self.weight = loss, y, weight
        self.n = len(y)

    def evaluate(self, f: Matrix, far: bool = False) -> tuple[float, Matrix]:
        t = f[:, 0]
        value = float(self.weight @ called(self.loss, "value", self.y, t, far))
        return value, (self.weight * called(self.loss, "derivative", self.y, t, far))[:, None]

    def curvature(self, f: Matrix) -> Curvature:
        second = called(self.loss, "second_derivative", self.y, f[:, 0])
        return Curvature(self.weight * np.maximum(second, 0.0))

    def best_intercept(self, F: Matrix, start: Vector) -> Vector:
        def slope(b: float) -> tuple[float, float]:
            gradient = self.evaluate(F + b, far=True)[1]
            total, size = float(gradient.sum()), float(np.abs(gradient).sum())
            if np.isnan(total):  # ∞ − ∞: raise the error that names the value
                self.evaluate(F + b)
            return total, BALANCED * size if np.isfinite(size) else 0.0

        def steepness(b: float) -> float:
            return float(self.curvature(F + b).weights.sum())

        return np.array([zero_of(slope, float(start[0]), steepness)])


class Softmax(SmoothSum):
    """Σ weight · (log Σ_c exp(f_c) − f_y): minus the log-likelihood of P(y = c) = exp(f_c) / Σ exp(f)."""

    def __init__(self, codes: Vector, n_functions: int, weight: Vector) -> None:
        self.codes, self.weight = codes, weight
        self.n, self.n_functions = len(codes), n_functions
        self._rows = np.arange(self.n)

    def evaluate(self, f: Matrix, far: bool = False) -> tuple[float, Matrix]:
        top = f.max(axis=1)
        shares = np.exp(f - top[:, None])
        total = shares.sum(axis=1)
        own = f[self._rows, self.codes]
        shares *= (self.weight / total)[:, None]
        # p − 1 of the own class is minus the sum of the others, which is exact where p is nearly 1
        shares[self._rows, self.codes] = 0.0
        shares[self._rows, self.codes] = -shares.sum(axis=1)
        return float(self.weight @ (top - own + np.log(total))), shares

    def curvature(self, f: Matrix) -> Curvature:
        return Curvature(self.weight, probabilities(f))

    def best_intercept(self, F: Matrix, start: Vector) -> Vector:
        """Newton's method over the classes; a constant added to all of them changes nothing, so their mean stays 0."""
        b, size = start, float(self.weight.sum())
        value, gradient = self.evaluate(F + b)
        for _ in range(SEARCH):
            slope = gradient.sum(axis=0)
            if np.abs(slope).max() <= BALANCED * np.abs(gradient).sum():
                break
            curvature = self.curvature(F + b).total()
            # the mean of the classes, and classes with probabilities that are 0 to rounding, have no curvature
            curvature += size / len(b) + EPS * size * np.eye(len(b))
            step = np.linalg.solve(curvature, -slope)
            length, fall, before = 1.0, float(slope @ step), np.abs(slope).max()
            while length >= EPS:
                found, gradient = self.evaluate(F + (b + length * step))
                # within the rounding of the value only the gradient tells
                same = abs(found - value) <= 64 * EPS * abs(value)
                if np.abs(gradient.sum(axis=0)).max() < 0.5 * before if same else found <= value + 1e-4 * length * fall:
                    break
                length *= 0.5
            else:
                break
            b, value = b + length * step, found
        return b - b.mean()

    def conjugate(self, beta: Matrix) -> float:
        """Σ C ℓ*(−β/C) = Σ C Σ_c p log p with p = onehot(y) − β/C, ∞ unless p is a distribution."""
        p = -beta / self.weight[:, None]
        p[self._rows, self.codes] += 1.0
        rounding = 64.0 * EPS * len(p.T)
        if (p < -rounding).any() or (np.abs(p.sum(axis=1) - 1.0) > rounding).any():
            return float("inf")
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(p > 0, p * np.log(p), 0.0)
        return float(self.weight @ terms.sum(axis=1))


class Proximal(SmoothSum):
    """The smooth sum of one step of the method of multipliers, for a loss whose derivative may jump.

        φ(t) = min over z of  C ℓ(z) + λ(t − z) + (t − z)²/(2μ),      φ'(t) = λ + (t − z)/μ = C ℓ'(z)

    z is found by halving an interval, from the derivative alone: μCℓ'(z) + z rises. Its derivative is a difference.
    """

    def __init__(self, loss: Any, y: Vector, weight: Vector, multiplier: Vector, mu: Vector) -> None:
        self.loss, self.y, self.weight = loss, y, weight
        self.multiplier, self.mu = multiplier, mu
        self.n = len(y)

    def nearest(self, t: Vector) -> tuple[Vector, Vector]:
        """The z of each sample, the proximal point of s = t + μλ, and the slope C ℓ'(z) = (s − z)/μ there."""
        s = t + self.mu * self.multiplier
        scale, derivative = self.mu * self.weight, self.loss.derivative
        step = scale * called(self.loss, "derivative", self.y, s, far=True)
        # ℓ' falls towards 0 from s to s − μCℓ'(s), so that the root is between them. That may be far away: begin nearby
        side, furthest = np.sign(step), np.abs(step)
        width = np.minimum(furthest, 1.0 + np.abs(s))
        for _ in range(SEARCH):
            with np.errstate(over="ignore"):
                z = s - side * width
                short = (width < furthest) & (side * (z + scale * derivative(self.y, z) - s) > 0)
            if not short.any():
                break
            width[short] = np.minimum(furthest, 2.0 * width)[short]
        low, high = np.minimum(s, s - side * width), np.maximum(s, s - side * width)
        below, above = np.full(len(t), -np.inf), np.full(len(t), np.inf)
        for _ in range(HALVINGS):
            z = 0.5 * (low + high)
            with np.errstate(over="ignore"):
                slope = derivative(self.y, z)
            over = z + scale * slope > s
            np.copyto(high, z, where=over)
            np.copyto(above, slope, where=over)
            np.logical_not(over, out=over)
            np.copyto(low, z, where=over)
            np.copyto(below, slope, where=over)
            if (high - low <= EPS * np.abs(z)).all():
                break
        z = 0.5 * (low + high)
        # the slope lies between those at both ends, which rounding of the quotient might leave
        return z, self.weight * np.clip((s - z) / scale, below, above)

    def evaluate(self, f: Matrix, far: bool = False) -> tuple[float, Matrix]:
        t = f[:, 0]
        z, slope = self.nearest(t)
        away = t - z
        value = self.weight @ called(self.loss, "value", self.y, z) + self.multiplier @ away
        return float(value + 0.5 * np.sum(away**2 / self.mu)), slope[:, None]

    def curvature(self, f: Matrix) -> Curvature:
        t = f[:, 0]
        width = 1e-7 * (1.0 + np.abs(t))
        risen = self.nearest(t + width)[1] - self.nearest(t - width)[1]
        return Curvature(np.clip(risen / (2.0 * width), 0.0, 1.0 / self.mu))

    def best_intercept(self, F: Matrix, start: Vector) -> Vector:
        def slope(b: float) -> tuple[float, float]:
            gradient = self.nearest(F[:, 0] + b)[1]
            # slopes are quotients of differences
            rounding = EPS * float(np.sum((1.0 + np.abs(F[:, 0])) / self.mu))
            return float(gradient.sum()), max(BALANCED * float(np.abs(gradient).sum()), rounding)

        def steepness(b: float) -> float:
            return float(self.curvature(F + b).weights.sum())

        return np.array([zero_of(slope, float(start[0]), steepness)])


def zero_of(
    slope: Callable[[float], tuple[float, float]], start: float, steepness: Callable[[float], float] | None = None
) -> float:
    """A zero of a function that never falls: secants in an interval, halved every third step.

    ``slope`` gives its value and what counts as 0 there. ``steepness`` is the derivative, if it is known, for the first
    step. Without a zero the end of the search is far away.
    """
    (here, goal), b, low, high, reach = slope(start), start, -np.inf, np.inf, 1.0
    rate = steepness(start) if steepness is not None and goal < abs(here) < np.inf else 0.0
    for step in range(1, SEARCH):
        if abs(here) <= goal or reach > FURTHEST:
            break
        low, high = (low, b) if here > 0 else (b, high)
        guess = b - here / rate if rate > 0 else np.nan
        if not (np.isfinite(low) and np.isfinite(high)):
            # no interval yet: a little beyond the guess, and at most twice as far each time
            away = 1.1 * abs(guess - b)
            following, reach = b - np.sign(here) * (away if away < reach else reach), 2.0 * reach
        elif high - low <= 2.0 * EPS * max(abs(low), abs(high)):
            break
        else:
            following = guess if low < guess < high and step % 3 else 0.5 * (low + high)
        before, last, b = b, here, float(following)
        here, goal = slope(b)
        rate = (here - last) / (b - before) if b != before else 0.0
    return b


def probabilities(f: Matrix) -> Matrix:
    """The softmax of each row."""
    shares = np.exp(f - f.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return shares
