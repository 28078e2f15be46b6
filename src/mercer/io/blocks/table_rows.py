"""Rows of a Parquet table: numbers as they are, or columns prepared as `mercer fit` prepares them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from mercer.exceptions import InvalidInputError
from mercer.io.blocks.arrow_table import ArrowTable
from mercer.io.blocks.table_preparation import OnRows, PreparedTable, prepare_table
from mercer.io.tables.cells import Cells
from mercer.io.tables.columns import Column, FoundColumn, Place, read_column
from mercer.io.tables.preprocessing import NUMERIC, PREPARE, READ
from mercer.io.tables.samples import ReadingOptions, target_values
from mercer.io.tables.table_reader import check_columns
from mercer.kernels.features import Vector
from mercer.sources.array_rows import weights_of
from mercer.sources.row_source import RowBlock, RowSource, memory_bytes


class TableRows(RowSource):
    """The numeric columns of a table on disk; see `mercer.open_rows`."""

    def __init__(
        self,
        given: Any,
        target: str | None = None,
        weight: str | None = None,
        columns: Sequence[str] | None = None,
        memory: float | str = "auto",
    ) -> None:
        self._table = table = ArrowTable(given)
        self.name, self.n = table.name, table.n
        self._target, self._weight = target, weight
        for what, name in (("target", target), ("weight", weight)):
            if name is not None:
                table.check_names([name], f"{what}={name!r}")
        if columns is not None:
            columns = list(columns)
            table.check_names(columns, "columns")
            if not columns or len(set(columns)) < len(columns) or {target, weight} & set(columns):
                raise InvalidInputError(
                    f"columns={columns!r}: name at least one column, each once, and neither the target nor the weight."
                )
        self._features = [name for name in table.names if name not in (target, weight)] if columns is None else columns
        if not self._features:
            raise InvalidInputError(
                f"{self.name} has no column besides the target and the weight: add a column to learn from, or name "
                "another target."
            )
        self.has_target, self.has_weight = target is not None, weight is not None
        self.memory = memory_bytes(memory)
        self._remember_files()
        self._choose_columns()

    def _choose_columns(self) -> None:
        """Set the features. Raise if one is not numeric."""
        for name in self._features:
            if not _is_numeric(self._table.type_of(name)):
                raise InvalidInputError(
                    f"{self.name}, column {name!r}: the type is {self._table.type_of(name)}, which is not a number. "
                    "Leave the column out with columns=..., or use prepare=True, which turns categories, dates and "
                    "text into numbers."
                )
        self.columns, self.n_columns = tuple(self._features), len(self._features)
        self._all_floats = all(str(self._table.type_of(name)) in ("float", "double") for name in self._features)
        narrow = all(str(self._table.type_of(name)) in ("float", "halffloat") for name in self._features)
        self._dtype = np.dtype(np.float32 if narrow else np.float64)

    def _files(self) -> Sequence[str]:
        return self._table.files

    def place(self, i: int) -> str:
        """The file and the number of row i in it, from 1 on."""
        return self._table.place(i)

    @property
    def bytes_per_row(self) -> int:
        """The memory of a row: the cells as pyarrow reads them, and the numbers that they become."""
        return 8 * self.n_columns + self._table.bytes_per_row(self._features)

    def cuts(self, rows: int) -> list[tuple[int, int]]:
        """Whole row groups, or parts of large ones."""
        return self._table.cuts(rows)

    def _advice_on_missing(self) -> str:
        return "Write a finite number, leave out the row, or use prepare=True, which fills in medians."

    def _read(self, start: int, stop: int) -> RowBlock:
        beside = [name for name in dict.fromkeys((self._target, self._weight)) if name is not None]
        part = self._table.read(start, stop, [*self._features, *beside])
        y, weight = self._beside(part, start)
        return RowBlock(start, stop, self._numbers(part, start), y, weight)

    def _numbers(self, part: Any, start: int) -> Any:
        X = np.empty((part.num_rows, self.n_columns), dtype=self._dtype)
        if self._all_floats:  # copied by one compiled loop
            row = 0
            for batch in part.select(self._features).to_batches():
                X[row : row + batch.num_rows] = batch.to_tensor(null_to_nan=True).to_numpy()
                row += batch.num_rows
            return X
        for j, name in enumerate(self._features):
            X[:, j] = _floats(part.column(name))
        return X

    def _read_targets(self, start: int, stop: int) -> tuple[Vector | None, Vector | None]:
        beside = [name for name in dict.fromkeys((self._target, self._weight)) if name is not None]
        return self._beside(self._table.read(start, stop, beside), start) if beside else (None, None)

    def _beside(self, part: Any, start: int) -> tuple[Vector | None, Vector | None]:
        """The targets and the weights of some rows."""
        y = weight = None
        if self._target is not None:
            y = self._labels(part.column(self._target), start)
        if self._weight is not None:
            kind = self._table.type_of(self._weight)
            if not _is_numeric(kind):
                raise InvalidInputError(f"{self.name}, column {self._weight!r}: a weight must be a number, not {kind}.")
            weight = weights_of(
                _floats(part.column(self._weight)), lambda i: f"{self.place(start + i)}, {self._weight!r}"
            )
        return y, weight

    def _labels(self, column: Any, start: int) -> Vector:
        import pyarrow

        if column.null_count:
            i = int(np.argmax(column.is_null().to_numpy()))
            raise InvalidInputError(
                f"{self.place(start + i)}, column {self._target!r}: the target is missing. Fill it in, or leave out "
                "the row."
            )
        if pyarrow.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if _is_numeric(column.type) and not pyarrow.types.is_decimal(column.type):
            return np.asarray(column.to_numpy())
        if pyarrow.types.is_decimal(column.type):
            return _floats(column)
        return np.array(column.to_pylist(), dtype=str)


class PreparedRows(TableRows):
    """The columns of a table on disk, prepared as `mercer fit` prepares them; see `mercer.open_rows`.

    Attributes
    ----------
    preparation : the fitted pipeline from a data frame to the rows. A pipeline of its steps and of a model fitted to
    these rows predicts from data frames and can be saved.
    table_columns : how each column was understood.
    target_column : how the target was understood.
    y : the targets of all rows, one number or string each; None if there is no target.
    """

    # the preparation makes arrays without names
    are_inputs = False

    def __init__(
        self,
        given: Any,
        target: str | None = None,
        weight: str | None = None,
        columns: Sequence[str] | None = None,
        memory: float | str = "auto",
        options: ReadingOptions | None = None,
        on_rows: OnRows = lambda done, total: None,
        preparation: Pipeline | None = None,
    ) -> None:
        self._options, self._on_rows, self._given = options, on_rows, preparation
        super().__init__(given, target, weight, columns, memory)
        del self._on_rows, self._given

    def _choose_columns(self) -> None:
        if self._given is not None:
            self._take_preparation(self._given)
            return
        others = [name for name in self._table.names if name not in self._features]
        rows = max(256, self.memory // 16 // self._table.bytes_per_row(self._features))
        found: PreparedTable = prepare_table(
            self._table, self._target, [name for name in others if name != self._target], self._options, self.memory,
            rows, self._on_rows,
        )  # fmt: skip
        self.table_columns, self.target_column = found.columns, found.target_column
        self.preparation, self.y, self._labelled = found.preparation, found.y, found.labelled
        self._features = [column.name for column in found.columns if column.kind != "left out"]
        self._name_features()
        self.has_weight = self.has_weight or self._labelled is not None

    def _take_preparation(self, preparation: Pipeline) -> None:
        """Use the preparation of another table."""
        reader = preparation.named_steps[READ]
        check_columns(self.name, reader.names, self._table.names)
        self.preparation, self.table_columns, self.target_column = preparation, tuple(reader.columns), reader.target
        self._features, self._labelled, self.y = list(reader.names), None, None
        self._name_features()
        if self._target is not None:
            known = reader.target is not None and reader.target.name == self._target
            parts = []
            for start, stop in self._table.cuts(self.block_rows):
                cells = self._table.read(start, stop, [self._target])
                parts.append(
                    read_targets(cells.to_pandas(ignore_metadata=True)[self._target], reader.target, self.place, start)
                    if known
                    else self._labels(cells.column(self._target), start)
                )
            self.y = np.concatenate(parts)

    def _name_features(self) -> None:
        self.columns = tuple(str(name) for name in self._transformer.get_feature_names_out())
        self.n_columns = len(self.columns)

    @property
    def _transformer(self) -> Any:
        return self.preparation.named_steps[PREPARE]

    @property
    def bytes_per_row(self) -> int:
        """The memory of a row; for sparse rows an estimate from the number of columns of the table."""
        cells = self._table.bytes_per_row(self._features)
        return cells + (12 * 4 * len(self._features) if self._transformer.sparse_output_ else 8 * self.n_columns)

    def _numbers(self, part: Any, start: int) -> Any:
        frame = part.to_pandas(ignore_metadata=True)
        read = self.preparation.named_steps[READ].read(frame, lambda i: self.place(start + i))
        X = self._transformer.transform(read)
        return X.tocsr() if hasattr(X, "tocsr") else np.ascontiguousarray(X, dtype=np.float64)

    def _beside(self, part: Any, start: int) -> tuple[Vector | None, Vector | None]:
        stop = start + part.num_rows
        y = None if self.y is None else self.y[start:stop]
        weight = None
        if self._weight is not None:
            names = f"{self._weight!r}"
            weight = weights_of(_floats(part.column(self._weight)), lambda i: f"{self.place(start + i)}, {names}")
        if self._labelled is not None:
            weight = self._labelled[start:stop] * (1.0 if weight is None else weight)
        return y, weight

    def _read_targets(self, start: int, stop: int) -> tuple[Vector | None, Vector | None]:
        if self._weight is not None:
            return self._beside(self._table.read(start, stop, [self._weight]), start)
        weight = None if self._labelled is None else self._labelled[start:stop].astype(np.float64)
        return None if self.y is None else self.y[start:stop], weight


def check_preparation(given: Any) -> Pipeline:
    """Return a fitted preparation of a table. Raise if it is something else."""
    steps = getattr(given, "named_steps", {})
    if isinstance(given, Pipeline) and READ in steps and PREPARE in steps:
        return Pipeline([(name, steps[name]) for name in (READ, PREPARE)])
    raise InvalidInputError(
        f"prepare is of type {type(given).__name__}: give True, False, the preparation of rows that were opened with "
        "prepare=True, or a model of mercer fit."
    )


def read_targets(values: Any, column: Column, place: Place, start: int) -> Vector:
    """Read targets as the column of a fitted model was read."""
    cells = Cells(values)
    if column.kind in NUMERIC:
        return target_values(FoundColumn(column, read_column(cells, column, lambda i: place(start + i))))
    return np.array(cells.texts(), dtype=str)


def _is_numeric(kind: Any) -> bool:
    import pyarrow

    types = pyarrow.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def _floats(column: Any) -> Vector:
    """A numeric column as floats, NaN where a cell is null."""
    import pyarrow

    kind = column.type if pyarrow.types.is_floating(column.type) else pyarrow.float64()
    return np.asarray(column.cast(kind, safe=False).to_numpy())
