"""
The best λ from one decomposition
=================================

Kernel ridge regression has a closed form, and so has its leave-one-out error: one decomposition of the kernel matrix
gives the exact error of leaving out each sample, for every λ. ``KernelRidgeCV`` uses it to choose λ and the kernel.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelRidge, KernelRidgeCV

BLUE, ORANGE, GREEN, RED = "#0072b2", "#e69f00", "#009e73", "#d55e00"

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 6, (60, 1)), axis=0)
y = np.sin(X[:, 0] ** 1.5) + 0.25 * rng.normal(size=60)
X_new = rng.uniform(0, 6, (4000, 1))
y_new = np.sin(X_new[:, 0] ** 1.5)

# %%
# Scores of 40 values of λ and three widths of the Gaussian kernel, far apart so that their curves differ; a finer grid
# would find a slightly better width between the first two.

alphas, gammas = np.logspace(-6, 2, 40), (0.05, 3.0, 30.0)
model = KernelRidgeCV(alphas, kernel="rbf", kernel_grid={"gamma": list(gammas)}).fit(X, y)
print(f"chosen: {model.kernel_}, λ = {model.alpha_:.2g}; leave-one-out error {-model.best_score_:.3f}")

figure, axes = plt.subplots(1, 3, figsize=(12.5, 4), layout="constrained", width_ratios=(1.25, 1, 1))
for scores, kernel, colour, style in zip(
    model.scores_, model.kernels_, (GREEN, BLUE, ORANGE), ("-.", "-", "--"), strict=True
):
    axes[0].loglog(alphas, -scores, style, color=colour, lw=2, label=f"γ = {kernel.gamma:g}")
axes[0].plot(model.alpha_, -model.best_score_, "o", color=RED, ms=9, label="chosen")
axes[0].axhline(0.25**2, color="black", lw=1, ls=":")
axes[0].text(alphas[-1], 0.25**2 * 0.97, "noise", va="top", ha="right")
axes[0].set(xlabel="λ", ylabel="leave-one-out squared error", ylim=(0.05, 2.5))
axes[0].legend(frameon=False, loc="upper left")

# %%
# Three machines with the chosen kernel. The difference between them is a factor of λ alone.

grid = np.linspace(0, 6, 400)[:, None]
errors = {}
cases = (("λ / 10⁴: follows the noise", 1e-4, ORANGE), ("λ as chosen", 1.0, BLUE), ("10³ λ: too stiff", 1e3, GREEN))
for ax, group in zip(axes[1:], (cases[:2], cases[1:]), strict=True):
    ax.plot(X[:, 0], y, ".", color="0.5", ms=6)
    ax.plot(grid[:, 0], np.sin(grid[:, 0] ** 1.5), "k--", lw=1)
    for name, factor, colour in group:
        machine = KernelRidge(alpha=factor * model.alpha_, kernel=model.kernel_, fit_intercept=True).fit(X, y)
        errors[name] = np.mean((machine.predict(X_new) - y_new) ** 2)
        ax.plot(grid[:, 0], machine.predict(grid), color=colour, lw=2, label=name)
    ax.set(xlabel="x", ylabel="y", ylim=(-2, 2.6))
    ax.legend(frameon=False, loc="upper left")
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The closed form is what leaving out one sample after the other would give.

left_out = []
for i in range(len(X)):
    kept = np.arange(len(X)) != i
    without = KernelRidge(alpha=model.alpha_, kernel=model.kernel_, fit_intercept=True).fit(X[kept], y[kept])
    left_out.append((without.predict(X[[i]])[0] - y[i]) ** 2)
print(f"closed form {-model.best_score_:.6f}, one by one {np.mean(left_out):.6f}")
assert abs(np.mean(left_out) + model.best_score_) < 1e-4
assert errors["λ as chosen"] < min(errors["λ / 10⁴: follows the noise"], errors["10³ λ: too stiff"])
