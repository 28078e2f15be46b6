"""
Ordered classes: one scale, several thresholds
==============================================

Ratings are classes with an order: to mistake "good" for "fair" is a smaller error than to mistake it for "poor".
``OrdinalSVC`` learns one function and thresholds on its scale. A classifier that does not know the order must learn a
boundary for every pair of classes.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, OrdinalSVC

COLOURS = np.array(["#053061", "#4393c3", "#92c5de", "#fddbc7", "#f4a582", "#b2182b"])


def rated(n, rng):
    """Return points of the plane and their ratings, from 0 to 5, of a noisy quality."""
    X = rng.uniform(-2, 2, (n, 2))
    quality = X[:, 0] + np.sin(1.5 * X[:, 1]) + 0.5 * rng.normal(size=n)
    return X, np.digitize(quality, [-1.5, -0.8, 0.0, 0.8, 1.5])


rng = np.random.default_rng(0)
X, y = rated(80, rng)
X_new, y_new = rated(4000, rng)
ordered = OrdinalSVC(C=1.0, gamma=0.3).fit(X, y)
pairs = SVC(C=1.0, gamma=0.3).fit(X, y)
errors = {name: np.abs(m.predict(X_new) - y_new) for name, m in (("OrdinalSVC", ordered), ("SVC", pairs))}
assert ordered.certificate_.relative_gap < 1e-4
assert errors["OrdinalSVC"].mean() < errors["SVC"].mean()

# %%
# Left: the classes of the ordered machine are bands that follow each other. Middle: each new sample has a place on the
# scale of f; the dashed lines are the thresholds. Right: how many classes the two machines are off.

figure, (plane, scale, bars) = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
x, z = np.meshgrid(np.linspace(-2, 2, 150), np.linspace(-2, 2, 150))
f = ordered.latent(np.column_stack([x.ravel(), z.ravel()])).reshape(x.shape)
plane.contourf(x, z, f, levels=[-99, *ordered.thresholds_, 99], colors=COLOURS, alpha=0.6)
plane.contour(x, z, f, levels=ordered.thresholds_, colors="black", linewidths=1)
plane.scatter(*X.T, c=COLOURS[y], s=22, edgecolors="black", linewidths=0.5)
plane.set(xlabel="$x_1$", ylabel="$x_2$", title="bands between thresholds")

values = ordered.latent(X_new)
scale.hist([values[y_new == c] for c in range(6)], bins=40, stacked=True, color=COLOURS, label=range(6))
for b in ordered.thresholds_:
    scale.axvline(b, color="black", ls="--", lw=1)
scale.set(xlabel="$f(x)$", ylabel="new samples", title="one scale for all ratings")
scale.set_ylim(0, 290)
scale.legend(title="rating", frameon=False, ncols=6, loc="upper center", handlelength=1, columnspacing=1)

for shift, (name, error) in zip((-0.2, 0.2), errors.items(), strict=True):
    share = np.bincount(error, minlength=6) / len(error)
    bars.bar(np.arange(6) + shift, share, width=0.38, label=f"{name}: {error.mean():.2f} on average")
bars.set(xlabel="classes off", ylabel="share of new samples", xticks=range(6), title="size of the errors")
bars.legend(frameon=False)
plt.show()
