r"""
29. Margins and separability
============================

The distance of :math:`x` from the hyperplane :math:`\langle w, x \rangle + b = 0` is :math:`{|\langle w, x \rangle +
b|}/{|w|}`: [SSBD] Claim 15.1. With the label it has a sign,

.. math:: \text{functional margin } y_i (\langle w, x_i \rangle + b),

.. math:: \text{geometric margin } \frac{y_i (\langle w, x_i \rangle + b)}{|w|},

[CS229] 6, [M5]. Doubling :math:`w` and :math:`b` doubles the first and leaves the second. Samples are separable with a
:math:`(\gamma, \rho)`-margin if the smallest geometric margin of some hyperplane is :math:`\gamma > 0` and all lengths
are at most :math:`\rho` ([SSBD] Definition 15.3). Scaling the samples scales both, so that only :math:`\rho/\gamma`
means anything.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from mercer import SVC, MarginDisplay, datasets, margins, separability

BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#666666"

# %%
# The figure
# ----------
#
# Left the points −10, …, 10 of [SSBD] 16.1, positive where :math:`{|x|} > 2`. No threshold separates them; with the
# feature :math:`x^2` a line does, and the widest street is found. Right the functional margins of a real data set.

line = datasets.make_line()
flat = separability(line.X, line.y).pairs[0].biased
lifted = separability(line.psi, line.y).pairs[0].biased

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
model = SVC(C=0.05, kernel="linear", tol=1e-6).fit(X, y)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.8, 3.8), layout="constrained")
for sign, colour, mark in ((-1, BLUE, "o"), (1, ORANGE, "s")):
    own = line.y == sign
    left.scatter(line.X[own, 0], np.full(own.sum(), -2.0), s=22, color=colour, marker=mark)
    left.scatter(*line.psi[own].T, s=28, color=colour, marker=mark, zorder=3)
height = -lifted.bias / lifted.normal[1]
left.axhline(height, color="black", lw=1.4, label=f"x² = {height:.1f}, margin {lifted.margin:.1f}")
left.axhspan(height - lifted.margin, height + lifted.margin, color=GREY, alpha=0.2, lw=0)
left.set(xlabel="x", ylabel="x²", ylim=(-4, 30), xlim=(-6.5, 6.5), title="below: x alone; above: (x, x²)")
left.legend(fontsize="small", loc="upper center")
MarginDisplay.from_estimator(model, X, y, ax=right)
plt.show()

# %%
# The numbers
# -----------

w, b = model.coef_[0], model.intercept_[0]
report = margins(model, X, y)
foot = X - np.outer((X @ w + b) / (w @ w), w)  # the nearest point of the hyperplane
assert np.allclose(foot @ w + b, 0.0, atol=1e-9)
assert np.allclose(np.abs(report.geometric), np.linalg.norm(X - foot, axis=1), atol=1e-9)
assert np.allclose(report.functional, np.where(y == 1, 1, -1) * (X @ w + b), atol=1e-9)
print(f"x alone: separable {flat.separable};  (x, x²): separable {lifted.separable}, margin {lifted.margin:.4f}")
assert not flat.separable and flat.decided
assert np.isclose(lifted.margin, 2.5, rtol=1e-3) and np.isclose(height, 6.5, rtol=1e-3)  # halfway from 4 to 9

# the proof that x is not separable: a point that is in the hulls of both classes
common = [np.abs(flat.weights[line.y == sign]) @ line.X[line.y == sign, 0] for sign in (-1, 1)]
print(f"a common point of both hulls: {common[0]:.6f} = {common[1]:.6f}")
assert np.isclose(*common, atol=1e-9)

for scale in (0.01, 100.0):
    found = separability(scale * line.psi, line.y).pairs[0].biased
    assert np.isclose(found.rho / found.margin, lifted.rho / lifted.margin, rtol=1e-3)

# %%
# What to notice
# --------------
#
# * Orange bars on the right are correct but inside of the street; they have slack, as the wrong ones in red do.
# * ``separability`` decides with a proof either way: a hyperplane with its margin, or a point that both classes' convex
#   hulls contain.
#
# Links
# -----
#
# :Names: :obj:`mercer.margins`, :obj:`mercer.separability`
# :Tests: ``tests/notes/test_theory.py::test_29_margins``, ``test_29_separable_with_a_margin``,
#         ``test_29_not_separable``
# :Studio: lesson ``not-separable`` of ``mercer studio``
# :See also: :doc:`plot_01_hard_svm`, :doc:`plot_16_perceptron`, :doc:`plot_30_error_bounds`
