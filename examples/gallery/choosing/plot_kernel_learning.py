"""
Which measurements matter? Learnt weights of kernels
====================================================

Cells of breast tumours are described by ten properties, each by its mean, its standard error and its worst value: three
groups of columns. Six more groups are made of the same columns with their rows shuffled: they tell nothing. Each group
gets a kernel of its own, and ``MKLClassifier`` learns the weights of their sum together with the machine.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.preprocessing import StandardScaler

from mercer import SVC, Gaussian, MKLClassifier, On

BLUE, ORANGE, SKY, GREY = "#0072b2", "#e69f00", "#56b4e9", "#bbbbbb"

X, y = load_breast_cancer(return_X_y=True)
rng = np.random.default_rng(0)
true = [X[:, 10 * g : 10 * g + 10] for g in range(3)]
shuffled = [group[rng.permutation(len(y))] for group in true for _ in range(2)]
X = StandardScaler().fit_transform(np.hstack([*true, *shuffled]))
names = ["mean", "error", "worst", *(f"{n}, shuffled" for n in ("mean", "error", "worst") for _ in range(2))]
kernels = [On(slice(10 * g, 10 * g + 10), Gaussian(0.03)) for g in range(9)]

# %%
# Five machines. The weights of the last two are optimised under a p-norm of at most 1: with p = 1 most become exactly
# 0. The problem is convex, and the certificate holds for machine and weights together.

machines = {
    "one kernel for all columns": SVC(gamma=0.01),
    "plain sum": MKLClassifier(kernels, weights="uniform"),
    "alignment with the labels": MKLClassifier(kernels, weights="alignment"),
    "learnt, p = 2": MKLClassifier(kernels, norm=2.0),
    "learnt, p = 1": MKLClassifier(kernels, norm=1.0),
}
folds = StratifiedKFold(3, shuffle=True, random_state=0)
accuracy, shares = {}, {}
for name, machine in machines.items():
    accuracy[name] = cross_val_score(machine, X, y, cv=folds).mean()
    machine.fit(X, y)
    print(f"{name:28} {accuracy[name]:.1%}   relative gap {machine.certificate_.relative_gap:.1e}")
    if name != "one kernel for all columns":
        shares[name] = machine.kernel_weights_ / machine.kernel_weights_.sum()

# %%
# Left: the share of each kernel in the sum. Groups below the line are noise. Right: what it is worth.

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained", width_ratios=(1.5, 1))
looks = dict(zip(shares, (GREY, ORANGE, SKY, BLUE), strict=True))
for k, (name, share) in enumerate(shares.items()):
    left.barh(np.arange(9) + 0.2 * (k - 1.5), share, 0.2, color=looks[name], label=name)
left.set_yticks(np.arange(9), names)
left.axhline(2.5, color="black", lw=0.8)
left.invert_yaxis()
left.set(xlabel="share of the weight", title="nine groups of columns, six of them noise")
left.legend(frameon=False, loc="lower right")
right.hlines(list(accuracy), 0.93, list(accuracy.values()), color="0.8", lw=1)
right.scatter(list(accuracy.values()), list(accuracy), s=110, c=["0.35", *looks.values()], zorder=3)
for name, value in accuracy.items():
    right.text(value + 0.002, name, f"{value:.1%}", va="center")
right.set(xlim=(0.93, 0.985), xlabel="cross-validated accuracy")
right.set_xticks(np.arange(0.93, 0.985, 0.01))
right.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
right.invert_yaxis()
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

noise = {name: share[3:].sum() for name, share in shares.items()}
assert abs(noise["plain sum"] - 2 / 3) < 1e-9 and noise["learnt, p = 1"] < 0.25
assert accuracy["learnt, p = 1"] > accuracy["one kernel for all columns"]
assert machines["learnt, p = 1"].certificate_.relative_gap <= 1e-3
