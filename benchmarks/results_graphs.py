"""Classification of graphs by nested cross-validation, as in Shervashidze et al. (2011)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from measure import say
from sklearn.model_selection import StratifiedKFold
from structured_graphs import load
from table import digits

from mercer import SVC, Graph, Kernel, LinearSVC, Normalized, RandomWalk, ShortestPath, WeisfeilerLehman

FOLDS, INNER_FOLDS = 10, 3

PATHS: Sequence[Kernel] = [ShortestPath(), ShortestPath(normalize=True)]


def nested(
    matrices: Sequence[Any], y: np.ndarray, penalties: Sequence[float], seed: int
) -> tuple[float, list[tuple[int, float]]]:
    """The accuracy over ten folds, and the matrix and C that three folds of the other nine chose for each.

    A matrix holds kernel values between all graphs, or, if it is sparse, the features of each.
    """
    right, chosen = 0, []
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(y, y):
        scores: Counter[tuple[int, float]] = Counter()
        for a, b in StratifiedKFold(INNER_FOLDS, shuffle=True, random_state=seed).split(train, y[train]):
            learn, judge = train[a], train[b]
            for k, K in enumerate(matrices):
                for C in penalties:
                    scores[k, C] += _right(K, y, learn, judge, C)
        best = max(scores, key=lambda pair: scores[pair])
        chosen.append(best)
        right += _right(matrices[best[0]], y, train, test, best[1])
    return right / len(y), chosen


def _right(K: Any, y: np.ndarray, learn: np.ndarray, judge: np.ndarray, C: float) -> int:
    """The number of test graphs that are classified correctly."""
    if sp.issparse(K):
        predicted = LinearSVC(C=C, loss="hinge").fit(K[learn], y[learn]).predict(K[judge])
    else:
        machine = SVC(kernel="precomputed", C=C).fit(K[np.ix_(learn, learn)], y[learn])
        predicted = machine.predict(K[np.ix_(judge, learn)])
    return int((predicted == y[judge]).sum())


def rows(
    name: str,
    folder: Path,
    families: dict[str, Sequence[Kernel]],
    published: dict[str, str],
    penalties: Sequence[float],
    repeats: int,
    linear: bool = False,
) -> list[list[str]]:
    """A row for each family of kernels; the mean of ``repeats`` runs, and their deviation if there are several.

    ``linear`` takes the feature map of each kernel and a linear machine: with many graphs much faster.
    """
    loaded, y = load(name, folder)
    order = np.random.default_rng(0).permutation(len(y))
    graphs, y = [Graph(loaded[i].edges, node_labels=loaded[i].node_labels) for i in order], y[order]
    found = []
    for family, kernels in families.items():
        start = perf_counter()
        if linear:
            matrices = [kernel.feature_map(graphs, max_dimension=10**7)(graphs) for kernel in kernels]
        else:
            matrices = [kernel(graphs) for kernel in kernels]
            matrices = [K / np.diag(K).mean() for K in matrices]  # one range of C for all
        runs = [nested(matrices, y, penalties, seed) for seed in range(repeats)]
        accuracies = 100 * np.array([accuracy for accuracy, _ in runs])
        spread = f" ± {accuracies.std():.2f}" if repeats > 1 else ""
        (k, C), _ = Counter(pair for _, chosen in runs for pair in chosen).most_common(1)[0]
        evaluation = f"{FOLDS}-fold, nested" + (f", {repeats} times" if repeats > 1 else "")
        found.append(
            [
                f"{name}, {family}", evaluation, f"{accuracies.mean():.2f} %{spread}",
                f"most often C={C:g}, {kernels[k]!r}", published[family], digits(perf_counter() - start),
            ]
        )  # fmt: skip
        say(f"  {found[-1]}")
    return found


def mutag(folder: Path) -> list[list[str]]:
    """188 molecules: do they change the genes of bacteria?"""
    families: dict[str, Sequence[Kernel]] = {
        "subtrees": [WeisfeilerLehman(h, normalize) for h in (1, 2, 3, 5) for normalize in (False, True)],
        "shortest paths": PATHS,
        "walks": [RandomWalk(0.01), RandomWalk(0.1), Normalized(RandomWalk(0.1))],
    }
    published = {"subtrees": "82.05 ± 0.36 %", "shortest paths": "87.28 ± 0.55 %", "walks": "80.72 ± 0.38 %"}
    return rows("mutag", folder, families, published, (1.0, 10.0, 100.0), repeats=5)


def nci1(folder: Path) -> list[list[str]]:
    """4110 molecules: do they act against lung cancer cells?"""
    families: dict[str, Sequence[Kernel]] = {
        "subtrees": [WeisfeilerLehman(h, normalize=True) for h in (2, 5, 8)],
        "shortest paths": PATHS[1:],
    }
    published = {"subtrees": "82.19 ± 0.18 %", "shortest paths": "73.47 ± 0.11 %"}
    return rows("nci1", folder, families, published, (1.0, 10.0), repeats=1, linear=True)


GRAPH_RESULTS: dict[str, Callable[[Path], list[list[str]]]] = {"mutag": mutag, "nci1": nci1}
