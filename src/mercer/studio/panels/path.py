"""All machines along C: the exact path of two classes, kept so that a slider needs no new fit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.exceptions import MercerError
from mercer.kernels import Linear
from mercer.kernels.features import Vector
from mercer.selection.solution_path import SolutionPath, solution_path
from mercer.studio.panels.classify import separation_numbers
from mercer.studio.panels.fitted_machine import (
    Cache,
    Stopwatch,
    certificate_json,
    estimator,
    grid_json,
    lattice,
    plain,
    quietly,
    refusal,
    rounded,
)
from mercer.studio.state import State, StateError

# seconds for one path; it then ends at the C reached
TIME_LIMIT = 25.0
# points for which the path is computed: its time grows with their cube
MOST_POINTS = 1000
# the most coefficients that an answer holds; for longer paths it holds only the breaks
MOST_NUMBERS = 300_000
# a coefficient closer to its bound than this share of C is at the bound
AT_BOUND = 1e-9
# range of C
C_MIN, C_MAX = 1e-3, 1e4

_PATHS = Cache(6)


def path_of(state: State) -> SolutionPath:
    """The path of a state, kept for the next questions."""
    if state.mode != "classify" or len(state.classes) != 2 or state.loss != "hinge":
        raise StateError("The path over C is for two classes with the hinge loss.", "mode")
    if state.n > MOST_POINTS:
        raise StateError(f"The path over C is computed for at most {MOST_POINTS:,} points.", "points")
    key = (state.points, state.kernel, state.bias)
    return _PATHS.get(key, lambda: _follow(state))


def _follow(state: State) -> SolutionPath:
    model = estimator(state).set_params(C=1.0, time_limit=None)
    try:
        with quietly():
            return solution_path(model, state.X, state.y, C_min=C_MIN, C_max=C_MAX, time_limit=TIME_LIMIT)
    except (MercerError, ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        raise StateError(refusal(error), "kernel") from None


def path_json(state: State) -> dict[str, Any]:
    """The answer to `path`."""
    watch = Stopwatch()
    path = path_of(state)
    small = path.dual_coef.size <= MOST_NUMBERS
    return {
        "seconds": watch.seconds,
        "C": [float(one) for one in path.C],
        "n_support": path.n_support.tolist(),
        "n_free": path.n_free.tolist(),
        "dual_coef": [rounded(row) for row in path.dual_coef] if small else None,
        "intercept": rounded(path.intercept),
        "constant": path.constant,
        "complete": bool(path.constant or path.C[-1] >= C_MAX * (1 - 1e-9)),
        "classes": [int(one) for one in path.classes],
        "text": str(path),
    }


def at_C(state: State, C: float, grid: tuple[int, int]) -> dict[str, Any]:
    """The answer to `at_C`: the machine at this C, from the path."""
    watch = Stopwatch()
    path = path_of(state)
    last = math.inf if path.constant else float(path.C[-1])
    if not path.C[0] <= C <= last:
        raise StateError(f"C = {C:g} is outside of the path, from {path.C[0]:g} to {path.C[-1]:g}.", "C")
    with quietly():
        beta = path.coefficients(C)
        proof, intercept = path.certified(C)
        values = path.decision_function(lattice(state, grid), C)
        f = path.decision_function(state.X, C)
    sign = np.where(state.y == path.classes[1], 1.0, -1.0)
    own, alpha = sign * f, np.abs(beta)
    slack = np.maximum(0.0, 1.0 - own)
    # |w|² = β'Kβ, and f = Kβ + b
    norm = math.sqrt(max(0.0, float(beta @ (f - intercept))))
    states = states_of(alpha, C)
    return {
        "seconds": watch.seconds,
        "status": "optimal",
        "message": None,
        "classes": [int(one) for one in path.classes],
        "C": C,
        "grid": grid_json(state, grid, values),
        "points": {
            "alpha": rounded(alpha),
            "state": states,
            "f": rounded(f),
            "slack": rounded(slack),
            "kkt": rounded(violations(own, states)),
            "margin": rounded(own / norm if norm > 0 else np.full(state.n, np.inf)),
        },
        "line": _line(state, beta, intercept),
        "certificate": certificate_json(proof),
        "numbers": _numbers(state, states, own, slack, norm),
        "plan": f"from the exact path over C, {len(path)} breaks",
    }


def states_of(alpha: Vector, C: float) -> list[str]:
    """Whether each coefficient is zero, free or at the bound C."""
    near = AT_BOUND * C
    return ["zero" if one <= near else "bound" if one >= C - near else "free" for one in alpha.tolist()]


def violations(own: Vector, states: list[str]) -> Vector:
    """How far the condition of each point is violated: y f ≥ 1, = 1, ≤ 1."""
    excess = {
        "zero": np.maximum(0.0, 1.0 - own),
        "free": np.abs(own - 1.0),
        "bound": np.maximum(0.0, own - 1.0),
    }
    return np.array([excess[one][k] for k, one in enumerate(states)])


def _line(state: State, beta: Vector, intercept: float) -> dict[str, Any] | None:
    if not isinstance(state.machine_kernel, Linear):
        return None
    return {"w": [float(one) for one in beta @ state.X], "b": intercept}


def _numbers(state: State, states: list[str], own: Vector, slack: Vector, norm: float) -> list[dict[str, Any]]:
    counts = state.n - states.count("zero"), states.count("free"), states.count("bound")
    margin, wrong = 1.0 / norm if norm > 0 else math.inf, int(np.count_nonzero(own <= 0))
    return separation_numbers(state.n, norm, margin, counts, wrong, plain(slack.sum()) or 0.0)
