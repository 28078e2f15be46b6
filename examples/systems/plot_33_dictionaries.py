r"""
33. Dictionary methods: a chosen part of the samples
====================================================

If :math:`n` samples are too many, keep :math:`m` of them as a dictionary and project all features onto their span:

.. math:: K \approx K_{\cdot m}\, K_{mm}^{-1}\, K_{m \cdot},

[M5]. The machine then is a linear one in :math:`m` features. How good a dictionary is can be measured:
:math:`k(x, x) - {|\phi(x)|}^2` is the squared distance of a sample's feature from the span. Without samples, a kernel
of differences is a mean of cosines, :math:`k(x, z) = E \cos \langle \omega, x - z \rangle`; :math:`m` random
frequencies :math:`\omega` give it up to about :math:`1/\sqrt{m}`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import SVC, DecisionDisplay, Gaussian, Nystroem, RandomFeatures

BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#666666"

X, y = make_moons(400, noise=0.2, random_state=0)
kernel = Gaussian(2.0)
K = kernel(X)

# %%
# The figure
# ----------

sizes = (4, 8, 16, 32, 64, 128)


def errors(make):
    """The largest error of a kernel value, the mean over two seeds, for each size."""
    found = []
    for m in sizes:
        worst = []
        for seed in range(2):
            Z = make(m, seed).fit_transform(X)
            worst.append(np.abs(Z @ Z.T - K).max())
        found.append(np.mean(worst))
    return found


curves = {
    "landmarks, at random": errors(lambda m, seed: Nystroem(kernel, n_components=m, random_state=seed)),
    "landmarks, chosen": errors(
        lambda m, seed: Nystroem(kernel, n_components=m, random_state=seed, selection="cholesky")
    ),
    "random frequencies": errors(lambda m, seed: RandomFeatures(kernel, n_components=m, random_state=seed)),
}
dictionary = Nystroem(kernel, n_components=16, selection="cholesky", random_state=0).fit(X)
few = SVC(C=1.0, kernel=kernel, landmarks=16).fit(X, y)
exact = SVC(C=1.0, kernel=kernel).fit(X, y)

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12.2, 3.7), layout="constrained")
for (name, values), colour, mark in zip(curves.items(), (BLUE, GREEN, ORANGE), "os^", strict=True):
    left.loglog(sizes, values, f"{mark}-", color=colour, label=name)
left.set(xlabel="features m", ylabel="largest error of k(x, z)")
left.legend(fontsize="small")
for ax, model, title in (
    (middle, exact, f"exact: {len(exact.support_)} support vectors"),
    (right, few, "16 landmarks (stars)"),
):
    DecisionDisplay.from_estimator(model, X, y, ax=ax)
    ax.set(title=title, xlabel="", ylabel="", xticks=[], yticks=[])
    ax.get_legend().remove()
right.scatter(*few.support_vectors_.T, s=110, marker="*", color="black", edgecolors="white", linewidths=0.6, zorder=4)
plt.show()

# %%
# The numbers
# -----------

Z, part = dictionary.transform(X), X[dictionary.component_indices_]
projected = kernel(X, part) @ np.linalg.solve(kernel(part), kernel(part, X))
largest = np.abs(Z @ Z.T - K).max()
print(f"16 chosen landmarks: largest error {largest:.4f}, stated bound {dictionary.largest_error_:.4f}")
agreement = np.mean(few.predict(X) == exact.predict(X))
print(f"with 16 landmarks {agreement:.1%} of the answers are those of the exact machine")
assert np.allclose(Z @ Z.T, projected, atol=1e-5)
assert largest <= dictionary.largest_error_ * (1 + 1e-6) + 1e-9
assert curves["landmarks, chosen"][-1] < 1e-3 and curves["random frequencies"][-1] > 0.02
assert agreement > 0.95

# %%
# What to notice
# --------------
#
# * For a smooth kernel the error of landmarks falls faster than any power of :math:`m`, that of random frequencies as
#   :math:`1/\sqrt{m}`: features that depend on the samples have an advantage, as long as these lie on few dimensions.
# * ``SVC(landmarks="auto")`` chooses the landmarks and their number itself, and its certificate bounds the distance
#   from the exact machine, not from the best machine of the dictionary.
#
# Links
# -----
#
# :Names: :obj:`mercer.Nystroem`, :obj:`mercer.RandomFeatures`, :obj:`mercer.SVC` and its parameter ``landmarks``
# :Tests: ``tests/notes/test_selection.py::test_33_landmarks``, ``test_33_random_features``
# :See also: :doc:`plot_21_feature_maps`, :doc:`plot_34_many_samples`
