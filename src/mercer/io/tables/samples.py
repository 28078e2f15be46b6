"""Read data files into samples and targets: CSV, TSV, Parquet, JSON lines, LIBSVM, npz and FASTA.

The cells of a text table are read as strings; all cells of a column together determine its kind. Errors name the line
and the column of a cell that does not fit. Formats that store types (Parquet, JSON lines) keep them.
"""

from __future__ import annotations

import difflib
import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.io.tables.cells import EXACT, Cells
from mercer.io.tables.columns import Column, FoundColumn, Preferences, find_column, read_column
from mercer.io.tables.raw_tables import SHOWN, RawTable, read_json_lines, read_parquet, read_separated
from mercer.io.tables.table_reader import TableReader, check_columns, frame_of
from mercer.io.tables.text_files import COMPRESSED, read_bytes, read_text, shown
from mercer.kernels.features import Vector

__all__ = ["FORMATS", "Samples", "read_samples"]

FORMATS = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".svm": "libsvm", ".libsvm": "libsvm", ".svmlight": "libsvm",
    ".npz": "npz", ".fasta": "fasta", ".fa": "fasta", ".fna": "fasta", ".faa": "fasta",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Samples:
    """The samples and targets of a data file.

    Attributes
    ----------
    kind : "table" (a data frame), "matrix" (an array or CSR matrix) or "strings" (a list).
    X : the samples.
    y : the targets; None if the file has none.
    target : the name of the target; empty if there is none.
    columns : the description of each column of a table, without the target.
    target_column : the description of the target column of a table.
    labelled : a mask of the samples that have a target; ``y`` holds only those targets. None if all have one.
    names : the names of sequences, else empty.
    notes : remarks for the user on how the file was read, a sentence each.
    """

    kind: str
    X: Any
    y: Any = None
    target: str = ""
    columns: tuple[Column, ...] = ()
    target_column: Column | None = None
    labelled: Any = None
    names: tuple[str, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.X.shape[0]) if hasattr(self.X, "shape") else len(self.X)


@dataclass(frozen=True)
class ReadingOptions:
    """Options that settle what the file leaves open; see `read_samples`."""

    encoding: str | None = None
    decimal: str | None = None
    date_order: str | None = None
    na_target: str = "error"


def read_samples(
    path: Any,
    *,
    target: str | None = None,
    format: str | None = None,
    labels: Any = None,
    reader: TableReader | None = None,
    need_target: bool = True,
    encoding: str | None = None,
    decimal: str | None = None,
    date_order: str | None = None,
    na_target: str = "error",
) -> Samples:
    """Read a data file.

    Parameters
    ----------
    path : str or path
        The file, plain or compressed (gzip, xz, bzip2); "-" is standard input.
    target : str, default=None
        The column of a table to predict, by name or by number (starting at 1; "-1" is the last). None is the last
        column. Not used for sequences.
    format : str, default=None
        "csv", "tsv", "parquet", "jsonl", "libsvm", "npz" or "fasta". None: by the suffix of the file name.
    labels : str or path, default=None
        For sequences: a file with a label, or a name and a label, on each line. None: the label is the last word of
        each header.
    reader : TableReader, default=None
        For new samples of a fitted model: how to read its columns. None: infer it from the cells.
    need_target : bool, default=True
        Whether to raise an error if there is no target.
    encoding : str, default=None
        The encoding of a text file. None: by the byte order mark, else UTF-8, else Windows-1252 with a note.
    decimal : {".", ","}, default=None
        The decimal mark of ambiguous numbers such as 1,234. None: the mark that the other columns use.
    date_order : {"dmy", "mdy"}, default=None
        The order of day and month in ambiguous dates such as 1/2/2024.
    na_target : {"error", "drop", "keep"}, default="error"
        What to do with rows of a table whose target is missing. Rows that are kept are not ``labelled``.

    Returns
    -------
    samples : Samples
    """
    path = str(path)
    if Path(path).is_dir():
        raise InvalidInputError(f"{path} is a folder, not a file: give the name of a data file.")
    format = format or _format_of(path)
    if format == "libsvm":
        return _libsvm(path)
    if format == "npz":
        return _npz(path, need_target)
    if format == "fasta":
        return _fasta(path, labels, need_target, encoding)
    if format not in ("csv", "tsv", "parquet", "jsonl"):
        raise InvalidInputError(f"Unknown format {format!r}: use one of {', '.join(sorted(set(FORMATS.values())))}.")
    if format == "parquet":
        raw = read_parquet(path)
    elif format == "jsonl":
        raw = read_json_lines(path, encoding)
    else:
        raw = read_separated(path, format, encoding)
    return _table(raw, target, reader, need_target, ReadingOptions(encoding, decimal, date_order, na_target))


def _format_of(path: str) -> str:
    if path == "-":
        return "csv"
    suffixes = [suffix.lower() for suffix in Path(path).suffixes if suffix.lower() not in COMPRESSED]
    if not suffixes or suffixes[-1] not in FORMATS:
        raise InvalidInputError(
            f"The suffix of {Path(path).name!r} does not tell the format of the file: use --format with one of "
            f"{', '.join(sorted(set(FORMATS.values())))}."
        )
    return FORMATS[suffixes[-1]]


# ---- tables ------------------------------------------------------------------------------------------------------


def _table(
    raw: RawTable, target: str | None, reader: TableReader | None, need_target: bool, options: ReadingOptions
) -> Samples:
    """Convert the columns to numbers or words, and separate the target."""
    if len(raw) == 0:
        raise InvalidInputError(f"{shown(raw.path)} has no rows: there is nothing to learn or to predict.")
    target = target_name(raw, target, reader, need_target)
    found, labelled, notes = None, None, raw.notes if reader is not None else (*raw.notes, *raw.name_notes)
    if target is not None:
        found = read_target(raw, target, reader, options)
        known = np.array([value is not None and value == value for value in found.values])
        if not known.all():
            found = replace(found, values=found.values[known])
            if options.na_target == "keep":
                labelled = known
            else:
                _check_known(raw, target, known, options)
                dropped = int(np.sum(~known))
                notes = (*notes, f"{dropped:,} of {len(raw):,} rows were dropped, in which {target!r} is missing.")
                raw = raw.take(known)
    names = [name for name in raw.columns if name != target]
    if reader is not None:
        check_columns(shown(raw.path), reader.names, names)
        frame, columns = reader.read(raw, raw.place), tuple(reader.columns)
    else:
        if not names:
            raise InvalidInputError(
                f"{shown(raw.path)} has only the column {target!r}, which is the target: there is nothing to predict "
                "it from. Columns are separated by commas, semicolons, tabs or |."
            )
        results = find_columns(raw, names, options)
        columns = tuple(one.column for one in results)
        frame = frame_of(names, [one.values for one in results])
    y = None if found is None else target_values(found)
    column = None if found is None else found.column
    return Samples("table", frame, y, str(target or ""), columns, column, labelled, notes=notes)


def target_name(raw: RawTable, target: str | None, reader: TableReader | None, need_target: bool) -> str | None:
    """Return the name of the target column; None if there is none. Raise if the table lacks the column."""
    if target is None:
        if not need_target:
            return None
        known = None if reader is None or reader.target is None else reader.target.name
        return known if known in raw.columns else raw.columns[-1]
    if target in raw.repeated:
        raise InvalidInputError(
            f"{shown(raw.path)} has several columns {target!r}. Rename all but one of them, or give the number of the "
            "column as --target."
        )
    if target in raw.columns:
        return target
    if target.removeprefix("-").isdigit():
        number = int(target)
        if not 1 <= abs(number) <= len(raw.columns):
            raise InvalidInputError(
                f"{shown(raw.path)} has no column {target}: its {len(raw.columns)} columns are numbered from 1 on."
            )
        return raw.columns[number - 1 if number > 0 else number]
    near = difflib.get_close_matches(target.lower(), [name.lower() for name in raw.columns], 1)
    meant = next((name for name in raw.columns if near and name.lower() == near[0]), None)
    more = f", and {len(raw.columns) - SHOWN:,} more" if len(raw.columns) > SHOWN else ""
    raise InvalidInputError(
        f"{shown(raw.path)} has no column {target!r}. Its columns: {', '.join(raw.columns[:SHOWN])}{more}."
        + (f" Did you mean {meant!r}?" if meant else "")
    )


def read_target(raw: RawTable, target: str, reader: TableReader | None, options: ReadingOptions) -> FoundColumn:
    """Read the target column, as the reader of a fitted model describes it or as its cells suggest."""
    cells = Cells(raw[target])
    if reader is not None and reader.target is not None and reader.target.name == target:
        return FoundColumn(reader.target, read_column(cells, reader.target, raw.place))
    prefer = Preferences(options.decimal, options.date_order, target=True)
    found = find_column(cells, target, raw.place, prefer)
    if found.open_mark and options.decimal is None:  # the other columns may determine the mark
        others = [name for name in raw.columns if name != target]
        mark = _decimal_mark([find_column(Cells(raw[name]), name, raw.place) for name in others])
        return _decided(found, cells, raw, mark, prefer)
    return found


def find_columns(
    raw: RawTable, names: Sequence[str], options: ReadingOptions, keep_all: bool = False
) -> list[FoundColumn]:
    """Find the kind of each column. Ambiguous numbers take the decimal mark of the other columns.

    ``keep_all``: do not leave out columns, because the table is a part of a larger one.
    """
    prefer = Preferences(options.decimal, options.date_order, keep_all=keep_all)
    cells = [Cells(raw[name]) for name in names]
    found = [find_column(one, name, raw.place, prefer) for one, name in zip(cells, names, strict=True)]
    if options.decimal is not None or not any(one.open_mark for one in found):
        return found
    mark = _decimal_mark(found)
    return [_decided(one, part, raw, mark, prefer) for one, part in zip(found, cells, strict=True)]


def _decimal_mark(found: Sequence[FoundColumn]) -> str | None:
    """The decimal mark of the unambiguous columns; None if there are none or they disagree."""
    marks = {one.decimal for one in found} - {""}
    return marks.pop() if len(marks) == 1 else None


def _decided(found: FoundColumn, cells: Cells, raw: RawTable, mark: str | None, prefer: Preferences) -> FoundColumn:
    """Read an ambiguous column again with the decimal mark of the file."""
    if not found.open_mark:
        return found
    if mark is None and found.open_mark == "," and raw.separator != ",":
        mark = ","  # commas do not separate columns here, so they are likely decimal marks
    if mark is None or mark == found.column.format.decimal:
        return found
    return find_column(cells, found.column.name, raw.place, replace(prefer, decimal=mark))


def _check_known(raw: RawTable, target: str, known: Vector, options: ReadingOptions) -> None:
    if not known.any():
        raise InvalidInputError(
            f"{shown(raw.path)}: the target {target!r} is missing in all {len(raw):,} rows. Choose another column with "
            "--target."
        )
    if options.na_target != "drop":
        raise InvalidInputError(
            f"{raw.place(int(np.argmin(known)))}, column {target!r}: the target is missing, as in {np.sum(~known):,} "
            f"of {len(raw):,} rows. Leave such rows out with --na-target drop, or fill in the values."
        )


def target_values(found: FoundColumn) -> Vector:
    """Return the targets as strings, integers or floats."""
    values = found.values
    if values.dtype == object:
        return np.asarray(values.tolist())  # an array of strings, not of objects
    whole = bool(np.all(values == np.round(values)) and np.all(np.abs(values) < EXACT))
    return values.astype(np.int64) if whole else values


# ---- matrices and sequences --------------------------------------------------------------------------------------


def _libsvm(path: str) -> Samples:
    from mercer.io.formats.libsvm_files import read_data

    data = read_bytes(path)
    try:
        X, y = read_data(io.BytesIO(data))
    except ValueError as error:
        number = _bad_line(data.decode("utf-8", "replace"))
        where = f"{shown(path)}, line {number}" if number else shown(path)
        raise InvalidInputError(f"{where}: {error}. Each line must be `label index:value index:value ...`.") from None
    if X.nnz < 2**31:  # scikit-learn's estimators need 32-bit indices
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    whole = bool(np.all(y == np.round(y)) and np.all(np.abs(y) < EXACT))
    return Samples("matrix", X, y.astype(np.int64) if whole else y, "label")


def _bad_line(text: str) -> int:
    """The number of the first line that is not `label index:value …`; 0 if there is none."""
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split("#", 1)[0].split()
        try:
            for position, word in enumerate(words):
                if position == 0:
                    [float(label) for label in word.split(",")]
                else:
                    index, value = word.split(":")
                    int(index), float(value)
        except ValueError:
            return number
    return 0


def _npz(path: str, need_target: bool) -> Samples:
    import zipfile

    try:
        with np.load(io.BytesIO(read_bytes(path)), allow_pickle=False) as archive:
            found = {name: archive[name] for name in archive.files if name in ("X", "y")}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, AttributeError) as error:
        raise InvalidInputError(
            f"{shown(path)} is not an npz archive of plain arrays: {error}. Write it with numpy.savez(path, X=X, y=y)."
        ) from None
    for name in ("X", "y") if need_target else ("X",):
        if name not in found:
            raise InvalidInputError(f"{shown(path)} has no array {name!r}: store the samples as X, the targets as y.")
    X, y = found["X"], found.get("y")
    if X.ndim != 2:
        raise InvalidInputError(
            f"{shown(path)}: X has the shape {X.shape}, but it must be a matrix whose rows are the samples."
        )
    if X.dtype.kind not in "iubf":
        raise InvalidInputError(f"{shown(path)}: X has the type {X.dtype}, but it must hold numbers.")
    if y is not None and y.shape != (len(X),):
        raise InvalidInputError(
            f"{shown(path)}: y has the shape {y.shape}, but it must have one value for each of the {len(X)} rows of X."
        )
    X = X.astype(np.float64) if X.dtype.kind in "iub" else X
    return Samples("matrix", X, y, "y" if y is not None else "")


def _fasta(path: str, labels: Any, need_target: bool, encoding: str | None) -> Samples:
    """Read sequences, with labels from a separate file or from the last word of each header."""
    headers: list[str] = []
    parts: list[list[str]] = []
    text, note = read_text(path, encoding)
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if line.startswith(">"):
            headers.append(line[1:].strip())
            parts.append([])
        elif line and not line.startswith(";"):
            if not parts:
                raise InvalidInputError(
                    f"{shown(path)}, line {number}: a sequence without a header. Write a line that begins with > above "
                    "each sequence."
                )
            parts[-1].append(line)
    if not headers:
        raise InvalidInputError(f"{shown(path)} has no sequences: each one needs a header line that begins with >.")
    X = ["".join(part) for part in parts]
    names = tuple(header.split()[0] if header.split() else "" for header in headers)
    y: Any = None
    if labels is not None:
        y = _labels(str(labels), names)
    elif all(len(header.split()) > 1 for header in headers):
        y = np.array([header.split()[-1] for header in headers])
    elif need_target:
        number = next(i for i, header in enumerate(headers) if len(header.split()) < 2)
        raise InvalidInputError(
            f"{shown(path)}: sequence {number + 1} (>{headers[number]}) has no label. Give a file of labels with "
            "--labels, or write the label after the name of each sequence."
        )
    target = "label" if y is not None else ""
    return Samples("strings", X, y, target, names=names, notes=(note,) if note else ())


def _labels(path: str, names: tuple[str, ...]) -> Any:
    text, _ = read_text(path)
    lines = [(number, line.split()) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    for number, words in lines:
        if len(words) > 2:
            raise InvalidInputError(
                f"{path}, line {number}: {len(words)} words. Each line must be a label, or a name and a label."
            )
    if all(len(words) == 2 for _, words in lines):
        known = dict(words for _, words in lines)
        missing = [name for name in names if name not in known]
        if missing:
            raise InvalidInputError(
                f"{path} has no label for {len(missing)} sequences, the first is {missing[0]!r}. Add a line for each."
            )
        return np.array([known[name] for name in names])
    if len(lines) != len(names):
        raise InvalidInputError(
            f"{path} has {len(lines)} labels for {len(names)} sequences. It must have one for each, in the same order."
        )
    return np.array([words[-1] for _, words in lines])
