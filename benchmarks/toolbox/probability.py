"""Gaussian process classification, inducing points and hypothesis tests beside scikit-learn and hyppo, as ratios.

    python benchmarks/toolbox/probability.py [--large 5000] [--small 1000] [--tests 500] [--repeats 1] [--quick]

Peers take turns in one process; processor seconds on one BLAS thread. hyppo is optional. The classifier is fitted to a
given kernel on the large set, and learns two kernel parameters on the small one.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier as Theirs
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))

from table import digits, table

from mercer import Gaussian, GaussianProcessClassifier, GaussianProcessRegressor, SparseGaussianProcessRegressor, White
from mercer.tests import hsic_test, mmd_test


def labelled(n: int, seed: int = 0, d: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Two noisy classes with a curved border."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=n) > 0).astype(int)


def turns(calls: dict[str, Callable[[], Any]], repeats: int) -> tuple[dict[str, float], dict[str, Any]]:
    """Median processor seconds of each call, taking turns, and their last results."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    results: dict[str, Any] = {}
    for _ in range(repeats):
        for name, call in calls.items():
            start = process_time()
            results[name] = call()
            times[name].append(process_time() - start)
    return {name: median(values) for name, values in times.items()}, results


def rows_of(job: str, times: dict[str, float], remark: str) -> list[list[str]]:
    """A row for each peer; ratios are those to mercer's time."""
    own = times["mercer"]
    return [[job, name, digits(t), digits(t / own), remark if name == "mercer" else ""] for name, t in times.items()]


def classification(large: int, small: int, repeats: int) -> list[list[str]]:
    """A given kernel on many samples, a learnt one on fewer, and probabilities."""
    kernel, found = 4.0 * RBF(1.5), []
    for job, n, optimizer in (("fit, given kernel", large, None), ("fit, learnt kernel", small, "fmin_l_bfgs_b")):
        X, y = labelled(n)
        new, _ = labelled(500, seed=1)
        times, models = turns(
            {
                "mercer": lambda o=optimizer, X=X, y=y: GaussianProcessClassifier(kernel, optimizer=o, n_jobs=1).fit(
                    X, y
                ),
                "scikit-learn": lambda o=optimizer, X=X, y=y: Theirs(kernel, optimizer=o).fit(X, y),
            },
            repeats,
        )
        mine, theirs = models["mercer"], models["scikit-learn"]
        apart = np.abs(mine.predict_proba(new) - theirs.predict_proba(new)).max()
        evidence = mine.log_marginal_likelihood() - theirs.log_marginal_likelihood()
        found += rows_of(f"{job}, n = {n:,}", times, f"evidence {evidence:+.1e}, probabilities {apart:.1e} apart")
        times, _ = turns(
            {
                "mercer": lambda m=mine, new=new: m.predict_proba(new),
                "scikit-learn": lambda m=theirs, new=new: m.predict_proba(new),
            },
            repeats,
        )
        found += rows_of(f"500 probabilities, n = {n:,}", times, "")
    return found


def inducing(n: int, repeats: int) -> list[list[str]]:
    """The exact process and inducing points, to the same kernel."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (n, 2))
    y = np.sin(X[:, 0]) + np.cos(X[:, 1]) + 0.2 * rng.normal(size=n)
    times, models = turns(
        {
            "mercer": lambda: SparseGaussianProcessRegressor(1.0 * Gaussian(1.0), n_jobs=1).fit(X, y),
            "exact process": lambda: GaussianProcessRegressor(1.0 * Gaussian(1.0) + White(0.1), n_jobs=1).fit(X, y),
        },
        repeats,
    )
    bounds, exact = models["mercer"].evidence_bounds_, models["exact process"].log_marginal_likelihood_value_
    points = len(models["mercer"].dual_coef_)
    remark = f"{points} points; evidence in [{bounds.lower:.2f}, {bounds.upper:.2f}], exact {exact:.2f}"
    return rows_of(f"inducing points, n = {n:,}", times, remark)


def plain_mmd(X: np.ndarray, Y: np.ndarray, count: int) -> float:
    """The permutation test of MMD² with NumPy: one Gram matrix, a permuted copy for each permutation."""
    both, m, rng = np.vstack([X, Y]), len(X), np.random.default_rng(0)
    distance = ((both[:, None] - both[None]) ** 2).sum(-1)
    K = np.exp(-distance / (2 * np.median(distance)))

    def value(order: np.ndarray) -> float:
        P = K[np.ix_(order, order)]
        return float(P[:m, :m].mean() + P[m:, m:].mean() - 2 * P[:m, m:].mean())

    observed = value(np.arange(len(both)))
    return float(np.mean([value(rng.permutation(len(both))) >= observed for _ in range(count)]))


def plain_hsic(X: np.ndarray, Y: np.ndarray, count: int) -> float:
    """The permutation test of HSIC with NumPy."""
    rng, grams = np.random.default_rng(0), []
    for A in (X, Y):
        distance = ((A[:, None] - A[None]) ** 2).sum(-1)
        K = np.exp(-distance / (2 * np.median(distance)))
        grams.append(K - K.mean(0) - K.mean(1)[:, None] + K.mean())
    observed = (grams[0] * grams[1]).sum()
    orders = [rng.permutation(len(X)) for _ in range(count)]
    return float(np.mean([(grams[0] * grams[1][np.ix_(order, order)]).sum() >= observed for order in orders]))


def hypothesis_tests(n: int, repeats: int, count: int = 1000) -> list[list[str]]:
    """Two samples of n each, and n pairs, with 1,000 permutations."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(n, 2)), rng.normal(size=(n, 2))
    two: dict[str, Callable[[], Any]] = {
        "mercer": lambda: mmd_test(X, Y, n_permutations=count, random_state=0, n_jobs=1),
        "NumPy": lambda: plain_mmd(X, Y, count),
    }
    pairs: dict[str, Callable[[], Any]] = {
        "mercer": lambda: hsic_test(X, Y, n_permutations=count, random_state=0, n_jobs=1),
        "NumPy": lambda: plain_hsic(X, Y, count),
    }
    try:
        from hyppo.independence import Hsic
        from hyppo.ksample import MMD

        two["hyppo"] = lambda: MMD().test(X, Y, reps=count, workers=1, auto=False)
        pairs["hyppo"] = lambda: Hsic().test(X, Y, reps=count, workers=1, auto=False)
    except ImportError:
        print("hyppo is not installed: left out\n")
    found = []
    for name, calls in ((f"MMD, {n} and {n} samples", two), (f"HSIC, {n} pairs", pairs)):
        times, _ = turns(calls, repeats)
        found += rows_of(name, times, f"{count:,} permutations")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", type=int, default=5000)
    parser.add_argument("--small", type=int, default=1000)
    parser.add_argument("--tests", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    given = parser.parse_args()
    if given.quick:
        given.large, given.small, given.tests = 600, 200, 60
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        X, y = labelled(100)
        GaussianProcessClassifier(4.0 * RBF(1.5)).fit(X, y).predict_proba(X)  # compiled before the clock runs
        SparseGaussianProcessRegressor(1.0 * Gaussian(1.0), n_inducing=10).fit(X, X[:, 0])
        rows = classification(given.large, given.small, given.repeats)
        rows += inducing(2 * given.small, given.repeats)
        rows += hypothesis_tests(given.tests, given.repeats)
    print(table(["job", "package", "CPU seconds", "times mercer's", "remark"], rows))


if __name__ == "__main__":
    main()
