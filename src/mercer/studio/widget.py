"""The studio in Jupyter: the same page as a widget, whose questions go through the kernel instead of a server."""

from __future__ import annotations

import math
import threading
from importlib.resources import files
from typing import Any

import numpy as np

from mercer.exceptions import MissingExtraError
from mercer.studio.answers import guarded
from mercer.studio.presets import all_presets
from mercer.studio.session import SESSION
from mercer.studio.state import parse_state
from mercer.studio.warming import Warming

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise MissingExtraError("StudioWidget", error.name or "anywidget", "studio") from None

STYLES = ("studio.css", "plane.css", "controls.css", "panels.css")


def static_text(name: str) -> str:
    """A file of the page."""
    return (files("mercer.studio") / "static" / name).read_text(encoding="utf-8")


def modules() -> dict[str, str]:
    """The modules of the page by name. A notebook loads no files, so they are sent as text."""
    folder = files("mercer.studio") / "static"
    names = sorted(one.name for one in folder.iterdir() if one.name.endswith(".js"))
    return {name: static_text(name) for name in names if name not in ("boot.js", "refused.js", "widget.js")}


def as_json(value: Any) -> Any:
    """A state written in Python as JSON has it: arrays and tuples are lists, an infinite C is "inf"."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: as_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(one) for one in value]
    return "inf" if isinstance(value, float) and value == math.inf else value


class StudioWidget(anywidget.AnyWidget):
    """mercer studio in a notebook cell.

    Parameters
    ----------
    state : dict, default=None
        A state of the page, in the form of its file or URL; None is the preset "moons". Points may be an array with a
        row (x, y, label) for each, and C may be infinite.

    Attributes
    ----------
    state : dict
        The present state. A change on the page changes it, and setting it changes the page.

    Examples
    --------
    >>> from mercer.studio import StudioWidget                                  # doctest: +SKIP
    >>> StudioWidget({"points": [[0, 0, 0], [1, 1, 1]], "kernel": "linear()"})  # doctest: +SKIP
    """

    _esm = static_text("widget.js")
    _css = "\n".join(static_text(name) for name in STYLES)
    modules = traitlets.Dict().tag(sync=True)
    state = traitlets.Dict().tag(sync=True)

    def __init__(self, state: dict[str, Any] | None = None, **options: Any) -> None:
        if state is None:
            state = next(preset["state"] for preset in all_presets() if preset["name"] == "moons")
        super().__init__(modules=modules(), state=parse_state(as_json(state)).to_json(), **options)
        self.on_msg(self._asked)

    @traitlets.validate("state")
    def _checked(self, proposal: Any) -> dict[str, Any]:
        return parse_state(as_json(proposal["value"])).to_json()

    def _asked(self, widget: Any, message: Any, buffers: Any) -> None:
        """Answer a question of the page, in a thread so that the notebook stays free."""
        if isinstance(message, dict) and isinstance(message.get("name"), str):
            if SESSION.warming is None:
                SESSION.warming = Warming(announce=False).start()
            threading.Thread(target=self._answer, args=(message,), daemon=True, name="mercer-studio-widget").start()

    def _answer(self, message: dict[str, Any]) -> None:
        if SESSION.warming is not None:
            SESSION.warming.wait(message["name"])
        status, found = guarded(message["name"], message.get("payload", {}))
        self.send({"id": message.get("id"), "answer": found} if status == 200 else {"id": message.get("id"), **found})
