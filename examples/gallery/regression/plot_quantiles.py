"""
Quantiles: how much, and how surely
===================================

A mean says little where the spread changes. The pinball loss makes a machine learn a quantile instead: the curve below
which a chosen share of the samples lies. Five of them draw a picture of the whole distribution, without assuming its
shape.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVR

BLUE, ORANGE = "#0072b2", "#e69f00"


def daily(n, rng):
    """Return times of the day and a load whose noise is skewed, and large in the evening."""
    x = rng.uniform(0, 24, n)
    level = 2 + np.sin((x - 7) / 24 * 2 * np.pi) + 0.8 * np.exp(-((x - 19) ** 2) / 6)
    return x[:, None], level + (0.1 + 0.35 * np.exp(-((x - 19) ** 2) / 10)) * rng.gamma(2.0, 1.0, n)


rng = np.random.default_rng(0)
X, y = daily(700, rng)
X_new, y_new = daily(20_000, rng)

# %%
# One machine for each quantile. The input is a single number, so γ is one over a squared number of hours.

quantiles = (0.05, 0.25, 0.5, 0.75, 0.95)
machines = {q: SVR(loss="pinball", quantile=q, C=3, gamma=0.05).fit(X, y) for q in quantiles}
grid = np.linspace(0, 24, 300)[:, None]
curves = {q: machine.predict(grid) for q, machine in machines.items()}

figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.4), layout="constrained", width_ratios=(2, 1))
left.scatter(X[:, 0], y, s=7, color="0.6", lw=0)
left.fill_between(grid[:, 0], curves[0.05], curves[0.95], color=BLUE, alpha=0.15, lw=0, label="9 in 10")
left.fill_between(grid[:, 0], curves[0.25], curves[0.75], color=BLUE, alpha=0.3, lw=0, label="5 in 10")
left.plot(grid[:, 0], curves[0.5], color=BLUE, lw=2, label="median")
left.set(xlabel="time of the day (h)", ylabel="load", xlim=(0, 24), xticks=range(0, 25, 4))
left.legend(frameon=False, loc="upper left")

# %%
# Right: the share of 20,000 new samples below each curve. It should be the quantile itself.

below = {q: np.mean(y_new < machine.predict(X_new)) for q, machine in machines.items()}
right.plot([0, 1], [0, 1], color="black", lw=1, ls="--", label="as asked for")
right.plot(list(below), list(below.values()), "o", color=ORANGE, ms=9, label="new samples")
right.set(xlabel="quantile", ylabel="share of new samples below", xlim=(0, 1), ylim=(0, 1))
right.legend(frameon=False, loc="upper left")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
print({q: f"{share:.1%}" for q, share in below.items()})
assert all(abs(share - q) < 0.04 for q, share in below.items())
width = curves[0.95] - curves[0.05]
assert width[np.argmin(np.abs(grid - 19))] > 2 * width[np.argmin(np.abs(grid - 9))]
