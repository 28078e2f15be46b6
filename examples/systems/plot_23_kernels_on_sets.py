r"""
23. Kernels on sets
===================

Sets are vectors of zeros and ones, one for each item there is, and their inner product counts common items:

.. math:: k(x, z) = {|x \cap z|}, \qquad k(x, z) = \frac{|x \cap z|}{|x \cup z|}.

In the supermarket of [SSBD] Exercise 16.5 a customer with a baby buys at least one of :math:`k` items, among any number
of others. The hyperplane with the weights 2 for these items and −1 for a constant feature has the value :math:`\ge 1`
for them and −1 for the others, so its margin is :math:`1/\sqrt{4k + 1}`. A basket of at most :math:`s` items has the
length :math:`\sqrt{s + 1}` or less. Neither depends on the number of items in the shop.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, Gaussian, Intersection, Jaccard, SetOf, datasets
from mercer.theory import bounds

BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#666666"

s, k, n = 8, 3, 1000
shop = datasets.make_baskets(n + 1000, d=20_000, s=s, k=k, seed=0)
X, y = shop.X, shop.y
model = SVC(kernel=Intersection() + 1.0, C=np.inf, fit_intercept=False).fit(X[:400], y[:400])

# %%
# The figure
# ----------
#
# Left the weights of items, which are sums of coefficients over the baskets that contain them. Right the errors on new
# customers as more are known, beside the bound of Theorem 15.4.

weights = {}
for basket, beta in zip(model.support_vectors_, model.dual_coef_[0], strict=True):
    for item in basket:
        weights[item] = weights.get(item, 0.0) + beta
top = sorted(weights, key=weights.get)[-10:]

sizes = np.array([25, 50, 100, 200, 400, 1000])
errors = []
for size in sizes:
    machine = SVC(kernel=Intersection() + 1.0, C=np.inf, fit_intercept=False).fit(X[:size], y[:size])
    errors.append(1 - machine.score(X[n:], y[n:]))
promised = [bounds.hard_margin((4 * k + 1) ** -0.5, (s + 1) ** 0.5, size) for size in sizes]

figure, (left, right) = plt.subplots(1, 2, figsize=(9.8, 3.8), layout="constrained")
colours = [RED if item in shop.secret else GREY for item in top]
left.barh(top, [weights[item] for item in top], color=colours)
left.set(xlabel="weight", title="the heaviest of 20,000 items")
right.loglog(sizes, np.maximum(errors, 3e-4), "o-", color=BLUE, label="errors on new customers")
right.loglog(sizes, promised, color=RED, ls="--", label="bound of Theorem 15.4")
right.set(xlabel="known customers", ylabel="share of errors")
right.legend(fontsize="small", loc="center right")
plt.show()

# %%
# The numbers
# -----------

x, z = {"milk", "bread", "eggs"}, {"milk", "tea"}
assert Intersection()([x], [z])[0, 0] == 1 and np.isclose(Jaccard()([x], [z])[0, 0], 1 / 4)
print(f"margin {model.margin_[0]:.4f}; the hyperplane above has {(4 * k + 1) ** -0.5:.4f}")
print(f"heaviest items: {', '.join(reversed(top[-k:]))}")
print(f"errors with 400 customers: {errors[4]:.1%}")
assert model.margin_[0] >= (1 - 1e-3) * (4 * k + 1) ** -0.5
assert set(top[-k:]) == shop.secret
assert errors[4] < 0.02 and all(error <= bound for error, bound in zip(errors, promised, strict=True))

# sets of vectors: the mean of a kernel over all pairs of their members
bags = [np.array([[0.0], [1.0]]), np.array([[0.0]])]
value = SetOf(Gaussian(1.0))(bags)[0, 1]
assert np.isclose(value, (1 + np.exp(-1.0)) / 2)

# %%
# What to notice
# --------------
#
# * The three items are found among 20,000, since no other item is bought by customers with a baby only.
# * The bound says nothing (it is above 1) for so few customers, and yet its message is right: errors fall with
#   :math:`n`, and the size of the shop does not matter.
#
# Links
# -----
#
# :Names: :obj:`mercer.Intersection`, :obj:`mercer.Jaccard`, :obj:`mercer.SetOf`
# :Tests: ``tests/notes/test_structures.py::test_23_sets``, ``test_23_supermarket``
# :See also: :doc:`plot_25_bag_of_words`, :doc:`plot_30_error_bounds`, :doc:`plot_22_kernels_on_strings`
