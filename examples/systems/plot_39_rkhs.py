r"""
39. Functions of the reproducing kernel Hilbert space
=====================================================

The features of a kernel can be taken to be functions: :math:`\phi(x) = k(x, \cdot)`. Sums of these,

.. math:: f = \sum_i c_i\, k(x_i, \cdot), \qquad g = \sum_j d_j\, k(z_j, \cdot), \qquad
          \langle f, g \rangle = \sum_{i, j} c_i d_j\, k(x_i, z_j),

are the space in which a kernel machine looks for its function. The inner product with :math:`k(x, \cdot)` reproduces a
value, :math:`\langle f, k(x, \cdot) \rangle = f(x)`: [SSBD] 16.1, 16.2.2, [L8] 1.1, [M5]. So a value is never larger
than :math:`{|f(x)|} \le {|f|} \sqrt{k(x, x)}`: functions with a small norm are small and change slowly. The projection
of :math:`f` onto the bumps of some points is the function of the smallest norm with the same values there.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, Gaussian, Laplacian, RKHSFunction

BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#666666"

# %%
# The figure
# ----------
#
# Left a function as a sum of three bumps. Middle its projection onto five points: the same values there, and of all
# such functions the one with the smallest norm. Right the smallest norm depends on the space: through the same points,
# the functions of the Gaussian are smooth and those of the Laplacian have kinks.

kernel = Gaussian(1.5)
grid = np.linspace(-3, 3, 400)[:, None]
f = RKHSFunction(kernel, [[-1.5], [0.0], [1.2]], [1.0, -1.4, 1.8])
points = np.array([[-2.2], [-1.0], [0.2], [1.0], [2.4]])
p = f.project(points)

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12.2, 3.5), layout="constrained", sharey=True)
for x, c, colour in zip((-1.5, 0.0, 1.2), (1.0, -1.4, 1.8), (BLUE, ORANGE, GREEN), strict=True):
    left.fill_between(grid[:, 0], 0, c * kernel(grid, [[x]])[:, 0], color=colour, alpha=0.25, lw=0)
left.plot(grid[:, 0], f(grid), color="black", lw=2, label=f"f, |f| = {f.norm():.3f}")
left.plot(grid[:, 0], np.full(400, f.norm()), color=GREY, ls=":", lw=1.2, label="±|f|√k(x, x)")
left.plot(grid[:, 0], np.full(400, -f.norm()), color=GREY, ls=":", lw=1.2)
middle.plot(grid[:, 0], f(grid), color="black", lw=1.2, label=f"f, |f| = {f.norm():.3f}")
middle.plot(grid[:, 0], p(grid), color=BLUE, lw=2, ls="--", label=f"projection, {p.norm():.3f}")
middle.plot(points[:, 0], f(points), "o", color=RED, ms=6)
values = f(points)
for k, colour in ((kernel, BLUE), (Gaussian(8.0), GREEN), (Laplacian(1.5), ORANGE)):
    g = RKHSFunction(k, points, np.linalg.solve(k(points), values))
    right.plot(grid[:, 0], g(grid), color=colour, lw=1.8, label=f"{k}: {g.norm():.2f}")
right.plot(points[:, 0], values, "o", color=RED, ms=6)
for ax in (left, middle, right):
    ax.set(xlabel="x", ylim=(-3.4, 2.6))
    ax.legend(fontsize="small", loc="lower left")
left.set_title("a sum of bumps")
middle.set_title("the same values at five points")
right.set_title("the smallest norm in three spaces")
plt.show()

# %%
# The numbers
# -----------

at = RKHSFunction(kernel, [[0.7]], [1.0])
print(f"⟨f, k(0.7, ·)⟩ = {f.inner(at):.9f}, f(0.7) = {f([[0.7]])[0]:.9f}")
assert np.isclose(f.inner(at), f([[0.7]])[0], rtol=1e-12)
assert np.allclose(p(points), f(points), atol=1e-9)
assert np.isclose(p.norm() ** 2 + (f - p).norm() ** 2, f.norm() ** 2, rtol=1e-9)  # Pythagoras
narrow = RKHSFunction(Gaussian(8.0), points, np.linalg.solve(Gaussian(8.0)(points), values))
assert np.isclose(narrow.norm(), np.linalg.norm(values), rtol=0.02)  # the bumps hardly overlap
print(f"|p|² + |f − p|² = {p.norm() ** 2 + (f - p).norm() ** 2:.9f}, |f|² = {f.norm() ** 2:.9f}")
assert np.all(np.abs(f(grid)) <= f.norm())

# the function of a fitted machine is one of these
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
model = SVC(C=2.0, gamma=0.5).fit(X, y)
w = model.function_
assert np.isclose(w.norm(), model.rkhs_norm_[0], rtol=1e-9)
assert np.allclose(w(X) + model.intercept_, model.decision_function(X), atol=1e-10)
print(f"|w| of an SVC: {w.norm():.6f}; its margin 1/|w| = {model.margin_[0]:.6f}")
assert np.isclose(1 / w.norm(), model.margin_[0], rtol=1e-9)

# %%
# What to notice
# --------------
#
# * The norm is not the size of a function but its roughness as the kernel sees it. In the space of a narrow Gaussian
#   each value is paid for by itself. A wide one charges for a change of sign between neighbours, and shares the cost of
#   neighbours with like values.
# * The projection is the proof of the representer theorem in a picture (row 28).
#
# Links
# -----
#
# :Names: :obj:`mercer.RKHSFunction`, ``RKHSFunction.inner``, ``RKHSFunction.norm``, ``RKHSFunction.project``,
#         ``SVC.function_``
# :Tests: ``tests/notes/test_kernels.py::test_39_reproducing_property``, ``test_39_representer_by_projection``
# :See also: :doc:`plot_28_representer_theorem`, :doc:`plot_14_gaussian_process`, :doc:`plot_18_class_means`,
#            :doc:`plot_26_mercers_condition`
