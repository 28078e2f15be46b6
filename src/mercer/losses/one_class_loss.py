"""The loss of the one-class SVM (novelty detection): f should be at least ρ, a threshold that is maximised itself.

Schölkopf et al., Neural Computation 13 (2001).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mercer.losses.base import BoxQP, Loss, Vector, check_nu, finite_weight, needs_intercept, program
from mercer.losses.thresholds import lowest_linear


@dataclass(frozen=True)
class OneClass(Loss):
    """One-class SVM: ν bounds the fraction of samples with a negative decision f − ρ.

        min over w, ρ   ½|w|² − ν·W·ρ + Σ weight max(0, ρ − f),     W = Σ weight

    Dual: linear 0, box [0, weight], Σβ = νW. The intercept is b = −ρ. The labels are not used.
    """

    nu: float = 0.5
    name: ClassVar[str] = "one-class loss"
    lipschitz: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        check_nu(self.nu)

    def value(self, y: Vector, f: Vector) -> Vector:
        """max(0, −f): f includes the intercept −ρ."""
        return np.maximum(0.0, -f)

    def box_qp(self, y: Vector, weight: Vector, intercept: bool) -> BoxQP:
        """Linear 0, box [0, weight], Σβ = νW."""
        needs_intercept(intercept, self)
        weight = finite_weight(weight, self)
        n = len(weight)
        return program(np.zeros(n), np.zeros(n), weight.copy(), True, total=self.nu * float(weight.sum()))

    def best_thresholds(self, y: Vector, f: Vector, weight: Vector) -> Vector:
        """−ρ, for ρ the weighted ν-quantile of f."""
        return np.array([lowest_linear(-f, weight, (self.nu - 1.0) * float(weight.sum()))])
