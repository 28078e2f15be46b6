"""Maximise a smooth function of a few variables within bounds, from several starts.

L-BFGS-B (Byrd, Lu, Nocedal & Zhu, 1995) as SciPy has it; the best point of all runs is kept, so that a limit of time or
an interrupt leaves it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize

from mercer.losses.base import Vector
from mercer.solvers.base import Clock, Status

Objective = Callable[[Vector], tuple[float, Vector]]


@dataclass
class Ascent:
    """The best point that was seen, with its value and gradient, and how the run that ended last did so."""

    theta: Vector
    value: float
    gradient: Vector
    status: Status
    evaluations: int = 0
    iterations: int = 0

    def slope(self, bounds: Any) -> float:
        """The largest derivative along which the point can still move."""
        blocked = (self.theta <= bounds[:, 0]) & (self.gradient < 0) | (self.theta >= bounds[:, 1]) & (
            self.gradient > 0
        )
        return float(np.abs(np.where(blocked, 0.0, self.gradient)).max(initial=0.0))


class _Over(Exception):
    """Ends a run from within."""


def maximise(
    objective: Objective,
    starts: list[Vector],
    bounds: Any,
    clock: Clock,
    max_iter: int = -1,
    optimizer: Callable[..., tuple[Vector, float]] | None = None,
) -> Ascent:
    """Run from each start in turn; ``optimizer`` is a function of scikit-learn's form to use instead of L-BFGS-B."""
    best = Ascent(starts[0], -np.inf, np.zeros(len(starts[0])), Status.CONVERGED)

    def negative(theta: Vector, eval_gradient: bool = True) -> Any:
        over = clock.over()
        if over is not None and best.evaluations > 0:  # the first start is always looked at
            best.status = over
            raise _Over
        value, gradient = objective(theta)
        best.evaluations += 1
        if value > best.value:
            best.theta, best.value, best.gradient = np.array(theta, dtype=np.float64), value, gradient
        return (-value, -gradient) if eval_gradient else -value

    options = {} if max_iter < 0 else {"maxiter": max_iter}
    chosen: list[tuple[float, Vector]] = []
    try:
        for start in starts:
            if optimizer is not None:
                theta, lowest = optimizer(negative, start, bounds=bounds)
                chosen.append((-float(lowest), np.array(theta, dtype=np.float64)))
                continue
            result = scipy.optimize.minimize(
                negative, start, method="L-BFGS-B", jac=True, bounds=bounds, options=options
            )
            best.iterations += int(result.nit)
            if not result.success:
                best.status = Status.MAX_ITER if result.status == 1 else Status.STALLED
    except _Over:
        pass
    if chosen:  # what the user's function returned, even if it has tried better points
        best.value, best.theta = max(chosen, key=lambda pair: pair[0])
        best.gradient = np.full(len(best.theta), np.nan)
    return best
