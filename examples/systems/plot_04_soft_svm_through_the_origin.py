r"""
4. Soft-SVM through the origin: a convex bowl
=============================================

Without a bias and with two features the whole problem is a function on the plane of :math:`w`:

.. math:: P(w) = \tfrac{1}{2} {|w|}^2 + C \sum_i \max(0, 1 - y_i \langle w, x_i \rangle),

[SSBD] (15.6) times :math:`C n`, with :math:`C = 1/(2 \lambda n)`. It is a bowl plus a fan of creases, one along
:math:`y_i \langle w, x_i \rangle = 1` for each sample. The sum is strictly convex, so there is one minimum, and every
subgradient method and every dual method has to end there.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, LinearSVC, lambda_to_C
from mercer.losses import hinge

BLUE, ORANGE, RED, GREY = "#0072b2", "#e69f00", "#d55e00", "#666666"

rng = np.random.default_rng(1)
y = np.where(np.arange(24) % 2 == 0, 1, -1)
X = rng.normal(size=(24, 2)) + 0.9 * np.outer(y, [0.8, 0.6])
lam = 0.05
C = lambda_to_C(lam, len(y))

model = SVC(C=C, kernel="linear", fit_intercept=False, tol=1e-8).fit(X, y)
w = model.coef_[0]


def objective(w):
    """P(w) for weights of shape (..., 2)."""
    return 0.5 * (w**2).sum(axis=-1) + C * hinge(y, w @ X.T).sum(axis=-1)


# %%
# The figure
# ----------

first, second = np.meshgrid(np.linspace(-0.8, 2.6, 221), np.linspace(-0.8, 2.2, 201))
values = objective(np.stack([first, second], axis=-1))

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.0), layout="constrained")
shown = left.contourf(first, second, values, levels=30, cmap="viridis_r")
left.contour(first, second, values, levels=30, colors="white", linewidths=0.3)
figure.colorbar(shown, ax=left, label="P(w)")
for i in range(len(y)):  # the creases, lines of the plane of w
    ends = np.array([-0.8, 2.6])
    left.plot(ends, (y[i] - X[i, 0] * ends) / X[i, 1], color="black", lw=0.35, alpha=0.6)
left.plot(*w, "o", color=RED, ms=8, mec="white", label="the minimum")
left.set(xlim=(-0.8, 2.6), ylim=(-0.8, 2.2), xlabel="w₁", ylabel="w₂", title="a line for each sample: y⟨w, x⟩ = 1")
left.legend(fontsize="small", loc="lower right")
along = np.linspace(-1.5, 3.0, 300)
right.plot(along, objective(along[:, None] * w), color=BLUE, lw=1.8, label="P(t w)")
right.plot(along, 0.5 * along**2 * (w @ w), color=GREY, lw=1.2, ls="--", label="its bowl, ½|tw|²")
right.plot(
    along, objective(along[:, None] * w) - 0.5 * along**2 * (w @ w), color=ORANGE, lw=1.2, label="its creases, CΣξ"
)
right.plot(1.0, objective(w), "o", color=RED, ms=8, mec="white")
right.set(xlabel="t", title="along the line from 0 through the minimum", ylim=(0, None))
right.legend(fontsize="small")
plt.show()

# %%
# The numbers
# -----------
#
# No point of a fine grid around the solution is lower, and the dual value proves that none can be, up to the gap.

step = np.linspace(-0.1, 0.1, 201)
around = objective(w + np.stack(np.meshgrid(step, step), axis=-1))
certificate = model.certificate_
print(f"w = ({w[0]:.4f}, {w[1]:.4f}), P(w) = {objective(w):.8f}")
print(f"lowest of 40,401 points around it  {around.min():.8f}")
print(f"dual value, a bound from below     {certificate.dual:.8f}")
assert objective(w) <= around.min() + 1e-12
assert certificate.dual <= objective(w) <= certificate.dual * (1 + 1e-6)
assert np.isclose(certificate.primal, objective(w), rtol=1e-12)

without_kernel = LinearSVC(C=C, loss="hinge", fit_intercept=False, tol=1e-9).fit(X, y)
assert np.allclose(without_kernel.coef_[0], w, atol=1e-4)

# %%
# What to notice
# --------------
#
# * The minimum often lies on a crease or where two of them cross: these samples have :math:`y \langle w, x \rangle = 1`
#   and are the free support vectors. At a crease there is no gradient, only subgradients.
# * :math:`P` is at least as curved as its bowl. This strong convexity is the reason why the average of random steps
#   converges (row 7).
#
# Links
# -----
#
# :Names: :obj:`mercer.SVC`, :obj:`mercer.LinearSVC` with ``fit_intercept=False``; :obj:`mercer.lambda_to_C`
# :Tests: ``tests/notes/test_machines.py::test_04_soft_svm_homogeneous``
# :Studio: lessons ``through-the-origin``, ``soft-margin`` of ``mercer studio``
# :See also: :doc:`plot_03_soft_svm`, :doc:`plot_07_pegasos`, :doc:`plot_10_coordinate_ascent`
