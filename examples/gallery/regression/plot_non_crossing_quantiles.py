"""
Quantiles that do not cross, and expectiles
===========================================

Nine quantiles fitted one by one cross where samples are rare: the 40 % quantile rises above the 50 % quantile, which no
distribution allows. ``QuantileSVR`` fits all of them as one problem with the constraint that they keep their order at
every training sample, and certifies the joint optimum (Takeuchi, Le, Sears & Smola, 2006).
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVR, ExpectileSVR, QuantileSVR

BLUE, ORANGE, GREEN = "#0072b2", "#e69f00", "#009e73"

# %%
# Sixty samples with noise that grows to the right, and nine quantiles of them.

rng = np.random.default_rng(2)
X = np.sort(rng.uniform(0, 3, (60, 1)), axis=0)
y = np.sin(2 * X[:, 0]) + (0.1 + 0.3 * X[:, 0]) * rng.normal(size=60)
quantiles = np.arange(0.1, 1.0, 0.1).round(1)
grid = np.linspace(0, 3, 300)[:, None]

alone = [SVR(loss="pinball", quantile=q, C=20.0, gamma=3.0).fit(X, y) for q in quantiles]
apart = np.column_stack([model.predict(X) for model in alone])
together = QuantileSVR(quantiles, C=20.0, gamma=3.0).fit(X, y)
print(f"crossings at the samples, one by one: {(np.diff(apart) < 0).sum()}")
print(f"crossings at the samples, together:   {(np.diff(together.predict(X)) < -1e-9).sum()}")
print(together.certificate_)
assert (np.diff(apart) < 0).any() and not (np.diff(together.predict(X)) < -1e-9).any()

# %%
# Left one by one, in the middle together, right expectiles: they weigh how far samples lie outside, and are smoother.

figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
curves = {
    "quantiles, one by one": np.column_stack([model.predict(grid) for model in alone]),
    "quantiles, together": together.predict(grid),
    "expectiles": np.column_stack([ExpectileSVR(q, C=20.0, gamma=3.0).fit(X, y).predict(grid) for q in quantiles]),
}
for axis, colour, (title, values) in zip(axes, (ORANGE, BLUE, GREEN), curves.items(), strict=True):
    axis.scatter(X[:, 0], y, s=8, color="0.6")
    axis.plot(grid[:, 0], values, color=colour, linewidth=0.9)
    axis.set_title(title)
    axis.set_xlabel("x")
axes[0].set_ylabel("y")
plt.show()
