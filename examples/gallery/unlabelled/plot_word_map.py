"""
A map of words and a map of molecules
=====================================

Kernel PCA needs only kernel values, so it maps strings and graphs as well as vectors. Words are compared by the letters
that they share in a row, molecules by the neighbourhoods of their atoms. Kernel k-means names groups of both, and
says how far its partition can be from the best one.
"""

import matplotlib.pyplot as plt

from mercer import Graph, KernelKMeans, KernelPCA
from mercer.kernels import Normalized, Spectrum, WeisfeilerLehman

words = ["kernel", "kernels", "kernelled", "margin", "margins", "marginal", "vector", "vectors", "vectorial"]
words += ["regression", "regressions", "regressor", "classify", "classifier", "classifiers", "gradient", "gradients"]
letters = Normalized(Spectrum(1) + Spectrum(2) + Spectrum(3))
word_map = KernelPCA(n_components=2, kernel=letters).fit_transform(words)
word_groups = KernelKMeans(n_clusters=6, kernel=letters, random_state=0).fit(words)
for group in range(6):
    print(", ".join(word for word, label in zip(words, word_groups.labels_, strict=True) if label == group))
print(f"no partition has less than {1 - word_groups.relative_gap_:.0%} of this inertia")
assert len({word_groups.labels_[i] for i in range(3)}) == 1

# %%
# Molecules without hydrogen: chains of carbon, the same with an OH group, and rings of six.


def chain(n, ending=None):
    """A chain of n carbon atoms, with another atom at its end if one is given."""
    labels = {k: "C" for k in range(n)} | ({n: ending} if ending else {})
    return Graph([(k, k + 1) for k in range(len(labels) - 1)], node_labels=labels)


def ring(n_tail):
    """A ring of six carbon atoms with a tail."""
    labels = {k: "C" for k in range(6 + n_tail)}
    return Graph([(k, (k + 1) % 6) for k in range(6)] + [(0 if k == 6 else k - 1, k) for k in range(6, 6 + n_tail)],
                 node_labels=labels)  # fmt: skip


molecules = {f"C{n}": chain(n) for n in range(3, 8)}
molecules |= {f"C{n}OH": chain(n, "O") for n in range(3, 8)}
molecules |= {f"ring+{n}": ring(n) for n in range(5)}
atoms = Normalized(WeisfeilerLehman(3))
molecule_map = KernelPCA(n_components=2, kernel=atoms).fit_transform(list(molecules.values()))
molecule_groups = KernelKMeans(n_clusters=3, kernel=atoms, random_state=0).fit_predict(list(molecules.values()))

# %%
# The first two coordinates of both. Colours are the clusters.

figure, axes = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
colours = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9"]
for ax, points, names, groups, title in (
    (axes[0], word_map, words, word_groups.labels_, "words by letters in a row"),
    (axes[1], molecule_map, list(molecules), molecule_groups, "molecules by neighbourhoods of atoms"),
):
    for point, name, group in zip(points, names, groups, strict=True):
        ax.plot(*point, "o", color=colours[group], ms=6)
        ax.annotate(name, point, xytext=(4, 3), textcoords="offset points", fontsize=8)
    ax.set_title(title)
    ax.margins(0.12)
    ax.set_xticks([])
    ax.set_yticks([])
plt.show()
