"""
Survival times, some of which are only known in part
====================================================

A study ends before all its events have happened: for a censored sample, only a lower bound of its time is known.
``SurvivalSVM`` uses this bound in the pairs whose order is known. The share of such pairs that a model puts in order is
the concordance index.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SurvivalSVM

BLUE, ORANGE, GREY = "#0072b2", "#e69f00", "#7f7f7f"


def study(n, rng, end):
    """Return samples, whether their event was observed before the end, the time seen, and the true time."""
    X = rng.uniform(-2, 2, (n, 2))
    time = np.exp(1.0 + 0.9 * np.cos(1.5 * X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=n))
    seen = np.minimum(time, rng.uniform(0.3, 1.0, n) * end)
    return X, np.column_stack([seen == time, seen]), time


rng = np.random.default_rng(0)
X, y, _ = study(250, rng, end=8.0)
X_new, y_new, time_new = study(1500, rng, end=8.0)
ranking = SurvivalSVM(2**-4, gamma=0.5).fit(X, y)
mixed = SurvivalSVM(2**-4, rank_ratio=0.5, fit_intercept=True, gamma=0.5).fit(X, y)
naive = SurvivalSVM(2.0, rank_ratio=0.0, fit_intercept=True, gamma=0.5).fit(X, y[:, 1])
assert ranking.certificate_.relative_gap < 1e-6

# %%
# Left: the data. Middle: predicted against true times of new samples; a machine that takes censored times for events
# predicts too early. Right: true survival of the three thirds of lowest, middle and highest predicted risk.

figure, (data, times, curves) = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
observed = y[:, 0] == 1
data.scatter(X[observed, 0], y[observed, 1], s=14, color=BLUE, label="event")
data.scatter(X[~observed, 0], y[~observed, 1], s=22, marker="^", color=ORANGE, label="censored")
data.set(xlabel="$x_1$", ylabel="time", title=f"{(~observed).mean():.0%} of the times are censored")
data.legend(frameon=False)

for model, colour, name in (
    (naive, ORANGE, "censored times taken for events"),
    (mixed, BLUE, "ranking and regression"),
):
    times.scatter(time_new, model.predict(X_new), s=4, color=colour, alpha=0.4, label=name)
times.plot([0.2, 40], [0.2, 40], color=GREY, lw=1, ls="--")
times.set(xscale="log", yscale="log", xlabel="true time", ylabel="predicted time", title="predictions of new samples")
times.legend(frameon=False, markerscale=3)
bias = [np.median(np.log(model.predict(X_new) / time_new)) for model in (naive, mixed)]
assert bias[0] < bias[1] < 0.1

risk = ranking.predict(X_new)
thirds = np.digitize(risk, np.quantile(risk, [1 / 3, 2 / 3]))
for third, name, style in ((0, "lowest risk", "-"), (1, "middle", "--"), (2, "highest risk", ":")):
    ordered = np.sort(time_new[thirds == third])
    curves.step(ordered, 1 - np.arange(1, len(ordered) + 1) / len(ordered), style, color="black", label=name)
index = ranking.score(X_new, y_new)
curves.set(xlabel="time", ylabel="share that survives", xlim=(0, 15), title=f"concordance index {index:.3f}")
curves.legend(frameon=False)
assert index > 0.75
plt.show()
