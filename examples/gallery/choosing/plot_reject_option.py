"""
No answer where every answer is too dear
========================================

A missed tumour costs more than a second look, and a second look costs something, too. ``RejectOption`` takes a cost for
each kind of mistake and one for no answer, and decides by the expected cost of each.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import KernelLogisticRegression, RejectOption, RiskCoverageDisplay

# %%
# Tumours, malignant (0) or benign (1). Calling a malignant one benign costs 10, the other mistake 1, a second look 0.5.

X, y = load_breast_cancer(return_X_y=True)
X, X_test, y, y_test = train_test_split(X[:, :8], y, test_size=0.5, random_state=0)
classifier = make_pipeline(StandardScaler(), KernelLogisticRegression(C=100, gamma=0.02))
costs = np.array([[0.0, 10.0], [1.0, 0.0]])

mean = []
for title, model in {
    "the likeliest class": RejectOption(classifier),
    "by costs": RejectOption(classifier, cost_matrix=costs),
    "by costs, or a second look": RejectOption(classifier, cost_matrix=costs, reject_cost=0.5),
}.items():
    said = model.fit(X, y).predict(X_test)
    missed, alarms = np.sum((said == 1) & (y_test == 0)), np.sum((said == 0) & (y_test == 1))
    looks = np.sum(said == -1)
    paid = (10 * missed + alarms + 0.5 * looks) / len(said)
    print(f"{title:27s} {missed:3d} missed, {alarms:3d} false alarms, {looks:3d} second looks: {paid:.3f} a patient")
    mean.append(paid)
assert mean[0] > mean[1] > mean[2]

# %%
# The mean cost of the answers against the share of patients who get one, for every price of a second look.

RiskCoverageDisplay.from_estimator(model, X_test, y_test)
plt.show()
