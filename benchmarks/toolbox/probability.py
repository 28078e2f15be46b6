"""Gaussian process classification, inducing points and hypothesis tests beside scikit-learn and hyppo, as ratios.

    python benchmarks/toolbox/probability.py [--large 5000] [--small 1000] [--tests 500] [--repeats 1] [--quick]
        [--data DIR]

Peers take turns in one process; processor seconds on one BLAS thread. hyppo is optional. The classifier is fitted to a
given kernel on the large set, and learns two kernel parameters on the small one. With --data, the classifier and the
inducing points learn on spam, german_numer, abalone and concrete (NAME.npz), and the tests compare sets whose answer is
known: mails that are spam or not, and measured properties with what they decide.
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
from sklearn.gaussian_process import GaussianProcessRegressor as TheirRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
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


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Standardised samples and targets of a set."""
    with np.load(folder / f"{name}.npz", allow_pickle=False) as found:
        return StandardScaler().fit_transform(found["X"].astype(np.float64)), found["y"]


def real_classes(folder: Path, most: int, repeats: int) -> list[list[str]]:
    """A learnt kernel on measured samples: seconds, evidence, and the log loss of held-out samples."""
    found = []
    for name in ("german_numer", "spam"):
        X, y = load(folder, name)
        X, X_test, y, y_test = train_test_split(X, y, train_size=min(most, len(y) - 300), test_size=300, random_state=0)
        kernel = 4.0 * RBF(np.sqrt(X.shape[1]))
        times, models = turns(
            {
                "mercer": lambda k=kernel, X=X, y=y: GaussianProcessClassifier(k, n_jobs=1).fit(X, y),
                "mercer, expectation propagation": lambda k=kernel, X=X, y=y: GaussianProcessClassifier(
                    k, approximation="ep", n_jobs=1
                ).fit(X, y),
                "scikit-learn": lambda k=kernel, X=X, y=y: Theirs(k).fit(X, y),
            },
            repeats,
        )
        lost = {peer: log_loss(y_test, model.predict_proba(X_test)) for peer, model in models.items()}
        rows = rows_of(f"{name}, n = {len(y):,}, learnt kernel", times, "")
        found += [[*row[:-1], f"log loss {lost[row[1]]:.4f}"] for row in rows]
    return found


def real_inducing(folder: Path, most: int, repeats: int) -> list[list[str]]:
    """Inducing points and exact processes on measured samples: seconds, bounds, and the error of held-out samples."""
    found = []
    for name in ("concrete", "abalone"):
        X, y = load(folder, name)
        y = (y - y.mean()) / y.std()
        X, X_test, y, y_test = train_test_split(X, y, train_size=min(most, len(y) - 300), test_size=300, random_state=0)
        width = np.sqrt(X.shape[1])
        times, models = turns(
            {
                "mercer": lambda X=X, y=y, w=width: SparseGaussianProcessRegressor(
                    1.0 * Gaussian(0.5 / w**2), n_jobs=1
                ).fit(X, y),
                "mercer, exact process": lambda X=X, y=y, w=width: GaussianProcessRegressor(
                    1.0 * Gaussian(0.5 / w**2) + White(0.1), n_jobs=1
                ).fit(X, y),
                "scikit-learn, exact process": lambda X=X, y=y, w=width: TheirRegressor(
                    1.0 * RBF(w) + WhiteKernel(0.1)
                ).fit(X, y),
            },
            repeats,
        )
        bounds, points = models["mercer"].evidence_bounds_, len(models["mercer"].dual_coef_)
        for row in rows_of(f"{name}, n = {len(y):,}", times, ""):
            error = np.sqrt(np.mean((models[row[1]].predict(X_test) - y_test) ** 2))
            if row[1] == "mercer":
                evidence = f"{points} points, evidence in [{bounds.lower:.2f}, {bounds.upper:.2f}]"
            else:
                evidence = f"evidence {models[row[1]].log_marginal_likelihood_value_:.2f}"
            found.append([*row[:-1], f"RMSE {error:.4f}, {evidence}"])
    return found


def real_tests(folder: Path, n: int, repeats: int, count: int = 1000) -> list[list[str]]:
    """The tests on measured samples whose answer is known, beside their null hypothesis on the same samples."""
    X, y = load(folder, "spam")
    order, found = np.random.default_rng(0).permutation(len(y)), []
    X, y = X[order], y[order]
    names = np.unique(y)
    first, second = (X[y == name] for name in names)
    for name, A, B in (("spam or not", first[:n], second[:n]), ("twice not spam", first[:n], first[n : 2 * n])):
        found += tested(f"MMD, {name}, {len(A)} and {len(B)}", mmd_test, plain_mmd, A, B, count, repeats)
    X, y = load(folder, "abalone")
    order = np.random.default_rng(0).permutation(len(y))[:n]
    X, y = X[order], y[order].astype(np.float64)[:, None]
    shuffled = np.random.default_rng(1).permutation(y)
    for name, Y in (("rings of abalone", y), ("shuffled rings", shuffled)):
        found += tested(f"HSIC, {name}, {len(X)} pairs", hsic_test, plain_hsic, X, Y, count, repeats)
    return found


def tested(
    job: str,
    ours: Callable[..., Any],
    plain: Callable[..., float],
    A: np.ndarray,
    B: np.ndarray,
    count: int,
    repeats: int,
) -> list[list[str]]:
    """Seconds and p values of mercer's test and of the one in plain NumPy."""
    times, results = turns(
        {
            "mercer": lambda: ours(A, B, n_permutations=count, random_state=0, n_jobs=1).p_value,
            "NumPy": lambda: plain(A, B, count),
        },
        repeats,
    )
    return [[*row[:-1], f"p = {results[row[1]]:.3f}"] for row in rows_of(job, times, "")]


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
    parser.add_argument("--data", type=Path, help="folder of the data sets; without it generated samples only")
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
        if given.data is not None:
            rows += real_classes(given.data, given.small, given.repeats)
            rows += real_inducing(given.data, 2 * given.small, given.repeats)
            rows += real_tests(given.data, given.tests, given.repeats)
    print(table(["job", "package", "CPU seconds", "times mercer's", "remark"], rows))


if __name__ == "__main__":
    main()
