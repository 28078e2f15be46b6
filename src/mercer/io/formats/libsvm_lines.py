"""Read text files of LIBSVM and LIBLINEAR line by line, with errors that name the line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from mercer.exceptions import ModelFileError
from mercer.kernels.features import Vector

# the largest number of classes
CLASSES = 10_000


class Lines:
    """Reads the lines of a text file in order and converts their words to numbers."""

    def __init__(self, source: Any) -> None:
        self.name = str(source) if isinstance(source, str | os.PathLike) else "the file"
        try:
            data = source.read() if hasattr(source, "read") else Path(source).read_bytes()
            text = data.decode("ascii") if isinstance(data, bytes) else data
        except UnicodeDecodeError as error:
            self.number = bytes(data[: error.start]).count(b"\n") + 1
            self.fail("found a character that is not ASCII; model files of LIBSVM and LIBLINEAR are ASCII text")
        self._lines: Iterator[str] = iter(text.splitlines())
        self.number = 0

    def next(self) -> str:
        """Return the next line."""
        for line in self._lines:
            self.number += 1
            return line
        self.number += 1
        self.fail("the file ends too early")

    def rest(self) -> Iterator[str]:
        """Yield all remaining lines that are not empty."""
        for line in self._lines:
            self.number += 1
            if line.strip():
                yield line

    def fail(self, what: str) -> NoReturn:
        """Raise an error for the current line."""
        raise ModelFileError(f"{self.name}, line {self.number}: {what}.")

    def whole(self, text: str, what: str, smallest: int, largest: int) -> int:
        """Convert a word to an integer between the limits."""
        try:
            number = int(text) if len(text) < 20 else None
        except ValueError:
            number = None
        if number is None or not smallest <= number <= largest:
            self.fail(f"{what} is {text!r:.40}, but must be a whole number from {smallest} to {largest}")
        return number

    def real(self, text: str, what: str) -> float:
        """Convert a word to a finite number."""
        try:
            number = float(text) if len(text) < 60 and "_" not in text else np.nan
        except ValueError:
            number = np.nan
        if not np.isfinite(number):
            self.fail(f"{what} is {text!r:.40}, but must be a finite number")
        return number

    def reals(self, words: list[str], what: str, count: int) -> Vector:
        """Convert ``count`` words to finite numbers."""
        if len(words) != count:
            self.fail(f"{what} has {len(words)} numbers, but must have {count}")
        return np.array([self.real(word, what) for word in words])


def text_of(number: float) -> str:
    """Return the shorter of 15 and 17 digits that represents a number exactly."""
    return f"{number:.17g}" if float(f"{number:.15g}") != number else f"{number:.15g}"
