"""
Words with errors: a motif in proteins
======================================

A motif is a word that a family of proteins shares, but evolution has replaced some of its letters. Counting exact words
finds it only while enough of it is intact. A kernel that forgives an error in each word finds it longer.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, Mismatch, Spectrum, datasets

PALETTE = ("#7f7f7f", "#e69f00", "#0072b2")

# %%
# Strings of 20 to 40 amino acids. Half of them contain CPWKHGEY with 0 to 4 of its eight letters replaced.

example = datasets.make_motifs(6, mutations=2)
for text, place in zip(example.X, example.places, strict=True):
    print(text if place < 0 else f"{text[:place]}[{text[place : place + 8]}]{text[place + 8 :]}")

kernels = {
    "exact words of 3": Spectrum(3, normalize=True),
    "exact words of 4": Spectrum(4, normalize=True),
    "words of 4, one error": Mismatch(4, 1, normalize=True),
}
mutations = range(5)
right = {name: [] for name in kernels}
for changed in mutations:
    data = datasets.make_motifs(350, mutations=changed, seed=changed)
    for name, kernel in kernels.items():
        machine = SVC(kernel=kernel, C=10).fit(data.X[:150], data.y[:150])
        right[name].append(machine.score(data.X[150:], data.y[150:]))

# %%
# Left: accuracy on new strings. Right: how much a string and its mutant still have in common, on average, for each
# kernel. This is all that a machine can learn from.

rng = np.random.default_rng(0)
letters = list("ACDEFGHIKLMNPQRSTVWY")
common = {name: [] for name in kernels}
for changed in mutations:
    mutants = []
    for _ in range(60):
        word = list("CPWKHGEY")
        for k in rng.choice(8, changed, replace=False):
            word[k] = rng.choice([c for c in letters if c != word[k]])
        mutants.append("".join(word))
    for name, kernel in kernels.items():
        common[name].append(kernel(["CPWKHGEY"], mutants).mean())

figure, (left, other) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", sharex=True)
for (name, values), colour, marker in zip(right.items(), PALETTE, "so^", strict=True):
    left.plot(mutations, values, marker=marker, color=colour, lw=2, label=name)
    other.plot(mutations, common[name], marker=marker, color=colour, lw=2, label=name)
left.axhline(0.5, color="black", lw=1, ls="--")
left.set(xlabel="replaced letters of eight", ylabel="right on new strings", ylim=(0.45, 1.02), xticks=mutations)
left.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
left.legend(frameon=False)
other.set(
    xlabel="replaced letters of eight", ylabel="normalised kernel value", title="similarity of the motif and its mutant"
)
left.set_title("finding the motif")
for ax in (left, other):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

print({name: [f"{value:.0%}" for value in values] for name, values in right.items()})
assert min(values[0] for values in right.values()) > 0.95
assert right["words of 4, one error"][3] > right["exact words of 3"][3] + 0.05
