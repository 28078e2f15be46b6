"""
From prior to posterior: what a Gaussian process believes
=========================================================

A Gaussian process is a belief about functions. Before any data, the kernel alone says which functions are likely. Each
sample removes those that do not pass near it. What is left is the posterior: its spread is small near samples and grows
away from them.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import Gaussian, GaussianProcessRegressor, Matern, White

BLUE, PALETTE = "#0072b2", ("#e69f00", "#009e73", "#cc79a7", "#d55e00", "#7f7f7f")

rng = np.random.default_rng(3)
places = np.array([0.6, 1.1, 2.4, 4.2, 4.6, 5.0, 7.5])
targets = np.sin(places) + 0.3 * np.cos(3 * places)
x = np.linspace(0, 10, 250)[:, None]

# %%
# Two kernels: the Gaussian, whose functions are smooth, and a Matérn kernel, whose functions are rough. Five functions
# are drawn from each belief, before and after seven samples.

kernels = {
    "Gaussian kernel": 1.0 * Gaussian.from_sigma(1.0),
    "Matérn kernel, ν = 1/2": 1.0 * Matern(length_scale=1.5, nu=0.5),
}
figure, axes = plt.subplots(2, 3, figsize=(12.5, 6), layout="constrained", sharex=True, sharey=True)
for top, row, (name, kernel) in zip((True, False), axes, kernels.items(), strict=True):
    for ax, seen in zip(row, (0, 3, 7), strict=True):
        model = GaussianProcessRegressor(kernel, optimizer=None, alpha=1e-8)
        if seen:
            model.fit(places[:seen, None], targets[:seen])
        mean, deviation = model.predict(x, return_std=True)
        ax.fill_between(x[:, 0], mean - 2 * deviation, mean + 2 * deviation, color=BLUE, alpha=0.18, lw=0)
        for draw, colour in zip(model.sample_y(x, 5, random_state=1).T, PALETTE, strict=True):
            ax.plot(x[:, 0], draw, color=colour, lw=0.9)
        ax.plot(x[:, 0], mean, color=BLUE, lw=2.2)
        ax.plot(places[:seen], targets[:seen], "o", color="black", ms=6, zorder=5)
        ax.set(ylim=(-3.2, 3.2), xlim=(0, 10))
        if top:
            ax.set_title(("before any sample", "after three samples", "after seven")[(0, 3, 7).index(seen)])
        if seen:
            assert deviation[np.abs(x[:, 0] - places[0]).argmin()] < 0.2
            assert abs(deviation[-1] - 1.0) < 0.25 or seen == 7
    row[0].set_ylabel(name)
for ax in axes[1]:
    ax.set_xlabel("x")
plt.show()

# %%
# The width and the noise can be learnt. The marginal likelihood weighs how well a kernel explains the samples against
# how many other samples it could explain as well; its maximum is a compromise that needs no held-out data.

X = rng.uniform(0, 10, (60, 1))
y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=60)
learnt = GaussianProcessRegressor(1.0 * Gaussian() + White(0.1)).fit(X, y)
print(learnt.kernel_)
widths = np.logspace(-1, 1.2, 40)
variance = learnt.kernel_.left.factor
noise = learnt.kernel_.right.noise
evidence = [
    GaussianProcessRegressor(variance * Gaussian.from_sigma(w) + White(noise), optimizer=None).fit(X, y)
    .log_marginal_likelihood_value_
    for w in widths
]  # fmt: skip
chosen = (2 * learnt.kernel_.left.kernel.gamma) ** -0.5

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
ax.semilogx(widths, evidence, color=BLUE, lw=2)
ax.plot(chosen, learnt.log_marginal_likelihood_value_, "o", color="#e69f00", ms=10, label=f"learnt: {chosen:.2f}")
ax.set(xlabel="width of the Gaussian kernel", ylabel="log marginal likelihood", ylim=(-120, None))
ax.text(0.2, -75, "too narrow:\nexplains anything", ha="left")
ax.text(5, -60, "too wide:\nexplains too little", ha="left")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
assert learnt.log_marginal_likelihood_value_ >= max(evidence) - 1e-3
assert 0.02 < noise < 0.08  # the truth is 0.04
