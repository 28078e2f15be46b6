"""
Six kernels, six boundaries
===========================

A kernel says how similar two samples are. It decides which boundaries a machine can draw, and it can be changed without
touching anything else. Kernels are objects: they can be added, multiplied and scaled.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, DecisionDisplay, Gaussian, Laplacian, Linear, Polynomial

# %%
# The data: a ring around a disc, and a slope across both. Straight lines cannot separate them.

rng = np.random.default_rng(1)
X = rng.uniform(-2, 2, (160, 2))
y = (np.hypot(*X.T) + 0.35 * X[:, 0] + 0.15 * rng.normal(size=len(X)) > 1.2).astype(int)
X_new = rng.uniform(-2, 2, (4000, 2))
y_new = (np.hypot(*X_new.T) + 0.35 * X_new[:, 0] > 1.2).astype(int)

kernels = {
    "linear": Linear(),
    "polynomial of degree 2": Polynomial(degree=2, gamma=1.0, coef0=1.0),
    "polynomial of degree 6": Polynomial(degree=6, gamma=1.0, coef0=1.0),
    "Gaussian": Gaussian(gamma=0.5),
    "Laplacian": Laplacian(gamma=0.7),
    "linear + narrow Gaussian": Linear() + Gaussian(gamma=8.0),
}

# %%
# Each picture is one machine with ``C=10``. The number is the share of new points that it gets right. The truth is a
# ring; a polynomial of degree 2 can draw an ellipse, which is nearly that.

figure, axes = plt.subplots(2, 3, figsize=(11, 7.2), layout="constrained", sharex=True, sharey=True)
right = {}
for ax, (name, kernel) in zip(axes.flat, kernels.items(), strict=True):
    machine = SVC(kernel=kernel, C=10).fit(X, y)
    right[name] = machine.score(X_new, y_new)
    DecisionDisplay.from_estimator(machine, X, y, ax=ax)
    ax.get_legend().remove()
    ax.set(title=f"{name}: {right[name]:.1%}", xlabel="$x_1$", ylabel="$x_2$")
    ax.label_outer()
plt.show()

# %%
# The kernel that fits the shape of the problem wins; the straight line stays far behind.

best = max(right, key=right.get)
print(f"best on new points: {best}, {right[best]:.1%}")
assert right["linear"] < 0.8 < 0.94 < right["polynomial of degree 2"]
assert right["linear + narrow Gaussian"] < right["Gaussian"]
