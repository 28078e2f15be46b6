"""
A first machine
===============

One import separates mercer from scikit-learn: the parameters, the attributes and the results are the same. In addition
every fitted model carries a certificate, which says how far it is from the best possible model of its kind.
"""

import matplotlib.pyplot as plt
import numpy as np
import sklearn.svm
from sklearn.datasets import make_moons

from mercer import SVC, DecisionDisplay

X, y = make_moons(200, noise=0.25, random_state=0)

# %%
# Three machines for the same points. ``C`` is the price of a sample on the wrong side of its margin. With a small ``C``
# the machine prefers a wide margin and a smooth boundary; with a large one it bends the boundary around single samples.
# Rings mark the support vectors, the only samples that the machine remembers.

figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained", sharex=True, sharey=True)
machines = {}
for ax, C in zip(axes, (0.1, 10, 1000), strict=True):
    machines[C] = SVC(C=C, gamma=1.0).fit(X, y)
    display = DecisionDisplay.from_estimator(machines[C], X, y, ax=ax)
    ax.set(title=f"C = {C:g}: {len(machines[C].support_)} support vectors", xlabel="$x_1$", ylabel="$x_2$")
    ax.get_legend().remove()
    ax.label_outer()
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
for text, label in zip(figure.legends[0].get_texts(), ("class 0", "class 1", "support vectors"), strict=True):
    text.set_text(label)
plt.show()

# %%
# The certificate is computed from the data and the solution alone, in double precision: the optimum lies between the
# dual and the primal value, whatever the solver did.

for C, machine in machines.items():
    print(f"C = {C:6g}: {machine.certificate_}")
    assert machine.certificate_.relative_gap < 0.01

# %%
# scikit-learn finds the same machine.

theirs = sklearn.svm.SVC(C=10, gamma=1.0).fit(X, y)
grid = np.random.default_rng(0).uniform(-2, 2, (1000, 2))
difference = np.abs(machines[10].decision_function(grid) - theirs.decision_function(grid)).max()
print(f"largest difference of decision values: {difference:.1e}")
assert difference < 0.02
assert len(machines[0.1].support_) > len(machines[10].support_)
