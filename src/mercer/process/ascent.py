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

# steps of a variable, the logarithm of a parameter, that are worth a look
RADIUS = 2.0

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


class _Steps:
    """A function to be minimised by L-BFGS-B, which where all variables have bounds tries steps of any length.

    A step D from the last iterate whose largest entry is 1/r > 2 times RADIUS is answered with the parabola over D that
    begins with the iterate's value and slope and has its minimum at rD. At D it is above the iterate, so that the step
    is refused, and both interpolations of the line search (Moré & Thuente, 1994) go on to rD. This saves evaluations
    and finds better optima: steps to the ends of the bounds lead to where all is noise.
    """

    def __init__(self, function: Callable[[Vector], tuple[float, Vector]]) -> None:
        self.function = function
        self._tried: tuple[Vector, float, Vector] | None = None
        self._iterate: tuple[Vector, float, Vector] | None = None

    def __call__(self, x: Vector) -> tuple[float, Vector]:
        if self._iterate is not None:
            start, value, gradient = self._iterate
            longest, slope = float(np.abs(x - start).max()), float(gradient @ (x - start))
            if longest > 2.0 * RADIUS and slope < 0.0 and np.isfinite(value):
                return value + slope * (1.0 - 0.5 * longest / RADIUS), gradient * (1.0 - longest / RADIUS)
        value, gradient = self.function(x)
        first, self._tried = self._tried is None, (x.copy(), value, gradient)
        if first:
            self._iterate = self._tried
        return value, gradient

    def accept(self, x: Vector) -> None:
        """The run has gone to x."""
        assert self._tried is not None
        # any other than the last point that was tried is not known: the next step may be of any length
        self._iterate = self._tried if np.array_equal(x, self._tried[0]) else None


def maximise(
    objective: Objective,
    starts: list[Vector],
    bounds: Any,
    clock: Clock,
    max_iter: int = -1,
    optimizer: Callable[..., tuple[Vector, float]] | None = None,
    seconds: float = 0.0,
) -> Ascent:
    """Run from each start in turn; ``optimizer`` is a function of scikit-learn's form to use instead of L-BFGS-B.

    ``seconds`` is about how long the objective takes. With a time limit the search ends while there is time for once
    more, and half of it for what its caller makes of the result.
    """
    best = Ascent(starts[0], -np.inf, np.zeros(len(starts[0])), Status.CONVERGED)

    def negative(theta: Vector, eval_gradient: bool = True) -> Any:
        nonlocal seconds
        over = clock.over_in(1.5 * seconds)
        if over is not None:
            best.status = over
            raise _Over
        begun = clock.seconds
        value, gradient = objective(theta)
        seconds = clock.seconds - begun
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
            steps = _Steps(negative)
            result = scipy.optimize.minimize(
                steps, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options, callback=steps.accept
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
