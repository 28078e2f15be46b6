"""
Handwritten digits and the hardest of them
==========================================

Ten classes, 45 machines (one for each pair of classes), one ``fit``. The support vectors with the largest weights are
the digits that the machine finds hardest: a human hesitates, too.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from mercer import SVC

images, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(images / 16, y, test_size=0.4, stratify=y, random_state=0)
machine = SVC(C=10).fit(X, y)
predicted = machine.predict(X_new)
print(f"{len(X):,} digits learnt, {np.mean(predicted == y_new):.1%} of {len(X_new):,} new ones right")
print(f"certificate of all 45 machines together: {machine.certificate_}")
assert np.mean(predicted == y_new) > 0.98

# %%
# ``dual_coef_`` has the weights of each support vector in its machines. Their sum says how hard a sample pulls at the
# boundaries. Above: the hardest training sample of each class. Below: an easy one, which no machine remembers and which
# lies deepest inside its class.

weight = np.zeros(len(X))
weight[machine.support_] = np.abs(machine.dual_coef_).sum(axis=0)
depth = machine.decision_function(X)[np.arange(len(X)), y]
hard = [np.flatnonzero(y == c)[weight[y == c].argmax()] for c in range(10)]
forgotten = np.where(weight == 0, depth, -np.inf)
easy = [np.flatnonzero(y == c)[forgotten[y == c].argmax()] for c in range(10)]
assert all(weight[easy] == 0) and all(weight[hard] > 0)

figure, axes = plt.subplots(2, 10, figsize=(11, 2.7), layout="constrained")
for row, (name, chosen) in enumerate((("hardest", hard), ("easiest", easy))):
    for ax, i in zip(axes[row], chosen, strict=True):
        ax.imshow(X[i].reshape(8, 8), cmap="gray_r")
        ax.set(xticks=[], yticks=[])
        ax.set_title(f"|β| = {weight[i]:.1f}" if weight[i] else "forgotten", fontsize="small")
    axes[row, 0].set_ylabel(name)
plt.show()

# %%
# All mistakes on new digits. The bars below each image are the decision values of the two classes in question,
# which are near each other for most of them.

wrong = np.flatnonzero(predicted != y_new)
values = machine.decision_function(X_new[wrong])
figure, axes = plt.subplots(2, len(wrong), figsize=(11, 3.5), layout="constrained", height_ratios=(3, 1.2))
for column, i in enumerate(wrong):
    upper, lower = axes[:, column]
    upper.imshow(X_new[i].reshape(8, 8), cmap="gray_r")
    upper.set(xticks=[], yticks=[])
    upper.set_title(f"a {y_new[i]}, read as {predicted[i]}", fontsize="medium")
    pair = [y_new[i], predicted[i]]
    lower.barh(["true", "read"], values[column, pair], color=["#0072b2", "#e69f00"])
    lower.set(xlim=(0, 10), yticks=[0, 1], yticklabels=[f"as {pair[0]}", f"as {pair[1]}"])
    lower.invert_yaxis()
    lower.spines[["top", "right"]].set_visible(False)
    assert abs(values[column, pair[0]] - values[column, pair[1]]) < 4
figure.supxlabel("decision value", fontsize="medium")
plt.show()
