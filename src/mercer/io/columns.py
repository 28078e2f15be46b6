"""What the columns of a table are: numbers, categories, texts, or of no use."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError

# a day, perhaps with a time, in the ways that files have them
DATE = re.compile(r"(\d{4}-\d\d?-\d\d?|\d\d?[./-]\d\d?[./-]\d{2,4}|\d{4}/\d\d?/\d\d?)([T ]\d\d?:\d\d.*)?")
# names of columns that count rows
IDENTIFIER = re.compile(r"(?i:(.*[_ .-])?(id|uuid|guid|index|row|nr|no|key)|unnamed: \d+)|.*[a-z](Id|ID)")
# whole numbers up to here are exact
EXACT = 2**53
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "<na>"})
# a column of which at least this share are numbers is one of numbers with mistakes in it
MOSTLY = 0.9
# categories that a column of strings may have: so many, or this share of the rows
FEW, SHARE = 20, 0.05
# a mean number of characters from which on strings are texts
LONG = 20.0


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : its name.
    kind : "number", "category", "text", or "left out".
    missing : cells without a value.
    different : different values.
    why : why it is left out; else empty.
    hint : what is known of a column that is perhaps of no use: "date", "identifier", or an example of its names.
    """

    name: str
    kind: str
    missing: int = 0
    different: int = 0
    why: str = ""
    hint: str = ""


def with_points(cells: Any) -> Any:
    """Texts with points in place of commas, where that makes numbers of all of them, as in 3,14."""
    known = [cell for cell in cells if cell.strip().lower() not in MISSING]
    if not any("," in cell for cell in known) or any("." in cell for cell in known):
        return cells
    if not all(re.fullmatch(r"[+-]?(\d+(,\d*)?|,\d+)([eE][+-]?\d+)?", cell.strip()) for cell in known):
        return cells
    return cells.map(lambda cell: cell.replace(",", "."))


def as_column(
    cells: Any, name: str, path: str, kind: str | None = None, typed: bool = False, target: bool = False
) -> tuple[Any, Column]:
    """The cells as numbers or strings, with None or NaN for missing ones, and what they are.

    ``kind`` is known for new samples. A cell that does not fit is an error that names its line.
    """
    import pandas  # type: ignore[import-untyped]

    if typed and _are_numbers(cells, target):
        text, numbers = None, cells.astype("float64")
        absent = numbers.isna()
    else:
        text = cells.astype("object").map(lambda cell: cell if cell is None else str(cell).strip())
        absent = text.map(lambda cell: cell is None or cell.lower() in MISSING)
        numbers = pandas.to_numeric(text.where(~absent), errors="coerce").astype("float64")
    present = int((~absent).sum())
    if target and present < len(cells):
        line = cells.index[int(np.argmax(absent.to_numpy()))]
        raise InvalidInputError(f"{path}, line {line}, column {name!r}: the target is missing. Leave such rows out.")
    wrong = numbers.isna() & ~absent
    n_wrong = int(wrong.sum())
    if kind is None:
        if n_wrong == 0 and present:
            kind = "number"
        elif 0 < n_wrong <= (1 - MOSTLY) * present:
            raise _not_a_number(text, wrong, name, path, present - n_wrong)
        else:
            kind = "category"
    if kind == "number":
        if n_wrong:
            raise _not_a_number(text, wrong, name, path, present - n_wrong)
        infinite = np.isinf(numbers.to_numpy())
        if infinite.any():
            line = cells.index[int(np.argmax(infinite))]
            raise InvalidInputError(f"{path}, line {line}, column {name!r}: infinite numbers cannot be learnt from.")
        whole = bool(present and (numbers[~absent] == numbers[~absent].round()).all())
        large = whole and float(numbers.abs().max()) >= EXACT
        if not (target and large and text is not None):  # whose last digits are lost: they are names
            exact = cells if text is None else text
            different = int((exact if large else numbers).nunique())
            counts = whole and different == len(cells) > 2 and (large or IDENTIFIER.fullmatch(name) is not None)
            column = Column(name, "number", len(cells) - present, different, hint="identifier" if counts else "")
            return (numbers.astype("int64") if target and whole and not large else numbers), column
    words = cells.astype("object").map(str) if text is None else text
    # pandas would make NaN of None, which is no string
    known = [None if gone else word for word, gone in zip(words, absent, strict=True)]
    values = pandas.Series(known, index=cells.index, dtype="object")
    hint = ""
    if kind == "category" and present:
        dates = all(DATE.fullmatch(word) for word in known if word is not None)
        hint = "date" if dates else next(word for word in known if word is not None)
    if kind == "category" and not target and hint != "date" and _is_text(values[~absent], len(cells)):
        kind = "text"
    if kind == "text":
        values = pandas.Series([word or "" for word in known], index=cells.index, dtype="object")
    return values, Column(name, kind, len(cells) - present, int(values.nunique()), hint=hint)


def _are_numbers(cells: Any, target: bool) -> bool:
    """Whether cells that know their type are numbers; as a target, yes and no and large whole numbers are names."""
    from pandas.api import types  # type: ignore[import-untyped]

    if types.is_bool_dtype(cells):
        return not target
    large = types.is_integer_dtype(cells) and bool((cells.abs() >= EXACT).any())
    return types.is_numeric_dtype(cells) and not (target and large)


def _is_text(values: Any, n: int) -> bool:
    different = int(values.nunique())
    if different <= max(FEW, SHARE * n):
        return False
    return bool(values.map(len).mean() >= LONG or values.map(lambda cell: " " in cell).mean() > 0.5)


def _not_a_number(text: Any, wrong: Any, name: str, path: str, others: int) -> InvalidInputError:
    place = int(np.argmax(wrong.to_numpy()))
    return InvalidInputError(
        f"{path}, line {text.index[place]}, column {name!r}: {text.iloc[place]!r} is not a number, the other {others} "
        "values of the column are. Correct it, or leave the cell empty if the value is missing."
    )


def describe(columns: tuple[Column, ...], n: int) -> tuple[Column, ...]:
    """The same columns, those that tell nothing of new samples marked as left out."""
    found = []
    for column in columns:
        why = ""
        if column.missing == n:
            why = "no values"
        elif column.different <= 1 and column.missing == 0:
            why = "one value in all rows"
        elif column.kind == "number" and column.hint == "identifier":
            why = "an identifier, another whole number in each row"
        elif column.kind == "category" and column.different > max(FEW, SHARE * n):
            if column.hint == "date":
                why = (
                    f"{column.different:,} different dates; write them as numbers, such as days or months, to use them"
                )
            else:
                why = f"{column.different:,} different names in {n:,} rows, such as {column.hint[:20]!r}"
        found.append(replace(column, kind="left out", why=why) if why else column)
    return tuple(found)
