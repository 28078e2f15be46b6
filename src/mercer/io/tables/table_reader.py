"""The first step of a model of a table: from any data frame to the columns that the model was fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from mercer.estimators.progress import warn_user
from mercer.exceptions import InvalidInputError, MissingExtraError
from mercer.io.tables.cells import Cells
from mercer.io.tables.columns import Column, Place, read_column
from mercer.kernels.features import Vector

# names of unseen categories that a warning shows
SHOWN = 3


class TableReader(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Reads the cells of new tables as those of the fit were read; `mercer fit` puts it before all other steps.

    Numbers may be texts such as "$4,733.00", missing values may be None, NaN, NaT, pandas.NA or an empty text, dates
    may be texts or datetimes, booleans may be "yes" or True. Reading a table that this has returned changes nothing.

    Parameters
    ----------
    columns : sequence of Column
        The columns that the model uses.
    target : Column, default=None
        The column that it predicts, which need not be in new tables.
    """

    def __init__(self, columns: Sequence[Column] = (), target: Column | None = None) -> None:
        self.columns = columns
        self.target = target

    def fit(self, X: Any, y: Any = None) -> TableReader:
        """Check that the columns are there; how they are read is known already."""
        self._found(X)
        self.feature_names_in_ = np.array(self.names, dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    def get_feature_names_out(self, input_features: Any = None) -> Vector:
        """The names of the columns, in the order of the result."""
        return np.array(self.names, dtype=object)

    def transform(self, X: Any) -> Any:
        """A data frame of pandas with one column of floats or words for each column.

        Parameters
        ----------
        X : data frame of pandas or polars, or table of pyarrow
            Columns may be in any order; further columns are ignored.
        """
        frame = self.read(X, lambda i: f"row {i}")
        self._warn_of_unseen(frame)
        return frame

    def read(self, X: Any, place: Place) -> Any:
        """`transform` without a warning; ``place(i)`` says where row i is, for errors."""
        found = self._found(X)
        values = [read_column(Cells(X[found[column.name]]), column, place) for column in self.columns]
        return frame_of(self.names, values, getattr(X, "index", None))

    def _found(self, X: Any) -> dict[str, Any]:
        """The names of the table's columns by the texts that they are."""
        try:
            import pandas
        except ImportError:
            raise MissingExtraError("A model of a table", package="pandas", extra="tables") from None
        names = getattr(X, "column_names", getattr(X, "columns", None))
        if names is None or isinstance(X, np.ndarray):
            raise InvalidInputError(
                f"The model was fitted to a table, but X is of type {type(X).__name__}. Give a data frame of pandas or "
                f"polars or a table of pyarrow with the columns {', '.join(self.names)}."
            )
        if isinstance(X, pandas.DataFrame) and not X.columns.is_unique:
            twice = X.columns[X.columns.duplicated()]
            if set(twice) & set(self.names):
                raise InvalidInputError(f"The table has several columns {twice[0]!r}. Rename all but one of them.")
        there = {str(name).strip(): name for name in names}  # pandas keeps spaces around names
        check_columns("The table", self.names, there)
        return there

    def _warn_of_unseen(self, frame: Any) -> None:
        for column in self.columns:
            if column.kind != "category":
                continue
            known = set(column.categories)
            unseen = [word for word in frame[column.name] if word is not None and word not in known]
            if unseen:
                some = list(dict.fromkeys(unseen))
                more = f" and {len(some) - SHOWN} more" if len(some) > SHOWN else ""
                known_ones = ", ".join(column.categories[:SHOWN]) + (", …" if len(known) > SHOWN else "")
                warn_user(
                    f"{column.name}: {len(unseen):,} of {len(frame):,} cells hold a category that the model has not "
                    f"seen ({', '.join(repr(one) for one in some[:SHOWN])}{more}). The model treats it as none of the "
                    f"known ones ({known_ones}).",
                    UserWarning,
                )


def frame_of(names: Sequence[str], values: Sequence[Vector], index: Any = None) -> Any:
    """A data frame of pandas whose words stay objects: its own type for texts would make NaN of None."""
    import pandas

    parts = {
        name: pandas.Series(one, index=index, dtype=object) if one.dtype == object else one
        for name, one in zip(names, values, strict=True)
    }
    return pandas.DataFrame(parts, index=index, columns=list(names))


def check_columns(what: str, needed: Sequence[str], there: Any) -> None:
    """Raise if a column that a model needs is not there."""
    missing = [name for name in needed if name not in there]
    if missing:
        more = f" and {len(missing) - 10:,} more" if len(missing) > 10 else ""
        which = "the column" if len(missing) == 1 else "the columns"
        raise InvalidInputError(
            f"{what} lacks {which} {', '.join(missing[:10])}{more}, which the model was fitted with. Add what is "
            "missing, or check the spelling of the names."
        )
