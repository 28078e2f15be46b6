"""`TableReader`, the first step of a table model: convert a data frame to the columns that the model was fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from mercer.estimators.base import warn_user
from mercer.exceptions import InvalidInputError, MissingExtraError
from mercer.io.tables.cells import Cells
from mercer.io.tables.columns import Column, Place, read_column
from mercer.kernels.features import Vector

# a warning shows at most this many unseen categories
SHOWN = 3


class TableReader(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Read the cells of new tables in the same way as the training table. `mercer fit` makes it the first step.

    Numbers may be strings such as "$4,733.00"; missing values may be None, NaN, NaT, pandas.NA or an empty string;
    dates may be strings or datetimes; booleans may be "yes" or True. Transforming a transformed table changes nothing.

    Parameters
    ----------
    columns : sequence of Column
        The columns that the model uses.
    target : Column, default=None
        The column that the model predicts. New tables need not contain it.
    """

    def __init__(self, columns: Sequence[Column] = (), target: Column | None = None) -> None:
        self.columns = columns
        self.target = target

    def fit(self, X: Any, y: Any = None) -> TableReader:
        """Check that the table has the columns; nothing is learnt."""
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
        """Return the names of the columns, in the order of the output."""
        return np.array(self.names, dtype=object)

    def transform(self, X: Any) -> Any:
        """Return a pandas data frame with a column of floats or strings for each of ``columns``.

        Parameters
        ----------
        X : data frame of pandas or polars, or table of pyarrow
            Columns may be in any order; other columns are ignored.
        """
        frame = self.read(X, lambda i: f"row {i}")
        self._warn_of_unseen(frame)
        return frame

    def read(self, X: Any, place: Place) -> Any:
        """`transform` without warnings. ``place(i)`` names the position of row i in error messages."""
        found = self._found(X)
        values = [read_column(Cells(X[found[column.name]]), column, place) for column in self.columns]
        return frame_of(self.names, values, getattr(X, "index", None))

    def _found(self, X: Any) -> dict[str, Any]:
        """Map each column name, as a stripped string, to the table's own name. Raise if a column is missing."""
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
    """Build a pandas data frame. Strings keep dtype object: pandas' string dtype would turn None into NaN."""
    import pandas

    parts = {
        name: pandas.Series(one, index=index, dtype=object) if one.dtype == object else one
        for name, one in zip(names, values, strict=True)
    }
    return pandas.DataFrame(parts, index=index, columns=list(names))


def check_columns(what: str, needed: Sequence[str], there: Any) -> None:
    """Raise if a column that the model needs is missing."""
    missing = [name for name in needed if name not in there]
    if missing:
        more = f" and {len(missing) - 10:,} more" if len(missing) > 10 else ""
        which = "the column" if len(missing) == 1 else "the columns"
        raise InvalidInputError(
            f"{what} lacks {which} {', '.join(missing[:10])}{more}, which the model was fitted with. Add what is "
            "missing, or check the spelling of the column names."
        )
