"""
Three kinds of samples: the optimality conditions
=================================================

At the optimum every sample is in one of three states. Beyond its margin, its coefficient α is 0. On the margin, α is
anywhere between 0 and C. Inside or on the wrong side, α is C. ``kkt_report`` lists the states, and by how much any
condition is violated.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import SVC, kkt_report

STATES = {"zero": ("#7f7f7f", "o", "α = 0: not needed"), "free": ("#0072b2", "D", "0 < α < C: on the margin"),
          "bound": ("#d55e00", "s", "α = C: inside or wrong")}  # fmt: skip

X, y = make_moons(180, noise=0.26, random_state=4)
machine = SVC(C=3.0, gamma=1.0, tol=1e-6).fit(X, y)
report = kkt_report(machine, X, y)
print(report)
(one,) = report.problems

# %%
# Left: α against the functional margin y f(x). The three conditions are three strokes, and every sample lies on one of
# them. Right: the same samples in the plane; the larger the mark, the larger the slack ξ, by which a sample misses its
# margin.

# the problem lists samples by class, and its decision values are those of the first class
row = np.argsort(one.rows)
alpha, state, xi = one.alpha[row], one.state[row], one.xi[row]
margin = np.where(y == 1, 1, -1) * machine.decision_function(X)
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
left.plot([1, 1], [0, 3], color="0.85", lw=6, zorder=0)
left.plot([margin.min(), 1], [3, 3], color="0.85", lw=6, zorder=0)
left.plot([1, margin.max()], [0, 0], color="0.85", lw=6, zorder=0)
for name, (colour, marker, text) in STATES.items():
    own = state == name
    left.scatter(margin[own], alpha[own], s=28, color=colour, marker=marker, lw=0, label=f"{text} ({own.sum()})")
left.axvline(0, color="black", lw=0.8, ls=":")
left.text(-0.03, 0.3, "wrong side", rotation=90, ha="right")
left.set(xlabel="margin y f(x)", ylabel="α")
left.legend(frameon=False, loc="center left", bbox_to_anchor=(0.02, 0.5))
left.spines[["top", "right"]].set_visible(False)

x, z = np.meshgrid(np.linspace(-1.9, 2.9, 200), np.linspace(-1.4, 1.9, 200))
value = machine.decision_function(np.column_stack([x.ravel(), z.ravel()])).reshape(x.shape)
right.contour(x, z, value, levels=[-1, 0, 1], colors="black", linestyles=["--", "-", "--"], linewidths=1)
for name, (colour, marker, _) in STATES.items():
    own = state == name
    right.scatter(*X[own].T, s=28 + 60 * np.minimum(xi[own], 3), color=colour, marker=marker, lw=0, alpha=0.8)
right.set(xlabel="$x_1$", ylabel="$x_2$", title="size: the slack ξ")
plt.show()

# %%
# The conditions, checked by hand:

assert np.all(margin[state == "zero"] >= 1 - 1e-5)
assert np.abs(margin[state == "free"] - 1).max() < 1e-5
assert np.all(margin[state == "bound"] <= 1 + 1e-5)
assert np.allclose(xi, np.maximum(0, 1 - margin), atol=1e-5)
assert abs(alpha[y == 1].sum() - alpha[y == 0].sum()) < 1e-9
