"""Test results on public sets of strings and graphs, beside published ones.

    python benchmarks/results.py --data DIR [--sets promoters,celegans_acceptor]

Parameters are chosen by cross-validation within the training part alone (nested where there is no official split).
"""

from __future__ import annotations

import argparse
import lzma
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
from results_graphs import GRAPH_RESULTS
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, LeaveOneOut, StratifiedKFold, cross_val_predict
from table import digits, table

from mercer import SVC, Kernel, Spectrum, Subsequence, WeightedDegree

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
        search = GridSearchCV(
            SVC(), {"kernel": kernels, "C": [1.0, 10.0]}, cv=StratifiedKFold(5, shuffle=True, random_state=0)
        )
        wrong = int((cross_val_predict(search, X, y, cv=LeaveOneOut()) != y).sum())
        chosen = search.fit(X, y).best_params_
        found.append(
            ["promoters, " + name, "leave one out, errors of 106", str(wrong), _text(chosen), published, _since(start)]
        )
    return found


def acceptor(folder: Path) -> list[list[str]]:
    """30,000 places of C. elegans DNA around AG, 141 bases: does an exon begin here?"""
    rows = lines("celegans_acceptor", folder)
    train, test = ([row for row in rows if row[0] == part] for part in ("train", "test"))
    X, Z = ([row[2] for row in part] for part in (train, test))
    y, z = (np.array([int(row[1]) for row in part]) for part in (train, test))
    start = perf_counter()
    search = GridSearchCV(
        SVC(), {"kernel": [WeightedDegree(d, normalize=True) for d in (5, 10, 20)], "C": [1.0, 5.0]}, cv=3
    )
    search.fit(X[:3000], y[:3000])
    found = []
    for name, parameters in (
        ("weighted degree", search.best_params_),
        ("spectrum", {"kernel": Spectrum(6, shortest=3, normalize=True), "C": 5.0}),
    ):
        machine = SVC(**parameters).fit(X, y)
        values = machine.decision_function(Z)
        accuracy = float(np.mean(np.where(values > 0, 1, -1) == z))
        result = (
            f"accuracy {100 * accuracy:.2f} %, area under ROC {100 * roc_auc_score(z, values):.2f} %, under "
            f"precision-recall {100 * average_precision_score(z, values):.2f} %"
        )
        published = "weighted degree better than Markov chains, GeneSplicer and SpliceMachine (Sonnenburg et al. 2007)"
        evaluation = f"{len(X):,} train, {len(Z):,} test, {100 * np.mean(z < 0):.1f} % negative"
        found.append([f"celegans_acceptor, {name}", evaluation, result, _text(parameters), published, _since(start)])
        start = perf_counter()
    return found


RESULTS: dict[str, Callable[[Path], list[list[str]]]] = {
    "promoters": promoters,
    "celegans_acceptor": acceptor,
    **GRAPH_RESULTS,
}


def _text(parameters: dict[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in sorted(parameters.items()))


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
