"""Textbook procedures step by step: SMO, coordinate ascent, Pegasos, the perceptron and kernel LMS.

Each run is that of mercer's estimator with ``trace=True``. The coefficients of every step are replayed from its
``steps_``, so that a slider can show any of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.estimators.certification.kernel_machines import fitted_problems
from mercer.estimators.kernel_lms import KernelLMS
from mercer.estimators.online.pegasos import PegasosClassifier
from mercer.estimators.online.perceptron import Perceptron
from mercer.exceptions import MercerError, NotSeparableError
from mercer.kernels import Linear
from mercer.kernels.features import Matrix, Vector
from mercer.problems.dual import thresholds
from mercer.problems.solution import Certificate, certificate
from mercer.problems.steps import Steps
from mercer.studio.panels.fitted_machine import Cache, estimator, fitted, grid_json, lattice, quietly, refusal, rounded
from mercer.studio.panels.gram_matrix import matrix_of
from mercer.studio.panels.path import AT_BOUND
from mercer.studio.state import PROCEDURES, State, StateError, number, one_of, whole

MOST_POINTS, MOST_STEPS, MOST_FRAMES = 500, 5000, 300
# the most numbers in all frames together
MOST_NUMBERS = 100_000
TIME_LIMIT = 10.0
# SMO and coordinate ascent end at this violation
TOL = 1e-4
# LMS needs about 1/share steps for a direction with this share of the largest eigenvalue
REACHED = 1e-6
RULES = ("round-robin", "random", "greedy")

_RUNS = Cache(6)


@dataclass(frozen=True, eq=False)
class Walk:
    """A run whose coefficients are known at every step.

    Attributes
    ----------
    steps : the estimator's ``steps_``.
    beta : the signed coefficients before the first step and after each one: one row more than there are steps.
    b : the intercept at the same times.
    exact : coefficients and intercept of the exact machine of the same problem; None if there is none.
    optimum : the value of the measure at the exact machine; None if there is none.
    bound : the bound on the number of updates of the perceptron; None for others, inf if not separable.
    note : how the problem differs from that of the state; None if it does not.
    K : the kernel matrix.
    upper : the bound of the coefficients that the procedure keeps; inf if there is none.
    certified : the certificate of signed coefficients; None for procedures that do not solve the dual.
    """

    steps: Steps
    beta: Matrix
    b: Vector
    exact: tuple[Vector, float] | None
    optimum: float | None
    bound: float | None
    note: str | None
    K: Matrix
    upper: float = math.inf
    certified: Callable[[Vector], Certificate] | None = None


def read_procedure(given: Any) -> dict[str, Any]:
    """The checked procedure of a question."""
    if not isinstance(given, dict):
        raise StateError("procedure must be an object with a name.", "procedure")
    unknown = set(given) - {"name", "rule", "seed", "step_size", "passes", "step", "coordinates"}
    if unknown:
        raise StateError(f"A procedure has no {sorted(map(str, unknown))[0][:40]!r}.", "procedure")
    found: dict[str, Any] = {"name": one_of(given.get("name"), "procedure", PROCEDURES)}
    rule = given.get("rule")
    found["rule"] = "round-robin" if rule in (None, "", "…") else one_of(rule, "rule", RULES)
    found["seed"] = whole(given.get("seed", 0), "seed", 0, 2**31)
    found["passes"] = whole(given.get("passes", 20), "passes", 1, 1000)
    size = given.get("step_size")
    found["step_size"] = None if size is None else number(size, "step_size", 0.0, 1e6, open_low=True)
    pair = given.get("coordinates")
    if pair is not None and not (isinstance(pair, list) and len(pair) == 2):
        raise StateError("coordinates must be two indices of points.", "coordinates")
    found["coordinates"] = None if pair is None else tuple(whole(one, "coordinates", 0, 10**6) for one in pair)
    return found


def walk(state: State, procedure: dict[str, Any]) -> Walk:
    """The run of a procedure on a state, kept for its frames."""
    name = procedure["name"]
    if state.n > MOST_POINTS:
        raise StateError(f"Step mode shows at most {MOST_POINTS} points.", "points")
    if state.mode == "classify":
        if len(state.classes) != 2:
            raise StateError("Step mode shows two classes: place points of exactly two.", "points")
    elif state.mode != "regress" or name in ("pegasos", "perceptron"):
        raise StateError("Step mode shows this procedure for classification only: choose the task Classify.", "mode")
    if state.n == 0:
        raise StateError("Place at least one point.", "points")
    key = (state.mode, state.points, state.kernel, state.C, state.loss, state.bias, state.epsilon, *procedure.values())
    return _RUNS.get(key, lambda: _run(state, procedure))


def _run(state: State, procedure: dict[str, Any]) -> Walk:
    run = {"smo": _smo, "coordinate": _smo, "pegasos": _pegasos, "perceptron": _perceptron, "lms": _lms}
    try:
        with quietly():
            return run[procedure["name"]](state, procedure)
    except NotSeparableError as error:
        raise StateError(str(error), "C") from None
    except StateError:
        raise
    except (MercerError, ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        raise StateError(refusal(error), "procedure") from None


def signs(state: State) -> Vector:
    """y as ±1, the second class positive; 1 for regression, whose coefficients have signs of their own."""
    if state.mode != "classify":
        return np.ones(state.n)
    return np.where(state.y == state.classes[1], 1.0, -1.0)


# ---- the procedures ---------------------------------------------------------------------------------------------


def _smo(state: State, procedure: dict[str, Any]) -> Walk:
    """SMO and coordinate ascent on the dual."""
    name, note = procedure["name"], None
    if math.isinf(state.C):
        raise StateError("SMO and coordinate ascent need a finite C: the box has no upper end otherwise.", "C")
    bias = name == "smo"
    if state.bias != bias:
        note = (
            "SMO moves pairs because of the bias: the machine is shown with one."
            if bias
            else "Coordinate ascent moves one α at a time, which a bias forbids: the machine is shown without one."
        )
        state = replace(state, bias=bias)
    model = estimator(state).set_params(
        solver=name, rule=procedure["rule"], trace=True, tol=TOL, max_iter=MOST_STEPS, time_limit=TIME_LIMIT
    )
    if state.mode == "classify":
        model.set_params(random_state=procedure["seed"])
    model.fit(state.X, state.y)
    (problem,) = fitted_problems(model, state.X, state.y)
    K, sign, n_steps = matrix_of(state), signs(state), len(model.steps_)
    alpha = np.zeros((n_steps + 1, state.n))
    columns = model.steps_.columns
    for k in range(n_steps):
        alpha[k + 1] = alpha[k]
        alpha[k + 1, columns["i"][k]] = columns["alpha_i"][k] if bias else columns["clipped"][k]
        if bias:
            alpha[k + 1, columns["j"][k]] = columns["clipped"][k]
    beta = alpha * sign
    b = np.zeros(n_steps + 1)
    # the problem has the first class positive
    flip = -1.0 if state.mode == "classify" else 1.0
    rows, dual = problem.rows, problem.problem
    inner_K = K[np.ix_(rows, rows)]
    if bias:
        for k in range(n_steps + 1):
            inner = flip * beta[k][rows]
            b[k] = flip * float(thresholds(dual.qp, inner, inner_K @ inner).sum())

    def certified(coefficients: Vector) -> Certificate:
        inner = flip * coefficients[rows]
        return certificate(dual.qp, dual.loss, dual.y, dual.weight, inner, inner_K @ inner)

    upper = math.inf if state.loss == "squared_hinge" else state.C
    best = fitted(state)
    optimum = float(best.certificate_.dual)
    return Walk(model.steps_, beta, b, expansion(state, best), optimum, None, note, K, upper, certified)


def expansion(state: State, model: Any) -> tuple[Vector, float]:
    """The signed coefficients of all points and the intercept of a fitted machine."""
    beta = np.zeros(state.n)
    beta[np.asarray(model.support_)] = np.asarray(model.dual_coef_).ravel()
    return beta, float(np.atleast_1d(model.intercept_)[0])


def _pegasos(state: State, procedure: dict[str, Any]) -> Walk:
    if math.isinf(state.C):
        raise StateError("Pegasos needs a finite C: its λ is 1/(C n).", "C")
    n, kernel = state.n, state.machine_kernel
    lam = 1.0 / (state.C * n)
    size = procedure["step_size"]
    model = PegasosClassifier(
        lam, kernel=kernel, n_steps=min(MOST_STEPS, procedure["passes"] * n), fit_intercept=state.bias,
        average="last", step_size="pegasos" if size is None else size, random_state=procedure["seed"], trace=True,
        time_limit=TIME_LIMIT,
    ).fit(state.X, state.y)  # fmt: skip
    columns, sign = model.steps_.columns, signs(state)
    n_steps = len(columns["t"])
    beta, b = np.zeros((n_steps + 1, n)), np.zeros(n_steps + 1)
    theta, bias = np.zeros(n), 0.0
    for k in range(n_steps):
        i, updated, eta = int(columns["i"][k]), bool(columns["updated"][k]), float(columns["step_size"][k])
        if size is None:  # w = θ/(λt)
            theta[i] += sign[i] * updated
            bias += sign[i] * updated
            factor = 1.0 / (lam * (k + 2))
            beta[k + 1], b[k + 1] = factor * theta, factor * bias
        else:
            beta[k + 1], b[k + 1] = (1.0 - eta * lam) * beta[k], (1.0 - eta * lam) * b[k]
            beta[k + 1, i] += eta * sign[i] * updated
            b[k + 1] += eta * sign[i] * updated
    # its bias is the weight of a constant feature
    note = "Pegasos treats the bias as the weight of a constant feature." if state.bias else None
    wider = estimator(replace(state, bias=False, loss="hinge")).set_params(
        kernel=kernel + 1.0 if state.bias else kernel
    )
    wider.fit(state.X, state.y)
    exact, _ = expansion(state, wider)
    at_best = exact, float(exact.sum()) if state.bias else 0.0
    optimum = lam * float(wider.certificate_.primal)
    return Walk(model.steps_, beta, b if state.bias else 0.0 * b, at_best, optimum, None, note, matrix_of(state))


def _perceptron(state: State, procedure: dict[str, Any]) -> Walk:
    n = state.n
    passes = max(1, min(procedure["passes"], MOST_STEPS // n))
    seed = procedure["seed"]  # 0: the order in which the points were placed
    model = Perceptron(
        kernel=state.machine_kernel, fit_intercept=state.bias, tol=None, max_iter=passes, shuffle=seed > 0,
        random_state=seed, trace=True, time_limit=TIME_LIMIT,
    ).fit(state.X, state.y)  # fmt: skip
    columns, sign = model.steps_.columns, signs(state)
    n_steps = len(columns["t"])
    beta, b = np.zeros((n_steps + 1, n)), np.zeros(n_steps + 1)
    for k in range(n_steps):
        beta[k + 1], b[k + 1] = beta[k], b[k]
        if columns["mistake"][k]:
            i = int(columns["i"][k])
            beta[k + 1, i] += sign[i]
            b[k + 1] += sign[i] if state.bias else 0.0
    bound = float(model.update_bound(state.X, state.y)[0])
    exact = None
    try:
        exact = expansion(state, fitted(replace(state, C=math.inf, loss="hinge")))
    except NotSeparableError:
        exact = None
    note = None if math.isfinite(bound) else "The classes are not separable with this kernel: it never ends."
    return Walk(model.steps_, beta, b, exact, None, bound, note, matrix_of(state))


def _lms(state: State, procedure: dict[str, Any]) -> Walk:
    target = signs(state) if state.mode == "classify" else np.asarray(state.y, dtype=np.float64)
    size = procedure["step_size"]
    model = KernelLMS(
        kernel=state.machine_kernel, learning_rate="auto" if size is None else size, tol=0.0, trace=True,
        max_iter=min(MOST_STEPS, max(100, 10 * procedure["passes"])), time_limit=TIME_LIMIT,
    ).fit(state.X, target)  # fmt: skip
    K, n_steps = matrix_of(state), len(model.steps_)
    beta = np.zeros((n_steps + 1, state.n))
    for k in range(n_steps):
        beta[k + 1] = beta[k] + model.learning_rate_ * (target - K @ beta[k])
    # its limit: least squares, in the directions that it reaches within a million steps
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    reached = values > REACHED * max(float(values[-1]), 1e-300)
    limit = vectors[:, reached] @ ((vectors[:, reached].T @ target) / values[reached])
    error = 0.5 * float(((target - K @ limit) ** 2).sum())
    note = "LMS has no bias. Grey is the function of least squares to which it tends."
    return Walk(model.steps_, beta, np.zeros(n_steps + 1), (limit, 0.0), error, None, note, K)


# ---- answers ----------------------------------------------------------------------------------------------------


def steps_json(state: State, procedure: dict[str, Any]) -> dict[str, Any]:
    """The answer to `steps`."""
    found = walk(state, procedure)
    n_steps = len(found.steps)
    linear = isinstance(state.machine_kernel, Linear) and state.in_plane
    per_frame = 3 if linear else state.n
    n_frames = max(2, min(MOST_FRAMES, MOST_NUMBERS // per_frame, n_steps + 1))
    chosen = np.unique(np.linspace(0, n_steps, n_frames).round().astype(np.intp))
    return {
        "method": found.steps.method,
        "measure": found.steps.measure,
        "columns": {name: _column(values) for name, values in found.steps.columns.items()},
        "n_steps": n_steps,
        "optimum": found.optimum,
        "frames": [_frame(state, found.beta[k], float(found.b[k]), linear) for k in chosen],
        "frame_steps": chosen.tolist(),
        "exact": None if found.exact is None else _frame(state, *found.exact, linear),
        "contours": _contours(state, procedure, found, chosen) if procedure["name"] == "coordinate" else None,
        "box": _boxes(state, found) if procedure["name"] == "smo" else None,
        "bound": None if found.bound is None or math.isinf(found.bound) else found.bound,
        "bounds": _bounds(found, chosen),
        "note": found.note,
    }


def _bounds(found: Walk, chosen: Any) -> dict[str, Any] | None:
    """Primal and dual value at each frame; None for procedures that do not solve the dual."""
    if found.certified is None:
        return None
    shown = [found.certified(found.beta[k]) for k in chosen]
    return {"primal": [float(one.primal) for one in shown], "dual": [float(one.dual) for one in shown]}


def _column(values: Vector) -> list[Any]:
    return values.tolist() if values.dtype.kind in "biu" else rounded(values)


def _frame(state: State, beta: Vector, b: float, linear: bool) -> dict[str, Any]:
    """Coefficients of one step: w of a linear machine, else α = yβ."""
    if linear:
        return {"w": [float(one) for one in beta @ state.X], "b": b}
    return {"alpha": rounded(beta * signs(state)), "b": b}


def frame_json(state: State, procedure: dict[str, Any], step: int, grid: tuple[int, int]) -> dict[str, Any]:
    """The answer to `frame`: the values after ``step`` steps; -1 is the exact machine."""
    found = walk(state, procedure)
    if step == -1:
        if found.exact is None:
            raise StateError("There is no exact machine to compare with: the classes are not separable.", "step")
        beta, b = found.exact
    elif 0 <= step <= len(found.steps):
        beta, b = found.beta[step], float(found.b[step])
    else:
        raise StateError(f"There are {len(found.steps)} steps, no step {step}.", "step")
    X = state.X
    kernel = state.machine_kernel.bind(X)
    Z = lattice(state, grid) if state.in_plane else np.linspace(*state.view[:2], grid[0])[:, None]
    carries = np.flatnonzero(beta)
    with quietly():
        values = np.full(len(Z), b)
        if len(carries):
            values += kernel.block(kernel.prepare(Z), kernel.prepare(X[carries])) @ beta[carries]
    common = {"step": step, "points": _points(state, procedure, found, beta, b)}
    if state.in_plane:
        return {"grid": grid_json(state, grid, values), **common}
    return {
        "grid": {"columns": grid[0], "view": list(state.view), "x": rounded(Z[:, 0]), "f": rounded(values)},
        **common,
    }


def _points(state: State, procedure: dict[str, Any], found: Walk, beta: Vector, b: float) -> dict[str, Any]:
    """α, state, value and slack of each point at one step."""
    f = found.K @ beta + b
    if state.mode == "classify":
        slack = np.maximum(0.0, 1.0 - signs(state) * f)
    else:  # LMS has no tube
        slack = np.maximum(0.0, np.abs(state.y - f) - (0.0 if procedure["name"] == "lms" else state.epsilon))
    near = AT_BOUND * (found.upper if math.isfinite(found.upper) else 1.0)
    size = np.abs(beta)
    states = np.where(size <= near, "zero", np.where(size >= found.upper - near, "bound", "free"))
    return {"alpha": rounded(beta * signs(state)), "state": states.tolist(), "f": rounded(f), "slack": rounded(slack)}


def quadratic(K: Matrix, linear: Vector, beta: Vector, sign: Vector, i: int, j: int) -> list[float]:
    """The dual as a function of a pair, other variables fixed: p αᵢ + q αⱼ − ½(a αᵢ² + c αⱼ²) − d αᵢαⱼ + constant.

    Returned as [p, q, a, c, d, constant]. The dual is linear'α − ½ β'Kβ with β = yα.
    """
    others = beta.copy()
    others[[i, j]] = 0.0
    F = K @ others
    constant = float(linear @ (sign * others)) - 0.5 * float(others @ F)
    return [
        float(linear[i] - sign[i] * F[i]),
        float(linear[j] - sign[j] * F[j]),
        float(K[i, i]),
        float(K[j, j]),
        float(sign[i] * sign[j] * K[i, j]),
        constant,
    ]


def _penalty(state: State) -> float:
    """The number that a squared loss adds to the diagonal of K: 1/(2C)."""
    return 0.5 / state.C if state.loss == "squared_hinge" else 0.0


def _boxes(state: State, found: Walk) -> list[dict[str, Any]]:
    """The box of each SMO step: its segment, start and end, and the dual over the pair."""
    columns, sign = found.steps.columns, signs(state)
    classify = state.mode == "classify"
    K = found.K + _penalty(state) * np.eye(state.n)
    upper = None if state.loss == "squared_hinge" else state.C
    boxes = []
    for k in range(len(found.steps)):
        i, j = int(columns["i"][k]), int(columns["j"][k])
        before, after = found.beta[k] * sign, found.beta[k + 1] * sign
        box = {
            "i": i,
            "j": j,
            "L": _finite(columns["L"][k]),
            "H": _finite(columns["H"][k]),
            "C": upper,
            "before": [float(before[i]), float(before[j])],
            "unclipped": _finite(columns["unclipped"][k]),
            "after": [float(after[i]), float(after[j])],
            "same_sign": bool(sign[i] == sign[j]) if classify else True,
        }
        if classify:
            box["quadratic"] = quadratic(K, np.ones(state.n), found.beta[k], sign, i, j)
        boxes.append(box)
    return boxes


def _finite(given: Any) -> float | None:
    return float(given) if math.isfinite(given) else None


def _contours(state: State, procedure: dict[str, Any], found: Walk, chosen: Any) -> dict[str, Any] | None:
    """Coordinate ascent seen in two coordinates: the dual over them at each frame, and their path."""
    if state.mode != "classify" or state.n < 2 or found.exact is None:
        return None
    sign = signs(state)
    pair = procedure["coordinates"]
    if pair is None:
        # the two that move most
        moved = np.abs(np.diff(found.beta, axis=0)).sum(axis=0)
        pair = tuple(int(one) for one in np.argsort(-moved, kind="stable")[:2])
    i, j = pair
    if not (i < state.n and j < state.n and i != j):
        raise StateError(f"coordinates must be two different points below {state.n}.", "coordinates")
    K = found.K + _penalty(state) * np.eye(state.n)
    ones = np.ones(state.n)
    exact = found.exact[0] * sign
    return {
        "coordinates": [i, j],
        "C": None if state.loss == "squared_hinge" else state.C,
        "path": rounded(found.beta[:, [i, j]] * sign[[i, j]]),
        "quadratics": [quadratic(K, ones, found.beta[k], sign, i, j) for k in chosen],
        "optimum": [float(exact[i]), float(exact[j])],
    }
