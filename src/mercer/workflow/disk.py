"""Train on a Parquet table that exceeds the memory: search on some rows, fit a linear machine to all of them."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from mercer.estimators.linear.source_fit import begin_at
from mercer.exceptions import InvalidInputError, MissingExtraError
from mercer.io.blocks.arrow_table import SUFFIXES, ArrowTable
from mercer.io.blocks.table_rows import PreparedRows
from mercer.io.tables import Samples
from mercer.io.tables.preprocessing import PREPARE, READ
from mercer.io.tables.samples import ReadingOptions
from mercer.io.tables.table_reader import frame_of
from mercer.problems.clock import Clock
from mercer.problems.solution import FAR, Status, TracePoint
from mercer.sources.row_source import memory_bytes
from mercer.workflow.job import FIT, Job
from mercer.workflow.preparation import MACHINE, check_classes, detect_task
from mercer.workflow.training import Outcome, train

# a table in memory takes this many times the size of its cells: as read, as columns, and prepared
COPIES = 3
# the search uses at most this many rows, from this many places of the table, in at most this share of the memory
SEARCH_ROWS, PLACES, SEARCH_SHARE = 20_000, 20, 1 / 8
# the search gets at least this many rows of each class, if the table has them
FEWEST = 2


def exceeds_memory(path: Any, format: str | None, memory: float | str) -> str:
    """Return why a table is read from disk, block by block; empty if it is read into memory."""
    is_folder = Path(path).is_dir()
    if not is_folder and (format not in (None, "parquet") or Path(path).suffix.lower() not in SUFFIXES):
        return ""
    if not Path(path).exists():
        return ""
    try:
        table = ArrowTable(path)
    except (InvalidInputError, MissingExtraError):
        if is_folder:
            raise
        return ""  # reading it into memory raises the error that says why
    size, limit = COPIES * table.n * table.bytes_per_row(table.names), memory_bytes(memory)
    if size <= limit and not is_folder:
        return ""
    about = (
        f"{table.n:,} rows would take about {size / 2**20:,.0f} MB in memory, and {limit / 2**20:,.0f} MB may be used"
    )
    return "it is a folder" if size <= limit else about


def train_from_disk(
    path: Any,
    *,
    target: str | None = None,
    memory: float | str = "auto",
    options: ReadingOptions | None = None,
    task: str | None = None,
    kernel: Any = None,
    missing: str = "impute",
    judge: str = "auto",
    search_rows: int | None = None,
    job: Job,
    on_columns: Callable[[Samples], None] = lambda samples: None,
    **search: Any,
) -> Outcome:
    """Prepare the columns by all rows, search the parameters on some, and fit a linear machine to all of them.

    Parameters
    ----------
    path : the Parquet file or folder.
    memory : megabytes of rows, or "auto".
    options : how to read cells.
    job : shows progress and handles Ctrl-C; during the last fit, Ctrl-C keeps the model so far, with its certificate.
    on_columns : called when the columns are known, with the rows of the search.
    target, task, kernel, missing, judge, search_rows, search : as in `train`; the kernel must be linear.
    """
    if kernel not in (None, "linear"):
        raise InvalidInputError(
            f"--kernel {kernel} needs all rows in memory, but {path} exceeds it. Use --kernel linear, raise --memory, "
            "or fit a part of the rows."
        )
    table = ArrowTable(path)
    rows = PreparedRows(
        path,
        _target(table, target),
        memory=memory,
        options=options,
        on_rows=lambda done, total: job.advance(done, total, f"{path}: {done:,} of {total:,} rows"),
    )
    assert rows.y is not None
    y = rows.y
    asked, task = task is not None, task or detect_task(y)
    sample = _sample(rows, search_rows or SEARCH_ROWS)
    on_columns(sample)
    if task == "classification":
        check_classes(replace(sample, y=y), asked)
    outcome = train(sample, task=task, kernel="linear", missing=missing, judge=judge, job=job, **search)
    return _fit_all(outcome, rows, job)


def _target(table: ArrowTable, target: str | None) -> str:
    """The name of the target: the given one, by name or number, or the last column."""
    if target is None:
        return table.names[-1]
    if target not in table.names and target.removeprefix("-").isdigit():
        number = int(target)
        if 1 <= abs(number) <= len(table.names):
            return table.names[number - 1 if number > 0 else number]
    table.check_names([target], f"--target {target}")
    return target


def _sample(rows: PreparedRows, most: int) -> Samples:
    """Rows from several places of the table, with at least two of each class."""
    table, y = rows._table, rows.y
    assert y is not None and rows.target_column is not None
    per_row = max(1, rows.bytes_per_row)
    most = max(100, min(most, rows.n, int(SEARCH_SHARE * rows.memory) // per_row))
    if most >= rows.n:
        ranges = [(0, rows.n)]
    else:
        starts = np.linspace(0, rows.n - most // PLACES, PLACES).astype(np.int64)
        ranges = [(int(start), int(start) + most // PLACES) for start in starts]
    chosen = np.unique(np.concatenate([np.arange(start, stop) for start, stop in ranges]))
    if y.dtype.kind not in "f":
        labels, counts = np.unique(y[chosen], return_counts=True)
        known = dict(zip(labels.tolist(), counts.tolist(), strict=True))
        for label in np.unique(y).tolist() if len(labels) < SEARCH_ROWS // FEWEST else ():
            if known.get(label, 0) < FEWEST:
                ranges += [(int(i), int(i) + 1) for i in np.flatnonzero(y == label)[:FEWEST] if i not in chosen]
    ranges.sort()
    reader, parts = rows.preparation.named_steps[READ], []
    for start, stop in ranges:
        frame = table.read(start, stop, reader.names).to_pandas(ignore_metadata=True)
        parts.append(reader.read(frame, lambda i, start=start: table.place(start + i)))
    positions = np.concatenate([np.arange(start, stop) for start, stop in ranges])
    values = [np.concatenate([part[name].to_numpy() for part in parts]) for name in reader.names]
    if rows._labelled is not None:
        keep = rows._labelled[positions]
        positions, values = positions[keep], [one[keep] for one in values]
    column = rows.target_column
    frame = frame_of(reader.names, values)
    return Samples("table", frame, y[positions], column.name, rows.table_columns, column)


def _fit_all(outcome: Outcome, rows: PreparedRows, job: Job) -> Outcome:
    """Fit the chosen machine to all rows, and put the preparation of all rows before it."""
    search, started = outcome.search, time.perf_counter()
    machine = search._machine().set_params(**search.best_params_)
    machine._validate_params()
    _begin_with_search(machine, outcome, rows)
    job.restart(final_fit=1.0)
    job.kept = "the machine so far is kept, with its certificate"
    job.begin(FIT, f"{rows.n:,} rows from disk")
    ends = nullcontext() if job.interrupted else job.ends_inner_fits()
    with ends, Clock(search.time_limit, _progress(machine.tol, job)) as clock, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the messages below say it
        machine._fit(rows, None, None, clock)
    search.best_estimator_ = machine
    search.refit_time_ = time.perf_counter() - started
    model = Pipeline([*rows.preparation.steps, (MACHINE, search)])
    messages = [
        f"The table was read from disk, block by block: the machine is linear and fitted to all {rows.n:,} rows; its "
        f"parameters were searched, and its score estimated, on {len(outcome.samples):,} rows."
    ]
    if Status.INTERRUPTED in machine._statuses:
        messages.append(f"The fit to all rows was interrupted; the model is {machine.certificate_}.")
    elif machine._statuses != [Status.CONVERGED] * len(machine._statuses):
        why = "--time-limit ended" if Status.TIME_LIMIT in machine._statuses else "Rounding or max_iter ended"
        messages.append(f"{why} the fit to all rows before the optimum; the model is {machine.certificate_}.")
    if outcome.evaluation is not None and machine.certificate_.relative_gap >= FAR:
        messages.append(
            f"The score is that of machines fitted to the {len(outcome.samples):,} rows of the search, not of the "
            "model, which is not solved. Allow more time."
        )
    return replace(
        outcome,
        model=model,
        seconds=outcome.seconds | {FIT: search.refit_time_},
        interrupted=job.interrupted,
        messages=(*messages, *outcome.messages),
        rows_on_disk=rows.n,
    )


def _begin_with_search(machine: Any, outcome: Outcome, rows: PreparedRows) -> None:
    """Let the fit to all rows begin at the machine of the search; columns it has not seen have weight 0."""
    found = outcome.machine
    assert rows.y is not None and rows.columns is not None
    if hasattr(found, "classes_") and not np.array_equal(found.classes_, np.unique(rows.y)):
        return
    names = [str(name) for name in outcome.model.named_steps[PREPARE].get_feature_names_out()]
    place = {name: j for j, name in enumerate(rows.columns)}
    if len(names) != np.shape(found.coef_)[-1]:
        return
    seen = [j for j, name in enumerate(names) if name in place]
    coef = np.zeros((np.atleast_2d(found.coef_).shape[0], len(place)))
    coef[:, [place[names[j]] for j in seen]] = np.atleast_2d(found.coef_)[:, seen]
    begin_at(machine, coef, found.intercept_)


def _progress(tol: float, job: Job) -> Any:
    """Report the completed share of a fit: how far the logarithm of the gap has moved towards the one of tol."""
    first: list[float] = []

    def watch(point: TracePoint) -> bool:
        gap = max(float(point.violation), 1e-300)
        first.append(gap)
        begun, end = math.log(max(first)), math.log(min(tol, max(first)))
        share = 0.0 if begun <= end else (begun - math.log(gap)) / (begun - end)
        job.advance(round(1000 * min(1.0, max(0.0, share))), 1000, f"relative gap {gap:.1e}")
        return False

    return watch
