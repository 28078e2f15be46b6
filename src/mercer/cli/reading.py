"""Options of all commands that read a data file, and what they say about the file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mercer.cli.terminal import say

# columns that are listed one by one
SHOWN = 40
# suffixes of model files by what is in them
TEXT = (".model", ".libsvm", ".liblinear", ".txt")


def read_new(arguments: argparse.Namespace, **more: Any) -> Any:
    """The samples of a data file, read as the options say; notes about it go to standard error."""
    from mercer.io.tables import read_samples

    options = ("target", "format", "labels", "encoding", "decimal", "date_order", "na_target")
    given = {name: getattr(arguments, name) for name in options if getattr(arguments, name, None) is not None}
    samples = read_samples(arguments.data, **(given | more))
    for note in samples.notes:
        say(f"note: {note}", getattr(arguments, "quiet", False))
    return samples


def say_columns(samples: Any, quiet: bool) -> None:
    """A line for each column of a table: what it is, and how it was read."""
    for column in samples.columns[:SHOWN]:
        say(f"  {column}", quiet)
    if len(samples.columns) > SHOWN:
        say(f"  … and {len(samples.columns) - SHOWN:,} more columns", quiet)
    if samples.target_column is not None:
        say(f"  {samples.target_column}, the target", quiet)


def add_arguments(parser: argparse.ArgumentParser, training: bool = False) -> None:
    """Options that say how a file is to be read; the last ones are of new files only."""
    parser.add_argument("--format", help="csv, tsv, parquet, jsonl, libsvm, npz or fasta (default: by the file's name)")
    parser.add_argument(
        "--encoding", metavar="NAME", help="of a text file, such as latin-1 (default: UTF-8, or a guess that is shown)"
    )
    if not training:
        return
    parser.add_argument(
        "--decimal", choices=[".", ","], help="the decimal mark, where 1,234 could be 1234 and 1.234 (default: a guess)"
    )
    parser.add_argument(
        "--date-order", choices=["dmy", "mdy"], help="in dates such as 1/2/2024 (default: by the whole column)"
    )
    parser.add_argument(
        "--na-target",
        choices=["error", "drop"],
        default="error",
        help="rows of a table without a target: stop, or leave them out (default: error)",
    )


def read_model(path: str, n_features: int | None = None, nu: bool = False) -> Any:
    """A model of mercer, a text file of LIBSVM or LIBLINEAR, or the support vector machine of an ONNX graph."""
    from mercer.io import load
    from mercer.io.formats.libsvm import read_model as read_text
    from mercer.io.formats.onnx_import import read_onnx

    suffix = Path(path).suffix.lower()
    if suffix == ".onnx":
        return read_onnx(path, nu=nu)
    return read_text(path, n_features) if suffix in TEXT else load(path)
