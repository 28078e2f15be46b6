"""Exact minimisers over b of sums of one-sided losses, by a sort and cumulative sums."""

from __future__ import annotations

import numpy as np

from mercer.losses.base import Vector


def lowest_linear(breakpoints: Vector, weight: Vector, slope: float) -> float:
    """The minimiser over b of  slope · b + Σ weight_k max(0, b − breakpoint_k).

    A falling hinge is written as  max(0, z − b) = z − b + max(0, b − z),  which adds −weight to the slope.
    The derivative starts at ``slope`` and rises by weight_k at each breakpoint; b is where it crosses zero. If all
    weights are equal, it may reorder ``breakpoints``.
    """
    z, w, used = breakpoints, weight, weight > 0
    if not used.all():
        z, w = z[used], w[used]
    n = len(z)
    if n == 0:
        return 0.0
    rounding = 1e-13 * max(float(w.sum()), abs(slope))
    if slope >= -rounding:
        return float(z.min())
    if w.min() == w.max():
        # equal weights: an order statistic, without sorting
        k = int(np.ceil((-slope - rounding) / float(w[0]))) - 1
        if k >= n - 1:
            return float(z.max())
        z.partition([k, k + 1])
        climb, low, high = (k + 1) * float(w[0]), z[k], z[k + 1]
    else:
        order = np.argsort(z, kind="stable")
        sums = w[order]
        np.cumsum(sums, out=sums)
        k = int(np.searchsorted(sums, -slope - rounding))
        if k >= n - 1:
            return float(z[order[-1]])
        climb, low, high = float(sums[k]), z[order[k]], z[order[k + 1]]
    return float(0.5 * (low + high) if climb + slope <= rounding else low)


def lowest_quadratic(falling: Vector, falling_weight: Vector, rising: Vector, rising_weight: Vector) -> float:
    """The minimiser over b of  Σ weight max(0, falling − b)² + Σ weight max(0, b − rising)².

    Half the derivative, Σ weight (b − z) over the active terms, is continuous and piecewise linear. If it is zero on an
    interval (no term is active there), the minimiser is the midpoint.
    """
    z = np.concatenate([falling, rising])
    w_fall = np.concatenate([falling_weight, np.zeros(len(rising))])
    w_rise = np.concatenate([np.zeros(len(falling)), rising_weight])
    used = w_fall + w_rise > 0
    z, w_fall, w_rise = z[used], w_fall[used], w_rise[used]
    if len(z) == 0:
        return 0.0
    order = np.argsort(z, kind="stable")
    z, w_fall, w_rise = z[order], w_fall[order], w_rise[order]
    # centring keeps the differences of cumulative sums accurate
    centre = float(z[len(z) // 2])
    d = z - centre

    # active at breakpoint k: the falling terms after it and the rising terms before it. Empty sums are exactly 0
    def active(values_fall: Vector, values_rise: Vector) -> Vector:
        after: Vector = np.append(np.cumsum(values_fall[::-1])[::-1][1:], 0.0)
        before: Vector = np.append(0.0, np.cumsum(values_rise)[:-1])
        return after + before

    weight, moment = active(w_fall, w_rise), active(w_fall * d, w_rise * d)
    slope = d * weight - moment
    flat = np.flatnonzero(slope == 0)
    if len(flat):
        return centre + float(0.5 * (d[flat[0]] + d[flat[-1]]))
    # if rounding leaves no positive slope, the crossing is at the end
    k = int(np.argmax(slope > 0)) or len(z) - 1
    # active on the interval that ends at k: the terms active at k, and k itself if it is a falling term
    root = (moment[k] + w_fall[k] * d[k]) / (weight[k] + w_fall[k])
    return centre + float(np.clip(root, d[k - 1], d[k]))
