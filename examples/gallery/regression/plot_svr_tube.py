"""
The tube of support vector regression
=====================================

Support vector regression pays nothing for errors up to ε. Samples inside the tube of this width have no influence;
those on its edge or outside carry the function. A wider tube leaves fewer of them, and a flatter function.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVR, NuSVR, TubeDisplay

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 6, (90, 1)), axis=0)
y = np.sin(2 * X[:, 0]) * np.exp(-X[:, 0] / 4) + 0.12 * rng.normal(size=len(X))

# %%
# Three widths. With ε = 0.5 the tube is so wide that a nearly flat function satisfies it.

figure, axes = plt.subplots(1, 3, figsize=(12.5, 3.9), layout="constrained", sharey=True)
support = {}
for ax, epsilon in zip(axes, (0.02, 0.15, 0.5), strict=True):
    machine = SVR(C=10, gamma=1.0, epsilon=epsilon).fit(X, y)
    support[epsilon] = len(machine.support_)
    TubeDisplay.from_estimator(machine, X, y, ax=ax)
    ax.set(title=f"ε = {epsilon:g}: {support[epsilon]} of {len(X)} samples carry it", xlabel="x", ylabel="y")
    ax.label_outer()
    ax.get_legend().remove()
handles, labels = axes[0].get_legend_handles_labels()
labels = ["tube of ±ε", "prediction", "samples", "support vectors"]
figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
plt.show()
assert support[0.02] > support[0.15] > support[0.5]

# %%
# ``NuSVR`` turns the question round: give the share of samples that may lie outside, and it learns the width.

shares = np.linspace(0.05, 0.9, 12)
widths, outside = [], []
for nu in shares:
    machine = NuSVR(nu=nu, C=10, gamma=1.0, tol=1e-5).fit(X, y)
    error = np.abs(machine.predict(X) - y)
    # samples whose coefficient is neither 0 nor at its bound lie on the edge of the tube
    size = np.abs(machine.dual_coef_[0])
    edge = machine.support_[size < 0.999 * size.max()]
    widths.append(np.median(error[edge]))
    outside.append(np.mean(error > widths[-1] + 1e-3))
figure, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
ax.plot(shares, widths, "o-", color="#0072b2", label="learnt ε")
ax.set(xlabel="ν, the share that may lie outside", ylabel="learnt half width ε", ylim=(0, None))
ax.yaxis.label.set_color("#0072b2")
twin = ax.twinx()
twin.plot(shares, outside, "s-", color="#e69f00", label="share outside")
twin.plot(shares, shares, color="black", lw=1, ls="--")
twin.set(ylabel="share of samples outside", ylim=(0, 1))
twin.yaxis.label.set_color("#e69f00")
for axis in (ax, twin):
    axis.spines["top"].set_visible(False)
plt.show()
assert np.all(np.array(outside) <= shares + 1e-9)
assert np.all(np.diff(widths) < 0)
