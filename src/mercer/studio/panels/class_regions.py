"""Regions of three and more classes on a grid: the class that wins the votes of all pairs, and its lead.

With several classes SVC has a machine for each pair. The class with the most votes wins; of classes with as many votes
the first. Where votes tie, the winner's smallest margin is negative and jumps at its border; its lead is zero there.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from scipy.ndimage import maximum_filter

from mercer.estimators.prediction import votes
from mercer.kernels.features import Matrix, Vector
from mercer.studio.panels.fitted_machine import rounded
from mercer.svm.batch import class_pairs


def pair_values(model: Any, Z: Matrix) -> Matrix:
    """The decision value of each pair of classes; positive for the first."""
    by_pairs = copy(model)  # other threads may use the model at the same time
    by_pairs.decision_function_shape = "ovo"
    values: Matrix = by_pairs.decision_function(Z)
    return values


def leads(pairwise: Matrix, n_classes: int) -> Matrix:
    """A column for each class: positive where the class wins the votes, negative where it loses, zero on its border.

    Let g(c, t) be the t-th largest value by which class c beats another one: c has at least t votes where g(c, t) > 0.
    Class c wins with t votes if g(c, t) > 0, no class before it has t votes, and no class after it has t + 1 votes:

        lead(c) = max over t of  min( g(c, t),  min over a < c of −g(a, t),  min over a > c of −g(a, t + 1) ).

    It is continuous, as it is made of minima and maxima of decision values. Where c beats all others it is at least its
    smallest margin. The winner stays the same while each decision value changes by less than its lead.
    """
    n = len(pairwise)
    margins = np.empty((n, n_classes, n_classes - 1))
    for k, (i, j) in enumerate(class_pairs(n_classes)):
        margins[:, i, j - 1] = pairwise[:, k]
        margins[:, j, i] = -pairwise[:, k]
    # −g(c, t) in column t − 1; nobody has n_classes votes
    missing = np.full((n, n_classes, n_classes), np.inf)
    missing[:, :, :-1] = np.sort(-margins, axis=2)
    lead = np.full((n, n_classes), -np.inf)
    for t in range(n_classes - 1):
        before, after = missing[:, :, t], missing[:, :, t + 1]
        bound = -before
        np.minimum(bound[:, 1:], np.minimum.accumulate(before, axis=1)[:, :-1], out=bound[:, 1:])
        np.minimum(bound[:, :-1], np.minimum.accumulate(after[:, ::-1], axis=1)[:, ::-1][:, 1:], out=bound[:, :-1])
        np.maximum(lead, bound, out=lead)
    return lead


def regions_json(pairwise: Matrix, classes: Vector, grid: tuple[int, int]) -> dict[str, Any]:
    """Label and lead of the winner at each point of a grid, and beside borders the leads of the classes next to it.

    `others` has [label, places, leads] for each class: places beside a point of the class that it does not win.
    """
    columns, rows = grid
    lead = leads(pairwise, len(classes))
    winner = votes(pairwise, len(classes)).argmax(axis=1)
    first = lead[np.arange(len(lead)), winner].reshape(rows, columns)
    winner = winner.reshape(rows, columns)
    others = []
    for k, label in enumerate(classes):
        own = winner == k
        beside = np.flatnonzero(maximum_filter(own, size=3) & ~own)
        if len(beside):
            others.append([int(label), beside.tolist(), rounded(lead[beside, k])])
    return {
        "values": rounded(first),
        "labels": classes[winner].tolist(),
        "others": others,
    }


def finer_labels(drawn: dict[str, Any], factor: int) -> Matrix:
    """The labels of `regions_json` on a grid `factor` times as fine, by leads interpolated in each cell."""
    labels, own = np.asarray(drawn["labels"]), np.asarray(drawn["values"], dtype=np.float64)
    columns, rows = (_between(size, factor) for size in labels.shape[::-1])
    others = {label: (places, values) for label, places, values in drawn["others"]}
    present = np.unique(labels)
    interpolated = []
    for label in present:
        # a class that wins at no corner of a cell wins nowhere in it
        lead = np.where(labels == label, own, -1e9)
        places, values = others.get(int(label), ([], []))
        lead.flat[places] = values
        interpolated.append(rows @ lead @ columns.T)
    found: Matrix = present[np.argmax(interpolated, axis=0)]
    return found


def _between(size: int, factor: int) -> Matrix:
    """Weights of `size` numbers at places `factor` times as dense, linear between neighbours."""
    places = np.arange((size - 1) * factor + 1) / factor
    return np.maximum(0.0, 1.0 - np.abs(places[:, None] - np.arange(size)))
