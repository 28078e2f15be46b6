"""
Outliers and the loss that meets them
=====================================

One sample in ten is far too high, and all of them are at the right end, where they turn a line most. A squared error
makes them count by the square of their distance; absolute errors count the distance; Huber's loss changes from one to
the other. ``KernelERM`` takes any convex loss, and certifies the result.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelERM, datasets
from mercer.losses import epsilon_insensitive

BLUE, ORANGE, GREEN, RED = "#0072b2", "#e69f00", "#009e73", "#d55e00"

data = datasets.make_outliers(100, share=0.1, size=12.0, noise=0.4)

# %%
# Three losses, the same linear kernel, the same C.

looks = {
    "squared": ("squared", {}, ORANGE, "--"),
    "Huber": ("huber", {"delta": 0.5}, GREEN, "-."),
    "ε-insensitive": ("epsilon_insensitive", {"epsilon": 0.3}, BLUE, "-"),
}
x = np.array([[0.0], [10.0]])
figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.4), layout="constrained", width_ratios=(1.5, 1))
left.scatter(data.X[:, 0], data.y, s=18, color="0.5", lw=0)
left.scatter(
    data.X[data.outliers, 0], data.y[data.outliers], s=70, facecolors="none", edgecolors=RED, lw=1.4, label="outliers"
)
left.plot(x[:, 0], data.w * x[:, 0] + data.b, color="black", lw=1, ls=":", label="truth")
errors = {}
for name, (loss, options, colour, style) in looks.items():
    model = KernelERM(loss=loss, kernel="linear", C=10.0, **options).fit(data.X, data.y)
    errors[name] = np.sqrt(np.mean((model.predict(data.X) - data.truth) ** 2))
    print(f"{name:14} slope {model.coef_[0, 0]:.3f}, error {errors[name]:.2f}, {model.certificate_}")
    assert model.certificate_.relative_gap <= 1e-5
    left.plot(x[:, 0], model.predict(x), style, color=colour, lw=2.2, label=f"{name}: off by {errors[name]:.2f}")
left.set(xlabel="x", ylabel="y", xlim=(0, 10.3))
left.legend(frameon=False, loc="upper left")

# %%
# Right: what each loss charges for a residual. Only the squared loss keeps getting steeper.

r = np.linspace(-4, 4, 401)
zero = np.zeros_like(r)
huber = np.where(np.abs(r) <= 0.5, r**2 / 2, 0.5 * (np.abs(r) - 0.25))
right.plot(r, r**2 / 2, "--", color=ORANGE, lw=2.2, label="squared")
right.plot(r, huber, "-.", color=GREEN, lw=2.2, label="Huber, δ = 0.5")
right.plot(r, epsilon_insensitive(r, zero, epsilon=0.3), color=BLUE, lw=2.2, label="ε-insensitive, ε = 0.3")
right.set(xlabel="residual y − f", ylabel="loss", ylim=(0, 5))
right.legend(frameon=False, loc="upper center")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
assert errors["squared"] > 3 * max(errors["Huber"], errors["ε-insensitive"])
