r"""
7. Stochastic subgradient descent: Pegasos
==========================================

One random sample per step is enough to minimise

.. math:: F(w) = \tfrac{\lambda}{2} {|w|}^2 + \tfrac{1}{n} \sum_i \max(0, 1 - y_i \langle w, x_i \rangle),

[SSBD] (15.12); this is the machine with :math:`C = 1/(\lambda n)`, and :math:`F` is its objective divided by
:math:`C n`. With :math:`\theta^{(1)} = 0`, step :math:`t` takes

.. math:: w^{(t)} = \frac{1}{\lambda t}\, \theta^{(t)}, \qquad
          \theta^{(t+1)} = \theta^{(t)} + y_i x_i \ \text{ if } \ y_i \langle w^{(t)}, x_i \rangle < 1,
          \ \text{ else } \ \theta^{(t)},

with :math:`i` drawn at random, and the result is the mean of all :math:`w^{(t)}`: [SSBD] 15.5. Other steps and batches
are [D6] Note 26: :math:`w \leftarrow w - \eta_t (\lambda w - \text{mean of } y_i x_i \text{ over violated margins})`.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, PegasosClassifier, lambda_to_C
from mercer.losses import hinge

BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#666666"

rng = np.random.default_rng(2)
n, lam = 60, 0.25
y = np.where(np.arange(n) % 2 == 0, 1, -1)
X = rng.normal(size=(n, 2)) + 0.8 * np.outer(y, [0.8, 0.6])


def F(w):
    """The objective, for weights of shape (..., 2)."""
    return 0.5 * lam * (w**2).sum(axis=-1) + hinge(y, w @ X.T).mean(axis=-1)


T = 4000
model = PegasosClassifier(lam, n_steps=T, fit_intercept=False, random_state=0, trace=True).fit(X, y)
exact = SVC(C=lambda_to_C(lam, n, "15.12"), kernel="linear", fit_intercept=False, tol=1e-9).fit(X, y)
best = exact.coef_[0]

# %%
# The figure
# ----------
#
# The trace keeps the sample of each step and whether it changed :math:`\theta`, so that all iterates can be rebuilt.

steps = model.steps_
theta = np.vstack([np.zeros(2), np.cumsum((steps.updated * y[steps.i])[:, None] * X[steps.i], axis=0)])
t = np.arange(1, T + 1)
w = theta[:T] / (lam * t[:, None])
mean = np.cumsum(w, axis=0) / t[:, None]

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
grid = np.stack(np.meshgrid(np.linspace(-2.5, 4.0, 161), np.linspace(-2.5, 4.0, 161)), axis=-1)
left.contour(grid[..., 0], grid[..., 1], F(grid), levels=F(best) + np.linspace(0.03, 1.7, 18) ** 2, colors=GREY,
             linewidths=0.6)  # fmt: skip
left.plot(*w[1:400].T, color=ORANGE, lw=0.7, label="iterates w⁽²⁾ to w⁽⁴⁰⁰⁾")
left.plot(*mean[1:].T, color=BLUE, lw=2.0, label="their mean")
left.plot(*best, "*", color=RED, ms=15, mec="white", label="exact optimum")
left.set(xlim=(-2.5, 4.0), ylim=(-2.5, 4.0), xlabel="w₁", ylabel="w₂", aspect="equal")
left.legend(fontsize="small", loc="lower right")
shown = np.unique(np.geomspace(2, T, 300).astype(int)) - 1
for values, colour, name, width in ((w, ORANGE, "last iterate", 0.8), (mean, BLUE, "mean of all iterates", 1.8)):
    right.loglog(t[shown], F(values[shown]) - F(best), color=colour, lw=width, label=name)
right.loglog(t[shown], 20 / t[shown], color=GREY, ls="--", lw=1.0, label="a line that falls as 1/t")
right.set(xlabel="step t", ylabel="F(w) − optimum")
right.legend(fontsize="small")
plt.show()

# %%
# The numbers
# -----------

print(f"optimum                         {F(best):.6f}")
print(f"mean of {T:,} iterates          {F(model.coef_[0]):.6f}")
print(f"certified distance from it      {model.certificate_.relative_gap:.2%} of the objective")
assert np.allclose(mean[-1], model.coef_[0], rtol=1e-9)  # the trace rebuilds the result
assert F(best) - 1e-9 <= F(model.coef_[0]) <= 1.02 * F(best)

# with all samples in every step nothing is random: plain subgradient descent with the step 1/(λ(t + 1))
batch = PegasosClassifier(
    lam, n_steps=400, batch_size=n, sampling="shuffled", average="last", step_size=lambda t: 1 / (lam * (t + 1)),
    fit_intercept=False,
).fit(X, y)  # fmt: skip
v = np.zeros(2)
for k in range(1, 400):
    v = v - (lam * v - ((y * (X @ v) < 1) * y) @ X / n) / (lam * (k + 1))
assert np.allclose(batch.coef_[0], v, rtol=1e-9)

# %%
# What to notice
# --------------
#
# * The early iterates are wild, because the first step has the length :math:`1/\lambda`. The mean forgets them slowly;
#   ``average="tail"`` or ``"last"`` forgets them sooner.
# * The gap falls about as :math:`1/t`: each further digit costs ten times as many steps. SVC's exact solver gets all
#   digits in a few milliseconds here; Pegasos pays off where one pass over the samples is all one can afford.
# * The derivation in [SSBD] 15.5 and the procedure differ by one step in the index of :math:`w`; mercer follows the
#   procedure.
#
# Links
# -----
#
# :Names: :obj:`mercer.PegasosClassifier` with ``step_size``, ``batch_size``, ``average``; ``trace=True``:
#         :obj:`mercer.Steps`
# :Tests: ``tests/notes/test_algorithms.py::test_07_pegasos``, ``test_07_one_step``,
#         ``test_07_free_steps_and_batches``, ``test_07_steps``
# :Studio: lesson ``pegasos`` of ``mercer studio``
# :See also: :doc:`plot_04_soft_svm_through_the_origin`, :doc:`plot_08_pegasos_with_kernels`, :doc:`plot_38_steps`
