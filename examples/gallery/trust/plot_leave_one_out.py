"""
Exact leave-one-out, without a fit per sample
=============================================

Leave one sample out, fit, ask the machine about it; repeat for all samples. This is an almost unbiased estimate of the
error, and seems to need as many fits as there are samples. It does not: a sample that is no support vector changes
nothing, and for the others the old solution is an excellent start.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from mercer import SVC, leave_one_out

BLUE, ORANGE, GREEN, RED = "#0072b2", "#e69f00", "#009e73", "#d55e00"

X, y = make_moons(150, noise=0.28, random_state=3)
machine = SVC(C=5, gamma=1.0).fit(X, y)

start = time.perf_counter()
report = leave_one_out(machine, X, y)
short = time.perf_counter() - start
start = time.perf_counter()
refitted = cross_val_predict(SVC(C=5, gamma=1.0, tol=1e-6), X, y, cv=LeaveOneOut())
long = time.perf_counter() - start
print(report)
print(f"{1000 * short:.0f} ms; {len(X)} fits, one after the other: {1000 * long:.0f} ms")
assert np.array_equal(report.predictions, refitted)

# %%
# Left: a sample changes its label when it is left out only if it holds the boundary where it is. These are the samples
# to look at when labels are in doubt. Right: the error for many values of C, exact and by two shortcuts. The span
# estimate needs no further solution; the ξα value is an upper bound of the exact one as long as some support vector is
# free, that is below C; it is often loose.

Cs = np.logspace(-1.2, 2.5, 17)
errors = {method: [] for method in ("exact", "span", "xi-alpha")}
training = []
for C in Cs:
    model = SVC(C=C, gamma=1.0).fit(X, y)
    training.append(1 - model.score(X, y))
    for method, found in errors.items():
        found.append(leave_one_out(model, X, y, method=method).error)
assert np.all(np.array(errors["xi-alpha"]) >= np.array(errors["exact"]))

figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.6), layout="constrained")
x, z = np.meshgrid(np.linspace(-1.9, 2.9, 200), np.linspace(-1.4, 1.8, 200))
value = machine.decision_function(np.column_stack([x.ravel(), z.ravel()])).reshape(x.shape)
left.contourf(x, z, value, levels=[-1e9, 0, 1e9], colors=[BLUE, ORANGE], alpha=0.15)
left.contour(x, z, value, levels=[0], colors="black", linewidths=1)
fitted_wrong = machine.predict(X) != y
for c, colour, marker in ((0, BLUE, "o"), (1, ORANGE, "s")):
    left.scatter(*X[y == c].T, s=22, c=colour, marker=marker, edgecolors="white", linewidths=0.5)
flips = report.wrong & ~fitted_wrong
left.scatter(*X[report.wrong & fitted_wrong].T, s=90, facecolors="none", edgecolors="0.35", label="wrong anyway")
left.scatter(*X[flips].T, s=110, facecolors="none", edgecolors=RED, linewidths=2, label="wrong when left out")
left.set(xlabel="$x_1$", ylabel="$x_2$", title=f"{report.wrong.sum()} of {len(X)} wrong when left out")
left.legend(loc="lower left", framealpha=0.9)
assert flips.sum() >= 3

lines = {
    "upper bound by ξα": ("xi-alpha", GREEN, "-"),
    "exact leave-one-out": ("exact", BLUE, "-"),
    "span estimate": ("span", ORANGE, "--"),
}
for name, (method, colour, style) in lines.items():
    right.semilogx(Cs, errors[method], style, color=colour, lw=2, label=name)
right.semilogx(Cs, training, ":", color="black", lw=1.2, label="on training samples")
right.set(xlabel="C", ylabel="error", ylim=(0, None), title="the error along C")
right.spines[["top", "right"]].set_visible(False)
right.legend(frameon=False)
plt.show()

difference = np.abs(np.array(errors["span"]) - np.array(errors["exact"])).max()
print(f"largest difference of the span estimate from the exact error: {difference:.3f}")
assert difference < 0.08
