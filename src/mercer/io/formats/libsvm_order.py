"""The order of the classes in LIBSVM's model files.

    label 1 0                   the class of the first training sample comes first
    rho, SV                     a decision value is positive for the class that comes first

The order of the labels decides the sign of every decision value, the order of the pairs of classes, and which class
wins where several have equally many votes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from mercer.estimators.pairs import class_layout, class_pairs, pair_coefficients
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix, Vector


def training_order(y: Vector) -> Vector:
    """The classes in the order that LIBSVM gives them: by first appearance, but +1 always before -1."""
    labels, first = np.unique(y, return_index=True)
    if labels.tolist() == [-1, 1]:
        return labels[::-1]
    return labels[np.argsort(first)]


@dataclass(frozen=True, eq=False)
class ClassOrder:
    """The parts of a one-vs-one model that depend on the order of its classes.

    Attributes
    ----------
    labels : the classes in their order.
    counts : support vectors of each class.
    coef : LIBSVM's coefficients, (n_classes - 1) x n_vectors.
    intercept : of each pair of classes.
    probA, probB : the sigmoid of each pair; empty without probabilities.
    """

    labels: Vector
    counts: Vector
    coef: Matrix
    intercept: Vector
    probA: Vector
    probB: Vector

    def arranged(self, labels: Any) -> tuple[Self, Vector]:
        """The same model with the classes in another order, and the place that each support vector has now.

        Where a pair of classes is turned round, its decision value f becomes -f. P = 1 / (1 + exp(A f + B)) becomes
        1 - P, so that A stays and B changes its sign.
        """
        wanted, known = np.asarray(labels).tolist(), self.labels.tolist()
        if sorted(wanted) != sorted(known):
            raise InvalidInputError(
                f"labels={wanted!r:.80} must be the classes of the model, {known!r:.80}, reordered."
            )
        order = [known.index(label) for label in wanted]
        k, ends = len(order), np.concatenate([[0], np.cumsum(self.counts)])
        place = {pair: p for p, pair in enumerate(class_pairs(k))}
        asked = [(order[i], order[j]) for i, j in class_pairs(k)]
        pairs = np.array([place[min(pair), max(pair)] for pair in asked])
        sign = np.array([1.0 if i < j else -1.0 for i, j in asked])
        vectors = np.concatenate([np.arange(ends[c], ends[c + 1]) for c in order])
        counts = np.asarray(self.counts)[order]
        rows = sign[:, None] * pair_coefficients(self.coef, ends)[pairs][:, vectors]
        found = replace(
            self,
            labels=self.labels[order],
            counts=counts,
            coef=class_layout(rows, np.concatenate([[0], np.cumsum(counts)])),
            intercept=sign * self.intercept[pairs] + 0.0,
            probA=self.probA[pairs] if len(self.probA) else self.probA,
            probB=sign * self.probB[pairs] if len(self.probB) else self.probB,
        )
        return found, vectors
