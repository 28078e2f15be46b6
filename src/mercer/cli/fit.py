"""``mercer fit``: from a data file to a model file."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from mercer.cli.terminal import check_writable, number, say, shown_progress


def run(arguments: argparse.Namespace) -> int:
    """Read, train, print, write; return the exit status."""
    import mercer
    from mercer.io.tables import read_samples
    from mercer.workflow import train
    from mercer.workflow.summary import numbers, text_summary

    for path in (arguments.model, arguments.report):
        if path is not None:
            check_writable(path)
    samples = read_samples(arguments.data, target=arguments.target, format=arguments.format, labels=arguments.labels)
    if not arguments.json:
        for column in samples.columns:
            more = f", {column.missing} missing" if column.missing else ""
            say(f"  {column.name}: {column.kind}{f' ({column.why})' if column.why else ''}{more}", arguments.quiet)
    search = {"time_limit": arguments.time_limit, "n_jobs": arguments.jobs, "verbose": not arguments.quiet}
    if arguments.folds is not None:
        search["cv"] = arguments.folds
    if arguments.grid is not None:
        search |= {"Cs": arguments.grid, "gammas": arguments.grid}
    with shown_progress(arguments.quiet):
        outcome = train(
            samples,
            task=arguments.task,
            kernel=arguments.kernel,
            missing=arguments.missing,
            judge=arguments.judge,
            **search,
        )
    mercer.save(outcome.model, arguments.model)
    written = [str(arguments.model)]
    if arguments.report is not None:
        from mercer.report import write_report

        write_report(outcome, arguments.report, model_path=arguments.model, source=arguments.data)
        written.append(str(arguments.report))
    if arguments.json:
        json.dump(numbers(outcome) | {"written": written}, sys.stdout, indent=2)
        print()
    else:
        print(text_summary(outcome))
        print("\nwrote " + " and ".join(written) + f"; next:  mercer predict {arguments.model} NEW_DATA")
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What ``mercer fit`` understands."""
    parser.add_argument("data", help="CSV, TSV, Parquet, JSON lines, LIBSVM, npz or FASTA file; - for standard input")
    parser.add_argument(
        "--target",
        metavar="COLUMN",
        help="the column to predict, by its name or its number from 1 on (default: the last one)",
    )
    parser.add_argument("--format", help="csv, tsv, parquet, jsonl, libsvm, npz or fasta (default: by the file's name)")
    parser.add_argument("--labels", metavar="FILE", help="for FASTA: a label, or a name and a label, per line")
    parser.add_argument("--task", choices=["classification", "regression"], help="default: by the target's values")
    parser.add_argument(
        "--kernel", help='linear, rbf, poly, sigmoid or an expression such as "0.5*gaussian(gamma=0.1) + linear()"'
    )
    parser.add_argument("--missing", choices=["impute", "refuse"], default="impute", help="cells without a value")
    parser.add_argument(
        "--judge",
        choices=["auto", "nested", "holdout", "none"],
        default="auto",
        help="how the score is found: the whole search in five folds, in two random parts, or not at all",
    )
    parser.add_argument("--folds", type=number(int, least=2), metavar="K", help="folds of the search (default: 5)")
    parser.add_argument(
        "--grid",
        type=number(int, least=1),
        metavar="N",
        help="values of C and of gamma that are tried (default: 8)",
    )
    parser.add_argument("--time-limit", type=number(least=0), metavar="SECONDS", help="of each search")
    parser.add_argument("--jobs", type=int, metavar="N", help="threads (default: all cores)")
    parser.add_argument(
        "--model", metavar="FILE", type=Path, default=Path("model.mercer"), help="default: model.mercer"
    )
    parser.add_argument("--report", metavar="FILE", type=Path, help="also write a page about the model (HTML)")
    parser.add_argument("--json", action="store_true", help="print numbers for programs")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
