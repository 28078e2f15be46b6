"""
Learning sample by sample
=========================

Pegasos looks at one sample at a time: if it is on the wrong side of its margin, it is added to the weights. The cost of
a step does not depend on the number of samples. The objective falls like 1/T up to a logarithm, and a duality gap says
how far it has come.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, PegasosClassifier

BLUE, ORANGE, GREEN = "#0072b2", "#e69f00", "#009e73"

rng = np.random.default_rng(0)
n, lam = 2000, 0.01
X = np.vstack([rng.normal([-1.0, 0.3], [0.8, 0.9], (n // 2, 2)), rng.normal([1.0, -0.3], [0.8, 0.9], (n // 2, 2))])
y = np.repeat([0, 1], n // 2)

# %%
# The same problem, exactly: C = 1/(λn), without an intercept.

exact = SVC(kernel="linear", C=1 / (lam * n), fit_intercept=False, tol=1e-6).fit(X, y)
optimum = lam * exact.certificate_.primal


def objective(w):
    """Return λ/2 |w|² + the mean hinge loss."""
    return lam / 2 * (w @ w) + np.maximum(0, 1 - np.where(y == 1, 1, -1) * (X @ w)).mean()


# %%
# Stop after more and more steps, with six seeds each.

steps = np.unique(np.logspace(1, 4.5, 8).astype(int))
excess = np.empty((6, len(steps)))
for seed in range(6):
    for k, T in enumerate(steps):
        model = PegasosClassifier(lam=lam, n_steps=int(T), fit_intercept=False, random_state=seed).fit(X, y)
        excess[seed, k] = objective(model.coef_[0]) - optimum
bound = (0.5 + 2 * np.log(steps + 1)) * (X**2).sum(axis=1).max() / (lam * steps)
assert np.all(excess > -1e-6) and np.all(excess.mean(axis=0) < bound)

figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.5), layout="constrained")
left.loglog(steps, excess.T, color=BLUE, lw=0.8, alpha=0.35)
left.loglog(steps, excess.mean(axis=0), "o-", color=BLUE, lw=2, label="mean of six runs")
left.loglog(steps, bound, "--", color="black", lw=1.2, label="bound on the mean")
left.axvline(n, color="0.6", lw=1, ls=":")
left.text(n * 1.1, bound[0] / 3, "one pass", color="0.4")
left.set(xlabel="steps T", ylabel="objective above the optimum")
left.legend(frameon=False, loc="lower left")
left.spines[["top", "right"]].set_visible(False)

for c, colour, marker in ((0, BLUE, "o"), (1, ORANGE, "s")):
    right.scatter(*X[y == c][::4].T, s=10, color=colour, marker=marker, alpha=0.5, lw=0)
z = np.linspace(-3.5, 3.5, 2)
for T, colour, style in ((30, "0.65", "-"), (300, GREEN, "--"), (30_000, "black", "-")):
    w = PegasosClassifier(lam=lam, n_steps=T, fit_intercept=False, random_state=3).fit(X, y).coef_[0]
    right.plot(-w[1] * z / w[0], z, style, color=colour, lw=2, label=f"{T:,} steps")
w = exact.coef_[0]
right.plot(-w[1] * z / w[0], z, ":", color="#d55e00", lw=3, label="exact")
right.set(xlim=(-3.5, 3.5), ylim=(-3.2, 3.2), xlabel="$x_1$", ylabel="$x_2$")
right.legend(loc="upper right", framealpha=0.9)
plt.show()

# %%
# The certificate of the last run:

print(model.certificate_)
assert model.certificate_.relative_gap < 0.05
assert excess[:, -1].mean() < excess[:, 0].mean() / 50
