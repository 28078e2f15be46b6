"""
How far may an input move before the label changes?
===================================================

A measured value is never exact. ``robustness`` gives two numbers for each row: a radius within which no point has
another label, which is proved, and the distance to a point with another label, which was found. The distance to the
decision boundary lies between them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_moons

from mercer import SVC, robustness

X, y = make_moons(200, noise=0.15, random_state=0)
machine = SVC(C=10).fit(X, y)
rows = X[:12]
found = robustness(machine, rows)
print(found)

# %%
# Inside the blue circles the label is certain. The orange lines lead to the counterexamples.

figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
grid = np.stack(np.meshgrid(np.linspace(-1.8, 2.8, 300), np.linspace(-1.3, 1.8, 220)), axis=-1)
values = machine.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
ax.contour(grid[..., 0], grid[..., 1], values, [0], colors="0.4")
ax.scatter(*X.T, c=np.where(y == 1, "0.8", "0.6"), s=12)
for row, radius, other in zip(rows, found.lower, found.counterexamples, strict=True):
    ax.add_patch(plt.Circle(row, radius, fill=False, color="#0072b2"))
    ax.plot(*np.stack([row, other]).T, color="#d55e00", lw=1)
ax.scatter(*rows.T, color="#0072b2", s=18, zorder=3)
ax.set_aspect("equal")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# No point of a circle has another label, and each counterexample has one.

rng = np.random.default_rng(0)
directions = rng.normal(size=(1000, 2))
directions /= np.linalg.norm(directions, axis=1)[:, None]
labels = machine.predict(rows)
for row, radius, label in zip(rows, found.lower, labels, strict=True):
    assert (machine.predict(row + radius * directions) == label).all()
assert (machine.predict(found.counterexamples) != labels).all()

# %%
# With ten classes: the digits that the smallest change turns into another one, according to the machine.

X, y = load_digits(return_X_y=True)
machine = SVC(C=5, gamma=0.001).fit(X[:1000], y[:1000])
tried = X[1000:1100]
found = robustness(machine, tried)
print(f"lower / upper: {np.median(found.lower / found.upper):.2f} in the median")
figure, axes = plt.subplots(2, 6, figsize=(8, 3.2), layout="constrained")
for (above, below), i in zip(axes.T, np.argsort(found.upper), strict=False):
    for ax, image, label in (
        (above, tried[i], found.labels[i]),
        (below, found.counterexamples[i], found.other_labels[i]),
    ):
        ax.imshow(image.reshape(8, 8), cmap="gray_r")
        ax.set_title(f"read as {label}", fontsize=9)
        ax.set_axis_off()
plt.show()
