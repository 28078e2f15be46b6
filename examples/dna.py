"""Where does transcription begin? Kernels on strings of DNA, and what a machine has learnt from them.

    python examples/dna.py [--data DIR]

Promoters are short stretches of DNA before a gene, with typical words at typical places. Kernels that count words
wherever they stand (spectrum), that allow gaps (subsequence), and that ask for the place, too (weighted degree), are
compared by cross-validation. The features of the last machine are then asked which word at which place speaks for a
promoter. With --data the 106 strings of the UCI set are read from promoters.tsv.xz in that folder; without it, strings
are generated: random letters with the words TTGACA and TATAAT, not always complete, about 17 letters apart.
"""

from __future__ import annotations

import argparse
import lzma
from pathlib import Path

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score

from mercer import SVC, Kernel, Spectrum, Subsequence, WeightedDegree

LENGTH = 57
# the place of the first letter in the UCI set, counted from the start of transcription
FIRST = -50


def generated(n: int = 120, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Half of the strings have both words, each letter of which is right with probability 0.8."""
    rng = np.random.default_rng(seed)
    strings, labels = [], np.arange(n) % 2
    for label in labels:
        letters = rng.choice(list("ACGT"), LENGTH)
        if label:
            start = 14 + rng.integers(-1, 2)
            for place, word in ((start, "TTGACA"), (start + 23 + rng.integers(-1, 2), "TATAAT")):
                right = rng.random(len(word)) < 0.8
                letters[place : place + len(word)] = np.where(right, list(word), letters[place : place + len(word)])
        strings.append("".join(letters))
    return strings, labels


def read(folder: Path) -> tuple[list[str], np.ndarray]:
    """The strings of the UCI set; 1 for promoters."""
    path = folder / "promoters.tsv.xz"
    if not path.exists():
        raise SystemExit(f"There is no {path.name} in {folder}. Without --data, strings are generated.")
    with lzma.open(path, "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return [row[1].upper() for row in rows], np.array([int(row[0].strip() in ("+", "1", "promoter")) for row in rows])


def main(arguments: list[str] | None = None) -> None:
    """Print accuracies, and the words that speak most for a promoter."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with promoters.tsv.xz")
    options = parser.parse_args(arguments)
    X, y = generated() if options.data is None else read(options.data)
    print(f"{len(X)} strings of {len(X[0])} letters, {int(y.sum())} of them promoters; accuracy by nested 5-fold")
    print("cross-validation, the parameter and C chosen within each training part:\n")
    families: dict[str, tuple[Kernel, dict[str, list[int]]]] = {
        "words anywhere": (Spectrum(normalize=True), {"kernel__k": [2, 3, 4]}),
        "words with gaps": (Subsequence(decay=0.7, normalize=True), {"kernel__k": [2, 3]}),
        "words at places": (WeightedDegree(normalize=True), {"kernel__d": [1, 2, 4]}),
    }
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    for name, (kernel, grid) in families.items():
        search = GridSearchCV(SVC(kernel=kernel), {**grid, "C": [1.0, 10.0]}, cv=folds)
        accuracy = cross_val_score(search, X, y, cv=folds).mean()
        search.fit(X, y)
        print(f"  {name}   {accuracy:6.1%}   {search.best_estimator_.kernel}")
    machine = search.best_estimator_
    print(f"\nThe last machine, on all strings: {machine.certificate_}")

    # w = Σ βᵢ ψ(xᵢ), written out over words at places
    psi = machine.kernel.feature_map(machine.support_vectors_)
    w = (machine.dual_coef_ @ psi(machine.support_vectors_)).ravel()
    print("\nWhat speaks for a promoter (place of the first letter, word, weight):")
    for feature in np.argsort(-w)[:8]:
        place, word = psi.names[feature]
        print(f"  {FIRST + place:4d}  {word:6s} {w[feature]:6.3f}")


if __name__ == "__main__":
    main()
