"""
The kernel trick in one picture
===============================

A circle cannot be separated from its surroundings by a line. Lift each point to (x₁², √2 x₁x₂, x₂²), and a plane does
it. The kernel (x·z)² is the scalar product of the lifted points, so the machine never needs to lift anything.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, Polynomial, datasets

BLUE, ORANGE = "#0072b2", "#e69f00"

data = datasets.make_circle(260, gap=0.25)
near = (data.X**2).sum(axis=1) < 2.2
X, y = data.X[near], data.y[near]
kernel = Polynomial(degree=2, gamma=1.0, coef0=0.0)
machine = SVC(kernel=kernel, C=np.inf).fit(X, y)

# %%
# ``feature_map`` writes the features down where this is possible. Their scalar products are the kernel values.

psi = kernel.feature_map(X)
F = psi(X)
print(psi, f"largest difference from the kernel: {np.abs(F @ F.T - kernel(X)).max():.1e}")
assert np.allclose(F @ F.T, kernel(X))

# %%
# The weights of the plane are w = Σ β ψ(x) over the support vectors. The line of the left picture is the plane of the
# right one, seen from below.

w = (machine.dual_coef_ @ psi(machine.support_vectors_)).ravel()
b = machine.intercept_[0]
assert np.allclose(F @ w + b, machine.decision_function(X), atol=1e-6)

figure = plt.figure(figsize=(11.5, 5.2), layout="constrained")
flat = figure.add_subplot(1, 2, 1)
x, z = np.meshgrid(np.linspace(-1.6, 1.6, 200), np.linspace(-1.6, 1.6, 200))
value = machine.decision_function(np.column_stack([x.ravel(), z.ravel()])).reshape(x.shape)
flat.contourf(x, z, value, levels=[-1e9, 0, 1e9], colors=[BLUE, ORANGE], alpha=0.15)
flat.contour(x, z, value, levels=[-1, 0, 1], colors="black", linestyles=["--", "-", "--"], linewidths=1)
for c, colour, marker in ((-1, BLUE, "o"), (1, ORANGE, "s")):
    flat.scatter(*X[y == c].T, s=22, color=colour, marker=marker, edgecolors="white", lw=0.5)
flat.scatter(*machine.support_vectors_.T, s=90, facecolors="none", edgecolors="black", lw=1.2, label="support vectors")
flat.set(aspect="equal", xlabel="$x_1$", ylabel="$x_2$", title="in the plane: a circle")
flat.legend(loc="upper right", framealpha=0.9)

# the features in the order (x₁², √2 x₁x₂, x₂²)
lifted = figure.add_subplot(1, 2, 2, projection="3d", computed_zorder=False)
for c, colour, marker in ((-1, BLUE, "o"), (1, ORANGE, "s")):
    lifted.scatter(*F[y == c].T, s=16, color=colour, marker=marker, depthshade=False)
first, second = np.meshgrid(np.linspace(0, 1.3, 60), np.linspace(-1.5, 1.5, 60))
third = -(w[0] * first + w[1] * second + b) / w[2]
third[(third < 0) | (third > 1.5)] = np.nan
lifted.plot_surface(first, second, third, color="0.4", alpha=0.35, lw=0)
lifted.set(xlabel="$x_1^2$", ylabel="$\\sqrt{2}\\,x_1x_2$", zlabel="$x_2^2$", title="lifted: a plane")
lifted.view_init(elev=9, azim=-72)
lifted.set(xticks=[0, 1, 2], yticks=[-1, 0, 1], zticks=[0, 1, 2])
plt.show()
assert machine.score(X, y) == 1.0
