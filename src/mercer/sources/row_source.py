"""`RowSource`: samples that are read block by block, and the loaders of their parts.

A source knows how many rows and columns it has. `block(start, stop)` reads some rows with their targets and weights; a
fit reads all rows once per step and holds at most ``memory`` bytes of them. Only the subclass knows the kind of file.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mercer.exceptions import InvalidInputError
from mercer.gram.memory import AT_LEAST, MEGABYTE, available_bytes
from mercer.kernels.features import Vector

# share of the available memory that memory="auto" gives to rows
SHARE = 1 / 4
# a block takes at most this share of the memory for rows: several threads read at the same time
BLOCK_SHARE = 1 / 16
# a block has at least this many rows, so that reading does not cost more than computing
FEWEST = 256
# rows that a fingerprint looks at
LOOKED_AT = 64


class RowBlock(NamedTuple):
    """Consecutive rows of a source.

    Attributes
    ----------
    start, stop : the positions of the first row and after the last one.
    X : the samples, an array or a CSR matrix, float32 or float64.
    y : the targets as the source has them (numbers or labels); None if it has none.
    weight : the sample weights as float64; None if it has none.
    """

    start: int
    stop: int
    X: Any
    y: Vector | None
    weight: Vector | None


class RowSource(ABC):
    """Samples that are read block by block. `mercer.open_rows` makes one from a file, a folder or an array on disk.

    Attributes
    ----------
    name : its name in messages: a path or the type of an array.
    n : the number of rows.
    n_columns : the number of features.
    columns : the names of the features; None if they have none.
    are_inputs : whether new samples have these names, so that models keep them as ``feature_names_in_``.
    has_target, has_weight : whether blocks have targets, and weights.
    memory : bytes of rows that a fit may hold at a time.
    """

    name: str
    n: int
    n_columns: int
    columns: tuple[str, ...] | None = None
    are_inputs: bool = True
    has_target: bool = False
    has_weight: bool = False
    memory: int

    # ---- what a subclass adds ------------------------------------------------------------------------------------

    @abstractmethod
    def _read(self, start: int, stop: int) -> RowBlock:
        """Read rows without checking them."""

    @abstractmethod
    def _read_targets(self, start: int, stop: int) -> tuple[Vector | None, Vector | None]:
        """Read targets and weights without the samples."""

    def _files(self) -> Sequence[str]:
        """The files that hold the rows; empty if they are not known."""
        return ()

    def place(self, i: int) -> str:
        """Return the position of row i, for messages."""
        return f"{self.name}, row {i}"

    def column_name(self, j: int) -> str:
        """Return the name of feature j, for messages."""
        return f"column {j}" if self.columns is None else f"column {self.columns[j]!r}"

    @property
    def bytes_per_row(self) -> int:
        """The memory of a row in a block; an estimate if rows are sparse."""
        return 8 * max(1, self.n_columns)

    def cuts(self, rows: int) -> list[tuple[int, int]]:
        """Divide all rows into ranges of about ``rows`` rows that can be read without reading others."""
        return [(start, min(self.n, start + rows)) for start in range(0, self.n, max(1, rows))]

    # ---- what users call -----------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of features."""
        return self.n, self.n_columns

    def __len__(self) -> int:
        return self.n

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """Raise: an array of all rows may exceed the memory."""
        raise InvalidInputError(
            f"{self.name} is read block by block, but an array of all rows is needed here. LinearSVC, LinearSVR, SVC, "
            "SVR, OneClassSVM and KernelRidge with landmarks fit rows on disk. To others give an array: "
            "np.concatenate([block.X for block in rows.blocks()])."
        )

    def __repr__(self) -> str:
        extra = "".join(f", with {what}s" for what in ("target", "weight") if getattr(self, f"has_{what}"))
        return f"<{type(self).__name__} {self.name}: {self.n:,} rows, {self.n_columns:,} columns{extra}>"

    def block(self, start: int, stop: int) -> RowBlock:
        """Read the rows from ``start`` to before ``stop``.

        Raises `InvalidInputError` that names the row and the column of the first number that is missing or infinite.
        """
        if not 0 <= start <= stop <= self.n:
            raise InvalidInputError(
                f"Rows {start} to {stop} of {self.name} were asked for, but it has the rows 0 to {self.n}."
            )
        self.check_unchanged()
        block = self._read(int(start), int(stop))
        self.check_finite(block)
        self.check_targets(block.y, block.start)
        return block

    def blocks(self, rows: int | None = None) -> Iterator[RowBlock]:
        """Read all rows in order, in blocks of about ``rows`` rows; None: as many as ``memory`` suggests."""
        for start, stop in self.cuts(self.block_rows if rows is None else int(rows)):
            yield self.block(start, stop)

    def targets(self) -> Iterator[tuple[int, int, Vector | None, Vector | None]]:
        """Read targets and weights of all rows: start, stop, y and weight of each block."""
        self.check_unchanged()
        for start, stop in self.cuts(self.block_rows):
            y, weight = self._read_targets(start, stop)
            self.check_targets(y, start)
            yield start, stop, y, weight

    @property
    def block_rows(self) -> int:
        """The number of rows of a block."""
        return max(FEWEST, int(BLOCK_SHARE * self.memory) // max(1, self.bytes_per_row))

    # ---- checks --------------------------------------------------------------------------------------------------

    def check_finite(self, block: RowBlock) -> None:
        """Raise if a number of the block is missing or infinite."""
        X = block.X
        numbers = X.data if sp.issparse(X) else X
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(numbers.sum()):
                return
        wrong = np.flatnonzero(~np.isfinite(numbers).ravel())
        if len(wrong) == 0:  # the sum overflows, the numbers do not
            return
        first = int(wrong[0])
        if sp.issparse(X):
            i, j = int(np.searchsorted(X.indptr, first, side="right") - 1), int(X.indices[first])
        else:
            i, j = divmod(first, X.shape[1])
        found = "a missing value (NaN)" if np.isnan(numbers.ravel()[first]) else "an infinite number"
        raise InvalidInputError(
            f"{self.place(block.start + i)}, {self.column_name(j)}: found {found}. {self._advice_on_missing()}"
        )

    def check_targets(self, y: Vector | None, start: int) -> None:
        """Raise if a number among the targets of the rows from ``start`` on is missing or infinite."""
        if y is None or y.dtype.kind != "f" or np.isfinite(y).all():
            return
        i = int(np.argmin(np.isfinite(y)))
        raise InvalidInputError(
            f"{self.place(start + i)}: the target is {y[i]}. Write a finite number, or leave out the row."
        )

    def _advice_on_missing(self) -> str:
        return "Write a finite number, or leave out the row."

    def _remember_files(self) -> None:
        """Remember the sizes and times of the files, for `check_unchanged`."""
        self._states = {path: _state(path) for path in self._files()}

    def check_unchanged(self) -> None:
        """Raise if a file has changed since the source was opened."""
        for path, before in getattr(self, "_states", {}).items():
            if _state(path) != before:
                raise InvalidInputError(
                    f"{path} has changed since it was opened: a fit reads it several times and needs the same rows "
                    "each time. Open it again when nothing writes to it any more."
                )

    def fingerprint(self) -> str:
        """Return a text that differs for other data: shape, names, and a few rows with targets and weights."""
        digest = hashlib.sha256(repr((self.shape, self.columns, self.has_target, self.has_weight)).encode())
        for start in sorted({int(i) for i in np.linspace(0, self.n - 1, 8)}) if self.n else ():
            block = self._read(start, min(self.n, start + LOOKED_AT // 8))
            X = block.X.toarray() if sp.issparse(block.X) else block.X
            for part in (X, block.y, block.weight):
                if part is not None:
                    values = part.tolist() if part.dtype == object else np.ascontiguousarray(part).tobytes()
                    digest.update(repr(values).encode() if isinstance(values, list) else values)
        return digest.hexdigest()


def _state(path: str) -> tuple[int, int] | None:
    """The size and the time of the last change of a file; None if it is gone."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def memory_bytes(memory: float | str) -> int:
    """``memory`` in megabytes as bytes. "auto" is a quarter of the available memory, at least 64 MB."""
    if memory == "auto":
        return max(AT_LEAST, int(SHARE * available_bytes()))
    if not isinstance(memory, Real) or not np.isfinite(memory) or not memory > 0:
        raise InvalidInputError(f'memory={memory!r} was given: use a positive number of megabytes, or "auto".')
    return int(float(memory) * MEGABYTE)


def gather(source: RowSource, y: Any, sample_weight: Any, name: str) -> tuple[Any, Any, Any]:
    """Read all rows into memory, for a machine that compares all pairs of them; targets and weights as well.

    ``y`` and ``sample_weight`` are those given to ``fit``. Raises if the rows exceed the memory of the source.
    """
    size = source.n * source.bytes_per_row
    if size > source.memory:
        raise InvalidInputError(
            f"{name} compares all pairs of rows and keeps them in memory: {source.name} needs {size / MEGABYTE:,.3g} "
            f"MB, but memory is {source.memory / MEGABYTE:,.3g} MB. Open it with a larger memory=..., fit a part of "
            'the rows, or use landmarks="auto" where the machine has it, else LinearSVC or LinearSVR.'
        )
    for what, given, inside in (("y", y, source.has_target), ("sample_weight", sample_weight, source.has_weight)):
        if given is not None and inside:
            raise InvalidInputError(f"{what} was given to fit, but {source.name} has its own: give only one of them.")
    X: Any = None
    parts: list[RowBlock] = []
    for block in source.blocks():
        if not sp.issparse(block.X):
            X = np.empty(source.shape, dtype=block.X.dtype) if X is None else X
            X[block.start : block.stop] = block.X
            block = block._replace(X=None)
        parts.append(block)
    X = sp.vstack([part.X for part in parts], format="csr") if X is None else X
    y = np.concatenate([part.y for part in parts]) if source.has_target else y
    weight = np.concatenate([part.weight for part in parts]) if source.has_weight else sample_weight
    return X, y, weight


def scored_rows(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any]:
    """The targets and weights of a score: those given, or of rows on disk their own."""
    if not isinstance(X, RowSource) or not X.has_target or y is not None:
        return y, sample_weight
    found = list(X.targets())
    if sample_weight is None and X.has_weight:
        sample_weight = np.concatenate([block[3] for block in found])
    return np.concatenate([block[2] for block in found]), sample_weight


Coding = Callable[[Any, Any, int, int], tuple[Vector, Vector]]


class Loader:
    """Loads one part of a source for a solver: rows, coded targets and weights.

    ``coding(y, weight, start, stop)`` turns targets and weights as the source has them (or None) into float64 numbers:
    ±1 for classes. The first call checks the numbers.

    Attributes
    ----------
    n : the number of rows.
    """

    def __init__(self, source: RowSource, start: int, stop: int, coding: Coding) -> None:
        self.source, self.start, self.stop, self.coding = source, start, stop, coding
        self.n = stop - start
        self._checked = False

    def __call__(self) -> tuple[Any, Vector, Vector]:
        """Read the part."""
        if self._checked:
            self.source.check_unchanged()
            block = self.source._read(self.start, self.stop)
        else:
            block = self.source.block(self.start, self.stop)
            self._checked = True
        return block.X, *self.coding(block.y, block.weight, self.start, self.stop)


def loaders(source: RowSource, coding: Coding, rows: int | None = None) -> list[Loader]:
    """Return a loader for each part of a source, of about ``rows`` rows; None: as many as ``memory`` suggests."""
    return [Loader(source, start, stop, coding) for start, stop in source.cuts(rows or source.block_rows)]
