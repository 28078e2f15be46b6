"""Check a table file before it is read: size, columns, rows, and its size in memory.

A small file can describe a huge table: a compressed file, a Parquet file that repeats one long text, or JSON lines with
a different key in each line. Such files are refused by their first bytes or their metadata.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mercer.exceptions import MissingExtraError
from mercer.io.tables.text_files import MAGIC, read_text
from mercer.studio.state import StateError

SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".parquet", ".pq", ".jsonl", ".ndjson")
MOST_COLUMNS, MOST_ROWS, MOST_CELLS = 2000, 1_000_000, 20_000_000
# the most bytes of a table in memory
MOST_BYTES = 500 * 1024 * 1024
# the most bytes of all texts of a Parquet file: each text is examined
MOST_TEXT_BYTES = 64 * 1024 * 1024


def check_table_file(path: Path, name: str) -> None:
    """Raise StateError if the file is not a table of a moderate size."""
    suffix = Path(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise StateError(f"{name} is not a table: open a file that ends in {', '.join(SUFFIXES)}.", "name")
    with path.open("rb") as file:
        start = file.read(16)
    if not start:
        raise StateError(f"{name} is empty.", "table")
    if any(start.startswith(magic) for magic, _ in MAGIC):
        raise StateError(f"{name} is compressed: unpack it first.", "table")
    if suffix in (".parquet", ".pq"):
        _check_parquet(path, name)
    elif suffix in (".jsonl", ".ndjson"):
        _check_json_lines(path, name)
    else:
        _check_text(path, name)


def _refuse(name: str, columns: int, rows: int) -> None:
    """Raise if there are too many columns or rows."""
    if columns > MOST_COLUMNS:
        raise StateError(f"{name} has {columns:,} columns; the page takes at most {MOST_COLUMNS:,}.", "table")
    if rows > MOST_ROWS or rows * columns > MOST_CELLS:
        raise StateError(
            f"{name} has {rows:,} rows and {columns:,} columns; the page takes at most {MOST_ROWS:,} rows and "
            f"{MOST_CELLS:,} cells. Use `mercer fit {name}`.",
            "table",
        )


def _check_text(path: Path, name: str) -> None:
    with path.open("rb") as file:
        first = file.readline(MOST_BYTES)
        rows = sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b"")) + 1
    # quoted separators count, too: an upper bound
    columns = 1 + max(first.count(mark) for mark in (b",", b";", b"\t", b"|"))
    _refuse(name, columns, rows)


def _check_json_lines(path: Path, name: str) -> None:
    text, _ = read_text(str(path))
    keys: set[str] = set()
    rows = 0
    for line in text.splitlines():
        if not line.strip():
            continue
        rows += 1
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return  # the reader names the line
        if isinstance(record, dict):
            keys.update(record)
        if len(keys) > MOST_COLUMNS:
            break
    _refuse(name, len(keys), rows)


def _check_parquet(path: Path, name: str) -> None:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtraError(f"Reading the table {name}", package="pyarrow", extra="tables") from None
    try:
        with parquet.ParquetFile(path) as file:
            about, schema = file.metadata, file.schema_arrow
        _refuse(name, about.num_columns, about.num_rows)
        groups = [about.row_group(k) for k in range(about.num_row_groups)]
        if sum(group.total_byte_size for group in groups) > MOST_BYTES:
            raise StateError(f"{name} takes more than {MOST_BYTES // 2**20} MB of memory.", "table")
        values = sum(group.column(k).num_values for group in groups for k in range(group.num_columns))
        if values > MOST_CELLS:
            raise StateError(f"{name} holds {values:,} values; the page takes at most {MOST_CELLS:,}.", "table")
        texts = [field.name for field in schema if _is_text(pyarrow.types, field.type)]
        others = [
            field.name for field in schema if field.name not in texts and not _is_small(pyarrow.types, field.type)
        ]
        if others:
            raise StateError(f"{name}: the column {others[0]!r} holds neither numbers, dates nor text.", "table")
        if texts and _text_bytes(parquet, path, texts) > MOST_TEXT_BYTES:
            raise StateError(f"{name} holds more than {MOST_TEXT_BYTES // 2**20} MB of text.", "table")
    except pyarrow.ArrowException as error:
        raise StateError(f"{name} is not a Parquet file: {str(error)[:200].rstrip('.')}.", "table") from None
    except (OSError, ValueError) as error:
        if isinstance(error, StateError):
            raise
        raise StateError(f"{name} is not a Parquet file: {str(error)[:200].rstrip('.')}.", "table") from None


def _is_text(types: Any, kind: Any) -> bool:
    """Whether cells are texts, stored one by one or as a dictionary."""
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _is_small(types: Any, kind: Any) -> bool:
    """Whether cells are numbers, dates or nothing, which take a few bytes each."""
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_primitive(kind) or types.is_null(kind) or types.is_decimal(kind))


def _text_bytes(parquet: Any, path: Path, texts: list[str]) -> int:
    """Bytes of all texts, read as a dictionary and indices, which a repeated text does not expand."""
    total = 0
    table = parquet.read_table(path, columns=texts, read_dictionary=texts, memory_map=False)
    import pyarrow.compute as compute

    for column in table.columns:
        for chunk in column.chunks:
            lengths = compute.binary_length(chunk.dictionary)
            used = compute.sum(compute.take(lengths, chunk.indices)).as_py()
            total += used or 0
    return total
