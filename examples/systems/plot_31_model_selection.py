r"""
31. Model selection
===================

:math:`C`, the kernel and its parameters interact, and [M5] says: always search for them, with samples that the machine
has not seen. Three ways are exact and cheap:

* **Cross-validation on a grid.** The folds and the candidates share kernel matrices and solutions.
* **Leave-one-out.** For ridge regression it is a formula: with :math:`H = (K + \lambda I)^{-1}` and :math:`\beta = Hy`,
  the error of sample :math:`i` by the machine without it is :math:`\beta_i / H_{ii}`. For an SVM only support vectors
  can change anything when left out.
* **The path.** Between finitely many breaks every multiplier is a linear function of :math:`C`, so that all
  solutions can be computed, not a grid of them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import SVC, SVCCV, Gaussian, KernelRidgeCV, SearchMapDisplay, evaluate, leave_one_out, solution_path

BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#666666"

X, y = make_moons(100, noise=0.25, random_state=0)

# %%
# The figure
# ----------

search = SVCCV(Cs=np.geomspace(0.01, 1000, 6), gammas=np.geomspace(0.01, 100, 7), cv=5).fit(X, y)
path = solution_path(SVC(gamma=2.0), X, y, C_min=0.05, C_max=100.0)
grid = np.geomspace(0.05, 100.0, 37)
left_out = [leave_one_out(SVC(C=C, gamma=2.0, tol=1e-4).fit(X, y), X, y).error for C in grid[::4]]

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13.2, 3.9), layout="constrained")
SearchMapDisplay.from_estimator(search, "gamma", "C", ax=left).colorbar_.set_label("")
left.tick_params(axis="x", rotation=60)
left.set_title("cross-validated accuracy")
shown = np.argsort(-np.abs(path.dual_coef).max(axis=0))[:: len(y) // 30]
for i in shown:
    middle.plot(path.C, path.dual_coef[:, i], lw=0.9, color=ORANGE if y[i] == 1 else BLUE)
middle.set(xscale="log", yscale="symlog", xlabel="C", ylabel="coefficient yα", title=f"the path: {len(path):,} breaks")
right.semilogx(grid[::4], left_out, "o-", color=RED, label="leave-one-out")
right.semilogx(grid, [1 - SVC(C=C, gamma=2.0).fit(X, y).score(X, y) for C in grid], color=GREY, label="training")
right.set(xlabel="C", ylabel="share of errors", title="γ = 2", ylim=(0, None))
right.legend(fontsize="small")
plt.show()

# %%
# The numbers
# -----------
#
# The formula for ridge regression, and the leave-one-out error of an SVM, against a fit for each sample.

rng = np.random.default_rng(0)
x = rng.uniform(0, 6, size=(30, 1))
target = np.sin(x[:, 0]) + 0.1 * rng.normal(size=30)
lam, kernel = 0.1, Gaussian(1.0)
ridge = KernelRidgeCV([lam], kernel=kernel, fit_intercept=False).fit(x, target)
H = np.linalg.inv(kernel(x) + lam * np.eye(30))
closed = (H @ target) / np.diag(H)
by_hand = []
for i in range(30):
    keep = np.arange(30) != i
    beta = np.linalg.solve(kernel(x[keep]) + lam * np.eye(29), target[keep])
    by_hand.append(target[i] - (kernel(x[[i]], x[keep]) @ beta)[0])
print(f"ridge: mean squared leave-one-out error {np.mean(closed**2):.6f}, by 30 fits {np.mean(np.square(by_hand)):.6f}")
assert np.allclose(closed, by_hand, rtol=1e-6) and np.isclose(
    -np.ravel(ridge.scores_)[0], np.mean(closed**2), rtol=1e-6
)

model = SVC(C=1.0, gamma=2.0, tol=1e-6).fit(X, y)
found = leave_one_out(model, X, y)
refits = [
    SVC(C=1.0, gamma=2.0, tol=1e-6).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[[i]])[0] for i in range(100)
]
print(f"SVC: {found}")
assert found.error == np.mean(np.array(refits) != y) and found.n_solved <= found.n_support

C = 3.0
exact = np.zeros(len(y))
refit = SVC(C=C, gamma=2.0, tol=1e-8).fit(X, y)
exact[refit.support_] = refit.dual_coef_[0]
assert np.allclose(path.coefficients(C), exact, atol=1e-4)  # any C of the path, without a fit

nested = evaluate(SVCCV(Cs=[0.1, 1.0, 10.0], gammas=[0.5, 2.0], cv=3), X, y, cv=3)
chosen = search.best_params_
print(f"best on the grid: {search.best_score_:.3f} with C = {chosen['C']:g}, γ = {chosen['gamma']:g}")
print(f"nested search: {nested.score:.3f} on held-out samples")
assert search.best_score_ == np.max(search.cv_results_["mean_test_score"])

# %%
# What to notice
# --------------
#
# * The map has a ridge: a wide kernel with a large :math:`C` does about as well as a narrow one with a small
#   :math:`C`. One parameter alone cannot be chosen well.
# * The best score of a search is too good, since it was chosen. ``evaluate`` searches again inside of each fold and
#   scores on samples that no search has seen.
#
# Links
# -----
#
# :Names: :obj:`mercer.KernelRidgeCV`, :obj:`mercer.SVCCV`, :obj:`mercer.NuSVCCV`, :obj:`mercer.SVRCV`,
#         :obj:`mercer.LinearSVCCV`, :obj:`mercer.LinearSVRCV`, :obj:`mercer.leave_one_out`,
#         :obj:`mercer.solution_path`, :obj:`mercer.evaluate`
# :Tests: ``tests/notes/test_algorithms.py::test_31_model_selection``,
#         ``tests/notes/test_selection.py::test_31_parameters_of_a_machine``, ``test_31_leave_one_out``
# :Studio: lessons ``search-map``, ``leave-one-out`` of ``mercer studio``
# :See also: :doc:`plot_03_soft_svm`, :doc:`plot_32_overfitting`, :doc:`plot_13_kernel_ridge`
