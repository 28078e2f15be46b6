"""The error of Hard-SVM beside its bound ([SSBD] Theorem 15.4).

    python examples/notes/theorem_15_4.py

If a distribution is separable through the origin with the margin γ, and no sample is longer than ρ, then with
probability 1 - δ the error of Hard-SVM after n samples is at most

    √(4(ρ/γ)²/n) + √(2 log(2/δ)/n)

The distribution: documents of one word out of 100, x = e_j. Word j has a frequency proportional to 1/j, and its own
class, so that w = Σ ±e_j/√100 has the margin γ = 1/√100, and ρ = 1. The error of a machine is known exactly: it is the
frequency of the words that it puts on the wrong side, or on none, because it has not seen them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer import SVC
from mercer.theory import bounds

WORDS, DELTA = 100, 0.05
SIZES = (100, 400, 1600, 6400)


@dataclass(frozen=True)
class Row:
    """The errors of many draws of n samples, and the bound."""

    n: int
    errors: np.ndarray
    bound: float


def experiment(draws: int = 20, seed: int = 0) -> list[Row]:
    """One row for each number of samples."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, WORDS + 1)
    share /= share.sum()
    classes = np.where(np.arange(WORDS) % 3 == 0, -1, 1)
    documents = np.eye(WORDS)
    rows = []
    for n in SIZES:
        errors = []
        for _ in range(draws):
            words = rng.choice(WORDS, n, p=share)
            model = SVC(C=np.inf, kernel="linear", fit_intercept=False).fit(documents[words], classes[words])
            errors.append(share[classes * model.decision_function(documents) <= 0].sum())
        rows.append(Row(n, np.array(errors), bounds.hard_margin(1 / np.sqrt(WORDS), 1.0, n, DELTA)))
    return rows


def main() -> None:
    """Print the mean and the largest error beside the bound."""
    rows = experiment()
    print(f"{len(rows[0].errors)} draws for each n, δ = {DELTA}")
    print("    n   mean error   largest error   bound   draws above the bound")
    for row in rows:
        above = int((row.errors > row.bound).sum())
        print(f"{row.n:5d}   {row.errors.mean():10.2%}   {row.errors.max():13.2%}   {row.bound:5.2f}   {above:21d}")
        # it may fail in a share δ of the draws; here it holds in all of them
        assert above == 0
    means = [row.errors.mean() for row in rows]
    assert means == sorted(means, reverse=True) and means[0] > 0.1
    assert rows[0].bound > 1 > rows[-1].bound  # it says nothing for few samples
    print("The bound falls as 1/√n and is far from tight: it has to hold for every distribution of this margin.")


if __name__ == "__main__":
    main()
