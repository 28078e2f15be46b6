"""Compile or load the loops of the first fits in the background, while the browser opens."""

from __future__ import annotations

import sys
import threading
import time

from mercer.studio.presets import all_presets

# modes in the order in which they are likely to be used first
_FIRST = ("blobs", "moons", "separable", "three_classes", "sine", "ring", "heteroscedastic", "gaps")


class Warming:
    """Fits one preset of each mode in a thread. ``wait`` returns when they are done."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.line = "loading"
        self._said = False
        self._thread = threading.Thread(target=self._run, daemon=True, name="mercer-studio-warming")

    def start(self) -> Warming:
        """Begin."""
        self._thread.start()
        return self

    def wait(self) -> None:
        """Wait until all loops are there; says so once on standard error if that takes time."""
        if self.done.is_set():
            return
        if not self.done.wait(0.5) and not self._said:
            self._said = True
            print("mercer studio: the first answer waits for compiled loops ...", file=sys.stderr, flush=True)
        self.done.wait(300.0)

    def _run(self) -> None:
        from mercer.studio.answers import fit

        start = time.perf_counter()
        try:
            states = {preset["name"]: preset["state"] for preset in all_presets()}
            for k, name in enumerate(_FIRST):
                self.line = f"compiling its loops, {k} of {len(_FIRST)}"
                try:
                    fit({"state": states[name], "grid": [72, 72]})
                except Exception as error:  # the first question will meet it again and report it
                    print(f"mercer studio: {name}: {error}", file=sys.stderr, flush=True)
        finally:
            self.line = "ready"
            self.done.set()
            seconds = time.perf_counter() - start
            if self._said:
                print(f"mercer studio: ready after {seconds:.0f} s", file=sys.stderr, flush=True)
