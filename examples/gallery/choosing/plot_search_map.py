"""
The map of a search
===================

``SVCCV`` tries all combinations of C and γ by cross-validation. It gives the scores of a grid search over ``SVC``, but
shares work: all γ share distances, all folds and all C share a kernel matrix, and neighbouring C share solutions. So a
fine map of a real set takes a second, and shows what one number hides.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from mercer import SVCCV, SearchMapDisplay

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
search = SVCCV(Cs=np.logspace(-2, 4, 19), gammas=np.logspace(-5, 1, 19)).fit(X, y)
print(f"{len(search.cv_results_['params'])} candidates, best: C = {search.C_:.3g}, gamma = {search.gamma_:.3g}")
print(f"score {search.best_score_:.4f}")

# %%
# The bright ridge runs along C·γ = constant: a smooth kernel needs a larger C. At its lower end the Gaussian kernel
# acts like a linear one; above it the machine learns samples by heart; far below, it calls all samples by the larger
# class.

display = SearchMapDisplay.from_estimator(search, "C", "gamma")
display.figure_.set_size_inches(7.2, 5.4)
scores = display.scores
ax = display.ax_
ax.set_xticks(np.arange(0, 19, 3), [f"$10^{{{k}}}$" for k in range(-2, 5)], rotation=0)
ax.set_yticks(np.arange(0, 19, 3), [f"$10^{{{k}}}$" for k in range(-5, 2)])
ax.set_ylabel("γ")
style = {"color": "white", "fontsize": "large", "ha": "center", "fontweight": "bold"}
ax.text(3.5, 1.5, "too simple", **style)
ax.text(9, 16.2, "learnt by heart", **style)
plt.show()

# %%
# Many combinations are as good as the best one: the choice hardly matters along the ridge, and the best of 361 scores
# is too good to be true. ``evaluate`` gives an honest number.

good = scores >= search.best_score_ - 0.01
print(f"{good.sum()} of {good.size} candidates are within one percent of the best")
assert good.sum() >= 10
ridge = [np.log10(display.x_values[j] * display.y_values[scores[:, j].argmax()]) for j in range(8, 19)]
assert np.std(ridge) < 1.0  # along the ridge C·γ changes little, while C changes by three decades
assert scores[-1].max() < 0.8 and scores[0, 0] < 0.7
