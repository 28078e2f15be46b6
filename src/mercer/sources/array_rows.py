"""Rows of an array that need not be in memory: `np.memmap`, `.npy` files, and anything with a shape that can be sliced.

h5py.Dataset and zarr.Array are read by slices along their rows, in multiples of their chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Vector
from mercer.sources.row_source import RowBlock, RowSource, memory_bytes

FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


class ArrayRows(RowSource):
    """The rows of an array on disk; see `mercer.open_rows`.

    Parameters
    ----------
    X : the array, or the path of a .npy file.
    target, weight : None, an array with a value per row, the path of a .npy file, or the number of a column of X.
    columns : the numbers of the columns that are features; None: all but those of target and weight.
    memory : megabytes of rows that a fit may hold, or "auto".
    """

    def __init__(
        self,
        X: Any,
        target: Any = None,
        weight: Any = None,
        columns: Sequence[int] | None = None,
        memory: float | str = "auto",
    ) -> None:
        self._X = _Stored(X, "X")
        self.name = self._X.name
        if len(self._X.shape) != 2:
            raise InvalidInputError(
                f"{self.name} has the shape {self._X.shape}, but rows need two axes: one row per sample, one column "
                "per feature."
            )
        if self._X.dtype.kind not in "fiub":
            raise InvalidInputError(f"{self.name} has the type {self._X.dtype}, but samples must be numbers.")
        self.n, width = (int(size) for size in self._X.shape)
        if self.n == 0 or width == 0:
            raise InvalidInputError(f"{self.name} is empty: its shape is {self._X.shape}.")
        self._y, self._weight = self._beside(target, "target", width), self._beside(weight, "weight", width)
        inside = [part for part in (self._y, self._weight) if isinstance(part, int)]
        self._features = _features(columns, inside, width, self.name)
        self.n_columns = width if self._features is None else len(self._features)
        self.has_target, self.has_weight = target is not None, weight is not None
        self.memory = memory_bytes(memory)
        self._remember_files()

    def _beside(self, given: Any, what: str, width: int) -> Any:
        """Targets or weights: a stored vector, or the number of a column."""
        if given is None:
            return None
        if isinstance(given, int | np.integer) and not isinstance(given, bool):
            if not -width <= given < width:
                raise InvalidInputError(f"{what}={given}: {self.name} has the columns 0 to {width - 1}.")
            return int(given) % width
        if isinstance(given, str) and Path(given).suffix != ".npy":
            raise InvalidInputError(
                f"{what}={given!r}: the columns of {self.name} have no names. Give the number of a column, the path of "
                "a .npy file, or an array with a value for each row."
            )
        stored = _Stored(given, what)
        if tuple(stored.shape) != (self.n,):
            raise InvalidInputError(
                f"{what} has the shape {tuple(stored.shape)}, but {self.name} has {self.n:,} rows: give one value for "
                "each row."
            )
        return stored

    def _files(self) -> Sequence[str]:
        return [part.path for part in (self._X, self._y, self._weight) if isinstance(part, _Stored) and part.path]

    def column_name(self, j: int) -> str:
        """The number of feature j among all columns of the array."""
        return f"column {j if self._features is None else self._features[j]}"

    @property
    def bytes_per_row(self) -> int:
        """The memory of a row in a block."""
        return self.n_columns * (self._X.dtype.itemsize if self._X.dtype in FLOATS else 8)

    def cuts(self, rows: int) -> list[tuple[int, int]]:
        """Ranges of about ``rows`` rows, in multiples of the rows of a chunk where the array has chunks."""
        chunk = self._X.chunk_rows
        return super().cuts(rows // chunk * chunk if rows >= chunk else rows)

    def _read(self, start: int, stop: int) -> RowBlock:
        whole = self._X.read(start, stop)
        X = whole if self._features is None else whole[:, self._features]
        X = np.ascontiguousarray(X, dtype=X.dtype if X.dtype in FLOATS else np.float64)
        y, weight = (
            np.array(whole[:, part]) if isinstance(part, int) else None if part is None else part.read(start, stop)
            for part in (self._y, self._weight)
        )
        return RowBlock(start, stop, X, y, self._checked_weight(weight, start))

    def _read_targets(self, start: int, stop: int) -> tuple[Vector | None, Vector | None]:
        y, weight = (
            self._X.read(start, stop)[:, part]
            if isinstance(part, int)
            else None
            if part is None
            else part.read(start, stop)
            for part in (self._y, self._weight)
        )
        return y, self._checked_weight(weight, start)

    def _checked_weight(self, weight: Vector | None, start: int) -> Vector | None:
        return None if weight is None else weights_of(weight, lambda i: self.place(start + i))


class _Stored:
    """An array in memory or on disk that is read by slices; a memory map travels to other processes by its path."""

    def __init__(self, given: Any, what: str) -> None:
        self.path = ""
        self._map: tuple[Any, ...] | None = None
        if isinstance(given, str | Path):
            self.path = str(given)
            given = _open_npy(self.path)
        elif isinstance(given, list | tuple):
            given = np.asarray(given)
        elif isinstance(given, np.memmap) and given.filename is not None and not isinstance(given.base, np.ndarray):
            self.path = str(given.filename)
            order = "C" if given.flags.c_contiguous else "F"
            self._map = (self.path, given.dtype, "r", given.offset, given.shape, order)
        shape, dtype = getattr(given, "shape", None), getattr(given, "dtype", None)
        if shape is None or dtype is None or not hasattr(given, "__getitem__"):
            raise InvalidInputError(
                f"{what} is of type {type(given).__name__}: give an array on disk (np.memmap, h5py.Dataset, zarr.Array "
                "or another object with shape, dtype and slices), or the path of a .npy file."
            )
        if not all(isinstance(size, int | np.integer) for size in shape):
            raise InvalidInputError(f"{what} has the shape {shape}: the number of rows must be known.")
        self.shape, self.dtype = tuple(int(size) for size in shape), np.dtype(dtype)
        self.name = self.path or f"the {type(given).__module__.partition('.')[0]} {type(given).__name__}"
        self._array = given
        chunks = getattr(given, "chunks", None)
        first = chunks[0] if isinstance(chunks, tuple) and len(chunks) else 1
        # the rows of a chunk; 1 if the array is not stored in chunks
        self.chunk_rows = int(first) if isinstance(first, int | np.integer) and first > 0 else 1

    def read(self, start: int, stop: int) -> Any:
        """The rows as an array; a view where they are in memory or mapped."""
        try:
            rows = self._array[start:stop]
        except (OSError, RuntimeError, ValueError) as error:
            raise InvalidInputError(f"{self.name}, rows {start} to {stop} cannot be read: {error}.") from None
        # np.asarray turns a memory map into a plain view of it, which is faster to slice
        rows = np.asarray(rows)
        # HDF5 stores texts as UTF-8
        return np.array([bytes(text).decode() for text in rows]) if _is_bytes(rows) else rows

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        if self.path:
            state["_array"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self._array is None:
            self._array = np.memmap(*self._map) if self._map is not None else _open_npy(self.path)


def _is_bytes(rows: Any) -> bool:
    """Whether the values are encoded texts."""
    return rows.dtype.kind == "S" or (rows.dtype == object and rows.size > 0 and isinstance(rows.flat[0], bytes))


def _open_npy(path: str) -> Any:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        why = getattr(error, "strerror", None) or error
        if "allow_pickle" in str(why):  # numpy's words for any file that does not begin as it should
            why = "It does not begin as .npy files do"
        raise InvalidInputError(f"{path} cannot be read as a .npy file of numbers: {why}.") from None


def _features(columns: Sequence[int] | None, inside: list[int], width: int, name: str) -> list[int] | None:
    """The numbers of the features; None if they are all columns in order."""
    if columns is None:
        return [j for j in range(width) if j not in inside] if inside else None
    found = []
    for column in columns:
        if isinstance(column, bool | str) or not isinstance(column, int | np.integer) or not -width <= column < width:
            raise InvalidInputError(
                f"columns has {column!r}, but {name} has the columns 0 to {width - 1}, which have no names."
            )
        found.append(int(column) % width)
    if not found or len(set(found)) < len(found) or set(found) & set(inside):
        raise InvalidInputError(
            f"columns={list(columns)!r}: name at least one column, each once, and neither the target nor the weight."
        )
    return found


def weights_of(values: Any, place: Any) -> Vector:
    """Weights as float64; raises for those that are not finite or negative. ``place(i)`` names row i."""
    weight = np.asarray(values)
    if weight.dtype.kind not in "fiub":
        raise InvalidInputError(f"{place(0)}: the weight is {weight[0]!r}, but weights must be numbers.")
    weight = weight.astype(np.float64, copy=False)
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(wrong):
        i = int(wrong[0])
        raise InvalidInputError(f"{place(i)}: the weight is {weight[i]:g}, but weights must be finite and at least 0.")
    return weight
