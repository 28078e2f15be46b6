"""Read dates in common notations as days since 1970-01-01 (UTC); the time of day is the fraction.

2024-01-31, 31.1.2024, 1/31/24 8:00 pm, 31 Jan 2024, January 31, 2024, 2024-01-31T10:00:00+02:00. The whole column
decides whether 1/2/2024 is in January or in February.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from mercer.kernels.features import Vector

Texts = Sequence[str | None]

CLOCK = r"(?:T| +)(\d\d?):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)? ?([AaPp]\.?[Mm]\.?)?"
TIME = rf"(?:{CLOCK})? ?(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?"
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# patterns of dates, by the order of year, month and day
PATTERNS = {
    "ymd": (re.compile(rf"(\d{{4}})[-/.](\d\d?)(?:[-/.](\d\d?))?{TIME}"),),
    "dmy": (
        re.compile(rf"(\d\d?)[-/.](\d\d?)[-/.](\d{{4}}|\d\d){TIME}"),
        re.compile(rf"(\d\d?)\.?[ -]([A-Za-z]{{3,9}})\.?,?[ -](\d{{4}}|\d\d){TIME}"),
    ),
    "mdy": (
        re.compile(rf"(\d\d?)[-/.](\d\d?)[-/.](\d{{4}}|\d\d){TIME}"),
        re.compile(rf"([A-Za-z]{{3,9}})\.? (\d\d?),? (\d{{4}}){TIME}"),
    ),
}
ORDERS = tuple(PATTERNS)
EPOCH = date(1970, 1, 1).toordinal()
MICROSECONDS = 86_400_000_000
# two-digit years: 69 is 1969, 68 is 2068
CENTURY = 69
# a column with at least this share of dates is a date column; its other cells are errors
MOSTLY = 0.9
MISSING = np.iinfo(np.int64).min


@dataclass(frozen=True, eq=False)
class Dates:
    """The dates of a column.

    Attributes
    ----------
    order : "ymd", "dmy" or "mdy".
    values : days since 1970-01-01, NaN where a cell is missing or is not a date.
    wrong : indices of cells that are not dates.
    open : whether the cells fit both "dmy" and "mdy".
    """

    order: str
    values: Vector
    wrong: list[int]
    open: bool = False


def find_dates(cells: Texts, prefer: str | None = None) -> Dates | None:
    """Read a column as dates; None if it is not a date column.

    ``prefer`` is the order to use if the cells fit both "dmy" and "mdy". The default is "mdy" for dates with slashes
    (1/2/2024), else "dmy".
    """
    present = [cell for cell in cells if cell is not None]
    if not present or sum(_looks_like(cell) for cell in present) < MOSTLY * len(present):
        return None
    found = [Dates(order, *read_dates(cells, order)) for order in ORDERS]
    fewest = min(len(one.wrong) for one in found)
    if fewest > (1 - MOSTLY) * len(present):
        return None
    fitting = [one for one in found if len(one.wrong) == fewest]
    if len(fitting) == 1 or np.array_equal(fitting[0].values, fitting[1].values, equal_nan=True):
        return fitting[0]
    prefer = prefer or ("mdy" if any("/" in cell for cell in present) else "dmy")
    chosen = next((one for one in fitting if one.order == prefer), fitting[0])
    return Dates(chosen.order, chosen.values, chosen.wrong, open=True)


def _looks_like(cell: str) -> bool:
    return any(pattern.fullmatch(cell) for patterns in PATTERNS.values() for pattern in patterns)


def read_dates(cells: Texts, order: str) -> tuple[Vector, list[int]]:
    """Return days since 1970-01-01 (NaN where missing), and the indices of cells that are not dates in this order."""
    known: dict[str, int] = {}
    moments, wrong = np.full(len(cells), MISSING, np.int64), []
    for i, cell in enumerate(cells):
        if cell is None:
            continue
        if cell not in known:
            known[cell] = _microseconds(cell, order)
        moments[i] = known[cell]
        if moments[i] == MISSING:
            wrong.append(i)
    return days(moments), wrong


def days(moments: Any) -> Vector:
    """Convert microseconds since 1970 to days; NaT becomes NaN."""
    with np.errstate(invalid="ignore"):
        return np.where(moments == MISSING, np.nan, moments / MICROSECONDS)


def _microseconds(cell: str, order: str) -> int:
    for pattern in (*PATTERNS["ymd"], *PATTERNS[order]):
        found = pattern.fullmatch(cell)
        if found is not None:
            first, second, third, *clock = found.groups()
            written = "ymd" if pattern in PATTERNS["ymd"] else order
            parts = dict(zip(written, (first, second, third or "1"), strict=True))
            try:
                day = date(_year(parts["y"]), _month(parts["m"]), int(parts["d"])).toordinal() - EPOCH
                return day * MICROSECONDS + _time(*clock)
            except ValueError:  # no such day or time
                return int(MISSING)
    return int(MISSING)


def _year(text: str) -> int:
    year = int(text)
    return year if len(text) > 2 else year + (1900 if year >= CENTURY else 2000)


def _month(text: str) -> int:
    return int(text) if text.isdigit() else MONTHS.index(text[:3].lower()) + 1


def _time(hours: str | None, minutes: str, seconds: str | None, fraction: str | None, half: str | None,
          zone: str | None) -> int:  # fmt: skip
    """Microseconds since midnight, UTC."""
    if hours is None:
        return 0
    hour, minute, second = int(hours), int(minutes), int(seconds or 0)
    if half is not None:
        if not 1 <= hour <= 12:
            raise ValueError(hours)
        hour = hour % 12 + (12 if half[0] in "pP" else 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(hours)
    total = (hour * 60 + minute) * 60 + second
    if zone is not None and zone[0] in "+-":
        digits = zone[1:].replace(":", "").ljust(4, "0")
        total -= (1 if zone[0] == "+" else -1) * (int(digits[:2]) * 60 + int(digits[2:])) * 60
    return total * 1_000_000 + int((fraction or "0")[:6].ljust(6, "0"))
