"""Separability in exact arithmetic, and small sets on which rounding matters. Nothing is shared with the package."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement
from math import factorial, prod

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def monomials(X: Matrix, degree: int, coef0: int) -> list[list[Fraction]]:
    """The features of (⟨x, z⟩ + coef0)^degree for coef0 0 or 1, but for factors of the columns."""
    base = [[Fraction(1)] * coef0 + [Fraction(float(value)) for value in row] for row in X]
    terms = list(combinations_with_replacement(range(len(base[0])), degree))
    return [[prod((row[i] for i in term), start=Fraction(1)) for term in terms] for row in base]


def kernel_features(X: Matrix, degree: int, coef0: int) -> Matrix:
    """The same in float64, with the factors: √ of the multinomial coefficients."""
    terms = list(combinations_with_replacement(range(X.shape[1] + coef0), degree))
    counts = [[term.count(i) for i in set(term)] for term in terms]
    factor = [np.sqrt(factorial(degree) / prod(factorial(c) for c in count)) for count in counts]
    return np.array(monomials(X, degree, coef0), dtype=float) * factor


def is_separable(X: Matrix, y: Matrix, intercept: bool, degree: int = 1, coef0: int = 0) -> bool:
    """Whether some hyperplane has every sample strictly on its side (Gordan: no a ≥ 0 combines them to 0)."""
    rows = [row + [Fraction(1)] * intercept for row in monomials(X, degree, coef0)]
    return not has_origin_in_hull([[int(sign) * value for value in row] for row, sign in zip(rows, y, strict=True)])


def has_origin_in_hull(rows: list[list[Fraction]]) -> bool:
    """Whether Σ aᵢ rowᵢ = 0 for some a ≥ 0 with sum 1: the first phase of the simplex method, with Bland's rule."""
    n, m = len(rows), len(rows[0]) + 1
    table = [[row[k] for row in rows] + [Fraction(0)] for k in range(m - 1)] + [[Fraction(1)] * (n + 1)]
    cost = [sum(column) for column in zip(*table, strict=True)]
    basis = [-1] * m
    while cost[n] > 0:
        entering = next((j for j in range(n) if cost[j] > 0), None)
        if entering is None:
            return False
        ratios = [(table[i][n] / table[i][entering], basis[i], i) for i in range(m) if table[i][entering] > 0]
        leaving = min(ratios)[2]
        pivot = table[leaving][entering]
        table[leaving] = [value / pivot for value in table[leaving]]
        for k in range(m):
            if k != leaving and table[k][entering] != 0:
                table[k] = _eliminated(table[k], table[leaving], entering)
        cost = _eliminated(cost, table[leaving], entering)
        basis[leaving] = entering
    return True


def _eliminated(row: list[Fraction], by: list[Fraction], column: int) -> list[Fraction]:
    factor = row[column]
    return [a - factor * b if b else a for a, b in zip(row, by, strict=True)]


def generated(seed: int) -> tuple[Matrix, Matrix, str]:
    """(X, y, the scales of its columns): small sets with exact ties, equal rows and collinear points.

    Scales are powers of two for integers, which keeps their ties, and powers of ten for others: from 1e-6 to 1e6.
    """
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 20)), int(rng.integers(1, 6))
    integers = rng.random() < 0.75
    largest = int(rng.choice([1, 2, 4, 9]))
    X = rng.integers(-largest, largest + 1, size=(n, d)).astype(float) if integers else rng.normal(size=(n, d))
    if integers and rng.random() < 0.3:
        direction, offset = rng.integers(-3, 4, size=(2, 1, d))
        X = (rng.integers(-4, 5, size=(n, 1)) * direction + offset).astype(float)
    labels = rng.choice(["random", "plane", "plane", "touching"])
    values = X @ rng.integers(-3, 4, size=d) + (0.5 if labels == "plane" else 0.0)
    # samples on the plane itself have any label
    y = np.where(values > 0, 1.0, -1.0) if labels == "plane" else np.sign(values)
    y = np.where((y == 0) | (labels == "random"), rng.choice([-1.0, 1.0], size=n), y)
    if rng.random() < 0.25:
        again = rng.integers(0, n, size=3)
        X, y = np.vstack([X, X[again]]), np.append(y, y[again] if rng.random() < 0.7 else -y[again])
    if (y == y[0]).all():
        y[0] = -y[0]
    scales = str(rng.choice(["one", "one", "columns", "all"]))
    size = d if scales == "columns" else 1
    if scales != "one":
        X = X * (2.0 ** rng.integers(-20, 21, size=size) if integers else 10.0 ** rng.integers(-6, 7, size=size))
    return X, y, scales
