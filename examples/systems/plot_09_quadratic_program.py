r"""
9. The dual as a quadratic program
==================================

The dual of the machine with a kernel is

.. math:: \max_\alpha\ \sum_i \alpha_i - \tfrac{1}{2} \alpha' Q \alpha, \qquad Q_{ij} = y_i y_j k(x_i, x_j),

.. math:: 0 \le \alpha_i \le C,\ \sum_i \alpha_i y_i = 0,

[M5]; [SSBD] (16.4) is the corresponding primal over coefficients. A package for quadratic programs solves it as it
stands. mercer's ``solver="qp"`` is such a method: it walks through the interior of the box, and each of its few steps
solves a linear system with :math:`n` unknowns. The exact solver for everyday use, ``solver="auto"``, works on a few
variables at a time. Both must end at the same value.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC

BLUE, ORANGE, RED, GREY = "#0072b2", "#e69f00", "#d55e00", "#666666"

rng = np.random.default_rng(0)
n, C, gamma = 60, 2.0, 0.5
y = np.repeat([1, -1], n // 2)
X = rng.normal(size=(n, 2)) + 0.8 * y[:, None]
K = np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))
Q = np.outer(y, y) * K


def multipliers(model):
    """All α, zeros included."""
    alpha = np.zeros(n)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    return alpha


interior = SVC(C=C, gamma=gamma, solver="qp", tol=1e-9).fit(X, y)
everyday = SVC(C=C, gamma=gamma, tol=1e-9).fit(X, y)

# %%
# The figure
# ----------
#
# Left the matrix of the program, with the positive class first: pairs of one class are positive, others negative.
# Right its solution by both methods, sorted.

order = np.argsort(multipliers(interior), kind="stable")
figure, (left, right) = plt.subplots(1, 2, figsize=(9.8, 3.9), width_ratios=[1, 1.5], layout="constrained")
image = left.imshow(Q, cmap="PuOr", vmin=-1, vmax=1)
left.axhline(n / 2 - 0.5, color="black", lw=0.8)
left.axvline(n / 2 - 0.5, color="black", lw=0.8)
left.set(title="Q", xticks=[n / 4, 3 * n / 4], xticklabels=["y = 1", "y = −1"], yticks=[n / 4, 3 * n / 4],
         yticklabels=["y = 1", "y = −1"])  # fmt: skip
figure.colorbar(image, ax=left, shrink=0.85)
right.bar(np.arange(n), multipliers(interior)[order], color=BLUE, alpha=0.45, width=0.9, label='solver="qp"')
right.plot(np.arange(n), multipliers(everyday)[order], ".", color=RED, ms=6, label='solver="auto"')
right.axhline(C, color=GREY, lw=1, ls="--")
right.set(xlabel="samples, sorted by α", ylabel="α", yticks=[0, C], yticklabels=["0", "C"])
right.legend(fontsize="small", loc="upper left")
plt.show()

# %%
# The numbers
# -----------

alpha = multipliers(interior)
value = alpha.sum() - 0.5 * alpha @ Q @ alpha
print(f"dual value by hand     {value:.9f}")
print(f'solver="qp"            {interior.certificate_.dual:.9f}   {interior.n_iter_[0]} steps')
print(f'solver="auto"          {everyday.certificate_.dual:.9f}   {everyday.n_iter_[0]} steps')
assert np.isclose(value, interior.certificate_.dual, rtol=1e-9)
assert np.isclose(everyday.certificate_.dual, interior.certificate_.dual, rtol=1e-8)
assert np.allclose(multipliers(everyday), alpha, atol=1e-5)  # Q is positive definite: one solution
assert abs(alpha @ y) < 1e-9 and alpha.min() >= 0 and alpha.max() <= C

# %%
# What to notice
# --------------
#
# * Most multipliers are at one of the two bounds. A solver that guesses which ones are free has almost solved the
#   problem: what is left is a small linear system.
# * An interior-point method needs the whole matrix, :math:`n^2` numbers, and about :math:`n^3` operations a step. It is
#   a good reference for small problems, and the tests use it as one.
#
# Links
# -----
#
# :Names: :obj:`mercer.SVC` with ``solver="qp"``
# :Tests: ``tests/notes/test_machines.py::test_09_quadratic_program``
# :Studio: lesson ``duality`` of ``mercer studio``
# :See also: :doc:`plot_05_optimality`, :doc:`plot_10_coordinate_ascent`, :doc:`plot_11_smo`
