r"""
1. Hard-SVM: the widest street
==============================

Many lines separate two classes that can be separated at all. Hard-SVM takes the line whose closest sample is as far
away as possible. With a unit normal :math:`v` this is

.. math:: \max_{{|v|} = 1,\, a}\ \min_i\ y_i (\langle v, x_i \rangle + a),

[SSBD] (15.1). The equivalent problem that is solved fixes the smallest value at 1 instead of the length of the normal,

.. math:: \min_{w, b}\ \tfrac{1}{2} {|w|}^2 \quad\text{such that}\quad y_i (\langle w, x_i \rangle + b) \ge 1,

[SSBD] (15.2), [D6] Algorithm 13. Then :math:`v = w/{|w|}`, :math:`a = b/{|w|}`, and the margin is :math:`1/{|w|}`. (For
:math:`a`, Algorithm 13 prints a division by :math:`{|b|}`, which would move the line.)
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, DecisionDisplay, LinearSVC, unit_hyperplanes

BLUE, ORANGE, RED = "#0072b2", "#e69f00", "#d55e00"

rng = np.random.default_rng(3)
X = rng.normal(size=(40, 2))
y = np.where(X @ [0.6, 0.8] > 0, 1, -1)
X = X + 0.45 * np.outer(y, [0.6, 0.8]) + [1.0, 0.5]

model = SVC(C=np.inf, kernel="linear", tol=1e-8).fit(X, y)

# %%
# The figure
# ----------
#
# On the right every direction of the plane has its best line: the threshold is put halfway between the classes, and
# the height is the distance to the closest sample, negative where the direction does not separate the classes. The
# machine stands on the peak.

angle = np.linspace(0.0, np.pi, 2001)
f = np.column_stack([np.cos(angle), np.sin(angle)]) @ X.T
of_direction = 0.5 * (f[:, y > 0].min(axis=1) - f[:, y < 0].max(axis=1))

(plane,) = unit_hyperplanes(model)
own = np.arctan2(plane.normal[1], plane.normal[0])

figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 4.0), layout="constrained")
DecisionDisplay.from_estimator(model, X, y, ax=left)
left.set(title=f"margin 1/|w| = {model.margin_[0]:.3f}", aspect="equal")
right.axhline(0.0, color="black", lw=0.8)
right.fill_between(np.degrees(angle), 0, of_direction, where=of_direction > 0, color=BLUE, alpha=0.2, lw=0)
right.plot(np.degrees(angle), of_direction, color=BLUE, lw=1.8, label="best line of each direction")
right.plot(np.degrees(own), model.margin_[0], "o", color=RED, ms=8, label="Hard-SVM")
right.set(xlabel="angle of the normal, degrees", ylabel="distance of the closest sample", xlim=(0, 180))
right.legend(loc="lower left", fontsize="small")
plt.show()

# %%
# The numbers
# -----------
#
# No direction has a larger margin. The machine over :math:`w` and :math:`b` without a kernel finds the same line.

w, b = model.coef_[0], model.intercept_[0]
closest = np.min(y * (X @ plane.normal + plane.bias))
without_kernel = LinearSVC(C=np.inf, penalize_intercept=False, tol=1e-9).fit(X, y)
print(f"margin_                     {model.margin_[0]:.6f}")
print(f"distance, closest sample    {closest:.6f}")
print(f"best of 2,001 directions    {of_direction.max():.6f}")
print(f"margin without a kernel     {1 / np.linalg.norm(without_kernel.coef_):.6f}")

assert np.isclose(closest, model.margin_[0], rtol=1e-6)
assert of_direction.max() <= model.margin_[0] * (1 + 1e-6)
assert np.isclose(plane.bias, b / np.linalg.norm(w), rtol=1e-12)
assert np.allclose(without_kernel.coef_[0], w, rtol=1e-5)

# %%
# What to notice
# --------------
#
# * Only the ringed samples, the support vectors, touch the street. Move any other sample, without entering the street,
#   and nothing changes.
# * The street is :math:`2/{|w|}` wide: [M5] calls that width the margin.
# * The peak on the right is a kink: there the closest samples of the two classes change places.
#
# Links
# -----
#
# :Names: :obj:`mercer.SVC`, :obj:`mercer.LinearSVC` with ``C=inf``; ``SVC.margin_``, ``SVC.coef_``,
#         ``SVC.intercept_``; :obj:`mercer.unit_hyperplanes`
# :Tests: ``tests/notes/test_machines.py::test_01_hard_svm``,
#         ``tests/notes/test_machines.py::test_01_hard_svm_without_a_kernel``
# :Studio: lessons ``widest-street``, ``support-vectors`` of ``mercer studio``
# :See also: :doc:`plot_02_hard_svm_through_the_origin`, :doc:`plot_03_soft_svm`, :doc:`plot_29_margins`
