"""
Clusters that are not round
===========================

k-means in the space of the samples cuts two moons by a line. Spectral clustering cuts the graph of their
affinities where it is thin. The eigenvalues of its Laplacian tell how many clusters there are.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score

from mercer import KernelCCA, KernelKMeans, SpectralClustering

X, y = make_moons(400, noise=0.06, random_state=0)
plain = KernelKMeans(n_clusters=2, kernel="linear", random_state=0).fit(X)
spectral = SpectralClustering(n_clusters=2, gamma=30.0, random_state=0).fit(X)
for name, labels in (("k-means", plain.labels_), ("spectral", spectral.labels_)):
    print(f"{name}: adjusted Rand index {adjusted_rand_score(y, labels):.2f}")
assert adjusted_rand_score(y, spectral.labels_) == 1.0 > adjusted_rand_score(y, plain.labels_)
five = SpectralClustering(n_clusters=5, gamma=30.0, random_state=0).fit(X)
print("smallest eigenvalues of the Laplacian:", five.eigenvalues_.round(4))

# %%
# Two views of the same samples: the first is a place on a spiral, the second the time at which it was passed. No
# coordinate of the first is a linear function of time; kernel CCA finds the function.

rng = np.random.default_rng(0)
time = rng.uniform(1.0, 4.0, size=300)
place = np.c_[time * np.cos(3 * time), time * np.sin(3 * time)] + 0.03 * rng.normal(size=(300, 2))
linear, gaussian = (
    KernelCCA(n_components=1, kernel_x=kernel, kernel_y="linear", gamma_x=1.0, regularization=1e-3).fit(
        place[:200], time[:200]
    )
    for kernel in ("linear", "rbf")
)
scores = [model.score(place[200:], time[200:]) for model in (linear, gaussian)]
print(f"correlation with time on new samples: {scores[0]:.2f} by a linear, {scores[1]:.2f} by a Gaussian kernel")
assert scores[1] > 0.98 > 0.7 > abs(scores[0])

# %%
# Left: the two partitions. Right: the spiral, coloured by the direction that kernel CCA found.

figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
for ax, labels, title in zip(axes, (plain.labels_, spectral.labels_), ("k-means", "spectral"), strict=False):
    for label, colour in enumerate(("#0072b2", "#e69f00")):
        ax.scatter(*X[labels == label].T, s=9, color=colour)
    ax.set_title(title)
axes[2].scatter(*place.T, c=gaussian.transform(place)[:, 0], s=10, cmap="viridis")
axes[2].set_title("kernel CCA: time on a spiral")
for ax in axes:
    ax.set_xticks([])
    ax.set_yticks([])
plt.show()
