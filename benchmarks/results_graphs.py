"""Classification of graphs by nested cross-validation, as in Shervashidze et al. (2011)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

import numpy as np
from measure import say
from sklearn.model_selection import StratifiedKFold
from structured_graphs import load
from table import digits

from mercer import SVC, Graph, Kernel, Normalized, RandomWalk, ShortestPath, WeisfeilerLehman

FOLDS, INNER_FOLDS = 10, 3

SUBTREES: Sequence[Kernel] = [WeisfeilerLehman(h, normalize=True) for h in (1, 2, 3, 4, 6, 8)]
PATHS: Sequence[Kernel] = [ShortestPath(normalize=True)]
WALKS: Sequence[Kernel] = [Normalized(RandomWalk(decay)) for decay in (0.01, 0.05, 0.1)]


def nested(
    matrices: Sequence[np.ndarray], y: np.ndarray, penalties: Sequence[float], seed: int
) -> tuple[float, list[tuple[int, float]]]:
    """The accuracy over ten folds, and what was chosen in each by three folds of the other nine: matrix and C."""
    right, chosen = 0, []
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(y, y):
        scores: Counter[tuple[int, float]] = Counter()
        for a, b in StratifiedKFold(INNER_FOLDS, shuffle=True, random_state=seed).split(train, y[train]):
            learn, judge = train[a], train[b]
            for k, K in enumerate(matrices):
                square, beside = K[np.ix_(learn, learn)], K[np.ix_(judge, learn)]
                for C in penalties:
                    scores[k, C] += int((_machine(C).fit(square, y[learn]).predict(beside) == y[judge]).sum())
        best = max(scores, key=lambda pair: scores[pair])
        chosen.append(best)
        K = matrices[best[0]]
        model = _machine(best[1]).fit(K[np.ix_(train, train)], y[train])
        right += int((model.predict(K[np.ix_(test, train)]) == y[test]).sum())
    return right / len(y), chosen


def _machine(C: float) -> SVC:
    return SVC(kernel="precomputed", C=C, cache_size=2000)


def rows(
    name: str,
    folder: Path,
    families: dict[str, Sequence[Kernel]],
    published: dict[str, str],
    penalties: Sequence[float],
    repeats: int,
) -> list[list[str]]:
    """A row for each family of kernels; the mean of ``repeats`` runs, and their deviation if there are several."""
    loaded, y = load(name, folder)
    order = np.random.default_rng(0).permutation(len(y))
    graphs, y = [Graph(loaded[i].edges, node_labels=loaded[i].node_labels) for i in order], y[order]
    found = []
    for family, kernels in families.items():
        start = perf_counter()
        matrices = [kernel(graphs) for kernel in kernels]
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
    families = {"subtrees": SUBTREES, "shortest paths": PATHS, "walks": WALKS}
    published = {"subtrees": "82.05 ± 0.36 %", "shortest paths": "87.28 ± 0.55 %", "walks": "80.72 ± 0.38 %"}
    return rows("mutag", folder, families, published, (0.1, 1.0, 10.0, 100.0), repeats=10)


def nci1(folder: Path) -> list[list[str]]:
    """4110 molecules: do they act against lung cancer cells?"""
    families = {"subtrees": [SUBTREES[k] for k in (1, 3, 4, 5)], "shortest paths": PATHS}
    published = {"subtrees": "82.19 ± 0.18 %", "shortest paths": "73.47 ± 0.11 %"}
    return rows("nci1", folder, families, published, (1.0, 10.0), repeats=1)


GRAPH_RESULTS: dict[str, Callable[[Path], list[list[str]]]] = {"mutag": mutag, "nci1": nci1}
