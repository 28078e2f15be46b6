"""
The least-squares machine: leave-one-out for each pair of parameters
====================================================================

``LSSVC`` is ridge regression on the labels ±1. One factor of a matrix serves all classes, and the diagonal of its
inverse gives the decision value of every sample by the model without it, exactly. That makes leave-one-out as cheap as
two more fits, and a map of the parameters needs no folds.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from mercer import LSSVC

# %%
# The share of right labels without each sample, over C and the width of the kernel.

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
Cs, gammas = np.logspace(-2, 2, 9), np.logspace(-4, 0, 9)
scores = np.array([[LSSVC(C, gamma=g, leave_one_out=True).fit(X, y).left_out_score_ for g in gammas] for C in Cs])
best = np.unravel_index(scores.argmax(), scores.shape)
print(f"best: C={Cs[best[0]]:.3g}, gamma={gammas[best[1]]:.3g}, {scores.max():.1%} right without the sample")
assert scores.max() > 0.97

figure, axis = plt.subplots(figsize=(5.4, 4), layout="constrained")
drawn = axis.pcolormesh(gammas, Cs, scores, shading="nearest", cmap="viridis")
axis.scatter(gammas[best[1]], Cs[best[0]], color="white", edgecolor="black", label="best")
axis.set(xscale="log", yscale="log", xlabel="gamma", ylabel="C")
axis.legend()
figure.colorbar(drawn, label="leave-one-out accuracy")
plt.show()
