"""Data files into samples and targets: CSV, TSV, Parquet, JSON lines, LIBSVM, npz and FASTA.

A table's cells are read as text; what a column is made of is found by looking at all of it. A cell that does not fit is
named by its line and column. Formats that know their types (Parquet, JSON lines) keep them.
"""

from __future__ import annotations

import gzip
import io
import json
import lzma
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError, MissingExtraError
from mercer.io.columns import EXACT, Column, as_column, describe, with_points

__all__ = ["FORMATS", "Samples", "read_samples"]

FORMATS = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".svm": "libsvm", ".libsvm": "libsvm", ".svmlight": "libsvm",
    ".npz": "npz", ".fasta": "fasta", ".fa": "fasta", ".fna": "fasta", ".faa": "fasta",
}  # fmt: skip
OPENERS = {".gz": gzip.open, ".xz": lzma.open}


@dataclass(frozen=True, eq=False)
class Samples:
    """What a file holds.

    Attributes
    ----------
    kind : "table" (a data frame), "matrix" (an array or CSR matrix) or "strings" (a list).
    X : the samples.
    y : their targets; None if the file has none.
    target : the name of the target; empty if it has none.
    columns : what each column of a table is, the target left out.
    names : the names of sequences, else empty.
    """

    kind: str
    X: Any
    y: Any = None
    target: str = ""
    columns: tuple[Column, ...] = ()
    names: tuple[str, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return int(self.X.shape[0]) if hasattr(self.X, "shape") else len(self.X)


def read_samples(
    path: Any,
    *,
    target: str | None = None,
    format: str | None = None,
    labels: Any = None,
    kinds: dict[str, str] | None = None,
    need_target: bool = True,
) -> Samples:
    """Read a data file.

    Parameters
    ----------
    path : str or path
        The file, also compressed (.gz, .xz); "-" for the standard input.
    target : str, default=None
        The column of a table to predict, by its name or its number (from 1 on; "-1" is the last); None for the last
        one. For sequences, not used.
    format : str, default=None
        "csv", "tsv", "parquet", "jsonl", "libsvm", "npz" or "fasta"; None to go by the file's name.
    labels : str or path, default=None
        For sequences: a file with a label per line, or with a name and a label in each; None for the last word of
        each header.
    kinds : dict, default=None
        What columns are known to be ("number", "category", "text"), for new samples of a fitted model.
    need_target : bool, default=True
        Whether it is an error if there is no target.

    Returns
    -------
    samples : Samples
    """
    path = str(path)
    if Path(path).is_dir():
        raise InvalidInputError(f"{path} is a folder: give a file.")
    try:
        return _read(path, target, format or _format_of(path), labels, kinds, need_target)
    except InvalidInputError as error:
        if path == "-" and str(error).startswith("-"):
            raise InvalidInputError(f"The standard input{str(error)[1:]}") from None
        raise


def _read(
    path: str, target: str | None, format: str, labels: Any, kinds: dict[str, str] | None, need_target: bool
) -> Samples:
    if format == "libsvm":
        return _libsvm(path)
    if format == "npz":
        return _npz(path, need_target)
    if format == "fasta":
        return _fasta(path, labels, need_target)
    if format not in ("csv", "tsv", "parquet", "jsonl"):
        raise InvalidInputError(f"Unknown format {format!r}: use one of {', '.join(sorted(set(FORMATS.values())))}.")
    frame = {"parquet": _parquet, "jsonl": _json_lines}.get(format, _separated)(path, format)
    return _table(frame, path, target, kinds, need_target, typed=format in ("parquet", "jsonl"))


def _format_of(path: str) -> str:
    if path == "-":
        return "csv"
    suffixes = [suffix.lower() for suffix in Path(path).suffixes if suffix.lower() not in OPENERS]
    if not suffixes or suffixes[-1] not in FORMATS:
        raise InvalidInputError(
            f"The name {Path(path).name!r} does not say what is in it: use --format with one of "
            f"{', '.join(sorted(set(FORMATS.values())))}."
        )
    return FORMATS[suffixes[-1]]


def _bytes(path: str) -> bytes:
    """All of a file, or of the standard input."""
    if path == "-":
        return sys.stdin.buffer.read()
    try:
        opener: Any = OPENERS.get(Path(path).suffix.lower(), open)
        with opener(path, "rb") as file:
            return bytes(file.read())
    except (OSError, EOFError, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInputError(f"{path} cannot be read: {reason}.") from None


def _text(path: str) -> str:
    try:
        text = _bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"{path} is not text in UTF-8: byte {error.start} is {error.object[error.start]:#04x}. Convert it first."
        ) from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise InvalidInputError(
            f"{path}, line {line}: there is a zero byte, which no text in UTF-8 has. Convert it first."
        )
    return text


def _pandas(path: str) -> Any:
    try:
        import pandas  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtraError(f"Reading the table {path}", package="pandas", extra="tables") from None
    return pandas


# ---- tables ------------------------------------------------------------------------------------------------------


def _separated(path: str, format: str) -> Any:
    """Cells as text; rows of a wrong length are named by their line."""
    import csv

    pandas = _pandas(path)
    text = _text(path)
    delimiter = "\t" if format == "tsv" else _delimiter(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows, lines = [], []
    start = 1
    try:
        for row in reader:
            if row:
                rows.append(row)
                lines.append(start)
            start = reader.line_num + 1
    except csv.Error as error:
        raise InvalidInputError(f"{path}, line {reader.line_num}: {error}.") from None
    if len(rows) < 2:
        found = "a line of names, but no rows" if rows else "no lines"
        raise InvalidInputError(f"{path} has {found}: a table has a line of names and at least one row.")
    header = [name.strip() for name in rows[0]]
    _check_header(header, path, lines[0])
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(header):
            raise InvalidInputError(f"{path}, line {line}: {len(row)} fields, but the header has {len(header)}.")
    frame = pandas.DataFrame(rows[1:], columns=header, index=lines[1:], dtype=object)
    if delimiter == ",":
        return frame
    return frame.assign(**{name: with_points(frame[name]) for name in header})


def _check_header(header: list[str], path: str, line: int) -> None:
    """Raise unless each column has a name of its own that is no number from a row."""
    numbers = [name for name in header if _is_number(name)]
    fractions = [name for name in numbers if not name.lstrip("+-").isdigit()]
    if fractions and 2 * len(numbers) >= len(header):
        raise InvalidInputError(
            f"{path}, line {line}: {fractions[0]!r} is a number where a name is due. The first line must name the "
            "columns: add one."
        )
    if len(set(header)) < len(header) or "" in header:
        twice = next((name for name in header if name and header.count(name) > 1), "")
        raise InvalidInputError(
            f"{path}, line {line}: the header names "
            + (f"{twice!r} twice." if twice else f"column {header.index('') + 1} nothing.")
            + (" Does the file lack a line of names?" if numbers else "")
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _delimiter(text: str) -> str:
    """The one of , ; tab and | that the first line has most of."""
    first = text.split("\n", 1)[0]
    return max((",", ";", "\t", "|"), key=first.count)


def _parquet(path: str, format: str) -> Any:
    pandas = _pandas(path)
    try:
        return pandas.read_parquet(io.BytesIO(_bytes(path)))
    except ImportError:
        raise MissingExtraError(f"Reading the table {path}", package="pyarrow", extra="tables") from None
    except (ValueError, OSError) as error:
        raise InvalidInputError(f"{path} is no Parquet file: {error}.") from None


def _json_lines(path: str, format: str) -> Any:
    pandas = _pandas(path)
    records, lines = [], []
    for number, line in enumerate(_text(path).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise InvalidInputError(f"{path}, line {number}, column {error.colno}: {error.msg}.") from None
        if not isinstance(record, dict):
            raise InvalidInputError(f"{path}, line {number}: an object {{…}} was expected, not {line.strip()[:40]!r}.")
        records.append(record)
        lines.append(number)
    if not records:
        raise InvalidInputError(f"{path} is empty.")
    return pandas.DataFrame(records, index=lines)


def _table(
    frame: Any, path: str, target: str | None, kinds: dict[str, str] | None, need_target: bool, typed: bool
) -> Samples:
    """Columns as numbers or text; the target apart."""
    frame.columns = [str(name) for name in frame.columns]
    if len(frame) == 0:
        raise InvalidInputError(f"{path} has no rows.")
    if target is None and need_target:
        target = frame.columns[-1]
    elif target is not None and target not in frame.columns:
        target = _by_number(target, list(frame.columns), path)
    y = None
    if target is not None and target in frame.columns:
        y = frame[target]
        frame = frame.drop(columns=[target])
    elif target is not None:
        raise InvalidInputError(f"{path} has no column {target!r}. Its columns: {', '.join(frame.columns)}.")
    if kinds is not None:
        missing = [name for name in kinds if name not in frame.columns]
        if missing:
            raise InvalidInputError(
                f"{path} lacks {'the column' if len(missing) == 1 else 'the columns'} {', '.join(missing)}, which the "
                "model was fitted with."
            )
        frame = frame[list(kinds)]
    found = []
    for name in frame.columns:
        values, column = as_column(frame[name], name, path, None if kinds is None else kinds[name], typed)
        frame = frame.assign(**{name: values})
        found.append(column)
    if not found:
        raise InvalidInputError(
            f"{path} has no column beside the target {target!r}. Columns are separated by commas, semicolons, tabs "
            "or |."
        )
    if y is not None:
        y, _ = as_column(y, str(target), path, None, typed, target=True)
        y = np.asarray(y.tolist())  # names as an array of strings, not of objects
    return Samples("table", frame.reset_index(drop=True), y, str(target or ""), describe(tuple(found), len(frame)))


def _by_number(target: str, names: list[str], path: str) -> str:
    """A column that was given by its number, from 1 on, or from -1 backwards."""
    if not target.removeprefix("-").isdigit():
        return target
    number = int(target)
    if not 1 <= abs(number) <= len(names):
        raise InvalidInputError(f"{path} has no column {target}: its {len(names)} columns are numbered from 1 on.")
    return names[number - 1 if number > 0 else number]


# ---- matrices and sequences --------------------------------------------------------------------------------------


def _libsvm(path: str) -> Samples:
    from mercer.io.libsvm import read_data

    try:
        X, y = read_data(io.BytesIO(_bytes(path)))
    except ValueError as error:
        number = _bad_line(_text(path))
        raise InvalidInputError(f"{path}, line {number}: {error}." if number else f"{path}: {error}.") from None
    if X.nnz < 2**31:  # which scikit-learn asks for
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    whole = bool(np.all(y == np.round(y)) and np.all(np.abs(y) < EXACT))
    return Samples("matrix", X, y.astype(np.int64) if whole else y, "label")


def _bad_line(text: str) -> int:
    """The first line that is not `label index:value …`; 0 if each of them is."""
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
        with np.load(io.BytesIO(_bytes(path)), allow_pickle=False) as archive:
            found = {name: archive[name] for name in archive.files if name in ("X", "y")}
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise InvalidInputError(f"{path} is no archive of plain arrays: {error}.") from None
    for name in ("X", "y") if need_target else ("X",):
        if name not in found:
            raise InvalidInputError(f"{path} has no array {name!r}: store samples as X and targets as y.")
    X, y = found["X"], found.get("y")
    if X.ndim != 2:
        raise InvalidInputError(f"{path}: X has the shape {X.shape}, but samples are the rows of a matrix.")
    if y is not None and y.shape != (len(X),):
        raise InvalidInputError(f"{path}: X has {len(X)} rows, y has the shape {y.shape}.")
    X = X.astype(np.float64) if X.dtype.kind in "iub" else X
    return Samples("matrix", X, y, "y" if y is not None else "")


def _fasta(path: str, labels: Any, need_target: bool) -> Samples:
    """Sequences, with labels from a file of their own or from the last words of the headers."""
    headers: list[str] = []
    parts: list[list[str]] = []
    for number, raw in enumerate(_text(path).splitlines(), start=1):
        line = raw.strip()
        if line.startswith(">"):
            headers.append(line[1:].strip())
            parts.append([])
        elif line and not line.startswith(";"):
            if not parts:
                raise InvalidInputError(f"{path}, line {number}: a sequence without a header line that begins with >.")
            parts[-1].append(line)
    if not headers:
        raise InvalidInputError(f"{path} has no sequences: a header line begins with >.")
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
            f"{path}: sequence {number + 1} (>{headers[number]}) has no label. Give a file of labels with --labels, or "
            "write the label behind the name of each sequence."
        )
    return Samples("strings", X, y, "label" if y is not None else "", names=names)


def _labels(path: str, names: tuple[str, ...]) -> Any:
    lines = [(number, line.split()) for number, line in enumerate(_text(path).splitlines(), start=1) if line.strip()]
    for number, words in lines:
        if len(words) > 2:
            raise InvalidInputError(f"{path}, line {number}: {len(words)} words, but a label or `name label` is due.")
    if all(len(words) == 2 for _, words in lines):
        known = dict(words for _, words in lines)
        missing = [name for name in names if name not in known]
        if missing:
            raise InvalidInputError(f"{path} has no label for {len(missing)} sequences, the first is {missing[0]!r}.")
        return np.array([known[name] for name in names])
    if len(lines) != len(names):
        raise InvalidInputError(f"{path} has {len(lines)} labels for {len(names)} sequences.")
    return np.array([words[-1] for _, words in lines])
