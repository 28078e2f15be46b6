r"""
37. Coordinate ascent with kernels, in three orders
===================================================

Without a bias, row 10 works for every kernel. The decision values :math:`f_i = \sum_j \alpha_j y_j k(x_j, x_i)` are
kept, and a step changes one multiplier and, through one row of :math:`K`, all decision values:

.. math:: \alpha_i \leftarrow \mathrm{clip}\left(\alpha_i + \frac{1 - y_i f_i}{k(x_i, x_i)},\ 0,\ C\right),
          \qquad f_j \leftarrow f_j + \Delta\alpha_i\, y_i\, k(x_i, x_j),

[M5], with :math:`i` in turn, at random, or the one that raises the dual most. The same works for regression, where a
step also has the kink of the tube in it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import SVC, SVR, DecisionDisplay

COLOURS = {"round-robin": "#0072b2", "random": "#e69f00", "greedy": "#009e73"}

X, y = make_moons(100, noise=0.2, random_state=0)
options = {"C": 10.0, "gamma": 1.0, "fit_intercept": False, "solver": "coordinate", "random_state": 0}
models = {rule: SVC(rule=rule, tol=1e-4, trace=True, **options).fit(X, y) for rule in COLOURS}
exact = SVC(C=10.0, gamma=1.0, fit_intercept=False, tol=1e-9).fit(X, y)
optimum = exact.certificate_.dual

# %%
# The figure
# ----------
#
# Left the distance of the dual from the optimum. Right how often each sample was visited: in turn, all alike; by the
# greedy rule, those where the classes meet, and most others never.

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12.4, 3.7), layout="constrained")
for rule, colour in COLOURS.items():
    steps = models[rule].steps_
    left.loglog(
        np.arange(1, len(steps) + 1),
        np.maximum(optimum - steps.dual, 1e-9),
        color=colour,
        label=f"{rule}: {len(steps):,}",
    )
left.set(xlabel="step", ylabel="optimum − dual value", ylim=(1e-5, None))
left.legend(title="steps to the end", fontsize="small")
for ax, rule in ((middle, "round-robin"), (right, "greedy")):
    visits = np.bincount(models[rule].steps_.i, minlength=len(y))
    DecisionDisplay.from_estimator(models[rule], X, y, ax=ax)
    ax.get_legend().remove()
    for collection in ax.collections[-3:]:
        collection.set_alpha(0.25)
    drawn = ax.scatter(
        *X.T, s=18, c=np.maximum(visits, 0.5), cmap="inferno_r", norm="log", vmin=0.5, vmax=1000, zorder=4
    )
    ax.set(title=rule, xlabel="", ylabel="", xticks=[], yticks=[])
figure.colorbar(drawn, ax=right, label="visits")
plt.show()

# %%
# The numbers
# -----------

print("rule           steps   dual value   relative gap")
for rule, model in models.items():
    print(f"{rule:12} {len(model.steps_):7,}   {model.certificate_.dual:.6f}   {model.certificate_.relative_gap:12.1e}")
    assert len(model.steps_) == model.n_iter_[0] and model.certificate_.valid
    assert np.all(np.diff(model.steps_.dual) > -1e-9)
    assert np.isclose(model.certificate_.dual, optimum, rtol=1e-3)
assert len(models["greedy"].steps_) < len(models["round-robin"].steps_)
idle = np.mean(np.diff(models["round-robin"].steps_.dual) <= 1e-12)
visited = len(np.unique(models["greedy"].steps_.i))
print(f"in turn, {idle:.0%} of the visits change nothing; the greedy rule visits {visited} of {len(y)} samples")
assert idle > 0.5 and visited < 0.5 * len(y)

# replay the first hundred steps by hand
K, labels, alpha = np.exp(-((X[:, None] - X) ** 2).sum(axis=2)), np.where(y == 1, 1, -1), np.zeros(len(y))
steps = models["random"].steps_
for k in range(100):
    i = steps.i[k]
    alpha[i] = np.clip(alpha[i] + (1 - labels[i] * (K[i] @ (alpha * labels))) / K[i, i], 0, 10.0)
    assert np.isclose(alpha[i], steps.clipped[k], atol=1e-9)

target = np.sin(3 * X[:, 0])
tube = {"C": 1.0, "gamma": 1.0, "epsilon": 0.1, "fit_intercept": False}
by_steps = SVR(solver="coordinate", rule="greedy", tol=1e-5, **tube).fit(X, target)
assert np.isclose(by_steps.certificate_.dual, SVR(tol=1e-9, **tube).fit(X, target).certificate_.dual, rtol=1e-4)

# %%
# What to notice
# --------------
#
# * In turn and at random most visits change nothing: the sample is at a bound and stays there. The greedy rule needs a
#   fraction of the steps, and with kernels it is the right choice: the row of :math:`K` is what a step costs.
# * With a bias no multiplier can move alone. That is the step to SMO (row 11).
#
# Links
# -----
#
# :Names: :obj:`mercer.SVC`, :obj:`mercer.SVR` with ``solver="coordinate"``, ``rule``, ``fit_intercept=False``
# :Tests: ``tests/notes/test_machines.py::test_37_coordinate_ascent_with_kernels``
# :Studio: lesson ``coordinate-ascent`` of ``mercer studio``
# :See also: :doc:`plot_10_coordinate_ascent`, :doc:`plot_11_smo`, :doc:`plot_38_steps`
