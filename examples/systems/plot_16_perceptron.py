r"""
16. The perceptron and its bound
================================

Whenever a sample is on the wrong side, :math:`y_i \langle w, x_i \rangle \le 0`, the perceptron adds it:
:math:`w \leftarrow w + y_i x_i`. If all samples have :math:`{|x_i|} \le \rho` and some unit vector separates them
through the origin with the margin :math:`\gamma`, it does so at most

.. math:: \left(\frac{\rho}{\gamma}\right)^2 \text{ times},

[SSBD] Remark 15.1, Exercise 15.2. The reason fits in two lines. Each update raises :math:`\langle w, v \rangle` by at
least :math:`\gamma`, where :math:`v` is the best unit vector, so :math:`{|w|} \ge \gamma T`. And each raises
:math:`{|w|}^2` by at most :math:`\rho^2`, so :math:`{|w|} \le \rho \sqrt{T}`.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import Perceptron, separability

BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#666666"


def samples(gap, n=60, seed=0):
    """Two classes on either side of a line through the origin, ``gap`` away from it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(X @ [0.6, 0.8] > 0, 1, -1)
    return X + gap * np.outer(y, [0.6, 0.8]), y


# %%
# The figure
# ----------
#
# Left the two inequalities of the proof in one run: the length of :math:`w` after each update stays between
# :math:`\gamma T` and :math:`\rho \sqrt{T}`. Right the number of updates and its bound for gaps of many sizes.

X, y = samples(0.02)
model = Perceptron(fit_intercept=False, tol=None, shuffle=False, trace=True).fit(X, y)
steps = model.steps_
changed = steps.i[steps.mistake]
w = np.cumsum(y[changed][:, None] * X[changed], axis=0)
T = np.arange(1, len(w) + 1)
found = separability(X, y).pairs[0].homogeneous

gaps = np.geomspace(0.003, 3.0, 25)
updates, bounds = [], []
for gap in gaps:
    for seed in range(3):
        sample = samples(gap, seed=seed)
        run = Perceptron(fit_intercept=False, tol=None, max_iter=100_000).fit(*sample)
        updates.append(run.n_updates_[0])
        bounds.append(run.update_bound(*sample)[0])

figure, (left, right) = plt.subplots(1, 2, figsize=(9.8, 4.0), layout="constrained")
left.plot(T, found.rho * np.sqrt(T), color=ORANGE, ls="--", label="ρ√T")
left.plot(T, np.linalg.norm(w, axis=1), "o-", color=BLUE, ms=4, label="|w|")
left.plot(T, found.margin * T, color=GREEN, ls="--", label="γT")
left.set(xlabel="updates T", ylabel="length", title=f"{len(w)} updates, bound {(found.rho / found.margin) ** 2:,.0f}")
left.legend()
right.loglog(bounds, np.maximum(updates, 0.9), "o", color=BLUE, ms=4)
ends = np.array([1, max(bounds) * 2])
right.loglog(ends, ends, color=RED, ls="--", lw=1.2, label="the bound")
right.set(xlabel="(ρ/γ)²", ylabel="updates made", title="75 data sets")
right.legend(loc="upper left")
plt.show()

# %%
# The numbers
# -----------

assert model.separated_ and np.all(y * (X @ model.coef_[0]) > 0)
assert np.allclose(w[-1], model.coef_[0])  # the updates rebuild the weights
assert np.all(np.linalg.norm(w, axis=1) <= found.rho * np.sqrt(T) + 1e-9)
assert np.all(np.linalg.norm(w, axis=1) >= found.margin * T * (1 - 1e-3))
assert np.all(np.array(updates) <= bounds)
most = (found.rho / found.margin) ** 2
print(f"ρ = {found.rho:.3f}, γ = {found.margin:.4f}: {model.n_updates_[0]} updates, at most {most:,.0f}")
print(f"75 data sets: updates are {np.median(np.array(updates) / bounds):.1%} of the bound in the median")

# %%
# What to notice
# --------------
#
# * The bound does not know the number of samples nor that of features: only the margin counts.
# * The perceptron stops at the first line that separates, Hard-SVM looks for the widest street. Their bounds on the
#   error have the same :math:`(\rho/\gamma)^2` (row 30).
# * Scaling all samples changes nothing. Long samples that are far from the line are what makes the bound loose;
#   ``Normalized`` kernels remove them.
#
# Links
# -----
#
# :Names: :obj:`mercer.Perceptron`, ``Perceptron.update_bound``; ``trace=True``: :obj:`mercer.Steps`
# :Tests: ``tests/notes/test_algorithms.py::test_16_perceptron``, ``test_16_steps``
# :Studio: lesson ``perceptron`` of ``mercer studio``
# :See also: :doc:`plot_17_kernel_perceptron`, :doc:`plot_29_margins`, :doc:`plot_30_error_bounds`
