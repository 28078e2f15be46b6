"""Maximise a smooth function of a few variables within bounds, from several starts.

SciPy's L-BFGS-B (Byrd, Lu, Nocedal & Zhu, 1995). The best point of all runs is kept, so that a time limit or an
interrupt still returns it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize

from mercer.exceptions import InvalidInputError
from mercer.losses.base import Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import Status

# steps are shortened if a variable (the logarithm of a parameter) changes by more than twice this
RADIUS = 2.0

Objective = Callable[[Vector], tuple[float, Vector]]


@dataclass
class Ascent:
    """The best evaluated point with its value and gradient, and the status of the last run that did not converge."""

    theta: Vector
    value: float
    gradient: Vector
    status: Status
    evaluations: int = 0
    iterations: int = 0

    def slope(self, bounds: Any) -> float:
        """The largest derivative in a direction that the bounds do not block."""
        blocked = (self.theta <= bounds[:, 0]) & (self.gradient < 0) | (self.theta >= bounds[:, 1]) & (
            self.gradient > 0
        )
        return float(np.abs(np.where(blocked, 0.0, self.gradient)).max(initial=0.0))


class _Stopped(Exception):
    """Raised by the objective to end a run."""


class _Steps:
    """The objective of L-BFGS-B, which makes its line search shorten long steps without evaluating the function.

    If all variables have bounds, L-BFGS-B tries steps of any length. For a step D whose largest entry is 1/r > 2 times
    RADIUS, the value of a parabola along D is returned instead: it has the value and slope of the last iterate and its
    minimum at rD. Its value at D exceeds that of the iterate, so the step is rejected, and both interpolations of the
    line search (Moré & Thuente, 1994) continue with rD. This saves evaluations and finds better optima: at the bounds
    all variance is explained as noise.
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
        """The callback of L-BFGS-B: x is the new iterate."""
        assert self._tried is not None
        # only the last evaluated point is stored; without it the next step may have any length
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
    """Maximise from each start in turn. ``optimizer``, in scikit-learn's form, replaces L-BFGS-B.

    ``seconds`` is the approximate time of an evaluation. With a time limit the search ends when less than 1.5 times
    this is left: one evaluation, and half of it for the caller's use of the result.
    """
    best = Ascent(starts[0], -np.inf, np.zeros(len(starts[0])), Status.CONVERGED)

    def negative(theta: Vector, eval_gradient: bool = True) -> Any:
        nonlocal seconds
        over = clock.over_in(1.5 * seconds)
        if over is not None:
            best.status = over
            raise _Stopped
        begun = clock.seconds
        value, gradient = objective(theta)
        seconds = clock.seconds - begun
        if best.evaluations == 0 and not np.isfinite(gradient).all():
            raise InvalidInputError(
                "The evidence has no finite gradient with respect to the kernel's parameters: squared distances of "
                "these samples are beyond float64. Scale the features, for example with StandardScaler, or keep the "
                "kernel as it is with optimizer=None."
            )
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
    except _Stopped:
        pass
    if chosen:  # the result of the user's function, even if it evaluated better points
        best.value, best.theta = max(chosen, key=lambda pair: pair[0])
        best.gradient = np.full(len(best.theta), np.nan)
    return best
