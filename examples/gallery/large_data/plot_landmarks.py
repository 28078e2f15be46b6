"""
Landmarks: an approximate machine that says how near it is
==========================================================

An exact kernel machine on many noisy rows has very many support vectors. ``SVC(landmarks="auto")`` restricts the
machine to functions in the span of some samples, the landmarks, and adds more of them until the certificate is good
enough. The certificate is a bound on the distance from the *exact* machine, which is never computed.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC

BLUE, ORANGE, RED = "#0072b2", "#e69f00", "#d55e00"

# %%
# Twelve thousand points around a spiral, one label in ten wrong.

rng = np.random.default_rng(0)
n = 14_000
angle, turn = rng.uniform(0.6, 3.6 * np.pi, n), np.arange(n) % 2
along = angle + np.pi * turn
X = (angle + 0.5 * rng.normal(size=n))[:, None] * np.column_stack([np.cos(along), np.sin(along)])
X /= 4.0
y = np.where(rng.random(n) < 0.1, 1 - turn, turn)
X, X_new, y, y_new = X[:12_000], X[12_000:], y[:12_000], turn[12_000:]
machine = SVC(landmarks="auto", landmark_tol=0.02, gamma=4.0).fit(X, y)
print(f"{machine.n_landmarks_} landmarks for {len(X):,} rows: {machine.certificate_}")

# %%
# Left: the landmarks, chosen by what they lose of the dual solution. Right: how the gap shrinks round by round. Between
# rounds it is estimated from some rows; the last one is certified on all of them.

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5.2), layout="constrained")
x, z = np.meshgrid(np.linspace(-3.3, 3.3, 160), np.linspace(-3.3, 3.3, 160))
value = machine.decision_function(np.column_stack([x.ravel(), z.ravel()])).reshape(x.shape)
left.contourf(x, z, value, levels=[-1e9, 0, 1e9], colors=[BLUE, ORANGE], alpha=0.18)
left.contour(x, z, value, levels=[0], colors="black", linewidths=1)
shown = rng.permutation(len(X))[:2500]
for c, colour in ((0, BLUE), (1, ORANGE)):
    part = shown[y[shown] == c]
    left.scatter(*X[part].T, s=3, color=colour, lw=0)
left.scatter(*machine.landmarks_.T, s=16, facecolors="white", edgecolors="black", lw=0.8, label="landmarks", zorder=3)
left.set(xlim=(-3.3, 3.3), ylim=(-3.3, 3.3), aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
left.set_title(f"{len(X):,} rows, {machine.n_landmarks_} landmarks")
left.legend(loc="upper left", framealpha=0.9)

rounds = machine.growth_
count = [r.n_landmarks for r in rounds]
right.loglog(count, [r.exact_relative_gap for r in rounds], "o-", color=BLUE, lw=2, label="gap to the exact machine")
right.axhline(0.02, color=RED, lw=1, ls="--", label="landmark_tol = 0.02")
right.set(xlabel="landmarks", ylabel="relative gap")
ticks = sorted(set(count))
right.set_xticks(ticks, map(str, ticks))
right.minorticks_off()
right.spines[["top", "right"]].set_visible(False)
right.legend(frameon=False)
plt.show()

# %%
# On new points with true labels the machine is as good as the noise allows.

accuracy = machine.score(X_new, y_new)
print(f"right on new points with true labels: {accuracy:.1%}")
assert machine.certificate_.relative_gap <= 0.02
assert machine.n_landmarks_ < 1000 and accuracy > 0.95
