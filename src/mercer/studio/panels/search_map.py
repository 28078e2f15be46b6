"""The score of every pair of γ and C, by cross-validation, as a map."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import LeaveOneOut

from mercer.exceptions import MercerError
from mercer.kernels import Kernel
from mercer.selection.svc_cv import SVCCV
from mercer.studio.panels.fitted_machine import Stopwatch, plain, quietly, refusal, rounded
from mercer.studio.state import State, StateError, number

TIME_LIMIT = 20.0
# up to this many points each is left out once; more are divided into folds
LEAVE_ONE_OUT, FOLDS = 60, 5
# the most values along one side of the map, and the most points
MOST_VALUES, MOST_POINTS = 25, 1000
DEFAULT = {"gammas": np.geomspace(0.01, 100, 13), "Cs": np.geomspace(0.01, 1000, 11)}


def search_map(state: State, payload: dict[str, Any]) -> dict[str, Any]:
    """The answer to `search_map`."""
    watch = Stopwatch()
    if state.mode != "classify":
        raise StateError("The map over γ and C is for classification.", "mode")
    counts = [sum(1 for point in state.points if point[2] == label) for label in state.classes]
    if len(counts) < 2 or min(counts) < 2:
        raise StateError("The map needs at least two points of each of two classes.", "points")
    if state.n > MOST_POINTS:
        raise StateError(f"The map is computed for at most {MOST_POINTS:,} points.", "points")
    gammas, Cs = (_values(payload, name) for name in ("gammas", "Cs"))
    kernel = state.machine_kernel
    parameter = width_parameter(kernel)
    cv: Any = LeaveOneOut() if state.n <= LEAVE_ONE_OUT else min(FOLDS, min(counts))
    search = SVCCV(
        kernel=kernel, Cs=Cs, kernel_grid=None if parameter is None else {parameter: gammas}, loss=state.loss,
        fit_intercept=state.bias, cv=cv, refit=False, time_limit=TIME_LIMIT,
    )  # fmt: skip
    try:
        with quietly():
            search.fit(state.X, state.y)
    except (MercerError, ValueError, ArithmeticError) as error:
        raise StateError(refusal(error), "kernel") from None
    return {"seconds": watch.seconds, **_as_matrix(search, kernel, parameter, gammas, Cs, cv)}


def _as_matrix(search: Any, kernel: Kernel, parameter: str | None, gammas: Any, Cs: Any, cv: Any) -> dict[str, Any]:
    results = search.cv_results_
    gammas = gammas if parameter is not None else gammas[:1]
    scores = np.full((len(gammas), len(Cs)), np.nan)
    for one, score in zip(results["params"], results["mean_test_score"], strict=True):
        value = gammas[0] if parameter is None else one["kernel"].get_params()[parameter]
        scores[np.argmin(np.abs(np.log(gammas / value))), np.argmin(np.abs(np.log(Cs / one["C"])))] = score
    if np.isnan(scores).all():
        raise StateError("The map was not computed in time: use fewer points, or try again.", "points")
    best = np.unravel_index(int(np.nanargmax(scores)), scores.shape)
    chosen = kernel if parameter is None else kernel.set_params(**{parameter: float(gammas[best[0]])})
    return {
        "gammas": gammas.tolist() if parameter is not None else None,
        "parameter": parameter,
        "Cs": Cs.tolist(),
        "scores": rounded(scores),
        "best": {
            "gamma": float(gammas[best[0]]) if parameter is not None else None,
            "C": float(Cs[best[1]]),
            "score": plain(scores[best]),
            "kernel": repr(chosen),
        },
        "method": "leave-one-out" if isinstance(cv, LeaveOneOut) else f"{cv}-fold cross-validation",
    }


def width_parameter(kernel: Kernel) -> str | None:
    """The name of the first parameter that sets the width of a kernel; None if there is none."""
    names = [name for name in kernel.get_params() if name.split("__")[-1] in ("gamma", "length_scale")]
    return names[0] if names else None


def _values(payload: dict[str, Any], name: str) -> Any:
    given = payload.get(name)
    if given is None:
        return DEFAULT[name]
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_VALUES:
        raise StateError(f"{name} must be a list of 1 to {MOST_VALUES} numbers.", name)
    return np.array([number(one, name, 0.0, 1e12, open_low=True) for one in given])
