"""The loss of Soft-SVM beside its bound ([SSBD] Corollary 15.7).

    python examples/notes/corollary_15_7.py

On average over the draws of n samples of length at most ρ, for every u,

    0-1 loss of Soft-SVM <= hinge loss of Soft-SVM <= hinge loss of u + λ|u|² + 2ρ²/(λn)

and for |u| <= B the best λ = √(2ρ²/(B²n)) makes the last two terms √(8ρ²B²/n). The distribution: samples of length 1
in R^100 with the margin γ = 1/4 along e_1, one label in ten wrong; u = 4e_1, whose hinge loss is 0 except for wrong
labels. The losses of the machines are measured on 10,000 new samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer import SVC, datasets, lambda_to_C
from mercer.losses import hinge
from mercer.theory import bounds

D, GAMMA, WRONG, B, NEW = 100, 0.25, 0.1, 4.0, 10_000


@dataclass(frozen=True)
class Row:
    """Losses averaged over draws of n samples for one λ, and the bound."""

    n: int
    lam: float
    error: float
    loss: float
    bound: float


def experiment(n: int, factors: tuple[float, ...] = (0.1, 1.0, 10.0), draws: int = 40, seed: int = 1) -> list[Row]:
    """One row for each λ, given as a multiple of the best."""
    rng = np.random.default_rng(seed)

    def draw(size: int):
        return datasets.make_margin(size, D, GAMMA, WRONG, int(rng.integers(2**32)))

    new = draw(NEW)
    of_u = float(hinge(new.y, B * (new.X @ new.w)).mean())
    rows = []
    for factor in factors:
        lam = factor * bounds.best_lambda(B, 1.0, n)
        errors, losses = [], []
        for _ in range(draws):
            data = draw(n)
            model = SVC(C=lambda_to_C(lam, n), kernel="linear", fit_intercept=False).fit(data.X, data.y)
            f = model.decision_function(new.X)
            errors.append((new.y * f <= 0).mean())
            losses.append(hinge(new.y, f).mean())
        bound = bounds.soft_margin(of_u, B, 1.0, n, lam)
        rows.append(Row(n, lam, float(np.mean(errors)), float(np.mean(losses)), bound))
    return rows


def main() -> None:
    """Print the losses beside the bound, for several n and λ."""
    print("means of 10 draws for each n and λ")
    print("    n        λ   0-1 loss   hinge loss   bound")
    best = []
    for n in (100, 300, 1000):
        rows = experiment(n, draws=10)
        for row in rows:
            print(f"{n:5d}   {row.lam:6.3f}   {row.error:8.3f}   {row.loss:10.3f}   {row.bound:5.2f}")
            assert row.error <= row.loss <= row.bound
        assert min(row.bound for row in rows) == rows[1].bound
        best.append(rows[1])
    assert best[0].loss > best[1].loss > best[2].loss
    assert best[0].bound > best[1].bound > best[2].bound
    print(f"About {WRONG:.0%} of the labels are wrong, which no rule can foresee.")


if __name__ == "__main__":
    main()
