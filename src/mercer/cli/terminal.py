"""Progress and notes on the terminal: on standard error, so that results can be piped."""

from __future__ import annotations

import argparse
import math
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mercer.workflow.job import Progress

# seconds between two drawings of the line on a terminal, and between two lines of a log
REDRAW, RELOG = 0.2, 15.0


def number(
    kind: type[int] | type[float] = float, *, least: float | None = None, above: float | None = None
) -> Callable[[str], float]:
    """The numbers that an option takes, for argparse."""

    def read(text: str) -> float:
        value = kind(text)
        if least is not None and not value >= least:
            raise argparse.ArgumentTypeError(f"{text} was given, but at least {least:g} is needed")
        if above is not None and not value > above:
            raise argparse.ArgumentTypeError(f"{text} was given, but more than {above:g} is needed")
        return value

    read.__name__ = kind.__name__  # of which argparse speaks where the text is no number at all
    return read


def check_writable(path: Path) -> None:
    """Raise where a file cannot be written, before the work that it is for."""
    from mercer.exceptions import InvalidInputError

    if path.is_dir():
        raise InvalidInputError(f"{path} is a folder: give the name of a file.")
    if not path.parent.is_dir():
        raise InvalidInputError(f"{path} cannot be written: there is no folder {path.parent}.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InvalidInputError(f"{path} cannot be written: no permission.")


def say(text: str, quiet: bool = False) -> None:
    """A note for the person who waits."""
    if not quiet:
        print(text, file=sys.stderr)


class JobDisplay:
    """One line with the progress of a whole job where standard error is a terminal; else a few lines; none if quiet."""

    def __init__(self, quiet: bool) -> None:
        self.quiet, self.width = quiet, 0
        self.drawn = self.logged = -math.inf

    def __enter__(self) -> JobDisplay:
        return self

    def __exit__(self, *error: object) -> None:
        self.clear()

    def show(self, progress: Progress) -> None:
        """Called whenever something is done, by any thread."""
        if self.quiet:
            return
        now = time.perf_counter()
        text = progress_text(progress)
        if sys.stderr.isatty():
            if progress.begins or now - self.drawn >= REDRAW:
                self.drawn = now
                text = text[: shutil.get_terminal_size((100, 24)).columns - 1]
                sys.stderr.write("\r" + text.ljust(self.width))
                sys.stderr.flush()
                self.width = len(text)
        elif progress.begins or now - self.logged >= RELOG:
            self.logged = now
            print(f"mercer: {text}", file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """A sentence that must be seen at once, also from a signal handler and if quiet."""
        self.clear()
        os.write(2, f"mercer: {text}\n".encode())

    def clear(self) -> None:
        """Leave no half line behind."""
        if self.width:
            os.write(2, b"\r" + b" " * self.width + b"\r")
            self.width = 0


def progress_text(progress: Progress) -> str:
    """The progress of a job on one line."""
    from mercer.selection.search.candidates import bar

    words = [progress.stage, progress.detail]
    if progress.share is not None:
        words.insert(0, f"[{bar(progress.share)}] {100 * progress.share:3.0f} %")
        words.append(time_left(progress.seconds_left))
    return "  ".join(word for word in words if word)


def time_left(seconds: float | None) -> str:
    """An estimate in words, no more exact than it is."""
    if seconds is None:
        return ""
    if seconds < 5:
        return "a few seconds left"
    if seconds < 90:
        return f"about {5 * math.ceil(seconds / 5)} s left"
    return f"about {math.ceil(seconds / 60)} min left"
