"""
Time series of different speed and length
=========================================

A gesture is the same whether it is made fast or slowly. Comparing two series point by point misses that, and needs
series of equal length. The global alignment kernel sums over all ways to stretch one series onto the other, and unlike
dynamic time warping it is a kernel in Mercer's sense.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score

from mercer import SVC, GlobalAlignment, check_mercer

BLUE, ORANGE = "#0072b2", "#e69f00"

# %%
# Two gestures: up and then down, down and then up. Each is made once in a series of 60 to 100 points, at any time and
# at its own speed. This is where alignment pays. Series that are warped only a little may be told apart better point by
# point: try both by cross-validation.


def gesture(sign, rng):
    """Return a series with the gesture at a random time, and noise."""
    t = np.arange(int(rng.integers(60, 101)))
    middle, width = rng.uniform(8, len(t) - 8), rng.uniform(1.2, 2.4)
    up, down = (np.exp(-(((t - middle + side * 1.5 * width) / width) ** 2) / 2) for side in (1, -1))
    return sign * (up - down) + 0.15 * rng.normal(size=len(t))


NAMES = ("down, then up", "up, then down")
rng = np.random.default_rng(0)
y = np.arange(80) % 2
X = [gesture(2 * label - 1, rng) for label in y]

# %%
# The kernel matrix, ordered by class, beside some of the series.

kernel = GlobalAlignment(gamma=0.3)
K = kernel(X)
assert check_mercer(K).positive_semidefinite

figure = plt.figure(figsize=(12, 4.4), layout="constrained")
grid = figure.add_gridspec(2, 3, width_ratios=(1.3, 1.15, 1))
for k, (name, colour) in enumerate(zip(NAMES, (BLUE, ORANGE), strict=True)):
    ax = figure.add_subplot(grid[k, 0])
    for i in np.flatnonzero(y == k)[:5]:
        ax.plot(X[i], color=colour, lw=1.2, alpha=0.75)
    ax.set(xlim=(0, 100), ylim=(-1.7, 1.7), yticks=[], ylabel=name)
    ax.spines[["top", "right"]].set_visible(False)
    if k == 0:
        ax.set_xticks([])
ax.set_xlabel("time")
ax = figure.add_subplot(grid[:, 1])
order = np.argsort(y, kind="stable")
ax.imshow(np.log10(np.maximum(K[np.ix_(order, order)], 1e-6)), cmap="viridis")
ax.set_yticks([19.5, 59.5], NAMES, rotation=90, va="center")
ax.set(xticks=[], xlabel="log kernel values, ordered by gesture")

# %%
# Against two simpler views: the series resampled to 60 points, and only its mean, deviation and length.

folds = StratifiedKFold(5, shuffle=True, random_state=0)
resampled = np.array([np.interp(np.linspace(0, 1, 60), np.linspace(0, 1, len(x)), x) for x in X])
summary = np.array([[x.mean(), x.std(), len(x) / 60] for x in X])
accuracy = {
    "mean, deviation, length": cross_val_score(SVC(C=10), summary, y, cv=folds).mean(),
    "point by point": cross_val_score(SVC(C=10), resampled, y, cv=folds).mean(),
    "global alignment": cross_val_score(SVC(kernel=kernel, C=10), X, y, cv=folds).mean(),
}
print({name: f"{value:.1%}" for name, value in accuracy.items()})
ax = figure.add_subplot(grid[:, 2])
ax.bar(
    ["mean,\ndeviation,\nlength", "point\nby point", "global\nalignment"], accuracy.values(), color=["0.6", "0.6", BLUE]
)
ax.bar_label(ax.containers[0], [f"{value:.0%}" for value in accuracy.values()], padding=2)
ax.axhline(0.5, color="black", lw=1, ls="--")
ax.set(ylim=(0, 1.05), ylabel="cross-validated accuracy")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
assert accuracy["global alignment"] > accuracy["point by point"] + 0.05
assert accuracy["global alignment"] > 0.9
