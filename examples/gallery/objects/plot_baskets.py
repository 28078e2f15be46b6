"""
Which customers have babies? Baskets as sets
============================================

A shop has thousands of items, a basket holds a few of them. A customer who buys at least one of five secret items has a
baby. The kernel ``Intersection`` counts the items that two baskets share; it never asks how many items there are,
and neither does the theory: the number of customers needed depends on the baskets, not on the catalogue.
"""

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, Intersection, datasets

PALETTE = ("#0072b2", "#e69f00", "#009e73")

customers = (50, 100, 200, 400, 800)
catalogues = (100, 1_000, 10_000)
new = 1000

# %%
# Hard margin, through the origin, with a constant added to the kernel: the machine of the theorem ([SSBD] Theorem 15.4
# and Exercise 16.5). Baskets have at most 20 items.

rng = np.random.default_rng(0)
errors = {d: [] for d in catalogues}
for d in catalogues:
    for m in customers:
        data = datasets.make_baskets(m + new, d, 20, 5, rng)
        machine = SVC(kernel=Intersection() + 1.0, C=np.inf, fit_intercept=False).fit(data.X[:m], data.y[:m])
        errors[d].append(1 - machine.score(data.X[m:], data.y[m:]))

# %%
# The weight of an item is the sum of the coefficients of the support vectors that contain it. The last machine has seen
# 800 customers of a shop with 10,000 items.

weights = Counter()
for basket, beta in zip(machine.support_vectors_, machine.dual_coef_[0], strict=True):
    for item in basket:
        weights[item] += beta
top = weights.most_common(9)
assert {item for item, _ in top[:5]} == data.secret

figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.4), layout="constrained")
for (d, curve), colour, marker in zip(errors.items(), PALETTE, "os^", strict=True):
    left.plot(customers, curve, marker=marker, color=colour, lw=2, label=f"{d:,} items")
left.set(xscale="log", xlabel="customers learnt from", ylabel="error on new customers")
left.set_title("the size of the catalogue hardly matters")
left.set_xticks(customers, map(str, customers))
left.minorticks_off()
left.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
left.legend(frameon=False)
names, values = zip(*top[::-1], strict=True)
right.barh(names, values, color=[PALETTE[1] if name in data.secret else "0.75" for name in names])
right.set(xlabel="weight", title="the nine heaviest of 10,000 items")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

print({f"{d:,} items": f"{curve[-1]:.1%}" for d, curve in errors.items()})
assert max(curve[-1] for curve in errors.values()) < 0.02
assert all(curve[0] > curve[-1] for curve in errors.values())
