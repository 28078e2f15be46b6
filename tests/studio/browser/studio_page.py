"""One page of the studio in a browser, with what tests ask of it."""

import base64
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

SOURCES = Path(__file__).parents[3] / "src"

# seconds that an answer may take on a busy machine; the first fit compiles loops
PATIENCE = 120


class Studio:
    """One page of the studio, with what tests ask of it."""

    def __init__(self, page, errors):
        self.page = page
        self.errors = errors

    @property
    def state(self):
        """The state in the store."""
        return self.page.evaluate("mercerStudio.store.state")

    @property
    def result(self):
        """The answer that is shown."""
        return self.page.evaluate("mercerStudio.plane.result")

    def settle(self):
        """Wait until the machine of the present state is shown on a fine grid."""
        self.wait("globalThis.mercerStudio?.fitting.settled && mercerStudio.fitting.pending === 0")
        return self

    def wait(self, expression):
        """Wait until an expression is true. The page's policy forbids playwright's own way, which evaluates text."""
        end = time.monotonic() + PATIENCE
        while not self.page.evaluate(f"Boolean({expression})"):
            assert time.monotonic() < end, f"never true: {expression}"
            self.page.wait_for_timeout(40)

    def update(self, **patch):
        """Change part of the state, and wait for its machine."""
        self.page.evaluate("patch => mercerStudio.store.update(patch)", patch)
        return self.settle()

    def pixels(self, x, y):
        """Where a point of the plane is on the page."""
        box = self.page.locator("mercer-plane .surface").bounding_box()
        px, py = self.page.evaluate("([x, y]) => mercerStudio.plane.pixels(x, y)", [x, y])
        return box["x"] + px, box["y"] + py

    def click(self, x, y, **more):
        """Click at a place given in data."""
        self.page.mouse.click(*self.pixels(x, y), **more)

    def drag(self, start, end, steps=8):
        """Press at one place, move, and release at another."""
        mouse = self.page.mouse
        mouse.move(*self.pixels(*start))
        mouse.down()
        mouse.move(*self.pixels(*end), steps=steps)
        mouse.up()

    def drop(self, where, name, text):
        """Drop a file onto an element."""
        file = self.page.evaluate_handle(
            """([name, text]) => { const data = new DataTransfer();
            data.items.add(new File([text], name)); return data; }""",
            [name, text],
        )
        for event in ("dragenter", "dragover", "drop"):
            self.page.dispatch_event(where, event, {"dataTransfer": file})


@contextmanager
def serve(*arguments):
    """Run `mercer studio` with these arguments; the value is its address."""
    server = subprocess.Popen(
        [sys.executable, "-m", "mercer", "studio", "--no-browser", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )
    with server:
        line = server.stdout.readline()
        assert "http://127.0.0.1:" in line, f"the server printed {line!r}"
        yield line[line.index("http") :].strip()
        server.send_signal(signal.SIGINT)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()


def fragment(state):
    """The part of an address that holds a state, or any text in its place."""
    text = state if isinstance(state, str) else json.dumps(state)
    return "#s=" + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
