"""Show progress and notes on standard error, so that standard output holds only results and can be piped."""

from __future__ import annotations

import argparse
import math
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from mercer.workflow.job import Progress

# seconds between two updates of the line on a terminal, and between two lines of a log
REDRAW, RELOG = 0.2, 15.0


def number(
    kind: type[int] | type[float] = float, *, least: float | None = None, above: float | None = None
) -> Callable[[str], float]:
    """Return an argparse type for numbers within limits."""

    def read(text: str) -> float:
        value = kind(text)
        if least is not None and not value >= least:
            raise argparse.ArgumentTypeError(f"{text} was given, but it must be at least {least:g}")
        if above is not None and not value > above:
            raise argparse.ArgumentTypeError(f"{text} was given, but it must be greater than {above:g}")
        return value

    read.__name__ = kind.__name__  # argparse shows this name if the text is not a number
    return read


def check_writable(path: Path) -> None:
    """Raise if a file cannot be written, before any work is done for it."""
    from mercer.exceptions import InvalidInputError

    if path.is_dir():
        raise InvalidInputError(f"{path} is a folder: give the name of a file.")
    if not path.parent.is_dir():
        raise InvalidInputError(f"{path} cannot be written: there is no folder {path.parent}.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InvalidInputError(f"{path} cannot be written: permission denied.")


def say(text: str, quiet: bool = False) -> None:
    """Print a note to standard error."""
    if not quiet:
        print(text, file=sys.stderr)


class JobDisplay:
    """Shows the progress of a job: one updated line on a terminal, else a few lines; nothing if quiet.

    It is written to ``stream``, by default to standard error.
    """

    def __init__(self, quiet: bool, stream: TextIO | None = None) -> None:
        self.quiet, self.width = quiet, 0
        self._stream = stream
        self.drawn = self.logged = -math.inf

    def __enter__(self) -> JobDisplay:
        return self

    def __exit__(self, *error: object) -> None:
        self.clear()

    def show(self, progress: Progress) -> None:
        """Show progress. Any thread may call this."""
        if self.quiet:
            return
        now = time.perf_counter()
        text = progress_text(progress)
        stream = sys.stderr if self._stream is None else self._stream
        if stream.isatty():
            if progress.begins or now - self.drawn >= REDRAW:
                self.drawn = now
                self.draw(text)
        elif progress.begins or now - self.logged >= RELOG:
            self.logged = now
            print(f"mercer: {text}", file=stream, flush=True)

    def draw(self, text: str) -> None:
        """Replace the line of the terminal by this text, cut to the width of the terminal."""
        stream = sys.stderr if self._stream is None else self._stream
        text = text[: shutil.get_terminal_size((100, 24)).columns - 1]
        stream.write("\r" + text.ljust(self.width))
        stream.flush()
        self.width = len(text)

    def say(self, text: str) -> None:
        """Print a message at once, even if quiet. Safe in a signal handler."""
        self.clear()
        os.write(self._descriptor, f"mercer: {text}\n".encode())

    def clear(self) -> None:
        """Erase the progress line."""
        if self.width:
            os.write(self._descriptor, b"\r" + b" " * self.width + b"\r")
            self.width = 0

    @property
    def _descriptor(self) -> int:
        return 2 if self._stream is None else self._stream.fileno()


def progress_text(progress: Progress) -> str:
    """Format the progress of a job as one line."""
    from mercer.selection.search.candidates import bar

    words = [progress.stage, progress.detail]
    if progress.share is not None:
        words.insert(0, f"[{bar(progress.share)}] {100 * progress.share:3.0f} %")
        words.append(time_left(progress.seconds_left))
    return "  ".join(word for word in words if word)


def time_left(seconds: float | None) -> str:
    """Format an estimate of the remaining time, rounded."""
    if seconds is None:
        return ""
    if seconds < 5:
        return "a few seconds left"
    if seconds < 90:
        return f"about {5 * math.ceil(seconds / 5)} s left"
    return f"about {math.ceil(seconds / 60)} min left"
