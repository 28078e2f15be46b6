"""Time updates of one sample against fits from nothing, of mercer and of scikit-learn: medians of turns, CPU seconds.

    python benchmarks/toolbox/updates.py [--sizes 500 2000 10000] [--turns 40]

Each turn adds a random sample, removes a random one, and (in the first turns) fits mercer's and scikit-learn's class
to the same samples. "zero", "free" and "bound" are removals of samples of that state.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from sklearn import gaussian_process, kernel_ridge, svm
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from threadpoolctl import threadpool_limits

from mercer import SVC, SVR, Gaussian, GaussianProcessRegressor, KernelRidge, OneClassSVM, White

# n³ methods above this size take too long for a table
LARGEST_SYSTEM = 4000
# numbers of turns in which mercer's and scikit-learn's fits are timed
FITS, PEERS = 7, 3


def problems(n: int) -> dict[str, tuple[Any, Any, Any]]:
    """(updatable model, scikit-learn's model, kind of the targets) by name."""
    found: dict[str, tuple[Any, Any, Any]] = {
        "SVC": (SVC(gamma=0.05), svm.SVC(gamma=0.05), "class"),
        "SVC, 5 classes": (SVC(gamma=0.05), svm.SVC(gamma=0.05), "classes"),
        "SVR": (SVR(gamma=0.05), svm.SVR(gamma=0.05), "value"),
        "OneClassSVM": (OneClassSVM(gamma=0.05, nu=0.1), svm.OneClassSVM(gamma=0.05, nu=0.1), "class"),
    }
    if n <= LARGEST_SYSTEM:
        process = {"optimizer": None}
        found["KernelRidge"] = (
            KernelRidge(alpha=0.1, kernel="rbf", gamma=0.05),
            kernel_ridge.KernelRidge(alpha=0.1, kernel="rbf", gamma=0.05),
            "value",
        )
        found["GaussianProcessRegressor"] = (
            GaussianProcessRegressor(Gaussian(0.05) + White(0.1), **process),
            gaussian_process.GaussianProcessRegressor(RBF(10**0.5) + WhiteKernel(0.1), **process),
            "value",
        )
    return found


def targets_of(kind: str, X: Any, y: Any) -> Any:
    """Targets of this kind."""
    if kind == "class":
        return y
    if kind == "classes":
        return np.argsort(np.argsort(X[:, 0])) * 5 // len(X)
    return np.sin(X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=len(X))


def timed(times: list[float], call: Any, *args: Any) -> None:
    """Call, and append the CPU seconds."""
    start = process_time()
    call(*args)
    times.append(process_time() - start)


def measure(model: Any, peer: Any, X: Any, y: Any, n: int, turns: int) -> dict[str, float]:
    """The median seconds of each kind of update and fit."""
    rng, times = np.random.default_rng(0), defaultdict(list)
    index = list(range(n))
    fresh = clone(model)
    model.set_params(updatable=True).fit(X[:n], y[:n])
    timed(times["first"], model.remove, 0)
    index.pop(0)
    for turn in range(turns):
        new = n + turn
        timed(times["add"], model.add, X[new : new + 1], y[new : new + 1])
        index.append(new)
        place = int(rng.integers(len(index)))
        kind = "remove" if not hasattr(model, "support_") else state(model, place)
        start = process_time()
        model.remove(place)
        spent = process_time() - start
        times["remove"].append(spent)
        if kind != "remove":
            times[kind].append(spent)
        index.pop(place)
        if turn < FITS:
            timed(times["fit"], fresh.fit, X[index], y[index])
        if turn < PEERS:
            timed(times["scikit-learn"], peer.fit, X[index], y[index])
    return {name: median(values) for name, values in times.items()}


def state(model: Any, place: int) -> str:
    """Whether the coefficients of a sample are zero, at their bound, or between."""
    at = np.flatnonzero(model.support_ == place)
    if len(at) == 0:
        return "zero"
    return "bound" if np.abs(model.dual_coef_[:, at]).max() >= 0.999 * getattr(model, "C", 1.0) else "free"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 2000, 10_000])
    parser.add_argument("--turns", type=int, default=40)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    columns = ("fit", "add", "remove", "zero", "free", "bound", "first", "scikit-learn")
    print("CPU milliseconds, medians; 'fit / update' compares mercer's fit with the mean of add and remove\n")
    print("| n | model | " + " | ".join(columns) + " | fit / update |")
    print("|---" * (len(columns) + 3) + "|")
    for n in options.sizes:
        X, y = make_classification(n + options.turns, 10, n_informative=6, flip_y=0.05, random_state=0)
        for name, (model, peer, kind) in problems(n).items():
            with threadpool_limits(1):
                found = measure(model, peer, X, targets_of(kind, X, y), n, options.turns)
            shown = [f"{1e3 * found[c]:.2f}" if c in found else "" for c in columns]
            ratio = found["fit"] / (0.5 * (found["add"] + found["remove"]))
            print(f"| {n:,} | {name} | " + " | ".join(shown) + f" | {ratio:.0f} |", flush=True)


if __name__ == "__main__":
    main()
