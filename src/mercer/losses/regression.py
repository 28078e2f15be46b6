"""Losses for regression; y is a number.

    EpsilonInsensitive          max(0, |y − f| − ε)             ε-SVR    [M5] "support vector regression"
    SquaredEpsilonInsensitive   max(0, |y − f| − ε)²
    Squared                     ½ (y − f)²                      kernel ridge, λ = 1/C       [M5], [SSBD] Ex. 16.3
    Huber                       ½ r² up to |r| = δ, then linear  robust regression, r = y − f
    Pinball                     τ(y − f), or (1 − τ)(f − y)     quantile regression
    NuInsensitive               max(0, |y − f| − ε) + ν · ε     ν-SVR

The last is from Schölkopf, Smola, Williamson & Bartlett, Neural Computation 12 (2000), the pinball loss from Koenker &
Bassett, Econometrica 46 (1978), Huber's from the Annals of Mathematical Statistics 35 (1964).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.losses.base import (
    BoxQP,
    Loss,
    Vector,
    check_epsilon,
    check_nu,
    finite_weight,
    half_inverse,
    needs_intercept,
    program,
)
from mercer.losses.thresholds import lowest_linear, lowest_quadratic


@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    """ℓ(y, f) = max(0, |y − f| − ε).   Dual: linear y, l1 ε, box [−C, C]."""

    epsilon: float = 0.1
    name: ClassVar[str] = "epsilon-insensitive loss"
    lipschitz: ClassVar[float] = 1.0
    additive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)

    def value(self, y: Vector, f: Vector) -> Vector:
        """max(0, |y − f| − ε)."""
        return np.maximum(0.0, np.abs(y - f) - self.epsilon)

    def box_qp(self, y: Vector, weight: Vector, intercept: bool) -> BoxQP:
        """Linear y, l1 ε, box [−C, C], Σβ = 0."""
        weight = finite_weight(weight, self, infinite=True)
        return program(y, 0.0 - weight, weight.copy(), intercept, l1=self.epsilon)

    def best_thresholds(self, y: Vector, f: Vector, weight: Vector) -> Vector:
        """The weighted median of the tube's edges, y − f ± ε."""
        residual = y - f
        edges = np.concatenate([residual - self.epsilon, residual + self.epsilon])
        return np.array([lowest_linear(edges, np.tile(weight, 2), -float(weight.sum()))])

    def excess(self, y: Vector, f: Vector, weight: Vector) -> float:
        """The largest |y − f| − ε over samples of infinite weight, which must lie inside the tube."""
        return float(np.max((np.abs(y - f) - self.epsilon)[np.isinf(weight)], initial=0.0))


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(Loss):
    """ℓ(y, f) = max(0, |y − f| − ε)².   Dual: linear y, l1 ε, ridge 1/(2C), no box."""

    epsilon: float = 0.1
    name: ClassVar[str] = "squared epsilon-insensitive loss"
    smoothness: ClassVar[float] = 2.0
    additive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)

    def value(self, y: Vector, f: Vector) -> Vector:
        """max(0, |y − f| − ε)²."""
        return np.maximum(0.0, np.abs(y - f) - self.epsilon) ** 2

    def box_qp(self, y: Vector, weight: Vector, intercept: bool) -> BoxQP:
        """Linear y, l1 ε, ridge 1/(2C), no box, Σβ = 0."""
        weight = finite_weight(weight, self)
        bound = np.where(weight > 0, np.inf, 0.0)
        return program(y, 0.0 - bound, bound, intercept, l1=self.epsilon, ridge=half_inverse(weight))

    def best_thresholds(self, y: Vector, f: Vector, weight: Vector) -> Vector:
        """The b that is the weighted mean of the edges that it violates."""
        residual = y - f
        return np.array([lowest_quadratic(residual - self.epsilon, weight, residual + self.epsilon, weight)])


@dataclass(frozen=True)
class Squared(Loss):
    """ℓ(y, f) = ½ (y − f)².   Dual: linear y, ridge 1/C, no box: (K + 1/C) β = y − b."""

    name: ClassVar[str] = "squared loss"
    smoothness: ClassVar[float] = 1.0

    def value(self, y: Vector, f: Vector) -> Vector:
        """½ (y − f)²."""
        return 0.5 * (y - f) ** 2

    def box_qp(self, y: Vector, weight: Vector, intercept: bool) -> BoxQP:
        """Linear y, ridge 1/C, no box, Σβ = 0."""
        weight = finite_weight(weight, self)
        bound = np.where(weight > 0, np.inf, 0.0)
        return program(y, 0.0 - bound, bound, intercept, ridge=2.0 * half_inverse(weight))

    def best_thresholds(self, y: Vector, f: Vector, weight: Vector) -> Vector:
        """The weighted mean of y − f."""
        total = float(weight.sum())
        return np.array([float(weight @ (y - f)) / total if total > 0 else 0.0])


@dataclass(frozen=True)
class Huber(Loss):
    """ℓ(y, f) = ½ r² if |r| ≤ δ, else δ|r| − ½δ², with r = y − f.   Dual: linear y, ridge 1/C, box [−δC, δC]."""

    delta: float = 1.35
    name: ClassVar[str] = "Huber loss"
    additive: ClassVar[bool] = True
    smoothness: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.delta < np.inf:
            raise InvalidInputError(f"delta={self.delta:g} was given, but delta must be a positive finite number.")

    @property
    def lipschitz(self) -> float:  # type: ignore[override]
        """The largest slope, δ."""
        return self.delta

    def value(self, y: Vector, f: Vector) -> Vector:
        """½ r² for small residuals r, linear for large ones."""
        size = np.abs(y - f)
        near = np.minimum(size, self.delta)
        return near * (size - 0.5 * near)

    def box_qp(self, y: Vector, weight: Vector, intercept: bool) -> BoxQP:
        """Linear y, ridge 1/C, box [−δC, δC], Σβ = 0."""
        weight = finite_weight(weight, self)
        bound = self.delta * weight
        return program(y, 0.0 - bound, bound, intercept, ridge=2.0 * half_inverse(weight))

    def best_thresholds(self, y: Vector, f: Vector, weight: Vector) -> Vector:
        """The b at which the residuals y − f − b, clipped to ±δ, have the weighted mean 0."""
        z, w = (y - f)[weight > 0], weight[weight > 0]
        if len(z) == 0:
            return np.zeros(1)
        edges = np.sort(np.concatenate([z - self.delta, z + self.delta]))
        rounding = 1e-13 * self.delta * float(w.sum())

        def slope(b: float) -> float:
            return float(w @ np.clip(b - z, -self.delta, self.delta))

        def first(above: float) -> int:
            """The first edge at which the slope is larger than ``above``; bisection, since it never falls."""
            low, high = 0, len(edges) - 1
            while low < high:
                middle = (low + high) // 2
                low, high = (low, middle) if slope(edges[middle]) > above else (middle + 1, high)
            return low

        # between two edges the slope is linear; it may be 0 on a whole interval
        start, end = (self._zero(edges, first(above), slope) for above in (-rounding, rounding))
        return np.array([0.5 * (start + end)])

    @staticmethod
    def _zero(edges: Vector, k: int, slope: Callable[[float], float]) -> float:
        """Where the line through the slopes at edge k and the one before it is 0."""
        high = slope(edges[k])
        low = slope(edges[k - 1]) if k else high
        share = np.clip(high / (high - low), 0.0, 1.0) if high > low else 0.0
        return float(edges[k] - share * (edges[k] - edges[max(k - 1, 0)]))


@dataclass(frozen=True)
class Pinball(Loss):
    """ℓ(y, f) = τ(y − f) where y ≥ f, (1 − τ)(f − y) elsewhere.   Dual: linear y, box [(τ − 1)C, τC].

    The constant f of least loss is the τ-quantile of y. An optimal f with an intercept has a share τ of the samples
    below it, not counting those on it.
    """

    quantile: float = 0.5
    name: ClassVar[str] = "pinball loss"

    def __post_init__(self) -> None:
        if not 0 < self.quantile < 1:
            raise InvalidInputError(f"quantile={self.quantile:g} was given, but quantile must be between 0 and 1.")

    @property
    def lipschitz(self) -> float:  # type: ignore[override]
        """The steeper of the two slopes, max(τ, 1 − τ)."""
        return max(self.quantile, 1.0 - self.quantile)

    def value(self, y: Vector, f: Vector) -> Vector:
        """max(τ(y − f), (τ − 1)(y − f))."""
        residual = y - f
        return np.maximum(self.quantile * residual, (self.quantile - 1.0) * residual)

    def box_qp(self, y: Vector, weight: Vector, intercept: bool) -> BoxQP:
        """Linear y, box [(τ − 1)C, τC], Σβ = 0."""
        weight = finite_weight(weight, self, infinite=True)
        return program(y, (self.quantile - 1.0) * weight + 0.0, self.quantile * weight, intercept)

    def best_thresholds(self, y: Vector, f: Vector, weight: Vector) -> Vector:
        """The weighted τ-quantile of y − f."""
        return np.array([lowest_linear(y - f, weight, -self.quantile * float(weight.sum()))])

    def excess(self, y: Vector, f: Vector, weight: Vector) -> float:
        """The largest |y − f| over samples of infinite weight, which f must meet exactly."""
        return float(np.max(np.abs(y - f)[np.isinf(weight)], initial=0.0))


# a deficit of ν-SVR's sums up to this share is rounding, or the tolerance of another solver
SUM_ROUNDING = 1e-6
# distances that agree to this many digits, relative to the largest one, count as equal
TIE_DIGITS = 9
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class NuInsensitive(Loss):
    """ν-SVR: the half width ε of the tube is a variable, and ν bounds the fraction of samples outside of it.

        min over w, b, ε   ½|w|² + ν·W·ε + Σ C max(0, |y − f − b| − ε),     W = Σ C

    Dual: two variables per sample, a in [0, C] (group 0) and c in [−C, 0] (group 1), both with linear y;
    Σa = +νW/2, Σc = −νW/2. Variable v belongs to sample v mod n, whose coefficient is a + c.

    A free a has y − f = b₀, the upper edge of the tube, and a free c has y − f = b₁, the lower edge, so

        ε = (b₀ − b₁)/2,     b = (b₀ + b₁)/2
    """

    nu: float = 0.5
    name: ClassVar[str] = "nu-SVR loss"
    lipschitz: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        check_nu(self.nu)

    def value(self, y: Vector, f: Vector, epsilon: float = 0.0) -> Vector:
        """max(0, |y − f| − ε)."""
        return np.maximum(0.0, np.abs(y - f) - epsilon)

    def box_qp(self, y: Vector, weight: Vector, intercept: bool) -> BoxQP:
        """Linear y twice, boxes [0, C] and [−C, 0], one sum for each."""
        needs_intercept(intercept, self)
        weight = finite_weight(weight, self)
        n = len(y)
        total = 0.5 * self.nu * float(weight.sum())
        return BoxQP(
            linear=np.tile(np.asarray(y, dtype=np.float64), 2),
            l1=np.zeros(2 * n),
            ridge=np.zeros(2 * n),
            lower=np.concatenate([np.zeros(n), 0.0 - weight]),
            upper=np.concatenate([weight, np.zeros(n)]),
            group=np.repeat(np.array([0, 1], dtype=np.int8), n),
            sums=np.array([total, -total]),
            sample=np.tile(np.arange(n), 2),
        )

    def best_thresholds(self, y: Vector, f: Vector, weight: Vector) -> Vector:
        """(b₀, b₁): the 1 − ν/2 and the ν/2 quantile of y − f."""
        total = float(weight.sum())
        half = 0.5 * self.nu * total
        residual = y - f
        return np.array([lowest_linear(residual, weight, half - total), lowest_linear(residual, weight, -half)])

    def primal(
        self, squared_norm: float, y: Vector, f: Vector, weight: Vector, thresholds: Vector, sums: Vector
    ) -> float:
        """½|w|² + νW·ε + Σ C max(0, |y − f − b| − ε), with ε = 0 if the two edges have crossed."""
        epsilon, b = tube(thresholds)
        paid = weight @ self.value(y, f + b, epsilon)
        return float(0.5 * squared_norm + (sums[0] - sums[1]) * epsilon + paid)

    def restored(self, beta: Vector, y: Vector, f: Vector, weight: Vector) -> Vector:
        """(a, c) with a ≥ 0, c ≤ 0, the same a + c and, if possible, the sums that ν requires.

        A model stores only a + c. If a sample has both a > 0 and c < 0 (in a very narrow tube), the common part is not
        stored, and the dual value does not depend on it. To reach the required sums, it is added to the samples where
        it violates the optimality conditions least: where the larger of m − s and s − M is smallest. Here s = y − f, m
        is the largest s of the a that may grow, and M is the smallest s of the c that may shrink.
        """
        n = len(y)
        net = beta if len(beta) == n else beta[:n] + beta[n:]
        a, c = np.maximum(net, 0.0), np.minimum(net, 0.0)
        total = 0.5 * self.nu * float(weight.sum())
        missing = total - max(float(a.sum()), -float(c.sum()))
        if missing > SUM_ROUNDING * total:
            s = y - f
            middle = 0.5 * (s[a < weight].max(initial=-np.inf) + s[c > -weight].min(initial=np.inf))
            away = np.abs(s - middle)
            # the two samples around the middle are equally far from it: rounding must not decide between them
            order = np.argsort(np.round(away / max(float(away.max()), TINY), TIE_DIGITS), kind="stable")
            room = np.maximum(weight - np.abs(net), 0.0)[order]
            extra = np.clip(missing - np.append(0.0, np.cumsum(room)[:-1]), 0.0, room)
            a[order] += extra
            c[order] -= extra
        elif len(beta) > n:
            return beta
        return np.concatenate([a, c])


def tube(thresholds: Vector) -> tuple[float, float]:
    """(ε, b) of ν-SVR from the thresholds (b₀, b₁) of the tube's upper and lower edge; ε is at least 0."""
    upper, lower = thresholds
    return max(0.0, float(0.5 * (upper - lower))), float(0.5 * (upper + lower))


def regression_loss(machine: Any) -> Loss:
    """The loss given by ``loss``, ``epsilon``, ``quantile`` and ``C``; scikit-learn's SVR has no ``loss``."""
    kind = getattr(machine, "loss", "epsilon_insensitive")
    if kind == "pinball":
        return Pinball(float(machine.quantile))
    # with C = inf no sample may leave the tube, so both losses give the same problem
    if kind == "squared_epsilon_insensitive" and np.isfinite(machine.C):
        return SquaredEpsilonInsensitive(float(machine.epsilon))
    return EpsilonInsensitive(float(machine.epsilon))
