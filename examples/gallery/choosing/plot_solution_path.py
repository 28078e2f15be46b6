"""
All machines for all C at once
==============================

As C grows, the coefficients of a support vector machine move along straight lines, with a break where a sample enters
or leaves the margin. ``solution_path`` follows them from break to break: the result is the exact machine for every C,
not for the points of a grid.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import SVC, PathDisplay, solution_path

BLUE, ORANGE, RED = "#0072b2", "#e69f00", "#d55e00"

X, y = make_moons(80, noise=0.3, random_state=1)
X_new, y_new = make_moons(2000, noise=0.3, random_state=2)
path = solution_path(SVC(gamma=1.0), X, y, C_min=0.05, C_max=500.0)
print(path)

# %%
# Above: each line is a sample, its coefficient as a share of C. A line at 1 is a sample inside the margin, a line at 0
# one that the machine forgets; in between it lies exactly on the margin. Below: the error on new points, for every C
# between the breaks too. Grey ticks are the breaks.

figure, (above, below) = plt.subplots(2, 1, figsize=(9, 6.6), layout="constrained", sharex=True, height_ratios=(3, 2))
PathDisplay.from_path(path, ax=above)
above.set(xlabel="", ylabel="|β| / C", title=f"{len(X)} samples, {len(path.C)} breaks: the exact machine for every C")
Cs = np.geomspace(path.C[0], path.C[-1], 400)
error = np.array([np.mean((path.decision_function(X_new, C) > 0) != y_new) for C in Cs])
below.plot(Cs, error, color=BLUE, lw=1.5, label="error on new points")
grid = np.logspace(-1, 2, 4)
below.plot(grid, np.interp(grid, Cs, error), "o", color=ORANGE, ms=8, label="what a grid of four would see")
best = Cs[error.argmin()]
below.axvline(best, color=RED, lw=1, ls="--", label=f"best: C = {best:.2g}, {error.min():.1%}")
below.plot(path.C, np.full(len(path.C), error.min() - 0.012), "|", color="0.5", ms=8)
below.set(xscale="log", xlabel="C", ylabel="error")
below.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
below.spines[["top", "right"]].set_visible(False)
below.legend(frameon=False, loc="upper left", ncols=3, fontsize="small")
below.set_ylim(top=error.max() + 0.02)
plt.show()

# %%
# Between two breaks the path is the machine that ``SVC`` would find.

C = float(np.sqrt(path.C[20] * path.C[21]))
machine = SVC(gamma=1.0, C=C, tol=1e-8).fit(X, y)
difference = np.abs(path.decision_function(X_new, C) - machine.decision_function(X_new)).max()
certificate, _ = path.certified(C)
print(f"C = {C:.4g}: decision values differ by {difference:.1e}; certificate of the path: {certificate}")
assert difference < 1e-5 and certificate.relative_gap < 1e-6
