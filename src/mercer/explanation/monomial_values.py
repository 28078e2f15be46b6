"""Exact Shapley values of a polynomial, monomial by monomial.

    Σ_s coef_s g(Σ_l w_l x_l s_l) = Σ_α W_α x^α,     W_α = g_|α| |α|! / α! Π_l w_l^α_l Σ_s coef_s s^α

A monomial of degree p depends on at most p features, so its values are sums over at most 2^p coalitions, in each of
which the mean over background rows is a moment of the background. No step needs all of rows, background rows and
support vectors at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from math import comb, factorial, prod

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.kernels.features import Matrix, Vector

# numbers in a table of rows and monomials
TABLE = 1_000_000


def count_monomials(d: int, degree: int) -> int:
    """The number of monomials of at most this degree."""
    return comb(d + degree, degree)


def monomial_values(g: Vector, weights: Vector, X: Matrix, background: Matrix, vectors: Matrix, coef: Matrix) -> Matrix:
    """Compute the Shapley values of Σ_s coef_s g(Σ_l weights_l x_l s_l) for each row of coef.

    The result has the shape (rows, features, functions).
    """
    n, d = X.shape
    values = np.zeros((n, d, len(coef)))
    for exponents in _patterns(len(g) - 1, d):
        degree, r = sum(exponents), len(exponents)
        if g[degree] == 0:
            continue
        factor = g[degree] * factorial(degree) / prod(factorial(e) for e in exponents)
        features = np.array(list(combinations(range(d), r)), dtype=np.intp)
        step = max(1, TABLE // max(len(vectors), len(background), 1))
        for first in range(0, len(features), step):
            part = features[first : first + step]
            scale = factor * _powers(weights[None, :], part, exponents)
            W = np.concatenate([scale * (row @ _powers(vectors, part, exponents)) for row in coef[:, None, :]])
            _add_monomials(part, exponents, W, X, background, values)
    return values


def _patterns(degree: int, d: int) -> Iterator[tuple[int, ...]]:
    """The exponents of monomials up to this degree, of at most d features."""
    for r in range(1, min(degree, d) + 1):
        yield from (e for e in product(range(1, degree + 1), repeat=r) if sum(e) <= degree)


def _powers(rows: Matrix, features: NDArray[np.intp], exponents: tuple[int, ...]) -> Matrix:
    """Π_k rows[i, features[c, k]]^exponents[k] for each row i and monomial c."""
    found = np.ones((len(rows), len(features)))
    for k, e in enumerate(exponents):
        found *= rows[:, features[:, k]] ** e
    return found


def _add_monomials(
    features: NDArray[np.intp], exponents: tuple[int, ...], W: Matrix, X: Matrix, background: Matrix, values: Matrix
) -> None:
    """Add the values of some monomials with the same exponents and the coefficients W to ``values``."""
    r, count = len(exponents), len(features)
    subsets = [tuple(k for k in range(r) if bits >> k & 1) for bits in range(2**r)]

    def powers(rows: Matrix, of: tuple[int, ...]) -> Matrix:
        return _powers(rows, features[:, list(of)], tuple(exponents[k] for k in of))

    moments = [powers(background, of).mean(axis=0) for of in subsets]
    step = max(1, TABLE // count)
    for start in range(0, len(X), step):
        rows = X[start : start + step]
        # the value of the game for each coalition, given by the bits of its number
        game = [powers(rows, of) * moments[2**r - 1 - bits] for bits, of in enumerate(subsets)]
        for k in range(r):
            change = np.zeros((len(rows), count))
            for bits, of in enumerate(subsets):
                if not bits >> k & 1:
                    change += (game[bits | 1 << k] - game[bits]) / (r * comb(r - 1, len(of)))
            to_features = sp.csr_array((np.ones(count), (np.arange(count), features[:, k])), (count, X.shape[1]))
            for number, row in enumerate(W):
                values[start : start + step, :, number] += (change * row) @ to_features
