"""
Which training images made this prediction?
===========================================

Leave out a training image, fit again, and look at how the decision value of a new image changes: that is its influence.
``influence`` finds all of them exactly, without a fit per image: an image that is no support vector has none, and for
the others the present solution is an excellent start.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mercer import SVC, influence

X, y = load_digits(return_X_y=True)
chosen = (y == 3) | (y == 8)
X, y = X[chosen], y[chosen]
train, new = slice(0, 250), slice(250, None)
machine = SVC(C=5, gamma=0.001).fit(X[train], y[train])

# %%
# The image whose decision value is nearest to 0 is the hardest. Blue frames: with this training image, f is larger, so
# that it speaks for an 8. Orange frames: it speaks for a 3.

found = influence(machine, X[new], X[train], y[train])
print(found)
hardest = int(np.argmin(np.abs(machine.decision_function(X[new]))))
found.plot(hardest, k=11, image_shape=(8, 8))
plt.show()

# %%
# The values are those of fits from nothing: here for the three most influential images.

order, changes = found.top(3)
for i, change in zip(order[hardest], changes[hardest], strict=True):
    rest = np.delete(np.arange(250), i)
    refit = SVC(C=5, gamma=0.001, tol=1e-8).fit(X[rest], y[rest])
    whole = SVC(C=5, gamma=0.001, tol=1e-8).fit(X[train], y[train])
    image = X[new][[hardest]]
    exact = refit.decision_function(image)[0] - whole.decision_function(image)[0]
    print(f"without image {i}: {change:+.5f}, by a fit without it {exact:+.5f}")
    assert abs(change - exact) < 1e-4

# %%
# Can a single training image decide? For which new images does the label depend on one training image?

f = machine.decision_function(X[new])
fragile = np.flatnonzero((np.sign(f[:, None] + found.values) != np.sign(f)[:, None]).any(axis=1))
print(f"{len(fragile)} of {len(f)} predictions change when the right training image is left out")
largest = np.abs(found.values).max(axis=1)
figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
ax.scatter(f, largest, s=18, color="#0072b2")
ax.scatter(f[fragile], largest[fragile], s=90, facecolors="none", edgecolors="#d55e00", label="one image decides")
ax.axvline(0, color="0.5", lw=0.8)
ax.set(xlabel="decision value", ylabel="largest influence of one training image")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()

# %%
# It takes a fraction of the time of as many fits.

start = time.process_time()
influence(machine, X[new], X[train], y[train])
short = time.process_time() - start
start = time.process_time()
for i in machine.support_[:20]:
    SVC(C=5, gamma=0.001, tol=1e-6).fit(np.delete(X[train], i, axis=0), np.delete(y[train], i))
long = (time.process_time() - start) / 20 * len(machine.support_)
print(f"{1000 * short:.0f} ms; a fit for each of the {len(machine.support_)} support vectors: {1000 * long:.0f} ms")
