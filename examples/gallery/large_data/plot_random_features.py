"""
Random features and landmarks: how many are enough?
===================================================

A kernel machine on *n* rows needs kernel values between rows. A feature map with finitely many features turns it into a
linear machine, whose cost grows with *n* only. Random frequencies know nothing of the data, and their error falls like
1/√m. Landmarks look at the data, and do better with the same number.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from mercer import SVC, Gaussian, LinearSVC, Nystroem, RandomFeatures

BLUE, ORANGE = "#0072b2", "#e69f00"

X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X / 16, y, test_size=0.4, stratify=y, random_state=0)
gamma = 0.1
K = Gaussian(gamma)(X[:400])
exact = SVC(gamma=gamma, C=10).fit(X, y).score(X_new, y_new)

# %%
# For each number of features: the error of kernel values, and the accuracy of a linear machine on the features.

sizes = (10, 20, 40, 80, 160)
makers = {
    "random features": lambda m: RandomFeatures(gamma=gamma, n_components=m, random_state=0),
    "landmarks": lambda m: Nystroem(gamma=gamma, n_components=m, selection="random_cholesky", random_state=0),
}
error, accuracy = {name: [] for name in makers}, {name: [] for name in makers}
for name, make in makers.items():
    for m in sizes:
        machine = make_pipeline(make(m), LinearSVC(C=1.0)).fit(X, y)
        features = machine[0].transform(X[:400])
        error[name].append(np.sqrt(np.mean((features @ features.T - K) ** 2)))
        accuracy[name].append(machine.score(X_new, y_new))

figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.4), layout="constrained")
for name, colour, marker in zip(makers, (ORANGE, BLUE), "so", strict=True):
    left.loglog(sizes, error[name], marker=marker, color=colour, lw=2, label=name)
    right.semilogx(sizes, accuracy[name], marker=marker, color=colour, lw=2, label=name)
left.loglog(sizes, error["random features"][0] * np.sqrt(sizes[0] / np.array(sizes)), "k:", lw=1, label="1/√m")
left.set(xlabel="features m", ylabel="root mean square error of kernel values")
right.axhline(exact, color="black", lw=1, ls="--")
right.text(sizes[0], exact + 0.004, f"exact kernel machine: {exact:.1%}", va="bottom")
right.set(xlabel="features m", ylabel="right on new digits", ylim=(0.55, 1.03))
right.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
left.legend(frameon=False)
for ax in (left, right):
    ax.set_xticks(sizes, map(str, sizes))
    ax.minorticks_off()
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# In the logarithms the random error has a slope a little below −½: the frequencies are orthogonal, which is better than
# independent. Landmarks end lower, and 160 of them are nearly as good as the exact machine.

slope = np.polyfit(np.log(sizes), np.log(error["random features"]), 1)[0]
print(f"slope of the random features: {slope:.2f}")
assert -0.75 < slope < -0.4
assert error["landmarks"][-1] < 0.4 * error["random features"][-1]
assert accuracy["landmarks"][-1] > exact - 0.02
