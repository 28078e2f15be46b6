"""All answers of the studio: one function for each name, from JSON to JSON. Server, widget and export use this door."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mercer.studio import presets
from mercer.studio.machine import too_few
from mercer.studio.state import State, StateError, kind, parse_state, whole

Payload = dict[str, Any]

# grid points that one answer computes at most
MOST_GRID = 40_000
DEFAULT_GRID = (72, 72)


def answer(name: str, payload: Any) -> dict[str, Any]:
    """The answer to one question. Raises StateError if the question is not valid."""
    if name not in ANSWERS:
        raise StateError(f"There is no answer {name[:60]!r}. There are {', '.join(ANSWERS)}.", "name")
    if not isinstance(payload, dict):
        raise StateError(f"A question is a JSON object, but {kind(payload)} was given.", "payload")
    return ANSWERS[name](payload)


def state_of(payload: Payload) -> State:
    """The state of a question."""
    if "state" not in payload:
        raise StateError("The question has no state.", "state")
    return parse_state(payload["state"])


def grid_of(payload: Payload) -> tuple[int, int]:
    """The columns and rows of a question's grid."""
    given = payload.get("grid")
    if given is None:
        return DEFAULT_GRID
    if not isinstance(given, list) or len(given) != 2:
        raise StateError("grid must be [columns, rows].", "grid")
    columns, rows = (whole(one, "grid", 2, 1000) for one in given)
    if columns * rows > MOST_GRID:
        raise StateError(f"A grid has at most {MOST_GRID:,} points, not {columns * rows:,}.", "grid")
    return columns, rows


def fit(payload: Payload) -> dict[str, Any]:
    """The machine of a state, at its points and on a grid."""
    state, grid = state_of(payload), grid_of(payload)
    why = too_few(state)
    if why is not None:
        return waiting(state, why)
    if state.in_plane:
        from mercer.studio.classify import fit_plane

        return fit_plane(state, grid)
    from mercer.studio.regress import fit_line

    return fit_line(state, grid)


def waiting(state: State, why: str) -> dict[str, Any]:
    """The answer while there are too few points for a machine."""
    return {
        "seconds": 0.0,
        "status": "waiting",
        "message": why,
        "classes": state.classes if state.mode == "classify" else [],
        "grid": None,
        "points": None,
        "line": None,
        "certificate": None,
        "why": why,
        "numbers": [],
        "plan": "",
    }


ANSWERS: dict[str, Callable[[Payload], dict[str, Any]]] = {
    "presets": lambda payload: {"presets": presets.all_presets()},
    "fit": fit,
}
