"""One point of a machine: its multiplier, its optimality condition in words, and the machine without it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError, NotSeparableError
from mercer.selection.leave_one_out import leave_one_out
from mercer.studio.panels.fitted_machine import fitted, item, plain, quietly, short, too_few
from mercer.studio.state import State, StateError
from mercer.theory.kkt import Optimality, kkt_report

# seconds for all leave-one-out problems; after them the span estimate is used
LEAVING_OUT = 20.0


def one_point(state: State, index: int) -> dict[str, Any]:
    """The answer to `point`."""
    if not 0 <= index < state.n:
        raise StateError(f"Point {index} does not exist: there are {state.n} points.", "index")
    try:
        model = fitted(state)
    except NotSeparableError as error:
        raise StateError(str(error), "C") from None
    with quietly():
        found = _of_process(state, model, index) if state.mode == "process" else _of_machine(state, model, index)
    return {"index": index, **found, "leave_one_out": _without(state, index)}


def _of_process(state: State, model: Any, index: int) -> dict[str, Any]:
    mean, deviation = (float(one[0]) for one in model.predict(state.X[[index]], return_std=True))
    target = float(state.y[index])
    return {
        "alpha": plain(np.asarray(model.alpha_).ravel()[index]),
        "slack": 0.0,
        "f": mean,
        "state": "free",
        "kkt": f"The mean is {short(mean)} ± {short(deviation)}; the target is {short(target)}.",
        "violation": 0.0,
    }


def _of_machine(state: State, model: Any, index: int) -> dict[str, Any]:
    if state.mode == "quantiles":
        middle = min(range(len(model)), key=lambda k: abs(state.quantiles[k] - 0.5))
        model = model[middle]
    report = kkt_report(model, state.X, None if state.mode == "one_class" else state.y)
    mine = [problem for problem in report.problems if index in problem.rows]
    # of several pairs of classes, the one in which the point counts most
    problem = max(mine, key=lambda one: float(one.alpha[one.rows == index][0]))
    place = int(np.flatnonzero(problem.rows == index)[0])
    return {
        "alpha": plain(problem.alpha[place]),
        "slack": plain(problem.xi[place]),
        "f": plain(problem.decision[place]),
        "state": str(problem.state[place]),
        "kkt": sentence(state, problem, place),
        "violation": plain(problem.violation[place]),
        "against": [int(label) for label in problem.labels],
    }


def sentence(state: State, problem: Optimality, place: int) -> str:
    """The optimality condition of a point in words and numbers."""
    alpha, f, slack = float(problem.alpha[place]), float(problem.decision[place]), float(problem.xi[place])
    kind = str(problem.state[place])
    C = short(state.C)
    if state.mode == "classify":
        own = f if state.y[problem.rows[place]] == problem.labels[0] else -f
        if kind == "zero":
            return f"α = 0, so y·f ≥ 1: it is {short(own)}. The machine is the same without this point."
        if kind == "free":
            if state.loss == "squared_hinge" and math.isfinite(state.C):
                return f"α = {short(alpha)} > 0, so y·f = 1 − α/2C = {short(own)}."
            return f"0 < α = {short(alpha)} < {C}, so y·f = 1: it is {short(own)}, on the margin."
        where = "inside the margin" if own > 0 else "on the wrong side"
        return f"α = C = {C}, so y·f ≤ 1: it is {short(own)}, {where}, with slack {short(slack)}."
    if state.mode == "one_class":
        if kind == "zero":
            return f"α = 0, so f ≥ 0: it is {short(f)}, inside the region."
        if kind == "free":
            return f"0 < α = {short(alpha)} < 1, so f = 0: it is {short(f)}, on the boundary."
        return f"α = 1, so f ≤ 0: it is {short(f)}, outside by {short(slack)}."
    error = float(state.y[problem.rows[place]]) - f
    if state.mode == "quantiles":
        side = "on the curve" if kind == "free" else "above the curve" if error > 0 else "below the curve"
        return f"β = {short(float(problem.beta[place]))}: the point is {side}, y − f = {short(error)}."
    epsilon = short(state.epsilon)
    if kind == "zero":
        return f"α = 0, so |y − f| ≤ ε = {epsilon}: it is {short(abs(error))}, inside the tube."
    if kind == "free":
        if state.loss == "squared_hinge" and math.isfinite(state.C):
            return f"α = {short(alpha)} > 0, so |y − f| = ε + α/2C = {short(abs(error))}."
        return f"0 < α = {short(alpha)} < {C}, so |y − f| = ε = {epsilon}: it is {short(abs(error))}."
    return f"α = C = {C}, so |y − f| ≥ ε = {epsilon}: it is {short(abs(error))}, slack {short(slack)}."


def _without(state: State, index: int) -> dict[str, Any]:
    """The prediction of the point by the exact machine that is fitted anew without it."""
    others = replace(state, points=state.points[:index] + state.points[index + 1 :], selected=None)
    if too_few(others) is not None:
        return {"f": None, "label": None, "flips": None, "text": "Without this point there is no machine."}
    try:
        model = fitted(others)
    except (NotSeparableError, StateError) as error:
        return {"f": None, "label": None, "flips": None, "text": str(error)}
    x, y = state.X[[index]], state.y[index]
    with quietly():
        if state.mode == "classify":
            label = int(model.predict(x)[0])
            right = label == int(y)
            value = float(model.decision_function(x)[0]) if len(model.classes_) == 2 else None
            words = "still classified correctly" if right else f"classified as {label}, not {int(y)}"
            text = f"Without it the point is {words}{'' if value is None else f' (f = {short(value)})'}."
            before = int(fitted(state).predict(x)[0])
            return {"f": value, "label": label, "flips": before != label, "correct": right, "text": text}
        if state.mode == "one_class":
            value = float(model.decision_function(x)[0])
            inside = value >= 0
            before = float(fitted(state).decision_function(x)[0]) >= -1e-9
            text = f"Without it the point is {'inside' if inside else 'outside'} (f = {short(value)})."
            return {"f": value, "label": 1 if inside else -1, "flips": bool(before != inside), "text": text}
        if state.mode == "quantiles":
            model = model[min(range(len(model)), key=lambda k: abs(state.quantiles[k] - 0.5))]
        value = float(np.asarray(model.predict(x)).ravel()[0])
    text = f"Without it f = {short(value)}, {short(abs(float(y) - value))} away from its target."
    return {"f": value, "label": None, "flips": None, "text": text}


def all_left_out(state: State) -> dict[str, Any]:
    """The answer to `leave_one_out`: the prediction of each point by the machine without it."""
    if state.mode not in ("classify", "regress"):
        raise StateError("Leave-one-out answers are for classification and regression.", "mode")
    try:
        model = fitted(state)
        with quietly():
            report = leave_one_out(model, state.X, state.y, time_limit=LEAVING_OUT)
    except NotSeparableError as error:
        raise StateError(str(error), "C") from None
    except InvalidInputError as error:
        raise error if isinstance(error, StateError) else StateError(str(error), "state") from None
    n = state.n
    share = report.n_support / n
    values = None if report.decision_function is None else np.asarray(report.decision_function)
    return {
        "left_out_error": plain(report.error),
        "wrong": None if report.wrong is None else [bool(one) for one in report.wrong],
        "f": None if values is None or values.ndim != 1 else [plain(one) for one in values],
        "exact": report.complete,
        "text": str(report),
        "numbers": [
            item("leave-one-out error", report.error, "Each point is judged by the machine without it."),
            item("bound", share, "Share of support vectors: leave-one-out error is at most this.")
            if state.mode == "classify"
            else item("support vectors", share, "Share of support vectors."),
        ],
    }
