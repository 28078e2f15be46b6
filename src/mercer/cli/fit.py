"""``mercer fit``: train a model on a data file and write a model file."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from mercer.cli import reading
from mercer.cli.terminal import JobDisplay, check_writable, number, say


def run(arguments: argparse.Namespace) -> int:
    """Read the data, train, write the model and print a summary. Return the exit status: 130 after Ctrl-C."""
    from mercer.io.tables.samples import ReadingOptions
    from mercer.workflow.disk import exceeds_memory, train_from_disk
    from mercer.workflow.job import PAGE_WORK, READING, REPORT, Job
    from mercer.workflow.training import train

    for path in (arguments.model, arguments.report):
        if path is not None:
            check_writable(path)
    display = JobDisplay(arguments.quiet)
    silent = _compilations_hidden() if arguments.quiet else nullcontext()
    with display, silent, Job(display.show, display.say) as job, warnings.catch_warnings():
        # libraries warn about future versions of other libraries: not the user's concern
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        job.plan(report=0.0 if arguments.report is None else PAGE_WORK)
        job.begin(READING, str(arguments.data))
        options = {
            "task": arguments.task, "kernel": arguments.kernel, "missing": arguments.missing, "judge": arguments.judge,
            "search_rows": arguments.search_rows, "job": job,
        } | _search(arguments)  # fmt: skip

        def say_columns(samples: Any) -> None:
            display.clear()
            reading.say_columns(samples, arguments.quiet or arguments.json)

        why = exceeds_memory(arguments.data, arguments.format, arguments.memory)
        if why:
            display.clear()
            say(f"note: {arguments.data} is read from disk, block by block: {why} (--memory).", arguments.quiet)
            outcome = train_from_disk(
                arguments.data, target=arguments.target, memory=arguments.memory,
                options=ReadingOptions(None, arguments.decimal, arguments.date_order, arguments.na_target),
                on_columns=say_columns,
                **options,
            )  # fmt: skip
        else:
            samples = reading.read_new(arguments)
            say_columns(samples)
            outcome = train(samples, **options)
        written = _write(arguments, outcome, job, REPORT)
    _print(arguments, outcome, written)
    return 130 if job.interrupted else 0


def _compilations_hidden() -> AbstractContextManager[None]:
    from mercer._compiled.compile import compilations_shown

    return compilations_shown(lambda name: None)


def _search(arguments: argparse.Namespace) -> dict[str, Any]:
    """The parameters of the search from the command line."""
    search: dict[str, Any] = {
        "time_limit": arguments.time_limit,
        "n_jobs": arguments.jobs,
        "scoring": arguments.scoring,
        "class_weight": arguments.class_weight,
        "epsilon": arguments.epsilon,
    }
    if arguments.folds is not None:
        search["cv"] = arguments.folds
    if arguments.grid is not None:
        search |= {"Cs": arguments.grid, "gammas": arguments.grid}
    return search


def _write(arguments: argparse.Namespace, outcome: Any, job: Any, stage: str) -> list[str]:
    """Write the model, then the report. Ctrl-C skips the report."""
    import mercer

    mercer.save(outcome.model, arguments.model)
    written = [str(arguments.model)]
    if arguments.report is not None:
        from mercer.report import write_report

        job.begin(stage, str(arguments.report))
        try:
            write_report(outcome, arguments.report, model_path=arguments.model, source=arguments.data)
            written.append(str(arguments.report))
        except KeyboardInterrupt:
            job.say(f"interrupted: the model was written, but {arguments.report} was not")
    return written


def _print(arguments: argparse.Namespace, outcome: Any, written: list[str]) -> None:
    from mercer.workflow.summary import numbers, text_summary

    if arguments.json:
        json.dump(numbers(outcome) | {"written": written}, sys.stdout, indent=2)
        print()
    else:
        print(text_summary(outcome))
        print("\nwrote " + " and ".join(written) + f"; next:  mercer predict {arguments.model} NEW_DATA")


def memory(text: str) -> float | str:
    """Parse a number of megabytes, or "auto"."""
    return text if text == "auto" else number(above=0)(text)


def class_weight(text: str) -> Any:
    """Parse "balanced" or "label=weight,label=weight"."""
    if text == "balanced":
        return text
    weights: dict[str, float] = {}
    for part in text.split(","):
        label, _, weight = part.rpartition("=")
        try:
            weights[label] = float(weight)
        except ValueError:
            weights[label] = -1.0
        if not label or not weights[label] > 0:
            raise argparse.ArgumentTypeError(
                f"{part!r} is neither 'balanced' nor label=weight with a positive weight, such as yes=5"
            )
    return weights


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mercer fit``."""
    parser.add_argument("data", help="CSV, TSV, Parquet, JSON lines, LIBSVM, npz or FASTA file; - for standard input")
    parser.add_argument(
        "--target",
        metavar="COLUMN",
        help="the column to predict, by name or by number, starting at 1 (default: the last one)",
    )
    reading.add_arguments(parser, training=True)
    parser.add_argument("--labels", metavar="FILE", help="for FASTA: a label, or a name and a label, per line")
    parser.add_argument(
        "--task", choices=["classification", "regression"], help="default: inferred from the values of the target"
    )
    parser.add_argument(
        "--kernel",
        help="linear, rbf, poly, sigmoid, inhomogeneous(2) for (1 + <x, z>)^2, or an expression such as "
        '"0.5*gaussian(gamma=0.1) + linear()" (default: rbf; '
        "linear if there are more than 100,000 rows or a column of free text)",
    )
    parser.add_argument(
        "--missing",
        choices=["impute", "refuse"],
        default="impute",
        help="what to do with missing cells: fill them in, or stop with an error (default: impute)",
    )
    parser.add_argument(
        "--class-weight",
        type=class_weight,
        metavar="WEIGHTS",
        help="the cost of an error in each class: balanced (rare classes count as much as frequent ones) or "
        "label=weight,label=weight (other classes: 1)",
    )
    parser.add_argument(
        "--scoring",
        metavar="SCORE",
        help="scikit-learn's name of the score that the search maximises and reports, such as balanced_accuracy, "
        "f1_macro, roc_auc, neg_mean_absolute_error (default: accuracy or r2)",
    )
    parser.add_argument(
        "--epsilon",
        type=number(least=0),
        metavar="WIDTH",
        help="regression: errors up to this size cost nothing (default: chosen by the search)",
    )
    parser.add_argument(
        "--judge",
        choices=["auto", "search", "nested", "holdout", "none"],
        default="auto",
        help="how to estimate the score on new rows. search: by the held-out rows of the search, corrected for the "
        "selection of the best candidate; nested: by nested cross-validation, preparation and search repeated in five "
        "folds; holdout: by two random splits; none: not at all (default: search or, if the search uses only some of "
        "the rows, the other rows)",
    )
    parser.add_argument(
        "--folds", type=number(int, least=2), metavar="K", help="number of folds of the search (default: 5)"
    )
    parser.add_argument(
        "--grid",
        type=number(int, least=1),
        metavar="N",
        help="number of values of C and of gamma to try (default: 8)",
    )
    parser.add_argument(
        "--search-rows",
        type=number(int, least=10),
        metavar="N",
        help="number of rows for the parameter search of a kernel machine; the final model is always fitted to all "
        "rows (default: at most 5000 for classification, 2500 for regression)",
    )
    parser.add_argument(
        "--memory",
        type=memory,
        default="auto",
        metavar="MB",
        help="megabytes of rows in memory. A Parquet file or folder that needs more is read from disk, block by block, "
        "and a linear machine is fitted to it (default: a quarter of the available memory)",
    )
    parser.add_argument(
        "--time-limit",
        type=number(least=0),
        metavar="SECONDS",
        help="time limit of each search, and of the fit to all rows from disk",
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="number of threads (default: all cores)")
    parser.add_argument(
        "--model", metavar="FILE", type=Path, default=Path("model.mercer"), help="model file (default: model.mercer)"
    )
    parser.add_argument("--report", metavar="FILE", type=Path, help="also write an HTML report about the model")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.add_argument("--quiet", action="store_true", help="do not show progress")
