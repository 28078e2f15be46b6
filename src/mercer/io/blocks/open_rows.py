"""Open rows that stay on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import scipy.sparse as sp

from mercer.exceptions import InvalidInputError
from mercer.io.blocks.arrow_table import is_arrow
from mercer.io.blocks.table_rows import PreparedRows, TableRows, check_preparation
from mercer.sources.array_rows import ArrayRows
from mercer.sources.row_source import RowSource


def open_rows(
    data: Any,
    *,
    target: Any = None,
    weight: Any = None,
    columns: Sequence[Any] | None = None,
    memory: float | str = "auto",
    prepare: Any = False,
) -> RowSource:
    """Open samples that stay on disk, for linear, landmark and exact machines that read them block by block.

    A fit reads all rows several times and holds at most ``memory`` of them, besides a few numbers per row (target,
    weight, dual variable). Nothing may write to the files meanwhile: a changed file is an error.

    Parameters
    ----------
    data : str, Path, array or dataset
        A .npy file, a Parquet file or a folder of Parquet files; an ``np.memmap``, an ``h5py.Dataset``, a
        ``zarr.Array``, or another object with ``shape``, ``dtype`` and slices along rows; a
        ``pyarrow.dataset.Dataset``.
    target : str, int, array or None, default=None
        The targets. Tables: the name of a column. Arrays: the number of a column, an array with a value per row, or the
        path of a .npy file. None: targets are given to ``fit``, or not needed.
    weight : str, int, array or None, default=None
        The sample weights, in the same way.
    columns : sequence of str or int, default=None
        The features, by name in tables and by number in arrays. None: all columns but target and weight.
    memory : float or "auto", default="auto"
        Megabytes of rows that a fit may hold. "auto" is a quarter of the available memory.
    prepare : bool or Pipeline, default=False
        For tables. False: the features are the numbers of numeric columns; other columns and missing cells are errors.
        True: columns become features as ``mercer fit`` makes them (missing numbers are medians, numbers are scaled,
        categories are 0/1 columns, dates are days, text is counted by words), which takes one or two more passes.
        ``preparation`` of the result is the fitted pipeline; give it for the rows of another table.

    Returns
    -------
    rows : RowSource
        With ``n``, ``shape``, ``columns``, ``block(start, stop)`` and ``blocks()``.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from mercer import LinearSVC, open_rows
    >>> folder = tempfile.TemporaryDirectory()
    >>> X = np.random.default_rng(0).standard_normal((5000, 4))
    >>> np.save(f"{folder.name}/X.npy", X)
    >>> rows = open_rows(f"{folder.name}/X.npy", target=X[:, 0] > X[:, 1])
    >>> rows.shape
    (5000, 4)
    >>> model = LinearSVC().fit(rows)
    >>> bool(model.certificate_.relative_gap <= model.tol)
    True
    >>> model.predict(rows).shape
    (5000,)
    >>> folder.cleanup()
    """
    if isinstance(data, RowSource):
        raise InvalidInputError(f"{data!r} is open already: use it as it is.")
    if sp.issparse(data):
        raise InvalidInputError(
            f"{type(data).__name__} is a sparse matrix, which is in memory already: give it to fit as it is."
        )
    if isinstance(columns, str):
        raise InvalidInputError(f"columns={columns!r} is a text: give a list, such as columns=[{columns!r}].")
    if is_arrow(data):
        for what, name in (("target", target), ("weight", weight)):
            if name is not None and not isinstance(name, str):
                raise InvalidInputError(
                    f"{what} is of type {type(name).__name__}: give the name of a column of the table, or give the "
                    "values to fit."
                )
        if prepare is False:
            return TableRows(data, target, weight, columns, memory)
        preparation = None if prepare is True else check_preparation(prepare)
        return PreparedRows(data, target, weight, columns, memory, preparation=preparation)
    if prepare is not False:
        raise InvalidInputError(
            "prepare is for tables (Parquet files, Arrow datasets): columns of an array are numbers already. "
            "Scale them before they are written."
        )
    if isinstance(data, str | Path) and Path(data).suffix.lower() != ".npy":
        what = "does not exist" if not Path(data).exists() else "has a suffix that open_rows does not know"
        raise InvalidInputError(
            f"{data} {what}: give a .npy file, a Parquet file (.parquet, .pq) or a folder of Parquet files. For HDF5 "
            "and Zarr give the dataset, such as h5py.File(path)['X']."
        )
    return ArrayRows(data, target, weight, columns, memory)
