"""Stochastic subgradient descent on sparse data: PegasosClassifier against scikit-learn's SGDClassifier.

    python benchmarks/pegasos.py --data DIR [--sets a9a,news20] [--passes 5] [--repeats 5]

Both minimise λ/2 |w|² + mean hinge loss without an intercept, for the same number of passes, each on one thread. Times
are CPU time for each pass and problem, of the whole fit (mercer's with its objective trace and its certificate), the
peers taking turns within one process; medians. Without --data a generated set is used.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
import scipy.sparse as sp
from datasets import sparse
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from mercer import PegasosClassifier

LAM = 1e-4


def generated() -> tuple[Any, np.ndarray]:
    """20,000 samples of 40 words out of 20,000, with labels that depend on them."""
    rng = np.random.default_rng(0)
    n, d, words = 20_000, 20_000, 40
    columns = np.minimum(rng.zipf(1.3, size=(n, words)), d) - 1
    X = sp.csr_matrix((np.ones(n * words), columns.ravel(), np.arange(n + 1) * words), shape=(n, d))
    X.sum_duplicates()
    return normalize(X), (X @ rng.normal(size=d) > 0).astype(int)


def load(name: str, folder: Path | None) -> tuple[Any, np.ndarray]:
    if name == "generated":
        return generated()
    split = sparse(name, folder)
    return (normalize(split.X) if name.startswith("news20") else split.X), split.y


def peers(passes: int) -> dict[str, Callable[[int], Any]]:
    sgd = partial(SGDClassifier, alpha=LAM, max_iter=passes, tol=None, fit_intercept=False, n_jobs=1)
    return {
        "mercer": lambda seed: PegasosClassifier(
            LAM, max_iter=passes, fit_intercept=False, n_jobs=1, random_state=seed
        ),
        "SGDClassifier": lambda seed: sgd(random_state=seed),
        "SGDClassifier, average": lambda seed: sgd(average=True, random_state=seed),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the data sets (NAME.csr.npz)")
    parser.add_argument("--sets", default="", help="names of sets, separated by commas")
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    names = [name for name in given.sets.split(",") if name] or (["a9a", "news20"] if given.data else ["generated"])
    print("| set | n | non-zeros | problems | peer | ms a pass and problem | ratio | accuracy |")
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        X, y = load(name, given.data)
        n_problems = max(1, len(np.unique(y)) if len(np.unique(y)) > 2 else 1)
        seconds: dict[str, list[float]] = {peer: [] for peer in peers(1)}
        accuracy: dict[str, float] = {}
        order = np.random.default_rng(0).permutation(len(y))[:500]
        for make in peers(1).values():
            make(0).fit(X[order], y[order])  # compiles
        # the threads of BLAS keep the processor busy while they wait for work
        with threadpool_limits(1, user_api="blas"):
            for repeat in range(given.repeats):
                for peer, make in peers(given.passes).items():
                    start = process_time()
                    model = make(repeat).fit(X, y)
                    seconds[peer].append(process_time() - start)
                    accuracy[peer] = float(model.score(X, y))
        ours = median(seconds["mercer"])
        for peer, found in seconds.items():
            each = 1e3 * median(found) / (given.passes * n_problems)
            about = f"{name} | {len(y):,} | {X.nnz:,} | {n_problems}" if peer == "mercer" else " | | | "
            print(f"| {about} | {peer} | {each:.2f} | {median(found) / ours:.2f} | {accuracy[peer]:.4f} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
