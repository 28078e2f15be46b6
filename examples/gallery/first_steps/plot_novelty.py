"""
What is normal? A region that holds most of the samples
=======================================================

``OneClassSVM`` sees no labels. It learns a region that contains most of the samples, and everything outside counts as
novel. ``nu`` is a promise: at most this share of the training samples lies outside, and at least this share are support
vectors.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import OneClassSVM

BLUE, ORANGE = "#0072b2", "#e69f00"

rng = np.random.default_rng(0)
angle = rng.uniform(0, np.pi, 200)
crescent = np.column_stack([2 * np.cos(angle), 2 * np.sin(angle)]) + 0.2 * rng.normal(size=(200, 2))
blob = rng.normal([0.0, -0.6], [0.45, 0.3], (150, 2))
X = np.vstack([crescent, blob])

# %%
# The region for three values of ``nu``. The line is where the decision value is 0; the darker the shade, the further
# outside.

x, z = np.meshgrid(np.linspace(-3.0, 3.0, 160), np.linspace(-1.9, 2.9, 160))
grid = np.column_stack([x.ravel(), z.ravel()])
figure, axes = plt.subplots(1, 3, figsize=(12, 4.4), layout="constrained", sharex=True, sharey=True)
for ax, nu in zip(axes, (0.02, 0.1, 0.3), strict=True):
    machine = OneClassSVM(nu=nu, gamma=1.5, tol=1e-6).fit(X)
    value = machine.decision_function(grid).reshape(x.shape)
    # support vectors that lie on the line itself are not outside
    outside = machine.decision_function(X) < -1e-5
    ax.contourf(x, z, value, levels=np.linspace(value.min(), 0, 7), cmap="Greys_r", alpha=0.3)
    ax.contour(x, z, value, levels=[0], colors="black", linewidths=1.2)
    ax.scatter(*X[~outside].T, s=12, color=BLUE, label="inside")
    ax.scatter(*X[outside].T, s=30, color=ORANGE, marker="^", edgecolors="black", linewidths=0.5, label="outside")
    share, support = np.mean(outside), len(machine.support_) / len(X)
    ax.set_title(f"ν = {nu:.0%}: {share:.1%} outside,\n{support:.1%} support vectors")
    ax.set(xlabel="$x_1$", ylabel="$x_2$")
    ax.label_outer()
    assert share <= nu <= support
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
plt.show()

# %%
# The share outside is never above ``nu``, the share of support vectors never below it, and for many samples both come
# close to it: the parameter is the share of samples that one is ready to give up.
