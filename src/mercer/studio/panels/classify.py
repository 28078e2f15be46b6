"""Fits of classification and one-class machines over the plane, and the answers that show them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError, NotSeparableError
from mercer.kernels import Linear
from mercer.kernels.features import Vector
from mercer.studio.panels.class_regions import pair_values, regions_json
from mercer.studio.panels.fitted_machine import (
    Stopwatch,
    certificate_json,
    fitted,
    grid_json,
    item,
    lattice,
    plain,
    quietly,
    reached,
    refusal,
    rounded,
    unfinished,
)
from mercer.studio.state import State, StateError
from mercer.theory.bounds import error_bounds
from mercer.theory.kkt import KKTReport, kkt_report

# the order in which a point's states count, if it takes part in several pairs of classes
_RANK = {"zero": 0, "free": 1, "bound": 2}


def fit_plane(state: State, grid: tuple[int, int]) -> dict[str, Any]:
    """The answer to `fit` in the modes "classify" and "one_class"."""
    watch = Stopwatch()
    try:
        model = fitted(state)
    except NotSeparableError as error:
        return not_separable(state, error, watch)
    return shown(state, model, grid, watch)


def shown(state: State, model: Any, grid: tuple[int, int], watch: Stopwatch) -> dict[str, Any]:
    """The answer that shows a fitted machine."""
    with quietly():
        try:
            report = kkt_report(model, state.X, None if state.mode == "one_class" else state.y)
            drawn = grid_of_machine(state, model, grid)
        except (InvalidInputError, ArithmeticError, ValueError) as error:
            raise StateError(refusal(error), "kernel") from None
        points = points_json(state, model, report)
        numbers = (
            one_class_numbers(model, report)
            if state.mode == "one_class"
            else class_numbers(state, model, report, points["state"])
        )
    hard = state.mode == "classify" and math.isinf(state.C)
    finished = reached(model)
    return {
        "seconds": watch.seconds,
        "status": "limit" if not finished else "separable" if hard else "optimal",
        "message": None if finished else unfinished([model]),
        "classes": [int(label) for label in model.classes_] if state.mode == "classify" else [],
        "grid": drawn,
        "points": points,
        "line": line_json(model),
        "certificate": certificate_json(model.certificate_),
        "numbers": numbers,
        "plan": str(model.plan_),
    }


def grid_of_machine(state: State, model: Any, grid: tuple[int, int]) -> dict[str, Any]:
    """Decision values on a grid; for several classes the winner at each point and its lead."""
    Z, k = lattice(state, grid), len(getattr(model, "classes_", ()))
    if k <= 2:
        return grid_json(state, grid, model.decision_function(Z))
    columns, rows = grid
    drawn = regions_json(pair_values(model, Z), model.classes_, grid)
    return {"columns": columns, "rows": rows, "view": list(state.view), **drawn}


def points_json(state: State, model: Any, report: KKTReport) -> dict[str, Any]:
    """α, state, value, slack and KKT violation of each point; for several classes the worst of its pairs."""
    n = state.n
    alpha, slack, violation = np.zeros(n), np.zeros(n), np.zeros(n)
    rank = np.zeros(n, np.intp)
    for problem in report.problems:
        rows = problem.rows
        alpha[rows] = np.maximum(alpha[rows], problem.alpha)
        slack[rows] = np.maximum(slack[rows], problem.xi)
        violation[rows] = np.maximum(violation[rows], problem.violation)
        rank[rows] = np.maximum(rank[rows], [_RANK[str(one)] for one in problem.state])
    f, margin = values_at_points(state, model, report)
    names = list(_RANK)
    return {
        "alpha": rounded(alpha),
        "state": [names[one] for one in rank],
        "f": rounded(f),
        "slack": rounded(slack),
        "kkt": [plain(one) for one in violation],
        "margin": rounded(margin),
    }


def values_at_points(state: State, model: Any, report: KKTReport) -> tuple[Vector, Vector]:
    """f and the geometric margin of each point: y f / |w|, for several classes the smallest over its pairs."""
    norms = np.maximum(np.atleast_1d(model.rkhs_norm_), np.finfo(np.float64).tiny)
    f = np.full(state.n, np.inf)
    margin = np.full(state.n, np.inf)
    for problem, norm in zip(report.problems, norms, strict=True):
        rows, decision = problem.rows, problem.decision
        sign = np.ones(len(rows)) if not problem.labels else np.where(state.y[rows] == problem.labels[0], 1.0, -1.0)
        own = sign * decision
        margin[rows] = np.minimum(margin[rows], own / norm)
        f[rows] = decision if len(report.problems) == 1 else np.minimum(f[rows], own)
    return f, margin


def line_json(model: Any) -> dict[str, Any] | None:
    """w and b of a linear machine of two classes or one."""
    if not isinstance(model._kernel, Linear) or len(np.atleast_1d(model.intercept_)) != 1:
        return None
    w = np.asarray(model.coef_).ravel()
    return {"w": [float(one) for one in w], "b": float(np.atleast_1d(model.intercept_)[0])}


# ---- numbers ----------------------------------------------------------------------------------------------------


def class_numbers(state: State, model: Any, report: KKTReport, states: list[str]) -> list[dict[str, Any]]:
    """The numbers beside the picture of a classifier; ``states`` are those of the points, which are counted."""
    wrong = int(np.count_nonzero(model.predict(state.X) != state.y))
    numbers = separation_numbers(
        state.n,
        float(np.atleast_1d(model.rkhs_norm_).max()),
        float(np.min(model.margin_)),
        (state.n - states.count("zero"), states.count("free"), states.count("bound")),
        wrong,
        sum(float(problem.xi.sum()) for problem in report.problems),
        len(report.problems),
    )
    if model.certificate_ is not None and not model.certificate_.valid:
        # a kernel that is not positive semidefinite has no feature space, so |w| and the margin mean nothing
        for number in numbers[:2]:
            number["text"] = "not defined"
    return numbers + bound_numbers(state, model)


def separation_numbers(
    n: int, norm: float, margin: float, counts: tuple[int, int, int], wrong: int, slack: float, n_pairs: int = 1
) -> list[dict[str, Any]]:
    """Numbers that every classifier has; ``counts``: all support vectors, the free ones and the ones at C."""
    of_pairs = "" if n_pairs == 1 else f"; the smallest of {n_pairs} pairs of classes"
    points, where = ("Points", "") if n_pairs == 1 else ("Other points", " in a pair of classes")
    carrying, free, bound = counts
    return [
        item("|w|", norm, "Length of the weight vector in the feature space."),
        item("margin", margin, f"1/|w|: half the width of the street{of_pairs}."),
        item(
            "support vectors",
            carrying / n,
            "Share of points with α > 0. Leave-one-out error is at most this share.",
            f"{carrying} of {n} ({100 * carrying / n:.0f} %)",
        ),
        item(
            "free",
            free,
            f"{points} with 0 < α < C{where}: exactly on the margin.",
            str(free),
        ),
        item("at C", bound, f"Points with α = C{where}: inside the margin or wrong.", str(bound)),
        item(
            "training error",
            wrong / n,
            "Share of points on the wrong side.",
            f"{wrong} of {n} ({100 * wrong / n:.1f} %)",
        ),
        item("total slack", slack, "Σ ξ: how far points are on the wrong side of their margin, in sum."),
    ]


def bound_numbers(state: State, model: Any) -> list[dict[str, Any]]:
    """The smallest bound on the error of unseen points, of one pair of classes."""
    if len(state.classes) != 2:
        return []
    try:
        bounds = error_bounds(model, state.X, state.y)[0].bounds
    except (InvalidInputError, ArithmeticError, ValueError):
        return []
    known = [one for one in bounds if math.isfinite(one.value)]
    return [item(f"bound: {one.name}", one.value, one.remark) for one in known]


def one_class_numbers(model: Any, report: KKTReport) -> list[dict[str, Any]]:
    """The numbers beside the picture of a one-class machine."""
    problem = report.problems[0]
    n, carrying = len(problem.rows), len(model.support_)
    outside = int(np.count_nonzero(problem.decision < -1e-9 * max(1.0, float(np.abs(problem.decision).max()))))
    norm = float(np.atleast_1d(model.rkhs_norm_)[0])
    offset = float(np.atleast_1d(model.offset_)[0])
    return [
        item("|w|", norm, "Length of the weight vector in the feature space."),
        item("ρ", offset, "The threshold: a point is inside if ⟨w, φ(x)⟩ is at least ρ."),
        item("distance", offset / norm if norm > 0 else math.inf, "ρ/|w|: distance of the hyperplane from the origin."),
        item(
            "outside",
            outside / n,
            "Share of points outside the region: at most ν.",
            f"{outside} of {n} ({100 * outside / n:.1f} %)",
        ),
        item(
            "support vectors",
            carrying / n,
            "Share of points with α > 0: at least ν.",
            f"{carrying} of {n} ({100 * carrying / n:.0f} %)",
        ),
        item("free", report.count("free"), "Points with 0 < α < 1: on the boundary.", str(report.count("free"))),
        item("at the bound", report.count("bound"), "Points with α = 1: outside.", str(report.count("bound"))),
    ]


# ---- hard margins that do not exist -----------------------------------------------------------------------------


def not_separable(state: State, error: NotSeparableError, watch: Stopwatch) -> dict[str, Any]:
    """The answer for a hard margin on inseparable points: the common point of both hulls proves it."""
    return {
        "seconds": watch.seconds,
        "status": "not_separable",
        "message": str(error),
        "classes": state.classes,
        "grid": None,
        "points": None,
        "line": None,
        "certificate": None,
        "why": "There is no machine to certify: no hyperplane separates the classes.",
        "numbers": [],
        "proof": proof_json(state, error),
        "plan": "",
    }


def proof_json(state: State, error: NotSeparableError) -> dict[str, Any]:
    """Weights of the points of each class that combine to the same point."""
    weights = np.asarray(error.common_point_weights)
    used = np.flatnonzero(weights) if len(weights) == state.n else np.array([], np.intp)
    first, second = state.classes[0], state.classes[1]
    groups = {
        "positive": [[int(i), abs(float(weights[i]))] for i in used if state.y[i] == second],
        "negative": [[int(i), abs(float(weights[i]))] for i in used if state.y[i] == first],
    }
    point = None
    if isinstance(state.machine_kernel, Linear) and state.bias and groups["positive"]:
        total = sum(weight for _, weight in groups["positive"])
        place = np.array([i for i, _ in groups["positive"]], dtype=np.intp)
        point = rounded(np.array([weight for _, weight in groups["positive"]]) @ state.X[place] / total)
    return {**groups, "point": point, "distance": plain(error.distance), "proven": error.proven}
