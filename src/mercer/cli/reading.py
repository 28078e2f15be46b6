"""Read data and model files for the commands, and the options that describe data files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mercer.cli.terminal import say

# at most this many columns are listed
SHOWN = 40
# suffixes of model files of LIBSVM and LIBLINEAR
TEXT = (".model", ".libsvm", ".liblinear", ".txt")


def read_new(arguments: argparse.Namespace, **more: Any) -> Any:
    """Read the samples of a data file according to the options; print notes about it to standard error."""
    from mercer.io.tables import read_samples

    options = ("target", "format", "labels", "encoding", "decimal", "date_order", "na_target")
    given = {name: getattr(arguments, name) for name in options if getattr(arguments, name, None) is not None}
    samples = read_samples(arguments.data, **(given | more))
    for note in samples.notes:
        say(f"note: {note}", getattr(arguments, "quiet", False))
    return samples


def say_columns(samples: Any, quiet: bool) -> None:
    """Print a line for each column of a table: its kind, and how it was read."""
    for column in samples.columns[:SHOWN]:
        say(f"  {column}", quiet)
    if len(samples.columns) > SHOWN:
        say(f"  … and {len(samples.columns) - SHOWN:,} more columns", quiet)
    if samples.target_column is not None:
        say(f"  {samples.target_column}, the target", quiet)


def add_arguments(parser: argparse.ArgumentParser, training: bool = False) -> None:
    """Add the options that describe a data file; ``training``: also the options that a fitted model already fixes."""
    parser.add_argument("--format", help="csv, tsv, parquet, jsonl, libsvm, npz or fasta (default: by the suffix)")
    parser.add_argument(
        "--encoding",
        metavar="NAME",
        help="the encoding of a text file, such as latin-1 (default: UTF-8, or a guess that is printed)",
    )
    if not training:
        return
    parser.add_argument(
        "--decimal",
        choices=[".", ","],
        help="the decimal mark of ambiguous numbers such as 1,234 (default: inferred from all columns)",
    )
    parser.add_argument(
        "--date-order",
        choices=["dmy", "mdy"],
        help="the order of day and month in dates such as 1/2/2024 (default: inferred from the column)",
    )
    parser.add_argument(
        "--na-target",
        choices=["error", "drop"],
        default="error",
        help="what to do with rows whose target is missing: stop with an error, or drop them (default: error)",
    )


def read_model(path: str, n_features: int | None = None, nu: bool = False) -> Any:
    """Read a model file of mercer, LIBSVM or LIBLINEAR, or the support vector machine of an ONNX graph."""
    from mercer.io import load
    from mercer.io.formats.libsvm_files import read_model as read_text
    from mercer.io.formats.onnx_import import read_onnx

    suffix = Path(path).suffix.lower()
    if suffix == ".onnx":
        return read_onnx(path, nu=nu)
    return read_text(path, n_features) if suffix in TEXT else load(path)
