r"""
24. Diffusion kernels
=====================

Put heat on one node of a graph and let it flow along the edges for the time :math:`\beta`. What arrives at the other
nodes is a column of

.. math:: K = e^{-\beta L}, \qquad L = \text{degrees} - \text{adjacency},

a kernel between nodes (Kondor and Lafferty 2002; [M5] names another paper). It is the limit of many small steps,
:math:`(1 - \beta L/m)^m`. Distributions :math:`\theta, \eta` are points of a simplex, on which heat flows too. There
the distance is :math:`d = 2 \arccos \sum_j \sqrt{\theta_j \eta_j}`, and the kernel of information diffusion,
:math:`e^{-d^2/(4t)}`, approximates the flow of heat for short times :math:`t` ([M5]).
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, Graph, GraphDiffusion, InformationDiffusion, check_mercer

BLUE, ORANGE, GREY = "#0072b2", "#e69f00", "#666666"

# %%
# Heat on a graph
# ---------------
#
# Two grids joined by a bridge. Heat from the ringed node fills its own grid long before it crosses the bridge.

side = 5
nodes = [(c, r) for block in (0, 7) for r in range(side) for c in range(block, block + side)]
number = {node: i for i, node in enumerate(nodes)}
edges = [
    (number[c, r], number[c + dc, r + dr])
    for c, r in nodes
    for dc, dr in ((1, 0), (0, 1))
    if (c + dc, r + dr) in number
]
edges.append((number[4, 2], number[7, 2]))
graph = Graph(edges)
place = np.array(nodes, dtype=float)
start = number[1, 3]

figure, axes = plt.subplots(1, 3, figsize=(11.4, 2.6), layout="constrained")
for ax, beta in zip(axes, (0.3, 2.0, 20.0), strict=True):
    heat = GraphDiffusion(graph, beta)(range(len(nodes)))[start]
    for a, b in edges:
        ax.plot(*place[[a, b]].T, color=GREY, lw=0.8, zorder=0)
    ax.scatter(
        *place.T,
        s=90,
        c=np.maximum(heat, 1e-6),
        cmap="inferno_r",
        norm="log",
        vmin=1e-6,
        vmax=1.0,
        edgecolors=GREY,
        lw=0.5,
    )
    shown = ax.collections[-1]
    ax.scatter(*place[start], s=220, facecolors="none", edgecolors=BLUE, linewidths=2)
    ax.set(title=f"β = {beta:g}", aspect="equal", xlim=(-0.7, 11.7), ylim=(-0.7, 4.7))
    ax.axis("off")
figure.colorbar(shown, ax=axes, label="k(start, node)")
plt.show()

# %%
# A few labels are enough
# -----------------------
#
# Two nodes of each grid have labels. A machine with the diffusion kernel finds the others, because heat stays within a
# grid. Right, the kernel of information diffusion on distributions of three outcomes, as seen from the red cross.

truth = np.where(place[:, 0] < 6, -1, 1)
known = np.array([number[0, 0], number[3, 4], number[8, 1], number[11, 3]])
model = SVC(C=10.0, kernel=GraphDiffusion(graph, 2.0)).fit(known, truth[known])
decision = model.decision_function(np.arange(len(nodes)))

t = 0.1
a, b = np.meshgrid(np.linspace(0, 1, 201), np.linspace(0, 1, 201))
inside = a + b <= 1
simplex = np.column_stack([a[inside], b[inside], np.maximum(0, 1 - a[inside] - b[inside])])
point = np.array([[0.15, 0.15, 0.7]])
values = np.full(a.shape, np.nan)
values[inside] = InformationDiffusion(t)(simplex, point)[:, 0]
corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])

figure, (left, right) = plt.subplots(1, 2, figsize=(9.8, 3.4), width_ratios=[1.6, 1], layout="constrained")
for p, q in edges:
    left.plot(*place[[p, q]].T, color=GREY, lw=0.8, zorder=0)
reach = np.abs(decision).max()
found = left.scatter(*place.T, s=110, c=decision, cmap="PuOr", vmin=-reach, vmax=reach, edgecolors=GREY, linewidths=0.5)
left.scatter(*place[known].T, s=260, facecolors="none", edgecolors="black", linewidths=2)
left.set(title="decision value; ringed nodes have labels", aspect="equal", xlim=(-0.7, 11.7), ylim=(-0.7, 4.7))
left.axis("off")
figure.colorbar(found, ax=left, shrink=0.8)
mesh = np.einsum("ijk,kl->ijl", np.stack([a, b, 1 - a - b], axis=-1), corners)
drawn = right.pcolormesh(mesh[..., 0], mesh[..., 1], values, cmap="viridis", shading="gouraud", vmin=0, vmax=1)
right.plot(*(point @ corners)[0], "+", color="#d55e00", ms=12, mew=2.5)
right.plot(*corners[[0, 1, 2, 0]].T, color="black", lw=1)
right.set(title="distributions of three outcomes", aspect="equal", xticks=[], yticks=[])
right.axis("off")
figure.colorbar(drawn, ax=right, shrink=0.8, label="k(θ, +)")
plt.show()

# %%
# The numbers
# -----------

A = graph.adjacency.toarray()
L = np.diag(A.sum(axis=1)) - A
steps = np.linalg.matrix_power(np.eye(len(A)) - 2.0 * L / 2**20, 2**20)
K = GraphDiffusion(graph, 2.0)(range(len(nodes)))
print(f"largest difference from 2²⁰ small steps: {np.abs(K - steps).max():.1e}")
print(f"labels found from {len(known)} of {len(nodes)}: {np.mean(np.sign(decision) == truth):.0%}")
assert np.allclose(K, steps, atol=1e-5) and check_mercer(K).positive_semidefinite
assert np.allclose(K.sum(axis=1), 1.0)  # heat is not lost
assert np.all(np.sign(decision) == truth)
x, z = np.array([[3.0, 1.0, 0.0]]), np.array([[1.0, 1.0, 2.0]])
distance = 2 * np.arccos(np.sqrt(x / 4) @ np.sqrt(z / 4).T)
assert np.isclose(InformationDiffusion(0.2)(x, z)[0, 0], np.exp(-(distance**2) / 0.8)[0, 0])

# %%
# What to notice
# --------------
#
# * Small :math:`\beta` compares a node with itself and its neighbours, large :math:`\beta` makes all nodes of a
#   connected graph alike: it is a width, like :math:`1/\gamma` of the Gaussian.
# * On the simplex the level lines are not circles: near an edge, where an outcome is rare, small changes of its
#   probability are large distances.
#
# Links
# -----
#
# :Names: :obj:`mercer.GraphDiffusion`, :obj:`mercer.InformationDiffusion`, :obj:`mercer.Graph`
# :Tests: ``tests/notes/test_structures.py::test_24_diffusion_on_graphs``, ``test_24_information_diffusion``
# :See also: :doc:`plot_20_kernels_on_vectors`, :doc:`plot_26_mercers_condition`
