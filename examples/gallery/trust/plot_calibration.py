"""
Probabilities that keep their word
==================================

Of all samples to which a model gives a probability of 70 %, seven in ten should be positive. ``SVCCV`` learns its
probabilities from the held-out decision values of its own search, so they cost no further fit, and the likeliest class
is always the predicted one.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.metrics import log_loss

from mercer import SVCCV

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#e69f00", "#009e73", "#7f7f7f"


def noisy(n, rng):
    """Return points of the plane and labels that are drawn with a probability known for each."""
    X = rng.uniform(-3, 3, (n, 2))
    p = 1 / (1 + np.exp(-1.5 * (X[:, 1] - np.sin(1.5 * X[:, 0]))))
    return X, (rng.random(n) < p).astype(int), p


# %%
# The search maximises the area under the ROC curve: it asks for the right order of the samples, not only for the right
# side of the boundary. This choice matters: with the hinge loss and a C chosen for accuracy, probabilities on data like
# these can be off by more than ten percentage points.

rng = np.random.default_rng(0)
X, y, _ = noisy(1000, rng)
X_new, y_new, p_new = noisy(8000, rng)
model = SVCCV(Cs=[0.01, 0.03, 0.1], gammas=4, loss="squared_hinge", scoring="roc_auc").fit(X, y)
p = model.predict_proba(X_new)[:, 1]
assert np.array_equal(p > 0.5, model.predict(X_new) == 1)

# %%
# Left: the predicted probability over the plane, with the true line of 50 % dashed. Middle: the share of positive
# samples against the promised probability; squashing the decision value f by a fixed function does not keep the
# promise. Right: both as functions of the decision value, with Venn–Abers intervals, which say how well each
# probability is known.

squashed = 1 / (1 + np.exp(-model.decision_function(X_new)))
figure, (plane, curve, band) = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
x, z = np.meshgrid(np.linspace(-3, 3, 120), np.linspace(-3, 3, 120))
grid = model.predict_proba(np.column_stack([x.ravel(), z.ravel()]))[:, 1].reshape(x.shape)
image = plane.contourf(x, z, grid, levels=np.linspace(0, 1, 11), cmap="PuOr_r")
plane.plot(x[0], np.sin(1.5 * x[0]), "k--", lw=1.5)
plane.set(xlabel="$x_1$", ylabel="$x_2$", title="predicted probability")
figure.colorbar(image, ax=plane, ticks=[0, 0.25, 0.5, 0.75, 1])

curve.plot([0, 1], [0, 1], color=GREY, lw=1, ls="--")
for values, colour, marker, name in ((squashed, ORANGE, "s", "1 / (1 + exp(−f))"), (p, BLUE, "o", "predict_proba")):
    true, promised = calibration_curve(y_new, values, n_bins=12, strategy="quantile")
    curve.plot(promised, true, marker=marker, color=colour, label=name)
curve.set(xlabel="promised probability", ylabel="share of positive samples", title="kept promises")
curve.legend(frameon=False)

value = model.decision_function(X_new)
order = np.argsort(value)[::40]
low, high = model.predict_proba_interval(X_new[order])[:, 1].T
band.fill_between(value[order], low, high, color=BLUE, alpha=0.3, lw=0, label="Venn–Abers interval")
band.plot(value[order], p[order], color=BLUE, lw=2, label="predict_proba")
groups = np.array_split(np.argsort(value), 16)
found = [(value[group].mean(), y_new[group].mean()) for group in groups]
band.plot(*np.transpose(found), "k^", ms=5, label="share of positive samples")
band.set(xlabel="decision value", ylabel="probability", title="how well it is known")
band.legend(frameon=False, loc="upper left", fontsize="small")
for ax in (curve, band):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The log loss, in comparison with that of the true probabilities, which nobody can beat:

losses = {name: log_loss(y_new, v) for name, v in (("truth", p_new), ("predict_proba", p), ("squashed", squashed))}
print({name: round(value, 3) for name, value in losses.items()})
true, promised = calibration_curve(y_new, p, n_bins=12, strategy="quantile")
assert np.abs(true - promised).max() < 0.12
assert losses["truth"] < losses["predict_proba"] < losses["squashed"]
assert losses["predict_proba"] < 1.2 * losses["truth"]
