"""Find the columns of a table on disk and fit their preprocessing, in one or two passes over its rows.

The result is that of `mercer fit` on the whole table. The notation of cells in columns of strings (kind, number format,
order of dates) is found from the first rows of up to `PLACES` row groups, `SAMPLE` rows in all. Every other cell is
read in this notation; a cell that does not fit raises an error that names it. Statistics are those of all rows (see
`running_statistics`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from mercer.exceptions import InvalidInputError
from mercer.io.blocks.arrow_table import ArrowTable
from mercer.io.blocks.running_statistics import NumberStatistics, WordStatistics
from mercer.io.tables.cells import Cells
from mercer.io.tables.columns import Column, FoundColumn, read_column
from mercer.io.tables.preprocessing import NUMERIC, PREPARE, READ, column_transformer, names_of, text_step
from mercer.io.tables.raw_tables import RawTable, pandas_for
from mercer.io.tables.samples import ReadingOptions, find_columns, read_target, target_name, target_values
from mercer.io.tables.table_reader import TableReader, frame_of
from mercer.kernels.features import Vector

# rows from which the notation of cells is found, and the number of places that they are taken from
SAMPLE, PLACES = 20_000, 20
# the first intervals of all medians together may take this share of the memory
MEDIAN_SHARE = 1 / 8

# called with the number of rows read, and to be read
OnRows = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class PreparedTable:
    """A table on disk with a description of its columns and their fitted preprocessing.

    Attributes
    ----------
    table : the table.
    columns : the description of each column, without the target and the weight.
    target_column : the description of the target; None if there is none.
    y : the targets of all rows: numbers, or strings; None if there is no target.
    labelled : a mask of the rows that have a target; None if all have one.
    preparation : the pipeline from a data frame to an array or a CSR matrix: `TableReader` and the preprocessing.
    """

    table: ArrowTable
    columns: tuple[Column, ...]
    target_column: Column | None
    y: Vector | None
    labelled: Vector | None
    preparation: Pipeline


def prepare_table(
    table: ArrowTable,
    target: str | None,
    leave_out: Sequence[str] = (),
    options: ReadingOptions | None = None,
    memory: int = 1 << 28,
    block_rows: int = 1 << 14,
    on_rows: OnRows = lambda done, total: None,
) -> PreparedTable:
    """Describe the columns of a table and fit their preprocessing. ``leave_out``: columns that are not features."""
    options = ReadingOptions() if options is None else options
    passes = _Passes(table, block_rows, on_rows)
    sample = _sample(table)
    found = None
    if target is not None:
        target = target_name(sample, target, None, True)
        found = read_target(sample, str(target), None, options)
    names = [name for name in table.names if name != target and name not in leave_out]
    if not names:
        raise InvalidInputError(f"{table.name} has no column besides the target and the weight: nothing to learn from.")
    first = find_columns(sample, names, options, keep_all=True)
    y, labelled = (None, None) if found is None else passes.targets(found, options)
    room = int(MEDIAN_SHARE * memory) // 8 // len(first)
    statistics = [_statistics(one, table.n, room) for one in first]
    passes.describe(first, statistics, labelled)
    columns = tuple(one.describe(part.column) for one, part in zip(statistics, first, strict=True))
    numeric = {c.name: s for c, s in zip(columns, statistics, strict=True) if isinstance(s, NumberStatistics)}
    passes.finish_medians([c for c in columns if c.kind in NUMERIC], numeric, labelled)
    used = tuple(column for column in columns if column.kind != "left out")
    transformer = column_transformer(columns)
    terms = {name: passes.terms(_named(used, name), labelled) for name in names_of(used, "text")}
    n = table.n if labelled is None else int(labelled.sum())
    _fit(transformer, used, numeric, terms, n)
    target_column = None if found is None else found.column
    preparation = Pipeline([(READ, TableReader(used, target_column)), (PREPARE, transformer)])
    return PreparedTable(table, columns, target_column, y, labelled, preparation)


def _named(columns: Sequence[Column], name: str) -> Column:
    return next(column for column in columns if column.name == name)


def _sample(table: ArrowTable) -> RawTable:
    """The first rows of some row groups."""
    pandas = pandas_for(table.name)
    if table.n <= SAMPLE:
        ranges = [(0, table.n)]
    else:
        places = {int(i) for i in np.linspace(0, len(table.pieces) - 1, PLACES)}
        rows = SAMPLE // len(places)
        ranges = [(table.pieces[i].start, table.pieces[i].start + min(rows, table.pieces[i].n)) for i in sorted(places)]
    frames = [table.read(start, stop, table.names).to_pandas(ignore_metadata=True) for start, stop in ranges]
    frame = frames[0] if len(frames) == 1 else pandas.concat(frames, ignore_index=True)
    lines = [i for start, stop in ranges for i in range(start, stop)]
    return _Sample(table.name, {name: frame[name] for name in table.names}, lines, "row", table=table)


class _Sample(RawTable):
    """A part of the rows of a table, whose ``lines`` are positions in the table."""

    def __init__(self, *args: Any, table: ArrowTable) -> None:
        super().__init__(*args)
        object.__setattr__(self, "_table", table)

    def place(self, i: int) -> str:
        return str(self._table.place(self.lines[i]))  # type: ignore[attr-defined]


def _statistics(found: FoundColumn, n: int, room: int) -> NumberStatistics | WordStatistics:
    if found.column.kind in NUMERIC:
        return NumberStatistics(found.values, room)
    return WordStatistics(n)


class _Passes:
    """Passes over the rows of a table."""

    def __init__(self, table: ArrowTable, block_rows: int, on_rows: OnRows) -> None:
        self.table, self.on_rows = table, on_rows
        self.ranges = table.cuts(block_rows)

    def _blocks(self, names: Sequence[str]) -> Any:
        for start, stop in self.ranges:
            yield start, stop, self.table.read(start, stop, names).to_pandas(ignore_metadata=True)
            self.on_rows(stop, self.table.n)

    def _place(self, start: int) -> Callable[[int], str]:
        return lambda i: self.table.place(start + i)

    def targets(self, found: FoundColumn, options: ReadingOptions) -> tuple[Vector, Vector | None]:
        """Read the targets of all rows; with ``na_target="drop"`` also a mask of those that have one."""
        column, parts = found.column, []
        for start, _, frame in self._blocks([column.name]):
            if column.kind in ("category", "text", "left out") and found.values.dtype == object:
                texts = np.empty(len(frame), dtype=object)
                texts[:] = Cells(frame[column.name]).texts()
                parts.append(texts)
            else:
                parts.append(read_column(Cells(frame[column.name]), column, self._place(start)))
        y = np.concatenate(parts)
        known = np.array([value is not None and value == value for value in y]) if y.dtype == object else ~np.isnan(y)
        if known.all():
            return target_values(FoundColumn(column, y)), None
        if not known.any():
            raise InvalidInputError(
                f"{self.table.name}: the target {column.name!r} is missing in all {len(y):,} rows. Choose "
                "another column."
            )
        if options.na_target != "drop":
            raise InvalidInputError(
                f"{self.table.place(int(np.argmin(known)))}, column {column.name!r}: the target is missing, as in "
                f"{np.sum(~known):,} of {len(y):,} rows. Leave such rows out (mercer fit: --na-target drop), or fill "
                "in the values."
            )
        y[~known] = y[np.argmax(known)]  # these rows get the weight 0
        return target_values(FoundColumn(column, y)), known

    def describe(self, first: Sequence[FoundColumn], statistics: Sequence[Any], labelled: Vector | None) -> None:
        """Read all columns once. Edits statistics."""
        for start, stop, frame in self._blocks([one.column.name for one in first]):
            if labelled is not None:
                frame = frame[labelled[start:stop]]
            for one, statistic in zip(first, statistics, strict=True):
                cells = Cells(frame[one.column.name])
                if isinstance(statistic, NumberStatistics):
                    statistic.update(read_column(cells, one.column, self._place(start)), cells)
                else:
                    kind = Column(one.column.name, "category")
                    statistic.update(read_column(cells, kind, self._place(start)))
        for statistic in statistics:
            if isinstance(statistic, NumberStatistics):
                statistic.search.end_pass()

    def finish_medians(
        self, columns: Sequence[Column], statistics: dict[str, NumberStatistics], labelled: Vector | None
    ) -> None:
        """Read columns again until all medians are known; most are known after the first pass. Edits statistics."""
        while open_ones := [c for c in columns if statistics[c.name].search.median is None]:
            for start, stop, frame in self._blocks([column.name for column in open_ones]):
                if labelled is not None:
                    frame = frame[labelled[start:stop]]
                for column in open_ones:
                    values = read_column(Cells(frame[column.name]), column, self._place(start))
                    statistics[column.name].search.update(values[~np.isnan(values)])
            for column in open_ones:
                statistics[column.name].search.end_pass()

    def terms(self, column: Column, labelled: Vector | None) -> tuple[Counter[str], int]:
        """Return the number of rows that contain each word of a column of free text, and the sum of these numbers."""
        analyse = column_transformer([column]).transformers[0][1].build_analyzer()
        rows: Counter[str] = Counter()
        for start, stop, frame in self._blocks([column.name]):
            if labelled is not None:
                frame = frame[labelled[start:stop]]
            for text in read_column(Cells(frame[column.name]), column, self._place(start)):
                rows.update(set(analyse(text)))
        if not rows:
            raise InvalidInputError(f"The column {column.name!r} of free text has no words. Leave it out.")
        return rows, rows.total()


def _fit(
    transformer: Any,
    used: Sequence[Column],
    numeric: dict[str, NumberStatistics],
    terms: dict[str, tuple[Counter[str], int]],
    n: int,
) -> None:
    """Fit the preprocessing to statistics. It is fitted to a small table with every category and every word, and its
    numbers are then replaced by those of all rows. Edits transformer.
    """
    numbers, categories = names_of(used, *NUMERIC), names_of(used, "category")
    words = {
        name: [*_named(used, name).categories, *([None] if _named(used, name).missing else [])] for name in categories
    }
    size = max([2, *(len(one) for one in words.values())])
    values: list[Any] = []
    for column in used:
        part = np.arange(size, dtype=np.float64)
        if column.kind == "category":
            part = np.empty(size, dtype=object)
            part[:] = [words[column.name][i % len(words[column.name])] for i in range(size)]
        elif column.kind == "text":
            part = np.empty(size, dtype=object)
            part[:] = [" ".join(terms[column.name][0])] * size
        values.append(part)
    transformer.fit(frame_of([column.name for column in used], values))
    if numbers:
        fitted = transformer.named_transformers_["number"]
        medians, means, variances = (
            np.array(one) for one in zip(*(numeric[name].moments() for name in numbers), strict=True)
        )
        impute, scale = fitted.named_steps["impute"], fitted.named_steps["scale"]
        impute.statistics_ = medians
        scale.mean_, scale.var_, scale.n_samples_seen_ = means, variances, np.int64(n)
        scale.scale_ = np.where(variances > 0, np.sqrt(variances), 1.0)
    stored = len(numbers) + len(categories) + sum(total for _, total in terms.values()) / max(1, n)
    width = len(numbers) + sum(map(len, words.values()))
    for name, (rows, _) in terms.items():
        vectorizer = transformer.named_transformers_[text_step(name)]
        order = sorted(vectorizer.vocabulary_, key=vectorizer.vocabulary_.get)
        vectorizer.idf_ = np.log((1.0 + n) / (1.0 + np.array([rows[term] for term in order], dtype=np.float64))) + 1.0
        width += len(order)
    transformer.sparse_output_ = bool(categories or terms) and stored / width < transformer.sparse_threshold
