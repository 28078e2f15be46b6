"""Which customers have babies? Baskets as sets, and which items matter ([SSBD] Exercise 16.5).

    python examples/supermarket.py [--output supermarket.png]
    python examples/supermarket.py --data DIR      # DIR/groceries_baskets.tsv.xz: a basket a line, items between tabs

A customer buys at most s of d items, and has a baby if one of k secret items is among them. With K the set of these k
items, the indicator vector 1_x of a basket x has

    y (2 <1_K, 1_x> - 1) >= 1

so that baskets with one more feature, the constant 1, are separable with margin γ = 1/√(4k + 1), and no longer than
ρ = √(s + 1). Hard-SVM with the kernel |x ∩ z| + 1 errs on at most √(4(ρ/γ)²/m) + … of new baskets after m of them
([SSBD] Theorem 15.4): polynomial in s and k, and whatever the number d of items. (What is learnt is far better than
this bound, which is below 1 from about 2000 customers on.) The kernel never asks for d: it looks at the items of two
baskets.

The weight of an item is Σ β over the support vectors that contain it. The largest ones belong to K.
"""

from __future__ import annotations

import argparse
import lzma
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mercer import SVC, Intersection, datasets
from mercer.theory import bounds

LARGEST_BASKET, BABY_ITEMS = 20, 5
CATALOGUES = (100, 1_000, 10_000)
CUSTOMERS = (50, 100, 200, 400, 800, 1600)
NEW_CUSTOMERS = 2000


def shop(n: int, d: int, rng: np.random.Generator) -> tuple[list[set[str]], np.ndarray]:
    """Baskets of n customers and whether they have a baby; of d items, "baby 0" to "baby 4" are the k."""
    data = datasets.make_baskets(n, d, LARGEST_BASKET, BABY_ITEMS, rng)
    return data.X, data.y > 0


def machine() -> SVC:
    """Hard-SVM on baskets with a constant feature; homogeneous, as in the theorem."""
    return SVC(kernel=Intersection() + 1.0, C=np.inf, fit_intercept=False)


def item_weights(model: SVC) -> Counter[str]:
    """w_item = Σ β over the support vectors that contain the item."""
    weights: Counter[str] = Counter()
    for basket, beta in zip(model.support_vectors_, model.dual_coef_[0], strict=True):
        for item in basket:
            weights[item] += beta
    return weights


def promised(m: int) -> float:
    """The theorem's bound on the error, which knows k and s, but not d."""
    return bounds.hard_margin(gamma=(4 * BABY_ITEMS + 1) ** -0.5, rho=(LARGEST_BASKET + 1) ** 0.5, n=m)


def learning_curves(rng: np.random.Generator) -> dict[int, list[float]]:
    """The error on new customers for each catalogue and number of customers; prints a line for each of these."""
    errors: dict[int, list[float]] = {d: [] for d in CATALOGUES}
    print("customers   " + "   ".join(f"{d:>6,} items" for d in CATALOGUES) + "   bound for any number of items")
    for m in CUSTOMERS:
        for d in CATALOGUES:
            X, y = shop(m + NEW_CUSTOMERS, d, rng)
            model = machine().fit(X[:m], y[:m])
            errors[d].append(1.0 - model.score(X[m:], y[m:]))
        shown = "   ".join(f"{errors[d][-1]:12.1%}" for d in CATALOGUES)
        print(f"{m:9,}   {shown}   {promised(m):.2f}")
    print(f"\nThe items of the largest weight, of {d:,}, after {m:,} customers:")
    for item, weight in item_weights(model).most_common(BABY_ITEMS + 2):
        print(f"  {item:<10} {weight:6.2f}")
    return errors


def groceries(folder: Path, rng: np.random.Generator) -> None:
    """The same with real baskets: three of their items are made the secret."""
    path = folder / "groceries_baskets.tsv.xz"
    if not path.is_file():
        raise SystemExit(f"There is no {path.name} in {folder}.")
    with lzma.open(path, "rt", encoding="utf-8") as file:
        baskets = [set(line.rstrip("\n").split("\t")) for line in file]
    counts = Counter(item for basket in baskets for item in basket)
    common = sorted(item for item, count in counts.items() if count >= len(baskets) / 20)
    secret = set(rng.choice(common, 3, replace=False).tolist())
    y = np.array([bool(secret & basket) for basket in baskets])
    order = rng.permutation(len(baskets))
    m = len(baskets) // 5
    train, test = order[:m], order[m:]
    model = machine().fit([baskets[i] for i in train], y[train])
    right = model.score([baskets[i] for i in test], y[test])
    print(f"{len(baskets):,} baskets of {len(counts)} items. The secret: {', '.join(sorted(secret))}.")
    print(
        f"Learnt from {m:,} baskets, right on {right:.1%} of the others ({max(y.mean(), 1 - y.mean()):.1%} by chance)."
    )
    for item, weight in item_weights(model).most_common(5):
        print(f"  {item:<24} {weight:6.2f}")


def draw(errors: dict[int, list[float]], path: Path) -> None:
    """Error against the number of customers, with the bound."""
    try:
        import matplotlib
    except ImportError:
        raise SystemExit("The picture needs matplotlib: please run  pip install 'mercer[report]'") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for d, curve in errors.items():
        axis.loglog(CUSTOMERS, np.maximum(curve, 0.5 / NEW_CUSTOMERS), "o-", label=f"{d:,} items")
    axis.loglog(CUSTOMERS, [promised(m) for m in CUSTOMERS], "k--", label="bound, any number of items")
    axis.set_xlabel("customers learnt from")
    axis.set_ylabel(f"error on new customers (the lowest: none of {NEW_CUSTOMERS:,})")
    axis.set_title(f"baskets of at most {LARGEST_BASKET} items, {BABY_ITEMS} of which tell of a baby")
    axis.legend()
    figure.savefig(path, dpi=150)
    plt.close(figure)
    print(f"\n{path} shows these errors and the bound.")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print errors and weights; draw them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with groceries_baskets.tsv.xz")
    parser.add_argument("--output", type=Path, help="where to draw the sample complexity")
    chosen = parser.parse_args(arguments)
    rng = np.random.default_rng(0)
    if chosen.data is not None:
        groceries(chosen.data, rng)
        return
    errors = learning_curves(rng)
    if chosen.output is not None:
        draw(errors, chosen.output)


if __name__ == "__main__":
    main()
