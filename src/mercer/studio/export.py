"""Exports: the model as a file, and a page with a slider over precomputed machines that needs no server."""

from __future__ import annotations

import base64
import io
import json
import math
import time
import zipfile
from dataclasses import replace
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError, NotSeparableError
from mercer.io.model_file.save_load import save
from mercer.kernels.features import Matrix
from mercer.studio.panels.class_regions import finer_labels
from mercer.studio.panels.classify import fit_plane
from mercer.studio.panels.fitted_machine import fitted, short, too_few
from mercer.studio.panels.formula import formula_of, mathml_of
from mercer.studio.panels.path import MOST_POINTS as MOST_PATH_POINTS
from mercer.studio.panels.path import at_C, path_of
from mercer.studio.panels.regress import fit_line
from mercer.studio.state import State, StateError

# the most machines of a page: positions of its slider
MOST_STOPS = 121
# the most machines of a page if each is a new fit
MOST_FITS = 31
GRID = (64, 64)
# labels of several classes are drawn on a grid this much finer
FINER = 4
CURVE = (160, 2)
# seconds for all machines of a page
TIME_LIMIT = 40.0
TITLES = {
    "classify": "Support vector classification",
    "regress": "Support vector regression",
    "one_class": "One-class machine",
    "quantiles": "Quantiles",
    "process": "Gaussian process",
}


def model_json(state: State) -> dict[str, Any]:
    """The answer to `export_model`: a .mercer file, or for several quantiles a zip archive of them."""
    try:
        model = fitted(state)
    except NotSeparableError as error:
        raise StateError(str(error), "C") from None
    if not isinstance(model, list):
        return {"name": "studio.mercer", "base64": _encoded(_file(model))}
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as folder:
        for quantile, one in zip(state.quantiles, model, strict=True):
            folder.writestr(f"quantile-{quantile:g}.mercer", _file(one))
    return {"name": "quantiles.zip", "base64": _encoded(archive.getvalue())}


def _file(model: Any) -> bytes:
    target = io.BytesIO()
    try:
        save(model, target)
    except InvalidInputError as error:
        raise StateError(str(error), "kernel") from None
    return target.getvalue()


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


# ---- the page that moves ----------------------------------------------------------------------------------------


def page_json(state: State) -> dict[str, Any]:
    """The answer to `export_page`."""
    why = too_few(state)
    if why is not None:
        raise StateError(why, "points")
    name, along, stops, start = machines(state)
    if not stops:
        raise StateError("There is no machine to show: the classes are not separable at this C.", "C")
    data = {
        "mode": state.mode,
        "view": list(state.view),
        "points": [list(point) for point in state.points],
        "classes": state.classes,
        "kernel": formula_of(state.machine_kernel).plain,
        "parameter": name,
        "along": along,
        "start": start,
        "stops": stops,
        "epsilon": state.epsilon,
        "code": _code(state),
    }
    return {"html": _html(state, data), "stops": len(stops), "along": along}


def _code(state: State) -> str:
    from mercer.studio.code import code_json

    return str(code_json(state)["python"])


def machines(state: State) -> tuple[str, str, list[dict[str, Any]], int]:
    """The name of the slider, a sentence about its positions, the machines, and the one to begin with."""
    if state.mode == "classify" and len(state.classes) == 2 and state.loss == "hinge" and state.n <= MOST_PATH_POINTS:
        return _along_path(state)
    if state.mode == "process":
        return "", "One machine.", [_stop("", None, _answer(state))], 0
    if state.mode == "one_class":
        return _refitted(state, "ν", "nu", np.unique(np.append(np.linspace(0.02, 0.7, MOST_FITS - 1), state.nu)))
    values = np.geomspace(1e-2, 1e3, MOST_FITS - 1)
    if math.isfinite(state.C):
        values = np.unique(np.append(values, state.C))
    return _refitted(state, "C", "C", values)


def _answer(state: State) -> dict[str, Any]:
    return fit_plane(state, GRID) if state.in_plane else fit_line(state, CURVE)


def _along_path(state: State) -> tuple[str, str, list[dict[str, Any]], int]:
    """Breaks of the exact path, thinned if there are many, and the C of the state."""
    path = path_of(state)
    breaks = np.asarray(path.C)
    chosen = breaks
    if len(breaks) >= MOST_STOPS:
        chosen = breaks[np.linspace(0, len(breaks) - 1, MOST_STOPS - 1).round().astype(np.intp)]
    own = min(max(state.C, float(breaks[0])), float(breaks[-1]))
    values = np.unique(np.append(chosen, own))
    stops = [_stop(f"C = {short(C)}", C, at_C(state, float(C), GRID)) for C in values]
    shown = f"{len(chosen)} of {len(breaks)} breaks" if len(chosen) < len(breaks) else f"all {len(breaks)} breaks"
    end = " Beyond the last one nothing changes: it is the hard margin." if path.constant else ""
    sentence = f"Each position is an exact machine: {shown} of the path over C, and the C of the page.{end}"
    return "C", sentence, stops, int(np.argmin(np.abs(values - own)))


def _refitted(state: State, name: str, parameter: str, values: Any) -> tuple[str, str, list[dict[str, Any]], int]:
    """New fits along a parameter."""
    began = time.perf_counter()
    stops: list[dict[str, Any]] = []
    kept: list[float] = []
    own = float(getattr(state, parameter))
    # the machine of the state first, so that it is there if the time runs out
    order = sorted(
        values, key=lambda one: 0.0 if one == own else 1.0 + abs(math.log(one / own)) if own < math.inf else one
    )
    for value in order:
        if stops and time.perf_counter() - began > TIME_LIMIT:
            break
        try:
            found = _answer(replace(state, nu=float(value)) if parameter == "nu" else replace(state, C=float(value)))
        except (NotSeparableError, StateError):
            continue
        if found["grid"] is not None:
            stops.append(_stop(f"{name} = {short(float(value))}", float(value), found))
            kept.append(float(value))
    places = np.argsort(kept)
    start = int(np.flatnonzero(np.array(kept)[places] == own)[0]) if own in kept else len(kept) // 2
    return name, "Each position is a machine of its own, fitted exactly.", [stops[k] for k in places], start


def _stop(text: str, value: float | None, found: dict[str, Any]) -> dict[str, Any]:
    """The parts of an answer that the page keeps."""
    certificate = found["certificate"]
    numbers = [[one["name"], one["text"]] for one in found["numbers"] if not one["name"].startswith("bound")]
    return {
        "text": text,
        "value": value,
        "grid": _packed(found["grid"]),
        "alpha": found["points"]["alpha"],
        "states": "".join(one[0] for one in found["points"]["state"]),
        "numbers": numbers,
        "primal": certificate and certificate["primal"],
        "dual": certificate and certificate["dual"],
        "gap": certificate["text"] if certificate else found.get("why"),
    }


def _packed(grid: dict[str, Any]) -> dict[str, Any]:
    """Decision values as 16-bit numbers with a common scale; labels of several classes as runs; curves as they are."""
    if "values" not in grid:
        return {key: one for key, one in grid.items() if key not in ("columns", "view")}
    if "labels" in grid:
        labels = finer_labels(grid, FINER)
        return {"columns": labels.shape[1], "rows": labels.shape[0], "runs": _encoded(_runs(labels))}
    values = np.array(grid["values"], dtype=np.float64)
    # far from the boundary only the sign counts
    limit = min(float(np.abs(values).max()), 8.0) or 1.0
    scaled = np.round(np.clip(values / limit, -1, 1) * 32000).astype("<i2")
    return {
        "columns": grid["columns"],
        "rows": grid["rows"],
        "scale": limit / 32000,
        "values": _encoded(scaled.tobytes()),
    }


def _runs(labels: Matrix) -> bytes:
    """Labels row by row as pairs of bytes: a label, and how often it follows itself, at most 255 times."""
    flat = labels.ravel()
    starts = np.concatenate([[0], np.flatnonzero(np.diff(flat)) + 1])
    found = bytearray()
    for start, length in zip(starts, np.diff(np.append(starts, len(flat))), strict=True):
        full, rest = divmod(int(length), 255)
        found += bytes([int(flat[start]), 255]) * full + (bytes([int(flat[start]), rest]) if rest else b"")
    return bytes(found)


def _html(state: State, data: dict[str, Any]) -> str:
    folder = files("mercer.studio") / "player"
    script = (folder / "player.js").read_text(encoding="utf-8")
    style = (folder / "player.css").read_text(encoding="utf-8")
    text = json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    title = TITLES[state.mode]
    policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{escape(title)} – mercer studio</title>
<style>
{style}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
<div class="formula">{mathml_of(state.machine_kernel)}</div>
<div id="player"></div>
<p class="about">Made by mercer studio. This page needs no network.</p>
</main>
<script type="application/json" id="data">{text}</script>
<script>
{script}</script>
</body>
</html>
"""
