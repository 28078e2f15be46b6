r"""
19. The ramp loss: wrong labels cannot pull far
===============================================

The hinge loss of a sample deep on the wrong side grows without limit, so that one wrong label can turn the machine.
The ramp loss stops at 1:

.. math:: \min\left(1,\ \max(0, 1 - y f)\right),

[SSBD] 15.2.3. It lies between the 0–1 loss and the hinge loss, and it is not convex. ``RampSVC`` descends on
:math:`\frac{1}{2} {|w|}^2 + C \sum \text{ramp}` by a sequence of convex machines, each of which gives up the samples
that the one before left with a loss above 1. It promises a stationary point, not the optimum.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, RampSVC
from mercer.losses import hinge, ramp, zero_one

BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#666666"

rng = np.random.default_rng(0)
y = np.where(np.arange(80) % 2 == 0, 1, -1)
X = rng.normal(size=(80, 2)) * [0.6, 1.0] + np.outer(y, [1.3, 0.0])
X = np.vstack([X, [5.5, 2.2] + rng.normal(size=(8, 2)) * 0.4])  # eight negative samples far on the positive side
y = np.append(y, np.full(8, -1))

plain = SVC(C=1.0, kernel="linear", tol=1e-6).fit(X, y)
robust = RampSVC(C=1.0, kernel="linear", tol=1e-6).fit(X, y)

# %%
# The figure
# ----------

f = np.linspace(-3, 2.5, 400)
figure, (left, right) = plt.subplots(1, 2, figsize=(9.8, 3.8), width_ratios=[1, 1.5], layout="constrained")
for loss, name, colour, style in (
    (hinge, "hinge", BLUE, "-"), (ramp, "ramp", RED, "-"), (zero_one, "0–1", GREY, "--"),
):  # fmt: skip
    left.plot(f, loss(np.ones_like(f), f), style, color=colour, lw=1.8, label=name)
left.set(xlabel="margin yf", ylabel="loss", ylim=(-0.1, 3.2))
left.legend()
for sign, colour, mark in ((-1, BLUE, "o"), (1, ORANGE, "s")):
    right.scatter(*X[y == sign].T, s=20, color=colour, marker=mark, edgecolors="white", linewidths=0.4)
right.scatter(*X[robust.given_up_].T, s=80, facecolors="none", edgecolors=RED, linewidths=1.2, label="given up")
ends = np.array([-3.2, 3.2])
for model, colour, name, style in ((plain, GREY, "SVC, hinge loss", "--"), (robust, RED, "RampSVC", "-")):
    w, b = model.coef_[0], model.intercept_[0]
    right.plot(-(b + w[1] * ends) / w[0], ends, style, color=colour, lw=2.0, label=name)
right.set(xlim=(-3.5, 7.2), ylim=(-3.2, 3.2), xlabel="x₁", ylabel="x₂")
right.legend(fontsize="small", loc="lower right")
plt.show()

# %%
# The numbers
# -----------


def objective(model):
    """½|w|² + C Σ ramp."""
    return 0.5 * model.rkhs_norm_[0] ** 2 + ramp(y, model.decision_function(X)).sum()


clean = slice(0, 80)
print(f"ramp objective: {objective(plain):.3f} by SVC, {objective(robust):.3f} by RampSVC")
scores = [machine.score(X[clean], y[clean]) for machine in (plain, robust)]
print(f"correct among the 80 with right labels: {scores[0]:.1%} and {scores[1]:.1%}")
(trace,) = robust.objective_traces_
print(f"objective after each convex machine: {', '.join(f'{value:.3f}' for value in trace)}")
assert np.isclose(objective(robust), robust.objective_, rtol=1e-6) and objective(robust) < objective(plain)
assert np.all(np.diff(trace) <= 1e-6 * trace[0])
assert set(range(80, 88)) <= set(robust.given_up_)
values = np.linspace(-3, 3, 61)
for label in (1, -1):
    same = np.full(61, label)
    assert np.all(zero_one(same, values) <= ramp(same, values)) and np.all(ramp(same, values) <= hinge(same, values))

# %%
# What to notice
# --------------
#
# * A given-up sample costs 1 and pulls no more, so that the line returns to where the other 80 want it.
# * The certificate of ``RampSVC`` is that of its last convex machine. The ramp problem itself is hard: no bound on its
#   optimum is known.
#
# Links
# -----
#
# :Names: :obj:`mercer.RampSVC`, ``losses.ramp``
# :Tests: ``tests/notes/test_algorithms.py::test_19_ramp_loss``
# :See also: :doc:`plot_03_soft_svm`, :doc:`plot_36_regularised_losses`, :doc:`plot_30_error_bounds`
