"""
Three labels for each moon: the other samples help
==================================================

Most samples have no label. ``LaplacianSVC`` draws a graph of nearest neighbours through all of them and asks for a
function that changes little along its edges, so that labels spread along the moons (Belkin, Niyogi & Sindhwani, 2006).
The machine is an ordinary support vector machine in a deformed kernel, with its certificate.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import SVC, LaplacianSVC

BLUE, ORANGE = "#0072b2", "#e69f00"

# %%
# Unlabelled samples have the label −1, as in scikit-learn.

X, y = make_moons(160, noise=0.08, random_state=0)
given = np.full(len(y), -1)
for c in (0, 1):
    given[np.flatnonzero(y == c)[:3]] = c
known = given >= 0
models = {
    "six labels alone": SVC(C=100.0, gamma=5.0).fit(X[known], given[known]),
    "with all samples": LaplacianSVC(100.0, gamma=5.0, n_neighbors=5).fit(X, given),
}
for name, model in models.items():
    print(f"{name}: {model.score(X, y):.0%} of all samples right")
print(models["with all samples"].certificate_)
assert models["with all samples"].score(X, y) > models["six labels alone"].score(X, y)

# %%
# The border of both machines; the large points are labelled.

across, up = np.meshgrid(np.linspace(-1.5, 2.5, 200), np.linspace(-1.1, 1.6, 150))
plane = np.column_stack([across.ravel(), up.ravel()])
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for axis, (name, model) in zip(axes, models.items(), strict=True):
    values = model.decision_function(plane).reshape(across.shape)
    axis.contourf(across, up, values > 0, levels=[-0.5, 0.5, 1.5], colors=[BLUE, ORANGE], alpha=0.15)
    axis.contour(across, up, values, levels=[0.0], colors="black", linewidths=1)
    axis.scatter(*X[~known].T, s=8, color="0.5")
    axis.scatter(*X[known].T, s=60, c=np.where(given[known] == 1, ORANGE, BLUE), edgecolor="black")
    axis.set_title(name)
plt.show()
