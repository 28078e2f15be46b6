"""All answers of the studio: one function for each name, from JSON to JSON. Server and widget use them."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any

from mercer.exceptions import MercerError
from mercer.studio import presets
from mercer.studio.lessons import lessons_json
from mercer.studio.panels.fitted_machine import too_few
from mercer.studio.state import MOST_CLASSES, MOST_POINTS, State, StateError, kind, number, parse_state, whole

Payload = dict[str, Any]

# the most grid points that one answer computes
MOST_GRID = 40_000
DEFAULT_GRID = (72, 72)


def answer(name: str, payload: Any) -> dict[str, Any]:
    """The answer to one question. Raises StateError if the question is not valid."""
    if name not in ANSWERS:
        raise StateError(f"There is no answer {name[:60]!r}. There are {', '.join(ANSWERS)}.", "name")
    if not isinstance(payload, dict):
        raise StateError(f"A question is a JSON object, but {kind(payload)} was given.", "payload")
    return ANSWERS[name](payload)


def guarded(name: str, payload: Any) -> tuple[int, dict[str, Any]]:
    """The status and the answer to a question; an error of any kind becomes a sentence."""
    try:
        return 200, answer(name, payload)
    except StateError as error:
        return 422, {"error": {"what": error.what, "where": error.where}}
    except MercerError as error:
        return 422, {"error": {"what": str(error), "where": None}}
    except MemoryError:
        return 422, {"error": {"what": "There is not enough memory: use fewer points.", "where": "points"}}
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        what = f"mercer could not compute this ({type(error).__name__}: {str(error)[:200]}). Please report it."
        return 500, {"error": {"what": what, "where": None}}


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
        from mercer.studio.panels.classify import fit_plane

        return fit_plane(state, grid)
    from mercer.studio.panels.regress import fit_line

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


def point(payload: Payload) -> dict[str, Any]:
    """One point: its condition, and the machine without it."""
    from mercer.studio.panels.point import one_point

    return one_point(state_of(payload), whole(payload.get("index"), "index", 0, MOST_POINTS - 1))


def leave_one_out(payload: Payload) -> dict[str, Any]:
    """The leave-one-out result of each point: its prediction by the machine without it."""
    from mercer.studio.panels.point import all_left_out

    return all_left_out(state_of(payload))


def path(payload: Payload) -> dict[str, Any]:
    """The breaks of the exact path over C."""
    from mercer.studio.panels.path import path_json

    return path_json(state_of(payload))


def at_C(payload: Payload) -> dict[str, Any]:
    """The machine at a C, from the path."""
    from mercer.studio.panels import path

    return path.at_C(state_of(payload), number(payload.get("C"), "C", 0.0, 1e12, open_low=True), grid_of(payload))


def search_map(payload: Payload) -> dict[str, Any]:
    """The score of each pair of γ and C."""
    from mercer.studio.panels import search_map

    return search_map.search_map(state_of(payload), payload)


def kernel(payload: Payload) -> dict[str, Any]:
    """The card of the kernel."""
    from mercer.studio.panels.kernel_card import kernel_card

    return kernel_card(state_of(payload))


def gram(payload: Payload) -> dict[str, Any]:
    """The Gram matrix."""
    from mercer.studio.panels.gram_matrix import gram_json

    return gram_json(state_of(payload))


def lift(payload: Payload) -> dict[str, Any]:
    """The points in feature space."""
    from mercer.studio.panels.lift import lift_json

    return lift_json(state_of(payload))


def steps(payload: Payload) -> dict[str, Any]:
    """The run of a procedure."""
    from mercer.studio.panels.step_frames import read_procedure, steps_json

    return steps_json(state_of(payload), read_procedure(payload.get("procedure")))


def frame(payload: Payload) -> dict[str, Any]:
    """The machine after some steps of a procedure."""
    from mercer.studio.panels.step_frames import frame_json, read_procedure

    step = whole(payload.get("step", 0), "step", -1, 10**6)
    return frame_json(state_of(payload), read_procedure(payload.get("procedure")), step, grid_of(payload))


def code(payload: Payload) -> dict[str, Any]:
    """The Python script of a state."""
    from mercer.studio.code import code_json

    return code_json(state_of(payload))


def export_page(payload: Payload) -> dict[str, Any]:
    """One page that moves without a server."""
    from mercer.studio.export import page_json

    return page_json(state_of(payload))


def export_model(payload: Payload) -> dict[str, Any]:
    """The model as a file."""
    from mercer.studio.export import model_json

    return model_json(state_of(payload))


def table_open(payload: Payload) -> dict[str, Any]:
    """Open a table."""
    from mercer.studio.tables import open_json

    return open_json(payload)


def table_plane(payload: Payload) -> dict[str, Any]:
    """Rows of a table on the plane."""
    from mercer.studio.tables import plane_json

    return plane_json(payload)


def table_strings(payload: Payload) -> dict[str, Any]:
    """Texts of a table on the plane."""
    from mercer.studio.tables import strings_json

    return strings_json(payload)


def table_fit(payload: Payload) -> dict[str, Any]:
    """Start `mercer fit` on a table."""
    from mercer.studio.jobs import JOBS

    return {"job": JOBS.start(payload).id}


def job(payload: Payload) -> dict[str, Any]:
    """The progress of a fit."""
    from mercer.studio.jobs import JOBS

    return JOBS.get(payload.get("job")).to_json()


def job_stop(payload: Payload) -> dict[str, Any]:
    """Stop a fit; its best machine so far is kept."""
    from mercer.studio.jobs import JOBS

    found = JOBS.get(payload.get("job"))
    found.stop()
    return found.to_json()


def session(payload: Payload) -> dict[str, Any]:
    """The version and the limits of this process, and the table of the command line."""
    from mercer.studio.session import SESSION

    return SESSION.to_json() | {"limits": {"points": MOST_POINTS, "grid": MOST_GRID, "classes": MOST_CLASSES}}


ANSWERS: dict[str, Callable[[Payload], dict[str, Any]]] = {
    "presets": lambda payload: {"presets": presets.all_presets()},
    "lessons": lambda payload: lessons_json(),
    "fit": fit,
    "point": point,
    "leave_one_out": leave_one_out,
    "path": path,
    "at_C": at_C,
    "search_map": search_map,
    "kernel": kernel,
    "gram": gram,
    "lift": lift,
    "steps": steps,
    "frame": frame,
    "code": code,
    "export_page": export_page,
    "export_model": export_model,
    "table_open": table_open,
    "table_plane": table_plane,
    "table_strings": table_strings,
    "table_fit": table_fit,
    "job": job,
    "job_stop": job_stop,
    "session": session,
}
