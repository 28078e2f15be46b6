"""Compile or load the loops of the first fits in the background, while the browser opens."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from mercer.studio.presets import all_presets
from mercer.studio.state import PROCEDURES

# answers that need no compiled loops
AT_ONCE = ("presets", "lessons", "session", "job", "job_stop", "table_open", "table_fit", "code")
# seconds after which answers no longer wait for the loops
LONGEST = 300.0
# presets in the order in which their modes are likely to be used first; the first answers wait for these
_FIRST = ("blobs", "moons", "separable", "three_classes", "sine", "ring", "heteroscedastic", "gaps", "disc")
# answered afterwards, without delaying other answers: further questions about a preset
_LATER: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("leave_one_out", "blobs", {}),
    ("path", "moons", {}),
    ("steps", "blobs", {"procedure": {"name": "smo"}}),
    ("search_map", "moons", {}),
    *(("steps", "moons", {"procedure": {"name": name, "passes": 1}}) for name in PROCEDURES),
    ("leave_one_out", "sine", {}),
)


class Warming:
    """Fits one preset of each mode in a thread. ``wait`` returns when they are done.

    Parameters
    ----------
    announce : bool, default=True
        Say on standard error that an answer waits.
    """

    def __init__(self, announce: bool = True) -> None:
        self.done = threading.Event()
        self.line = ""
        self._announce, self._said = announce, False
        self._thread = threading.Thread(target=self._run, daemon=True, name="mercer-studio-warming")

    def start(self) -> Warming:
        """Begin."""
        self._thread.start()
        return self

    def ready(self, name: str) -> bool:
        """Whether a question can be answered now."""
        return name in AT_ONCE or self.done.is_set()

    def wait(self, name: str) -> None:
        """Wait until a question can be answered; says so once on standard error if that takes time."""
        if self.ready(name):
            return
        if not self.done.wait(0.5) and self._announce and not self._said:
            self._said = True
            print("mercer studio: the first answer waits for compiled loops ...", file=sys.stderr, flush=True)
        self.done.wait(LONGEST)

    def _run(self) -> None:
        start = time.perf_counter()
        states = {preset["name"]: preset["state"] for preset in all_presets()}
        try:
            for k, name in enumerate(_FIRST):
                self.line = f"{k + 1} of {len(_FIRST)}"
                self._try("fit", {"state": states[name], "grid": [72, 72]})
        finally:
            self.line = ""
            self.done.set()
        if self._said:
            print(f"mercer studio: ready after {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
        for name, preset, more in _LATER:
            self._try(name, {"state": states[preset], **more})

    @staticmethod
    def _try(name: str, payload: dict[str, Any]) -> None:
        """Answer a question and discard the answer, even an error: the user meets it again with the same question."""
        from mercer.studio.answers import guarded

        guarded(name, payload)
