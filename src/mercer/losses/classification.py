"""Losses for two-class classification; y is ±1.

    Hinge          max(0, 1 − yf)                       C-SVC            [SSBD] (15.5), [M5] "soft margin"
    SquaredHinge   max(0, 1 − yf)²                      L2-SVM
    GivenUpHinge   max(0, yf − 1) for some samples      ramp loss        [SSBD] 15.2.3
    HardMargin     0 if yf ≥ 1, else ∞                  hard margin      [SSBD] (15.2), [D6] Alg. 13
    NuHinge        max(0, margin − yf) − ν · margin     ν-SVC

The last is from Schölkopf, Smola, Williamson & Bartlett, Neural Computation 12 (2000).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mercer.exceptions import InfeasibleNuError
from mercer.losses.base import (
    BoxQP,
    Loss,
    Published,
    Vector,
    check_nu,
    finite_weight,
    half_inverse,
    needs_intercept,
    program,
    signed_box,
)
from mercer.losses.thresholds import lowest_linear, lowest_quadratic


@dataclass(frozen=True)
class Hinge(Loss):
    """ℓ(y, f) = max(0, 1 − yf).   Dual: linear y, box [0, C]·y."""

    name: ClassVar[str] = "hinge loss"
    lipschitz: ClassVar[float] = 1.0
    additive: ClassVar[bool] = True
    one_by_one: ClassVar[bool] = True

    def value(self, y: Vector, f: Vector) -> Vector:
        """max(0, 1 − yf)."""
        value = np.asarray(np.multiply(y, f, dtype=np.float64))
        np.subtract(1.0, value, out=value)
        return np.maximum(0.0, value, out=value)

    def box_qp(self, y: Vector, weight: Vector, intercept: bool) -> BoxQP:
        """Linear y, box [0, C]·y, Σβ = 0."""
        lower, upper = signed_box(y, finite_weight(weight, self))
        return program(y, lower, upper, intercept)

    def best_thresholds(self, y: Vector, f: Vector, weight: Vector) -> Vector:
        """A weighted quantile of y − f."""
        return np.array([lowest_linear(y - f, weight, -float(weight[y > 0].sum()))])


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """ℓ(y, f) = max(0, 1 − yf)².   Dual: linear y, ridge 1/(2C), box [0, ∞)·y."""

    name: ClassVar[str] = "squared hinge loss"
    smoothness: ClassVar[float] = 2.0
    additive: ClassVar[bool] = True
    one_by_one: ClassVar[bool] = True

    def value(self, y: Vector, f: Vector) -> Vector:
        """max(0, 1 − yf)²."""
        return np.maximum(0.0, 1.0 - y * f) ** 2

    def box_qp(self, y: Vector, weight: Vector, intercept: bool) -> BoxQP:
        """Linear y, ridge 1/(2C), box [0, ∞)·y, Σβ = 0."""
        weight = finite_weight(weight, self)
        lower, upper = signed_box(y, np.where(weight > 0, np.inf, 0.0))
        return program(y, lower, upper, intercept, ridge=half_inverse(weight))

    def best_thresholds(self, y: Vector, f: Vector, weight: Vector) -> Vector:
        """The mean of y − f over the samples inside the margin that it implies."""
        positive, z = y > 0, y - f
        return np.array([lowest_quadratic(z[positive], weight[positive], z[~positive], weight[~positive])])


@dataclass(frozen=True)
class GivenUpHinge(Loss):
    """The hinge loss with some samples given up: these pay for yf > 1. Their label is ±2 instead of ±1.

        ℓ(y, f) = max(0, 1 − yf) if |y| = 1,     max(0, sign(y) f − 1) if |y| = 2

    Dual: linear sign(y), box [0, C]·y, or [−C, 0]·sign(y) for a sample that is given up. Up to a constant, it is the
    upper bound on the ramp loss min(c, max(0, 1 − yf)) in which a tangent replaces the concave part: see `RampSVC`.
    """

    name: ClassVar[str] = "hinge loss with samples given up"
    lipschitz: ClassVar[float] = 1.0

    def value(self, y: Vector, f: Vector) -> Vector:
        """max(0, 1 − yf), or max(0, sign(y) f − 1) where |y| = 2."""
        shortfall = 1.0 - np.sign(y) * f
        return np.maximum(0.0, np.where(np.abs(y) > 1.0, -shortfall, shortfall))

    def box_qp(self, y: Vector, weight: Vector, intercept: bool) -> BoxQP:
        """Linear sign(y), box [0, C]·y or [−C, 0]·sign(y), Σβ = 0."""
        sign = np.sign(y)
        lower, upper = signed_box(np.where(np.abs(y) > 1.0, -sign, sign), finite_weight(weight, self))
        return program(sign, lower, upper, intercept)

    def best_thresholds(self, y: Vector, f: Vector, weight: Vector) -> Vector:
        """A weighted quantile of sign(y) − f."""
        sign = np.sign(y)
        falling = np.where(np.abs(y) > 1.0, -sign, sign) > 0
        return np.array([lowest_linear(sign - f, weight, -float(weight[falling].sum()))])


@dataclass(frozen=True)
class HardMargin(Loss):
    """ℓ(y, f) = 0 if yf ≥ 1, else ∞.   Dual: linear y, box [0, ∞)·y.

    All weights other than 0 are equivalent. The primal is infinite for a model that misses yf ≥ 1 by rounding, as every
    approximate solution does. Therefore `primal` evaluates the model scaled up until it is feasible, which describes
    the same hyperplane.
    """

    name: ClassVar[str] = "hard margin"

    def value(self, y: Vector, f: Vector) -> Vector:
        """0 if yf ≥ 1, else ∞."""
        return np.where(y * f >= 1.0, 0.0, np.inf)

    def box_qp(self, y: Vector, weight: Vector, intercept: bool) -> BoxQP:
        """Linear y, box [0, ∞)·y, Σβ = 0."""
        lower, upper = signed_box(y, np.where(np.asarray(weight) > 0, np.inf, 0.0))
        return program(y, lower, upper, intercept)

    def best_thresholds(self, y: Vector, f: Vector, weight: Vector) -> Vector:
        """The threshold that maximises the smallest margin: halfway between the two classes."""
        positive, negative = f[(y > 0) & (weight > 0)], f[(y < 0) & (weight > 0)]
        if len(positive) and len(negative):
            return np.array([-0.5 * (positive.min() + negative.max())])
        if len(positive):
            return np.array([1.0 - positive.min()])
        return np.array([-1.0 - negative.max()]) if len(negative) else np.zeros(1)

    def primal(
        self, squared_norm: float, y: Vector, f: Vector, weight: Vector, thresholds: Vector, sums: Vector
    ) -> float:
        """½|w|²/μ² with μ = min(1, smallest yf): the value of the model scaled to be feasible; ∞ if μ ≤ 0."""
        b = thresholds[0] if len(thresholds) else 0.0
        smallest = self.feasible_scale(y, f + b, weight)
        return 0.5 * squared_norm / smallest**2 if smallest > 0 else np.inf

    def feasible_scale(self, y: Vector, f: Vector, weight: Vector) -> float:
        """min(1, smallest yf)."""
        return float(np.min((y * f)[weight > 0], initial=1.0))


@dataclass(frozen=True)
class NuHinge(Loss):
    """ν-SVC: the margin is a variable, and ν bounds the fraction of samples inside of it.

        min over w, b, margin   ½|w|² − ν·W·margin + Σ weight max(0, margin − y(f + b)),     W = Σ weight

    Dual: linear 0, box [0, weight]·y, Σβ = +νW/2 over the positive samples (group 0), −νW/2 over the negative ones
    (group 1).

    With one threshold per class, a free positive sample has f + b₊ = 0 and a free negative one f + b₋ = 0, so

        margin = (b₋ − b₊)/2,     b = (b₊ + b₋)/2

    Dividing w, b and the margin by the margin gives a model of margin 1, which is the C-SVC solution for
    C = weight / margin. LIBSVM, scikit-learn and `publish` return that model. The certificate is that of the problem
    above, before the division.
    """

    nu: float = 0.5
    name: ClassVar[str] = "nu-SVC loss"
    lipschitz: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        check_nu(self.nu)

    def value(self, y: Vector, f: Vector, margin: float = 1.0) -> Vector:
        """max(0, margin − yf). The published model has margin 1."""
        return np.maximum(0.0, margin - y * f)

    def class_total(self, y: Vector, weight: Vector) -> float:
        """Σα over each class: νW/2. Raises `InfeasibleNuError` if the weight of a class is smaller."""
        positive, negative = float(weight[y > 0].sum()), float(weight[y < 0].sum())
        half, most = 0.5 * self.nu * (positive + negative), min(positive, negative)
        # nu = 2·most/W is feasible, however it is rounded
        if half > most * (1 + 1e-12):
            raise InfeasibleNuError(self.nu, 2 * most / (positive + negative), positive, negative)
        return min(half, most)

    def box_qp(self, y: Vector, weight: Vector, intercept: bool) -> BoxQP:
        """Linear 0, box [0, weight]·y, one sum per class."""
        needs_intercept(intercept, self)
        weight = finite_weight(weight, self)
        total = self.class_total(y, weight)
        lower, upper = signed_box(y, weight)
        n = len(y)
        return BoxQP(
            linear=np.zeros(n),
            l1=np.zeros(n),
            ridge=np.zeros(n),
            lower=lower,
            upper=upper,
            group=np.where(y > 0, 0, 1).astype(np.int8),
            sums=np.array([total, -total]),
        )

    def best_thresholds(self, y: Vector, f: Vector, weight: Vector) -> Vector:
        """(b₊, b₋): the ν-quantiles of −f of each class. If they cross, both are the best b for margin 0."""
        total, positive = self.class_total(y, weight), y > 0
        w_pos, w_neg = weight[positive], weight[~positive]
        b_pos = lowest_linear(-f[positive], w_pos, total - float(w_pos.sum()))
        b_neg = lowest_linear(-f[~positive], w_neg, -total)
        if b_pos > b_neg:
            b_pos = b_neg = lowest_linear(-f, weight, -float(w_pos.sum()))
        return np.array([b_pos, b_neg])

    def primal(
        self, squared_norm: float, y: Vector, f: Vector, weight: Vector, thresholds: Vector, sums: Vector
    ) -> float:
        """½|w|² − νW·margin + Σ weight max(0, margin − y(f + b))."""
        margin, b = nu_scale(thresholds)
        paid = weight @ self.value(y, f + b, margin)
        return float(0.5 * squared_norm - (sums[0] - sums[1]) * margin + paid)

    def publish(self, beta: Vector, thresholds: Vector) -> Published:
        """β and b divided by the margin; unchanged if the margin is 0 (then w = 0: the class means coincide)."""
        margin, b = nu_scale(thresholds)
        scale = margin if margin > 0 else 1.0
        return Published(beta / scale, b / scale, scale)


def nu_scale(thresholds: Vector) -> tuple[float, float]:
    """(margin, b) of ν-SVC from the thresholds (b₊, b₋) of its two classes.

    LIBSVM's r and rho are the margin and −b; the published model is β/margin and b/margin. The margin is 0 if the
    thresholds have crossed.
    """
    b_pos, b_neg = thresholds
    return max(0.0, float(0.5 * (b_neg - b_pos))), float(0.5 * (b_pos + b_neg))


def classification_loss(machine: Any) -> Loss:
    """The loss given by ``loss`` and ``C``; scikit-learn's SVC has no ``loss`` and uses the hinge loss."""
    if np.isinf(machine.C):
        return HardMargin()
    return SquaredHinge() if getattr(machine, "loss", "hinge") == "squared_hinge" else Hinge()
