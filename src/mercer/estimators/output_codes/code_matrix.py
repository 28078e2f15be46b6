"""Code matrices of output codes: a row for each class, a column for each binary problem, entries −1, 0 and 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix
from mercer.svm.batch import class_pairs

CODES = ("ovr", "ovo", "dense", "sparse")
# random codes that are tried; the one whose closest rows are furthest apart is taken
TRIALS = 50


def code_matrix(code: Any, n_classes: int, random_state: Any) -> Matrix:
    """The code with this name, or the given matrix, checked. Two classes have one column whatever the name."""
    if isinstance(code, str):
        if code not in CODES:
            raise InvalidInputError(
                f"code={code!r} is not known: use one of {', '.join(map(repr, CODES))}, or a matrix."
            )
        if n_classes == 2:
            return np.array([[-1.0], [1.0]])
        if code == "ovr":
            return 2.0 * np.eye(n_classes) - 1.0
        return _pairs(n_classes) if code == "ovo" else _random(code, n_classes, check_random_state(random_state))
    return _checked(code, n_classes)


def _pairs(n_classes: int) -> Matrix:
    """A column for each pair of classes, with 0 for all others; the second class of a pair is positive."""
    code = np.zeros((n_classes, n_classes * (n_classes - 1) // 2))
    for column, (i, j) in enumerate(class_pairs(n_classes)):
        code[i, column], code[j, column] = -1.0, 1.0
    return code


def _random(kind: str, n_classes: int, random: Any) -> Matrix:
    """10 log2(k) columns of ±1, or 15 log2(k) of which half of the entries are 0 (Allwein, Schapire & Singer, 2000)."""
    columns = int(np.ceil((10 if kind == "dense" else 15) * np.log2(n_classes)))
    entries, shares = ([-1.0, 1.0], [0.5, 0.5]) if kind == "dense" else ([-1.0, 0.0, 1.0], [0.25, 0.5, 0.25])
    best, distance = None, -1.0
    for _ in range(TRIALS):
        code = random.choice(entries, size=(n_classes, 4 * columns), p=shares)
        code = code[:, (code > 0).any(axis=0) & (code < 0).any(axis=0)]
        # a column and its negative are the same problem
        signed = code * np.sign(code[np.abs(code).argmax(axis=0), np.arange(code.shape[1])])
        code = signed[:, np.sort(np.unique(signed, axis=1, return_index=True)[1])][:, :columns]
        found = _least_distance(code)
        if found > distance:
            best, distance = code, found
    assert best is not None
    return best


def _least_distance(code: Matrix) -> float:
    """The smallest Hamming distance of two rows, where 0 counts ½."""
    agreement = code @ code.T
    distances = 0.5 * (code.shape[1] - agreement)
    return float(distances[~np.eye(len(code), dtype=bool)].min())


def _checked(code: Any, n_classes: int) -> Matrix:
    """A user's code matrix; raise unless every column is a problem and every two classes differ in a column."""
    try:
        matrix = np.array(code, dtype=np.float64)
    except (TypeError, ValueError):
        matrix = np.empty(0)
    if matrix.ndim != 2 or len(matrix) != n_classes or matrix.shape[1] == 0:
        raise InvalidInputError(
            f"code has the shape {matrix.shape}, but y has {n_classes} classes: give a row for each class and a column "
            f"for each binary problem, or one of {', '.join(map(repr, CODES))}."
        )
    if not np.isin(matrix, (-1.0, 0.0, 1.0)).all():
        raise InvalidInputError("code has entries other than -1, 0 and 1: -1 and 1 are the two sides, 0 leaves out.")
    empty = np.flatnonzero(~((matrix > 0).any(axis=0) & (matrix < 0).any(axis=0)))
    if len(empty):
        raise InvalidInputError(f"Column {empty[0]} of code has no class on one of its two sides: remove it.")
    if len(np.unique(matrix, axis=0)) < n_classes:
        raise InvalidInputError("Two rows of code are equal, so that their classes cannot be told apart: add a column.")
    return matrix
