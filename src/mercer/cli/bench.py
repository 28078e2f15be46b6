"""``mercer bench``: compare the fitting times of mercer and scikit-learn on this computer."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from statistics import median
from time import perf_counter
from typing import Any

from mercer.cli import reading
from mercer.cli.terminal import number


def run(arguments: argparse.Namespace) -> int:
    """Time both libraries and print a line for each; return the exit status."""
    import sklearn.svm

    import mercer

    X, y, name, task = _data(arguments)
    ours, theirs = (mercer.SVC, sklearn.svm.SVC) if task == "classification" else (mercer.SVR, sklearn.svm.SVR)
    found = []
    for library, machine in (("mercer", ours), ("scikit-learn", theirs)):
        model = machine(C=arguments.C)
        times = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)  # warm up: compile or load compiled code
            for _ in range(arguments.repeats):
                began = perf_counter()
                model.fit(X, y)
                times.append(perf_counter() - began)
            began = perf_counter()
            model.predict(X)
            predict = perf_counter() - began
            proof = mercer.certify(model, X, y)
        found.append(
            {
                "library": library,
                "fit": median(times),
                "predict": predict,
                "support vectors": len(model.support_),
                "relative gap": proof.relative_gap,
            }
        )
    if arguments.json:
        json.dump({"data": name, "rows": len(y), "C": arguments.C, "results": found}, sys.stdout, indent=2)
        print()
        return 0
    print(f"{name}: {len(y):,} rows, {X.shape[1]} features, {task}, Gaussian kernel, C={arguments.C:g}")
    print(f"{'':<14}{'fit':>10}{'predict':>10}{'SVs':>8}{'relative gap':>15}")
    for one in found:
        print(
            f"{one['library']:<14}{one['fit']:>9.4f}s{one['predict']:>9.4f}s{one['support vectors']:>8}"
            f"{one['relative gap']:>15.1e}"
        )
    print(f"ratio{'':<9}{found[1]['fit'] / found[0]['fit']:>9.1f}x{found[1]['predict'] / found[0]['predict']:>9.1f}x")
    return 0


def _data(arguments: argparse.Namespace) -> tuple[Any, Any, str, str]:
    if arguments.data is None:
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        return X / 16.0, y, "scikit-learn's digits", "classification"
    from mercer.workflow import detect_task, pipeline_for

    samples = reading.read_new(arguments)
    task = detect_task(samples.y)
    steps = pipeline_for(samples, task)[:-1]
    X = steps.fit_transform(samples.X) if len(steps.steps) else samples.X
    return X, samples.y, arguments.data, task


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mercer bench``."""
    parser.add_argument("data", nargs="?", help="a data file (default: scikit-learn's digits)")
    parser.add_argument("--target", metavar="COLUMN", help="the column to predict (default: the last one)")
    reading.add_arguments(parser, training=True)
    parser.add_argument("--C", type=number(above=0), default=1.0, help="the regularisation parameter C (default: 1)")
    parser.add_argument("--repeats", type=number(int, least=1), default=5, help="number of timed fits (default: 5)")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
