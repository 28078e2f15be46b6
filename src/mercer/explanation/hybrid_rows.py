"""Rows with some features of one row and the other features of another, and the background rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer._sklearn_compat import safe_indexing
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix, as_matrix

# rows of the default background
MOST_ROWS = 100


class Rows:
    """Rows of a matrix or a data frame, from whose cells new rows are made."""

    def __init__(self, first: Any, second: Any) -> None:
        """Stack two sets of rows with the same columns."""
        self.frame = type(first) if is_frame(first) else None
        if self.frame is None:
            self.cells: Any = np.concatenate([first, second])
            self.d = self.cells.shape[1]
        else:
            self.names = list(first.columns)
            self.like = first
            self.cells = [_joined(first[name], second[name]) for name in self.names]
            self.d = len(self.names)

    def pick(self, index: NDArray[np.intp]) -> Any:
        """The rows whose cell in column c is that of row index[i, c]."""
        if self.frame is None:
            return self.cells[index, np.arange(self.d)]
        columns = {name: safe_indexing(self.cells[c], index[:, c]) for c, name in enumerate(self.names)}
        if hasattr(self.like, "iloc"):
            columns = {name: cells.reset_index(drop=True) for name, cells in columns.items()}
        return self.frame(columns)


def is_frame(X: Any) -> bool:
    """Whether X is a data frame of pandas or polars."""
    return hasattr(X, "columns") and hasattr(X, "shape") and not isinstance(X, np.ndarray)


def _joined(first: Any, second: Any) -> Any:
    """A column of both sets of rows."""
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat([first, second], ignore_index=True)
    return first.clone().extend(second)


def as_rows(X: Any) -> Any:
    """A data frame as it is; anything else as an array, without the loss of objects."""
    if is_frame(X):
        return X
    if sp.issparse(X):
        return X.toarray()
    found = np.asarray(X)
    return found.astype(np.float64) if found.dtype.kind in "biuf" else found


def numbers(X: Any) -> Matrix:
    """The rows as a dense matrix of float64."""
    X = as_matrix(X)
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def choose_background(background: Any, X: Any, kept: Matrix | None) -> Any:
    """The background rows: those given, their default, or the mean of the latter.

    ``kept`` are the rows that the model keeps, in the space of X; None if it keeps none.
    """
    if (background is None or isinstance(background, str)) and not (kept is not None and len(kept)) and X.shape[0] == 1:
        raise InvalidInputError(
            "This model keeps no rows in the space of X, and X has a single row, which would be its own background: "
            "all values would be 0. Pass background rows, such as 100 rows of the training data, or several rows as X."
        )
    if background is None:
        return _evenly(kept if kept is not None and len(kept) > 0 else X)
    if isinstance(background, str):
        if background != "mean":
            raise InvalidInputError(f"background={background!r} is not known: give rows, 'mean' or None.")
        return np.atleast_2d(numbers(kept if kept is not None and len(kept) > 0 else X).mean(axis=0))
    return as_rows(background)


def _evenly(rows: Any) -> Any:
    n = rows.shape[0]
    if n <= MOST_ROWS:
        return rows
    return safe_indexing(rows, np.linspace(0, n - 1, MOST_ROWS).round().astype(np.intp))
