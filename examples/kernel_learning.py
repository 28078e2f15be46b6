"""Which measurements matter? A kernel for each group of columns, and weights that are learnt.

    python examples/kernel_learning.py [--picture weights.png]

Cells of breast tumours are described by ten properties, each by its mean, its standard error and its worst value: three
groups of ten columns. Nine more groups are made of the same columns with their rows shuffled: they tell nothing. The
best single kernel, the plain sum and learnt sums are compared by cross-validation; the weights say which groups the
machine has used.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.preprocessing import StandardScaler

from mercer import SVC, Gaussian, Kernel, MKLClassifier, On

TRUE = ("mean", "error", "worst")
COPIES = 3
GAMMA = 0.03


def samples() -> tuple[np.ndarray, np.ndarray]:
    """The measurements, followed by shuffled copies of each group, and the diagnosis."""
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(0)
    groups = [X[:, 10 * g : 10 * g + 10] for g in range(len(TRUE))]
    shuffled = [group[rng.permutation(len(y))] for group in groups for _ in range(COPIES)]
    return StandardScaler().fit_transform(np.hstack([X, *shuffled])), y


def candidates() -> dict[str, Kernel]:
    """A kernel for each group, by name."""
    names = [*TRUE, *(f"{group}, shuffled" for group in TRUE for _ in range(COPIES))]
    return {f"{g + 1}: {name}": On(slice(10 * g, 10 * g + 10), Gaussian(GAMMA)) for g, name in enumerate(names)}


def accuracy(machine: SVC, X: np.ndarray, y: np.ndarray) -> float:
    """The mean of five folds."""
    return float(cross_val_score(machine, X, y, cv=StratifiedKFold(5, shuffle=True, random_state=0)).mean())


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table of accuracies and the weights; draw them if asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", type=Path, help="a PNG file for the weights")
    options = parser.parse_args(arguments)
    X, y = samples()
    kernels = candidates()
    listed = list(kernels.values())
    single = {name: accuracy(SVC(kernel=kernel), X, y) for name, kernel in kernels.items()}
    best = max(single, key=lambda name: single[name])
    machines = {
        "plain sum": MKLClassifier(listed, weights="uniform"),
        "alignment": MKLClassifier(listed, weights="alignment"),
        "learnt, p = 2": MKLClassifier(listed, norm=2.0),
        "learnt, p = 1": MKLClassifier(listed, norm=1.0),
    }
    print(f"{'kernel':<24}{'accuracy':>9}{'kernels':>9}{'on noise':>10}{'rounds':>8}   relative gap")
    print(f"{'one for all columns':<24}{accuracy(SVC(), X, y):>9.1%}")
    print(f"{'best alone: ' + best:<24}{single[best]:>9.1%}{1:>9}")
    shares = {}
    for name, machine in machines.items():
        score = accuracy(machine, X, y)
        machine.fit(X, y)
        share = machine.kernel_weights_ / machine.kernel_weights_.sum()
        used, proof = np.count_nonzero(share), machine.certificate_
        print(
            f"{name:<24}{score:>9.1%}{used:>9}{share[len(TRUE) :].sum():>10.0%}{machine.n_rounds_:>8}   "
            f"{proof.relative_gap:.0e} of {proof.of}"
        )
        shares[name] = share
    learnt = machines["learnt, p = 1"]
    print("\ngroup                  weight   alignment with the diagnosis")
    for name, weight, alignment in zip(kernels, learnt.kernel_weights_, learnt.alignments_, strict=True):
        print(f"{name:<20}{weight:>9.3f}{alignment:>12.3f}")
    print(f"\nThe kernel, for use in any other machine:\n{learnt.kernel_!r}")
    if options.picture is not None:
        draw(shares, list(kernels), options.picture)


def draw(weights: dict[str, np.ndarray], names: list[str], path: Path) -> None:
    """A bar for each kernel and way to weigh."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 4.2), layout="constrained")
    colours = ["#bbbbbb", "#e0a030", "#6aa5d8", "#1f4e79"]
    height = 0.8 / len(weights)
    for k, ((way, values), colour) in enumerate(zip(weights.items(), colours, strict=True)):
        axes.barh(np.arange(len(names)) + (k - 1.5) * height, values, height, label=way, color=colour)
    axes.set_yticks(np.arange(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("share of the weight")
    axes.set_title("Breast cancer: a kernel for each group of columns; nine groups are noise", loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    print(f"\nThe weights are drawn in {path}.")


if __name__ == "__main__":
    main()
