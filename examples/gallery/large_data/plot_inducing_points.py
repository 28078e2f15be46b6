"""
A Gaussian process of many rows, between two bounds
===================================================

A Gaussian process on n samples takes n³ operations. Through m inducing points it takes n m², and two bounds say how
much is lost: the exact log evidence of the kernel lies between them. Points are added until the bounds are close.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import Gaussian, GaussianProcessRegressor, SparseGaussianProcessRegressor, White

BLUE, ORANGE = "#0072b2", "#e69f00"
rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 10, (1500, 1)), axis=0)
y = np.sin(X[:, 0]) + 0.5 * np.sin(4 * X[:, 0]) + 0.3 * rng.normal(size=1500)

# %%
# For one kernel: the bounds against the number of points, chosen one by one where the variance given the others is
# largest, and the exact evidence of ``GaussianProcessRegressor``.

kernel, noise = 1.0 * Gaussian(3.0), 0.09
exact = GaussianProcessRegressor(kernel + White(noise), optimizer=None).fit(X, y).log_marginal_likelihood_value_
sizes = [8, 12, 16, 20, 24, 28, 32, 40]
given = SparseGaussianProcessRegressor(kernel, noise_variance=noise, optimizer=None)
bounds = [given.set_params(n_inducing=m).fit(X, y).evidence_bounds_ for m in sizes]
for lower, upper in bounds:
    assert lower <= exact + 1e-6 and exact <= upper + 1e-6

# %%
# With ``n_inducing="auto"``, the default, kernel and noise are learnt, and points are added until the gap of the bounds
# is small.

model = SparseGaussianProcessRegressor(1.0 * Gaussian(1.0)).fit(X, y)
print(model.kernel_, model.noise_variance_)
print(model.growth_)
assert model.evidence_bounds_.gap < 1e-2 * 1500
assert 0.07 < model.noise_variance_ < 0.11

figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.2), layout="constrained")
left.fill_between(sizes, *np.array(bounds).T, color=BLUE, alpha=0.2, lw=0)
left.plot(sizes, np.array(bounds), "o-", color=BLUE, label="bounds")
left.axhline(exact, color="black", ls="--", label="exact")
left.set(xlabel="inducing points", ylabel="log evidence", ylim=(exact - 1500, exact + 1000))
handles, labels = left.get_legend_handles_labels()
left.legend(handles[1:], labels[1:], frameon=False)
x = np.linspace(-1, 11, 300)[:, None]
mean, deviation = model.predict(x, return_std=True)
right.plot(X[:, 0], y, ".", color="0.75", ms=3)
right.fill_between(x[:, 0], mean - 2 * deviation, mean + 2 * deviation, color=BLUE, alpha=0.2, lw=0)
right.plot(x[:, 0], mean, color=BLUE, lw=2)
right.plot(model.inducing_points_[:, 0], np.full(len(model.dual_coef_), -2.6), "|", color=ORANGE, ms=12, mew=2)
right.set(xlabel="x", ylabel="y", title=f"{len(model.dual_coef_)} inducing points (marked below) for 1,500 samples")
plt.show()
