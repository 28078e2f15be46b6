"""
Intervals that hold what they promise
=====================================

A prediction without an interval is half an answer. ``SVRCV`` collects the residuals of held-out samples during its
search, and ``predict_interval`` turns them into intervals that contain a new value with a chosen probability. No shape
of the errors is assumed (conformal prediction).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from mercer import SVRCV

BLUE, ORANGE = "#0072b2", "#e69f00"

X, y = load_diabetes(return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, test_size=0.4, random_state=0)
scaler = StandardScaler().fit(X)
model = SVRCV(Cs=5, gammas=5).fit(scaler.transform(X), y)
print(
    f"R² in cross-validation {model.best_score_:.2f}, on new patients {model.score(scaler.transform(X_new), y_new):.2f}"
)

# %%
# Left: 40 new patients, ordered by prediction, each with an 80 % interval. Squares are outside, which one in five may
# be. Right: asked for and found, for many levels.

low, high = model.predict_interval(scaler.transform(X_new), alpha=0.2).T
inside = (low <= y_new) & (y_new <= high)
chosen = np.random.default_rng(2).permutation(len(y_new))[:40]
chosen = chosen[np.argsort(low[chosen])]
levels = np.linspace(0.5, 0.98, 13)
found = []
for level in levels:
    a, b = model.predict_interval(scaler.transform(X_new), alpha=1 - level).T
    found.append(np.mean((a <= y_new) & (y_new <= b)))

figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.4), layout="constrained", width_ratios=(1.9, 1))
place = np.arange(len(chosen))
left.vlines(place, low[chosen], high[chosen], color=BLUE, lw=4, alpha=0.3, label="80 % interval")
for mask, colour, marker, name in ((inside, BLUE, "o", "inside"), (~inside, ORANGE, "s", "outside")):
    kept = mask[chosen]
    left.plot(place[kept], y_new[chosen][kept], marker, color=colour, ms=6, label=name)
left.set(xlabel="patients, ordered by prediction", ylabel="progression of the disease", xticks=[])
left.legend(frameon=False, loc="upper left")
right.plot([0.45, 1], [0.45, 1], color="black", lw=1, ls="--", label="as promised")
right.plot(levels, found, "o-", color=BLUE, label="new patients")
right.set(xlabel="asked for", ylabel="found inside", xlim=(0.47, 1), ylim=(0.47, 1))
right.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
right.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
right.legend(frameon=False)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
print(f"asked for 80 %, found {inside.mean():.0%} of {len(y_new)} new patients")
# 177 new patients: a share of 80 % has a standard deviation of 3 %
assert abs(inside.mean() - 0.8) < 0.09
assert np.abs(np.array(found) - levels).max() < 0.12
