r"""
36. Regularised loss minimisation, and logistic confidence
==========================================================

Support vector machines, ridge regression and logistic regression with kernels are one problem,

.. math:: \min_{f, b}\ R({|f|}) + C \sum_i \ell(y_i, f(x_i) + b),

with any non-decreasing :math:`R` and any loss: [SSBD] (16.2), (16.3), [L8] (2), [M5] Theorem 1. The solution is a sum
of bumps on the samples each time (row 28). With the logistic loss :math:`\log(1 + e^{-y f})` the decision value is a
confidence,

.. math:: P(y \mid x) = \frac{1}{1 + e^{-y (f(x) + b)}},

[CS229] 6.1: one half on the border, and near 1 where :math:`y (f(x) + b)` is large.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import Gaussian, KernelERM, KernelLogisticRegression, KernelLogisticRegressionCV

BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#666666"

# %%
# The figure
# ----------
#
# Left one regression with three losses, on targets of which four are wrong: squared errors follow them, Huber's and the
# absolute loss do not. Right the probabilities of kernel logistic regression, chosen by cross-validation.

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 6, size=(50, 1)), axis=0)
target = np.sin(x[:, 0]) + 0.1 * rng.normal(size=50)
wrong = [10, 18, 30, 41]
target[wrong] += [2.5, 2.5, 2.5, -2.5]
machines = {
    "squared": KernelERM("squared", C=3.0, kernel=Gaussian(1.0)),
    "huber": KernelERM("huber", C=3.0, delta=0.2, kernel=Gaussian(1.0)),
    "pinball": KernelERM("pinball", C=3.0, quantile=0.5, kernel=Gaussian(1.0)),
}
for machine in machines.values():
    machine.fit(x, target)

X, y = make_moons(150, noise=0.3, random_state=0)
logistic = KernelLogisticRegressionCV(Cs=5, gammas=5, cv=5).fit(X, y)

figure, (left, right) = plt.subplots(1, 2, figsize=(10.2, 4.0), layout="constrained")
grid = np.linspace(0, 6, 300)[:, None]
left.scatter(x[:, 0], target, s=14, color=GREY)
left.scatter(x[wrong, 0], target[wrong], s=60, facecolors="none", edgecolors=RED, label="wrong targets")
for (name, machine), colour, style in zip(machines.items(), (ORANGE, BLUE, GREEN), ("-", "-", "--"), strict=True):
    left.plot(grid[:, 0], machine.predict(grid), style, color=colour, lw=1.8, label=name)
left.set(xlabel="x", ylabel="y")
left.legend(fontsize="small", loc="upper right")
a, b = np.meshgrid(np.linspace(-1.8, 2.8, 140), np.linspace(-1.4, 1.9, 120))
P = logistic.predict_proba(np.column_stack([a.ravel(), b.ravel()]))[:, 1].reshape(a.shape)
shown = right.contourf(a, b, P, levels=np.linspace(0, 1, 21), cmap="PuOr_r")
right.contour(a, b, P, levels=[0.5], colors="black", linewidths=1.2)
right.scatter(*X[y == 0].T, s=18, color="#3b1f66", marker="o", edgecolors="white", linewidths=0.5)
right.scatter(*X[y == 1].T, s=18, color="#7a3b00", marker="s", edgecolors="white", linewidths=0.5)
figure.colorbar(shown, ax=right, label="P(y = 1 | x)")
right.set(xticks=[], yticks=[])
plt.show()

# %%
# The numbers
# -----------

truth = np.sin(x[:, 0])
for name, machine in machines.items():
    error = np.abs(machine.predict(x) - truth).mean()
    print(f"{name:8} mean distance from the truth {error:.3f}, relative gap {machine.certificate_.relative_gap:.0e}")
    assert machine.certificate_.valid and machine.certificate_.relative_gap <= 1e-5

labels = np.where(y == 1, 1, -1)
kernel = Gaussian(1.0)
K = kernel(X)
for loss, value in (
    ("logistic", lambda f: np.logaddexp(0, -labels * f)),
    ("hinge", lambda f: np.maximum(0, 1 - labels * f)),
):
    for penalty, R in (("squared", lambda t: 0.5 * t**2), ("norm", lambda t: t), (3, lambda t: t**3 / 3)):
        machine = KernelERM(loss, penalty, C=0.2, kernel=kernel, tol=1e-6).fit(X, labels)
        beta = np.zeros(len(y))
        beta[machine.support_] = machine.dual_coef_[0]
        objective = R(np.sqrt(beta @ K @ beta)) + 0.2 * value(K @ beta + machine.intercept_[0]).sum()
        assert (
            np.isclose(objective, machine.certificate_.primal, rtol=1e-6) and machine.certificate_.relative_gap <= 2e-6
        )

linear = KernelLogisticRegression(kernel="linear").fit(X, y)
theta = X @ linear.coef_[0] + linear.intercept_[0]
assert np.allclose(linear.predict_proba(X)[:, 1], 1 / (1 + np.exp(-theta)), rtol=1e-9)
print(f"logistic: C = {logistic.best_params_['C']:.3g}, γ = {logistic.best_params_['gamma']:.3g}")

# %%
# What to notice
# --------------
#
# * A convex loss with a known conjugate has a dual, so that each of these machines is certified like an SVM.
# * The penalty matters less than it seems: each solution with :math:`R(t) = t` or :math:`t^3/3` is a solution with
#   :math:`t^2/2` for another :math:`C`. The representer theorem needs only that :math:`R` does not fall.
# * With a Gaussian kernel :math:`f` returns to 0 far from all samples, and the probability to :math:`1/(1 + e^{-b})`.
#
# Links
# -----
#
# :Names: :obj:`mercer.KernelERM`, :obj:`mercer.KernelLogisticRegression`, :obj:`mercer.KernelLogisticRegressionCV`
# :Tests: ``tests/notes/test_algorithms.py::test_36_regularised_loss_minimisation``, ``test_36_logistic_confidence``
# :Studio: lesson ``quantiles`` of ``mercer studio``
# :See also: :doc:`plot_28_representer_theorem`, :doc:`plot_12_support_vector_regression`, :doc:`plot_13_kernel_ridge`
