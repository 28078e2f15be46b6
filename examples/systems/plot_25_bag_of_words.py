r"""
25. Bag of words
================

A document is a vector of zeros and ones, :math:`x_j = 1` where word :math:`j` of the dictionary occurs: [SSBD] 15.2.2.
There are more words than documents, so that a bound by dimension promises nothing. But :math:`\rho^2`, the largest
:math:`{|x|}^2`, is the largest number of distinct words in one document, and a halfspace with small weights for a few
words has a small norm :math:`B`: with :math:`\rho^2 B^2` in place of the dimension, words cost nothing.
"""

import inspect
import re

import matplotlib.pyplot as plt
import numpy as np
import sklearn.cluster
import sklearn.linear_model
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import cross_val_score

from mercer import SVC, LinearSVC

BLUE, ORANGE, GREY = "#0072b2", "#e69f00", "#666666"

# %%
# The documents are scikit-learn's documentation of its clustering methods and linear models, paragraph by paragraph,
# without their names.

texts, topics = [], []
for topic, package in (("clustering", sklearn.cluster), ("linear models", sklearn.linear_model)):
    for name in sorted(set(package.__all__) & set(vars(package))):
        text = inspect.getdoc(getattr(package, name)) or ""
        for paragraph in re.split(r"\n\s*\n", text.replace(name, " ")):
            if len(paragraph.split()) >= 25 and ">>>" not in paragraph:
                texts.append(paragraph)
                topics.append(topic)
vectoriser = CountVectorizer(binary=True, token_pattern=r"(?u)\b[a-z]{3,}\b")
X, y = vectoriser.fit_transform(texts).astype(float), np.array(topics)
words = vectoriser.get_feature_names_out()
model = LinearSVC(C=0.1, loss="hinge").fit(X, y)

# %%
# The figure
# ----------
#
# Left the words with the largest weights on either side. Right the cross-validated errors for several :math:`C`, with
# the quantity :math:`\rho^2 B^2` that takes the place of the dimension.

w = model.coef_[0]
order = np.r_[np.argsort(w)[:10], np.argsort(w)[-10:]]
Cs = np.geomspace(1e-3, 1.0, 7)
rho2 = X.multiply(X).sum(axis=1).max()
errors = [1 - cross_val_score(LinearSVC(C=C, loss="hinge"), X, y, cv=5).mean() for C in Cs]
capacity = [rho2 * np.sum(LinearSVC(C=C, loss="hinge").fit(X, y).coef_ ** 2) for C in Cs]

figure, (left, right) = plt.subplots(1, 2, figsize=(9.8, 4.4), layout="constrained")
left.barh(words[order], w[order], color=np.where(w[order] < 0, BLUE, ORANGE))
left.axvline(0, color="black", lw=0.8)
left.tick_params(axis="y", labelsize="small")
left.set(title=f"← {model.classes_[0]}      {model.classes_[1]} →", xlabel="weight")
right.loglog(Cs, capacity, "s-", color=ORANGE, label="ρ²B²")
right.axhline(len(words), color=GREY, ls="--", lw=1.2, label=f"dictionary: {len(words):,} words")
right.set(xlabel="C", ylabel="ρ²B², words")
right.legend(fontsize="small", loc="center right")
twin = right.twinx()
twin.semilogx(Cs, errors, "o-", color=BLUE)
twin.set_ylabel("cross-validated errors", color=BLUE)
twin.set_ylim(0, None)
plt.show()

# %%
# The numbers
# -----------

distinct = max(len(set(re.findall(r"(?u)\b[a-z]{3,}\b", text.lower()))) for text in texts)
exact = SVC(C=0.1, kernel="linear").fit(X, y)  # the bias is not regularised there
print(f"{len(texts)} documents, {len(words)} words; ρ² = {rho2:g} distinct words in the longest")
smaller = np.unique(y, return_counts=True)[1].min() / len(y)
print(f"best cross-validated error {min(errors):.1%}; always the larger class {smaller:.1%}")
print(f"share of zeros in the matrix {1 - X.nnz / np.prod(X.shape):.1%}")
assert rho2 == distinct
assert min(errors) < 0.25 and np.mean(exact.predict(X) == model.predict(X)) > 0.95
assert np.all(np.diff(capacity) > 0)

# %%
# What to notice
# --------------
#
# * The words with large weights are those of the topic. A linear machine on words can be read.
# * A small :math:`C` keeps :math:`\rho^2 B^2` far below the size of the dictionary at almost no cost in errors.
# * The matrix is sparse and stays so: ``LinearSVC`` and ``SVC`` take CSR matrices as they are.
#
# Links
# -----
#
# :Names: :obj:`mercer.LinearSVC`, :obj:`mercer.SVC` on CSR matrices; ``examples/text_topics.py`` has seven topics
# :Tests: ``tests/notes/test_kernels.py::test_25_bag_of_words``
# :See also: :doc:`plot_23_kernels_on_sets`, :doc:`plot_30_error_bounds`
