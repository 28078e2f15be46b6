"""
Learning to rank: only pairs of one query count
===============================================

Documents are judged for each query anew: a "3" of a hard query may be worse than a "1" of an easy one. ``RankSVC``
learns from pairs within a group, so that differences between queries do not disturb it. A regression of the
judgements has to explain these differences, too.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVR, RankSVC, grouped_ndcg_score, pairwise_score

BLUE, ORANGE = "#0072b2", "#e69f00"


def judged(n_queries, rng):
    """Return documents, relevance from 0 to 4, and queries; judges are stricter the larger the second feature."""
    queries = np.repeat(np.arange(n_queries), 12)
    strict = rng.uniform(-2, 2, n_queries)[queries]
    X = np.column_stack([rng.uniform(-2, 2, len(queries)), strict + 0.3 * rng.normal(size=len(queries))])
    quality = np.sin(1.2 * X[:, 0]) + 0.2 * X[:, 0] + 0.3 * rng.normal(size=len(queries)) - strict
    return X, np.digitize(quality, [-1.5, -0.5, 0.5, 1.5]), queries


rng = np.random.default_rng(0)
X, y, queries = judged(40, rng)
X_new, y_new, queries_new = judged(200, rng)
ranker = RankSVC(C=0.01, gamma=0.5).fit(X, y, groups=queries)
regression = SVR(C=1.0, gamma=0.5).fit(X, y)
assert ranker.certificate_.relative_gap < 1e-6

# %%
# Left: the share of pairs of new queries that are in order, and NDCG, which counts the first places most. Right: the
# scores as functions of the first feature, at five values of the second. The ranking keeps the order of documents that
# differ in the first feature alone.

scores = {}
for name, model in (("RankSVC", ranker), ("SVR", regression)):
    said = model.predict(X_new)
    scores[name] = pairwise_score(y_new, said, queries_new), grouped_ndcg_score(y_new, said, queries_new, k=5)
assert scores["RankSVC"][0] > scores["SVR"][0]

figure, (bars, curves) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for shift, (name, found), colour in zip((-0.2, 0.2), scores.items(), (BLUE, ORANGE), strict=True):
    drawn = bars.bar(np.arange(2) + shift, found, width=0.38, color=colour, label=name)
    bars.bar_label(drawn, fmt="%.3f")
bars.set(xticks=[0, 1], xticklabels=["pairs in order", "NDCG of the first 5"], ylim=(0.5, 1.1), title="new queries")
bars.legend(frameon=False, loc="upper center", ncols=2)
line = np.linspace(-2, 2, 100)
for strict in np.linspace(-1.5, 1.5, 5):
    at = np.column_stack([line, np.full(100, strict)])
    for model, colour, name in ((ranker, BLUE, "RankSVC"), (regression, ORANGE, "SVR")):
        said = model.predict(at)
        curves.plot(line, said - said.mean(), color=colour, lw=1, label=name if strict == -1.5 else None)
curves.set(xlabel="$x_1$", ylabel="score, centred", title="what orders the documents of one query")
curves.legend(frameon=False)
plt.show()
