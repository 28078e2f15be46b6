r"""
17. The kernel perceptron
=========================

The weights of a perceptron are a sum of samples, each as often as it was a mistake. So counts :math:`\beta` replace
:math:`w`, and kernel values replace inner products:

.. math:: \beta_i \leftarrow \beta_i + y_i \quad\text{if}\quad y_i \sum_j \beta_j k(x_j, x_i) \le 0,

[SSBD] Exercise 16.2, [CS229] 5.4. With a kernel :math:`k(x, z) = \langle \psi(x), \psi(z) \rangle` these are exactly
the updates of the linear perceptron on :math:`\psi(x)`, and the bound of row 16 holds with the margin of the features.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import DecisionDisplay, Perceptron, Polynomial, datasets

RED = "#d55e00"

data = datasets.make_circle(120, gap=0.15, seed=1)
X, y = data.X, data.y
kernel = Polynomial.inhomogeneous(2)
model = Perceptron(kernel=kernel, fit_intercept=False, shuffle=False, tol=None, trace=True).fit(X, y)
steps = model.steps_
mistakes = steps.i[steps.mistake]

# %%
# The figure
# ----------
#
# The border after some of the mistakes; rings are the samples that were mistakes so far, the red one is the last.

shown = (3, 6, 10, len(mistakes))
figure, axes = plt.subplots(1, 4, figsize=(11.6, 3.3), layout="constrained", sharey=True)
for ax, count in zip(axes, shown, strict=True):
    machine = Perceptron(kernel=kernel, fit_intercept=False)
    for i in mistakes[:count]:  # the other samples change nothing
        machine.partial_fit(X[[i]], y[[i]], classes=[-1, 1])
    DecisionDisplay.from_estimator(machine, X, y, ax=ax, grid=100)
    ax.scatter(*X[np.unique(mistakes[:count])].T, s=60, facecolors="none", edgecolors="black", linewidths=0.8)
    ax.scatter(*X[mistakes[count - 1]], s=130, facecolors="none", edgecolors=RED, linewidths=2.0)
    right = np.mean(machine.predict(X) == y)
    ax.set(title=f"mistake {count}: {right:.0%} correct", xlabel="", ylabel="", xticks=[], yticks=[], aspect="equal")
    ax.get_legend().remove()
plt.show()

# %%
# The numbers
# -----------

phi = kernel.feature_map(X)(X)
linear = Perceptron(fit_intercept=False, shuffle=False, tol=None).fit(phi, y)
bound = model.update_bound(X, y)[0]
print(f"{model.n_updates_[0]} updates with the kernel, {linear.n_updates_[0]} on its {phi.shape[1]} features")
print(f"bound (ρ/γ)² in the feature space: {bound:,.0f}")
assert model.separated_ and model.n_updates_[0] == linear.n_updates_[0] == len(mistakes) <= bound
assert np.allclose(model.decision_function(X), linear.decision_function(phi), rtol=1e-8, atol=1e-8)
counts = np.zeros(len(y))
np.add.at(counts, mistakes, y[mistakes])
assert np.allclose(counts[model.support_], model.dual_coef_[0])

# %%
# What to notice
# --------------
#
# * The border is a conic, because every function of this kernel is a polynomial of degree 2.
# * All mistakes are near the circle: samples whose neighbours have been added are right already.
#
# Links
# -----
#
# :Names: :obj:`mercer.Perceptron` with ``kernel``; ``trace=True``: :obj:`mercer.Steps`
# :Tests: ``tests/notes/test_algorithms.py::test_17_kernel_perceptron``, ``test_17_steps``
# :Studio: lesson ``perceptron`` of ``mercer studio``
# :See also: :doc:`plot_16_perceptron`, :doc:`plot_08_pegasos_with_kernels`, :doc:`plot_21_feature_maps`
