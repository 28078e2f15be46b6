r"""
13. Kernel ridge regression
===========================

With squared errors the solution is a formula. The minimum of

.. math:: \tfrac{\lambda}{2} {|f|}^2 + \tfrac{1}{2} \sum_i (y_i - f(x_i))^2

is the function

.. math:: f = \sum_i \beta_i k(x_i, \cdot), \quad \beta = (K + \lambda I)^{-1} y,

[M5]. [SSBD] Exercise 16.3, (16.8), writes :math:`\lambda' {|w|}^2 + \frac{1}{2n} \sum (\langle w, \psi(x_i) \rangle -
y_i)^2`: the same with :math:`\lambda = 2 n \lambda'`. Let :math:`K = \sum_m \mu_m u_m u_m'`. The fitted values are
:math:`\sum_m \frac{\mu_m}{\mu_m + \lambda} \langle u_m, y \rangle u_m`: each direction of the targets is shrunk, and
the more so the smaller its eigenvalue is.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import Gaussian, KernelRidge, alpha_to_lambda, lambda_to_alpha

COLOURS = ("#0072b2", "#009e73", "#d55e00")
GREY = "#666666"

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 6, size=(40, 1)), axis=0)
y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=40)
kernel = Gaussian(2.0)
lams = (1e-3, 0.3, 30.0)
models = [KernelRidge(alpha=lam, kernel=kernel).fit(X, y) for lam in lams]

# %%
# The figure
# ----------

K = kernel(X)
mu = np.linalg.eigvalsh(K)[::-1]
new = np.linspace(X.min(), X.max(), 400)[:, None]

figure, (left, right) = plt.subplots(1, 2, figsize=(9.8, 3.8), layout="constrained")
left.scatter(X[:, 0], y, s=16, color=GREY, zorder=3)
for lam, model, colour in zip(lams, models, COLOURS, strict=True):
    left.plot(new[:, 0], model.predict(new), color=colour, lw=1.8, label=f"λ = {lam:g}")
    right.semilogx(mu[:26], mu[:26] / (mu[:26] + lam), "o-", color=colour, ms=4, lw=1.0, label=f"λ = {lam:g}")
    right.axvline(lam, color=colour, lw=0.8, ls=":")
left.set(xlabel="x", ylabel="y", ylim=(-1.8, 1.8), title="three fits")
left.legend(fontsize="small", loc="upper right")
right.set(xlabel="eigenvalue μ of K", ylabel="share kept, μ/(μ + λ)", title="26 directions, each shrunk")
right.legend(fontsize="small", loc="upper left")
plt.show()

# %%
# The numbers
# -----------

values, vectors = np.linalg.eigh(K)
for lam, model in zip(lams, models, strict=True):
    beta = np.linalg.solve(K + lam * np.eye(40), y)
    shrunk = vectors @ (values / (values + lam) * (vectors.T @ y))
    freedom = np.sum(values / (values + lam))
    print(f"λ = {lam:6g}: {freedom:5.1f} degrees of freedom, mean squared error {np.mean((y - shrunk) ** 2):.4f}")
    assert np.allclose(model.dual_coef_, beta, rtol=1e-6)
    assert np.allclose(model.predict(X), shrunk, atol=1e-8)

# Exercise 16.3 in its own convention: the gradient 2λ'w + (1/n) Σ (⟨w, x⟩ − y)x vanishes
n, lam = len(y), 0.01
assert np.isclose(lambda_to_alpha(lam, n), 2 * n * lam) and np.isclose(alpha_to_lambda(2 * n * lam, n), lam)
w = KernelRidge(alpha=lambda_to_alpha(lam, n), kernel="linear").fit(X, y).coef_
assert np.allclose(2 * lam * w + X.T @ (X @ w - y) / n, 0.0, atol=1e-10)

# %%
# What to notice
# --------------
#
# * A direction is kept if its eigenvalue is well above :math:`\lambda` and lost if it is well below: the dotted lines
#   are where half is kept. Large eigenvalues belong to smooth functions.
# * Every coefficient :math:`\beta_i = (y_i - f(x_i))/\lambda` is different from 0: there are no support vectors.
#
# Links
# -----
#
# :Names: :obj:`mercer.KernelRidge`, :obj:`mercer.lambda_to_alpha`, :obj:`mercer.alpha_to_lambda`
# :Tests: ``tests/notes/test_algorithms.py::test_13_kernel_ridge``, ``test_13_exercise_16_3``
# :See also: :doc:`plot_14_gaussian_process`, :doc:`plot_15_kernel_gradient_descent`, :doc:`plot_31_model_selection`
