"""Find the kind of each column of a table, and convert its cells to numbers or words.

`find_column` examines all cells of a new column and describes it in a `Column`. `read_column` reads further cells
according to such a description. Files, data frames and fitted models all use these two functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.io.tables.cells import EXACT, Cells
from mercer.io.tables.dates import ORDERS, find_dates, read_dates
from mercer.io.tables.number_formats import CURRENCY_ONLY, PLAIN, NumberFormat, find_numbers, units_of
from mercer.kernels.features import Vector

# date: in days; category: a few distinct names; text: free text; left out: not used by the model
KINDS = ("number", "boolean", "date", "category", "text", "left out")
# names of columns that identify rows
IDENTIFIER = re.compile(r"(?i:(.*[_ .-])?(id|uuid|guid|index|row|nr|no|key)|unnamed: \d+)|.*[a-z](Id|ID)")
TRUTHS = (("true", "false"), ("yes", "no"), ("y", "n"), ("t", "f"), ("on", "off"))
# allowed cells of a boolean column, and their values
WORDS = {word: float(word == yes) for yes, no in (*TRUTHS, ("1", "0"), ("1.0", "0.0")) for word in (yes, no)}
# a column of strings is a category if it has at most FEW distinct values, or at most SHARE times the number of rows
FEW, SHARE = 20, 0.05
# strings of at least this mean length are free text
LONG = 20.0
WHOLE = re.compile(r"(-?\d+)\.0+")
# a message shows at most this many characters of a cell
SHOWN = 40

Place = Callable[[int], str]


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : its name.
    kind : one of `KINDS`.
    missing : number of missing cells.
    different : number of distinct values.
    why : why the column is left out; else empty.
    note : how its cells were read, if that is not obvious: "read '$4,733.00' as 4733".
    format : how numbers are written.
    order : the order of year, month and day in dates: "ymd", "dmy" or "mdy".
    categories : the names that were seen in a category.
    """

    name: str
    kind: str
    missing: int = 0
    different: int = 0
    why: str = ""
    note: str = ""
    format: NumberFormat = PLAIN
    order: str = "ymd"
    categories: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        texts = (self.name, self.why, self.note, *self.categories)
        if self.kind not in KINDS or self.order not in ORDERS or not all(isinstance(text, str) for text in texts):
            raise InvalidInputError(
                f"A column must have a name and one of the kinds {', '.join(KINDS)}, but was given "
                f"name={self.name!r:.40} and kind={self.kind!r:.40}."
            )
        if not isinstance(self.format, NumberFormat) or not isinstance(self.categories, tuple):
            raise InvalidInputError(f"The column {self.name!r} must have a NumberFormat and a tuple of categories.")

    def __deepcopy__(self, memo: Any) -> Column:  # sklearn.clone copies parameters; a frozen object need not be copied
        return self

    def __str__(self) -> str:
        about = "; ".join(text for text in (self.why, self.note) if text)
        return (
            f"{self.name}: {self.kind}"
            + (f" ({about})" if about else "")
            + (f", {self.missing:,} missing" if self.missing else "")
        )


@dataclass(frozen=True)
class Preferences:
    """How to read ambiguous cells, and whether the column is the target.

    Attributes
    ----------
    decimal : the decimal mark; None to infer it.
    order : the order of day and month in dates; None to infer it.
    target : whether the column is the target.
    keep_all : whether a column without information keeps its kind: the cells are a part of the column.
    """

    decimal: str | None = None
    order: str | None = None
    target: bool = False
    keep_all: bool = False


NO_PREFERENCES = Preferences()


@dataclass(frozen=True, eq=False)
class FoundColumn:
    """A column's description and values, and the evidence it gives about the decimal mark of the file.

    Attributes
    ----------
    column : the description.
    values : numbers (NaN where missing) or an array of words (None where missing; "" in free text).
    decimal : the decimal mark if the cells determine it; else empty.
    open_mark : the mark, "," or ".", if it could be the decimal mark or a thousands separator; else empty.
    """

    column: Column
    values: Vector
    decimal: str = ""
    open_mark: str = ""


# ---- new columns -------------------------------------------------------------------------------------------------


def find_column(cells: Cells, name: str, place: Place, prefer: Preferences = NO_PREFERENCES) -> FoundColumn:
    """Find the kind of a column and read its cells. ``place(i)`` names the position of cell i in error messages."""
    if cells.numbers is not None and not (prefer.target and cells.large):
        kind = "date" if cells.are_dates else "number"
        return _of_numbers(Column(name, kind), cells, cells.numbers, place, prefer)
    texts = cells.texts()
    if cells.booleans or (not prefer.target and _are_truths(texts)):
        if not prefer.target:
            return _of_numbers(Column(name, "boolean"), cells, _truths(texts, name, place), place, prefer)
        return _of_words(texts, name, prefer)
    numbers = find_numbers(texts, prefer.decimal)
    if numbers is not None and not (prefer.target and _are_names(numbers, texts)):
        if numbers.wrong:
            raise _wrong_cell(numbers.wrong, texts, name, place, "a number")
        column = Column(name, "number", format=numbers.format, note=_number_note(numbers, texts))
        found = _of_numbers(column, cells, numbers.values, place, prefer)
        mark = "," if numbers.format.decimal == "," or numbers.format.group == "," else "."
        return replace(
            found,
            decimal=numbers.format.decimal if numbers.decisive else "",
            open_mark=mark if numbers.other is not None else "",
        )
    dates = None if prefer.target else find_dates(texts, prefer.order)
    if dates is not None:
        if dates.wrong:
            raise _wrong_cell(dates.wrong, texts, name, place, "a date")
        column = Column(name, "date", order=dates.order, note=_date_note(dates, texts))
        return _of_numbers(column, cells, dates.values, place, prefer)
    found = _of_words(texts, name, prefer)
    units = units_of(texts)
    if not units:
        return found
    shown = ", ".join(unit or "none" for unit in units)
    return replace(found, column=replace(found.column, note=f"numbers with different units: {shown}"))


def _are_truths(texts: Sequence[str | None]) -> bool:
    words: set[str] = set()
    for text in texts:
        if text is not None:
            words.add(text.lower())
            if len(words) > 2:
                return False
    return any(words == set(pair) for pair in TRUTHS)


def _are_names(numbers: Any, texts: Sequence[str | None]) -> bool:
    """Whether the numbers of a target are names: integers too large for float64, or few values such as 2WD and 4WD."""
    unit = numbers.format.unit
    if unit and unit not in "%‰" and CURRENCY_ONLY.fullmatch(unit) is None:
        return len({text for text in texts if text is not None}) <= FEW
    values = numbers.values[~np.isnan(numbers.values)]
    return bool(numbers.format.plain and _whole(values) and np.abs(values).max(initial=0.0) >= EXACT)


def _of_numbers(column: Column, cells: Cells, values: Vector, place: Place, prefer: Preferences) -> FoundColumn:
    """Complete the description of a numeric column."""
    _check_finite(values, column.name, place)
    known = values[~np.isnan(values)]
    n, missing = len(values), len(values) - len(known)
    whole = _whole(known)
    large = bool(len(known)) and whole and float(np.abs(known).max()) >= EXACT
    different = cells.different() if large else len(np.unique(known))
    column = replace(column, missing=missing, different=different)
    spread = float(known.max() - known.min()) if len(known) else 0.0
    why = why_useless(column, n, whole=whole, large=large, spread=spread)
    return FoundColumn(_left_out(column, why, prefer), values)


def why_useless(column: Column, n: int, *, whole: bool, large: bool, spread: float) -> str:
    """Return why a numeric column of n rows is left out; empty if it is not.

    ``whole``: its numbers are whole; ``large``: float64 does not hold all of them; ``spread``: largest minus smallest.
    """
    if column.missing == n:
        return "no values"
    if column.different <= 1:
        return "one value in all rows"
    identifies = large or (whole and IDENTIFIER.fullmatch(column.name) is not None)
    if column.kind == "number" and column.different == n > 2 and identifies:
        consecutive = not large and spread == n - 1
        return "row numbers" if consecutive else "an identifier: a different whole number in each row"
    return ""


def _of_words(texts: Sequence[str | None], name: str, prefer: Preferences) -> FoundColumn:
    words = texts if prefer.target else [None if text is None else _word(text) for text in texts]
    counts = {word: None for word in words if word is not None}
    n, different = len(words), len(counts)
    missing = sum(word is None for word in words)
    column = Column(name, "category", missing, different)
    kind, why = kind_of_words(column, n, lambda: _is_text(words), next(iter(counts), ""), prefer.target)
    column = replace(column, kind=kind)
    if column.kind == "text":
        words = [word or "" for word in words]
    elif not why:
        column = replace(column, categories=tuple(sorted(counts)))
    return FoundColumn(_left_out(column, why, prefer), _objects(words))


def kind_of_words(
    column: Column, n: int, is_text: Callable[[], bool], example: str, target: bool = False
) -> tuple[str, str]:
    """Return the kind, category or text, of a column of n words, and why it is left out; empty if it is not.

    ``is_text()`` tells free text from names; ``example`` is one of the words.
    """
    if column.missing == n:
        return "category", "no values"
    if column.different == 1 and not column.missing:
        return "category", "one value in all rows"
    if not target and column.different > max(FEW, SHARE * n):
        if is_text():
            return "text", ""
        return "category", f"{column.different:,} different names in {n:,} rows, such as {example[:20]!r}"
    return "category", ""


def _left_out(column: Column, why: str, prefer: Preferences) -> Column:
    return replace(column, kind="left out", why=why) if why and not (prefer.target or prefer.keep_all) else column


def _is_text(words: Sequence[str | None]) -> bool:
    present = [word for word in words if word is not None]
    return seems_text(len(present), sum(map(len, present)), sum(" " in word for word in present))


def seems_text(n: int, length: int, with_space: int) -> bool:
    """Whether n words of this total length, of which some contain a space, are free text."""
    return length >= LONG * n or with_space > 0.5 * n


def _number_note(numbers: Any, texts: Sequence[str | None]) -> str:
    """Show how one cell was read, if the column is not written as plain numbers."""
    odd = [(text, v) for text, v in zip(texts, numbers.values, strict=True) if text is not None and not _means(text, v)]
    if not odd:
        return ""
    group = numbers.format.group or "\n"  # no cell contains "\n"
    text, value = max(odd, key=lambda one: (not np.isnan(one[1]), group in one[0], len(one[0])))
    if np.isnan(value):
        return f"read {text!r} as missing"
    note = f"read {text!r} as {value:.15g}"
    if numbers.other is None:
        return note
    other = numbers.other.read([text])[0][0]
    return f"{note}; with --decimal {numbers.other.decimal!r} it is {other:.15g}"


def _means(text: str, value: float) -> bool:
    """Whether Python reads the text as this number."""
    try:
        return float(text) == value
    except ValueError:
        return False


def _date_note(dates: Any, texts: Sequence[str | None]) -> str:
    if not dates.open:
        return "as days"
    i = next(i for i, text in enumerate(texts) if text is not None)
    day = date.fromordinal(int(np.floor(dates.values[i])) + date(1970, 1, 1).toordinal())
    other = "dmy" if dates.order == "mdy" else "mdy"
    return f"as days; read {texts[i]!r} as {day.isoformat()}, or use --date-order {other}"


# ---- further cells of a known column -----------------------------------------------------------------------------


def read_column(cells: Cells, column: Column, place: Place) -> Vector:
    """Read cells of a known column: numbers (NaN where missing) or words (None where missing).

    Raises an error that names the position of the first cell that does not fit the description.
    """
    if column.kind in ("category", "text"):
        words = [None if text is None else _word(text) for text in cells.texts()]
        return _objects([word or "" for word in words] if column.kind == "text" else words)
    if cells.numbers is not None and (column.kind != "boolean" or not cells.are_dates):
        if cells.are_dates and column.kind == "number":
            raise InvalidInputError(
                f"The column {column.name!r} holds dates, but the model was fitted to numbers. Give numbers, or check "
                "whether two columns were swapped."
            )
        values = cells.numbers
        if column.kind == "boolean" and not np.isin(values[~np.isnan(values)], (0.0, 1.0)).all():
            values = _truths(cells.texts(), column.name, place)
    elif column.kind == "boolean":
        values = _truths(cells.texts(), column.name, place)
    else:
        values = _numbers_of_texts(cells.texts(), column, place)
    _check_finite(values, column.name, place)
    return values


def _numbers_of_texts(texts: Sequence[str | None], column: Column, place: Place) -> Vector:
    if column.kind == "date":
        values, wrong = read_dates(texts, column.order)
        if wrong:
            raise _wrong_cell(wrong, texts, column.name, place, "a date")
        return values
    values, wrong = column.format.read(texts)
    if not wrong:
        return values
    # not in the format of the training cells: accepted if there is only one way to read them
    numbers = find_numbers(texts)
    if numbers is None or numbers.wrong or numbers.other is not None or not column.format.agrees(numbers.format):
        raise _wrong_cell(wrong, texts, column.name, place, "a number", column.note)
    return numbers.values


def _truths(texts: Sequence[str | None], name: str, place: Place) -> Vector:
    values = np.full(len(texts), np.nan)
    for i, text in enumerate(texts):
        if text is not None:
            if text.lower() not in WORDS:
                raise _wrong_cell([i], texts, name, place, "a boolean (true/false, yes/no, 1/0)")
            values[i] = WORDS[text.lower()]
    return values


def _wrong_cell(
    wrong: Sequence[int], texts: Sequence[str | None], name: str, place: Place, what: str, how: str = ""
) -> InvalidInputError:
    others = sum(text is not None for text in texts) - len(wrong)
    if how:
        rest = f"as the column was written when the model was fitted ({how}). Write it in the same way"
    else:
        rest = f"but {others:,} other cells of the column are" if others else "as the model needs"
        rest += ". Correct it"
    cell = str(texts[wrong[0]])[:SHOWN]
    return InvalidInputError(
        f"{place(wrong[0])}, column {name!r}: {cell!r} is not {what}, {rest}, or leave the cell empty if the value is "
        "missing."
    )


def _check_finite(values: Vector, name: str, place: Place) -> None:
    infinite = np.isinf(values)
    if infinite.any():
        raise InvalidInputError(
            f"{place(int(np.argmax(infinite)))}, column {name!r}: the number is infinite, or too large for a float. "
            "Write a finite number, or leave the cell empty if the value is missing."
        )


def _whole(values: Vector) -> bool:
    return bool(np.all(values == np.round(values)))


def _word(text: str) -> str:
    """Undo pandas' conversions, so that a value is the same word from every source: TRUE is True, 1.0 is 1."""
    lower = text.lower()
    if lower in ("true", "false"):
        return lower.capitalize()
    whole = WHOLE.fullmatch(text)
    return text if whole is None else whole[1]


def _objects(words: Sequence[str | None]) -> Vector:
    array = np.empty(len(words), dtype=object)
    array[:] = words
    return array
