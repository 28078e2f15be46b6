r"""
8. Pegasos with kernels
=======================

Each iterate of row 7 is a combination of samples, so that counts are enough. Let :math:`\beta_j` be the sum of
:math:`y_j` over the steps in which sample :math:`j` changed :math:`\theta`. Then :math:`w^{(t)} = \frac{1}{\lambda t}
\sum_j \beta_j \phi(x_j)`, and the step is

.. math:: \beta_i \leftarrow \beta_i + y_i \quad\text{if}\quad y_i\, \frac{1}{\lambda t} \sum_j \beta_j k(x_j, x_i) < 1,

[SSBD] 16.3, [L8] Algorithm 1. Nothing but kernel values is needed. With a kernel whose features
:math:`\phi` can be written down, these are step by step the steps of the linear procedure on :math:`\phi(x)`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import SVC, DecisionDisplay, Gaussian, PegasosClassifier, Polynomial, lambda_to_C

X, y = make_moons(120, noise=0.2, random_state=0)
lam, kernel = 0.01, Gaussian(2.0)


def pegasos(T):
    """The last iterate after T steps; without a bias, as in the notes."""
    return PegasosClassifier(
        lam, kernel=kernel, n_steps=T, average="last", fit_intercept=False, random_state=0
    ).fit(X, y)  # fmt: skip


exact = SVC(C=lambda_to_C(lam, len(y), "15.12"), kernel=kernel, fit_intercept=False, tol=1e-6).fit(X, y)

# %%
# The figure
# ----------
#
# The decision regions of iterates :math:`w^{(t)}` beside the exact machine. The number is the objective of each above
# the optimum, in percent of the optimum.

best = lam * exact.certificate_.primal  # certificates are of the objective divided by λ
models = [pegasos(T) for T in (30, 300, 10_000)]
excess = [lam * model.certificate_.primal / best - 1 for model in models]

figure, axes = plt.subplots(1, 4, figsize=(11.6, 3.1), layout="constrained", sharey=True)
titles = [f"t = {T:,}: +{e:.3g} %" for T, e in zip((30, 300, 10_000), 100 * np.array(excess), strict=True)]
for ax, model, title in zip(axes, [*models, exact], [*titles, "exact"], strict=True):
    DecisionDisplay.from_estimator(model, X, y, ax=ax, grid=100)
    ax.set(title=f"{title}\n{len(model.support_)} support vectors", xlabel="", ylabel="", xticks=[], yticks=[])
    ax.get_legend().remove()
plt.show()

# %%
# The numbers
# -----------
#
# With :math:`k(x, z) = (1 + \langle x, z \rangle)^2` the features can be written down, six of them.

polynomial = Polynomial.inhomogeneous(2)
phi = polynomial.feature_map(X)(X)
options = {"n_steps": 500, "fit_intercept": False, "random_state": 3}
of_kernel = PegasosClassifier(lam, kernel=polynomial, **options).fit(X, y).decision_function(X)
of_features = PegasosClassifier(lam, **options).fit(phi, y).decision_function(phi)
print(f"{phi.shape[1]} features; largest difference of a decision value {np.abs(of_kernel - of_features).max():.1e}")
print(f"objective above the optimum: {', '.join(f'{e:.2%}' for e in excess)}")
assert np.allclose(of_kernel, of_features, rtol=1e-6, atol=1e-8)
assert len(models[2].support_) > len(exact.support_)
assert excess[0] > excess[1] > excess[2] > -1e-6 and excess[2] < 0.02

# %%
# What to notice
# --------------
#
# * After 30 steps at most 30 samples have a coefficient. After 10,000 more samples have one than the exact machine has
#   support vectors: a sample whose margin was violated once keeps its coefficient, though it shrinks.
# * A step with kernels costs as many kernel values as there are coefficients: it becomes slower as it goes on.
#   ``budget`` limits their number.
#
# Links
# -----
#
# :Names: :obj:`mercer.PegasosClassifier` with ``kernel``; ``trace=True``: :obj:`mercer.Steps`
# :Tests: ``tests/notes/test_algorithms.py::test_08_pegasos_with_kernels``, ``test_08_steps``
# :Studio: lesson ``pegasos`` of ``mercer studio``
# :See also: :doc:`plot_07_pegasos`, :doc:`plot_21_feature_maps`, :doc:`plot_28_representer_theorem`
