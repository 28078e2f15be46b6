"""
Wrong labels, and a loss that gives them up
===========================================

A batch of samples was mixed up: they lie far inside the right class, but carry the label of the left one. The hinge
loss of ``SVC`` grows without end, so these samples pull the boundary over. The ramp loss of ``RampSVC`` stops at 1:
beyond that, a sample is given up, and ``given_up_`` names it.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, RampSVC

BLUE, ORANGE, GREEN, RED = "#0072b2", "#e69f00", "#009e73", "#d55e00"


def clouds(n, rng):
    """Return samples left and right of a gap, with their true labels 0 and 1."""
    X = rng.normal(size=(n, 2))
    X[:, 0] += np.where(rng.random(n) < 0.5, -2.0, 2.0)
    X = X[np.abs(X[:, 0]) > 0.3]
    return X, (X[:, 0] > 0).astype(int)


rng = np.random.default_rng(0)
X_new, y_new = clouds(5000, rng)
X, truth = clouds(240, rng)

# %%
# Fit both machines with more and more wrong labels, and ask them about new samples with true labels.

shares = (0.0, 0.03, 0.06, 0.09, 0.12, 0.15)
order = rng.permutation(np.flatnonzero(truth == 1))
accuracy = {"SVC": [], "RampSVC": []}
for share in shares:
    moved, labels = X.copy(), truth.copy()
    wrong = order[: int(share * len(truth))]
    moved[wrong] += 3.0
    labels[wrong] = 0
    plain = SVC(kernel="linear", C=10).fit(moved, labels)
    robust = RampSVC(kernel="linear", C=10).fit(moved, labels)
    accuracy["SVC"].append(plain.score(X_new, y_new))
    accuracy["RampSVC"].append(robust.score(X_new, y_new))

figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.6), layout="constrained", width_ratios=(1.35, 1))
for machine, colour, style, name in ((plain, "black", "--", "SVC"), (robust, GREEN, "-", "RampSVC")):
    (w,), (b,) = machine.coef_, machine.intercept_
    z = np.linspace(-3.5, 6.5, 2)
    left.plot(-(w[1] * z + b) / w[0], z, style, color=colour, lw=2.2, label=name)
for c, colour, marker in ((0, BLUE, "o"), (1, ORANGE, "s")):
    left.scatter(*moved[labels == c].T, s=20, color=colour, marker=marker, alpha=0.7, lw=0, label=f"labelled {c}")
left.scatter(*moved[robust.given_up_].T, s=80, facecolors="none", edgecolors=RED, lw=1.3, label="given up by RampSVC")
left.set(
    xlim=(-5, 7.5), ylim=(-3.5, 6.5), xlabel="$x_1$", ylabel="$x_2$", title=f"{shares[-1]:.0%} of the labels are wrong"
)
left.legend(loc="upper left", frameon=False, fontsize="small")
for (name, values), colour, marker in zip(accuracy.items(), ("black", GREEN), "so", strict=True):
    right.plot(np.array(shares) * 100, values, marker=marker, color=colour, lw=2, label=name)
right.set(xlabel="wrong labels (%)", ylabel="right on new samples", title="what the wrong labels cost")
right.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
right.spines[["top", "right"]].set_visible(False)
right.legend(frameon=False)
plt.show()

# %%
# All wrong labels are found, and hardly any right one is given up. The ramp loss is not convex: the machine reports a
# stationary point, and its certificate is that of the last convex problem.

found = np.isin(wrong, robust.given_up_).mean()
print(f"{found:.0%} of {len(wrong)} wrong labels were given up, and {len(robust.given_up_) - len(wrong)} others")
print(f"certificate of the {robust.certificate_.of}: {robust.certificate_}")
assert found == 1.0 and robust.stationary_
assert accuracy["RampSVC"][-1] > 0.985 > 0.95 > accuracy["SVC"][-1]
