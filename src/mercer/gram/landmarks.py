"""Which samples stand for all: the dictionary of a low-rank approximation ([M5] "dictionary methods")."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.gram.low_rank import pivoted_cholesky
from mercer.gram.operator import GramOperator
from mercer.kernels.features import Vector

SELECTIONS = ("uniform", "kmeans++", "cholesky", "random_cholesky")


def choose_landmarks(gram: GramOperator, count: int, selection: str, random: Any) -> Vector:
    """The numbers of ``count`` samples, or of fewer if these represent all others exactly.

    "uniform" draws without replacement. "kmeans++" draws each with a probability in proportion to its squared distance,
    in feature space, from the nearest one drawn so far (Arthur & Vassilvitskii, 2007). "cholesky" takes those that are
    represented worst so far, which is not random. "random_cholesky" draws each with a probability in proportion to what
    those before do not represent of it (Chen, Epperly, Tropp & Webber, *Randomly pivoted Cholesky*, 2022).
    """
    if selection == "uniform":
        chosen: Vector = random.permutation(gram.n)[:count]
        return chosen
    if selection == "cholesky":
        return pivoted_cholesky(gram, count, 0.0, block=1).pivots
    if selection == "random_cholesky":
        return _random_pivots(gram, count, random)
    diagonal = gram.diagonal()
    taken = [int(random.randint(gram.n))]
    distance = np.full(gram.n, np.inf)
    while len(taken) < count:
        last = np.array(taken[-1:])
        column = gram.rows(gram.features.take(last))[0].astype(np.float64)
        distance = np.minimum(distance, diagonal + diagonal[last] - 2.0 * column)
        # of equal samples rounding leaves a distance
        distance[distance <= 1e-12 * np.abs(diagonal).max()] = 0.0
        distance[taken] = 0.0
        total = distance.sum()
        if total <= 0:
            break
        taken.append(_draw(distance, random))
    return np.array(taken)


def _random_pivots(gram: GramOperator, count: int, random: Any) -> Vector:
    left = gram.diagonal().astype(np.float64)
    rounding = 1e-12 * float(np.abs(left).max(initial=0.0))
    L = np.empty((gram.n, count), order="F")
    taken: list[int] = []
    while len(taken) < count:
        left[left <= rounding] = 0.0
        if not left.any():
            break
        pivot = _draw(left, random)
        done = len(taken)
        column = gram.rows(gram.features.take(np.array([pivot])))[0] - L[:, :done] @ L[pivot, :done]
        L[:, done] = column / np.sqrt(left[pivot])
        left -= L[:, done] ** 2
        left[pivot] = 0.0
        taken.append(pivot)
    return np.array(taken, dtype=np.intp)


def _draw(weight: Vector, random: Any) -> int:
    """One position, with a probability in proportion to its weight."""
    ends = np.cumsum(weight)
    position = int(np.searchsorted(ends, random.uniform(0.0, ends[-1]), side="right"))
    # rounding at the end of the sums must not take one of weight 0
    return position if position < len(weight) and weight[position] > 0 else int(np.argmax(weight))
