"""A feasible start from the solution of a neighbouring problem."""

from __future__ import annotations

import numpy as np

from mercer.losses.base import BoxQP, Vector
from mercer.problems.dual import feasible_start, infeasibility


def feasible(qp: BoxQP, beta: Vector) -> Vector:
    """beta moved into the box and to the right sums; the plain start if it is of another problem's size.

    Within a group the side that is too large, positive or negative, is scaled down until the sum is right.
    """
    if len(beta) != qp.n_vars or not np.all(np.isfinite(beta)):
        return feasible_start(qp)
    moved = np.clip(beta, qp.lower, qp.upper)
    for g in range(qp.n_groups):
        members = np.flatnonzero(qp.group == g)
        part = moved[members]
        excess = part.sum() - qp.sums[g]
        side = part > 0 if excess > 0 else part < 0
        total = part[side].sum()
        if total != 0:
            part[side] *= max(0.0, (total - excess) / total)
        moved[members] = part
    scale = max(1e-300, float(np.abs(moved).max(initial=0.0)))
    return moved if infeasibility(qp, moved) <= 1e-9 * scale else feasible_start(qp)
