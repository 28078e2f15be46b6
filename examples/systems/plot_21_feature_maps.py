r"""
21. Explicit feature maps
=========================

Some kernels have features that can be written down, :math:`\langle \psi(x), \psi(z) \rangle = k(x, z)`. For two
variables :math:`{\langle x, z \rangle}^2` has

.. math:: \psi(x) = (x_1^2,\ \sqrt{2}\, x_1 x_2,\ x_2^2),

and :math:`(c + \langle x, z \rangle)^k` has all :math:`\binom{d + k}{k}` monomials up to degree :math:`k`:
[SSBD] 16.1, 16.2, [CS229] 5.4. The Gaussian has infinitely many, for one variable and :math:`\gamma = \frac{1}{2}`

.. math:: \psi_m(x) = \frac{1}{\sqrt{m!}}\, e^{-x^2/2}\, x^m, \qquad m = 0, 1, 2, \ldots,

[SSBD] Example 16.2. Cut off at degree :math:`m`, they are wrong by no more than the tail of the exponential series.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, Gaussian, Min, Polynomial, PowerSeries, datasets

BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#666666"

data = datasets.make_circle(160, gap=0.15, seed=0)
X, y = data.X, data.y
kernel = Polynomial(2, 1.0, 0.0)
psi = kernel.feature_map(X)(X)

# %%
# The figure
# ----------
#
# Left the circle of [L8], which no line separates; its three features lie on a cone, and a plane separates them. Right
# the Taylor features of the Gaussian: the largest error of a kernel value, and the bound that the map states.

machine = SVC(C=np.inf, kernel="linear").fit(psi, y)
w, b = machine.coef_[0], machine.intercept_[0]

line = np.linspace(-2, 2, 41)[:, None]
K = Gaussian(0.5)(line)
degrees = np.arange(1, 26)
errors, promised = [], []
for degree in degrees:
    taylor = Gaussian(0.5).feature_map(line, degree=int(degree))
    phi = taylor(line)
    errors.append(np.abs(phi @ phi.T - K).max())
    promised.append(taylor.error)

figure = plt.figure(figsize=(12.0, 3.8), layout="constrained")
places = figure.add_gridspec(1, 3, width_ratios=[1, 1.25, 1])
flat, right = figure.add_subplot(places[0]), figure.add_subplot(places[2])
space = figure.add_subplot(places[1], projection="3d")
for sign, colour, mark in ((-1, BLUE, "o"), (1, ORANGE, "s")):
    flat.scatter(*X[y == sign].T, s=14, color=colour, marker=mark)
    space.scatter(*psi[y == sign].T, s=10, color=colour, marker=mark, depthshade=False)
flat.set(aspect="equal", xlabel="x₁", ylabel="x₂", title="two variables")
a, c = np.meshgrid(np.linspace(0, psi[:, 0].max(), 40), np.linspace(psi[:, 1].min(), psi[:, 1].max(), 40))
height = -(b + w[0] * a + w[1] * c) / w[2]
height[(height < 0) | (height > psi[:, 2].max())] = np.nan
space.plot_surface(a, c, height, color=GREY, alpha=0.4, lw=0)
space.set(xlabel="x₁²", ylabel="√2 x₁x₂", zlabel="x₂²", title="three features and a plane")
space.set_box_aspect(None, zoom=1.0)
space.view_init(elev=18, azim=-70)
right.semilogy(degrees, np.maximum(errors, 1e-17), "o", color=BLUE, ms=4, label="largest error")
right.semilogy(degrees, promised, color=RED, lw=1.4, label="bound of the map")
right.set(xlabel="degree of the Taylor features", ylabel="error of k(x, z)", title="Gaussian, |x| ≤ 2", ylim=(1e-17, 3))
right.legend(fontsize="small")
plt.show()

# %%
# The numbers
# -----------

whole = np.random.default_rng(0).integers(1, 6, size=(12, 2)).astype(float)
print("kernel                                           features   largest error")
for k in (Polynomial(2, 1.0, 0.0), Polynomial.inhomogeneous(3), PowerSeries((1.0, 1.0, 1.0, 1.0)), Min()):
    map_ = k.feature_map(whole)
    phi = map_(whole)
    phi = phi.toarray() if hasattr(phi, "toarray") else phi
    error = np.abs(phi @ phi.T / k(whole) - 1).max()
    print(f"{k!s:50} {map_.dimension:6d} {error:12.1e}")
    assert error < 1e-10
assert np.all(np.array(errors) <= np.array(promised) * (1 + 1e-9) + 1e-15)
assert machine.score(psi, y) == 1.0 and np.allclose(psi @ psi.T, kernel(X))

# %%
# What to notice
# --------------
#
# * The normal of the plane is :math:`(1, 0, 1)` up to scale: :math:`x_1^2 + x_2^2` against a threshold, the circle.
# * Computing :math:`k` costs :math:`d` multiplications, whatever the degree; :math:`\psi` costs as many as there are
#   monomials. With few variables and many samples the features are the faster way, see ``LinearSVC``.
#
# Links
# -----
#
# :Names: ``Kernel.feature_map`` of every kernel that has one
# :Tests: ``tests/notes/test_algorithms.py::test_21_feature_maps``, ``test_21_taylor_features_of_the_gaussian``
# :Studio: lessons ``disc``, ``kernel-trick`` of ``mercer studio``
# :See also: :doc:`plot_20_kernels_on_vectors`, :doc:`plot_33_dictionaries`, :doc:`plot_40_figures`
