"""Progress and notes on the terminal: on standard error, so that results can be piped."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


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


class _Line(logging.Handler):
    """One line that is written over as long as news come; nothing where standard error is not a terminal."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.width = 0

    def emit(self, record: logging.LogRecord) -> None:
        if sys.stderr.isatty():
            text = record.getMessage()[:118]
            sys.stderr.write("\r" + text.ljust(self.width))
            sys.stderr.flush()
            self.width = len(text)

    def clear(self) -> None:
        """Leave no half line behind."""
        if self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")
            sys.stderr.flush()


@contextmanager
def shown_progress(quiet: bool) -> Iterator[None]:
    """What mercer logs meanwhile, as one line that changes."""
    logger = logging.getLogger("mercer")
    before, propagate, handlers = logger.level, logger.propagate, logger.handlers
    line = _Line()
    logger.handlers, logger.propagate = ([] if quiet else [line]), False
    logger.setLevel(logging.WARNING if quiet else logging.INFO)
    try:
        yield
    finally:
        line.clear()
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(before)
