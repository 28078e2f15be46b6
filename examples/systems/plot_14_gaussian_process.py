r"""
14. Gaussian process regression
===============================

Put a Gaussian prior on functions: the values at any points are jointly normal with the covariances :math:`k(x, z)`.
Observe :math:`y_i = h(x_i)` plus noise of variance :math:`\lambda`. Then :math:`h(x_*)` is normal with

.. math:: \text{mean } k_*' (K + \lambda I)^{-1} y, \qquad
          \text{variance } k(x_*, x_*) - k_*' (K + \lambda I)^{-1} k_*,

where :math:`(k_*)_i = k(x_i, x_*)`: [M5]. The mean is kernel ridge regression with the same :math:`\lambda`; the
variance comes in addition.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import BandDisplay, Gaussian, GaussianProcessRegressor, KernelRidge

BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#666666"

rng = np.random.default_rng(1)
X = np.sort(np.concatenate([rng.uniform(0, 3, 12), rng.uniform(5, 6.5, 5)]))[:, None]
y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=17)
kernel, lam = Gaussian(1.5), 0.01
process = GaussianProcessRegressor(kernel, alpha=lam, optimizer=None).fit(X, y)

# %%
# The figure
# ----------
#
# Functions drawn from the prior, and from the posterior, that is, from those functions that pass near the samples.

new = np.linspace(-0.5, 7.0, 300)[:, None]
prior = np.linalg.cholesky(kernel(new) + 1e-8 * np.eye(300)) @ rng.normal(size=(300, 4))
posterior = process.sample_y(new, n_samples=4, random_state=0)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.8, 3.8), layout="constrained", sharey=True)
left.fill_between(new[:, 0], -2.0, 2.0, color=BLUE, alpha=0.15, lw=0, label="±2 standard deviations")
BandDisplay.from_estimator(process, X, y, ax=right)
for k, colour in enumerate((ORANGE, GREEN, RED, GREY)):
    left.plot(new[:, 0], prior[:, k], color=colour, lw=1.2)
    right.plot(new[:, 0], posterior[:, k], color=colour, lw=0.9)
left.set(title="prior", xlabel="x", ylabel="h(x)", xlim=(-0.5, 7.0))
left.legend(fontsize="small", loc="lower left")
right.set(title="posterior, 17 samples", xlabel="x", ylabel="", xlim=(-0.2, 6.8), ylim=(-3.4, 3.0))
right.legend(fontsize="small", loc="lower left", ncols=3)
plt.show()

# %%
# The numbers
# -----------

points = np.array([[1.5], [4.0], [60.0]])
mean, deviation = process.predict(points, return_std=True)
ridge = KernelRidge(alpha=lam, kernel=kernel).fit(X, y).predict(points)
cross = kernel(points, X)
by_hand = 1.0 - np.einsum("ij,ji->i", cross, np.linalg.solve(kernel(X) + lam * np.eye(17), cross.T))
print("   x      mean   kernel ridge   deviation")
for row in zip(points[:, 0], mean, ridge, deviation, strict=True):
    print("{:5.1f}   {:7.4f}   {:9.4f}   {:9.4f}".format(*row))
assert np.allclose(mean, ridge, atol=1e-8)
assert np.allclose(deviation**2, by_hand, atol=1e-8)
assert deviation[0] < 0.1 < 0.9 < deviation[1] and np.isclose(deviation[2], 1.0)

# %%
# What to notice
# --------------
#
# * The band is narrow at the samples and returns to the prior within about :math:`1/\sqrt{\gamma}` of the last one. Far
#   away nothing was learnt: mean 0, deviation 1.
# * The variance does not depend on the targets. It is right only as far as the kernel is; ``optimizer`` learns the
#   kernel's parameters from the likelihood (row 27).
#
# Links
# -----
#
# :Names: :obj:`mercer.GaussianProcessRegressor`
# :Tests: ``tests/notes/test_algorithms.py::test_14_gaussian_process``
# :Studio: lesson ``gaussian-process`` of ``mercer studio``
# :See also: :doc:`plot_13_kernel_ridge`, :doc:`plot_27_kernels_from_kernels`, :doc:`plot_39_rkhs`
