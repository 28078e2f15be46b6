r"""
15. Batch gradient descent with kernels
=======================================

Least squares by gradient descent moves :math:`\theta` by :math:`\alpha \sum_i (y_i - \theta' \phi(x_i)) \phi(x_i)`.
Started at 0, it always is :math:`\theta = \sum \beta_i \phi(x_i)`, and the step is one of the coefficients:

.. math:: \beta \leftarrow \beta + \alpha\, (y - K \beta),

[CS229] (5.7)–(5.12). In the basis of eigenvectors :math:`u_m` of :math:`K` the steps do not mix: after :math:`t` steps
the residual has :math:`(1 - \alpha \mu_m)^t` of its first component along :math:`u_m`. It converges if and only if
:math:`\alpha < 2/\mu_{\max}`, and directions with small eigenvalues take very long.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer import Gaussian, KernelLMS, KernelRidge

COLOURS = ("#56b4e9", "#0072b2", "#e69f00", "#d55e00")
GREY = "#666666"
warnings.simplefilter("ignore", ConvergenceWarning)  # the runs below are stopped early on purpose

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 6, size=(40, 1)), axis=0)
y = np.sin(2 * X[:, 0]) + 0.25 * rng.normal(size=40)
kernel = Gaussian(2.0)
K = kernel(X)
mu, U = np.linalg.eigh(K)
rate = 1.0 / mu[-1]


def after(t):
    """The machine after t steps."""
    return KernelLMS(kernel=kernel, learning_rate=rate, max_iter=t, tol=0.0).fit(X, y)


# %%
# The figure
# ----------
#
# Left the function after more and more steps. Right the residual along six eigenvectors: each decays at its own rate.

counts = (1, 10, 100, 10_000)
models = [after(t) for t in counts]
new = np.linspace(X.min(), X.max(), 400)[:, None]

figure, (left, right) = plt.subplots(1, 2, figsize=(9.8, 3.8), layout="constrained")
left.scatter(X[:, 0], y, s=16, color=GREY, zorder=3)
for t, model, colour in zip(counts, models, COLOURS, strict=True):
    left.plot(new[:, 0], model.predict(new), color=colour, lw=1.8, label=f"{t:,} step{'s' * (t > 1)}")
left.set(xlabel="x", ylabel="y", ylim=(-2.1, 2.1))
left.legend(fontsize="small", loc="lower right", ncols=2)
t = np.unique(np.geomspace(1, 1e5, 200).astype(int))
shades = plt.get_cmap("viridis")(np.linspace(0.05, 0.9, 6))
for m, shade in zip((1, 4, 8, 11, 14, 17), shades, strict=True):
    right.plot(t, (1 - rate * mu[-m]) ** t, color=shade, lw=1.6, label=f"{mu[-m]:.2g}")
right.set(xscale="log", xlabel="steps t", ylabel="share of the residual left, $(1 - αμ)^t$")
right.legend(title="eigenvalue μ", fontsize="small")
plt.show()

# %%
# The numbers
# -----------

beta = np.zeros(40)
for _ in range(100):
    beta += rate * (y - K @ beta)
found = np.zeros(40)
found[models[2].support_] = models[2].dual_coef_[0]
spectral = U @ ((1 - (1 - rate * mu) ** 100) * (U.T @ y))
print(f"100 steps by hand: largest difference of β {np.abs(beta - found).max():.1e}")
print(f"100 steps by eigenvectors: largest difference of f {np.abs(models[2].predict(X) - spectral).max():.1e}")
assert np.allclose(found, beta, rtol=1e-8, atol=1e-10)
assert np.allclose(models[2].predict(X), spectral, atol=1e-8)

traced = KernelLMS(kernel=kernel, learning_rate=rate, max_iter=100, tol=0.0, trace=True).fit(X, y).steps_
assert np.all(np.diff(traced.error) < 0) and np.isclose(traced.error[0], 0.5 * y @ y)

# stopping after t steps is much like ridge regression with λ = 1/(αt): both keep the same directions
ridge = KernelRidge(alpha=1 / (rate * 100), kernel=kernel).fit(X, y).predict(X)
print(f"ridge with λ = 1/(100 α): correlation of the fitted values {np.corrcoef(ridge, spectral)[0, 1]:.4f}")
assert np.corrcoef(ridge, spectral)[0, 1] > 0.99

# %%
# What to notice
# --------------
#
# * The orange curve, after 100 steps, is the best one to the eye. More steps fit the noise: the number of steps is a
#   regulariser. ``early_stopping=True`` chooses it by held-out samples.
# * Each step costs a product with :math:`K`. Ridge regression has its answer from one linear system.
#
# Links
# -----
#
# :Names: :obj:`mercer.KernelLMS`; ``trace=True``: :obj:`mercer.Steps`
# :Tests: ``tests/notes/test_algorithms.py::test_15_batch_gradient_descent``, ``test_15_steps``
# :Studio: lesson ``kernel-lms`` of ``mercer studio``
# :See also: :doc:`plot_13_kernel_ridge`, :doc:`plot_28_representer_theorem`, :doc:`plot_38_steps`
