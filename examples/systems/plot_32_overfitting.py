r"""
32. Symptoms of overfitting
===========================

Training errors do not show that a machine has learnt its samples by heart. [M5] names two symptoms that do, without any
new sample: **a small margin** :math:`1/{|w|}`, and **a large share of support vectors**. A Gaussian that is too narrow
has both: each sample stands alone, its bump must reach :math:`\pm 1` by itself, and none can be left out. ``diagnose``
looks for these and for some more, and says what to change.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, DecisionDisplay, diagnose
from mercer.display import figures

# %%
# The figure
# ----------
#
# From a wide to a narrow Gaussian, 120 samples. Beyond the best :math:`\gamma` the margin falls and the number of
# support vectors grows, and errors on new samples grow with them, while training samples have none.

figures.overfitting()
plt.show()

# %%
# Three of these machines. The last one is right on all its samples, and has learnt nothing between them.

rng = np.random.default_rng(0)
angle, y = rng.uniform(0.0, np.pi, 120), np.where(np.arange(120) % 2 == 0, 1, -1)
X = np.column_stack([y * np.cos(angle) + 0.5 * (y < 0) + 0.5, y * np.sin(angle) + 0.5 * (y < 0)])
X = X + 0.25 * rng.normal(size=X.shape)

models = {gamma: SVC(C=10.0, gamma=gamma).fit(X, y) for gamma in (0.1, 2.0, 200.0)}
figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.3), layout="constrained", sharey=True)
for ax, (gamma, model) in zip(axes, models.items(), strict=True):
    DecisionDisplay.from_estimator(model, X, y, ax=ax)
    ax.set_title(f"γ = {gamma:g}: {len(model.support_)} support vectors\nmargin {model.margin_[0]:.3f}")
    ax.set(xlabel="", ylabel="", xticks=[], yticks=[])
    ax.get_legend().remove()
plt.show()

# %%
# The numbers
# -----------

reports = {gamma: diagnose(model, X, y) for gamma, model in models.items()}
for gamma, report in reports.items():
    names = ", ".join(finding.name for finding in report.symptoms) or "none"
    print(f"γ = {gamma:5g}   share of support vectors {report['support vectors'].value:.0%}   symptoms: {names}")
print(reports[200.0]["nearest similarity"])
assert reports[200.0]["support vectors"].value > 0.9 and reports[200.0]["nearest similarity"].symptom
assert not reports[2.0].symptoms
assert models[200.0].margin_[0] < models[2.0].margin_[0]

# %%
# What to notice
# --------------
#
# * The share of support vectors bounds the leave-one-out error from above: a sample that is not one would be right
#   without itself as well, since the machine would be the same. A share of 100 % promises nothing.
# * Classes that overlap have many support vectors by right. The symptom is in both numbers together, and a comparison
#   with held-out samples (``evaluate``) decides.
#
# Links
# -----
#
# :Names: :obj:`mercer.diagnose`; ``display.figures.overfitting``
# :Tests: ``tests/notes/test_theory.py::test_32_symptoms_of_overfitting``
# :Studio: lesson ``gaussian-width`` of ``mercer studio``
# :See also: :doc:`plot_27_kernels_from_kernels`, :doc:`plot_31_model_selection`, :doc:`plot_40_figures`
