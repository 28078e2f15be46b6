r"""
3. Soft-SVM: slack has a price
==============================

Classes that overlap leave no street free of samples. Soft-SVM lets a sample enter it, and pays :math:`C` for each unit
of slack :math:`\xi`:

.. math:: \min_{w, b, \xi}\ \tfrac{1}{2} {|w|}^2 + C \sum_i \xi_i
          \quad\text{such that}\quad y_i (\langle w, x_i \rangle + b) \ge 1 - \xi_i,\ \xi_i \ge 0.

The best slack is the hinge loss, :math:`\xi_i = \max(0, 1 - y_i(\langle w, x_i \rangle + b))`: [SSBD] (15.4), (15.5),
[D6] Algorithm 22, [M5]. The notes also write :math:`\lambda {|w|}^2 + \frac{1}{n} \sum \xi_i`, (15.4), which is
:math:`C = 1/(2 \lambda n)`, and :math:`\frac{\lambda}{2} {|w|}^2 + \frac{1}{n} \sum \xi_i`, (15.12), which is
:math:`C = 1/(\lambda n)`.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, C_to_lambda, DecisionDisplay, LinearSVC, lambda_to_C
from mercer.losses import hinge

BLUE, RED, GREY = "#0072b2", "#d55e00", "#666666"

rng = np.random.default_rng(6)
y = np.where(np.arange(30) % 2 == 0, 1, -1)
X = rng.normal(size=(30, 2)) + 1.5 * np.outer(y, [0.6, 0.8])


def parts(C):
    """The two terms of the objective at the solution for C: half the squared norm, and the sum of the slack."""
    model = SVC(C=C, kernel="linear", tol=1e-7).fit(X, y)
    return 0.5 * model.rkhs_norm_[0] ** 2, hinge(y, model.decision_function(X)).sum(), model


# %%
# The figure
# ----------
#
# Left, bars from each sample with slack to the edge of its margin. Right, the two terms of the objective for 60 values
# of :math:`C`. Each solution is the point where a line of slope :math:`-1/C` touches the curve: no machine is below it.

grid = np.geomspace(0.003, 30.0, 60)
half_norm, slack, _ = (np.array(column, dtype=object) for column in zip(*(parts(C) for C in grid), strict=True))

C = 0.5
own_norm, own_slack, model = parts(C)
w, b = model.coef_[0], model.intercept_[0]
xi = hinge(y, model.decision_function(X))

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
DecisionDisplay.from_estimator(model, X, y, ax=left)
for i in np.flatnonzero(xi > 1e-3):
    edge = X[i] + (y[i] - (X[i] @ w + b)) / (w @ w) * w
    left.plot(*np.column_stack([X[i], edge]), color=RED if xi[i] > 1 else GREY, lw=1.6)
left.set(title=f"C = {C:g}: slack in grey, red if above 1", aspect="equal")
left.get_legend().remove()
right.plot(half_norm, slack, "o-", color=BLUE, ms=3, lw=1.2, label="solutions for 60 values of C")
ends = np.array([0.0, 1.05])
right.plot(ends, own_slack - (ends - own_norm) / C, color=GREY, lw=1.0, ls="--", label=f"slope −1/C, C = {C:g}")
right.plot(own_norm, own_slack, "o", color=RED, ms=8)
right.set(xlabel="½|w|²", ylabel="sum of the slack Σξ", xlim=(0, 1.05), ylim=(0, 25))
right.legend(fontsize="small")
plt.show()

# %%
# The numbers
# -----------
#
# Both conventions of the notes lead to the same machine, and so does the machine over :math:`w` and :math:`b` alone.

n = len(y)
lam = C_to_lambda(C, n, "15.4")
assert np.isclose(lambda_to_C(lam, n, "15.4"), C) and np.isclose(lam, 1 / (2 * C * n))
value = lam * w @ w + xi.mean()  # (15.5)
print(f"C = {C:g} is λ = {lam:.4f} in (15.4) and λ = {C_to_lambda(C, n, '15.12'):.4f} in (15.12)")
print(f"½|w|² + CΣξ = {own_norm + C * own_slack:.6f}, the certificate says {model.certificate_.primal:.6f}")
print(f"largest distance from the optimum: {model.certificate_.relative_gap:.1e}")
assert np.isclose(own_norm + C * own_slack, model.certificate_.primal, rtol=1e-9)
assert np.isclose(value * C * n, model.certificate_.primal, rtol=1e-9)  # the objectives differ by a factor only
assert model.certificate_.relative_gap < 1e-6

without_kernel = LinearSVC(C=C, loss="hinge", penalize_intercept=False, tol=1e-9).fit(X, y)
assert np.allclose(without_kernel.coef_[0], w, atol=1e-4)

# %%
# What to notice
# --------------
#
# * A sample inside the street but on its own side pays too: the loss asks for a margin of 1, not for a correct sign.
# * The curve on the right falls steeply at first: a little norm buys much slack. Where it is flat, a large :math:`C`
#   buys almost nothing.
# * [D6] Note 40 prints :math:`C = 1/(2\lambda)`; as the loss is a mean there, it is :math:`1/(2\lambda n)`.
#
# Links
# -----
#
# :Names: :obj:`mercer.SVC`, :obj:`mercer.LinearSVC` with ``penalize_intercept=False``, :obj:`mercer.lambda_to_C`,
#         :obj:`mercer.C_to_lambda`
# :Tests: ``tests/notes/test_machines.py::test_03_soft_svm``,
#         ``tests/notes/test_machines.py::test_03_soft_svm_without_a_kernel``
# :Studio: lessons ``soft-margin``, ``slack`` of ``mercer studio``
# :See also: :doc:`plot_01_hard_svm`, :doc:`plot_05_optimality`, :doc:`plot_19_ramp_loss`,
#            :doc:`plot_31_model_selection`
