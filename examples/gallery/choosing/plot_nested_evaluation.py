"""
The best score of a search is too good
======================================

Toss a coin for each label, and let a search choose among sixty machines by cross-validation. The best score is well
above one half, though nothing can be learnt: it was chosen for being large. ``evaluate`` repeats the whole search in
each of its folds, on samples that the search has not seen.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVCCV, evaluate

BLUE, ORANGE = "#0072b2", "#e69f00"

# %%
# Eight sets of 50 samples with five features and coin-tossed labels. For each: the best score of a search among 60
# machines, and the nested score of the same search.

rng = np.random.default_rng(0)
search = SVCCV(Cs=np.logspace(-2, 3, 10), gammas=np.logspace(-3, 2, 6), cv=3)
seen, nested = [], []
for _ in range(8):
    X, y = rng.normal(size=(50, 5)), rng.permutation(np.arange(50) % 2)
    seen.append(search.fit(X, y).best_score_)
    nested.append(evaluate(search, X, y, cv=3).score)
seen, nested = np.array(seen), np.array(nested)
print(f"coins: the search reports {seen.mean():.1%} on average, the nested score is {nested.mean():.1%}")

# %%
# The same for labels that can be learnt, with more and more samples: the optimism shrinks, and so does the doubt.


def learnable(n):
    """Return points with the labels of a curved boundary, one in ten of them wrong."""
    X = rng.normal(size=(n, 2))
    y = X[:, 1] > np.sin(2 * X[:, 0])
    return X, np.where(rng.random(n) < 0.1, ~y, y).astype(int)


sizes = (30, 60, 120, 240)
X_new, y_new = learnable(5000)
curves = {"as the search saw it": [], "nested": [], "on 5,000 new points": []}
spans = []
for n in sizes:
    X, y = learnable(n)
    report = evaluate(search, X, y, cv=3)
    fitted = search.fit(X, y)
    for name, value in zip(curves, (fitted.best_score_, report.score, fitted.score(X_new, y_new)), strict=True):
        curves[name].append(value)
    spans.append(report.interval)
low, high = np.array(spans).T

figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.4), layout="constrained")
for first, second in zip(nested, seen, strict=True):
    left.plot([0, 1], [first, second], color="0.8", lw=1, zorder=1)
left.scatter(np.zeros(len(nested)), nested, s=45, color=BLUE, zorder=2)
left.scatter(np.ones(len(seen)), seen, s=45, marker="s", color=ORANGE, zorder=2)
left.hlines([nested.mean(), seen.mean()], [-0.15, 0.85], [0.15, 1.15], color="black", lw=2.5, zorder=3, label="mean")
left.axhline(0.5, color="black", lw=1.2, ls="--", label="truth")
left.set(xlim=(-0.4, 1.4), ylabel="accuracy", title="labels tossed by a coin: eight data sets")
left.set_xticks([0, 1], ["nested score", "best score\nof the search"])
left.legend(frameon=False, loc="upper left")
right.fill_between(sizes, low, high, color=BLUE, alpha=0.15, lw=0, label="95 % interval of the nested score")
looks = ((ORANGE, "s", "-"), (BLUE, "o", "-"), ("black", "^", "--"))
for (name, values), (colour, marker, style) in zip(curves.items(), looks, strict=True):
    right.semilogx(sizes, values, style, marker=marker, color=colour, label=name)
right.set(xlabel="samples", ylabel="accuracy", title="labels that can be learnt, 10 % of them wrong", ylim=(0.4, 1))
right.set_xticks(sizes, map(str, sizes))
right.minorticks_off()
right.legend(frameon=False, loc="lower right")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
plt.show()

assert seen.mean() > 0.55 > 0.53 > nested.mean()
assert np.mean(seen > nested) >= 0.75
assert low[-1] < curves["on 5,000 new points"][-1] < high[-1]
