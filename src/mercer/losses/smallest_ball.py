"""The loss of support vector data description: the smallest ball around the samples in feature space.

Tax & Duin, Machine Learning 54 (2004); feasibility and the threshold: Chang, Lee & Lin, "A revisit to support vector
data description" (2013).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.losses.base import BoxQP, Loss, Vector, finite_weight, needs_intercept, program, signed_box
from mercer.losses.thresholds import lowest_linear


def ball_targets(squared_norms: Vector, labels: Vector) -> Vector:
    """The targets of `SmallestBall`: ½k(x, x), with the sign of the label (±1), even where k(x, x) = 0."""
    return np.copysign(0.5 * np.maximum(squared_norms, 0.0), labels)


@dataclass(frozen=True)
class SmallestBall(Loss):
    """Smallest ball with centre a and radius R around samples with label s = 1, without those with s = −1.

        min over a, R   R² + Σ C max(0, s (|φ(x) − a|² − R²))

    With t = (R² − |a|²)/2 half of this is a convex problem in a and t, whose value and dual are those of a machine:

        ½|a|² + t + Σ C max(0, s (½k(x, x) − f − t)),     f = ⟨a, φ(x)⟩

    Dual: linear ½k(x, x), box [0, C]·s, Σβ = 1, and a = Σ βᵢ φ(xᵢ). The threshold of the group is t. The target of a
    sample is y = ½k(x, x) with the sign of s (`ball_targets`).
    """

    name: ClassVar[str] = "smallest ball"
    lipschitz: ClassVar[float] = 1.0

    def value(self, y: Vector, f: Vector) -> Vector:
        """max(0, s(½k(x, x) − f)): half of the squared distance beyond the ball; f includes t."""
        return np.maximum(0.0, np.copysign(1.0, y) * (np.abs(y) - f))

    def box_qp(self, y: Vector, weight: Vector, intercept: bool) -> BoxQP:
        """Linear ½k(x, x), box [0, C]·s, Σβ = 1."""
        needs_intercept(intercept, self)
        weight = finite_weight(weight, self)
        check_ball(y, weight)
        lower, upper = signed_box(np.copysign(1.0, y), weight)
        return program(np.abs(y), lower, upper, True, total=1.0)

    def best_thresholds(self, y: Vector, f: Vector, weight: Vector) -> Vector:
        """The t that minimises t + Σ C max(0, s(½k(x, x) − f − t))."""
        slope = 1.0 - float(weight[~np.signbit(y)].sum())
        return np.array([lowest_linear(np.abs(y) - f, weight, slope)])


# a sum of C that misses 1 by this share is rounding
ROUNDING = 1e-9


def check_ball(y: Vector, weight: Vector) -> None:
    """Raise unless the weights of the positive samples sum to at least 1: else R = 0 is the best radius."""
    is_inside = ~np.signbit(y)
    total = float(weight[is_inside].sum())
    if total < 1.0 - ROUNDING:
        raise InvalidInputError(
            f"The values C * sample_weight of the {int(is_inside.sum())} samples inside sum to {total:g}, so that a "
            f"ball of radius 0 costs least. They must sum to at least 1: multiply C by "
            f"{1 / total if total else np.inf:.4g} or more, or use nu instead of C."
        )
