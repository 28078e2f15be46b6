"""Proteins with a motif that mutates: which string kernel finds it? ([M5], [CS229] 5.4)

    python examples/notes/motif_proteins.py

Strings of amino acids of different lengths; half of them contain a motif of eight letters at any place, two of its
letters replaced. Kernels that count common runs of k letters (Spectrum) see only what is left unbroken; Mismatch
counts runs that differ in one letter, too, and Subsequence letters with gaps between them.

The decision function of a kernel that adds up over the runs of a string is a sum over the places of the string, f(x) =
Σ f(run) + b, so that it says where the motif is.
"""

from __future__ import annotations

import numpy as np

from mercer import SVC, Mismatch, Spectrum, Subsequence, datasets

K = 4
KERNELS = {
    "Spectrum(1)": Spectrum(1),
    "Spectrum(2)": Spectrum(2),
    "Spectrum(4)": Spectrum(4),
    "Mismatch(4, m=1)": Mismatch(K, m=1, alphabet="ACDEFGHIKLMNPQRSTVWY"),
    "Subsequence(3)": Subsequence(3, decay=0.5, normalize=True),
}


def places(model: SVC, strings: list[str]) -> list[np.ndarray]:
    """f of each run of K letters of each string, without the bias."""
    runs = [[x[p : p + K] for p in range(len(x) - K + 1)] for x in strings]
    values = model.function_([run for of_one in runs for run in of_one])
    return np.split(values, np.cumsum([len(of_one) for of_one in runs])[:-1])


def main() -> None:
    """Print the accuracies on new proteins, then where the best kernel sees the motif."""
    train, new = datasets.make_motifs(300), datasets.make_motifs(400, seed=1)
    print(
        f"{len(train.y)} proteins of {min(map(len, train.X))} to {max(map(len, train.X))} letters, motif {train.motif}"
    )
    print("kernel             right on new proteins")
    right = {}
    for name, kernel in KERNELS.items():
        right[name] = SVC(kernel=kernel).fit(train.X, train.y).score(new.X, new.y)
        print(f"{name:<16}   {right[name]:21.1%}")
    assert right["Spectrum(1)"] < right["Spectrum(4)"] < right["Mismatch(4, m=1)"]
    assert right["Mismatch(4, m=1)"] > 0.85

    model = SVC(kernel=KERNELS["Mismatch(4, m=1)"]).fit(train.X, train.y)
    values = places(model, new.X)
    total = np.array([of_one.sum() for of_one in values]) + model.intercept_[0]
    np.testing.assert_allclose(total, model.decision_function(new.X), atol=1e-6)
    inside, by_chance = [], []
    for of_one, start in zip(values, new.places, strict=True):
        if start >= 0:
            touches = np.abs(np.arange(len(of_one)) - start + (K - len(new.motif)) / 2) < (K + len(new.motif)) / 2
            inside.append(touches[of_one.argmax()])
            by_chance.append(touches.mean())
    print(f"\nThe run of the largest weight touches the motif in {np.mean(inside):.1%} of the proteins with a motif,")
    print(f"a run at random in {np.mean(by_chance):.0%}.")
    assert np.mean(inside) > 0.9 > np.mean(by_chance)
    x, start = new.X[1], int(new.places[1])
    print(f"{x}\n{' ' * start}{'^' * len(new.motif)} {new.motif} was here before its mutations")


if __name__ == "__main__":
    main()
