"""
Which features does a Gaussian machine use?
===========================================

A machine with a Gaussian kernel has no weights of features. Its slopes say the same: ``feature_importances_`` is the
mean of |∂f/∂xⱼ| over the support vectors times the standard deviation of the feature. Scikit-learn's ``RFE`` and
``SelectFromModel`` read it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_selection import RFE, SelectFromModel

from mercer import SVC

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 10))
# the class depends on a product and two squares, of which a linear machine sees nothing
y = (X[:, 0] * X[:, 1] + X[:, 2] ** 2 + X[:, 3] ** 2 > 2).astype(int)
train, test = slice(0, 400), slice(400, None)
machine = SVC(C=10).fit(X[train], y[train])

figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
ax.bar(range(10), machine.feature_importances_, color=np.where(np.arange(10) < 4, "#0072b2", "0.7"))
ax.set(xlabel="feature", ylabel="importance", xticks=range(10))
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The features below the mean are noise. Without them, the machine is right more often.

chosen = SelectFromModel(SVC(C=10)).fit(X[train], y[train]).get_support(indices=True)
fewer = SVC(C=10).fit(X[train][:, chosen], y[train])
print(f"kept: {chosen}")
print(f"all features: {machine.score(X[test], y[test]):.1%} right")
print(f"these alone: {fewer.score(X[test][:, chosen], y[test]):.1%} right")
assert set(chosen) == {0, 1, 2, 3}

# %%
# ``RFE`` removes one feature after another, and fits again each time.

ranking = RFE(SVC(C=10), n_features_to_select=4).fit(X[train], y[train]).ranking_
print(f"ranks: {ranking}")
assert (ranking[:4] == 1).all()
