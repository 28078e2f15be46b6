"""The certificate of a model for any loss and penalty whose conjugates are known.

    primal(f, b) = g(|f|) + Σ C ℓ(y, f(x) + b),      dual(β) = −g*(|β|) − Σ C ℓ*(y, −β/C),      |β|² = β'Kβ

For every β (with Σβ = 0 if there is an intercept) the dual is at most the primal, by the Fenchel-Young inequality for
each sample and for the norm. The dual point need not be the coefficients of the model.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.erm.convex_losses import conjugates, has_conjugate, name_of, wrong_conjugate
from mercer.kernels.features import Vector
from mercer.losses import Loss
from mercer.problems.solution import FEASIBILITY, NOT_FEASIBLE, NOT_PSD, ROUNDING, Certificate, finished

# a gap may be negative by this share of the objective, where β'Kβ is a small difference of large numbers
LARGEST_ROUNDING = 1e-6


class DualPoint(NamedTuple):
    """β and Kβ."""

    beta: Vector
    F: Vector

    @property
    def norm(self) -> float:
        """|β| = √(β'Kβ)."""
        return float(np.sqrt(max(0.0, float(self.beta @ self.F))))


def erm_certificate(
    penalty: Any,
    loss: Any,
    y: Vector,
    weight: Vector,
    norm: float,
    F: Vector,
    intercept: float,
    point: DualPoint,
    fits_intercept: bool,
    psd: bool,
) -> Certificate:
    """The certificate of the function with this norm and these values F on the samples, from a dual point.

    The dual point is shortened if that raises its value: for the penalty |f| it must not be longer than 1.
    """
    primal = float(penalty.value(norm)) + float(weight @ loss.value(y, F + intercept))
    slope = float(penalty.derivative(norm))
    length = point.norm
    infeasibility = abs(float(point.beta.sum())) if fits_intercept else 0.0
    # at the optimum Kβ = g'(|f|)/|f| · F
    stretch = slope / norm if norm > 0 else 0.0
    violation = float(np.abs(F - point.F / stretch).max(initial=0.0)) if stretch > 0 else 0.0
    of = f"{name_of(loss)}, {type(penalty).__name__.lower()} penalty"
    for missing, name in ((not has_conjugate(loss), name_of(loss)), (not has_conjugate(penalty), "penalty")):
        if missing:
            reason = f"the {name} gives no conjugate"
            return finished(primal, -np.inf, np.inf, violation, infeasibility, of, reason)
    dual = _dual(penalty, loss, y, weight, point.beta, length)
    for share in {slope / length, float(penalty.derivative(0.0)) / length} if length > 0 else set():
        if share < 1.0:
            dual = max(dual, _dual(penalty, loss, y, weight, share * point.beta, share * length))
    gap = primal - dual if np.isfinite(dual) else np.inf
    reason = "" if psd else NOT_PSD
    if not reason and infeasibility > FEASIBILITY * float(np.abs(point.beta).max(initial=0.0)):
        reason = NOT_FEASIBLE
    if gap < 0 and not reason:
        f = F + intercept
        reason = "" if isinstance(loss, Loss) else wrong_conjugate(loss, y, f, loss.derivative(y, f))
        if not reason and gap < -LARGEST_ROUNDING * (abs(primal) + abs(dual)):
            reason = f"the dual value is above the primal value by {-gap:.1e}, so that a conjugate is wrong"
    if gap < 0 and not reason:
        gap = rounded(gap, abs(primal) + abs(dual) + float(np.abs(point.beta) @ np.abs(y)))
    return finished(primal, dual, gap, violation, infeasibility, of, reason)


def _dual(penalty: Any, loss: Any, y: Vector, weight: Vector, beta: Vector, length: float) -> float:
    """−g*(|β|) − Σ C ℓ*(y, −β/C)."""
    return 0.0 - float(penalty.conjugate(length)) - float(conjugates(loss, y, weight, beta).sum())


def rounded(gap: float, size: float) -> float:
    """The gap to report for a negative one: 0, or |gap| if β'Kβ has rounded by more than numbers of this size do."""
    return 0.0 if gap >= -ROUNDING * size else -gap
