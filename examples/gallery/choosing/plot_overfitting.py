"""
From too simple to learnt by heart: the width of a Gaussian kernel
==================================================================

γ is one over the squared reach of a sample. A small γ makes all samples alike, a large one makes each resemble only
itself. Three signs tell whether γ is too small or too large, without any new data: the leave-one-out error, the share
of support vectors, and the similarity of the typical sample to its nearest neighbour.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import SVC, DecisionDisplay, Gaussian, check_mercer, leave_one_out

BLUE, ORANGE, GREEN, PINK = "#0072b2", "#e69f00", "#009e73", "#cc79a7"

X, y = make_moons(160, noise=0.25, random_state=5)
X_new, y_new = make_moons(4000, noise=0.25, random_state=6)
gammas = np.logspace(-2.5, 3.5, 25)
rows = {"training": [], "leave-one-out": [], "new points": []}
support, similarity = [], []
for gamma in gammas:
    machine = SVC(gamma=gamma, C=5).fit(X, y)
    rows["training"].append(1 - machine.score(X, y))
    rows["leave-one-out"].append(leave_one_out(machine, X, y).error)
    rows["new points"].append(1 - machine.score(X_new, y_new))
    support.append(len(machine.support_) / len(X))
    similarity.append(check_mercer(Gaussian(gamma), X).offdiagonal_ratio)

# %%
# The training error falls to 0, and says nothing. The leave-one-out error turns where the error on new points turns.

figure = plt.figure(figsize=(11.5, 7), layout="constrained")
grid = figure.add_gridspec(2, 6)
shown = (0.02, 2.0, 500.0)
for k, (gamma, name) in enumerate(zip(shown, ("too simple", "about right", "learnt by heart"), strict=True)):
    ax = figure.add_subplot(grid[0, 2 * k : 2 * k + 2])
    DecisionDisplay.from_estimator(SVC(gamma=gamma, C=5).fit(X, y), X, y, ax=ax)
    ax.get_legend().remove()
    ax.set(title=f"γ = {gamma:g}: {name}", xticks=[], yticks=[], xlabel="", ylabel="")
errors, signs = figure.add_subplot(grid[1, :3]), figure.add_subplot(grid[1, 3:])
for (name, values), colour, style in zip(rows.items(), (GREEN, BLUE, ORANGE), (":", "-", "--"), strict=True):
    errors.semilogx(gammas, values, style, color=colour, lw=2, label=name)
errors.set(xlabel="γ", ylabel="error", title="errors")
errors.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
signs.semilogx(gammas, support, color=BLUE, lw=2, label="share of support vectors")
signs.semilogx(gammas, similarity, "--", color=PINK, lw=2, label="similarity to the nearest sample")
signs.set(xlabel="γ", title="symptoms", ylim=(0, 1.05))
for ax in (errors, signs):
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    for gamma in shown:
        ax.axvline(gamma, color="0.7", lw=0.8, zorder=0)
plt.show()

# %%
# The γ with the smallest leave-one-out error is nearly as good on new points as the best γ that one could have known.

left_out, new = np.array(rows["leave-one-out"]), np.array(rows["new points"])
chosen = left_out.argmin()
print(f"chosen by leave-one-out: γ = {gammas[chosen]:.2g}")
print(f"error on new points {new[chosen]:.1%}, the smallest of all γ {new.min():.1%}")
assert new[chosen] < new.min() + 0.02
assert rows["training"][-1] == 0.0 and support[-1] > 0.95 and similarity[-1] < 0.5
