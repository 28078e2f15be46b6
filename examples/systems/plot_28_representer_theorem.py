r"""
28. The representer theorem
===========================

Whatever the loss, if the norm is all that regularises, the best function is a sum of bumps on the samples:

.. math:: f = \sum_i \alpha_i\, k(x_i, \cdot), \qquad {|f|}^2 = \alpha' K \alpha,

[SSBD] Theorem 16.1, [L8] 1.1, [M5]. The reason is short. Any other function is :math:`f + g` with :math:`g` orthogonal
to all :math:`k(x_i, \cdot)`. Then :math:`g(x_i) = \langle g, k(x_i, \cdot) \rangle = 0`: it changes no value at a
sample, so no loss, but :math:`{|f + g|}^2 = {|f|}^2 + {|g|}^2`. A search over infinitely many dimensions becomes one
over :math:`n` numbers.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, SVR, Gaussian, Precomputed, RKHSFunction

BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#666666"

rng = np.random.default_rng(4)
X = np.sort(rng.uniform(0, 6, size=(14, 1)), axis=0)
y = np.sin(1.5 * X[:, 0]) + 0.1 * rng.normal(size=14)
kernel = Gaussian(2.0)
model = SVR(C=3.0, kernel=kernel, epsilon=0.15, tol=1e-6).fit(X, y)
f = model.function_

# %%
# The figure
# ----------
#
# Left a support vector regression as the sum of its bumps, one on each support vector. Right a function :math:`g` that
# is 0 at every sample: added to :math:`f`, it leaves all losses as they are and makes the norm larger.

grid = np.linspace(-0.5, 6.5, 500)[:, None]
other = RKHSFunction(f.kernel, [[0.7], [2.9], [5.1]], [5.0, -6.0, 5.0])
g = other - other.project(X)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.8, 3.8), layout="constrained", sharey=True)
for point, beta in zip(model.support_vectors_, model.dual_coef_[0], strict=True):
    bump = beta * kernel(grid, [point])[:, 0]
    left.fill_between(grid[:, 0], 0, bump, color=ORANGE if beta > 0 else BLUE, alpha=0.22, lw=0)
    left.plot(grid[:, 0], bump, color=ORANGE if beta > 0 else BLUE, lw=0.7)
left.plot(grid[:, 0], f(grid), color="black", lw=2, label="their sum f")
left.scatter(X[:, 0], y - model.intercept_, s=18, color=RED, zorder=3, label="samples, y − b")
left.set(title=f"{len(model.support_)} bumps", xlabel="x")
left.legend(fontsize="small", loc="lower left")
right.plot(grid[:, 0], f(grid), color="black", lw=2, label=f"f, |f| = {f.norm():.2f}")
right.plot(grid[:, 0], (f + g)(grid), color=GREEN, lw=1.4, ls="--", label=f"f + g, norm {(f + g).norm():.2f}")
right.plot(grid[:, 0], g(grid), color=GREY, lw=1.0, label="g, 0 at all samples")
right.scatter(X[:, 0], f(X), s=18, color=RED, zorder=3)
right.set(title="the same values at all samples", xlabel="x")
right.legend(fontsize="small", loc="lower left")
plt.show()

# %%
# The numbers
# -----------

alpha = np.zeros(14)
alpha[model.support_] = model.dual_coef_[0]
K = kernel(X)
print(f"|f| = {model.rkhs_norm_[0]:.6f}, √(α'Kα) = {np.sqrt(alpha @ K @ alpha):.6f}")
print(f"largest |g(x)| at a sample: {np.abs(g(X)).max():.1e}; |g| = {g.norm():.3f}")
assert np.isclose(model.rkhs_norm_[0], np.sqrt(alpha @ K @ alpha), rtol=1e-9)
assert np.allclose(model.predict(X), K @ alpha + model.intercept_, atol=1e-9)
assert np.abs(g(X)).max() < 1e-6 and g.norm() > 0.5
assert np.isclose((f + g).norm() ** 2, f.norm() ** 2 + g.norm() ** 2, rtol=1e-5)

# kernel values are all that a machine needs: the same classifier from the matrix alone
labels = np.where(y > 0, 1, -1)
of_samples = SVC(kernel=kernel, tol=1e-8).fit(X, labels)
of_matrix = SVC(kernel=Precomputed(), tol=1e-8).fit(K, labels)
assert np.allclose(of_samples.decision_function(X), of_matrix.decision_function(K), atol=1e-6)

# %%
# What to notice
# --------------
#
# * Samples strictly inside of the tube have no bump. For squared errors every sample has one.
# * The theorem does not say which :math:`\alpha`: that is the work of the solver. But it holds for every loss, and any
#   penalty that grows with the norm (row 36).
#
# Links
# -----
#
# :Names: ``SVC.rkhs_norm_``, ``SVC.decision_function``, :obj:`mercer.Precomputed`
# :Tests: ``tests/notes/test_kernels.py::test_28_representer``
# :See also: :doc:`plot_36_regularised_losses`, :doc:`plot_39_rkhs`, :doc:`plot_15_kernel_gradient_descent`
