"""Runs a page of the documentation as a reader would: its python blocks and its commands, in order, in one folder.

A block marked ``python`` is run, and the block marked ``text`` that follows it, if any, is what it prints. In a block
marked ``console`` each line that begins with ``$`` is a command, and the lines below it are what the command prints. A
line ``...`` stands for lines that the page leaves out.
"""

import contextlib
import io
import math
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from mercer.cli import main

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# commands that need a network or that this test run is part of
NOT_RUN = ("pip ", "git ", "make test", "docker ")
TIME = re.compile(r"\d[\d.,]*\s(?:s|ms|minutes?)\b")
RATIO = re.compile(r"\d[\d.]*x(?!\w)")
NUMBER = re.compile(r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")
# lines of a summary about the machine that a search has chosen: of equally good ones rounding decides
CHOSEN = ("machine", "support vectors", "margin", "certificate")
# numbers as small as this are left by rounding or the tolerance: any other such number is as good
NOTHING = 2e-3
# numbers may differ by this much, relatively, from those on the page: machines round differently
CLOSE = 0.05


@dataclass
class Step:
    """Something to run, and what it prints; None where the page does not say."""

    page: str
    line: int
    kind: str
    text: str
    output: str | None = None
    printed: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.page}, line {self.line}: {self.text.strip().splitlines()[0]}"


def steps(page: Path) -> list[Step]:
    """All that a page asks its reader to run, in order."""
    found: list[Step] = []
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        language, body = match.groups()
        line = text.count("\n", 0, match.start()) + 2
        if language == "python":
            found.append(Step(page.name, line, "python", body))
        elif language == "text" and found and found[-1].kind == "python" and found[-1].output is None:
            found[-1].output = body
        elif language == "console":
            for number, row in enumerate(body.splitlines()):
                if row.startswith("$ "):
                    found.append(Step(page.name, line + number, "command", row[2:]))
                else:
                    found[-1].output = (found[-1].output or "") + row + "\n"
    return found


def run(step: Step, namespace: dict) -> None:
    """Run one step in the current folder; fail where it fails or prints something else than the page says."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        if step.kind == "python":
            exec(compile(step.text, str(step), "exec"), namespace)
            status = 0
        else:
            status = _command(step.text)
    expected = 1 if step.output is not None and "NOT within" in step.output else 0
    assert status == expected, f"{step} ended with status {status}"
    if step.output is not None:
        difference = first_difference(out.getvalue(), step.output)
        assert difference is None, f"{step}: {difference}\n\nprinted:\n{out.getvalue()}"


def _command(text: str) -> int:
    text = text.partition("  #")[0].strip()
    if text.startswith(NOT_RUN):
        return 0
    words = shlex.split("mercer demo" if text == "make demo" else text)
    assert words[0] == "mercer", f"{text!r} is not a command of mercer"
    try:
        return int(main(words[1:]) or 0)
    except SystemExit as end:
        return int(end.code or 0)


def first_difference(printed: str, expected: str) -> str | None:
    """Where two outputs differ in a word, or in a number by more than rounding; None if nowhere. Times do not count."""
    ours, place = _words(printed), 0
    parts = [_words(part) for part in expected.split("\n...\n")]
    for number, part in enumerate(parts):
        # what follows lines that are left out may begin anywhere, the last part only at its distance from the end
        places = [place] if number == 0 else range(place, len(ours) - len(part) + 1)
        if number == len(parts) - 1 > 0:
            places = [len(ours) - len(part)]
        differences = [_at(ours, part, start) for start in places]
        if not differences or all(differences):
            return next(iter(differences), None) or f"{' '.join(part)[:200]!r} is only on the page"
        place = places[differences.index(None)] + len(part)
    return None if place == len(ours) else f"{' '.join(ours[place:])[:200]!r} is only printed"


def _at(ours: list[str], part: list[str], start: int) -> str | None:
    """How the words from a place on differ from these."""
    for k, word in enumerate(part):
        if start < 0 or start + k >= len(ours):
            return f"{' '.join(part[k:])[:200]!r} is only on the page"
        if not _same(ours[start + k], word):
            return f"{' '.join(ours[max(0, start + k - 6) : start + k + 1])!r} instead of {word!r}"
    return None


def _words(text: str) -> list[str]:
    """Words and numbers, however the lines are wrapped; numbers that depend on a search's choice among equals are #."""
    words, label = [], ""
    for line in RATIO.sub("#x", TIME.sub("# s", text)).splitlines():
        if line[:1].strip():
            label = line.partition("  ")[0]
        words += (NUMBER.sub("#", line) if label in CHOSEN else line).split()
    return words


def _same(a: str, b: str) -> bool:
    if NUMBER.sub("#", a) != NUMBER.sub("#", b):
        return False
    pairs = zip(NUMBER.findall(a), NUMBER.findall(b), strict=True)
    return all(_close(float(x.replace(",", "")), float(y.replace(",", ""))) for x, y in pairs)


def _close(x: float, y: float) -> bool:
    return max(abs(x), abs(y)) <= NOTHING or math.isclose(x, y, rel_tol=CLOSE, abs_tol=NOTHING)
