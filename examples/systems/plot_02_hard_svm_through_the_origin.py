r"""
2. Hard-SVM through the origin
==============================

Without a bias the hyperplane contains the origin:

.. math:: \min_w\ \tfrac{1}{2} {|w|}^2 \quad\text{such that}\quad y_i \langle w, x_i \rangle \ge 1,

[SSBD] (15.3), [D6] Definition 19. A bias comes back by a constant feature: with samples :math:`(x, s)` the last weight
:math:`v` stands for :math:`b = s v`, and the objective becomes :math:`\frac{1}{2} {|w|}^2 + \frac{1}{2} b^2 / s^2`. So
a constant feature is a bias that is regularised, and the less so the larger :math:`s` is.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, LinearSVC

BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#666666"

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
y = np.where(X @ [0.6, 0.8] > 0, 1, -1)
X = X + 0.5 * np.outer(y, [0.6, 0.8]) + 0.3 * np.array([0.6, 0.8])

biased = SVC(C=np.inf, kernel="linear", tol=1e-8).fit(X, y)
homogeneous = SVC(C=np.inf, kernel="linear", fit_intercept=False, tol=1e-8).fit(X, y)

# %%
# The figure
# ----------
#
# Left, both streets: the one through the origin has to be narrower. Right, the constant feature :math:`s`: the margin
# in the plane of the first two features approaches that of the machine with a bias.


def margin_with_constant(s):
    """The distance in the plane from the line to the closest sample, if the line comes from samples (x, s)."""
    extended = np.column_stack([X, np.full(len(X), s)])
    w = SVC(C=np.inf, kernel="linear", fit_intercept=False, tol=1e-8).fit(extended, y).coef_[0]
    return np.min(y * (extended @ w)) / np.linalg.norm(w[:2])


scales = np.geomspace(0.05, 50.0, 25)
margins = np.array([margin_with_constant(s) for s in scales])

figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 4.0), layout="constrained")
for sign, colour, mark in ((-1, BLUE, "o"), (1, ORANGE, "s")):
    left.scatter(*X[y == sign].T, s=24, color=colour, marker=mark, edgecolors="white", linewidths=0.5)
ends = np.array([-3.2, 3.2])
for model, colour, name in ((biased, GREY, "with a bias"), (homogeneous, RED, "through the origin")):
    w, b = model.coef_[0], model.intercept_[0]
    for level, style in ((0.0, "-"), (1.0, "--"), (-1.0, "--")):
        label = f"{name}: {model.margin_[0]:.2f}" if level == 0.0 else None
        left.plot(
            ends, (level - b - w[0] * ends) / w[1], style, color=colour, lw=1.5 if level == 0 else 0.9, label=label
        )
left.plot(0, 0, "+", color="black", ms=12, mew=2)
left.set(xlim=(-3.0, 3.0), ylim=(-3.0, 3.4), aspect="equal", title="margins; + is the origin")
left.legend(fontsize="small", loc="upper right")
right.semilogx(scales, margins, "o-", color=GREEN, ms=3.5, label="constant feature s")
right.axhline(biased.margin_[0], color=GREY, ls="--", lw=1.2, label="with a bias")
right.axhline(homogeneous.margin_[0], color=RED, ls="--", lw=1.2, label="through the origin")
right.set(xlabel="s", ylabel="margin in the plane", ylim=(0, None))
right.legend(fontsize="small", loc="center right")
plt.show()

# %%
# The numbers
# -----------

directions = np.linspace(0.0, 2 * np.pi, 20_001)
smallest = (y * (np.column_stack([np.cos(directions), np.sin(directions)]) @ X.T)).min(axis=1)
print(f"margin through the origin   {homogeneous.margin_[0]:.6f}")
print(f"best of 20,001 directions   {smallest.max():.6f}")
print(f"margin with a bias          {biased.margin_[0]:.6f}")
print(f"constant feature s = 50     {margins[-1]:.6f}")

without_kernel = LinearSVC(C=np.inf, fit_intercept=False, tol=1e-9).fit(X, y)
assert homogeneous.intercept_[0] == 0.0
assert smallest.max() <= homogeneous.margin_[0] * (1 + 1e-6)
assert np.allclose(without_kernel.coef_, homogeneous.coef_, rtol=1e-5)
assert homogeneous.margin_[0] <= margins[-1] <= biased.margin_[0] * (1 + 1e-6)
assert margins[-1] > 0.99 * biased.margin_[0]

# %%
# What to notice
# --------------
#
# * Without a bias the position of the origin matters: center the samples, or give the machine a bias.
# * ``LinearSVC`` regularises the bias by default, as scikit-learn and LIBLINEAR do; ``intercept_scaling`` is :math:`s`,
#   and ``penalize_intercept=False`` is the bias of the notes.
# * Theory is often written for the homogeneous machine, because it is simpler: the bounds of row 30 and the perceptron.
#
# Links
# -----
#
# :Names: :obj:`mercer.SVC`, :obj:`mercer.LinearSVC` with ``C=inf, fit_intercept=False``
# :Tests: ``tests/notes/test_machines.py::test_02_hard_svm_homogeneous``
# :Studio: lesson ``through-the-origin`` of ``mercer studio``
# :See also: :doc:`plot_01_hard_svm`, :doc:`plot_04_soft_svm_through_the_origin`, :doc:`plot_16_perceptron`
