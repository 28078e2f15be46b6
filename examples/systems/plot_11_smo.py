r"""
11. SMO: two multipliers at a time
==================================

With a bias the dual has the constraint :math:`\sum \alpha_i y_i = 0`, and no multiplier can move alone. Sequential
minimal optimisation moves two. The others are fixed, so that :math:`\alpha_i y_i + \alpha_j y_j` is a constant: the
pair stays on a line, and inside the box on a segment with :math:`L \le \alpha_j \le H`. There the dual is a parabola,
whose maximum is

.. math:: \alpha_j^{\text{new}} = \mathrm{clip}\left(\alpha_j + \frac{y_j (E_i - E_j)}{\kappa},\ L,\ H\right),

.. math:: E_i = f(x_i) - y_i,\quad \kappa = k(x_i, x_i) + k(x_j, x_j) - 2 k(x_i, x_j).

[M5] "SMO (I–III)", [CS229] 6. (In [M5] the constant is a sum over :math:`i = 1, \ldots, m`; it begins at 3.)
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC
from mercer.display import figures

BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#666666"

# %%
# The figure
# ----------
#
# Two steps of a fit. Contour lines are those of the dual over the pair, the blue square is the box, the thick line the
# segment. Left the maximum on the line is outside of the box and the nearer end is taken, right it is inside.

figures.smo()
plt.show()

# %%
# A whole run: the multipliers after each step, and the dual value, which never falls.

rng = np.random.default_rng(4)
n, C = 24, 1.0
y = np.where(np.arange(n) % 2 == 0, 1, -1)
X = rng.normal(size=(n, 2)) + 0.9 * np.outer(y, [0.6, 0.8])
model = SVC(C=C, kernel="linear", solver="smo", trace=True, tol=1e-6).fit(X, y)
steps = model.steps_

alpha = np.zeros((len(steps) + 1, n))
for k in range(len(steps)):
    alpha[k + 1] = alpha[k]
    alpha[k + 1, steps.i[k]], alpha[k + 1, steps.j[k]] = steps.alpha_i[k], steps.clipped[k]

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.6), width_ratios=[1.5, 1], layout="constrained")
ends = y[np.newaxis] * alpha
image = left.imshow(ends.T, aspect="auto", cmap="PuOr", vmin=-C, vmax=C, interpolation="nearest")
figure.colorbar(image, ax=left, label="yα")
left.set(xlabel="step", ylabel="sample")
right.plot(np.arange(1, len(steps) + 1), steps.dual, color=BLUE, lw=1.8)
right.axhline(model.certificate_.primal, color=RED, lw=1.0, ls="--", label="primal value at the end")
right.set(xlabel="step", ylabel="dual value")
right.legend(fontsize="small")
plt.show()

# %%
# The numbers
# -----------
#
# Two samples need one step. Its length is :math:`2/{|x - z|}^2`, here 0.4, clipped to :math:`C`.

pair = np.array([[0.0, 0.0], [1.0, 2.0]])
for box in (0.1, 10.0):
    one = SVC(C=box, kernel="linear", solver="smo", trace=True).fit(pair, [-1, 1]).steps_
    print(f"C = {box:4g}: {len(one)} step, unclipped {one.unclipped[0]:.3f}, taken {one.clipped[0]:.3f}")
    assert len(one) == 1 and np.isclose(one.clipped[0], min(box, 2 / 5))

print(f"{n} samples: {len(steps)} steps, dual {steps.dual[-1]:.6f}, primal {model.certificate_.primal:.6f}")
assert np.allclose(alpha @ y, 0.0, atol=1e-9) and alpha.min() >= 0 and alpha.max() <= C
assert np.all(np.diff(steps.dual) > -1e-12)
assert np.allclose(np.clip(steps.unclipped, steps.L, steps.H), steps.clipped, atol=1e-12)
assert model.certificate_.relative_gap < 1e-5

# %%
# What to notice
# --------------
#
# * Many multipliers reach the box in one step and never move again; the last steps all work on the few free ones. This
#   is why solvers shrink the problem, and why mercer's ``solver="auto"`` takes Newton steps on the free ones.
# * The choice of the pair decides the number of steps. mercer takes the second-order rule of Fan, Chen and Lin (2005).
#
# Links
# -----
#
# :Names: :obj:`mercer.SVC` with ``solver="smo"``; ``display.figures.smo``
# :Tests: ``tests/notes/test_machines.py::test_11_smo``
# :Studio: lesson ``smo`` of ``mercer studio``
# :See also: :doc:`plot_05_optimality`, :doc:`plot_10_coordinate_ascent`, :doc:`plot_38_steps`
