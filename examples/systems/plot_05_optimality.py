r"""
5. Optimality: KKT conditions and duality
=========================================

How does one know that a machine is the best one? The dual problem answers: for every feasible :math:`\alpha`,

.. math:: D(\alpha) = \sum_i \alpha_i - \tfrac{1}{2} \sum_{i,j} \alpha_i \alpha_j y_i y_j k(x_i, x_j)
          \ \le\ \tfrac{1}{2} {|w|}^2 + C \sum_i \xi_i = P(w, b, \xi),

.. math:: 0 \le \alpha_i \le C,\ \sum_i \alpha_i y_i = 0,

weak duality ([SSBD] 15.4). At the optimum both are equal, and :math:`w = \sum \alpha_i y_i \phi(x_i)`. Equality is the
same as the conditions of Karush, Kuhn and Tucker, with :math:`\mu_i = C - \alpha_i` ([D6] §5, [M5]):

.. math:: \alpha_i\, (y_i(f(x_i) + b) - 1 + \xi_i) = 0, \qquad \mu_i\, \xi_i = 0.

So :math:`\alpha = 0` outside of the street, :math:`0 < \alpha < C` on its edge and :math:`\alpha = C` inside. For the
hard margin this is the theorem of Fritz John, [SSBD] Theorem 15.8: only samples on the edge carry :math:`w`.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, certify, kkt_report
from mercer.losses import hinge

BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#666666"

rng = np.random.default_rng(0)
y = np.where(np.arange(60) % 2 == 0, 1, -1)
X = rng.normal(size=(60, 2)) + 0.9 * np.outer(y, [0.6, 0.8])
C = 0.5
model = SVC(C=C, kernel="linear", tol=1e-7, solver="smo", trace=True).fit(X, y)
(found,) = kkt_report(model, X, y).problems

# %%
# The figure
# ----------
#
# Left, each sample by its margin and its multiplier: the conditions allow only the three strokes of the grey line.
# Right, dual value and primal value after each step of SMO. The optimum is always between them.

K, alpha, dual, primal = X @ X.T, np.zeros(60), [], []
for step in (model.steps_[k] for k in range(len(model.steps_))):
    alpha[step["i"]], alpha[step["j"]] = step["alpha_i"], step["clipped"]
    f = K @ (alpha * y)
    # the best b is one of the breaks of the sum of hinge losses
    loss = hinge(y, f + (y - f)[:, None]).sum(axis=1).min()
    dual.append(step["dual"])
    primal.append(0.5 * (alpha * y) @ f + C * loss)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.0), layout="constrained")
margin = y * model.decision_function(X)
left.plot([3.4, 1, 1, -1.6], [0, 0, C, C], color=GREY, lw=5, alpha=0.3, solid_capstyle="round", zorder=0)
for state, colour, mark, name in (
    ("zero", BLUE, "o", "α = 0: outside"),
    ("free", RED, "D", "0 < α < C: on the edge"),
    ("bound", ORANGE, "s", "α = C: inside"),
):
    own = found.state == state
    left.scatter(margin[own], found.alpha[own], s=28, color=colour, marker=mark, edgecolors="white", lw=0.5,
                 label=f"{name} ({own.sum()})", zorder=2)  # fmt: skip
left.set(xlabel="margin y(f(x) + b)", ylabel="multiplier α", yticks=[0, C], yticklabels=["0", "C"])
left.legend(fontsize="small", loc="center left")
steps = np.arange(1, len(dual) + 1)
right.fill_between(steps, dual, np.minimum.accumulate(primal), color=GREEN, alpha=0.15, lw=0)
right.plot(steps, np.minimum.accumulate(primal), color=ORANGE, lw=1.8, label="least primal value so far")
right.plot(steps, dual, color=BLUE, lw=1.8, label="dual value")
right.set(xscale="log", xlabel="step of SMO", ylabel="value", ylim=(0, 25))
right.legend(fontsize="small")
plt.show()

# %%
# The numbers
# -----------
#
# ``certify`` computes both values again from the samples and the coefficients, and trusts no solver.

certificate = certify(model, X, y)
complementary = np.abs(found.alpha * (margin - 1 + found.xi)).max(), np.abs(found.mu * found.xi).max()
print(f"dual {certificate.dual:.8f} <= optimum <= primal {certificate.primal:.8f}")
print(f"largest α(y(f + b) − 1 + ξ): {complementary[0]:.1e};  largest μξ: {complementary[1]:.1e}")
assert certificate.valid and certificate.relative_gap < 1e-6
assert np.isclose(certificate.primal, model.certificate_.primal, rtol=1e-12)
assert max(complementary) <= 1e-6 and abs(found.alpha @ y) < 1e-10
assert np.all(np.array(dual) <= certificate.primal * (1 + 1e-9)) and np.all(np.array(primal) >= certificate.dual)
assert np.all(np.diff(dual) > -1e-12) and np.any(np.diff(primal) > 0.1)
assert np.array_equal(np.sort(model.support_), np.flatnonzero(found.state != "zero"))

# %%
# What to notice
# --------------
#
# * Every fitted model carries ``certificate_``: the distance from the optimum in numbers, not "converged".
# * The primal of the iterates jumps up and down, while the dual only rises.
# * [M5] prints :math:`+\sum \mu \xi` in the Lagrangian; the sign is :math:`-`, or :math:`\mu = C - \alpha` fails.
#
# Links
# -----
#
# :Names: :obj:`mercer.kkt_report`, :obj:`mercer.certify`, ``SVC.certificate_``, ``SVC.support_``
# :Tests: ``tests/notes/test_machines.py::test_05_kkt``, ``test_05_multipliers``, ``test_05_support_vectors``,
#         ``test_05_weak_duality``, ``test_05_strong_duality``
# :Studio: lessons ``kkt``, ``duality`` of ``mercer studio``
# :See also: :doc:`plot_06_bias`, :doc:`plot_09_quadratic_program`, :doc:`plot_11_smo`
