"""``mercer kernel-check``: test whether a kernel or a matrix satisfies Mercer's condition."""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

from mercer.cli import reading


def run(arguments: argparse.Namespace) -> int:
    """Test Mercer's condition for a matrix, or for a kernel on samples; return 1 if it does not hold."""
    import mercer

    if arguments.kernel is None:
        report = mercer.check_mercer(_matrix(arguments.data))
    else:
        samples = reading.read_new(arguments, need_target=False)
        X = samples.X
        if samples.kind == "table":
            X = X[[c.name for c in samples.columns if c.kind in ("number", "boolean", "date")]].to_numpy(dtype=float)
        report = mercer.check_mercer(mercer.parse_kernel(arguments.kernel), X)
    print(report)
    return 0 if report.positive_semidefinite else 1


def _matrix(path: str) -> Any:
    import numpy as np

    from mercer.exceptions import InvalidInputError

    try:
        if path.endswith(".npy"):
            return np.load(path, allow_pickle=False)
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "loadtxt: input contained no data", UserWarning)
            text = sys.stdin if path == "-" else path
            return np.loadtxt(text, delimiter="," if path.endswith(".csv") else None, ndmin=2)
    except UserWarning:
        raise InvalidInputError(f"{path} is empty: a matrix file has one line of numbers for each row.") from None
    except ValueError as error:
        raise InvalidInputError(
            f"{path} is not a matrix of numbers: {str(error).rstrip('.')}. If it is a table of samples, give --kernel."
        ) from None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mercer kernel-check``."""
    parser.add_argument("data", help="samples or, without --kernel, a kernel matrix (.npy, .csv or text)")
    parser.add_argument("--kernel", help='an expression such as "gaussian(gamma=0.1) * linear()"')
    parser.add_argument("--target", metavar="COLUMN", help="a column to leave out")
    reading.add_arguments(parser)
