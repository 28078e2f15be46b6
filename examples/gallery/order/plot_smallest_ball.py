"""
The smallest ball, and examples of what is not normal
=====================================================

``SVDD`` encloses samples in the smallest ball of the feature space. With a Gaussian kernel its region is that of
``OneClassSVM``. But a ball can also use a few examples that do not belong inside: with the label −1 they are kept out.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVDD

BLUE, ORANGE = "#0072b2", "#e69f00"

rng = np.random.default_rng(0)
angle = rng.uniform(0, 2 * np.pi, 220)
ring = np.column_stack([1.6 * np.cos(angle), 1.2 * np.sin(angle)]) + 0.16 * rng.normal(size=(220, 2))
faults = np.array([[0.0, 0.0], [0.3, -0.2], [-0.3, 0.2], [0.1, 0.35], [-0.2, -0.4], [2.2, 0.9], [2.3, 0.6]])
X, y = np.vstack([ring, faults]), np.repeat([1, -1], [len(ring), len(faults)])
machines = {
    "linear kernel": SVDD(nu=0.05, kernel="linear").fit(ring),
    "Gaussian kernel": SVDD(nu=0.05, gamma=0.4).fit(ring),
    "Gaussian kernel, with faults": SVDD(nu=0.05, gamma=0.4).fit(X, y, sample_weight=np.where(y < 0, 20.0, 1.0)),
}

# %%
# A ball in the plane, in the space of a wide Gaussian kernel, and with seven known faults, each of
# which counts as twenty samples.

x, z = np.meshgrid(np.linspace(-2.6, 2.8, 160), np.linspace(-2.2, 2.2, 160))
grid = np.column_stack([x.ravel(), z.ravel()])
figure, axes = plt.subplots(1, 3, figsize=(13, 4.0), layout="constrained", sharey=True)
for ax, (name, machine) in zip(axes, machines.items(), strict=True):
    value = machine.decision_function(grid).reshape(x.shape)
    ax.contourf(x, z, value, levels=[0, value.max()], colors=[BLUE], alpha=0.15)
    ax.contour(x, z, value, levels=[0], colors="black", linewidths=1.2)
    ax.scatter(*ring.T, s=8, color=BLUE, label="normal")
    ax.scatter(*faults.T, s=40, color=ORANGE, marker="X", edgecolors="black", linewidths=0.5, label="fault")
    # faults that decide the ball are on its edge
    kept = np.mean(machine.decision_function(faults) < 1e-3)
    ax.set(title=f"{name}:\nR = {machine.radius_:.2f}, {kept:.0%} of the faults not inside", xlabel="$x_1$")
    assert machine.certificate_.relative_gap < 1e-3
axes[0].set_ylabel("$x_2$")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
assert kept == 1.0
plt.show()
