"""
Forget me: remove samples and prove it
======================================

Some people ask to be forgotten. The model is updated instead of fitted again, and a proof says that it is the model of
the others: its gap bounds the distance to a machine that never saw them, and its file does not hold them.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import SVC, proof_of_removal

X, y = make_moons(300, noise=0.25, random_state=0)
model = SVC(C=10, gamma=2.0, updatable=True).fit(X, y)
before = model.decision_function(X)

# %%
# Every third support vector leaves.
gone = np.sort(model.support_[::3])
forgotten = X[gone].copy()
model.remove(gone)
print(proof_of_removal(model, forgotten))

# %%
# The boundary is that of a fit without them.
fresh = SVC(C=10, gamma=2.0).fit(np.delete(X, gone, axis=0), np.delete(y, gone))
difference = np.abs(model.decision_function(X) - fresh.decision_function(X)).max()
print(f"largest difference: {difference:.0e}")
assert difference < 0.05
print("largest change by the removal:", f"{np.abs(model.decision_function(X) - before).max():.1f}")

# %%
left, top = X.min(axis=0) - 0.3
right, bottom = X.max(axis=0) + 0.3
grid = np.stack(np.meshgrid(np.linspace(left, right, 150), np.linspace(top, bottom, 150)), axis=-1)
first = SVC(C=10, gamma=2.0).fit(X, y)
fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
for ax, machine, title in zip(
    axes, (first, model), ("all samples", f"{len(gone)} support vectors forgotten"), strict=True
):
    values = machine.decision_function(grid.reshape(-1, 2)).reshape(150, 150)
    ax.contourf(grid[..., 0], grid[..., 1], values, levels=[-np.inf, 0, np.inf], colors=["#dbe7f5", "#f8e3d3"])
    ax.contour(grid[..., 0], grid[..., 1], values, levels=[0], colors="k")
    shown = np.arange(len(X)) if machine is first else np.delete(np.arange(len(X)), gone)
    ax.scatter(*X[shown].T, c=np.where(y[shown] == 1, "#c05a11", "#1f5fa8"), s=12)
    ax.scatter(*forgotten.T, s=60, facecolors="none", edgecolors="k", label="forgotten")
    ax.set_title(title)
axes[1].legend(loc="upper right")
fig.tight_layout()
plt.show()
