"""
Probabilities that know what they have not seen
===============================================

A Gaussian process puts a belief over functions, and the sign of the function is the class. Near samples of one class
its probabilities are decided; far away from all samples they return to one half, where a support vector machine stays
confident. Laplace's approximation and expectation propagation are two ways to compute them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import Gaussian, GaussianProcessClassifier

X, y = make_moons(120, noise=0.2, random_state=1)
side = np.linspace(-3, 4, 80)
grid = np.array(np.meshgrid(side, side)).reshape(2, -1).T

# %%
# The height and the width of the kernel maximise the evidence, the probability of the labels averaged over all
# functions. Both approximations find similar kernels; that of expectation propagation is the more accurate one.

models = {
    "Laplace": GaussianProcessClassifier(1.0 * Gaussian(1.0)).fit(X, y),
    "expectation propagation": GaussianProcessClassifier(1.0 * Gaussian(1.0), approximation="ep").fit(X, y),
}
figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.6), layout="constrained", sharex=True, sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    p = model.predict_proba(grid)[:, 1].reshape(80, 80)
    shown = ax.contourf(side, side, p, levels=np.linspace(0, 1, 11), cmap="RdBu", alpha=0.8)
    ax.contour(side, side, p, levels=[0.5], colors="black", linewidths=1.2)
    ax.scatter(*X[y == 0].T, c="#d55e00", edgecolor="white", s=28, marker="o", label="first class")
    ax.scatter(*X[y == 1].T, c="#0072b2", edgecolor="white", s=34, marker="s", label="second class")
    ax.set(title=f"{name}: log evidence {model.log_marginal_likelihood():.1f}", xlabel="first feature")
    print(f"{name:24s} {model.kernel_}")
axes[0].set_ylabel("second feature")
axes[0].legend(loc="lower left")
figure.colorbar(shown, ax=axes, label="probability of the second class")
plt.show()

# %%
# The mode of Laplace's posterior is the solution of a convex problem, so its distance from the optimum is certified.

laplace = models["Laplace"]
print(laplace.certificate_)
assert laplace.certificate_.relative_gap < 1e-9
for model in models.values():
    assert model.score(X, y) > 0.9
    far = model.predict_proba([[-3.0, -3.0], [4.0, 4.0]])[:, 1]
    assert np.abs(far - 0.5).max() < 0.4
