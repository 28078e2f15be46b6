r"""
35. Digits from their pixels
============================

The example that made support vector machines known: handwritten digits, 16 × 16 pixels, as vectors of 256 numbers,
with the kernels

.. math:: {\langle x, z \rangle}^k \qquad\text{and}\qquad e^{-\gamma {|x - z|}^2},

[CS229] 5.4. The machine does not know which pixels are neighbours: a fixed permutation of all pixels would change no
kernel value. Ten classes are solved as 45 pairs, each with its own certificate. The images here are those of
scikit-learn, enlarged from 8 × 8 pixels.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, Gaussian, Polynomial, SupportVectorDisplay, datasets

digits = datasets.load("digits16")
X, y = digits.X, digits.y
train, test = slice(0, None, 2), slice(1, None, 2)
kernels = {"⟨x, z⟩³": Polynomial(3, 1 / 64, 0.0), "Gaussian": Gaussian("scale")}
models = {name: SVC(C=10.0, kernel=kernel).fit(X[train], y[train]) for name, kernel in kernels.items()}

# %%
# The figure
# ----------
#
# The support vectors with the largest coefficients are the digits that are hard to tell from others.

model = models["Gaussian"]
SupportVectorDisplay.from_estimator(model, y[train], shape=(16, 16), count=12)
plt.show()

# %%
# The test images that the machine gets wrong, with the right answer and its own.

predicted = model.predict(X[test])
wrong = np.flatnonzero(predicted != y[test])
figure, axes = plt.subplots(1, min(8, len(wrong)), figsize=(10.0, 1.9), layout="constrained")
for ax, i in zip(axes, wrong, strict=False):
    ax.imshow(X[test][i].reshape(16, 16), cmap="gray_r")
    ax.set_title(f"{y[test][i]}, taken for {predicted[i]}", fontsize="small")
    ax.axis("off")
plt.show()

# %%
# The numbers
# -----------

for name, machine in models.items():
    share = len(machine.support_) / len(y[train])
    score = machine.score(X[test], y[test])
    print(f"{name:9} {score:.1%} correct, {share:.0%} are support vectors, {len(machine.certificates_)} pairs")
    assert score > 0.97 and len(machine.certificates_) == 45
    assert all(certificate.valid for certificate in machine.certificates_)

# any order of the pixels gives the same machine
order = np.random.default_rng(0).permutation(256)
gamma = 1 / (256 * X[train].var())
same = SVC(C=10.0, gamma=gamma, tol=1e-6).fit(X[train], y[train])
mixed = SVC(C=10.0, gamma=gamma, tol=1e-6).fit(X[train][:, order], y[train])
difference = np.abs(same.decision_function(X[test][:50]) - mixed.decision_function(X[test][:50][:, order])).max()
print(f"pixels in another order: largest difference of a decision value {difference:.1e}")
assert np.mean(same.predict(X[test]) == mixed.predict(X[test][:, order])) > 0.998

# %%
# What to notice
# --------------
#
# * Both kernels are right about 98 to 99 times in 100, without any knowledge of images.
# * The polynomial of degree 3 has more than two million features. The margin keeps it from overfitting, not their
#   number.
#
# Links
# -----
#
# :Names: :obj:`mercer.SVC`; the command ``mercer demo``
# :Tests: ``tests/notes/test_kernels.py::test_35_digits``, ``test_35_digits_of_16_by_16_pixels``
# :See also: :doc:`plot_20_kernels_on_vectors`, :doc:`plot_34_many_samples`
