"""Progress and notes on the terminal: on standard error, so that results can be piped."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager


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
