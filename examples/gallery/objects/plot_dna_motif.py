"""
Where does transcription begin? Words at places in DNA
======================================================

Promoters are short stretches of DNA before a gene, with typical words at typical places: near TTGACA 35 letters before
the start, near TATAAT ten letters before it. A kernel on strings needs no table of features. Afterwards the machine can
be asked what it has found.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score

from mercer import SVC, Mismatch, Spectrum, WeightedDegree

COLOURS = {"A": "#009e73", "C": "#0072b2", "G": "#e69f00", "T": "#d55e00"}
LENGTH, FIRST = 57, -50

# %%
# Generated strings: random letters, and in half of them the two words, of which three letters in ten are replaced by
# random ones.

rng = np.random.default_rng(0)
X, y = [], np.arange(240) % 2
for label in y:
    letters = rng.choice(list("ACGT"), LENGTH)
    if label:
        for place, word in ((14, "TTGACA"), (37, "TATAAT")):
            kept = rng.random(6) < 0.7
            letters[place : place + 6] = np.where(kept, list(word), letters[place : place + 6])
    X.append("".join(letters))

# %%
# Three questions about a string: which words of three letters occur; which words of five, with one error allowed; and
# which words at which place. The last one knows what matters.

kernels = {
    "words of 3 letters": Spectrum(3, normalize=True),
    "words of 5, one error": Mismatch(5, 1, normalize=True),
    "words at places": WeightedDegree(3, normalize=True),
}
folds = StratifiedKFold(5, shuffle=True, random_state=0)
accuracy = {name: cross_val_score(SVC(kernel=kernel), X, y, cv=folds).mean() for name, kernel in kernels.items()}
print({name: f"{value:.1%}" for name, value in accuracy.items()})
assert accuracy["words at places"] > max(accuracy["words of 3 letters"], accuracy["words of 5, one error"]) + 0.05

# %%
# The machine is linear in its features. ``feature_map`` names them, and w = Σ β ψ(x) weighs them. The weight of a
# letter at a place is that of all words which cover it.

machine = SVC(kernel=WeightedDegree(3, normalize=True)).fit(X, y)
psi = machine.kernel.feature_map(machine.support_vectors_)
w = (machine.dual_coef_ @ psi(machine.support_vectors_)).ravel()
weight = np.zeros((4, LENGTH))
for (place, word), value in zip(psi.names, w, strict=True):
    for offset, letter in enumerate(word):
        weight["ACGT".index(letter), place + offset] += value / len(word)
weight -= weight.mean(axis=0)

figure, (logo, bars) = plt.subplots(1, 2, figsize=(13, 4), layout="constrained", width_ratios=(3.2, 1))
places = np.arange(FIRST, FIRST + LENGTH)
for k in range(LENGTH):
    order = np.argsort(weight[:, k])
    height = 0.0
    for row in order[::-1]:
        value = max(weight[row, k], 0.0)
        logo.bar(places[k], value, bottom=height, width=0.9, color=COLOURS["ACGT"[row]])
        if value > 0.6:
            logo.text(
                places[k], height + value / 2, "ACGT"[row], ha="center", va="center", color="white", weight="bold"
            )
        height += value
for name, colour in COLOURS.items():
    logo.bar(0, 0, color=colour, label=name)
logo.set(xlabel="place, counted from the start of transcription", ylabel="weight for a promoter", xlim=(-51, 7))
logo.set_title("what the machine has found: TTGACA around −36, TATAAT around −13")
logo.legend(frameon=False, ncols=4, loc="upper left")
bars.barh(list(accuracy), list(accuracy.values()), color=["0.6", "0.6", "#0072b2"])
bars.bar_label(
    bars.containers[0], [f"{value:.0%}" for value in accuracy.values()], label_type="edge", padding=-32, color="white"
)
bars.set(xlabel="cross-validated accuracy", xlim=(0.5, 1))
bars.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
for ax in (logo, bars):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The heaviest letters stand where the words were put.

best = "".join("ACGT"[row] for row in weight.argmax(axis=0))
print(best[14:20], best[37:43])
expected = dict(enumerate("TTGACA", 14)) | dict(enumerate("TATAAT", 37))
assert sum(best[k] == letter for k, letter in expected.items()) >= 11
assert set(np.argsort(-weight.max(axis=0))[:6]) <= set(range(13, 21)) | set(range(35, 45))
