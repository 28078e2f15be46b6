"""
A map of two circles, and digits without noise
==============================================

Kernel PCA finds the directions of largest variance in the feature space of a kernel. Two circles, which no line
separates, are apart along the first of them; and noise that is not among the first directions disappears.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_circles

from mercer import KernelPCA

X, y = make_circles(500, factor=0.35, noise=0.06, random_state=0)
pca = KernelPCA(n_components=2, kernel="rbf", gamma=3.0).fit(X)
Z = pca.transform(X)
print(f"the first two directions explain {pca.explained_variance_ratio_.sum():.0%} of the variance in feature space")
print(f"residuals: {pca.residuals_.max() / pca.eigenvalues_[0]:.1e} of the largest eigenvalue")
assert pca.residuals_.max() < 1e-7 * pca.eigenvalues_[0]

# %%
# The same directions for digits. A point of their span has no digit that is mapped to it exactly: ``pre_image`` says
# how the closest one is found, here by its distances to the training digits.

digits = load_digits().data / 16.0
train, clean = digits[:1500], digits[1500:1508]
noisy = clean + 0.35 * np.random.default_rng(0).normal(size=clean.shape)
denoise = KernelPCA(n_components=32, kernel="rbf", gamma=0.02, fit_inverse_transform=True, pre_image="distances")
denoise.fit(train)
found = denoise.inverse_transform(denoise.transform(noisy))
errors = [float(np.mean((part - clean) ** 2)) for part in (noisy, found)]
print(f"mean squared error: {errors[0]:.3f} with noise, {errors[1]:.3f} after projection")
assert errors[1] < 0.4 * errors[0]

# %%
# Left: circles as they are and on the map. Right: digits with noise, after projection, and as they were.

figure = plt.figure(figsize=(12, 4), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(1.15, 1))
for ax, points, title in zip(left.subplots(1, 2), (X, Z), ("samples", "first two components"), strict=True):
    for label, colour in enumerate(("#0072b2", "#e69f00")):
        ax.scatter(*points[y == label].T, s=9, color=colour)
    ax.set_title(title)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xticks([])
    ax.set_yticks([])
axes = right.subplots(3, 8)
for row, part, title in zip(axes, (noisy, found, clean), ("noisy", "projected", "clean"), strict=True):
    for ax, image in zip(row, part, strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        ax.set_xticks([])
        ax.set_yticks([])
    row[0].set_ylabel(title)
plt.show()
