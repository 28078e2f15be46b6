"""``mercer predict``: predict new samples with a model file."""

from __future__ import annotations

import argparse
import csv
import json
import sys
import warnings
from pathlib import Path
from typing import Any

from mercer.cli import reading
from mercer.cli.terminal import check_writable, say


def run(arguments: argparse.Namespace) -> int:
    """Read the model and the samples, and write a line per sample; return the exit status."""
    from mercer.exceptions import InvalidInputError
    from mercer.io import load
    from mercer.workflow.preparation import table_reader

    if arguments.output != "-":
        check_writable(Path(arguments.output))
    model = load(arguments.model)
    samples = reading.read_new(arguments, reader=table_reader(model), need_target=False, na_target="keep")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            columns = _columns(model, samples.X, arguments)
        except ValueError as error:  # for example, the columns differ from the training data
            found = " ".join(str(error).split())
            unseen = "unseen" in found and not arguments.target
            raise InvalidInputError(f"{found}. If that is the target, add --target." if unseen else found) from None
    for text in dict.fromkeys(str(one.message) for one in caught):  # for example about unseen categories
        say(f"note: {text}")
    names = {"name": list(samples.names)} if samples.names else {}
    _write({**names, **columns}, arguments)
    if samples.y is not None and len(samples.y) and hasattr(model, "score"):
        name = "accuracy" if hasattr(model, "classes_") else "R²"
        score, n = _score(model, samples), len(samples.y)
        say(
            f"{name} {score:.4g} on {'these' if samples.labelled is None else 'the'} {n:,} rows"
            + ("" if samples.labelled is None else " whose target is known")
        )
    return 0


def _score(model: Any, samples: Any) -> float:
    """The score on the rows that have a target."""
    X = samples.X if samples.labelled is None else samples.X[samples.labelled]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # already shown for the predictions
        return float(model.score(X, samples.y))


def _columns(model: Any, X: Any, arguments: argparse.Namespace) -> dict[str, Any]:
    """The columns of the output: the predictions, and the columns that the options ask for."""
    from mercer.exceptions import InvalidInputError
    from mercer.workflow.preparation import prepared

    machine = model[-1] if hasattr(model, "steps") else model
    if not hasattr(machine, "predict"):
        name = type(machine).__name__
        raise InvalidInputError(
            f"A {name} does not predict. In Python, mercer.load returns it: its transform projects samples."
            if hasattr(machine, "transform")
            else f"A {name} does not predict new samples. In Python, mercer.load returns it, with labels_ of its own."
        )
    samples = prepared(model, X)  # once for all columns
    found: dict[str, Any] = {"prediction": machine.predict(samples).tolist()}

    def require(method: str, option: str) -> None:
        if not hasattr(machine, method):
            raise InvalidInputError(f"{option} is not possible: {type(machine).__name__} has no {method}.")

    if arguments.probabilities:
        require("predict_proba", "--probabilities")
        for label, p in zip(machine.classes_.tolist(), machine.predict_proba(samples).T, strict=True):
            found[f"p({label})"] = p.tolist()
    if arguments.decision:
        require("decision_function", "--decision")
        values = machine.decision_function(samples)
        for j, column in enumerate(values.reshape(len(values), -1).T):
            found["decision" if values.ndim == 1 else f"decision {j}"] = column.tolist()
    if arguments.sets is not None:
        require("predict_set", "--sets")
        chosen = machine.predict_set(samples, alpha=arguments.sets)
        found["set"] = ["|".join(map(str, labels)) for labels in chosen]
    if arguments.intervals is not None:
        require("predict_interval", "--intervals")
        found["low"], found["high"] = machine.predict_interval(samples, alpha=arguments.intervals).T.tolist()
    return found


def _write(columns: dict[str, Any], arguments: argparse.Namespace) -> None:
    if arguments.output == "-":
        _lines(columns, arguments.json, sys.stdout)
        return
    with open(arguments.output, "w", newline="", encoding="utf-8") as out:
        _lines(columns, arguments.json, out)


def _lines(columns: dict[str, Any], as_json: bool, out: Any) -> None:
    rows = zip(*columns.values(), strict=True)
    if as_json:
        for row in rows:
            out.write(json.dumps(dict(zip(columns, row, strict=True))) + "\n")
        return
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mercer predict``."""
    parser.add_argument("model", help="a model file")
    parser.add_argument("data", help="a file with the same columns as the training data; - for standard input")
    parser.add_argument("--target", metavar="COLUMN", help="a column with known answers, to score the predictions")
    reading.add_arguments(parser)
    parser.add_argument("--output", metavar="FILE", default="-", help="output file (default: standard output)")
    parser.add_argument("--probabilities", action="store_true", help="add a column with the probability of each class")
    parser.add_argument("--decision", action="store_true", help="add decision values")
    parser.add_argument(
        "--sets",
        type=float,
        metavar="ALPHA",
        help="add a set of classes that contains the true class with probability 1 - ALPHA",
    )
    parser.add_argument(
        "--intervals",
        type=float,
        metavar="ALPHA",
        help="regression: add an interval that contains the true value with probability 1 - ALPHA",
    )
    parser.add_argument("--json", action="store_true", help="write a JSON object per line instead of CSV")
