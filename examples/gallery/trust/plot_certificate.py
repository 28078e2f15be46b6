"""
Two numbers that enclose the optimum
====================================

Training a support vector machine is a minimisation. Its dual is a maximisation whose value never exceeds the minimum,
so one value of each bounds the distance to the optimum. mercer computes both from the data and the solution: a model
stopped early still says how good it is.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from mercer import SVC

BLUE, ORANGE, GREEN = "#0072b2", "#e69f00", "#009e73"

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)

# %%
# Stop the same fit after a few pair steps, then after more and more of them. A warning would say in words what the
# certificate says in numbers.

steps = np.unique(np.geomspace(5, 1000, 22).astype(int))
models = []
for limit in steps:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        models.append(SVC(C=100, gamma=0.02, max_iter=int(limit)).fit(X, y))
primal = np.array([model.certificate_.primal for model in models])
dual = np.array([model.certificate_.dual for model in models])
gap = np.array([model.certificate_.relative_gap for model in models])
exact = SVC(C=100, gamma=0.02, tol=1e-9).fit(X, y).certificate_

# %%
# The optimum is never outside the two curves, whatever the solver has done so far, and the certified distance is never
# smaller than the true one.

assert np.all(dual <= exact.primal * (1 + 1e-9)) and np.all(primal >= exact.dual * (1 - 1e-9))
excess = (primal - exact.primal) / primal
assert np.all(excess <= gap + 1e-9)
assert gap[-1] < 0.01 < 0.5 < gap[0]

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
left.fill_between(steps, dual, primal, color=BLUE, alpha=0.15, lw=0, label="the optimum is in here")
left.plot(steps, primal, "o-", ms=4, color=BLUE, label="primal: what the model pays")
left.plot(steps, dual, "s-", ms=4, color=ORANGE, label="dual: no model pays less")
left.axhline(exact.primal, color="black", lw=1, ls="--", label=f"optimum, {exact.primal:,.0f}")
left.set(xscale="log", yscale="log", xlabel="pair steps of the solver", ylabel="objective")
left.legend(frameon=False, fontsize="small", loc="upper right")
right.plot(steps, gap, "o-", ms=4, color=BLUE, label="certified: (primal − dual) / primal")
right.plot(steps, excess, "^--", ms=4, color=GREEN, label="true: (primal − optimum) / primal")
right.axhline(0.01, color="black", lw=1, ls=":")
right.text(steps[0], 0.012, "1 %", va="bottom")
right.set(xscale="log", yscale="log", ylim=(1e-4, 3))
right.set(xlabel="pair steps of the solver", ylabel="distance from the optimum")
right.legend(frameon=False, fontsize="small", loc="lower left")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The certificate of an early model, and of the last one:

print(models[0].certificate_)
print(models[-1].certificate_)
