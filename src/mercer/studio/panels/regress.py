"""Fits over one variable: support vector regression, quantiles and Gaussian processes."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.exceptions import MercerError
from mercer.kernels.features import Vector
from mercer.problems.solution import combine
from mercer.studio.panels.fitted_machine import (
    Stopwatch,
    axis,
    certificate_json,
    fitted,
    item,
    plain,
    quietly,
    reached,
    refusal,
    rounded,
    short,
    unfinished,
)
from mercer.studio.state import State, StateError
from mercer.theory.kkt import Optimality, kkt_report

# functions drawn from the posterior of a Gaussian process, and their seed
N_SAMPLES, SEED = 3, 0
# the most points at which they are drawn: the covariance matrix has the square of this many entries
MOST_SAMPLED = 200


def fit_line(state: State, grid: tuple[int, int]) -> dict[str, Any]:
    """The answer to `fit` in the modes over one variable."""
    watch = Stopwatch()
    show = {"regress": _regression, "quantiles": _quantiles, "process": _process}[state.mode]
    model = fitted(state)
    try:
        with quietly():
            found = show(state, model, grid[0])
    except (MercerError, ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        raise StateError(refusal(error), "kernel") from None
    return {"seconds": watch.seconds, "classes": [], "line": None, **found}


def _curve(state: State, columns: int, **values: Any) -> dict[str, Any]:
    """Values over x, as the grid of the answer."""
    x = axis(state, columns)[:, 0]
    return {"columns": columns, "view": list(state.view), "x": rounded(x), **values}


def _points(problem: Optimality, y: Vector) -> dict[str, Any]:
    return {
        "alpha": rounded(problem.alpha),
        "state": [str(one) for one in problem.state],
        "f": rounded(problem.decision),
        "slack": rounded(problem.xi),
        "kkt": [plain(one) for one in problem.violation],
        "margin": rounded(y - problem.decision),
    }


def _status(models: list[Any]) -> dict[str, Any]:
    finished = all(reached(model) for model in models)
    return {"status": "optimal" if finished else "limit", "message": None if finished else unfinished(models)}


def _regression(state: State, model: Any, columns: int) -> dict[str, Any]:
    f = model.predict(axis(state, columns))
    (problem,) = kkt_report(model, state.X, state.y).problems
    n, carrying = state.n, len(model.support_)
    outside = int(np.count_nonzero(problem.xi > 1e-5 * max(1.0, float(np.ptp(state.y)))))
    residual = state.y - problem.decision
    numbers = [
        item("|w|", float(np.atleast_1d(model.rkhs_norm_)[0]), "Length of the weight vector: small means flat."),
        item(
            "support vectors",
            carrying / n,
            "Share of points with α > 0: on the edge of the tube or outside.",
            f"{carrying} of {n} ({100 * carrying / n:.0f} %)",
        ),
        item(
            "free", problem.count("free"), "Points with 0 < α < C: on the edge of the tube.", str(problem.count("free"))
        ),
        item("at C", problem.count("bound"), "Points with α = C: outside the tube.", str(problem.count("bound"))),
        item("outside", outside / n, "Share of points outside the tube.", f"{outside} of {n}"),
        item("total slack", float(problem.xi.sum()), "Σ ξ: how far points are outside the tube, in sum."),
        item("mean |error|", float(np.abs(residual).mean()), "Mean distance of the targets from the function."),
    ]
    return {
        **_status([model]),
        "grid": _curve(
            state, columns, f=rounded(f), lower=rounded(f - state.epsilon), upper=rounded(f + state.epsilon)
        ),
        "points": _points(problem, state.y),
        "certificate": certificate_json(model.certificate_),
        "numbers": numbers,
        "plan": str(model.plan_),
    }


def _quantiles(state: State, models: list[Any], columns: int) -> dict[str, Any]:
    x = axis(state, columns)
    problems = [kkt_report(model, state.X, state.y).problems[0] for model in models]
    # points show the machine whose quantile is nearest to the median
    middle = min(range(len(models)), key=lambda k: abs(state.quantiles[k] - 0.5))
    curves = [rounded(model.predict(x)) for model in models]
    edge = 1e-6 * max(1.0, float(np.ptp(state.y)))
    numbers = []
    for quantile, problem in zip(state.quantiles, problems, strict=True):
        below = int(np.count_nonzero(state.y < problem.decision - edge))
        at_most = int(np.count_nonzero(state.y <= problem.decision + edge))
        numbers.append(
            item(
                f"below {quantile:g}",
                below / state.n,
                f"Points below the curve of the quantile {quantile:g}, and points on it: their shares enclose it.",
                f"{below} to {at_most} of {state.n}",
            )
        )
    values = np.array([problem.decision for problem in problems])
    crossing = int(np.count_nonzero((np.diff(values, axis=0) < -edge).any(axis=0))) if len(models) > 1 else 0
    numbers.append(
        item("crossings", crossing, "Points at which a higher quantile lies below a lower one.", str(crossing))
    )
    return {
        **_status(models),
        "grid": _curve(state, columns, curves=curves, quantiles=list(state.quantiles)),
        "points": _points(problems[middle], state.y),
        "certificate": certificate_json(combine([model.certificate_ for model in models])),
        "numbers": numbers,
        "plan": str(models[0].plan_),
    }


def _process(state: State, model: Any, columns: int) -> dict[str, Any]:
    x = axis(state, columns)
    mean, deviation = model.predict(x, return_std=True)
    coarse = axis(state, min(columns, MOST_SAMPLED))
    drawn = model.sample_y(coarse, N_SAMPLES, random_state=SEED)
    # samples over fewer points are drawn as straight lines between them
    samples = [np.interp(x[:, 0], coarse[:, 0], one) for one in drawn.T]
    at_points, spread = model.predict(state.X, return_std=True)
    inside = int(np.count_nonzero(np.abs(state.y - at_points) <= 2 * np.hypot(spread, state.noise)))
    residual = float(model.residual_)
    numbers = [
        item(
            "log likelihood", float(model.log_marginal_likelihood_value_), "log p(y) of the targets under this kernel."
        ),
        item(
            "within 2σ",
            inside / state.n,
            "Points within two standard deviations, noise included.",
            f"{inside} of {state.n}",
        ),
        item("mean deviation", float(deviation.mean()), "Standard deviation of the function, averaged over the view."),
        item("residual", residual, "Largest |y − (K + σ²I)α|, recomputed: 0 up to rounding."),
    ]
    return {
        "status": "optimal",
        "message": None,
        "grid": _curve(
            state, columns, mean=rounded(mean), deviation=rounded(deviation), samples=[rounded(s) for s in samples]
        ),
        "points": {
            "alpha": rounded(model.alpha_),
            "state": ["free"] * state.n,
            "f": rounded(at_points),
            "slack": [0.0] * state.n,
            "kkt": [0.0] * state.n,
            "margin": rounded(state.y - at_points),
            "deviation": rounded(spread),
        },
        "certificate": None,
        "why": f"A Gaussian process solves a linear system, which has no dual; its residual is {short(residual)}.",
        "numbers": numbers,
        "plan": f"{state.n} samples, Cholesky factor of K + σ²I",
    }
