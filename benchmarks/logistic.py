"""Kernel logistic regression: mercer against L-BFGS on the kernel expansion (SciPy), equally close to the optimum.

    python benchmarks/logistic.py [--sizes 1000,2000] [--Cs 1,100] [--repeats 3] [--cap 120] [--write FILE]

Both minimise the same objective over the coefficients and the intercepts, with the same kernel matrix; its computation
counts for neither (mercer fits on the precomputed matrix). L-BFGS stops as soon as its objective is within 1e-6,
relatively, of the lower bound that mercer's dual value gives; mercer stops at a certified gap of 1e-6. Medians of
wall-clock seconds of runs in turns. ">" means that L-BFGS was stopped at the cap.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import make_classification
from table import digits, machine, table

from mercer import Gaussian, KernelLogisticRegression

GAP = 1e-6


class Arrived(Exception):
    """The objective is close enough, or the time is over."""


def problem(n: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """A Gaussian kernel matrix and labels, a tenth of which are random."""
    X, y = make_classification(n, 10, n_informative=6, n_classes=n_classes, flip_y=0.1, random_state=0)
    kernel = Gaussian().bind(X)
    features = kernel.prepare(X)
    return kernel.block(features, features), y


def lbfgs(K: np.ndarray, y: np.ndarray, C: float, bound: float, cap: float) -> tuple[float, bool]:
    """Seconds of L-BFGS until its objective is within GAP of the bound, and whether it got there before the cap."""
    n, k = len(y), len(np.unique(y))
    columns = 1 if k == 2 else k
    codes, rows = 2.0 * y - 1.0, np.arange(n)
    start, best = perf_counter(), [np.inf]

    def objective(v: np.ndarray) -> tuple[float, np.ndarray]:
        A, b = v[: n * columns].reshape(n, columns), v[n * columns :]
        F = K @ A
        f = F + b
        if k == 2:
            loss = C * np.logaddexp(0.0, -codes * f[:, 0]).sum()
            G = (-C * codes / (1.0 + np.exp(codes * f[:, 0])))[:, None]
        else:
            top = f.max(axis=1, keepdims=True)
            P = np.exp(f - top)
            total = P.sum(axis=1, keepdims=True)
            loss = C * float((np.log(total) + top).sum() - f[rows, y].sum())
            G = C * P / total
            G[rows, y] -= C
        value = 0.5 * float((A * F).sum()) + loss
        best[0] = min(best[0], value)
        if best[0] - bound <= GAP * best[0] or perf_counter() - start > cap:
            raise Arrived
        return value, np.concatenate([(F + K @ G).ravel(), G.sum(axis=0)])

    try:
        options = {"maxiter": 10**6, "maxfun": 10**6, "ftol": 0.0, "gtol": 0.0}
        minimize(objective, np.zeros((n + 1) * columns), jac=True, method="L-BFGS-B", options=options)
    except Arrived:
        pass
    return perf_counter() - start, best[0] - bound <= GAP * best[0]


def compare(n: int, n_classes: int, C: float, repeats: int, cap: float) -> list[str]:
    """A row: n, classes, C, the seconds of both, the ratio, Newton steps and the certified gap."""
    K, y = problem(n, n_classes)
    exact = KernelLogisticRegression(C=C, kernel="precomputed", tol=1e-12).fit(K, y)
    ours: list[float] = []
    theirs: list[float] = []
    arrived = True
    for repeat in range(repeats):
        start = perf_counter()
        model = KernelLogisticRegression(C=C, kernel="precomputed", tol=GAP).fit(K, y)
        ours.append(perf_counter() - start)
        if repeat == 0 or arrived:  # L-BFGS is tried once if it does not arrive
            seconds, arrived = lbfgs(K, y, C, exact.certificate_.dual, cap)
            theirs.append(seconds)
    ratio = median(theirs) / median(ours)
    sign = "" if arrived else "> "
    row = [str(n), str(n_classes), f"{C:g}", digits(median(ours)), sign + digits(median(theirs)), f"{sign}{ratio:.0f}"]
    return [*row, str(model.n_iter_), f"{model.certificate_.relative_gap:.0e}"]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1000,2000")
    parser.add_argument("--Cs", default="1,100")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cap", type=float, default=120.0)
    parser.add_argument("--write", type=Path, default=None)
    given = parser.parse_args(arguments)
    rows = [
        compare(int(n), n_classes, float(C), given.repeats, given.cap)
        for n in given.sizes.split(",")
        for n_classes in (2, 3)
        for C in given.Cs.split(",")
    ]
    head = ["n", "classes", "C", "mercer s", "L-BFGS s", "ratio", "Newton steps", "gap"]
    text = f"{machine()}\n\n{table(head, rows)}\n"
    print(text)
    if given.write is not None:
        given.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
