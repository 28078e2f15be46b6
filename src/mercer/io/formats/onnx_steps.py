"""Write the preprocessing steps of a pipeline into an ONNX graph: columns, missing values, scaling, categories.

Each type of step has one function. It takes a table (columns of numbers or strings) and returns the matrix into which
the step transforms it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder, RobustScaler, StandardScaler

from mercer.exceptions import InvalidInputError
from mercer.io.formats.onnx_graph import ML, Graph
from mercer.io.tables.columns import Column
from mercer.io.tables.table_reader import TableReader
from mercer.kernels.features import Vector

OUTPUTS = ("label", "probabilities", "scores", "variable")
KNOWN = (
    "ColumnTransformer, SimpleImputer, OneHotEncoder, StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler and "
    "pipelines of these"
)


class Table:
    """The samples between two steps: one matrix, or the columns of a data frame, each of them an input of the graph."""

    def __init__(
        self,
        graph: Graph,
        n_columns: int,
        names: Sequence[str] | None = None,
        matrix: str = "",
        used: dict[str, tuple[bool, str]] | None = None,
        about: dict[str, str] | None = None,
    ) -> None:
        self.about = about or {}
        self.graph, self.n_columns, self.names, self._matrix = graph, n_columns, names, matrix
        # inputs so far, by column: (whether it holds strings, name in the graph)
        self.used = {} if used is None else used

    def column(self, j: int, text: bool = False) -> str:
        """Return one column, of shape (n, 1)."""
        if self.names is None:
            if text:
                raise InvalidInputError(
                    "A pipeline on an array with strings cannot be exported to ONNX, whose arrays hold only numbers or "
                    "only strings: fit it to a data frame, whose columns become separate inputs."
                )
            return self.graph.op("Gather", self._matrix, np.array([j], np.int64), axis=1)
        return self._input(self.names[j], text)

    def matrix(self) -> str:
        """Return all columns as one numeric matrix."""
        if self.names is None:
            return self._matrix
        names = [self.column(j) for j in range(self.n_columns)]
        return self.graph.op("Concat", *names, axis=1) if len(names) > 1 else names[0]

    def take(self, places: Sequence[int]) -> Table:
        """Return a table of some columns."""
        if self.names is not None:
            return Table(self.graph, len(places), [self.names[j] for j in places], used=self.used, about=self.about)
        if list(places) == list(range(self.n_columns)):
            return self
        chosen = self.graph.op("Gather", self._matrix, np.array(places, np.int64), axis=1)
        return Table(self.graph, len(places), matrix=chosen)

    def _input(self, name: str, text: bool) -> str:
        if name in self.used:
            was_text, found = self.used[name]
            if was_text != text:
                raise InvalidInputError(
                    f"The pipeline uses the column {name!r} both as numbers and as strings, but an ONNX input has one "
                    "type: leave it out of one of the steps."
                )
            return found
        # avoid the names of outputs and of generated nodes
        safe = f"{name}_" if name in OUTPUTS or name.startswith("_") else name
        if text:
            self.graph.inputs.append(self.graph.describe(safe, self.graph.onnx.TensorProto.STRING, ["n", 1]))
        self.used[name] = (text, safe if text else self.graph.take(safe, ["n", 1]))
        self.graph.inputs[-1].doc_string = self.about.get(name, "")
        return self.used[name][1]


def write_steps(graph: Graph, model: Any, steps: Sequence[tuple[str, Any]], n_features: int) -> str:
    """Write the inputs and all steps before the machine; return the name of the machine's input matrix."""
    first = next((step for _, step in steps if not _passes(step)), None)
    if isinstance(first, ColumnTransformer) and hasattr(first, "feature_names_in_"):
        names = [str(name) for name in first.feature_names_in_]
        reader = next((step for _, step in steps if isinstance(step, TableReader)), TableReader())
        table = Table(graph, len(names), names, about={c.name: _about(c) for c in reader.columns})
    else:
        d = int(model.n_features_in_) if steps else n_features
        table = Table(graph, d, matrix=graph.take("X", ["n", d]))
    for _, step in steps:
        table = _after(step, table)
    return table.matrix()


def _passes(step: Any) -> bool:
    """Whether a step needs no node, such as TableReader: the inputs of a graph already have the types it produces."""
    return step is None or isinstance(step, TableReader) or (isinstance(step, str) and step == "passthrough")


def _about(column: Column) -> str:
    """Describe the input of a column whose cells are not plain numbers or strings."""
    if column.kind == "date":
        return "a date as the number of days since 1970-01-01 (UTC)"
    if column.kind == "boolean":
        return "1 for true or yes, 0 for false or no"
    return f"a number, {column.note}" if column.kind == "number" and column.note else ""


def _after(step: Any, table: Table) -> Table:
    if _passes(step):
        return table
    matrix, width = _write(step, table)
    return Table(table.graph, width, matrix=matrix)


@singledispatch
def _write(step: Any, table: Table) -> tuple[str, int]:
    """Write a fitted step; return its output matrix and the number of its columns."""
    columns = f" (of {', '.join(repr(n) for n in table.names[:3])})" if table.names is not None else ""
    raise InvalidInputError(
        f"{type(step).__name__}{columns} cannot be exported to ONNX. Steps that can: {KNOWN}. Leave such columns out, "
        "export the last step alone, model[-1], and transform samples yourself, or use mercer.save."
    )


@_write.register
def _(step: Pipeline, table: Table) -> tuple[str, int]:
    for _, one in step.steps:
        table = _after(one, table)
    return table.matrix(), table.n_columns


@_write.register
def _(step: ColumnTransformer, table: Table) -> tuple[str, int]:
    parts, width = [], 0
    for name, one, _ in step.transformers_:
        places = list(step._transformer_to_input_indices[name])
        if (isinstance(one, str) and one == "drop") or not places:
            continue
        part = _after(one, table.take(places))
        if part.n_columns:
            parts.append(part.matrix())
            width += part.n_columns
    if not parts:
        raise InvalidInputError("The ColumnTransformer has no output columns: there is nothing to export.")
    return (table.graph.op("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]), width


@_write.register
def _(step: SimpleImputer, table: Table) -> tuple[str, int]:
    values = np.asarray(step.statistics_)
    missing = step.missing_values
    is_nan = isinstance(missing, float) and np.isnan(missing)
    if step.add_indicator or values.dtype.kind not in "fiu" or not (is_nan or isinstance(missing, int | float)):
        raise InvalidInputError(
            "A SimpleImputer can be exported to ONNX only for numbers and without add_indicator. For strings, use a "
            "OneHotEncoder alone: it has a category for missing values."
        )
    values = values.astype(np.float64)
    kept = [j for j in range(len(values)) if not np.isnan(values[j])]  # columns without any value are dropped
    if not kept:
        raise InvalidInputError("All columns of a SimpleImputer are empty: there is nothing to export.")
    x, graph = table.take(kept).matrix(), table.graph
    gone = graph.op("IsNaN", x) if is_nan else graph.op("Equal", x, np.array([[float(missing)]]))
    return graph.op("Where", gone, values[kept][None, :], x), len(kept)


def _scaled(table: Table, centre: Any, factor: Any, move: Any = None) -> tuple[str, int]:
    """(x − centre) · factor + move. The centre is subtracted first, because one large shift would lose digits."""
    x, graph = table.matrix(), table.graph
    for kind, value, nothing in (("Sub", centre, 0.0), ("Mul", factor, 1.0), ("Add", move, 0.0)):
        if value is not None and np.any(np.asarray(value) != nothing):
            x = graph.op(kind, x, np.asarray(value, dtype=np.float64)[None, :])
    return x, table.n_columns


@_write.register
def _(step: StandardScaler, table: Table) -> tuple[str, int]:
    return _scaled(table, step.mean_ if step.with_mean else None, None if step.scale_ is None else 1.0 / step.scale_)


@_write.register
def _(step: RobustScaler, table: Table) -> tuple[str, int]:
    return _scaled(table, step.center_, None if step.scale_ is None else 1.0 / step.scale_)


@_write.register
def _(step: MinMaxScaler, table: Table) -> tuple[str, int]:
    x, width = _scaled(table, step.data_min_, step.scale_, step.min_ + step.data_min_ * step.scale_)
    return (_clipped(table.graph, x, *step.feature_range) if step.clip else x), width


@_write.register
def _(step: MaxAbsScaler, table: Table) -> tuple[str, int]:
    x, width = _scaled(table, None, 1.0 / step.scale_)
    return (_clipped(table.graph, x, -1.0, 1.0) if getattr(step, "clip", False) else x), width


def _clipped(graph: Graph, x: str, low: float, high: float) -> str:
    return graph.op("Min", graph.op("Max", x, np.array(float(low))), np.array(float(high)))


@_write.register
def _(step: OneHotEncoder, table: Table) -> tuple[str, int]:
    rare = getattr(step, "_infrequent_enabled", False) and any(i is not None for i in step.infrequent_categories_)
    if rare:
        raise InvalidInputError(
            "A OneHotEncoder that merges infrequent categories cannot be exported to ONNX: leave out min_frequency and "
            "max_categories."
        )
    parts, width = [], 0
    dropped = [None] * table.n_columns if step.drop_idx_ is None else step.drop_idx_
    for j, (categories, drop) in enumerate(zip(step.categories_, dropped, strict=True)):
        kept = [i for i in range(len(categories)) if i != drop]
        if kept:
            parts.append(_one_hot(table, j, categories, kept))
            width += len(kept)
    if not parts:
        raise InvalidInputError("The OneHotEncoder has no output columns: there is nothing to export.")
    return (table.graph.op("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]), width


def _one_hot(table: Table, j: int, categories: Vector, kept: list[int]) -> str:
    """Write a 1 in the column of the category and 0 elsewhere; an unknown category gives only zeros."""
    graph = table.graph
    if categories.dtype.kind in "fiub":
        x, numbers = table.column(j), categories.astype(np.float64)
        found = graph.op("Equal", x, numbers[None, kept])
        if np.isnan(numbers[kept]).any():
            found = graph.op("Or", found, graph.op("And", graph.op("IsNaN", x), np.isnan(numbers[kept])[None, :]))
        return graph.op("Cast", found, to=graph.element)
    missing = [c is None or (isinstance(c, float) and np.isnan(c)) for c in categories]
    texts = ["" if gone else c for c, gone in zip(categories.tolist(), missing, strict=True)]
    if not all(isinstance(text, str) for text in texts) or len(set(texts)) < len(texts):
        raise InvalidInputError(
            f"The categories {categories.tolist()!r:.80} cannot be exported to ONNX: they must be all numbers or all "
            "strings, where the empty string means missing."
        )
    column = graph.op("Squeeze", table.column(j, text=True), np.array([1], np.int64))
    encoded = graph.op("OneHotEncoder", column, domain=ML, cats_strings=[texts[i] for i in kept], zeros=1)
    return encoded if graph.dtype == np.float32 else graph.op("Cast", encoded, to=graph.element)
