"""
Molecules as graphs
===================

An alcohol and an ether can have the same formula: C₅H₁₂O is pentanol or a methyl butyl ether. Counting atoms cannot
tell them apart; what matters is where the oxygen sits. A graph kernel compares the neighbourhoods of atoms, and sees
it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score

from mercer import SVC, Graph, WeisfeilerLehman

BLUE, ORANGE, RED = "#0072b2", "#e69f00", "#d55e00"

# %%
# Molecules grow atom by atom on a honeycomb, which gives their bonds the right angles. Then one carbon becomes an
# oxygen: one with a single bond gives an alcohol (–OH; hydrogens are not drawn), one with two bonds an ether (–O–).


def neighbours(atom):
    """Return the three neighbours of a place of the honeycomb."""
    i, j, upper = atom
    side = -1 if upper else 1
    return [(i, j, not upper), (i, j + side, not upper), (i - side, j + side, not upper)]


def grow(n, rng):
    """Return n places of the honeycomb, each beside an earlier one, and the bonds between them: a tree."""
    places, bonds = [(0, 0, True)], []
    while len(places) < n:
        k = int(rng.integers(len(places)))
        free = [p for p in neighbours(places[k]) if p not in places]
        # an atom that would touch two others would close a ring
        free = [p for p in free if sum(q in places for q in neighbours(p)) == 1]
        if free:
            bonds.append((k, len(places)))
            places.append(free[int(rng.integers(len(free)))])
    return places, bonds


def molecule(alcohol, rng):
    """Return a molecule with one oxygen as a graph, and the places of its atoms."""
    while True:
        places, bonds = grow(int(rng.integers(5, 10)), rng)
        degree = np.bincount(np.ravel(bonds), minlength=len(places))
        candidates = np.flatnonzero(degree == (1 if alcohol else 2))
        if len(candidates):
            oxygen = rng.choice(candidates)
            labels = ["O" if k == oxygen else "C" for k in range(len(places))]
            return Graph(bonds, node_labels=labels), places


rng = np.random.default_rng(3)
y = np.arange(200) % 2
built = [molecule(bool(label), rng) for label in y]
X = [graph for graph, _ in built]

# %%
# ``WeisfeilerLehman(h)`` counts common neighbourhoods up to h bonds wide. Height 0 counts atoms only.

folds = StratifiedKFold(5, shuffle=True, random_state=0)
accuracy = [cross_val_score(SVC(kernel=WeisfeilerLehman(h), C=10), X, y, cv=folds).mean() for h in range(4)]
print([f"{value:.0%}" for value in accuracy])
assert accuracy[0] < 0.62 and min(accuracy[1:]) > 0.97

figure = plt.figure(figsize=(12, 4.2), layout="constrained")
grid = figure.add_gridspec(2, 6, width_ratios=(1, 1, 1, 1, 0.15, 2.2))
shift = np.array([[np.sqrt(3), 0.0], [np.sqrt(3) / 2, 1.5]])
for row, (label, name, colour) in enumerate(((1, "alcohols", BLUE), (0, "ethers", ORANGE))):
    for column, i in enumerate(np.flatnonzero(y == label)[:4]):
        graph, places = built[i]
        xy = np.array([np.array([p, q]) @ shift + (0.0, 0.0 if upper else 1.0) for p, q, upper in places])
        xy -= (xy.max(axis=0) + xy.min(axis=0)) / 2
        ax = figure.add_subplot(grid[row, column])
        for u, v in graph.edges:
            ax.plot(*xy[[u, v]].T, color="0.4", lw=2, zorder=1)
        oxygen = np.array(graph.node_labels) == "O"
        ax.scatter(*xy[~oxygen].T, s=70, color="0.3", zorder=2)
        ax.scatter(*xy[oxygen].T, s=170, color=RED, zorder=3)
        ax.text(*xy[oxygen][0], "O", color="white", ha="center", va="center", fontsize="small", weight="bold", zorder=4)
        ax.set(xlim=(-3.6, 3.6), ylim=(-3.6, 3.6), aspect="equal", xticks=[], yticks=[])
        ax.spines[:].set_color(colour)
        if column == 0:
            ax.set_ylabel(name, color=colour, fontsize="large")
bars = figure.add_subplot(grid[:, 5])
bars.bar(range(4), accuracy, color=["0.6", BLUE, BLUE, BLUE])
bars.bar_label(
    bars.containers[0], [f"{value:.0%}" for value in accuracy], label_type="center", color="white", fontsize="large"
)
bars.axhline(0.5, color="black", lw=1, ls="--")
bars.set(xticks=range(4), xlabel="height h of the neighbourhoods", ylabel="cross-validated accuracy", ylim=(0, 1))
bars.set_xticks(range(4), ["0: atoms\nalone", "1", "2", "3"])
bars.spines[["top", "right"]].set_visible(False)
bars.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
plt.show()

# %%
# Which neighbourhood speaks loudest for an alcohol? The features of the kernel have names: an atom, then its
# neighbours.

machine = SVC(kernel=WeisfeilerLehman(1), C=10).fit(X, y)
psi = machine.kernel.feature_map(machine.support_vectors_)
w = (machine.dual_coef_ @ psi(machine.support_vectors_)).ravel()
names = [
    "".join([name]) if isinstance(name, str) else f"{name[0]} beside {' and '.join(n for _, n in name[1])}"
    for name in psi.names
]
ranked = sorted(zip(w, names, strict=True), reverse=True)
print("for an alcohol:", ranked[0][1], "| for an ether:", ranked[-1][1])
assert ranked[0][1] == "O beside C" and ranked[-1][1] == "O beside C and C"
