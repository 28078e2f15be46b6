"""
Which topic is a text about?
============================

The texts are scikit-learn's documentation of its own functions and classes. The topic of a text is the package of its
function or class, whose name is removed from the text. A linear machine on thousands of words learns from a few
hundred texts, and its weights can be read.
"""

import inspect
import re
from importlib import import_module

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split

from mercer import LinearSVC

TOPICS = ("cluster", "datasets", "ensemble", "linear_model", "metrics", "preprocessing")
texts, topics = [], []
for topic in TOPICS:
    package = import_module(f"sklearn.{topic}")
    for name in sorted(set(package.__all__) & set(vars(package))):
        text = inspect.getdoc(getattr(package, name))
        if text:
            texts.append(re.sub(rf"\b({name}|{topic})\b", " ", text))
            topics.append(topic)

# %%
# One machine for each topic against the rest. Words that occur in a text once or often count by their tf-idf weight.

train, new, y, y_new = train_test_split(texts, topics, test_size=0.3, stratify=topics, random_state=0)
words = TfidfVectorizer(token_pattern=r"(?u)\b[a-z]{3,}\b", sublinear_tf=True)
X, X_new = words.fit_transform(train), words.transform(new)
machine = LinearSVC(loss="hinge").fit(X, y)
accuracy = machine.score(X_new, y_new)
print(f"{X.shape[0]} texts, {X.shape[1]:,} words; right on {accuracy:.1%} of new texts")
print(f"certificate: {machine.certificate_}")
assert accuracy > 0.85 and machine.certificate_.relative_gap < 1e-3

# %%
# The words that speak loudest for each topic, and the accuracy on new texts as the number of known ones grows.

vocabulary = words.get_feature_names_out()
figure = plt.figure(figsize=(12, 6.2), layout="constrained")
grid = figure.add_gridspec(2, 5)
for k, (topic, weights) in enumerate(zip(machine.classes_, machine.coef_, strict=True)):
    ax = figure.add_subplot(grid[k // 3, k % 3])
    top = np.argsort(-weights)[:8][::-1]
    ax.barh(vocabulary[top], weights[top], color="#0072b2")
    ax.set_title(topic, fontsize="medium", weight="bold")
    ax.set_xticks([])
    ax.spines[["top", "right", "bottom"]].set_visible(False)
rng = np.random.default_rng(0)
sizes, curve = (12, 25, 50, 100, len(train)), []
for n in sizes:
    scores = []
    for _ in range(3):
        part = rng.permutation(len(train))[:n]
        few = TfidfVectorizer(token_pattern=r"(?u)\b[a-z]{3,}\b", sublinear_tf=True)
        A = few.fit_transform([train[i] for i in part])
        small = LinearSVC(loss="hinge").fit(A, [y[i] for i in part])
        scores.append(small.score(few.transform(new), y_new))
    curve.append(scores)
ax = figure.add_subplot(grid[:, 3:])
mean = np.mean(curve, axis=1)
ax.fill_between(
    sizes, np.min(curve, axis=1), np.max(curve, axis=1), color="#e69f00", alpha=0.2, lw=0, label="three draws"
)
ax.plot(sizes, mean, "o-", color="#e69f00", lw=2, label="mean")
ax.set(xscale="log", xlabel="texts learnt from", ylabel="right on new texts", ylim=(0.3, 1.02))
ax.set_xticks(sizes, map(str, sizes))
ax.minorticks_off()
ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="lower right")
plt.show()

# %%
# Some words that one would expect:

top = {topic: set(vocabulary[np.argsort(-w)[:15]]) for topic, w in zip(machine.classes_, machine.coef_, strict=True)}
assert top["cluster"] & {"clusters", "clustering", "centers"}
assert top["linear_model"] & {"regression", "regularization", "alpha", "coef"}
assert mean[0] < mean[2] < mean[-1]
