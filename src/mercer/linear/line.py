"""The lowest point along a line, for losses with a continuous derivative: a step, or the weight of one feature."""

from __future__ import annotations

import numpy as np

from mercer.losses.base import BoxQP, Vector

STEPS = 30
# of the derivative by the weight of the constant feature, what may be left
SHIFT_ACCURACY = 1e-2


def lowest(f: Vector, q: Vector, slope: float, bend: float, vectors: tuple[Vector, ...], target: float) -> float:
    """The s about which  slope s + ½ bend s² + the losses at f + s q  is lowest, by Newton's method from s = 1.

    Its derivative there is at most ``target``. ``vectors`` are linear, l1, ridge, lower and upper of each sample.
    """
    from mercer.linear._newton_loops import along

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


def best_shift(qp: BoxQP, F: Vector, bias: float, weight: float) -> tuple[float, float]:
    """What to add to the weight of a constant feature of this value, given F = Xw, and about what that gains.

    All samples share this feature, so that each of a pass over samples moves it after the others have been moved: most
    of what w is above the optimum by is this one number, and it costs no product.
    """
    if not bias:
        return 0.0, 0.0
    from mercer.linear._newton_loops import along

    vectors = qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper
    ones = np.full(len(F), bias)
    first, second = along(F, ones, 0.0, *vectors)
    first, second = first + weight, second + 1.0
    step = -first / second
    if step == 0 or not np.isfinite(step):
        return 0.0, 0.0
    step *= lowest(F, step * ones, weight * step, step**2, vectors, SHIFT_ACCURACY * abs(first * step))
    return step, -0.5 * first * step
