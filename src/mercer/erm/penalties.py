"""Penalties g(|f|) of the norm: non-decreasing and convex on t ≥ 0 ([SSBD] (16.2), Theorem 16.1).

The conjugate over t ≥ 0,  g*(s) = max of  st − g(t), gives the dual. A user's penalty is any object with the methods
value(t) and derivative(t), and if the model is to be certified conjugate(s), all of them functions of one number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError

# points at which a user's penalty is probed, and the tolerance for rounding there
PROBES = (0.0, 1e-3, 0.1, 0.5, 1.0, 3.0, 10.0, 100.0)
ROUNDING = 1e-6


@dataclass(frozen=True)
class Power:
    """g(t) = t^p / p with p ≥ 1.   g*(s) = s^q / q with 1/p + 1/q = 1; for p = 1 it is 0 up to s = 1, and ∞ beyond."""

    p: float = 2.0

    def value(self, t: float) -> float:
        """t^p / p; inf where it overflows."""
        with np.errstate(over="ignore"):
            return float(np.float64(t) ** self.p / self.p)

    def derivative(self, t: float) -> float:
        """t^(p − 1); inf where it overflows."""
        with np.errstate(over="ignore"):
            return float(np.float64(t) ** (self.p - 1.0))

    def conjugate(self, s: float) -> float:
        """s^q / q."""
        if self.p == 1.0:
            return 0.0 if s <= 1.0 + 4.0 * np.finfo(np.float64).eps else np.inf
        q = self.p / (self.p - 1.0)
        with np.errstate(over="ignore"):
            return float(np.float64(s) ** q / q)


SQUARED, NORM = Power(2.0), Power(1.0)


def find_penalty(penalty: Any) -> Any:
    """The penalty with this name, the power p, or the object itself."""
    if isinstance(penalty, str):
        if penalty not in ("squared", "norm"):
            raise InvalidInputError(
                f"penalty={penalty!r} is not known. Use 'squared' for ½|f|², 'norm' for |f|, a number p ≥ 1 for "
                "|f|^p / p, or an object with the methods value(t) and derivative(t)."
            )
        return SQUARED if penalty == "squared" else NORM
    if isinstance(penalty, int | float | np.number) and not isinstance(penalty, bool):
        if not 1.0 <= penalty < np.inf:
            raise InvalidInputError(
                f"penalty={penalty!r} is the power p of |f|^p / p, which is convex for finite p of at least 1: use "
                "such a number."
            )
        return Power(float(penalty))
    if isinstance(penalty, type):
        raise InvalidInputError(f"penalty={penalty.__name__} is a class, not a penalty: write {penalty.__name__}().")
    missing = [name for name in ("value", "derivative") if not callable(getattr(penalty, name, None))]
    if missing:
        raise InvalidInputError(
            f"penalty={penalty!r} has no method {missing[0]}: give 'squared', 'norm', a number p ≥ 1 for |f|^p / p, or "
            "an object with the methods value(t) and derivative(t), and if possible conjugate(s)."
        )
    check_penalty(penalty)
    return penalty


def check_penalty(penalty: Any) -> None:
    """Raise unless a user's penalty is non-decreasing and convex, and its conjugate, if any, belongs to it."""
    name = type(penalty).__name__
    value, slope = (np.array([float(getattr(penalty, m)(t)) for t in PROBES]) for m in ("value", "derivative"))
    if not (np.isfinite(value) & np.isfinite(slope)).all():
        t = PROBES[int(np.flatnonzero(~(np.isfinite(value) & np.isfinite(slope)))[0])]
        raise InvalidInputError(f"value or derivative of the penalty {name} is not finite at t = {t:g}.")
    if (slope < 0).any():
        i = int(np.argmax(slope < 0))
        raise InvalidInputError(
            f"The penalty {name} decreases: its derivative at t = {PROBES[i]:g} is {slope[i]:.4g}. Only "
            "non-decreasing penalties have a solution in the span of the samples (the representer theorem)."
        )
    at = np.array(PROBES)
    below = value[:, None] + slope[:, None] * (at - at[:, None])
    wrong = np.argwhere(below - value > ROUNDING * (1.0 + np.abs(value) + np.abs(below)))
    if len(wrong):
        i, j = wrong[0]
        raise InvalidInputError(
            f"The penalty {name} is not convex, or its derivative is wrong: its value at t = {at[j]:g} is "
            f"{value[j]:.4g}, below the tangent at t = {at[i]:g}, which is {below[i, j]:.4g} there."
        )
    if callable(getattr(penalty, "conjugate", None)):
        for t, g, s in zip(PROBES, value, slope, strict=True):
            found, expected = float(penalty.conjugate(float(s))), s * t - g
            if not abs(found - expected) <= ROUNDING * (1.0 + abs(s * t) + abs(g)):
                raise InvalidInputError(
                    f"The conjugate of the penalty {name} does not belong to its value: at s = {s:.4g}, its derivative "
                    f"at t = {t:g}, it must be s t − value = {expected:.6g}, but it is {found:.6g}. Correct it, or "
                    "leave it out."
                )
