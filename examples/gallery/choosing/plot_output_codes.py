"""
Several classes by codes
========================

Binary machines can be combined into a classifier of several classes in many ways: one class against the rest, all
pairs, or random code words. The closest code word wins, even if some machines are wrong. ``OutputCodeSVC`` takes any
code; its machines share one kernel matrix, and each word has a certificate.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from mercer import OutputCodeSVC

# %%
# The digits with half of them to learn from, and four codes.

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X / 16.0, y, test_size=0.5, random_state=0)
models = {code: OutputCodeSVC(code, gamma=0.05, random_state=0).fit(X, y) for code in ("ovr", "ovo", "dense", "sparse")}
for code, model in models.items():
    print(f"{code:6s} {model.code_.shape[1]:3d} words, {1 - model.score(X_test, y_test):.1%} wrong")
    assert model.score(X_test, y_test) > 0.93

# %%
# The codes: a row for each digit; black is 1, white −1, grey is left out.

figure, axes = plt.subplots(4, 1, figsize=(8, 7), layout="constrained")
for axis, (code, model) in zip(axes, models.items(), strict=True):
    axis.imshow(-model.code_, cmap="gray", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
    axis.set(title=f"{code}: {model.code_.shape[1]} words", yticks=np.arange(0, 10, 3), ylabel="digit")
plt.show()
