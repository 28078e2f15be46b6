"""The search for a few parameters within bounds."""

import numpy as np
import pytest

from mercer.problems.clock import Clock
from mercer.problems.solution import Status
from mercer.process.ascent import RADIUS, maximise

BOUNDS = np.array([[-12.0, 12.0]] * 3)


def valley(theta):
    """A curved ridge whose top is at 1, 1, 1: 0 there, less elsewhere, steep where the search begins."""
    a, b, c = theta
    value = -((1 - a) ** 2) - 10 * (b - a**2) ** 2 - np.expm1(c - 1) ** 2
    inner = b - a**2
    return value, np.array([2 * (1 - a) + 40 * a * inner, -20 * inner, -2 * np.expm1(c - 1) * np.exp(c - 1)])


class Recorded:
    def __init__(self, function):
        self.function, self.points = function, []

    def __call__(self, theta):
        self.points.append(np.array(theta))
        return self.function(theta)


@pytest.mark.parametrize("start", [[-1.0, 2.0, -3.0], [5.0, -5.0, 4.0], [0.0, 0.0, 0.0]])
def test_top(start):
    """The top is found from near and far, and no point is farther from all those before it than a step may be."""
    objective = Recorded(valley)
    with Clock() as clock:
        found = maximise(objective, [np.array(start)], BOUNDS, clock)
    np.testing.assert_allclose(found.theta, 1.0, atol=1e-3)
    assert found.status is Status.CONVERGED and found.evaluations == len(objective.points)
    for k in range(1, len(objective.points)):
        nearest = min(np.abs(objective.points[k] - before).max() for before in objective.points[:k])
        assert nearest <= 2.0 * RADIUS + 1e-9


def test_bounds():
    """An optimum at a bound is found there, however far it is."""
    with Clock() as clock:
        found = maximise(lambda t: (float(t.sum()), np.ones(3)), [np.full(3, -12.0)], BOUNDS, clock)
    np.testing.assert_array_equal(found.theta, 12.0)
    assert found.slope(BOUNDS) == 0.0


def test_starts_and_limits():
    """The best of several starts is kept; a limit of iterations is said; where nothing is known, the start stays."""
    with Clock() as clock:
        several = maximise(valley, [np.array([-1.0, 1.0, 1.0]), np.ones(3)], BOUNDS, clock)
        assert several.value == pytest.approx(0.0, abs=1e-12)
        short = maximise(valley, [np.array([-1.0, 2.0, -3.0])], BOUNDS, clock, max_iter=2)
        assert short.status is Status.MAX_ITER and short.iterations == 2
        nowhere = maximise(lambda t: (-np.inf, np.zeros(3)), [np.zeros(3)], BOUNDS, clock)
    assert nowhere.value == -np.inf
    np.testing.assert_array_equal(nowhere.theta, 0.0)
