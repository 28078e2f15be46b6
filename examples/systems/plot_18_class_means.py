r"""
18. The closest class mean in feature space
===========================================

The simplest classifier with a kernel takes the class whose mean :math:`c_\pm` in feature space is closer. Expanding
the squared distances gives a linear rule,

.. math:: h(x) = \mathrm{sign}\left(\langle w, \psi(x) \rangle + b\right),

.. math:: w = c_+ - c_-, \qquad b = \tfrac{1}{2} \left({|c_-|}^2 - {|c_+|}^2\right),

[SSBD] Exercise 16.6, and all of it is means of kernel values: :math:`\langle c_+, \psi(x) \rangle` is the mean of
:math:`k(x_i, x)` over the positive samples. (The exercise has the labels 1 and 0; a sign has 1 and −1.)
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import SVC, DecisionDisplay, Gaussian, KernelCentroid, Linear, Polynomial

X, y = make_moons(200, noise=0.2, random_state=0)
new, labels = make_moons(2000, noise=0.2, random_state=1)

# %%
# The figure
# ----------
#
# With a linear kernel the border is halfway between the two means. With a Gaussian kernel the mean of a class is a
# landscape, the average of bumps on its samples, and the border is where the two landscapes are equally high.

machines = {
    "means, linear kernel": KernelCentroid(kernel=Linear()),
    "means, Gaussian kernel": KernelCentroid(kernel=Gaussian(4.0)),
    "SVC, Gaussian kernel": SVC(kernel=Gaussian(4.0), C=1.0),
}
figure, axes = plt.subplots(1, 3, figsize=(10.8, 3.3), layout="constrained", sharey=True)
errors = {}
for ax, (name, machine) in zip(axes, machines.items(), strict=True):
    display = DecisionDisplay.from_estimator(machine.fit(X, y), X, y, ax=ax)
    errors[name] = 1 - machine.score(new, labels)
    ax.set(title=f"{name}: {errors[name]:.1%} errors", xlabel="", ylabel="", xticks=[], yticks=[])
    ax.get_legend().remove()
means = [X[y == c].mean(axis=0) for c in (0, 1)]
axes[0].plot(*np.transpose(means), "k*--", ms=13, lw=1.0)
plt.show()

# %%
# The numbers
# -----------
#
# With features that can be written down the formula can be checked directly.

kernel = Polynomial.inhomogeneous(2)
psi = kernel.feature_map(X)
plus, minus = psi(X)[y == 1].mean(axis=0), psi(X)[y == 0].mean(axis=0)
expected = psi(new) @ (plus - minus) + 0.5 * (minus @ minus - plus @ plus)
model = KernelCentroid(kernel=kernel).fit(X, y)
difference = np.abs(model.decision_function(new) - expected).max()
print(f"largest difference from the formula: {difference:.1e}")
for name, error in errors.items():
    print(f"{name:24} {error:6.1%} errors on 2,000 new samples")
assert difference < 1e-9
assert errors["means, Gaussian kernel"] < 0.6 * errors["means, linear kernel"]

# %%
# What to notice
# --------------
#
# * There is nothing to optimise: one mean per class. It is a good baseline; an SVM that is not better is not worth its
#   time.
# * All samples count the same, also those far from the border. An SVM drops these.
#
# Links
# -----
#
# :Names: :obj:`mercer.KernelCentroid`
# :Tests: ``tests/notes/test_algorithms.py::test_18_closest_class_mean``
# :See also: :doc:`plot_28_representer_theorem`, :doc:`plot_39_rkhs`
