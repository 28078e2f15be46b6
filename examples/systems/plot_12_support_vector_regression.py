r"""
12. Support vector regression: a tube that costs nothing
========================================================

For regression the loss is zero inside of a tube of half-width :math:`\varepsilon` and linear outside:

.. math:: \min_{f, b}\ \tfrac{1}{2} {|f|}^2 + C \sum_i \max(0, {|y_i - f(x_i) - b|} - \varepsilon),

[M5]. Samples strictly inside of the tube have the multiplier 0. A wider tube therefore has fewer support vectors, and a
worse fit. Outside, the loss grows like the absolute error, not like its square: a single outlier pulls with the force
:math:`C` at most, however far away it is.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVR, LinearSVR, TubeDisplay, datasets

BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#666666"

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 6, size=(60, 1)), axis=0)
y = np.sin(X[:, 0]) + 0.15 * rng.normal(size=60)

# %%
# The effect of ε
# ---------------

widths = (0.05, 0.3, 0.6)
models = [SVR(C=10.0, gamma=0.5, epsilon=width, tol=1e-6).fit(X, y) for width in widths]
figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.2), layout="constrained", sharey=True)
for ax, width, model in zip(axes, widths, models, strict=True):
    TubeDisplay.from_estimator(model, X, y, ax=ax)
    ax.set(title=f"ε = {width:g}: {len(model.support_)} support vectors", xlabel="x", ylabel="")
    ax.get_legend().remove()
plt.show()

# %%
# Outliers
# --------
#
# One target in ten of this line is far too large. The line of least squares follows the outliers; that of the
# ε-insensitive loss does not.

data = datasets.make_outliers(80, share=0.1, size=20.0, seed=1)
robust = LinearSVR(C=10.0, epsilon=0.1, penalize_intercept=False, tol=1e-8).fit(data.X, data.y)
square = np.polyfit(data.X[:, 0], data.y, 1)

figure, ax = plt.subplots(figsize=(7.0, 3.4), layout="constrained")
ax.scatter(data.X[:, 0], data.y, s=14, color=GREY, label="samples")
ends = np.array([data.X.min(), data.X.max()])
ax.plot(ends, np.polyval(square, ends), color=ORANGE, lw=2, ls="--", label="least squares")
ax.plot(ends, robust.predict(ends[:, None]), color=BLUE, lw=2, label="LinearSVR")
ax.set(xlabel="x", ylabel="target")
ax.legend(fontsize="small")
plt.show()

# %%
# The numbers
# -----------

print("  ε     support vectors   mean |error|")
for width, model in zip(widths, models, strict=True):
    residual = np.abs(y - model.predict(X))
    primal = 0.5 * model.rkhs_norm_[0] ** 2 + 10.0 * np.maximum(0, residual - width).sum()
    print(f"{width:5.2f}   {len(model.support_):10d}   {residual.mean():15.3f}")
    assert set(np.flatnonzero(residual > width + 1e-5)) <= set(model.support_)
    assert np.isclose(primal, model.certificate_.primal, rtol=1e-6)
counts = [len(model.support_) for model in models]
assert counts == sorted(counts, reverse=True)

slope = np.ravel(robust.coef_)[0], square[0]
print(f"slope by LinearSVR {slope[0]:.3f}, by least squares {slope[1]:.3f}; the truth is {data.w:.3f}")
assert abs(slope[0] - data.w) < 0.1 < abs(slope[1] - data.w)

# %%
# What to notice
# --------------
#
# * Support vectors are on the tube or outside of it. All others could be left out without any change.
# * :math:`\varepsilon` is in the units of the target. ``NuSVR`` chooses it so that a given share of the samples is
#   outside.
#
# Links
# -----
#
# :Names: :obj:`mercer.SVR`, :obj:`mercer.LinearSVR`
# :Tests: ``tests/notes/test_machines.py::test_12_svr``, ``test_12_svr_quadratic_program``
# :Studio: lessons ``epsilon-tube``, ``robust-line`` of ``mercer studio``
# :See also: :doc:`plot_13_kernel_ridge`, :doc:`plot_36_regularised_losses`, :doc:`plot_40_figures`
