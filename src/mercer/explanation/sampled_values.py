"""Shapley values of any function: over all coalitions if they are few, else over random permutations.

A permutation adds features of x one after another to a background row; feature j gets the change of f at its turn. The
average over all permutations and background rows is Shapley's value. Each background row gets its own permutations,
each together with its reverse (antithetic: Mitchell et al., JMLR 23, 2022), so the sum of all values is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import Any

import numpy as np

from mercer.explanation.hybrid_rows import Rows
from mercer.kernels.features import Matrix

# rows that are given to the function at a time
AT_A_TIME = 100_000

Function = Callable[[Any], Matrix]


def enumerated_values(f: Function, X: Any, background: Any) -> Matrix:
    """Compute the values from all 2^d coalitions, exactly."""
    rows, n, m, d = Rows(X, background), X.shape[0], background.shape[0], X.shape[1]
    sets = (np.arange(2**d)[:, None] >> np.arange(d)) & 1
    size = sets.sum(axis=1)
    # of a coalition without j: |S|! (d - |S| - 1)! / d!
    weight = np.array([1.0 / (d * comb(d - 1, k)) for k in range(d)])
    gain = np.where(sets == 1, weight[np.maximum(size - 1, 0)][:, None], -weight[np.minimum(size, d - 1)][:, None])
    found = []
    for i in range(n):
        # cells of the row where the coalition has the feature, else those of each background row
        index = np.where(sets[:, None, :] == 1, i, n + np.arange(m)[None, :, None]).reshape(-1, d)
        values = _in_parts(f, rows, index).reshape(len(sets), m, -1).mean(axis=1)
        found.append(gain.T @ values)
    return np.stack(found)


def permutation_values(
    f: Function, X: Any, background: Any, n_samples: int, rng: np.random.Generator
) -> tuple[Matrix, Matrix]:
    """Estimate the values from ``n_samples`` pairs of permutations for each background row; also standard errors."""
    rows, n, m, d = Rows(X, background), X.shape[0], background.shape[0], X.shape[1]
    values, errors = [], []
    for i in range(n):
        total, squares = np.zeros((2, m, d, 1))
        for _ in range(n_samples):
            order = rng.permuted(np.tile(np.arange(d), (m, 1)), axis=1)
            pair = 0.5 * (_gains(f, rows, i, n, order) + _gains(f, rows, i, n, order[:, ::-1]))
            total = total + pair
            squares = squares + pair**2
        mean = total / n_samples
        # the variance within each background row: each has its own permutations
        variance = np.maximum(squares / n_samples - mean**2, 0.0) / (n_samples - 1)
        values.append(mean.mean(axis=0))
        errors.append(np.sqrt(variance.sum(axis=0)) / m)
    return np.stack(values), np.stack(errors)


def _gains(f: Function, rows: Rows, i: int, n: int, order: Any) -> Matrix:
    """The change of f when each feature of row i joins, for each background row in its own order."""
    m, d = order.shape
    place = np.argsort(order, axis=1)
    joined = place[:, None, :] < np.arange(d + 1)[None, :, None]
    index = np.where(joined, i, n + np.arange(m)[:, None, None]).reshape(-1, d)
    steps = np.diff(_in_parts(f, rows, index).reshape(m, d + 1, -1), axis=1)
    return np.take_along_axis(steps, place[:, :, None], axis=1)


def _in_parts(f: Function, rows: Rows, index: Any) -> Matrix:
    parts = [f(rows.pick(index[k : k + AT_A_TIME])) for k in range(0, len(index), AT_A_TIME)]
    return np.concatenate(parts)
