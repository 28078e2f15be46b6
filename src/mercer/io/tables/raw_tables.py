"""Read table files (CSV, TSV, Parquet, JSON lines) into columns of raw cells, which `columns` then interprets."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError, MissingExtraError
from mercer.io.tables.text_files import read_bytes, read_text, shown

SEPARATORS = (",", ";", "\t", "|")
# some programs declare the separator in the first line
SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n?")
# a message shows at most this many names
SHOWN = 20


@dataclass(frozen=True, eq=False)
class RawTable:
    """The columns of a file before their cells are interpreted.

    Attributes
    ----------
    path : the file.
    cells : column name -> list of strings, or a pandas column if the file format stores types.
    lines : the number of each row in the file.
    unit : what ``lines`` counts: "line" or "row".
    separator : the column separator; empty for formats without one.
    notes : remarks for the user about the file.
    name_notes : remarks for the user about column names.
    repeated : names that more than one column has in the file.
    """

    path: str
    cells: dict[str, Any]
    lines: Sequence[int]
    unit: str = "line"
    separator: str = ""
    notes: tuple[str, ...] = ()
    name_notes: tuple[str, ...] = ()
    repeated: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, name: str) -> Any:
        return self.cells[name]

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.cells)

    def place(self, i: int) -> str:
        """Return the position of row i in the file, for messages."""
        return f"{shown(self.path)}, {self.unit} {self.lines[i]}"

    def take(self, rows: Any) -> RawTable:
        """Return the rows of a boolean mask."""
        places = np.flatnonzero(rows).tolist()
        cells = {
            name: [one[i] for i in places] if isinstance(one, list) else one.iloc[places]
            for name, one in self.cells.items()
        }
        return replace(self, cells=cells, lines=[self.lines[i] for i in places])


def pandas_for(path: str) -> Any:
    """Import pandas; raise `MissingExtraError` if it is not installed."""
    try:
        import pandas
    except ImportError:
        raise MissingExtraError(f"Reading the table {path}", package="pandas", extra="tables") from None
    return pandas


# ---- CSV and its relatives ---------------------------------------------------------------------------------------


def read_separated(path: str, format: str, encoding: str | None) -> RawTable:
    """Read a text file whose first line holds the column names. Errors name the line of a row of the wrong length."""
    pandas_for(path)
    text, note = read_text(path, encoding)
    declared = SEPARATOR_LINE.match(text)
    separator = declared[1] if declared else "\t" if format == "tsv" else _separator(text)
    rows, lines = _rows(text[declared.end() :] if declared else text, separator, path, 2 if declared else 1)
    if len(rows) < 2:
        found = "a line of names, but no rows" if rows else "no lines"
        raise InvalidInputError(
            f"{shown(path)} has {found}. A table needs a line with the names of the columns and a line for each row."
        )
    header = [name.strip() for name in rows.pop(0)]
    _fit_width(header, rows, lines[1:], path, separator)
    while len(header) > 1 and not header[-1] and not any(row[-1].strip() for row in rows):
        for row in (header, *rows):  # a separator at the end of each line
            row.pop()
    names, name_notes = _names(header, path, lines[0])
    cells = {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    repeated = frozenset(name for name, count in Counter(header).items() if count > 1)
    return RawTable(path, cells, lines[1:], "line", separator, (note,) if note else (), name_notes, repeated)


def _separator(text: str) -> str:
    """Return the most frequent of , ; tab and | in the first line, outside quotation marks."""
    first = re.sub(r'"[^"]*"', "", text.lstrip("\r\n").split("\n", 1)[0])
    return max(SEPARATORS, key=first.count)


def _rows(text: str, separator: str, path: str, start: int) -> tuple[list[list[str]], list[int]]:
    """Return the non-empty rows, and the line in which each one begins."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    rows, lines, first = [], [], start
    try:
        for row in reader:
            if row:
                rows.append(row)
                lines.append(start)
            start = reader.line_num + first
    except csv.Error as error:
        raise InvalidInputError(
            f"{shown(path)}, line {start}: {error}. Check whether a quotation mark in this line is never closed."
        ) from None
    return rows, lines


def _fit_width(header: list[str], rows: list[list[str]], lines: list[int], path: str, separator: str) -> None:
    """Raise unless each row has one cell per name. Edits header and rows if all rows have one extra cell."""
    width = len(header)
    if all(len(row) == width + 1 for row in rows):
        if not any(row[-1].strip() for row in rows):  # a separator at the end of each row
            for row in rows:
                row.pop()
        else:  # the first column holds row names and has no name itself
            header.insert(0, "")
        return
    for row, line in zip(rows, lines, strict=True):
        if len(row) > width and not any(cell.strip() for cell in row[width:]):
            del row[width:]
        if len(row) != width:
            name = {"\t": "a tab", "|": "|", ",": "a comma", ";": "a semicolon"}.get(separator, repr(separator))
            raise InvalidInputError(
                f"{shown(path)}, line {line}: {_count(len(row), 'cell')}, but the first line names "
                f"{_count(width, 'column')}. Columns are separated by {name}: a cell that contains one must be in "
                "quotation marks, and a missing value is an empty cell."
            )


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def _names(header: list[str], path: str, line: int) -> tuple[list[str], tuple[str, ...]]:
    """Return distinct column names, made as pandas makes them, and notes. Raise if the header holds numbers."""
    numbers = [name for name in header if _is_number(name)]
    fractions = [name for name in numbers if not name.lstrip("+-").isdigit()]
    alike = len(set(header)) < len(header)
    if 2 * len(numbers) >= len(header) and (fractions or (numbers and alike)):
        raise InvalidInputError(
            f"{shown(path)}, line {line}: the first line must hold the names of the columns, but it holds numbers such "
            f"as {(fractions or numbers)[0]!r}. Add a line of names above it."
        )
    names: list[str] = []
    taken, blank, again = set(header), [], []
    counts: dict[str, int] = {}
    for place, name in enumerate(header):
        new = name or f"Unnamed: {place}"
        if not name:
            blank.append(place + 1)
        elif name in counts:
            while new in taken:
                new = f"{name}.{counts[name]}"
                counts[name] += 1
            again.append(f"{name!r} as {new!r}")
        counts.setdefault(name, 1)
        taken.add(new)
        names.append(new)
    notes = []
    if blank:
        which = f"column {blank[0]} has" if len(blank) == 1 else f"columns {', '.join(map(str, blank[:SHOWN]))} have"
        called = ", ".join(repr(names[place - 1]) for place in blank[:SHOWN])
        notes.append(f"{shown(path)}: {which} no name, called {called} here.")
    if again:
        notes.append(f"{shown(path)}: columns with equal names; read {', '.join(again[:SHOWN])}.")
    return names, tuple(notes)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# ---- formats that store types ------------------------------------------------------------------------------------


def read_parquet(path: str) -> RawTable:
    """Read a Parquet file."""
    pandas = pandas_for(path)
    try:
        frame = pandas.read_parquet(io.BytesIO(read_bytes(path)))
    except ImportError:
        raise MissingExtraError(f"Reading the table {path}", package="pyarrow", extra="tables") from None
    except (ValueError, OSError) as error:
        raise InvalidInputError(
            f"{shown(path)} is not a Parquet file: {str(error).rstrip('.')}. If it has another format, "
            "name it with --format."
        ) from None
    return _of_frame(frame, path, range(1, len(frame) + 1), "row")


def read_json_lines(path: str, encoding: str | None) -> RawTable:
    """Read a file with one JSON object per line."""
    pandas = pandas_for(path)
    text, note = read_text(path, encoding)
    records, lines = [], []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            where = f", column {error.colno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else ": too deep"
            raise InvalidInputError(
                f'{shown(path)}, line {number}{where}. Each line must be a JSON object such as {{"size": 3}}.'
            ) from None
        if not isinstance(record, dict):
            raise InvalidInputError(
                f"{shown(path)}, line {number}: {line.strip()[:40]!r} is not a JSON object. Each line must be one, "
                'such as {"size": 3}.'
            )
        records.append(record)
        lines.append(number)
    if not records:
        raise InvalidInputError(f'{shown(path)} is empty. Each line must be a JSON object such as {{"size": 3}}.')
    table = _of_frame(pandas.DataFrame(records), path, lines, "line")
    return replace(table, notes=(note,)) if note else table


def _of_frame(frame: Any, path: str, lines: Sequence[int], unit: str) -> RawTable:
    names, notes = _names([str(name).strip() for name in frame.columns], path, 1)
    cells = {name: frame.iloc[:, j] for j, name in enumerate(names)}
    return RawTable(path, cells, lines, unit, name_notes=notes)
