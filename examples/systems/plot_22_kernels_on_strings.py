r"""
22. Kernels on strings
======================

Strings have no coordinates, but they have substrings. Let :math:`\psi_u(x)` count how often :math:`u` occurs in
:math:`x`. Then

.. math:: k(x, z) = \sum_u \psi_u(x)\, \psi_u(z)

over all :math:`u` of length :math:`k` is the **spectrum** kernel of [CS229] 5.4, with :math:`26^k` features for
English. Over all substrings, each counted once, it is the kernel of [SSBD] 16.2.1 (**common substrings**). [M5] adds
substrings with gaps (**subsequences**, Lodhi 2002), with **mismatches** (Leslie 2002), and a sliding **window** that
weighs mismatches by how bad they are and counts markers such as AGT. **Weighted degree** compares the same places.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, CommonSubstrings, Mismatch, Spectrum, Subsequence, WeightedDegree, Window, datasets

# %%
# The figure
# ----------
#
# Sixty proteins, half of which contain a motif of eight letters with two random mutations. Each panel is the matrix of
# one kernel, normalised, so that the diagonal is 1; the proteins with the motif come last. Each panel has a scale of
# its own, since the kernels differ in how similar they find two random proteins.

data = datasets.make_motifs(160, mutations=2, seed=0)
X, y = list(data.X), np.asarray(data.y)
amino = "ACDEFGHIKLMNPQRSTVWY"
kernels = {
    "Spectrum(3)": Spectrum(3, normalize=True),
    "Mismatch(4, 1)": Mismatch(4, 1, alphabet=amino, normalize=True),
    "Subsequence(3)": Subsequence(3, decay=0.5, normalize=True),
    "CommonSubstrings()": CommonSubstrings(normalize=True),
    "Window(6, mismatch=0.1)": Window(6, mismatch=0.1, normalize=True),
    "WeightedDegree(4)": WeightedDegree(4, normalize=True),
}
part = np.r_[np.flatnonzero(y == y.min())[:30], np.flatnonzero(y == y.max())[:30]]
shown = [X[i] for i in part]
accuracy = {}
figure, axes = plt.subplots(2, 3, figsize=(10.4, 7.2), layout="constrained")
for ax, (name, kernel) in zip(axes.flat, kernels.items(), strict=True):
    train, test = X[:100], X[100:]
    accuracy[name] = SVC(C=10.0, kernel=kernel).fit(train, y[:100]).score(test, y[100:])
    K = kernel(shown)
    off = K[~np.eye(60, dtype=bool)]
    ax.imshow(K, cmap="viridis", vmin=np.quantile(off, 0.02), vmax=np.quantile(off, 0.99))
    ax.axhline(29.5, color="white", lw=0.8)
    ax.axvline(29.5, color="white", lw=0.8)
    ax.set(
        title=f"{name}: {accuracy[name]:.0%} correct", xticks=[], yticks=[14.5, 44.5], yticklabels=["no motif", "motif"]
    )
plt.show()

# %%
# The numbers
# -----------
#
# The definitions on strings small enough to count on paper.

three = Spectrum(2)(["abcab", "bca"])
print(f"Spectrum(2) of abcab and bca: {three[0, 1]:g} common pairs of letters (bc once, ca once)")
assert three[0, 1] == 2 and three[0, 0] == 2 * 2 + 1 + 1  # ab twice, bc and ca once
decay = 0.7
gaps = Subsequence(k=2, decay=decay)(["cat", "car"])
print(f"Subsequence(2) of cat and car: {gaps[0, 1]:.4f} = 0.7⁴")
assert np.isclose(gaps[0, 1], decay**4) and np.isclose(gaps[0, 0], 2 * decay**4 + decay**6)
counts = Mismatch(k=3, m=1, alphabet="ACGT")(["AAA", "AAC", "ACC", "CCC"])[0]
print(f"Mismatch(3, 1) of AAA with AAA, AAC, ACC, CCC: {counts.astype(int).tolist()}")
assert np.array_equal(counts, [10, 4, 2, 0])
assert CommonSubstrings()(["aba", "ab"])[0, 1] == 3  # a, b, ab
assert Window(3)(["AAGTC"], ["GAGTT"])[0, 0] == 1
assert Window(3, markers=("AGT",))(["AAGTC"], ["GAGTT"])[0, 0] == 2  # the marker counts once more
assert accuracy["Mismatch(4, 1)"] > 0.9 > 0.75 > accuracy["WeightedDegree(4)"]

# %%
# What to notice
# --------------
#
# * The motif is mutated, so that exact substrings of it are short: kernels that forgive mismatches or gaps see the
#   block of related proteins (lower right) best.
# * The motif may begin anywhere. A kernel that compares the same places, weighted degree, is blind to it; it is meant
#   for aligned sequences.
# * [SSBD] 16.2.1 promises a margin of 1 with :math:`{|w|} = 1` for "contains :math:`v`"; it is ½, as "a" and the empty
#   string are at the distance 1.
#
# Links
# -----
#
# :Names: :obj:`mercer.Spectrum`, :obj:`mercer.CommonSubstrings`, :obj:`mercer.Subsequence`, :obj:`mercer.Mismatch`,
#         :obj:`mercer.Window`, :obj:`mercer.WeightedDegree`
# :Tests: ``tests/notes/test_strings.py::test_22_length_k_substrings``, ``test_22_common_substrings``,
#         ``test_22_gaps``, ``test_22_mismatches``, ``test_22_sliding_window``
# :See also: :doc:`plot_23_kernels_on_sets`, :doc:`plot_24_diffusion_kernels`, :doc:`plot_26_mercers_condition`
