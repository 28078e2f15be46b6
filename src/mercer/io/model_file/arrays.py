"""Arrays, sparse matrices and data frames as members of a model file, and back.

Reading checks every size and type before memory is allocated.
"""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy

from mercer.exceptions import ModelFileError
from mercer.kernels.features import Vector

# dtype kinds that arrays may have: bool, int, uint, float, bytes, str; never objects
KINDS = "biufSU"
# bytes per number, at most
LARGEST_NUMBER = 8
# bytes of the header in front of an array, at most
LONGEST_HEADER = 4096
DIMENSIONS = 8
# libraries whose data frames can be stored
LIBRARIES = ("pandas", "polars")


def can_store(dtype: np.dtype[Any]) -> bool:
    """Whether a model file may hold arrays of this dtype."""
    return dtype.kind in KINDS and dtype.subdtype is None and (dtype.kind in "SU" or dtype.itemsize <= LARGEST_NUMBER)


def array_bytes(array: Vector) -> bytes:
    """Return an array in NumPy's file format, little-endian."""
    out = io.BytesIO()
    npy.write_array(out, array.astype(array.dtype.newbyteorder("<"), copy=False), version=(1, 0), allow_pickle=False)
    return out.getvalue()


def read_array(data: bytearray, name: str) -> Vector:
    """Return the array stored in these bytes: a writable view of them, in the byte order of this machine."""
    stream = io.BytesIO(data[:LONGEST_HEADER])
    try:
        if npy.read_magic(stream) != (1, 0):
            raise ValueError("its version is not 1.0")
        shape, fortran, dtype = npy.read_array_header_1_0(stream, max_header_size=LONGEST_HEADER)
    except Exception as error:  # NumPy's parser also passes on exceptions of Python's tokenizer
        raise ModelFileError(f"{name} is not an array in NumPy's format ({error!s:.100})") from None
    if not can_store(dtype):
        raise ModelFileError(f"{name} holds values of type {dtype}, which a model file may not hold")
    sizes = [int(n) for n in shape]
    if len(sizes) > DIMENSIONS or any(n < 0 for n in sizes):
        raise ModelFileError(f"{name} has the shape {shape}, which is not valid")
    start = stream.tell()
    if math.prod(sizes) * dtype.itemsize != len(data) - start:
        raise ModelFileError(f"{name} declares shape {tuple(sizes)} of {dtype}, but has {len(data) - start} bytes")
    if math.prod(sizes) == 0 or dtype.itemsize == 0:
        if math.prod(sizes) > 0 or max(sizes, default=0) > np.iinfo(np.int32).max:
            raise ModelFileError(f"{name} has the shape {tuple(sizes)} without any bytes")
        return np.empty(sizes, dtype.newbyteorder("="))
    flat = np.frombuffer(data, dtype, offset=start)
    if dtype.kind == "b" and flat.view(np.uint8).max() > 1:
        raise ModelFileError(f"{name} has truth values other than 0 and 1")
    array = flat.reshape(sizes, order="F" if fortran else "C")
    return array.astype(dtype.newbyteorder("="), copy=False)


def sparse_parts(matrix: Any) -> dict[str, Any]:
    """Return the parts of a CSR or CSC matrix."""
    return {
        "format": matrix.format,
        "array": isinstance(matrix, sp.sparray),
        "shape": [int(n) for n in matrix.shape],
        "data": matrix.data,
        "indices": matrix.indices,
        "indptr": matrix.indptr,
    }


def build_sparse(parts: dict[str, Any], name: str) -> Any:
    """Build a sparse matrix. Raise if an index lies outside its shape: compiled loops do not check indices."""
    if set(parts) != {"format", "array", "shape", "data", "indices", "indptr"}:
        raise ModelFileError(f"{name} is not a sparse matrix")
    shape, form, data, indices, indptr = (parts[key] for key in ("shape", "format", "data", "indices", "indptr"))
    if not isinstance(form, str) or form not in ("csr", "csc") or type(parts["array"]) is not bool:
        raise ModelFileError(f"{name} is a sparse matrix of an unknown format")
    if not isinstance(shape, list) or len(shape) != 2 or not all(type(n) is int and 0 <= n < 2**31 for n in shape):
        raise ModelFileError(f"{name} is a sparse matrix of the shape {shape!r:.60}, which is not valid")
    for part, kinds in ((data, "biuf"), (indices, "i"), (indptr, "i")):
        if not isinstance(part, np.ndarray) or part.ndim != 1 or part.dtype.kind not in kinds:
            raise ModelFileError(f"{name} is a sparse matrix whose parts are not vectors of numbers")
    if indices.dtype != indptr.dtype or indices.dtype.itemsize not in (4, 8) or len(data) != len(indices):
        raise ModelFileError(f"{name} is a sparse matrix whose parts do not fit together")
    rows, columns = shape if form == "csr" else shape[::-1]
    if len(indptr) != rows + 1 or indptr[0] != 0 or indptr[-1] != len(data) or np.any(np.diff(indptr) < 0):
        raise ModelFileError(f"{name} is a sparse matrix whose rows do not follow each other")
    if len(indices) and (indices.min() < 0 or indices.max() >= columns):
        raise ModelFileError(f"{name} is a sparse matrix with entries outside of its shape {tuple(shape)}")
    kinds_of = {
        ("csr", True): sp.csr_array,
        ("csr", False): sp.csr_matrix,
        ("csc", True): sp.csc_array,
        ("csc", False): sp.csc_matrix,
    }
    matrix = kinds_of[form, parts["array"]]((data, indices, indptr), shape=tuple(shape), copy=False)
    matrix.sort_indices()
    return matrix


# ---- data frames of pandas and polars --------------------------------------------------------------------------------


def is_frame(value: Any) -> bool:
    """Whether this is a data frame."""
    return type(value).__name__ == "DataFrame" and type(value).__module__.partition(".")[0] in LIBRARIES


def frame_parts(frame: Any) -> dict[str, Any]:
    """Return the library, the column names and the values of a data frame. Kernels ignore the index of pandas."""
    columns = [frame[name] for name in frame.columns]
    return {
        "library": type(frame).__module__.partition(".")[0],
        "columns": list(frame.columns),
        "values": [_values(column) for column in columns],
        "length": len(frame),
    }


def _values(column: Any) -> Any:
    """Return numbers as an array, anything else as a list."""
    array: Vector = column.to_numpy()
    return array if array.dtype.kind in "biuf" and can_store(array.dtype) else column.to_list()


def build_frame(parts: dict[str, Any]) -> Any:
    """Build the data frame; raise if its library is not installed."""
    if set(parts) != {"library", "columns", "values", "length"} or parts["library"] not in LIBRARIES:
        raise ModelFileError("a data frame comes from an unknown library")
    names, values, length = parts["columns"], parts["values"], parts["length"]
    plain = isinstance(names, list) and all(isinstance(n, str | int) for n in names) and len(set(names)) == len(names)
    if not plain or not isinstance(values, list) or len(names) != len(values):
        raise ModelFileError("a data frame has no valid column names")
    for column in values:
        if not isinstance(column, list | np.ndarray) or np.ndim(column[:0]) != 1 or len(column) != length:
            raise ModelFileError("the columns of a data frame differ in length")
    try:
        if parts["library"] == "pandas":
            import pandas as pd

            return pd.DataFrame(dict(zip(names, values, strict=True)), columns=names)
        import polars as pl

        return pl.DataFrame({str(name): column for name, column in zip(names, values, strict=True)})
    except ImportError:
        raise ModelFileError(f"it needs {parts['library']}, which is not installed") from None
    except Exception as error:  # the data frame library may raise anything on bad columns
        raise ModelFileError(f"{parts['library']} refuses a data frame ({error})") from None
