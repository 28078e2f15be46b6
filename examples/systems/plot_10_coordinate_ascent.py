r"""
10. Coordinate ascent
=====================

Without a bias the dual has no constraint but the box, so that one multiplier can move alone. The dual as a function of
:math:`\alpha_i` is a parabola; its maximum, clipped to the box, is

.. math:: \alpha_i \leftarrow \mathrm{clip}\left(\alpha_i + \frac{1 - y_i f_i}{K_{ii}},\ 0,\ C\right), \qquad
          f_i = \langle w, x_i \rangle,\quad w = \sum_j \alpha_j y_j x_j.

[M5] names three ways to choose :math:`i`: in turn, at random, and the one that promises the largest improvement. (It
prints :math:`\arg\min`; the dual is maximised.) For a linear machine a step costs as much as reading one sample, since
:math:`w` is kept up to date.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC, LinearSVC
from mercer.display import figures

COLOURS = {"round-robin": "#0072b2", "random": "#e69f00", "greedy": "#009e73"}

# %%
# Two samples
# -----------
#
# With two samples the path can be drawn over the contour lines of the dual. Each step goes along one axis.

figures.coordinate_ascent()
plt.show()

# %%
# Three rules
# -----------
#
# 60 samples, and the distance of the dual value from the optimum after each step. A pass is as many steps as there are
# samples.

rng = np.random.default_rng(0)
n = 60
y = np.where(np.arange(n) % 2 == 0, 1, -1)
X = rng.normal(size=(n, 2)) + 0.7 * y[:, None]
options = {"C": 1.0, "fit_intercept": False, "solver": "coordinate", "random_state": 0}
optimum = SVC(C=1.0, kernel="linear", fit_intercept=False, tol=1e-10).fit(X, y).certificate_.dual

read = {}
figure, ax = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
for rule, colour in COLOURS.items():
    steps = SVC(kernel="linear", tol=1e-6, rule=rule, trace=True, **options).fit(X, y).steps_
    read[rule] = len(steps) * (n if rule == "greedy" else 1)  # the greedy rule looks at all samples in each step
    ax.loglog(np.arange(1, len(steps) + 1) / n, np.maximum(optimum - steps.dual, 1e-10), color=colour, label=rule)
ax.set(xlabel="passes over the samples", ylabel="optimum − dual value", ylim=(1e-7, None))
ax.legend(title="choice of i")
plt.show()

# %%
# The numbers
# -----------
#
# All rules end at the same machine; the duality gap says how near.

print("rule          relative gap   dual value")
for rule in COLOURS:
    model = LinearSVC(loss="hinge", rule=rule, tol=1e-7, **options).fit(X, y)
    found = model.certificate_
    print(f"{rule:12}  {found.relative_gap:12.1e}   {found.dual:.6f}")
    assert found.relative_gap <= 1e-7 and np.isclose(found.dual, optimum, rtol=1e-6)

print(f"samples read until 1e-6: {read}")
assert read["greedy"] > max(read["random"], read["round-robin"])

with warnings.catch_warnings():  # one pass is not enough, and the model says so
    warnings.simplefilter("ignore", ConvergenceWarning)
    early = LinearSVC(loss="hinge", rule="round-robin", tol=1e-7, max_iter=1, **options).fit(X, y)
print(f"one pass      {early.certificate_.relative_gap:12.1e}   {early.certificate_.dual:.6f}")
assert early.certificate_.dual <= optimum <= early.certificate_.primal

# %%
# What to notice
# --------------
#
# * The greedy rule needs the fewest steps, but each of them reads all samples to find the best one. Counted in samples
#   read it is the most expensive rule here, for a linear machine. With kernels it is the cheapest (row 37).
# * A clipped step ends on the box and stays there as long as its margin is on the right side: the same sample is
#   visited in vain until the end. Solvers skip such samples.
#
# Links
# -----
#
# :Names: :obj:`mercer.LinearSVC` with ``solver="coordinate"``, ``rule``;
#         ``display.figures.coordinate_ascent``
# :Tests: ``tests/notes/test_machines.py::test_10_coordinate_ascent``
# :Studio: lesson ``coordinate-ascent`` of ``mercer studio``
# :See also: :doc:`plot_11_smo`, :doc:`plot_37_coordinate_ascent_with_kernels`, :doc:`plot_38_steps`
