"""Several classes by LIBSVM's conventions: coefficients in its layout, and votes of the pairs."""

from __future__ import annotations

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.gram.memory import available_bytes
from mercer.kernels.features import Matrix, Vector
from mercer.svm.batch import class_pairs as class_pairs

# so many pairs of classes always fit; and what the solution of each takes at least, in bytes
PAIRS_UNCHECKED, SOLUTION_BYTES = 500, 4000


def check_memory(n_samples: int, n_classes: int, per_pair: int) -> None:
    """Raise if a machine for each pair of classes, with ``per_pair`` bytes each, does not fit into the memory."""
    pairs = n_classes * (n_classes - 1) // 2
    if pairs <= PAIRS_UNCHECKED:
        return
    needed, available = pairs * per_pair, available_bytes()
    if needed > available:
        raise InvalidInputError(
            f"{n_classes:,} classes are {pairs:,} pairs, each with a machine of its own: for {n_samples:,} samples "
            f"that takes about {needed / 1e9:,.1f} GB, but {available / 1e9:,.1f} GB are available. Use fewer classes, "
            "or a linear machine (LinearSVC, LinearSVCCV, mercer fit --kernel linear), which has one for each class."
        )


def pair_coefficients(coef: Matrix, ends: Vector) -> Matrix:
    """LIBSVM's layout with a row for each pair of classes and a column for each support vector.

    The support vectors of class c are those from ends[c] to ends[c + 1]. β of the pair (i, j) is row j − 1 of the
    coefficients of class i, row i of those of class j, and 0 elsewhere.
    """
    pairs = class_pairs(len(ends) - 1)
    if len(pairs) <= 1:
        return coef
    rows = np.zeros((len(pairs), coef.shape[1]))
    for row, (i, j) in zip(rows, pairs, strict=True):
        row[ends[i] : ends[i + 1]] = coef[j - 1, ends[i] : ends[i + 1]]
        row[ends[j] : ends[j + 1]] = coef[i, ends[j] : ends[j + 1]]
    return rows


def class_layout(pairs: Matrix, ends: Vector) -> Matrix:
    """The inverse of `pair_coefficients`."""
    k = len(ends) - 1
    if k <= 2:
        return pairs
    coef = np.zeros((k - 1, pairs.shape[1]))
    for row, (i, j) in zip(pairs, class_pairs(k), strict=True):
        coef[j - 1, ends[i] : ends[i + 1]] = row[ends[i] : ends[i + 1]]
        coef[i, ends[j] : ends[j + 1]] = row[ends[j] : ends[j + 1]]
    return coef


def votes(values: Matrix, n_classes: int) -> Matrix:
    """Each pair (i, j) votes for i where its value is positive, else for j."""
    count = np.zeros((len(values), n_classes))
    for k, (i, j) in enumerate(class_pairs(n_classes)):
        first = values[:, k] > 0
        count[:, i] += first
        count[:, j] += ~first
    return count
