"""
What a kernel sees: Gram matrices
=================================

All that a kernel machine knows of its samples is the matrix of their kernel values. Ordered by class, it should show
bright blocks on its diagonal. Too wide a kernel makes all samples alike, too narrow a one leaves each alone.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler

from mercer import SVC, Gaussian, check_mercer

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
order = np.argsort(y, kind="stable")

# %%
# Three widths of a Gaussian kernel on 178 wines of three growers, with the eigenvalues of each matrix below. The
# eigenvalues say how many directions of the feature space the samples fill: a few, some, or all of them.

gammas = (0.001, 0.03, 1.0)
figure, axes = plt.subplots(2, 3, figsize=(12, 6), layout="constrained", height_ratios=(2.3, 1))
accuracy, directions = [], []
for (above, below), gamma in zip(axes.T, gammas, strict=True):
    K = Gaussian(gamma)(X[order])
    report = check_mercer(K)
    assert report.positive_semidefinite
    eigenvalues = np.maximum(np.linalg.eigvalsh(K)[::-1], 1e-6)
    accuracy.append(cross_val_score(SVC(gamma=gamma), X, y, cv=5).mean())
    directions.append(int(np.searchsorted(np.cumsum(eigenvalues) / eigenvalues.sum(), 0.95)) + 1)
    image = above.imshow(K, cmap="viridis", vmin=0, vmax=1)
    edges = np.cumsum(np.bincount(y))[:-1] - 0.5
    for edge in edges:
        above.axhline(edge, color="white", lw=0.8)
        above.axvline(edge, color="white", lw=0.8)
    above.set(xticks=[], yticks=[], title=f"γ = {gamma:g}: accuracy {accuracy[-1]:.1%}")
    below.semilogy(np.arange(1, len(K) + 1), eigenvalues, color="#0072b2", lw=2)
    below.axvline(directions[-1], color="#e69f00", lw=1.5, ls="--")
    side = 3 if directions[-1] < 100 else -3
    place = {"ha": "left" if side > 0 else "right", "color": "#a66f00"}
    below.text(directions[-1] + side, 40, f"95 % in {directions[-1]}", **place)
    below.set(xlabel="number of the eigenvalue", ylim=(1e-6, 300), xlim=(0, len(K)))
    below.spines[["top", "right"]].set_visible(False)
axes[0, 0].set_ylabel("wines, ordered by grower")
axes[1, 0].set_ylabel("eigenvalue")
figure.colorbar(image, ax=axes, label="k(x, z)", shrink=0.6, pad=0.01)
plt.show()

# %%
# ``check_mercer`` looks for the same symptoms in numbers, and says what to do:

print(check_mercer(Gaussian(1.0), X))
assert check_mercer(Gaussian(1.0), X).near_diagonal and not check_mercer(Gaussian(0.03), X).near_diagonal
assert directions[0] < directions[1] < directions[2]
assert accuracy[1] > max(accuracy[0], accuracy[2])
