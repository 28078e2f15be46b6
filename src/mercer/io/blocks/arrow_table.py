"""A Parquet file, a folder of Parquet files or an Arrow dataset as one table that is read by ranges of rows.

A piece is a row group of a Parquet file, or a whole file of another format. A range of rows is read from the pieces
that it overlaps. A row group is stored column by column: decoding a few of its rows takes a page of each column, a
megabyte of numbers, and twice as much for buffers. A row group of up to two megabytes per column is therefore decoded
at once, some columns at a time, and serves all its rows; a larger one is decoded in small batches.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError, MissingExtraError

# bytes that pyarrow decodes at a time, and the fewest and most rows
BATCH, FEWEST, MOST = 1 << 22, 256, 1 << 14
# bytes of a column of a row group that are read at a time
BUFFER = 1 << 16
# a row group of at most this many bytes per column is decoded at once, this many columns at a time
DECODED, TOGETHER = 1 << 21, 16
# a message shows at most this many names
SHOWN = 20
SUFFIXES = (".parquet", ".pq")


@dataclass(frozen=True, eq=False)
class Piece:
    """Consecutive rows that can be read by themselves.

    Attributes
    ----------
    fragment : pyarrow's description of the rows.
    path : the file.
    start : the position of its first row in the table.
    n : the number of its rows.
    before : the number of rows of the same file before it.
    """

    fragment: Any
    path: str
    start: int
    n: int
    before: int


class ArrowTable:
    """The rows of a Parquet file, of a folder of them, or of a pyarrow dataset.

    Attributes
    ----------
    name : its name in messages.
    names : the names of the columns.
    n : the number of rows.
    pieces : the row groups or files, in order.
    """

    def __init__(self, given: Any) -> None:
        self._given = given
        dataset = _dataset(given)
        self._schema = dataset.schema
        self.name = str(given) if isinstance(given, str | Path) else "the Arrow dataset"
        # pandas stores its index as a column, but does not read it as one; names may have spaces around them
        index = [
            name for name in (self._schema.pandas_metadata or {}).get("index_columns", ()) if isinstance(name, str)
        ]
        own = [name for name in self._schema.names if name not in index]
        self.names = [str(name).strip() for name in own]
        self._own = dict(zip(self.names, own, strict=True))
        twice = [name for name in self.names if self.names.count(name) > 1]
        if twice:
            raise InvalidInputError(f"{self.name} has several columns {twice[0]!r}. Rename all but one of them.")
        self.pieces = _pieces(dataset, self.name)
        self.n = sum(piece.n for piece in self.pieces)
        if self.n == 0:
            raise InvalidInputError(f"{self.name} has no rows: there is nothing to learn or to predict.")
        self._starts = np.array([piece.start for piece in self.pieces])
        self._stream: _Stream | None = None
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        return ArrowTable, (self._given,)

    @property
    def files(self) -> list[str]:
        """The files that can be found by their path."""
        return [path for path in dict.fromkeys(piece.path for piece in self.pieces) if Path(path).exists()]

    def type_of(self, name: str) -> Any:
        """The Arrow type of a column."""
        return self._schema.field(self._own[name]).type

    def bytes_per_row(self, names: Sequence[str]) -> int:
        """The memory of the cells of these columns; an estimate for strings."""
        return sum(_width(self.type_of(name)) for name in names)

    def place(self, i: int) -> str:
        """Return the file and the number of row i in it, from 1 on, for messages."""
        piece = self.pieces[int(np.searchsorted(self._starts, i, side="right")) - 1]
        return f"{piece.path or self.name}, row {piece.before + i - piece.start + 1}"

    def check_names(self, names: Sequence[str], what: str) -> None:
        """Raise if the table lacks one of these columns."""
        for name in names:
            if name not in self.names:
                more = f", and {len(self.names) - SHOWN:,} more" if len(self.names) > SHOWN else ""
                raise InvalidInputError(
                    f"{what} names the column {name!r}, which {self.name} does not have. Its columns: "
                    f"{', '.join(self.names[:SHOWN])}{more}."
                )

    def cuts(self, rows: int) -> list[tuple[int, int]]:
        """Divide the rows into ranges of at most ``rows`` rows: whole pieces, or equal parts of a larger piece."""
        found: list[tuple[int, int]] = []
        for piece in self.pieces:
            if found and found[-1][1] + piece.n - found[-1][0] <= rows:
                found[-1] = (found[-1][0], piece.start + piece.n)
                continue
            parts = -(-piece.n // max(1, rows))
            edges = np.linspace(piece.start, piece.start + piece.n, parts + 1).astype(np.int64).tolist()
            found.extend(pairwise(edges))
        return found

    def read(self, start: int, stop: int, names: Sequence[str]) -> Any:
        """Read some columns of rows ``start`` to before ``stop`` as a pyarrow table.

        Ranges that follow each other are decoded once: the stream of batches goes on where the last range ended.
        """
        import pyarrow

        with self._lock:
            stream, self._stream = self._stream, None
            if stream is None or (stream.position, stream.names) != (start, list(names)):
                stream = _Stream(self, start, list(names))
            batches = stream.take(stop)
            self._stream = stream if stop < self.n else None
        own = [self._own[name] for name in names]
        schema = pyarrow.schema([self._schema.field(name) for name in own])
        table = pyarrow.Table.from_batches([batch.select(own) for batch in batches], schema=schema)
        if table.num_rows != stop - start:
            raise InvalidInputError(
                f"{self.name} has changed since it was opened: rows {start} to {stop} are {table.num_rows:,} rows. "
                "Open it again when nothing writes to it any more."
            )
        return table.rename_columns(list(names))

    def batches(self, start: int, names: Sequence[str]) -> Iterator[Any]:
        """Read all rows from ``start`` on in batches."""
        first = max(0, int(np.searchsorted(self._starts, start, side="right")) - 1)
        for piece in self.pieces[first:]:
            skipped = max(0, start - piece.start)
            for batch in self._of_piece(piece, names):
                rows = batch.num_rows
                if skipped < rows:
                    yield batch.slice(skipped)
                skipped = max(0, skipped - rows)
                del batch  # else it keeps all rows of its piece in memory while the next piece is decoded

    def _of_piece(self, piece: Piece, names: Sequence[str]) -> Iterator[Any]:
        """Read a piece in batches; a large row group is decoded batch by batch."""
        own = [self._own[name] for name in names]
        rows = max(FEWEST, min(MOST, BATCH // max(1, self.bytes_per_row(names))))
        try:
            if _is_plain(piece.fragment, self._schema, own):
                import pyarrow.parquet

                # a dataset decodes whole row groups, a file decodes batches
                with piece.fragment.open() as opened:
                    # the description of all row groups is parsed once, when the table is opened
                    known = piece.fragment.metadata
                    file = pyarrow.parquet.ParquetFile(opened, metadata=known, pre_buffer=False, buffer_size=BUFFER)
                    groups = [group.id for group in piece.fragment.row_groups]
                    if len(own) > TOGETHER and piece.n * self.bytes_per_row(names) <= DECODED * len(own):
                        yield from _by_columns(file, groups, own).to_batches(rows)
                    else:
                        yield from file.iter_batches(rows, row_groups=groups, columns=own, use_threads=False)
                # return freed memory to the system, not to a pool
                pyarrow.default_memory_pool().release_unused()
                return
            yield from piece.fragment.to_batches(
                schema=self._schema, columns=own, batch_size=rows, batch_readahead=0, fragment_readahead=0,
                use_threads=False,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            raise InvalidInputError(
                f"{piece.path or self.name} cannot be read: {str(error).rstrip('.')}. The file is damaged, or has "
                "changed since it was opened."
            ) from None


class _Stream:
    """Batches of some columns from a row on; ``position`` is the next row."""

    def __init__(self, table: ArrowTable, start: int, names: list[str]) -> None:
        self.position, self.names = start, names
        self._batches = table.batches(start, names)
        self._rest: Any = None

    def take(self, stop: int) -> list[Any]:
        """Return the rows up to before ``stop``, fewer if there are no more."""
        found: list[Any] = []
        while self.position < stop:
            batch = next(self._batches, None) if self._rest is None else self._rest
            self._rest = None
            if batch is None:
                break
            here = min(batch.num_rows, stop - self.position)
            found.append(batch.slice(0, here))
            if here < batch.num_rows:
                self._rest = batch.slice(here)
            self.position += here
        return found


def is_arrow(given: Any) -> bool:
    """Whether this is a Parquet file, a folder, or a dataset of pyarrow."""
    if isinstance(given, str | Path):
        return Path(given).suffix.lower() in SUFFIXES or Path(given).is_dir()
    return type(given).__module__.startswith("pyarrow.")


def _dataset(given: Any) -> Any:
    """The pyarrow dataset of a path or a dataset."""
    try:
        import pyarrow.dataset
    except ImportError:
        raise MissingExtraError(f"Reading the table {given}", package="pyarrow", extra="tables") from None
    if isinstance(given, pyarrow.dataset.Dataset):
        # a filter of a dataset is applied by its scanner, not by its fragments
        if getattr(given, "_scan_options", None):
            raise InvalidInputError(
                "The Arrow dataset has a filter, so its rows cannot be counted without reading them. Write the "
                "filtered rows to Parquet files with pyarrow.dataset.write_dataset, and open these."
            )
        return given
    if isinstance(given, pyarrow.Table | pyarrow.RecordBatch):
        return pyarrow.dataset.dataset(given)
    if not isinstance(given, str | Path):
        raise InvalidInputError(
            f"{type(given).__module__}.{type(given).__name__} cannot be read as a table: give a "
            "pyarrow.dataset.Dataset, or the path of a Parquet file or folder."
        )
    path = Path(given)
    if not path.exists():
        raise InvalidInputError(f"{path} does not exist: give the path of a Parquet file or of a folder of them.")
    if path.is_dir() and not any(one.suffix.lower() in SUFFIXES for one in path.rglob("*")):
        raise InvalidInputError(f"The folder {path} has no Parquet files (with the suffix .parquet or .pq).")
    try:
        if path.is_dir():  # a folder may have other files, such as logs
            files = sorted(str(one) for one in path.rglob("*") if one.suffix.lower() in SUFFIXES)
            return pyarrow.dataset.dataset(files, format="parquet", partitioning="hive", partition_base_dir=str(path))
        return pyarrow.dataset.dataset(str(path), format="parquet")
    except (OSError, ValueError, TypeError) as error:
        raise InvalidInputError(f"{path} cannot be read as Parquet: {str(error).rstrip('.')}.") from None


def _pieces(dataset: Any, name: str) -> list[Piece]:
    """The row groups of Parquet files, and the files of other formats, with their positions."""
    found: list[Piece] = []
    start = 0
    try:
        for fragment in dataset.get_fragments():
            path, before = str(getattr(fragment, "path", "") or ""), 0
            groups = fragment.split_by_row_group() if hasattr(fragment, "split_by_row_group") else None
            for part in [fragment] if groups is None else groups:
                n = part.count_rows() if groups is None else sum(group.num_rows for group in part.row_groups)
                if n:
                    found.append(Piece(part, path, start, n, before))
                start, before = start + n, before + n
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{name} cannot be read as Parquet: {str(error).rstrip('.')}.") from None
    return found


def _by_columns(file: Any, groups: list[int], names: Sequence[str]) -> Any:
    """Decode row groups, some columns at a time."""
    import pyarrow

    parts = [
        file.read_row_groups(groups, columns=list(names[first : first + TOGETHER]), use_threads=False)
        for first in range(0, len(names), TOGETHER)
    ]
    columns = [column for part in parts for column in part.columns]
    return pyarrow.Table.from_arrays(columns, [name for part in parts for name in part.column_names])


def _is_plain(fragment: Any, schema: Any, names: Sequence[str]) -> bool:
    """Whether a fragment is rows of a Parquet file that has these columns with the types of the table."""
    import pyarrow.dataset

    if not isinstance(fragment, pyarrow.dataset.ParquetFileFragment):
        return False
    own = fragment.physical_schema
    return all(own.get_field_index(name) >= 0 and own.field(name).type == schema.field(name).type for name in names)


def _width(kind: Any) -> int:
    """The bytes of a cell when it has become an array of numbers or Python objects."""
    import pyarrow

    types = pyarrow.types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_temporal(kind):
        return 8
    return 64
