r"""
26. Mercer's condition
======================

Which functions :math:`k(x, z)` are inner products of features? Exactly those whose matrices :math:`K_{ij} = k(x_i,
x_j)` are, for all finite sets of samples, symmetric and positive semidefinite,

.. math:: K = K', \qquad v' K v = \left| \sum_i v_i\, \phi(x_i) \right|^2 \ge 0 \quad\text{for all } v,

[CS229] 5.4, [SSBD] Lemma 16.2, [M5]. One vector with :math:`z' K z < 0` proves that a function is no kernel. For
samples at hand the eigenvalues decide: the smallest must not be negative, up to rounding.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import CallableKernel, Gaussian, Polynomial, Sigmoid, check_mercer, repair_mercer

BLUE, ORANGE, PINK, GREY = "#0072b2", "#e69f00", "#cc79a7", "#666666"

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))


def distance(A, B):
    """Euclidean distances: a measure of dissimilarity, often mistaken for a kernel."""
    return np.sqrt(((A[:, None] - B) ** 2).sum(axis=2))


candidates = {
    "exp(−|x − z|²)": Gaussian(1.0),
    "(1 + ⟨x, z⟩)²": Polynomial.inhomogeneous(2),
    "tanh(⟨x, z⟩)": Sigmoid(1.0, 0.0),
    "|x − z|": CallableKernel(distance),
}

# %%
# The figure
# ----------
#
# Left the eigenvalues of four matrices, divided by the largest. Right the witness of the sigmoid: weights on the
# samples for which :math:`z' K z` is negative.

reports = {name: check_mercer(kernel(X)) for name, kernel in candidates.items()}
figure, (left, right) = plt.subplots(1, 2, figsize=(9.8, 4.0), width_ratios=[1.3, 1], layout="constrained")
for (name, kernel), colour, mark in zip(candidates.items(), (BLUE, PINK, ORANGE, GREY), "os^D", strict=True):
    mu = np.linalg.eigvalsh(kernel(X))[::-1]
    left.plot(np.arange(1, 61), mu / np.abs(mu).max(), mark, color=colour, ms=4, label=name)
left.axhline(0, color="black", lw=0.8)
left.set_yscale("symlog", linthresh=1e-4)
left.set(xlabel="number of the eigenvalue", ylabel="eigenvalue / largest")
left.legend(fontsize="small", loc="upper right")
witness = reports["tanh(⟨x, z⟩)"].witness
reach = np.abs(witness).max()
points = right.scatter(*X.T, s=20 + 300 * np.abs(witness) / reach, c=witness, cmap="PuOr", vmin=-reach, vmax=reach,
                       edgecolors=GREY, linewidths=0.6)  # fmt: skip
figure.colorbar(points, ax=right, label="z")
value = witness @ candidates["tanh(⟨x, z⟩)"](X) @ witness
right.set(title=f"the sigmoid: z'Kz = {value:.2f}", xlabel="x₁", ylabel="x₂", aspect="equal")
plt.show()

# %%
# The numbers
# -----------

print("kernel              smallest eigenvalue   a kernel here?")
for name, report in reports.items():
    print(f"{name:20} {report.smallest_eigenvalue:18.2e}   {report.positive_semidefinite}")
assert [report.positive_semidefinite for report in reports.values()] == [True, True, False, False]
for name, kernel in candidates.items():
    K, report = kernel(X), reports[name]
    v = rng.normal(size=(60, 200))
    if report.positive_semidefinite:
        assert np.all(np.einsum("ik,ij,jk->k", v, K, v) >= -report.rounding * (v**2).sum(axis=0))
    else:
        assert report.witness @ K @ report.witness < 0

repaired = repair_mercer(candidates["tanh(⟨x, z⟩)"](X), how="clip")
print(f"clipping {repaired.n_negative} eigenvalues changes the sigmoid's matrix by {repaired.relative_change:.1%}")
assert check_mercer(repaired.matrix).positive_semidefinite

# %%
# What to notice
# --------------
#
# * The polynomial of degree 2 has 6 features in two variables, so that only 6 eigenvalues are not zero.
# * If a matrix is not positive semidefinite the dual is not concave, and its value bounds nothing. mercer's certificate
#   says so instead of claiming a gap.
# * A distance turns into a kernel by :math:`e^{-\gamma d^2}` for some distances, Euclidean ones among them, but not for
#   all.
#
# Links
# -----
#
# :Names: :obj:`mercer.check_mercer`, :obj:`mercer.repair_mercer`
# :Tests: ``tests/notes/test_kernels.py::test_26_mercers_condition``
# :Studio: lesson ``mercer`` of ``mercer studio``
# :See also: :doc:`plot_20_kernels_on_vectors`, :doc:`plot_27_kernels_from_kernels`, :doc:`plot_39_rkhs`
