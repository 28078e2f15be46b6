"""
The steps of SMO, one by one
============================

Sequential minimal optimisation changes two coefficients at a time: the smallest number that keeps their sum. Each step
takes the best point of a segment, clipped to the box between 0 and C. ``trace=True`` keeps every step.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from mercer import SVC

BLUE, ORANGE, GREEN, RED = "#0072b2", "#e69f00", "#009e73", "#d55e00"

X, y = make_blobs(60, centers=[[-1.2, 0.0], [1.2, 0.4]], cluster_std=0.9, random_state=2)
machine = SVC(kernel="linear", C=1.0, solver="smo", trace=True, tol=1e-4).fit(X, y)
steps = machine.steps_
print(steps)

# %%
# Replay them: the weights after each step, and the line that they draw. The dual value rises with every step; the
# picture shows that the line is right long before the last digit is.

sign = np.where(y == 1, 1.0, -1.0)
alpha = np.zeros((len(steps) + 1, len(X)))
for k in range(len(steps)):
    alpha[k + 1] = alpha[k]
    alpha[k + 1, steps.i[k]], alpha[k + 1, steps.j[k]] = steps.alpha_i[k], steps.clipped[k]
w = (alpha * sign) @ X
dual = alpha.sum(axis=1) - 0.5 * (w**2).sum(axis=1)
assert np.all(np.diff(dual) > -1e-10)
assert np.all(np.abs(alpha @ sign) < 1e-9) and alpha.min() >= 0 and alpha.max() <= 1 + 1e-12
assert np.allclose(w[-1], machine.coef_[0], atol=1e-2)

figure, axes = plt.subplots(1, 3, figsize=(13.5, 4.3), layout="constrained", width_ratios=(1.1, 1, 1.1))
plane, rise, box = axes
for c, colour, marker in ((0, BLUE, "o"), (1, ORANGE, "s")):
    plane.scatter(*X[y == c].T, s=24, color=colour, marker=marker, edgecolors="white", lw=0.5)
z = np.linspace(-3, 4, 2)
shown = [k for k in (2, 5, 12, len(steps)) if k <= len(steps)]
for k, style, colour in zip(shown, (":", "-.", "--", "-"), ("0.6", "0.45", "0.3", "black"), strict=True):
    # the threshold that fits the samples best, for these weights
    f = X @ w[k]
    edges = np.sort(np.concatenate([1 - f[y == 1], -1 - f[y == 0]]))
    b = edges[np.argmin([np.maximum(0, 1 - sign * (f + t)).sum() for t in edges])]
    plane.plot(-(w[k][1] * z + b) / w[k][0], z, style, color=colour, lw=2, label=f"after {k} steps")
plane.set(xlim=(-3.6, 3.6), ylim=(-2.2, 3.4), xlabel="$x_1$", ylabel="$x_2$", title="the line")
plane.legend(loc="upper left", framealpha=0.9, fontsize="small")

distance = np.maximum(dual[-1] - dual, 1e-9)
rise.semilogy(np.arange(len(distance)), distance, color=BLUE, lw=2)
rise.set(xlabel="step", ylabel="distance from the last dual value", title="each step gains")
rise.spines[["top", "right"]].set_visible(False)

# %%
# Right: the way of all coefficients that ever move. They jump, rest, and end at 0, at C, or between.

moved = np.flatnonzero(alpha.any(axis=0))
for i in moved:
    end = alpha[-1, i]
    colour = RED if end > 1 - 1e-9 else BLUE if end > 1e-9 else "0.75"
    box.plot(alpha[:, i], color=colour, lw=1, alpha=0.8)
for colour, name in ((RED, "ends at C"), (BLUE, "ends between"), ("0.75", "ends at 0")):
    box.plot([], [], color=colour, lw=2, label=name)
box.set(
    xticks=range(0, len(alpha), 5), xlabel="step", ylabel="α", title="the coefficients in their box", ylim=(-0.03, 1.25)
)
box.legend(frameon=False, ncols=3, loc="upper center", fontsize="small")
box.spines[["top", "right"]].set_visible(False)
plt.show()
print(f"{len(steps)} steps, dual value {dual[-1]:.6f}; certificate: {machine.certificate_}")
assert machine.certificate_.relative_gap < 1e-3
