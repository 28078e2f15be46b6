r"""
6. The bias from the support vectors
====================================

The dual has no :math:`b`: it is the multiplier of :math:`\sum \alpha_i y_i = 0`. The conditions of optimality give it
back. A free support vector is exactly on its edge, :math:`y_i (f(x_i) + b) = 1`, and as :math:`y_i = 1/y_i`,

.. math:: b = y_i - f(x_i) \quad\text{for every } i \text{ with } 0 < \alpha_i < C.

The mean over all of these rounds errors away: [M5], and [D6] Note 35, which prints :math:`y_i \langle w, x_i \rangle`
instead. Every other sample gives an inequality. A positive sample with :math:`\alpha = 0` has :math:`b \ge 1 - f(x_i)`,
one with :math:`\alpha = C` has :math:`b \le 1 - f(x_i)`; for negative samples they are reversed.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, kkt_report

BLUE, ORANGE, RED, GREY = "#0072b2", "#e69f00", "#d55e00", "#666666"

rng = np.random.default_rng(0)
y = np.where(np.arange(40) % 2 == 0, 1, -1)
X = rng.normal(size=(40, 2)) + 0.9 * np.outer(y, [0.6, 0.8]) + [0.8, 0.0]


def conditions(model, X, y):
    """The value y − f of each sample, and whether it bounds b from below, from above or on both sides."""
    (found,) = kkt_report(model, X, y).problems
    value = y - (model.decision_function(X) - model.intercept_[0])
    below = (found.state == "zero") == (y > 0)
    return value, np.where(found.state == "free", "equal", np.where(below, "below", "above"))


def draw(ax, model, X, y, title):
    """Draw each sample's condition on b as a ray that begins at y − f."""
    value, kind = conditions(model, X, y)
    order = np.argsort(value)
    for place, i in enumerate(order):
        if kind[i] == "equal":
            ax.plot(value[i], place, "D", color=RED, ms=6, zorder=3)
            continue
        toward, colour = (1, BLUE) if kind[i] == "below" else (-1, ORANGE)
        ax.annotate("", xy=(value[i] + 0.7 * toward, place), xytext=(value[i], place),
                    arrowprops={"arrowstyle": "->", "color": colour, "lw": 1.2})  # fmt: skip
        ax.plot(value[i], place, "|", color=colour, ms=7, mew=1.6)
    ax.axvline(model.intercept_[0], color=GREY, lw=1.4, ls="--", zorder=0)
    ax.set(title=title, xlabel="b", yticks=[], xlim=(value.min() - 1.2, value.max() + 1.2))


# %%
# The figure
# ----------
#
# Each sample allows the values of :math:`b` on its arrow's side. Red samples allow one value. Right, :math:`C`
# is so small that both samples are at the bound and none is free: a whole interval of :math:`b` is optimal.

model = SVC(C=0.5, kernel="linear", tol=1e-8).fit(X, y)
pair = np.array([[0.0], [1.0]]), np.array([-1, 1])
small = SVC(C=0.1, kernel="linear", tol=1e-8).fit(*pair)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2), width_ratios=[2, 1], layout="constrained")
draw(left, model, X, y, f"40 samples: all agree on b = {model.intercept_[0]:.3f}")
draw(right, small, *pair, "two samples, C = 0.1")
right.axvspan(-1.0, 0.9, color=GREY, alpha=0.15, lw=0)
right.set_ylim(-0.7, 1.7)
for colour, name in ((BLUE, "b is at least"), (ORANGE, "b is at most"), (RED, "b is exactly")):
    left.plot([], [], "o", color=colour, label=name)
left.plot([], [], ls="--", color=GREY, label="intercept_")
left.legend(fontsize="small", loc="lower right")
plt.show()

# %%
# The numbers
# -----------

value, kind = conditions(model, X, y)
free, b = value[kind == "equal"], model.intercept_[0]
print(f"{len(free)} free support vectors: y − f from {free.min():.7f} to {free.max():.7f}, intercept_ {b:.7f}")
print(f"two samples: intercept_ {small.intercept_[0]:.3f}, the middle of −1 and 0.9")
assert np.allclose(free, b, atol=1e-6)
assert value[kind == "below"].max() <= b + 1e-6 and value[kind == "above"].min() >= b - 1e-6
assert np.isclose(small.intercept_[0], -0.05, atol=1e-6)

# %%
# What to notice
# --------------
#
# * All blue arrows begin left of :math:`b` and all orange ones right of it: that is optimality in one picture, and the
#   largest overlap is the KKT violation that ``tol`` bounds.
# * Where no support vector is free the bias is not unique. mercer takes the middle of the interval.
#
# Links
# -----
#
# :Names: ``SVC.intercept_``, :obj:`mercer.kkt_report`
# :Tests: ``tests/notes/test_machines.py::test_06_bias``
# :Studio: lesson ``kkt`` of ``mercer studio``
# :See also: :doc:`plot_05_optimality`, :doc:`plot_02_hard_svm_through_the_origin`
