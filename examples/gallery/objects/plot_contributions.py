"""
Which letters of the DNA made the decision?
===========================================

A kernel that counts substrings makes the decision a sum over substrings: the effect of each one is known exactly,
without sampling or approximation. ``contributions`` gives the share of each substring, and of each letter.

The strings below look like bacterial promoters: most positives have a box like TTGACA near position 15 and one like
TATAAT near position 38, each with a few wrong letters. The machine is not told.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, Spectrum, WeightedDegree, contributions

rng = np.random.default_rng(3)
LENGTH, BOXES = 57, {15: "TTGACA", 38: "TATAAT"}


def dna(is_promoter):
    """A random string; a promoter has both boxes, each letter of which is right with probability 0.8."""
    letters = rng.choice(list("ACGT"), size=LENGTH)
    if is_promoter:
        for start, box in BOXES.items():
            for place, letter in enumerate(box, start):
                if rng.random() < 0.8:
                    letters[place] = letter
    return "".join(letters)


y = rng.integers(0, 2, size=300)
strings = [dna(label) for label in y]
train, new = slice(0, 200), slice(200, None)

# %%
# The kernel ``WeightedDegree`` compares substrings at the same position. The contributions of all substrings and their
# positions sum to f − b.

machine = SVC(kernel=WeightedDegree(4), C=10).fit(strings[train], y[train])
found = contributions(machine, strings[new])
print(f"{machine.score(strings[new], y[new]):.0%} of the new strings are right")
print(found)
f = machine.decision_function(strings[new])
assert np.allclose(found.values.sum(axis=1) + machine.intercept_, f)
found.plot(int(np.argmax(f)))
plt.show()

# %%
# The letters of a substring share its contribution. On average over the promoters the two boxes stand out, at the right
# places.

letters = np.array([found.by_place(row) for row in np.flatnonzero(y[new] == 1)])
profile = letters.mean(axis=0)
figure, ax = plt.subplots(figsize=(9.0, 3.4), layout="constrained")
ax.bar(np.arange(LENGTH), profile, color="#0072b2")
for start, box in BOXES.items():
    ax.axvspan(start - 0.5, start + len(box) - 0.5, color="#e69f00", alpha=0.25, lw=0)
    ax.text(start + len(box) / 2 - 0.5, profile.max() * 1.06, box, ha="center", family="monospace")
ax.set(xlabel="position", ylabel="mean contribution of the letter", ylim=(None, profile.max() * 1.2))
ax.spines[["top", "right"]].set_visible(False)
plt.show()
inside = np.concatenate([np.arange(start, start + len(box)) for start, box in BOXES.items()])
assert set(np.argsort(-profile)[:8]) <= set(inside)

# %%
# A kernel that ignores the position, such as ``Spectrum``, finds pieces of the boxes anywhere.

machine = SVC(kernel=Spectrum(4, normalize=True), C=10).fit(strings[train], y[train])
total = np.asarray(contributions(machine, strings[new]).values.sum(axis=0)).ravel()
parts = contributions(machine, strings[new]).parts
best = [parts[i] for i in np.argsort(-total)[:8]]
print("substrings that speak for a promoter:", ", ".join(best))
assert any(part in box for part in best for box in BOXES.values())
