"""Search for samples in whatever a model holds: arrays, frames, lists, and objects such as strings, sets and graphs.

Each sample has a key that does not depend on how it is stored: -0.0 is 0.0, a dense row equals a sparse one, sets and
records have no order, a row of a frame is a record.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.exceptions import InvalidInputError
from mercer.kernels.domains import describe

# rarer patterns occur by chance: fewest different bytes of numbers, fewest characters of a text
DIFFERENT_BYTES, CHARACTERS = 6, 6
# the precisions in which numbers are compared and looked for
DTYPES = (np.float64, np.float32)
# how deep attributes are followed
DEPTH = 12


# ---- keys ------------------------------------------------------------------------------------------------------------


def vector_keys(X: Any, dtype: Any = np.float64) -> list[Hashable]:
    """The key of each row of a matrix: its width, and the columns and numbers of its entries other than 0."""
    rows = sp.csr_array(X).astype(dtype)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    where, width, kind = rows.indices.astype(np.int64), rows.shape[1], np.dtype(dtype).char
    return [("vector", kind, width, where[a:b].tobytes(), rows.data[a:b].tobytes()) for a, b in pairwise(rows.indptr)]


def object_key(sample: Any) -> Hashable:
    """The key of a string, number, set, record, series, graph or another object that is equal to its copies."""
    if isinstance(sample, str):
        return "text", str(sample)
    if isinstance(sample, bool | int | float | np.number | np.bool_):
        return "number", float(sample) + 0.0
    if isinstance(sample, Set):
        return "set", frozenset(map(object_key, sample))
    if isinstance(sample, Mapping):
        return "record", frozenset((object_key(name), object_key(part)) for name, part in sample.items())
    if sp.issparse(sample):
        return "rows", tuple(vector_keys(sample))
    if isinstance(sample, Sequence | np.ndarray) and not isinstance(sample, bytes):
        numbers = as_numbers(sample)
        if numbers is None:
            return "sequence", tuple(map(object_key, sample))
        if numbers.ndim == 2 and numbers.shape[1] == 1:  # a series of numbers
            numbers = numbers[:, 0]
        return "numbers", numbers.shape, (numbers + 0.0).tobytes()
    own_hash = getattr(type(sample), "__hash__", None)
    if isinstance(sample, bytes) or own_hash not in (None, object.__hash__):
        return "object", sample
    raise InvalidInputError(
        f"Samples such as {describe(sample)} cannot be searched for: their class does not say which of them are equal. "
        "Give strings, sets, records, arrays or mercer.Graph objects, or a class with __eq__ and __hash__."
    )


def as_numbers(values: Any) -> Any:
    """The values as an array of float64; None if they are no numbers, or no array."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        return values.astype(np.float64)
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        return None
    if isinstance(values, np.ndarray) and values.ndim == 0:
        return None
    first = next(iter(values), None)
    if first is None or isinstance(first, str | bytes | Mapping | Set):
        return None
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def items_of(samples: Any) -> list[Any]:
    """The samples of a sequence; the rows of a frame as records."""
    if hasattr(samples, "columns"):
        names = list(samples.columns)
        return [dict(zip(names, row, strict=True)) for row in zip(*(samples[name] for name in names), strict=True)]
    return list(samples)


def is_matrix(samples: Any) -> bool:
    """Whether these are vectors, as the rows of a matrix."""
    if isinstance(samples, np.ndarray):
        return samples.ndim == 2 and samples.dtype.kind in "fiub"
    return bool(sp.issparse(samples))


# ---- the search ------------------------------------------------------------------------------------------------------


class Search:
    """What is known of some samples: keys to compare, and the bytes that files with these samples would hold.

    Attributes
    ----------
    keys : the keys of all samples, of vectors in both precisions.
    telling : those that are not equal to other things by chance, so that columns and single values are compared, too.
    patterns : bytes.
    """

    def __init__(self) -> None:
        self.keys: set[Hashable] = set()
        self.telling: set[Hashable] = set()
        self.patterns: list[bytes] = []
        self.widths: set[int] = set()

    def add_vectors(self, X: Any) -> None:
        """Search for the rows of a matrix."""
        is_sparse = sp.issparse(X)
        for i in range(X.shape[0]):
            row = sp.csr_array(X[[i]]) if is_sparse else np.asarray(X[[i]])
            own = {key for dtype in DTYPES for key in vector_keys(row, dtype)}
            self.keys |= own
            self.widths.add(int(row.shape[1]))
            if self._add_numbers(row.data if is_sparse else row):
                self.telling |= own

    def add_objects(self, samples: list[Any]) -> None:
        """Search for objects."""
        for sample in samples:
            key: Any = object_key(sample)
            self.keys.add(key)
            if key[0] == "text":
                if len(key[1]) >= CHARACTERS:
                    self.telling.add(key)
                    self.patterns += _text_patterns(key[1])
            elif key[0] not in ("number", "numbers") or self._add_numbers(np.asarray(sample, dtype=np.float64)):
                self.telling.add(key)

    def _add_numbers(self, numbers: Any) -> bool:
        """Add the bytes of numbers; whether they do not occur by chance."""
        with np.errstate(over="ignore"):
            found = [np.ascontiguousarray(numbers, dtype=dtype).tobytes() for dtype in DTYPES]
        self.patterns += [pattern for pattern in found if len(set(pattern)) >= DIFFERENT_BYTES]
        return len(set(found[0])) >= DIFFERENT_BYTES

    def in_bytes(self, data: bytes) -> bool:
        """Whether the data hold one of the patterns."""
        return any(pattern in data for pattern in self.patterns)

    def in_value(self, value: Any) -> list[str]:
        """The names of the attributes of a model that hold one of the samples."""
        return list(dict.fromkeys(self._holders(value, "", set(), 0)))

    def _holders(self, value: Any, name: str, seen: set[int], depth: int) -> Iterator[str]:
        if depth > DEPTH or id(value) in seen or value is None or isinstance(value, bytes | int | float | type):
            return
        if isinstance(value, str):
            if object_key(value) in self.telling:
                yield name
            return
        seen.add(id(value))
        if self._is_in(value):
            yield name
            return
        if hasattr(value, "columns") or sp.issparse(value):
            return
        parts: dict[str, Any] = {}
        if isinstance(value, Mapping):
            parts = {str(key): part for key, part in value.items()}
        elif isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.dtype.kind == "O"):
            parts = {str(i): part for i, part in enumerate(value)}
        elif getattr(value, "__closure__", None):
            parts = {f"closure {i}": cell.cell_contents for i, cell in enumerate(value.__closure__)}
        elif hasattr(value, "__dict__"):
            parts = dict(vars(value))
        for key, part in parts.items():
            yield from self._holders(part, f"{name}.{key}".lstrip("."), seen, depth + 1)

    def _is_in(self, value: Any) -> bool:
        """Whether this array, frame, list or object is or has one of the samples."""
        if hasattr(value, "to_numpy"):  # a frame or a column of one
            return self._is_in(value.to_numpy()) or self._has_objects(items_of(value))
        if sp.issparse(value):
            return self._has_rows(value)
        if isinstance(value, np.ndarray | list | tuple):
            numbers = as_numbers(value)
            if numbers is None:
                return getattr(value, "ndim", 1) > 0 and self._has_objects(list(value))
            return self._has_numbers(numbers, getattr(value, "dtype", None)) or (
                numbers.ndim > 1 and self._has_objects(list(value))
            )
        try:
            return object_key(value) in self.telling
        except (InvalidInputError, TypeError):
            return False

    def _has_objects(self, items: list[Any]) -> bool:
        for item in items:
            try:
                if object_key(item) in self.keys:
                    return True
            except (InvalidInputError, TypeError):
                continue
        return False

    def _has_numbers(self, numbers: Any, dtype: Any) -> bool:
        """Whether rows of an array are samples, or columns, or the whole is a series."""
        if numbers.size == 0 or numbers.ndim == 0:
            return False
        if object_key(numbers) in self.telling:
            return True
        if self._has_rows(numbers.reshape(-1, numbers.shape[-1]), dtype, only_telling=numbers.ndim == 1):
            return True
        return numbers.ndim == 2 and self._has_rows(numbers.T, dtype, only_telling=True)

    def _has_rows(self, X: Any, dtype: Any = None, only_telling: bool = False) -> bool:
        if X.shape[1] not in self.widths:
            return False
        narrow = (X.dtype if dtype is None else dtype) == np.float32
        keys = self.telling if only_telling else self.keys
        return not keys.isdisjoint(vector_keys(X, np.float32 if narrow else np.float64))


def _text_patterns(text: str) -> list[bytes]:
    """How JSON, pickles and arrays of strings store a text, with quotes or its length where they have these."""
    data = text.encode("utf-8", "surrogatepass")
    found = [json.dumps(text).encode(), b'"' + data + b'"', text.encode("utf-32-le", "surrogatepass")]
    found.append(b"X" + struct.pack("<I", len(data)) + data)
    if len(data) < 256:
        found.append(b"\x8c" + bytes([len(data)]) + data)
    return found
