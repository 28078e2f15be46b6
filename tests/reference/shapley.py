"""Shapley's values by their definition."""

from itertools import combinations
from math import factorial

import numpy as np


def shapley(f, X, background):
    """φ_j = Σ_S |S|! (d - |S| - 1)! / d! (v(S + j) - v(S)), v(S) the mean of f over rows with the features S of x."""
    d = X.shape[1]
    found = []
    for x in X:
        game = {}
        for size in range(d + 1):
            for S in combinations(range(d), size):
                rows = background.copy()
                rows[:, list(S)] = x[list(S)]
                game[S] = np.asarray(f(rows)).reshape(len(rows), -1).mean(axis=0)
        values = np.zeros((d, len(game[()])))
        for S, value in game.items():
            for j in set(range(d)) - set(S):
                weight = factorial(len(S)) * factorial(d - len(S) - 1) / factorial(d)
                values[j] += weight * (game[tuple(sorted((*S, j)))] - value)
        found.append(values)
    return np.array(found)
