"""The supermarket: who has a baby? ([SSBD] Exercise 16.5)

    python examples/notes/exercise_16_5.py

Answer: let 1_x be the indicator vector of a basket x and 1_K that of the k items. y(2<1_K, 1_x> - 1) >= 1, so that
with one more feature, the constant 1, the baskets are separable through the origin with the margin γ = 1/√(4k + 1),
and none is longer than ρ = √(s + 1). By Theorem 15.4 Hard-SVM needs a number of customers of the order (ρ/γ)²/ε² ≈
4ks/ε²: polynomial in s, k and 1/ε, and the same for any number d of items. The kernel |x ∩ x'| + 1 takes O(s) steps.

Checked: margin, radius, the error on new customers for 100 to 100,000 items, and which items have the largest weights.
examples/supermarket.py draws whole learning curves and takes real baskets.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from mercer import SVC, Intersection, datasets
from mercer.theory import bounds

S, K, FEW, CUSTOMERS, NEW = 10, 4, 60, 1000, 2000


def item_weights(model: SVC) -> Counter[str]:
    """w_item = Σ β over the support vectors that contain the item."""
    weights: Counter[str] = Counter()
    for basket, beta in zip(model.support_vectors_, model.dual_coef_[0], strict=True):
        weights.update(dict.fromkeys(basket, float(beta)))
    return weights


def main() -> None:
    """Print margin, radius, error and the secret items for each number of items."""
    gamma, rho = 1 / np.sqrt(4 * K + 1), np.sqrt(S + 1)
    promised = bounds.hard_margin(gamma, rho, CUSTOMERS)
    print(f"baskets of at most s = {S} items, k = {K}, {CUSTOMERS:,} customers")
    print(f"1/√(4k + 1) = {gamma:.3f}, √(s + 1) = {rho:.3f}, the bound on the error {promised:.2f} for any d")
    print(f"  items d   margin   longest   error after {FEW:,}, after {CUSTOMERS:,}   items of the largest weights")
    early, late = [], []
    for d in (100, 1_000, 10_000, 100_000):
        data = datasets.make_baskets(CUSTOMERS + NEW, d, S, K)
        X, y = data.X[:CUSTOMERS], data.y[:CUSTOMERS]
        new, labels = data.X[CUSTOMERS:], data.y[CUSTOMERS:]
        machine = SVC(kernel=Intersection() + 1.0, C=np.inf, fit_intercept=False)
        early.append(1 - machine.fit(X[:FEW], y[:FEW]).score(new, labels))
        model = machine.fit(X, y)
        late.append(1 - model.score(new, labels))
        longest = np.sqrt(1 + max(len(x) for x in X))
        found = [item for item, _ in item_weights(model).most_common(K)]
        errors = f"{early[-1]:15.1%} {late[-1]:12.1%}"
        print(f"{d:9,}   {model.margin_[0]:6.3f}   {longest:7.3f}   {errors}   {', '.join(sorted(found))}")
        assert model.margin_[0] >= gamma * (1 - 1e-3) and longest <= rho
        assert set(found) == data.secret
    assert max(late) < 0.02 < promised
    assert max(late) <= min(early) and max(late) < max(early)


if __name__ == "__main__":
    main()
