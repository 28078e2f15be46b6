"""
Why many features do no harm: bounds by margin and by dimension
===============================================================

Theory bounds the error on new samples by properties of the training samples. Two bounds are compared. The first counts
the dimensions of the space; the second needs only the ratio of the margin to the length of the samples. With many
features the first says nothing, and the second does not change.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, datasets, error_bounds
from mercer.theory import bounds

BLUE, ORANGE, GREEN = "#0072b2", "#e69f00", "#009e73"

# %%
# Samples of length 1 in *d* dimensions, separable through the origin with margin ½. First *d* grows, with 2,000
# samples.

n, gamma = 2000, 0.5
dimensions = np.unique(np.logspace(0.5, 3.3, 30).astype(int))
by_margin = [min(1.0, bounds.hard_margin(gamma, 1.0, n)) for _ in dimensions]
by_dimension = [min(1.0, bounds.vc(int(d), n)) for d in dimensions]

found = {}
for d in (3, 12, 50, 200, 800):
    data = datasets.make_margin(n + 1000, d, gamma, seed=d)
    machine = SVC(kernel="linear", C=float("inf"), fit_intercept=False).fit(data.X[:n], data.y[:n])
    found[d] = 1 - machine.score(data.X[n:], data.y[n:])
    assert found[d] <= bounds.hard_margin(gamma, 1.0, n)

# %%
# Then the number of samples grows, with 150 dimensions.

sizes = np.unique(np.logspace(2, 6, 40).astype(int))
margin_curve = [min(1.0, bounds.hard_margin(gamma, 1.0, int(m))) for m in sizes]
dimension_curve = [min(1.0, bounds.vc(150, int(m))) for m in sizes]

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", sharey=True)
left.semilogx(dimensions, by_dimension, color=ORANGE, lw=2, label="bound by dimension")
left.semilogx(dimensions, by_margin, color=BLUE, lw=2, label="bound by margin")
left.plot(found.keys(), found.values(), "o", color=GREEN, ms=7, label="error on new samples")
left.set(xlabel="number of features", ylabel="error", title=f"{n:,} samples, margin {gamma:g}", ylim=(-0.03, 1.05))
right.semilogx(sizes, dimension_curve, color=ORANGE, lw=2)
right.semilogx(sizes, margin_curve, color=BLUE, lw=2)
right.set(xlabel="number of samples", title="150 features")
left.text(4, 1.0, "a bound of 1 says nothing", fontsize="small", va="bottom")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
left.legend(frameon=False, loc="center right", bbox_to_anchor=(1.0, 0.62))
plt.show()

# %%
# ``error_bounds`` prints all of this for a fitted machine:

print(error_bounds(machine, data.X[:n], data.y[:n]))
assert by_dimension[-1] == 1.0 and by_margin[-1] < 0.2
assert margin_curve[-1] < dimension_curve[-1]
