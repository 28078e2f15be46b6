"""
Fewer support vectors, with a bound on what changes
===================================================

Prediction takes time in proportion to the support vectors, and noisy data make many of them. ``compress`` replaces a
machine by one with fewer, and bounds the change: no decision value, at any point of the space, moves by more than
``max_error``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import mercer

BLUE, ORANGE = "#0072b2", "#e69f00"

X, y = make_moons(1000, noise=0.3, random_state=0)
machine = mercer.SVC(C=1.0, gamma=1.0).fit(X, y)
x, z = np.meshgrid(np.linspace(-2, 3, 150), np.linspace(-1.6, 2.1, 150))
grid = np.column_stack([x.ravel(), z.ravel()])
value = machine.decision_function(grid)

# %%
# Three allowances. The promise is checked on a fine grid.

cases = [(machine, 0.0), *((mercer.compress(machine, max_error=error), error) for error in (0.01, 0.1, 1.0))]
figure, axes = plt.subplots(1, 4, figsize=(14, 3.9), layout="constrained", sharex=True, sharey=True)
for ax, (model, allowed) in zip(axes, cases, strict=True):
    found = model.decision_function(grid)
    change = np.abs(found - value).max()
    ax.contourf(x, z, found.reshape(x.shape), levels=[-1e9, 0, 1e9], colors=[BLUE, ORANGE], alpha=0.18)
    ax.contour(x, z, value.reshape(x.shape), levels=[0], colors="0.5", linewidths=2.5)
    ax.contour(x, z, found.reshape(x.shape), levels=[0], colors="black", linewidths=1)
    ax.scatter(*model.support_vectors_.T, s=9, color="black", lw=0)
    title = "exact" if allowed == 0 else f"allowed {allowed:g}, changed {change:.2g}"
    ax.set(title=f"{len(model.support_vectors_)} support vectors\n{title}", xlabel="$x_1$", ylabel="$x_2$")
    ax.label_outer()
    assert change <= max(allowed, 1e-12)
    if allowed:
        print(model.compression_)
plt.show()

# %%
# The number of support vectors falls steeply as soon as a small change is allowed, while the labels of new points stay
# the same.

X_new, y_new = make_moons(3000, noise=0.3, random_state=1)
allowances = np.logspace(-4, 0.3, 14)
small = [mercer.compress(machine, max_error=error) for error in allowances]
counts = [len(model.support_vectors_) for model in small]
same = [np.mean(model.predict(X_new) == machine.predict(X_new)) for model in small]
figure, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
ax.semilogx(allowances, counts, "o-", color=BLUE, lw=2)
ax.axhline(len(machine.support_vectors_), color="black", lw=1, ls="--")
ax.text(allowances[0], len(machine.support_vectors_) - 4, "exact machine", va="top")
for k in (0, 6, 9, 13):
    ax.annotate(
        f"{same[k]:.1%}", (allowances[k], counts[k]), (0, 9), textcoords="offset points", ha="center", color="#a66f00"
    )
ax.set(xlabel="allowed change of a decision value", ylabel="support vectors", ylim=(0, None))
ax.set_title("brown: labels of new points that stay the same", fontsize="medium", color="#a66f00")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
assert counts[0] < 0.6 * len(machine.support_vectors_) and counts[-1] < 20
assert np.all(np.diff(counts) <= 0) and min(same) > 0.9
