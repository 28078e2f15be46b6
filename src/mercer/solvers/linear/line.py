"""The lowest point along a line, for losses with a continuous derivative (see `mercer.solvers.linear.newton`)."""

from __future__ import annotations

import numpy as np

from mercer.losses.base import Vector

STEPS = 30


def lowest(f: Vector, q: Vector, slope: float, bend: float, vectors: tuple[Vector, ...], target: float) -> float:
    """The s about which  slope s + ½ bend s² + the losses at f + s q  is lowest, by Newton's method from s = 1.

    Its derivative there is at most ``target``. ``vectors`` are linear, l1, ridge, lower and upper of each sample.
    """
    from mercer._numerics.linear_newton import along

    # the derivative climbs: below 0 at low, above 0 at high
    low, high, s = 0.0, np.inf, 1.0
    for _ in range(STEPS):
        first, second = along(f, q, s, *vectors)
        first, second = first + slope + s * bend, second + bend
        if abs(first) <= target or not second > 0:
            break
        low, high = (s, high) if first < 0 else (low, s)
        s -= first / second
        if not low < s < high:
            s = 0.5 * (low + high) if np.isfinite(high) else 2.0 * low + 1.0
    return s
