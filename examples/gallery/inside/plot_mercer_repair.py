"""
When a similarity is not a kernel
=================================

People and alignment programs give similarities that no scalar product has: their matrix has negative eigenvalues.
``check_mercer`` proves it with a vector z for which z'Kz < 0, and ``repair_mercer`` makes the matrix a kernel in one of
three ways.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, check_mercer, repair_mercer

BLUE, ORANGE, GREEN, RED = "#0072b2", "#e69f00", "#009e73", "#d55e00"

# %%
# Words of two made-up languages, and a similarity that seems natural: one minus the edit distance over the length of
# the longer word. Nothing makes it a scalar product.


def edits(a, b):
    """Return the smallest number of insertions, deletions and replacements that turn a into b."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, z in enumerate(b, 1):
            before, row[j] = row[j], min(before + (x != z), row[j] + 1, row[j - 1] + 1)
    return row[-1]


rng = np.random.default_rng(0)
syllables = {0: ("ka", "to", "mi", "ru"), 1: ("bel", "tor", "mig", "run")}
y = np.arange(120) % 2
words = ["".join(rng.choice(syllables[label], int(rng.integers(1, 5)))) for label in y]
words = ["".join(rng.choice(list("abegiklmnortu")) if rng.random() < 0.25 else c for c in word) for word in words]
S = np.array([[1 - edits(a, b) / max(len(a), len(b)) for b in words] for a in words])
report = check_mercer(S)
print(report)
z = report.witness
print(f"a proof: z'Sz = {z @ S @ z:.2f} for a vector z of length 1")
assert not report.positive_semidefinite and z @ S @ z < 0

# %%
# Clip sets negative eigenvalues to 0, which gives the nearest kernel matrix. Flip makes them positive. Shift raises all
# of them, and so changes the diagonal only.

repairs = {how: repair_mercer(S, how=how) for how in ("clip", "flip", "shift")}
given = np.linalg.eigvalsh(S)
figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.4), layout="constrained", width_ratios=(1.6, 1))
number = np.arange(1, len(S) + 1)
left.fill_between(number, given, 0, where=given < 0, color=RED, alpha=0.25, lw=0, step="mid")
left.step(number, given, color=RED, lw=2, where="mid", label="as given")
for (how, repair), colour, style in zip(repairs.items(), (BLUE, GREEN, ORANGE), ("-", "-.", "--"), strict=True):
    values = np.linalg.eigvalsh(repair.matrix)
    assert values[0] > -1e-8 and check_mercer(repair.matrix).positive_semidefinite
    # in the order of the given eigenvalues
    shown = {"clip": np.maximum(given, 0), "flip": np.abs(given), "shift": given - given[0]}[how]
    assert np.allclose(np.sort(shown), values, atol=1e-8)
    left.step(number, shown, style, color=colour, lw=1.5, where="mid", label=how)
    print(repair)
left.axhline(0, color="black", lw=0.8)
left.set(xlabel="number of the eigenvalue", ylabel="eigenvalue", ylim=(given[0] * 1.4, -5 * given[0]), xlim=(1, len(S)))
left.legend(frameon=False, loc="upper left")

# %%
# With a kernel matrix the problem is convex, and the model can be certified. Half of the words teach, half test; new
# words get the same change by ``rows``.

train, test = np.arange(0, 60), np.arange(60, 120)
accuracy = {}
for how in ("clip", "flip", "shift"):
    repair = repair_mercer(S[np.ix_(train, train)], how=how)
    machine = SVC(kernel="precomputed", C=1.0).fit(repair.matrix, y[train])
    accuracy[how] = machine.score(repair.rows(S[np.ix_(test, train)]), y[test])
    assert machine.certificate_.valid and machine.certificate_.relative_gap < 0.01
right.bar(list(accuracy), list(accuracy.values()), color=[BLUE, GREEN, ORANGE])
right.bar_label(right.containers[0], [f"{value:.0%}" for value in accuracy.values()], padding=2)
right.axhline(0.5, color="black", lw=1, ls="--")
right.set(ylabel="right on new words", ylim=(0, 1.05))
right.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
assert min(accuracy.values()) > 0.7
