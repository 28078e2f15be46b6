"""Gaussian process regression: mercer against scikit-learn, to the same likelihood.

    python benchmarks/gaussian_process.py [--sizes 300,1000,2000] [--repeats 3] [--threads 1] [--write FILE]

Both learn three hyper-parameters (height, width, noise) of the same kernel from the same start, with the same optimizer
and tolerances. They take turns within one process on the same number of BLAS threads; medians of processor time, which
other work on the machine disturbs less than the clock. "evaluation" is the time of one likelihood with its gradient.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor as Theirs
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from table import digits, machine, table
from threadpoolctl import threadpool_limits

from mercer import Gaussian, GaussianProcessRegressor, White

# likelihoods that differ by less are the same
EQUAL = 1e-3


def problem(n: int, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """A smooth function of three features with noise."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] ** 2 + 0.1 * random.normal(size=n)


def peers(threads: int) -> dict[str, Callable[[], Any]]:
    """The same model three times: scikit-learn, mercer with scikit-learn's kernel, mercer with its own."""
    kernel = ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(1.0)
    return {
        "scikit-learn": lambda: Theirs(kernel),
        "mercer, their kernel": lambda: GaussianProcessRegressor(kernel, n_jobs=threads),
        "mercer": lambda: GaussianProcessRegressor(1.0 * Gaussian(0.5) + White(1.0), n_jobs=threads),
    }


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = process_time()
    result = call()
    return process_time() - start, result


def compare(n: int, repeats: int, threads: int) -> list[list[str]]:
    """A row for each peer: n first, then its name."""
    X, y = problem(n)
    builders = peers(threads)
    times: dict[str, list[float]] = {name: [] for name in builders}
    single: dict[str, list[float]] = {name: [] for name in builders}
    models: dict[str, Any] = {}
    with threadpool_limits(threads, user_api="blas"):
        for build in builders.values():
            build().fit(X[:50], y[:50])  # imports and compilation
        for turn in range(repeats):
            names = list(builders)
            for name in names[turn % 3 :] + names[: turn % 3]:
                elapsed, models[name] = seconds(lambda build=builders[name]: build().fit(X, y))
                times[name].append(elapsed)
                model = models[name]
                theta = model.kernel_.theta
                call = lambda model=model, theta=theta: model.log_marginal_likelihood(theta, eval_gradient=True)  # noqa: E731
                single[name].append(seconds(call)[0])
    base = median(times["scikit-learn"]), median(single["scikit-learn"])
    best = max(model.log_marginal_likelihood_value_ for model in models.values())
    rows = []
    for name, model in models.items():
        value = model.log_marginal_likelihood_value_
        rows.append([
            f"{n:,}", name, digits(median(times[name])), digits(base[0] / median(times[name])),
            digits(1e3 * median(single[name])), digits(base[1] / median(single[name])),
            f"{value:.4f}", "yes" if value >= best - EQUAL else "no",
        ])  # fmt: skip
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="300,1000,2000", help="numbers of samples, separated by commas")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of each, of which the median counts")
    parser.add_argument("--threads", type=int, default=1, help="threads for BLAS and for mercer")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table as Markdown")
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    rows = [row for n in given.sizes.split(",") for row in compare(int(n), given.repeats, given.threads)]
    header = ["n", "", "fit (s)", "ratio", "evaluation (ms)", "ratio", "log likelihood", "equal"]
    text = f"{machine()}\n\n{table(header, rows)}\n"
    if given.write is not None:
        given.write.write_text(f"# Gaussian process regression\n\n{text}", encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
