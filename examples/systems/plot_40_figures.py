r"""
40. The figures, examples and exercises of the notes
====================================================

The notes have figures that a teacher draws at the board: separating lines and the widest street, slack, the lift to a
feature space, procedures step by step, the effects of :math:`C`, :math:`\gamma` and :math:`\varepsilon`. Each is one
call of ``mercer.display.figures``, computed from a fit, not drawn by hand. Their losses, for example, are

.. math:: \ell_{0-1} \le \ell_{\text{ramp}} = \min(1, \max(0, 1 - y f)) \le \ell_{\text{hinge}} = \max(0, 1 - y f),

[SSBD] 15.2.3. The exercises 15.1 to 15.4 and 16.1 to 16.6 are scripts in ``examples/notes`` that compute and check
their answers.
"""

import io

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, StepsDisplay
from mercer.display import figures
from mercer.losses import hinge, ramp, zero_one

# %%
# The figure
# ----------
#
# All of them on one sheet; the title is the name of the function.

pictures = {}
for name in figures.PLACES:
    figure = getattr(figures, name)()
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=75)
    plt.close(figure)
    pictures[name] = plt.imread(io.BytesIO(content.getvalue()))

sheet, axes = plt.subplots(5, 3, figsize=(14.0, 13.5), layout="constrained")
for ax, (name, picture) in zip(axes.flat, pictures.items(), strict=False):
    ax.imshow(picture)
    ax.set_title(name)
for ax in axes.flat:
    ax.axis("off")
plt.show()

# %%
# Two at their full size. Each returns a matplotlib figure, which can be changed and saved.

figures.losses()
figures.separating_lines()
plt.show()

# %%
# The steps of any traced procedure are drawn by ``StepsDisplay``.

rng = np.random.default_rng(0)
y = np.where(np.arange(24) % 2 == 0, 1, -1)
X = rng.normal(size=(24, 2)) + 0.9 * np.outer(y, [0.6, 0.8])
StepsDisplay.from_estimator(SVC(kernel="linear", solver="smo", tol=1e-5, trace=True).fit(X, y))
plt.show()

# %%
# The numbers
# -----------

f = np.linspace(-3, 3, 601)
one = np.ones_like(f)
assert np.all(zero_one(one, f) <= ramp(one, f)) and np.all(ramp(one, f) <= hinge(one, f))
assert len(pictures) == len(figures.PLACES) == len(figures.__all__)
assert all(picture.std() > 0.05 for picture in pictures.values())  # none is empty
for name, place in figures.PLACES.items():
    print(f"{name:18} {place}")

# %%
# What to notice
# --------------
#
# * Arguments change the data of a figure where that teaches something: ``figures.effect_of_C((0.01, 1, 100))``,
#   ``figures.slack(C=10)``, ``figures.losses(epsilon=0.2)``.
# * The samples are generated with fixed seeds, so that a figure is the same in every lecture.
#
# Links
# -----
#
# :Names: ``display.figures.losses``, ``display.figures.separating_lines``, ``display.figures.support_vectors``,
#         ``display.figures.slack``, ``display.figures.lift``, ``display.figures.perceptron``,
#         ``display.figures.pegasos``, ``display.figures.coordinate_ascent``, ``display.figures.smo``,
#         ``display.figures.effect_of_C``, ``display.figures.effect_of_gamma``, ``display.figures.effect_of_epsilon``,
#         ``display.figures.overfitting``, ``display.figures.near_diagonal``, :obj:`mercer.StepsDisplay`
# :Tests: ``tests/notes/test_figures.py::test_40_every_figure``, ``test_40_the_gallery``
# :Studio: lessons ``slack``, ``disc``, ``epsilon-tube`` of ``mercer studio``
# :See also: :doc:`plot_01_hard_svm`, :doc:`plot_10_coordinate_ascent`, :doc:`plot_32_overfitting`
