"""Choosing C and gamma: SVCCV against GridSearchCV over the SVC of scikit-learn and of scikit-learn-intelex.

    python benchmarks/selection.py [--data DIR] [--only german_numer] [--threads 2] [--cpu] [--quick] [--write FILE]

All try the same 8 C x 8 gamma in the same 5 folds, with as many threads or processes. Without --data it runs on
generated sets. --cpu compares the seconds of the processor with one thread instead: for machines that are busy.
Progress goes to stderr, the table to stdout.
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC as SklearnSVC
from table import machine, table

import mercer
from mercer.selection.search.grids import gamma_range

# name: rows at most
SETS = {"german_numer": 1000, "spam": 4601, "satimage": 4435, "svmguide1": 3089, "usps": 7291}
MADE = {"made 1000 x 10": (1000, 10), "made 3000 x 30": (3000, 30)}
CS, FOLDS, GAMMAS = np.logspace(-2, 3, 8), 5, 8


def load(name: str, folder: Path | None, quick: bool) -> tuple[np.ndarray, np.ndarray]:
    """Standardised rows and their classes."""
    if name in MADE:
        n, d = MADE[name]
        X, y = make_classification(n, d, n_informative=d // 2, flip_y=0.1, random_state=0)
    else:
        assert folder is not None
        stored = np.load(folder / f"{name}.npz")
        X, y = stored["X"].astype(np.float64), stored["y"]
    if quick and len(X) > 300:
        chosen = np.random.default_rng(0).permutation(len(X))[:300]
        X, y = X[chosen], y[chosen]
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0), y


def searches(gammas: np.ndarray, threads: int, cpu: bool, skip: set[str]) -> dict[str, Callable[[], Any]]:
    """The searches that are compared, in one process if the processor's seconds are counted."""
    folds, jobs = StratifiedKFold(FOLDS), 1 if cpu else threads
    grid = {"C": CS, "gamma": gammas}
    found: dict[str, Callable[[], Any]] = {
        "mercer": lambda: mercer.SVCCV(Cs=CS, gammas=gammas, cv=folds, n_jobs=jobs),
        "scikit-learn": lambda: GridSearchCV(SklearnSVC(), grid, cv=folds, n_jobs=jobs),
    }
    try:
        from sklearnex.svm import SVC as IntelexSVC
    except ImportError:
        print("scikit-learn-intelex is not installed", file=sys.stderr)
    else:
        found["intelex"] = lambda: GridSearchCV(IntelexSVC(), grid, cv=folds, n_jobs=jobs)
    return {name: search for name, search in found.items() if name not in skip}


def main() -> None:
    """Compare, and print one row for each set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--only", nargs="*", default=None)
    parser.add_argument("--skip", nargs="*", default=[], help="searches to leave out")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", type=Path, default=None)
    arguments = parser.parse_args()
    names = arguments.only or list(MADE if arguments.data is None else SETS)
    clock = process_time if arguments.cpu else perf_counter
    rows = []
    X, y = load("made 1000 x 10", None, True)
    mercer.SVCCV(Cs=2, gammas=2, cv=3).fit(X, y)  # compiles
    for name in names:
        X, y = load(name, arguments.data, arguments.quick)
        gammas = np.geomspace(*gamma_range(X), GAMMAS)
        results: dict[str, tuple[float, Any]] = {}
        for who, search in searches(gammas, arguments.threads, arguments.cpu, set(arguments.skip)).items():
            best = np.inf
            for _ in range(3 if who == "mercer" else 1):
                started = clock()
                fitted = search().fit(X, y)
                best = min(best, clock() - started)
            results[who] = best, fitted
            print(f"{name}: {who} {best:.2f} s, best {fitted.best_score_:.4f}", file=sys.stderr, flush=True)
        seconds, ours = results["mercer"]
        row = [name, f"{X.shape[0]:,} x {X.shape[1]}", f"{len(np.unique(y))}", f"{seconds:.2f} s"]
        for who in ("scikit-learn", "intelex"):
            row.append(f"{results[who][0] / seconds:.1f}" if who in results else "")
        peer = results.get("scikit-learn", (0.0, ours))[1]
        apart = np.abs(ours.cv_results_["mean_test_score"] - peer.cv_results_["mean_test_score"])
        row += [f"{ours.best_score_:.4f}", f"{peer.best_score_:.4f}", f"{apart.max():.1e}"]
        rows.append(row)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    header = ["set", "rows", "classes", "mercer", "scikit-learn ÷", "intelex ÷", "best score", "scikit-learn's"]
    report = table([*header, "scores differ by at most"], rows)
    unit = "seconds of the processor, one thread" if arguments.cpu else f"{arguments.threads} threads"
    text = f"{report}\n\n{unit}; peak {peak:,.0f} MB\n\n{machine()}\n"
    print(text)
    if arguments.write is not None:
        arguments.write.write_text(text)


if __name__ == "__main__":
    main()
