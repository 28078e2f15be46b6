"""``mercer fit``: from a data file to a model file."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import Any

from mercer.cli import reading
from mercer.cli.terminal import JobDisplay, check_writable, number


def run(arguments: argparse.Namespace) -> int:
    """Read, train, print, write; return the exit status: 130 if Ctrl-C has ended it early."""
    from mercer.workflow.job import PAGE_WORK, READING, REPORT, Job
    from mercer.workflow.training import train

    for path in (arguments.model, arguments.report):
        if path is not None:
            check_writable(path)
    display = JobDisplay(arguments.quiet)
    with display, Job(display.show, display.say) as job, warnings.catch_warnings():
        # of libraries, about the next version of another one
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        job.plan(report=0.0 if arguments.report is None else PAGE_WORK)
        job.begin(READING, str(arguments.data))
        samples = reading.read_new(arguments)
        display.clear()
        reading.say_columns(samples, arguments.quiet or arguments.json)
        outcome = train(
            samples,
            task=arguments.task,
            kernel=arguments.kernel,
            missing=arguments.missing,
            judge=arguments.judge,
            search_rows=arguments.search_rows,
            job=job,
            **_search(arguments),
        )
        written = _write(arguments, outcome, job, REPORT)
    _print(arguments, outcome, written)
    return 130 if job.interrupted else 0


def _search(arguments: argparse.Namespace) -> dict[str, Any]:
    """The parameters of the search that the command line gives."""
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
    """Write the model, then the report, which Ctrl-C leaves out."""
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
            job.say(f"interrupted: {arguments.report} is not written; the model is")
    return written


def _print(arguments: argparse.Namespace, outcome: Any, written: list[str]) -> None:
    from mercer.workflow.summary import numbers, text_summary

    if arguments.json:
        json.dump(numbers(outcome) | {"written": written}, sys.stdout, indent=2)
        print()
    else:
        print(text_summary(outcome))
        print("\nwrote " + " and ".join(written) + f"; next:  mercer predict {arguments.model} NEW_DATA")


def class_weight(text: str) -> Any:
    """balanced, or label=weight,label=weight."""
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
            raise argparse.ArgumentTypeError(f"{part!r} was given, but balanced or label=weight is needed, as in yes=5")
    return weights


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What ``mercer fit`` understands."""
    parser.add_argument("data", help="CSV, TSV, Parquet, JSON lines, LIBSVM, npz or FASTA file; - for standard input")
    parser.add_argument(
        "--target",
        metavar="COLUMN",
        help="the column to predict, by its name or its number from 1 on (default: the last one)",
    )
    reading.add_arguments(parser, training=True)
    parser.add_argument("--labels", metavar="FILE", help="for FASTA: a label, or a name and a label, per line")
    parser.add_argument("--task", choices=["classification", "regression"], help="default: by the target's values")
    parser.add_argument(
        "--kernel",
        help='linear, rbf, poly, sigmoid or an expression such as "0.5*gaussian(gamma=0.1) + linear()" (default: rbf; '
        "linear with more than 100,000 rows or a column of text)",
    )
    parser.add_argument("--missing", choices=["impute", "refuse"], default="impute", help="cells without a value")
    parser.add_argument(
        "--class-weight",
        type=class_weight,
        metavar="WEIGHTS",
        help="what a mistake costs in each class: balanced (rare classes count as much as frequent ones) or "
        "label=weight,label=weight (others: 1)",
    )
    parser.add_argument(
        "--scoring",
        metavar="SCORE",
        help="the score by which the best machine is chosen and judged, by its name in scikit-learn, such as "
        "balanced_accuracy, f1_macro, roc_auc, neg_mean_absolute_error (default: accuracy, r2)",
    )
    parser.add_argument(
        "--epsilon",
        type=number(least=0),
        metavar="WIDTH",
        help="for a regression: errors up to this size cost nothing (default: chosen by the search)",
    )
    parser.add_argument(
        "--judge",
        choices=["auto", "search", "nested", "holdout", "none"],
        default="auto",
        help="how the score is found. search: by the held-out rows of the search, corrected for choosing the best; "
        "nested: preparation and search repeated in five folds; holdout: in two random parts; none: not at all "
        "(default: search; if the search takes only some of the rows, rows that it has not seen)",
    )
    parser.add_argument("--folds", type=number(int, least=2), metavar="K", help="folds of the search (default: 5)")
    parser.add_argument(
        "--grid",
        type=number(int, least=1),
        metavar="N",
        help="values of C and of gamma that are tried (default: 8)",
    )
    parser.add_argument(
        "--search-rows",
        type=number(int, least=10),
        metavar="N",
        help="rows on which the parameters of a machine with a kernel are searched; the model is always fitted to all "
        "(default: at most 5000 for a classification, 2500 for a regression)",
    )
    parser.add_argument("--time-limit", type=number(least=0), metavar="SECONDS", help="of each search")
    parser.add_argument("--jobs", type=int, metavar="N", help="threads (default: all cores)")
    parser.add_argument(
        "--model", metavar="FILE", type=Path, default=Path("model.mercer"), help="default: model.mercer"
    )
    parser.add_argument("--report", metavar="FILE", type=Path, help="also write a page about the model (HTML)")
    parser.add_argument("--json", action="store_true", help="print numbers for programs")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
