r"""
38. Procedures as steps that can be read
========================================

SMO, coordinate ascent, Pegasos, the perceptron and kernel LMS are short loops in the notes ([M5], [SSBD] 15.5 and 16.3,
[L8], [CS229] 5 and 6). With ``trace=True`` mercer keeps every pass through the loop as a row of ``steps_``, with the
quantities of that step. For SMO these are the pair :math:`(i, j)`, the ends :math:`L` and :math:`H` of its segment,
:math:`\alpha_j` before and after clipping,

.. math:: \alpha_j^{\text{clipped}} = \min(H, \max(L, \alpha_j^{\text{unclipped}})),

.. math:: \alpha_i^{\text{new}} = \alpha_i + y_i y_j (\alpha_j - \alpha_j^{\text{clipped}}),

and the dual value. The rows are enough to run the procedure again on paper.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC, ConvergenceDisplay, KernelLMS, PegasosClassifier, Perceptron, StepsDisplay

warnings.simplefilter("ignore", ConvergenceWarning)  # some runs are stopped early on purpose

rng = np.random.default_rng(0)
y = np.where(np.arange(30) % 2 == 0, 1, -1)
X = rng.normal(size=(30, 2)) + 0.8 * np.outer(y, [0.6, 0.8])

# %%
# The figure
# ----------
#
# Above, what the procedure improves. Below, the sample of each step, and whether it was clipped or changed anything.

machines = {
    "SMO": SVC(kernel="linear", solver="smo", tol=1e-5, trace=True),
    "coordinate ascent": SVC(kernel="linear", solver="coordinate", fit_intercept=False, tol=1e-3, trace=True),
    "Pegasos": PegasosClassifier(0.05, n_steps=150, fit_intercept=False, random_state=0, trace=True),
    "perceptron, 3 passes": Perceptron(fit_intercept=False, max_iter=3, tol=None, trace=True),
    "kernel LMS": KernelLMS(max_iter=60, tol=0.0, trace=True),
}
for machine in machines.values():
    machine.fit(X, y)

figure, axes = plt.subplots(1, 3, figsize=(12.6, 4.4), layout="constrained")
for ax, name in zip(axes, ("SMO", "Pegasos", "perceptron, 3 passes"), strict=True):
    display = StepsDisplay.from_estimator(machines[name], ax=ax)
    display.axes_[0].set_title(name)
plt.show()

# %%
# The measure alone, for the other two.

figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.2), layout="constrained")
for ax, name in zip(axes, ("coordinate ascent", "kernel LMS"), strict=True):
    steps = machines[name].steps_
    ax.plot(np.arange(1, len(steps) + 1), steps[steps.measure], color="#0072b2", lw=1.6)
    ax.set(title=f"{name}: {steps.measure}", xlabel="step")
plt.show()

# %%
# The convergence of a fit by its own trace: the violation that ``tol`` bounds, and the distance from the optimum.

data = rng.normal(size=(2500, 6))
labels = data[:, 0] * data[:, 1] > 0.2 * rng.normal(size=2500)
ConvergenceDisplay.from_estimator(SVC(C=10.0, gamma=0.3).fit(data, labels))
plt.show()

# %%
# The numbers
# -----------

smo = machines["SMO"].steps_
print(smo)
alpha = np.zeros(30)
for k in range(len(smo)):
    i, j = smo.i[k], smo.j[k]
    assert smo.clipped[k] == min(smo.H[k], max(smo.L[k], smo.unclipped[k]))
    assert np.isclose(smo.alpha_i[k], alpha[i] + y[i] * y[j] * (alpha[j] - smo.clipped[k]), atol=1e-12)
    alpha[i], alpha[j] = smo.alpha_i[k], smo.clipped[k]
model = machines["SMO"]
assert np.allclose(alpha[model.support_], np.abs(model.dual_coef_[0]), atol=1e-12)  # the last row is the machine
assert np.isclose(smo.dual[-1], model.certificate_.dual, rtol=1e-9)

perceptron = machines["perceptron, 3 passes"].steps_
w = np.zeros(2)
for k in range(len(perceptron)):
    i = perceptron.i[k]
    assert np.isclose(perceptron.margin[k], y[i] * (w @ X[i]), atol=1e-9)
    w += perceptron.mistake[k] * y[i] * X[i]
assert np.allclose(w, machines["perceptron, 3 passes"].coef_[0])

# %%
# What to notice
# --------------
#
# * ``steps_[k]`` is one step as a dictionary, ``steps_.dual`` one quantity as an array, and
#   ``pandas.DataFrame(steps_.columns)`` the whole as a table.
# * The solvers for everyday use work on blocks and have no such steps; ``trace=True`` with ``solver="smo"`` or
#   ``"coordinate"`` is for lessons and small data.
#
# Links
# -----
#
# :Names: :obj:`mercer.Steps`, ``SVC.steps_`` and others with ``trace=True``; :obj:`mercer.StepsDisplay`,
#         :obj:`mercer.ConvergenceDisplay`
# :Tests: ``tests/notes/test_machines.py::test_38_smo_step_by_step``; those of rows 7, 15, 16 and 17
# :Studio: lessons ``smo``, ``coordinate-ascent``, ``pegasos``, ``perceptron``, ``kernel-lms`` of ``mercer studio``
# :See also: :doc:`plot_07_pegasos`, :doc:`plot_11_smo`, :doc:`plot_15_kernel_gradient_descent`,
#            :doc:`plot_16_perceptron`
