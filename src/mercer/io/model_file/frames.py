"""Data frames of pandas and polars as columns, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.exceptions import ModelFileError
from mercer.io.model_file.arrays import can_store
from mercer.kernels.features import Vector

LIBRARIES = ("pandas", "polars")


def is_frame(value: Any) -> bool:
    """Whether this is a data frame."""
    return type(value).__name__ == "DataFrame" and type(value).__module__.partition(".")[0] in LIBRARIES


def frame_parts(frame: Any) -> dict[str, Any]:
    """The library, the names and the values of the columns; the index of pandas says nothing to a kernel."""
    columns = [frame[name] for name in frame.columns]
    return {
        "library": type(frame).__module__.partition(".")[0],
        "columns": list(frame.columns),
        "values": [_values(column) for column in columns],
        "length": len(frame),
    }


def _values(column: Any) -> Any:
    """Numbers as an array, anything else as a list."""
    array: Vector = column.to_numpy()
    return array if array.dtype.kind in "biuf" and can_store(array.dtype) else column.to_list()


def build_frame(parts: dict[str, Any]) -> Any:
    """The data frame, if its library is installed."""
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
    except Exception as error:  # whatever a data frame has against its columns
        raise ModelFileError(f"{parts['library']} refuses a data frame ({error})") from None
