"""Test results on public sets of strings and graphs, beside published ones.

    python benchmarks/results.py --data DIR [--sets promoters,celegans_acceptor]

Parameters are chosen by cross-validation within the training part alone (nested where there is no official split).
"""

from __future__ import annotations

import argparse
import lzma
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from time import perf_counter

import numpy as np
from measure import say
from results_graphs import GRAPH_RESULTS
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, LeaveOneOut, StratifiedKFold
from table import digits, table

from mercer import SVC, Kernel, Spectrum, Subsequence, WeightedDegree

# training samples on which the parameters of the largest set are chosen
CHOSEN_ON = 3000
HEADER = ["set", "evaluation", "result", "parameters chosen", "published", "seconds"]


def lines(name: str, folder: Path) -> list[list[str]]:
    """The fields of each line of a set of strings."""
    with lzma.open(folder / f"{name}.tsv.xz", "rt", encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t") for line in file]


def promoters(folder: Path) -> list[list[str]]:
    """106 pieces of E. coli DNA of 57 bases: does transcription begin here?"""
    rows = lines("promoters", folder)
    X, y = [row[1] for row in rows], np.array([row[0] for row in rows])
    families: dict[str, list[Kernel]] = {
        "spectrum": [Spectrum(k, normalize=True) for k in (2, 3, 4, 5)],
        "subsequence": [Subsequence(k, decay, normalize=True) for k in (2, 3) for decay in (0.5, 0.8)],
        "weighted degree": [WeightedDegree(d, normalize=True) for d in (1, 2, 3, 5)],
    }
    published = "KBANN 4, back-propagation 8, O'Neill 12, nearest neighbour 13, ID3 19 (Towell et al. 1990)"
    found = []
    for name, kernels in families.items():
        start = perf_counter()
        wrong, chosen = leave_one_out(kernels, (1.0, 10.0), X, y)
        evaluation = "leave one out, nested, errors of 106"
        found.append([f"promoters, {name}", evaluation, str(wrong), chosen, published, _since(start)])
        say(f"  {found[-1]}")
    return found


def leave_one_out(kernels: list[Kernel], penalties: tuple[float, ...], X: list[str], y: np.ndarray) -> tuple[int, str]:
    """Errors if three folds of all other samples choose kernel and C; and the most frequent choice.

    Matrices are computed once for all folds.
    """
    matrices = [kernel(X) for kernel in kernels]
    wrong, chosen = 0, Counter[tuple[int, float]]()
    for train, test in LeaveOneOut().split(y):
        right = Counter[tuple[int, float]]()
        for a, b in StratifiedKFold(3, shuffle=True, random_state=0).split(train, y[train]):
            for pair in product(range(len(kernels)), penalties):
                right[pair] += int((_predicted(matrices, pair, y, train[a], train[b]) == y[train[b]]).sum())
        best = max(right, key=lambda pair: right[pair])
        chosen[best] += 1
        wrong += int(_predicted(matrices, best, y, train, test)[0] != y[test[0]])
    (k, C), _ = chosen.most_common(1)[0]
    return wrong, f"most often C={C:g}, {kernels[k]!r}"


def _predicted(
    matrices: list[np.ndarray], pair: tuple[int, float], y: np.ndarray, train: np.ndarray, test: np.ndarray
) -> np.ndarray:
    """Labels of test samples from a machine on the training samples, for the number of a matrix and C."""
    K = matrices[pair[0]]
    machine = SVC(kernel="precomputed", C=pair[1], n_jobs=1).fit(K[np.ix_(train, train)], y[train])
    return machine.predict(K[np.ix_(test, train)])


def acceptor(folder: Path) -> list[list[str]]:
    """30,000 places of C. elegans DNA around AG, 141 bases: does an exon begin here?"""
    rows = lines("celegans_acceptor", folder)
    train, test = ([row for row in rows if row[0] == part] for part in ("train", "test"))
    X, Z = ([row[2] for row in part] for part in (train, test))
    y, z = (np.array([int(row[1]) for row in part]) for part in (train, test))
    start = perf_counter()
    grid = {"kernel": [WeightedDegree(d, normalize=True) for d in (5, 10, 20)], "C": [1.0, 5.0]}
    search = GridSearchCV(SVC(), grid, cv=3).fit(X[:CHOSEN_ON], y[:CHOSEN_ON])
    machine = SVC(**search.best_params_).fit(X, y)
    values = machine.decision_function(Z)
    areas = roc_auc_score(z, values), average_precision_score(z, values)
    result = (
        f"accuracy {100 * float(np.mean(np.sign(values) == z)):.2f} %, area under ROC {100 * areas[0]:.2f} %, under "
        f"precision-recall {100 * areas[1]:.2f} %"
    )
    published = "weighted degree better than Markov chains, GeneSplicer and SpliceMachine (Sonnenburg et al. 2007)"
    evaluation = f"{len(X):,} train, {len(Z):,} test, {100 * np.mean(z < 0):.1f} % negative"
    parameters = ", ".join(f"{name}={value!r}" for name, value in sorted(search.best_params_.items()))
    return [["celegans_acceptor, weighted degree", evaluation, result, parameters, published, _since(start)]]


RESULTS: dict[str, Callable[[Path], list[list[str]]]] = {
    "promoters": promoters,
    "celegans_acceptor": acceptor,
    **GRAPH_RESULTS,
}


def _since(start: float) -> str:
    return digits(perf_counter() - start)


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--sets", default=",".join(RESULTS), help="which of them, separated by commas")
    options = parser.parse_args(arguments)
    for name in options.sets.split(","):
        print(table(HEADER, RESULTS[name](options.data)), flush=True)


if __name__ == "__main__":
    main()
