"""Influence, contributions and robustness: seconds beside fits from nothing, and how sharp the certified radii are.

    python benchmarks/toolbox/influence.py [--sizes 300,1000,3000] [--data DIR]

Times are seconds of the processor, in turns in one process. A fit per row is measured with 20 rows and multiplied by
the number of support vectors, since other rows need none; scikit-learn's fits are those of LIBSVM at the same tol.
Other packages have no exact influence: influence functions (as in pyDVL) linearise at the present solution, the first
order of the closed form. With --data the promoters are explained, which show where known boxes are.
"""

from __future__ import annotations

import argparse
import lzma
import time
from pathlib import Path

import numpy as np
import sklearn.svm
from sklearn.datasets import load_digits, make_classification, make_moons

from mercer import SVC, SVR, WeightedDegree, contributions, influence, robustness

TOL = 1e-6
TRIALS = 20


def seconds(function):
    start = time.process_time()
    found = function()
    return time.process_time() - start, found


def refits(model, X, y):
    """Seconds of a fit without each support vector, from nothing, by mercer and by scikit-learn."""
    parameters = {"C": model.C, "gamma": model._gamma, "tol": TOL}
    other = sklearn.svm.SVR if isinstance(model, SVR) else sklearn.svm.SVC
    rows = model.support_[:: max(1, len(model.support_) // TRIALS)][:TRIALS]
    spent = []
    for kind in (type(model), other):
        time_of = 0.0
        for i in rows:
            rest = np.arange(len(y)) != i
            machine = kind(**parameters)
            time_of += seconds(lambda machine=machine, rest=rest: machine.fit(X[rest], y[rest]))[0]
        spent.append(time_of / len(rows) * len(model.support_))
    return spent


def influences(sizes):
    print("Influence of each training row on 100 others; ratios: a fit per support vector over mercer.influence.\n")
    print(
        "| machine | n | SVs | closed form | refits | mercer, CPU s | mercer's fits / it | scikit-learn's fits / it |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for n in sizes:
        X, y = make_classification(n + 100, 20, n_informative=6, flip_y=0.05, class_sep=1.0, random_state=0)
        t = X[:, 0] * X[:, 1] + 0.3 * np.random.default_rng(0).normal(size=len(y))
        for name, model, targets in (
            ("SVC, C=1", SVC(), y),
            ("SVC, C=100", SVC(C=100.0), y),
            ("SVR, C=1", SVR(epsilon=0.2), t),
        ):
            model.fit(X[:n], targets[:n])
            influence(model, X[n:], X[:n], targets[:n])
            own, found = seconds(lambda m=model, t=targets, n=n, X=X: influence(m, X[n:], X[:n], t[:n], tol=TOL))
            fits, others = refits(model, X[:n], targets[:n])
            print(
                f"| {name} | {n:,} | {len(model.support_):,} | {found.n_closed} | {found.n_refits} | {own:.2f} | "
                f"{fits / own:.1f} | {others / own:.1f} |"
            )


def radii():
    print("\nRobustness: the certified radius as a share of the distance of a counterexample, quantiles over rows.\n")
    print("| machine | rows | CPU s | 10 % | median | 90 % |\n|---|---|---|---|---|---|")
    moons, digits = make_moons(300, noise=0.2, random_state=0), load_digits(return_X_y=True)
    for name, (X, y), model in (
        ("moons, C=10", moons, SVC(C=10.0)),
        ("moons, C=10, γ=5", moons, SVC(C=10.0, gamma=5.0)),
        ("moons, linear", moons, SVC(kernel="linear")),
        ("digits, ten classes", digits, SVC()),
        ("digits, ten classes, linear", digits, SVC(kernel="linear")),
    ):
        model.fit(X[:-50], y[:-50])
        spent, found = seconds(lambda m=model, X=X: robustness(m, X[-50:]))
        shares = np.quantile(found.lower / found.upper, [0.1, 0.5, 0.9])
        print(f"| {name} | 50 | {spent:.2f} | " + " | ".join(f"{share:.2f}" for share in shares) + " |")


def promoters(folder):
    with lzma.open(folder / "promoters.tsv.xz", "rt") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    strings, y = [row[1] for row in rows], np.array([row[0] == "+" for row in rows])
    model = SVC(kernel=WeightedDegree(4), C=10.0).fit(strings, y)
    spent, found = seconds(lambda: contributions(model, strings))
    error = np.abs(found.decision_function[:, 0] - model.decision_function(strings)).max()
    profile = np.mean([found.by_place(i) for i in np.flatnonzero(y)], axis=0)
    print(f"\npromoters: {spent:.2f} s, largest error of the sums {error:.1e}")
    print("positions that speak for a promoter, the strongest first:", np.argsort(-profile)[:10].tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="300,1000,3000")
    parser.add_argument("--data", type=Path, default=None)
    arguments = parser.parse_args()
    influences([int(size) for size in arguments.sizes.split(",")])
    radii()
    if arguments.data is not None:
        promoters(arguments.data)


if __name__ == "__main__":
    main()
