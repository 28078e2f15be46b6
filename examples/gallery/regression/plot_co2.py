"""
Trend, seasons and noise: a sum of kernels looks into the future
================================================================

A series like the carbon dioxide above Mauna Loa: it rises, it breathes with the seasons, and it wobbles. Each of these
is a kernel. Their sum is the kernel of the whole, and a Gaussian process learns the parameters of all parts together
and carries them on, with error bars (after Rasmussen & Williams, 5.4.3).
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import Fixed, Gaussian, GaussianProcessRegressor, Periodic, Polynomial, White

BLUE, ORANGE, RED = "#0072b2", "#e69f00", "#d55e00"

# %%
# The series is generated: 30 years, six values a year, a curved trend, a season of two waves, and slow weather. The
# model sees the first 22 years.


def waves(t):
    """Return the season at the time t, in years."""
    return 3.0 * np.sin(2 * np.pi * t) + 0.8 * np.cos(4 * np.pi * t)


rng = np.random.default_rng(0)
years = np.arange(0, 30, 1 / 6)
trend = 340 + 1.3 * years + 0.02 * years**2
season = waves(years)
wobble = np.zeros(len(years))
for k in range(1, len(years)):
    wobble[k] = 0.85 * wobble[k - 1] + 0.15 * rng.normal()
ppm = trend + season + wobble + 0.15 * rng.normal(size=len(years))
seen = years < 22

# %%
# The sum. ``Fixed`` keeps the period at one year; everything else is learnt by maximising the marginal likelihood.

rise = 100.0 * Fixed(Polynomial(degree=2, gamma=0.01, coef0=1.0), "coef0")
seasons = 4.0 * Fixed(Periodic(length_scale=1.0, period=1.0), "period")
weather = 0.3 * Gaussian.from_sigma(1.0)
level = ppm[seen].mean()
X = years[:, None] - 11.0
model = GaussianProcessRegressor(rise + seasons + weather + White(0.05)).fit(X[seen], ppm[seen] - level)
learnt = model.kernel_
print(learnt)
print(f"log marginal likelihood {model.log_marginal_likelihood_value_:.1f}, equations solved to {model.residual_:.0e}")

# %%
# Each part has its own posterior mean: the kernel of the part alone in the place of the sum.

grid = np.linspace(0, 34, 900)
Z = grid[:, None] - 11.0
mean, deviation = model.predict(Z, return_std=True)
parts = {
    "trend": learnt.left.left.left,
    "seasons": learnt.left.left.right,
    "weather": learnt.left.right,
}
figure = plt.figure(figsize=(12, 5.6), layout="constrained")
space = figure.add_gridspec(3, 2, width_ratios=(1.7, 1))
top = figure.add_subplot(space[:, 0])
top.fill_between(
    grid,
    mean + level - 2 * deviation,
    mean + level + 2 * deviation,
    color=BLUE,
    alpha=0.25,
    lw=0,
    label="±2 deviations",
)
top.plot(grid, mean + level, color=BLUE, lw=1, label="mean")
top.plot(years[seen], ppm[seen], ".", color="black", ms=3, label="learnt from")
top.plot(years[~seen], ppm[~seen], ".", color=RED, ms=5, label="held out")
top.axvline(22, color="0.5", lw=1, ls=":")
top.set(xlabel="year", ylabel="ppm", xlim=(0, 34))
top.legend(frameon=False, loc="upper left")
truths = ((years, trend - level), (grid, waves(grid)), (years, wobble))
for k, ((name, part), (when, truth)) in enumerate(zip(parts.items(), truths, strict=True)):
    ax = figure.add_subplot(space[k, 1])
    own = part(Z, model.X_train_) @ model.alpha_
    ax.plot(grid, own - (0 if k else own[0] - truth[0]), color=BLUE, lw=1.5, label="learnt")
    ax.plot(when, truth, color=ORANGE, lw=1, ls="--", label="truth")
    ax.set(xlim=(0, 34) if k != 1 else (0, 5), ylabel=name)
    ax.axvline(22, color="0.5", lw=1, ls=":")
    ax.spines[["top", "right"]].set_visible(False)
    if k == 0:
        ax.legend(frameon=False, loc="upper left", fontsize="small")
ax.set_xlabel("year (seasons: the first five)")
top.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The band is honest if it holds about 95 % of what was held out.

future, spread = model.predict(X[~seen], return_std=True)
error = future + level - ppm[~seen]
inside = np.mean(np.abs(error) < 2 * spread)
print(f"eight years ahead: error {np.sqrt(np.mean(error**2)):.2f} ppm, {inside:.0%} of the values within the band")
assert inside > 0.85 and np.sqrt(np.mean(error**2)) < 1.0
