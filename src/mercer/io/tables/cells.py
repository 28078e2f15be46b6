"""Convert the cells of one column to floats, or to strings with None for missing values.

A column is a list of strings from a file, or a column of pandas, polars or pyarrow. None, NaN, NaT, pandas.NA and the
words in `MISSING` all count as missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import numpy as np

from mercer.io.tables.dates import days
from mercer.kernels.features import Vector

# strings that mean "missing", in lower case: those of pandas.read_csv, and "?"
MISSING = frozenset({
    "", "?", "#n/a", "#n/a n/a", "#na", "-1.#ind", "-1.#qnan", "-nan", "1.#ind", "1.#qnan", "<na>", "n/a", "na", "nan",
    "none", "null",
})  # fmt: skip
LONGEST = max(len(word) for word in MISSING)
# float64 represents every integer below this exactly
EXACT = 2**53


class Cells:
    """The cells of one column.

    Attributes
    ----------
    numbers : floats, NaN where missing, if the column's type is numeric, date or duration (both in days); else None.
    are_dates : whether ``numbers`` are dates.
    booleans : whether the column's type is boolean.
    large : whether some integers are too large for float64 to represent exactly.
    """

    def __init__(self, column: Any) -> None:
        self._source = column
        self._texts: list[str | None] | None = None
        self.numbers: Vector | None = None
        self.are_dates = self.booleans = self.large = False
        if isinstance(column, list):
            self._texts = texts_of(column)
        elif getattr(column, "dtype", None) == np.float64 and hasattr(column, "iloc"):  # float64 already
            self.numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            self._convert(column)

    def __len__(self) -> int:
        return len(self._source)

    def texts(self) -> list[str | None]:
        """Return the cells as strings, None where missing."""
        if self._texts is None:
            assert self.numbers is not None
            if self.are_dates:
                moments = np.round(self.numbers * 86400).astype("datetime64[s]")
                self._texts = [None if np.isnat(moment) else str(moment) for moment in moments]
            else:
                self._texts = texts_of(self._source.tolist() if self.large else self.numbers.tolist())
        return self._texts

    def different(self) -> int:
        """Return the number of distinct values; exact for large integers too."""
        return len(set(self._source.tolist() if self._texts is None else self._texts) - {None})

    def integers(self) -> Vector:
        """Return the known cells of a column with ``large`` integers as int64 or uint64."""
        return np.array([value for value in self._source.tolist() if value is not None and value == value])

    def _convert(self, column: Any) -> None:
        import pandas
        from pandas.api import types

        series = column if isinstance(column, pandas.Series) else _series(column)
        self._source = series
        if isinstance(series.dtype, pandas.CategoricalDtype):
            series = series.astype(series.cat.categories.dtype if not series.isna().any() else object)
        if isinstance(series.dtype, pandas.PeriodDtype):
            series = series.dt.to_timestamp()
        if types.is_bool_dtype(series):
            self.booleans = True
        elif types.is_datetime64_any_dtype(series):
            self.are_dates, self.numbers = True, days(_microseconds(series))
            return
        elif types.is_timedelta64_dtype(series):
            self.numbers = days(series.to_numpy().astype("timedelta64[us]").astype(np.int64))
            return
        elif types.is_numeric_dtype(series) and not types.is_complex_dtype(series):
            self.numbers = series.to_numpy(dtype=np.float64, na_value=np.nan)
            whole = types.is_integer_dtype(series)
            self.large = bool(whole and (np.abs(self.numbers) >= EXACT).any())
            return
        self._texts = texts_of(series.astype(object).tolist())


def _series(column: Any) -> Any:
    """Convert a column of polars, pyarrow or numpy to a pandas Series."""
    import pandas

    kind = type(column).__module__.partition(".")[0]
    if kind == "polars" and (column.dtype.is_integer() or column.dtype.is_float()):
        return pandas.Series(column.to_numpy())
    if kind == "pyarrow":
        import pyarrow

        if pyarrow.types.is_integer(column.type) or pyarrow.types.is_floating(column.type):
            return pandas.Series(column.to_numpy())
        return pandas.Series(column.to_pylist(), dtype=object)
    if isinstance(column, np.ndarray):
        return pandas.Series(column)
    return pandas.Series(column.to_list(), dtype=object)


def _microseconds(series: Any) -> Any:
    """Microseconds since 1970 (UTC); NaT is the smallest int64."""
    if getattr(series.dt, "tz", None) is not None:
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    return series.to_numpy(dtype="datetime64[us]").astype(np.int64)


def texts_of(values: Sequence[Any]) -> list[str | None]:
    """Convert values of any type to strings, None where missing."""
    return [_text(value) for value in values]


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        text = value.strip()
        return None if len(text) <= LONGEST and text.lower() in MISSING else text
    if value is None:
        return None
    if isinstance(value, datetime | date):
        return None if value != value else value.isoformat()  # NaT != NaT
    if isinstance(value, bytes):
        return _text(value.decode("utf-8", "replace"))
    text = repr(float(value)) if isinstance(value, float) else str(value)
    return None if text.lower() in MISSING else text
