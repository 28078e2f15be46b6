"""
Sets of labels instead of a guess
=================================

A machine that must name one label names one, even where it is undecided. ``predict_set`` names as many labels as it
takes to contain the true one with a chosen probability: one for an easy sample, several for a hard one. No assumption
about the data is needed except that new samples are like the old ones (conformal prediction).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from mercer import SVCCV

BLUE, ORANGE, GREEN, RED = "#0072b2", "#e69f00", "#009e73", "#d55e00"

# %%
# Digits with much noise, so that there is something to be undecided about.

X, y = load_digits(return_X_y=True)
X = X / 16 + np.random.default_rng(0).normal(scale=0.35, size=X.shape)
X, X_new, y, y_new = train_test_split(X, y, train_size=700, stratify=y, random_state=0)
model = SVCCV(Cs=4, gammas=4).fit(X, y)
print(f"chosen: C = {model.C_:.3g}, gamma = {model.gamma_:.3g}; right on new digits: {model.score(X_new, y_new):.1%}")

# %%
# Ask for sets that hold the truth in 90 of 100 cases, and count.

sets = model.predict_set(X_new, alpha=0.1)
sizes = np.array([len(labels) for labels in sets])
covered = np.mean([label in labels for label, labels in zip(y_new, sets, strict=True)])
print(f"asked for 90 %, got {covered:.1%}")
assert abs(covered - 0.9) < 0.03

figure, axes = plt.subplots(2, 7, figsize=(11, 3.9), layout="constrained")
rng = np.random.default_rng(4)
rows = [rng.choice(np.flatnonzero(sizes == size), 7, replace=False) for size in (1, 2)]
for chosen, line, what in zip(rows, axes, ("one label", "two labels"), strict=True):
    for ax, i in zip(line, chosen, strict=True):
        ax.imshow(X_new[i].reshape(8, 8), cmap="gray_r", vmin=-0.3, vmax=1.2)
        inside = y_new[i] in sets[i]
        ax.set_title("{" + ", ".join(map(str, sets[i])) + "}", color="black" if inside else RED, fontsize="large")
        ax.set_xlabel(f"a {y_new[i]}", color="black" if inside else RED)
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(what)
plt.show()

# %%
# The promise holds for every level that one may ask for, and the sets grow with it. Red above: a set that misses the
# truth, as one in ten may.

levels = np.linspace(0.6, 0.99, 14)
coverage, mean_size = [], []
for level in levels:
    mask = model.predict_set(X_new, alpha=1 - level, as_mask=True)
    coverage.append(mask[np.arange(len(y_new)), y_new].mean())
    mean_size.append(mask.sum(axis=1).mean())

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot([0.55, 1], [0.55, 1], color="black", lw=1, ls="--", label="as promised")
left.plot(levels, coverage, "o-", color=BLUE, label="sets that hold the truth")
left.set(xlabel="asked for", ylabel="found on new digits", xlim=(0.58, 1), ylim=(0.58, 1))
left.legend(frameon=False, loc="upper left")
right.plot(levels, mean_size, "s-", color=ORANGE)
right.set(xlabel="asked for", ylabel="labels in a set, on average", xlim=(0.58, 1), ylim=(0, None))
for ax in (left, right):
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    ax.spines[["top", "right"]].set_visible(False)
left.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
plt.show()
assert np.abs(np.array(coverage) - levels).max() < 0.06
assert np.all(np.diff(mean_size) >= 0)
