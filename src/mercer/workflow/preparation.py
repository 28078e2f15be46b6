"""Choose the task, the preprocessing of the columns and the machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from mercer.exceptions import InvalidInputError
from mercer.io.tables import Samples
from mercer.io.tables.dates import find_dates
from mercer.io.tables.number_formats import find_numbers
from mercer.io.tables.preprocessing import PREPARE, READ, column_transformer
from mercer.io.tables.table_reader import TableReader
from mercer.kernels import Kernel, parse_kernel
from mercer.selection.linear_cv import LinearSVCCV, LinearSVRCV
from mercer.selection.svc_cv import SVCCV
from mercer.selection.svr_cv import SVRCV

# integers are classes if there are at most CLASSES distinct values, and at most SHARE times the number of rows
CLASSES, SHARE = 20, 0.1
# a target with more classes than this, or than this share of the rows, must be confirmed with --task classification
MANY_CLASSES, FEW_ROWS = 100, 1 / 3
# with more rows than this, or with a column of free text, a linear machine is the default
MANY_ROWS = 100_000
# parameters that the search of a linear machine has, too
LINEAR_SEARCH = ("Cs", "cv", "time_limit", "verbose", "n_jobs", "scoring", "class_weight", "epsilon")
# kernels whose parameters are searched
SEARCHED = ("rbf", "poly", "sigmoid")
MACHINE = "machine"


def detect_task(y: Any) -> str:
    """Return "classification" for names and for few distinct integers, else "regression"."""
    values = np.asarray(y)
    if values.dtype.kind not in "fiu":
        return "classification"
    different = len(np.unique(values))
    whole = values.dtype.kind in "iu" or bool(np.all(values == np.round(values)))
    few = different <= max(2, min(CLASSES, SHARE * len(values)))
    return "classification" if whole and few else "regression"


def check_classes(samples: Samples, asked: bool) -> None:
    """Raise if the target has no classes that can be learnt, or so many that the user should confirm them.

    ``asked``: whether the user has set the task to classification.
    """
    y = np.asarray(samples.y)
    values, counts = np.unique(y, return_counts=True)
    n, k, name = len(y), len(values), samples.target
    if k == 1:
        raise InvalidInputError(
            f"The target {name!r} is {str(values[0])!r} in all {n} rows: there is nothing to learn. Choose another "
            "column with --target."
        )
    if k == n:
        raise InvalidInputError(
            f"The target {name!r} has a different value in each of the {n} rows: no class can be learnt. Choose "
            "another column with --target" + (", or use --task regression." if y.dtype.kind in "fiu" else ".")
        )
    if asked or not (k > MANY_CLASSES or k > max(CLASSES, FEW_ROWS * n)):
        return
    examples = ", ".join(repr(str(value)) for value in values[:: max(1, k // 3)][:4])
    texts = [str(value) for value in values[:1000]]
    numbers = sum(find_numbers([text]) is not None for text in texts) > 0.5 * len(texts)
    options = ["choose another column with --target"]
    if y.dtype.kind in "fiu":
        options.append("use --task regression to predict a number")
    elif numbers:
        options.append("write all its numbers in one format with one unit to predict a number")
    elif find_dates(texts) is not None:
        options.append("write its dates as numbers, such as days, to predict a number")
    options.append(f"use --task classification to train with {k:,} classes ({k * (k - 1) // 2:,} pairs of classes)")
    raise InvalidInputError(
        f"The target {name!r} has {k:,} different values in {n:,} rows, such as {examples}: {n / k:.1f} rows per "
        f"class on average, and as few as {counts.min():,}. If you do not want {k:,} classes, "
        f"{'; or '.join(options[:-1])}. If you do, {options[-1]}."
    )


def pipeline_for(samples: Samples, task: str, kernel: Any = None, missing: str = "impute", **search: Any) -> Pipeline:
    """Build an unfitted pipeline from raw samples to a machine that searches its parameters.

    Parameters
    ----------
    samples : Samples
        The data.
    task : {"classification", "regression"}
    kernel : str, Kernel or None
        A name, an expression or a kernel; None for the default for these samples.
    missing : {"impute", "refuse"}
        Whether to fill in missing cells or to raise an error.
    search : parameters of the machine, such as ``Cs``, ``gammas``, ``cv``, ``time_limit``.
    """
    _check_missing(samples, missing)
    steps: list[tuple[str, Any]] = []
    if samples.kind == "table":
        used = tuple(column for column in samples.columns if column.kind != "left out")
        steps.append((READ, TableReader(used, samples.target_column)))
    preparation = _preparation(samples)
    if preparation is not None:
        steps.append((PREPARE, preparation))
    steps.append((MACHINE, _machine(samples, task, kernel, search)))
    return Pipeline(steps)


def _check_missing(samples: Samples, missing: str) -> None:
    if missing != "refuse":
        return
    for column in samples.columns:
        if column.missing and column.kind != "left out":
            raise InvalidInputError(
                f"The column {column.name!r} has {column.missing} missing cells. Fill them in, remove the column, or "
                "use --missing impute."
            )


def _preparation(samples: Samples) -> Any:
    if samples.kind == "strings":
        return None
    if samples.kind == "matrix":
        if sp.issparse(samples.X):
            return MaxAbsScaler()
        if np.isnan(samples.X).any():
            return Pipeline([("impute", SimpleImputer(strategy="median")), ("scale", StandardScaler())])
        return StandardScaler()

    return column_transformer(samples.columns)


def prepared(model: Any, X: Any) -> Any:
    """Transform samples by all steps of a fitted model but the last."""
    return model[:-1].transform(X) if len(getattr(model, "steps", ())) > 1 else X


def table_reader(model: Any) -> TableReader | None:
    """Return the step of a model that reads tables; None if it was not built for a table by `pipeline_for`."""
    step = getattr(model, "named_steps", {}).get(READ)
    return step if isinstance(step, TableReader) else None


def _machine(samples: Samples, task: str, kernel: Any, search: dict[str, Any]) -> Any:
    if task not in ("classification", "regression"):
        raise InvalidInputError(f"Unknown task {task!r}: use classification or regression.")
    if kernel is None:
        kernel = _default_kernel(samples)
    elif isinstance(kernel, str) and kernel not in (*SEARCHED, "linear"):
        kernel = parse_kernel(kernel)
    search = _for_task(task, search)
    if kernel == "linear" and samples.kind != "strings":
        allowed = {key: value for key, value in search.items() if key in LINEAR_SEARCH}
        return (LinearSVCCV if task == "classification" else LinearSVRCV)(**allowed)
    if "epsilon" in search:
        search["epsilons"] = [search.pop("epsilon")]
    search = {"search": "local", **search}
    return (SVCCV if task == "classification" else SVRCV)(kernel=kernel, **search)


def _for_task(task: str, search: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that were given; raise if one of them belongs to the other task."""
    given = {key: value for key, value in search.items() if value is not None or key in ("cv", "time_limit", "n_jobs")}
    for name, owner in (("class_weight", "classification"), ("epsilon", "regression")):
        if name in given and task != owner:
            option = f"--{name.replace('_', '-')}"
            raise InvalidInputError(
                f"{option} is for {owner}, but the task is {task}. Leave it out, or use --task {owner}."
            )
    return given


def _default_kernel(samples: Samples) -> str | list[Kernel]:
    if samples.kind == "strings":
        from mercer.kernels import Spectrum

        return [Spectrum(k, normalize=True) for k in (2, 3, 4, 5)]
    return "linear" if why_linear(samples) else "rbf"


def why_linear(samples: Samples) -> str:
    """Return the reason why a linear machine is the default for these samples; empty if it is not."""
    texts = [column.name for column in samples.columns if column.kind == "text"]
    if texts:
        return f"the column {texts[0]!r} holds free text"
    return f"there are more than {MANY_ROWS:,} rows" if len(samples) > MANY_ROWS else ""
