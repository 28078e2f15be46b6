r"""
27. Kernels from kernels, and kernels from data
===============================================

If :math:`k_1` and :math:`k_2` are kernels, so are

.. math:: k_1 + k_2, \qquad k_1 k_2, \qquad a\, k_1\ (a \ge 0), \qquad k_1^p, \qquad
          \frac{k_1(x, z)}{\sqrt{k_1(x, x)\, k_1(z, z)}},

[M5]. A sum puts the features of both side by side; a product has all products of a feature of one and a feature of the
other. [M5] also learns kernels from data: parameters by the likelihood of a Gaussian process, or the weights of a sum,
:math:`k = \sum_m \eta_m k_m`, together with the machine. Its warning: a matrix close to diagonal, where each sample is
similar to itself alone, is a sign of overfitting.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from mercer import (
    Gaussian,
    GaussianProcessRegressor,
    LearnedKernel,
    Linear,
    MKLClassifier,
    MKLRegressor,
    Normalized,
    On,
    Periodic,
    check_mercer,
)

BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#666666"

# %%
# Algebra
# -------
#
# Functions drawn from Gaussian processes with these kernels show what the algebra means: a sum of kernels is a sum of
# functions, a product changes one by the other.

rng = np.random.default_rng(3)
line = np.linspace(-3, 3, 240)[:, None]
periodic, smooth = Periodic(length_scale=1.0, period=1.5), Gaussian(0.4)
shown = {
    "periodic": periodic,
    "Gaussian": smooth,
    "periodic + Gaussian": periodic + smooth,
    "periodic · Gaussian": periodic * smooth,
    "linear · periodic": Linear() * periodic,
}
figure, axes = plt.subplots(1, 5, figsize=(12.0, 2.6), layout="constrained")
for ax, (name, kernel) in zip(axes, shown.items(), strict=True):
    values, vectors = np.linalg.eigh(kernel(line))
    draws = vectors @ (np.sqrt(np.maximum(values, 0))[:, None] * rng.normal(size=(240, 3)))
    for k, colour in enumerate((BLUE, ORANGE, GREEN)):
        ax.plot(line[:, 0], draws[:, k], color=colour, lw=1.3)
    ax.set(title=name, xticks=[], yticks=[])
plt.show()

# %%
# Learning
# --------
#
# Left the weights of a sum: each of three groups of ten measurements of tumours has a Gaussian kernel, and so have
# copies with shuffled rows, which tell nothing. Right a width learnt by the likelihood, from a start that is far too
# narrow.

X, y = load_breast_cancer(return_X_y=True)
X, y = X[:300], y[:300]
groups = [X[:, 10 * g : 10 * g + 10] for g in range(3)]
X = StandardScaler().fit_transform(np.hstack([*groups, *(group[rng.permutation(len(y))] for group in groups)]))
kernels = [On(slice(10 * g, 10 * g + 10), Gaussian(0.03)) for g in range(6)]
learnt = MKLClassifier(kernels, C=0.1).fit(X, y)
uniform = MKLClassifier(kernels, C=0.1, weights="uniform").fit(X, y)

x = np.sort(rng.uniform(0, 6, size=(40, 1)), axis=0)
target = np.sin(x[:, 0]) + 0.1 * rng.normal(size=40)
narrow = GaussianProcessRegressor(Gaussian(50.0), alpha=0.01, optimizer=None).fit(x, target)
wide = GaussianProcessRegressor(Gaussian(50.0), alpha=0.01).fit(x, target)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.8, 3.4), layout="constrained")
names = ["mean", "error", "worst", "mean, shuffled", "error, shuffled", "worst, shuffled"]
left.barh(names[::-1], learnt.kernel_weights_[::-1], color=[GREY] * 3 + [BLUE] * 3)
left.set(xlabel="learnt weight η", title="six kernels")
grid = np.linspace(0, 6, 400)[:, None]
right.scatter(x[:, 0], target, s=14, color=GREY, zorder=3)
right.plot(grid[:, 0], narrow.predict(grid), color=ORANGE, lw=1.2, label="γ = 50, given")
right.plot(grid[:, 0], wide.predict(grid), color=BLUE, lw=2.0, label=f"γ = {wide.kernel_.gamma:.2f}, learnt")
right.set(xlabel="x", ylabel="y")
right.legend(fontsize="small")
plt.show()

# %%
# The numbers
# -----------

a, b = np.array([[1.0, 2.0]]), np.array([[3.0, 1.0]])
k, g = Linear(), Gaussian(0.3)
one, other = k(a, b)[0, 0], g(a, b)[0, 0]
built = {k + g: one + other, k * g: one * other, 2.5 * g: 2.5 * other, k**3: one**3, Normalized(k): one / np.sqrt(50)}
for kernel, value in built.items():
    print(f"{type(kernel).__name__:11} {kernel!s:42} {kernel(a, b)[0, 0]:9.4f}")
    assert np.isclose(kernel(a, b)[0, 0], value) and check_mercer(kernel, X[:50, :2]).positive_semidefinite

print(f"weights of shuffled groups: {learnt.kernel_weights_[3:].sum():.3f} of {learnt.kernel_weights_.sum():.3f}")
assert isinstance(learnt.kernel_, LearnedKernel) and np.isclose(learnt.kernel_weights_.sum(), 1.0)
assert learnt.certificate_.primal <= uniform.certificate_.primal and learnt.certificate_.relative_gap < 2e-3
assert wide.log_marginal_likelihood_value_ > narrow.log_marginal_likelihood_value_ + 10
weights = MKLRegressor([Gaussian(50.0), Gaussian(0.3)], C=1.0).fit(x, target).kernel_weights_
assert weights[1] > weights[0]  # regression: the wide kernel wins
near, far = check_mercer(Gaussian(1e4), x), check_mercer(Gaussian(0.3), x)
ratios = near.offdiagonal_ratio, far.offdiagonal_ratio
print(f"largest similarity to another sample: {ratios[0]:.2f} for γ = 10⁴, {ratios[1]:.2f} for γ = 0.3")
assert near.near_diagonal and not far.near_diagonal

# %%
# What to notice
# --------------
#
# * The learnt weights leave out what tells nothing, and the optimum over weights and machine together is certified.
# * The narrow Gaussian passes through the samples and returns to 0 between them: its matrix is close to diagonal.
#
# Links
# -----
#
# :Names: :obj:`mercer.Sum`, :obj:`mercer.Product`, :obj:`mercer.Scaled`, :obj:`mercer.Power`,
#         :obj:`mercer.Normalized`; :obj:`mercer.GaussianProcessRegressor`, :obj:`mercer.check_mercer`,
#         :obj:`mercer.MKLClassifier`, :obj:`mercer.MKLRegressor`, :obj:`mercer.LearnedKernel`
# :Tests: ``tests/notes/test_kernels.py::test_27_kernels_from_kernels``, ``test_27_near_diagonal``,
#         ``tests/notes/test_algorithms.py::test_27_learning_a_kernel``,
#         ``tests/notes/test_selection.py::test_27_weights_of_several_kernels``
# :Studio: lesson ``mercer`` of ``mercer studio``
# :See also: :doc:`plot_14_gaussian_process`, :doc:`plot_26_mercers_condition`, :doc:`plot_32_overfitting`
