r"""
30. Bounds of the error
=======================

How often will a machine err on new samples? If they are separable through the origin with the margin :math:`\gamma` and
the radius :math:`\rho`, Hard-SVM errs with probability :math:`1 - \delta` at most in a share

.. math:: \sqrt{\frac{4 (\rho/\gamma)^2}{n}} + \sqrt{\frac{2 \log(2/\delta)}{n}}

of cases: [SSBD] Theorem 15.4. Soft-SVM with :math:`\lambda` has an expected hinge loss of at most

.. math:: L(u) + \lambda {|u|}^2 + \frac{2 \rho^2}{\lambda n} \quad\text{for every } u, \qquad
          \text{best at } \lambda = \sqrt{\frac{2 \rho^2}{B^2 n}} \text{ if } {|u|} \le B,

Corollary 15.7, because the hinge loss is :math:`{|x|}`-Lipschitz in :math:`w` (Claim 15.6). Neither knows the
dimension. The bound by VC dimension does (15.2.2).
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, datasets, error_bounds, lambda_to_C
from mercer.losses import hinge
from mercer.theory import bounds

BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#666666"

# %%
# The figure
# ----------
#
# Documents of one word: 25 words occur, out of a dictionary of 500, and each word has a label. As vectors they have the
# length 1, and weights :math:`\pm 1` separate them with the margin :math:`1/\sqrt{25}`. Left the errors of 10 draws for
# each size, and the bounds. Right the three terms of Corollary 15.7 for 1,000 samples as functions of
# :math:`\lambda`.

d, occur, gamma = 500, 25, 0.2
rng = np.random.default_rng(0)
label = np.where(np.arange(d) % 2 == 0, 1, -1)
words = np.eye(d)
sizes = np.array([10, 20, 40, 80, 160])
errors = np.empty((len(sizes), 10))
for k, n in enumerate(sizes):
    for draw in range(10):
        seen = rng.integers(occur, size=n)
        seen[:2] = 0, 1  # both labels occur
        machine = SVC(C=np.inf, kernel="linear", fit_intercept=False).fit(words[seen], label[seen])
        errors[k, draw] = 1 - machine.score(words[:occur], label[:occur])
far = np.geomspace(10, 1e6, 60)
hard = np.array([bounds.hard_margin(gamma, 1.0, int(n)) for n in far])
dimension = np.array([bounds.vc(d, int(n)) for n in far])

n, B, loss = 1000, 2.0, 0.1
lams = np.geomspace(1e-3, 1.0, 100)
best = bounds.best_lambda(B, 1.0, n)

figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.0), layout="constrained")
left.loglog(far, hard, color=RED, lw=1.8, label="margin, Theorem 15.4")
left.loglog(far, dimension, color=ORANGE, lw=1.8, ls="--", label=f"VC dimension {d}")
for k, n_ in enumerate(sizes):
    shown = np.maximum(errors[k], 2e-3)  # 0 is drawn at the lower edge
    left.plot(np.full(10, n_), shown, "o", color=BLUE, ms=4, alpha=0.5, label="errors of 10 draws" if k == 0 else None)
left.axhline(1.0, color=GREY, lw=0.8, ls=":")
left.set(xlabel="samples n", ylabel="share of errors", ylim=(1.5e-3, 12))
left.legend(fontsize="small", loc="upper right")
total = np.array([bounds.soft_margin(loss, B, 1.0, n, lam) for lam in lams])
right.stackplot(lams, np.full(100, loss), lams * B**2, 2 / (lams * n), colors=(GREY, ORANGE, BLUE), alpha=0.55,
                labels=("L(u)", "λ|u|²", "2ρ²/(λn)"))  # fmt: skip
right.plot(lams, total, color="black", lw=1.5, label="the bound")
right.plot(best, bounds.soft_margin(loss, B, 1.0, n, best), "o", color=RED, ms=8, label=f"best λ = {best:.3f}")
right.set(xscale="log", xlabel="λ", ylim=(0, 1.5), xlim=(lams[0], lams[-1]))
right.legend(fontsize="small", loc="upper center")
plt.show()

# %%
# The numbers
# -----------

assert np.isclose(bounds.hard_margin(0.5, 1.0, 1600), 0.1 + np.sqrt(2 * np.log(40) / 1600))  # (ρ/γ)² = 4
assert np.isclose(bounds.soft_margin(0.1, 2.0, 1.0, 100, 0.1), 0.1 + 0.4 + 0.2)
assert np.isclose(best, np.sqrt(2 / (B**2 * n))) and total.min() >= bounds.soft_margin(loss, B, 1.0, n, best)
assert np.all(errors.max(axis=1) <= [bounds.hard_margin(gamma, 1.0, int(m)) for m in sizes])
for n_, row in zip(sizes, errors, strict=True):
    print(f"n = {n_:3d}: {row.mean():6.1%} errors; by the margin at most {bounds.hard_margin(gamma, 1.0, int(n_)):.2f}")
assert np.all(np.diff(errors.mean(axis=1)) < 0)

data = datasets.make_margin(1000, 100, gamma, wrong=0.05, seed=0)
machine = SVC(C=lambda_to_C(0.05, 1000), kernel="linear", fit_intercept=False).fit(data.X, data.y)
(report,) = error_bounds(machine, data.X, data.y)
print(f"with 5 % wrong labels: hinge loss {report.loss:.3f}, |w| = {report.norm:.2f}")
for bound in report.bounds:
    print(f"  {bound.name:24} {bound.value:7.3f}   {bound.remark}")

# Claim 15.6: |x| times the Lipschitz constant of the hinge loss bounds its slope in w, and is reached
x, w = data.X[0], machine.coef_[0] - 10 * data.y[0] * data.X[0]
slope = abs(hinge(data.y[0], w @ x) - hinge(data.y[0], (w + 0.1 * x) @ x)) / (0.1 * np.linalg.norm(x))
assert np.isclose(slope, hinge.lipschitz * np.linalg.norm(x))

# %%
# What to notice
# --------------
#
# * The bounds are above 1 for few samples and far above the errors for many: they are promises for the worst case. What
#   they get right is what the error depends on, margin and not dimension.
# * The best :math:`\lambda` balances the two terms that contain it, and falls as :math:`1/\sqrt{n}`.
#
# Links
# -----
#
# :Names: ``theory.bounds.hard_margin``, ``theory.bounds.soft_margin``, ``theory.bounds.best_lambda``,
#         ``theory.bounds.vc``, :obj:`mercer.error_bounds`; ``losses.hinge`` and its attribute ``lipschitz``
# :Tests: ``tests/notes/test_theory.py::test_30_claim_15_6``, ``test_30_hard_margin_bound``,
#         ``test_30_soft_margin_bound``, ``test_30_margin_or_dimension``, ``test_30_hard_margin_bound_beside_errors``,
#         ``test_30_soft_margin_bound_beside_losses``
# :See also: :doc:`plot_16_perceptron`, :doc:`plot_25_bag_of_words`, :doc:`plot_29_margins`
