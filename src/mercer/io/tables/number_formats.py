"""Read numbers in common notations: $4,733.00, 1.234.567,89 €, 12 %, 1 234,5 kg, (250), −3.5.

A cell has a sign, a unit and digits. The whole column decides which mark is the decimal mark and which separates
thousands: 1,234 is 1234 if another cell is 1,234,567, and 1.234 if another cell is 0,5.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Vector

Texts = Sequence[str | None]

# variants of minus signs, spaces and apostrophes, and their ASCII characters
SAME = str.maketrans({"−": "-", "﹣": "-", "－": "-", "\u00a0": " ", "\u202f": " ", "\u2009": " ", "’": "'"})
CODES = (
    "USD|EUR|GBP|JPY|CNY|CHF|CAD|AUD|NZD|SEK|NOK|DKK|ISK|PLN|CZK|HUF|RON|INR|BRL|MXN|ZAR|RUB|TRY|KRW|SGD|HKD|TWD|ILS|"
    "THB|IDR|AED"
)
CURRENCY = rf"(?:[A-Za-z]{{0,3}}[$¢£¥฿₠-⃏]|(?i:{CODES}|kr\.?|zł|fr\.|rs\.?))"
# a unit after the digits: a currency, a percent sign, or a word such as kg, °C or km/h
UNIT = rf"{CURRENCY}|[%‰]|[^\d\s.,;:()+\-/][^\d;:()]{{0,14}}"
CELL = re.compile(
    rf"(\()? ?([+-])? ?({CURRENCY})? ?([+-])? ?([\d.,](?:[\d.,' ]*[\d.,])?(?:[eE][+-]?\d+)?) ?({UNIT})? ?(-)?(\))?"
)
CURRENCY_ONLY = re.compile(CURRENCY)
# in a column of numbers these mean "missing"
DASHES = frozenset({"-", "--", "–", "—"})
# a column with at least this share of numbers is a number column; its other cells are errors
MOSTLY = 0.9
# a column with more distinct words after its numbers than this has no units
MOST_UNITS = 6


@dataclass(frozen=True)
class NumberFormat:
    """The notation of the numbers in a column.

    Attributes
    ----------
    decimal : the decimal mark, "." or ",".
    group : the mark between groups of three digits: "", ",", ".", " " or "'".
    unit : the currency, percent sign or unit of the cells; empty if they have none.
    """

    decimal: str = "."
    group: str = ""
    unit: str = ""

    def __post_init__(self) -> None:
        if self.decimal not in (".", ",") or self.group not in ("", ",", ".", " ", "'") or self.group == self.decimal:
            raise InvalidInputError(
                f"decimal={self.decimal!r} and group={self.group!r} were given: decimal must be '.' or ',', group must "
                "be '', ',', '.', ' ' or \"'\", and they must differ."
            )

    @property
    def plain(self) -> bool:
        """Whether Python's float() reads this format."""
        return self.decimal == "." and not self.group and not self.unit

    @property
    def body(self) -> re.Pattern[str]:
        """A pattern of the digits and marks, without sign and unit."""
        mark, group = re.escape(self.decimal), re.escape(self.group)
        whole = rf"(?:\d+|[1-9]\d{{0,2}}(?:{group}\d{{3}})+)" if self.group else r"\d+"
        return re.compile(rf"(?:{whole}(?:{mark}\d*)?|{mark}\d+)(?:[eE][+-]?\d+)?")

    def takes(self, unit: str) -> bool:
        """Whether a cell may have this unit: the same unit, or none if the column's unit is a currency."""
        return unit.casefold() == self.unit.casefold() or (not unit and CURRENCY_ONLY.fullmatch(self.unit) is not None)

    def agrees(self, other: NumberFormat) -> bool:
        """Whether numbers in the other format have the same meaning: 12 % is not 12."""
        return self.takes(other.unit) or (not self.unit and CURRENCY_ONLY.fullmatch(other.unit) is not None)

    def read(self, cells: Texts) -> tuple[Vector, list[int]]:
        """Return the numbers (NaN where missing), and the indices of cells that do not have this format."""
        values, wrong = np.full(len(cells), np.nan), []
        body = self.body
        for i, cell in enumerate(cells):
            if cell is None or cell in DASHES:
                continue
            if self.plain:
                try:
                    values[i] = float(cell)
                    if "_" not in cell:
                        continue
                except ValueError:
                    pass
            parts = _Parts.of(cell)
            if parts is None or not self.takes(parts.unit) or body.fullmatch(parts.body) is None:
                values[i] = np.nan
                wrong.append(i)
            else:
                values[i] = self.value(parts)
        return values, wrong

    def value(self, parts: _Parts) -> float:
        """Return the number of a cell that has this format."""
        text = parts.body.replace(self.group, "") if self.group else parts.body
        number = float(text.replace(self.decimal, "."))
        return -number if parts.negative else number


PLAIN = NumberFormat()


@dataclass(frozen=True)
class _Parts:
    """The sign, the digits with their marks, and the unit of a cell."""

    negative: bool
    body: str
    unit: str

    @classmethod
    def of(cls, cell: str) -> _Parts | None:
        """Split a cell; None if it is not a number in any format."""
        found = CELL.fullmatch(cell.translate(SAME))
        if found is None:
            return None
        opened, sign, before, inner, body, after, behind, closed = found.groups()
        minus = [mark for mark in (sign, inner, behind) if mark]
        if len(minus) > 1 or bool(opened) != bool(closed) or (opened and minus) or (before and after):
            return None
        return cls(bool(opened) or "-" in minus, body, (before or after or "").strip())


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers of a column.

    Attributes
    ----------
    format : their notation.
    values : the numbers, NaN where a cell is missing or does not fit.
    wrong : indices of cells that do not fit.
    other : a second format that fits all cells, if there is one: 1,234 is 1234 or 1.234.
    decisive : whether the marks in this column determine the decimal mark.
    """

    format: NumberFormat
    values: Vector
    wrong: list[int] = field(default_factory=list)
    other: NumberFormat | None = None
    decisive: bool = False


def find_numbers(cells: Texts, decimal: str | None = None) -> Numbers | None:
    """Read a column as numbers; None if it is not a number column.

    ``decimal`` is the decimal mark to use if the cells do not determine it; the default is a point.
    """
    values, wrong = PLAIN.read(cells)
    present = [cell for cell in cells if cell is not None and cell not in DASHES]
    if not present:
        return None
    if not wrong:
        marked = [cell for cell in present if "." in cell]
        if not marked:
            return Numbers(PLAIN, values)
        grouped = NumberFormat(",", ".")
        if any(grouped.body.fullmatch(cell.lstrip("+-")) is None for cell in marked):
            return Numbers(PLAIN, values, decisive=True)
        if decimal != ",":
            return Numbers(PLAIN, values, other=grouped)
        return Numbers(grouped, grouped.read(cells)[0], other=PLAIN)
    parts = [one for one in map(_Parts.of, present) if one is not None]
    if len(parts) < MOSTLY * len(present):
        return None
    unit = _common_unit(parts)
    best = [_best(mark, unit, parts) for mark in (".", ",")]
    counts = [_count(one, parts) for one in best]
    chosen = 0 if counts[0] > counts[1] or (counts[0] == counts[1] and decimal != ",") else 1
    if counts[chosen] < MOSTLY * len(present):
        return None
    marked_parts = [one for one in parts if "," in one.body or "." in one.body]
    open_ = counts[0] == counts[1] and any(best[0].value(one) != best[1].value(one) for one in marked_parts)
    if not marked_parts:
        chosen = 0
    elif open_ and CURRENCY_ONLY.fullmatch(unit):  # prices do not have three decimals in every cell
        chosen, open_ = (0 if best[0].group else 1), False
    values, wrong = best[chosen].read(cells)
    other = best[1 - chosen] if open_ else None
    return Numbers(best[chosen], values, wrong, other, decisive=bool(marked_parts) and not open_)


def units_of(cells: Texts) -> list[str]:
    """The units of a number column that has several; empty if it has one unit or is not a number column."""
    present = [cell for cell in cells if cell is not None and cell not in DASHES]
    units = [one.unit for one in map(_Parts.of, present) if one is not None]
    counts = Counter(units)
    few = 1 < len(counts) <= MOST_UNITS
    return sorted(counts, key=lambda unit: -counts[unit]) if few and len(units) >= MOSTLY * len(present) else []


def _common_unit(parts: Sequence[_Parts]) -> str:
    counts = Counter(one.unit for one in parts)
    unit = max(counts, key=lambda one: counts[one])
    if not unit:  # some cells have a currency, most have none
        unit = max((one for one in counts if CURRENCY_ONLY.fullmatch(one)), key=lambda one: counts[one], default="")
    return unit


def _best(decimal: str, unit: str, parts: Sequence[_Parts]) -> NumberFormat:
    """The format with this decimal mark that fits most cells."""
    used = set().union(*(one.body for one in parts)) & set(",.' ")
    formats = [NumberFormat(decimal, group, unit) for group in ("", *sorted(used - {decimal}))]
    return max(formats, key=lambda one: _count(one, parts))


def _count(format: NumberFormat, parts: Sequence[_Parts]) -> int:
    body = format.body
    return sum(format.takes(one.unit) and body.fullmatch(one.body) is not None for one in parts)
