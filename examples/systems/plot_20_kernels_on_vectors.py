r"""
20. Kernels on vectors
======================

A kernel is an inner product of features, computed without them. Those of the notes are

.. math:: \langle x, z \rangle, \quad {\langle x, z \rangle}^k, \quad (c + \langle x, z \rangle)^k,

.. math:: 1 + t + t^2 + t^3 \ \ (t = \langle x, z \rangle), \quad e^{-\gamma {|x - z|}^2},

.. math:: \tanh(c_1 \langle x, z \rangle + c_2), \quad \sum_j \min(x_j, z_j),

[SSBD] Examples 16.1, 16.2 and Exercise 16.4, [L8] 1.3, [CS229] (5.9) and 5.4, [M5]. The sources define the
width of the Gaussian differently: :math:`\gamma` is :math:`1/(2\sigma)` in [SSBD], :math:`1/\sigma` in [L8] and
:math:`1/(2\sigma^2)` in [CS229] and [M5].
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import Gaussian, Linear, Min, Polynomial, PowerSeries, Sigmoid

RED = "#d55e00"

# %%
# The figure
# ----------
#
# Each panel is a function of the plane: the value :math:`k(x, z)` for the fixed point :math:`z` of the red cross.
# Every machine with that kernel is a sum of such functions.

z = np.array([[0.9, 0.6]])
side = np.linspace(-2, 2, 121)
plane = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
kernels = {
    "⟨x, z⟩": Linear(),
    "⟨x, z⟩²": Polynomial(2, 1.0, 0.0),
    "(1 + ⟨x, z⟩)³": Polynomial.inhomogeneous(3),
    "1 + t + t² + t³": PowerSeries((1.0, 1.0, 1.0, 1.0)),
    "exp(−|x − z|²/2)": Gaussian.from_sigma(1.0),
    "exp(−4|x − z|²)": Gaussian(4.0),
    "tanh(⟨x, z⟩ − ½)": Sigmoid(1.0, -0.5),
    "Σ min(xⱼ, zⱼ)": Min(),
}
figure, axes = plt.subplots(2, 4, figsize=(11.2, 5.6), layout="constrained", sharex=True, sharey=True)
for ax, (name, kernel) in zip(axes.flat, kernels.items(), strict=True):
    if isinstance(kernel, Min):  # for numbers that are not negative
        inside = (plane >= 0).all(axis=1)
        values = np.full(len(plane), np.nan)
        values[inside] = kernel(plane[inside], z)[:, 0]
    else:
        values = kernel(plane, z)[:, 0]
    limit = np.nanquantile(np.abs(values), 0.98)
    ax.contourf(side, side, values.reshape(121, 121), levels=np.linspace(-limit, limit, 21), cmap="PuOr", extend="both")
    ax.plot(*z[0], "+", color=RED, ms=12, mew=2)
    ax.set(title=name, aspect="equal", xticks=[-2, 0, 2], yticks=[-2, 0, 2])
plt.show()

# %%
# The numbers
# -----------
#
# At :math:`x = (1, 2)`, :math:`z = (3, 1)`: the inner product is 5, and so is the squared distance.

x, z = np.array([[1.0, 2.0]]), np.array([[3.0, 1.0]])
expected = (
    (Linear(), 5),
    (Polynomial(3, 1.0, 0.0), 5**3),
    (Polynomial.inhomogeneous(3), 6**3),
    (PowerSeries((1.0, 1.0, 1.0, 1.0)), 1 + 5 + 25 + 125),
    (Gaussian(0.3), np.exp(-1.5)),
    (Sigmoid(0.1, -0.2), np.tanh(0.3)),
    (Min(), 2),
)
for kernel, value in expected:
    print(f"{kernel!s:45} {kernel(x, z)[0, 0]:10.4f}")
    assert np.isclose(kernel(x, z)[0, 0], value)

width = 3.0
for convention, gamma in (("ssbd", 1 / (2 * width)), ("l8", 1 / width), ("m5", 1 / (2 * width**2))):
    assert np.isclose(Gaussian.from_width(width, convention).gamma, gamma)
assert Gaussian.from_sigma(width) == Gaussian.from_width(width, "cs229")

# %%
# What to notice
# --------------
#
# * The first four depend on the direction from the origin and grow without limit. The Gaussian depends on the distance
#   from :math:`z` alone and is local; its width decides how local.
# * The sigmoid is not positive semidefinite in general (row 26), though [M5] lists it.
# * ``kernel="poly"`` is scikit-learn's :math:`(\gamma \langle x, z \rangle + c)^k` with :math:`c = 0`. The notes'
#   polynomial is ``kernel="inhomogeneous"``.
#
# Links
# -----
#
# :Names: :obj:`mercer.Linear`, :obj:`mercer.Polynomial`, ``Polynomial.inhomogeneous``, :obj:`mercer.PowerSeries`,
#         :obj:`mercer.Gaussian`, ``Gaussian.from_sigma``, ``Gaussian.from_width``, :obj:`mercer.Sigmoid`,
#         :obj:`mercer.Min`
# :Tests: ``tests/notes/test_kernels.py::test_20_kernels_on_vectors``, ``test_20_widths_of_the_gaussian``,
#         ``test_20_inhomogeneous_polynomial``
# :Studio: lessons ``gaussian-width``, ``kernel-trick`` of ``mercer studio``
# :See also: :doc:`plot_21_feature_maps`, :doc:`plot_26_mercers_condition`, :doc:`plot_27_kernels_from_kernels`,
#            :doc:`plot_35_digits`
