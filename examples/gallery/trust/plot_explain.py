"""
What each feature adds: exact Shapley values
============================================

Shapley values divide the decision value of a row among its features. For a Gaussian kernel they have an exact formula,
an integral of a product over features, so no coalitions are sampled. The values of a row and the mean over the
background rows add up to its decision value.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, explain

data = load_breast_cancer(as_frame=True)
X, y = data.data, data.target
model = make_pipeline(StandardScaler(), SVC()).fit(X, y)

# %%
# The scaler is part of the formula: features are those of the table. The background is a sample of the data.

found = explain(model, X[:150], background=X[::12])
print(found)
difference = found.values.sum(axis=1) + found.base - model.decision_function(X[:150])
print(f"largest difference from the decision value: {np.abs(difference).max():.0e}")
assert np.abs(difference).max() < 1e-10

# %%
# Left: the mean size for each feature. Right: a dot for each row. Large values of "worst texture" speak against class
# 1, which is "benign".

figure, (bars, dots) = plt.subplots(1, 2, figsize=(13, 4.6), layout="constrained")
found.plot(ax=bars, max_features=10)
found.plot("beeswarm", ax=dots, max_features=10)
plt.show()
