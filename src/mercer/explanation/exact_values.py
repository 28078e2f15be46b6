"""Exact Shapley values of f(x) = Σ_s coef_s k(x, s) for kernels that are sums of terms (see `kernel_terms`).

Products over features cost O(d²) for each row, background row and support vector, by quadrature. The alternative,
elementary symmetric polynomials of the factors (Mohammadi et al., arXiv 2505.16516), has the same order, but needs a
division by each factor, or differences, both of which lose digits if factors are small; nodes of a quadrature have
positive weights, and all factors are at least 0 for the kernels in use, so nothing cancels.
"""

from __future__ import annotations

import numpy as np

from mercer._compiled.thread_pool import run_shares
from mercer.explanation.kernel_terms import Term
from mercer.explanation.monomial_values import count_monomials, monomial_values
from mercer.kernels.features import Matrix, Vector

# numbers in the tables of background rows, and of rows that are explained together
TABLE, ROWS = 2_000_000, 500_000
# polynomials with more monomials are treated as products of power series
MOST_MONOMIALS = 500_000


def exact_values(
    terms: list[Term], X: Matrix, background: Matrix, vectors: Matrix, coef: Matrix, n_threads: int
) -> Matrix:
    """Compute the Shapley values of each function.

    Parameters
    ----------
    terms : the kernel.
    X, background, vectors : the rows to explain, the background rows, the support vectors.
    coef : a row of coefficients of the support vectors for each function.
    n_threads : number of threads.

    Returns
    -------
    values : ndarray of shape (rows, features, functions)
    """
    values = np.zeros((*X.shape, len(coef)))
    for term in terms if len(vectors) > 0 else ():
        columns = term.columns()
        if not columns:
            continue  # a constant adds to all values of the game alike
        if term.additive:
            values[:, columns] += _additive(term, columns, X, background, vectors, coef)
        elif _by_monomials(term):
            values[:, columns] += _polynomial(term, columns, X, background, vectors, coef)
        else:
            values[:, columns] += _multiplicative(term, columns, X, background, vectors, coef, n_threads)
    return values


def method_of(terms: list[Term]) -> str:
    """How the values of these terms are computed, in words."""
    if all(term.additive for term in terms):
        return "an additive formula"
    return "monomials" if all(term.additive or _by_monomials(term) for term in terms) else "quadrature"


def _by_monomials(term: Term) -> bool:
    return term.polynomial and count_monomials(len(term.columns()), len(term.g) - 1) <= MOST_MONOMIALS


def _additive(term: Term, columns: list[int], X: Matrix, background: Matrix, vectors: Matrix, coef: Matrix) -> Matrix:
    """Feature j adds Σ_s coef_s (u_j(x_j, s_j) - mean_z u_j(z_j, s_j))."""

    def contributions(rows: Matrix) -> Matrix:
        step = max(1, ROWS // (len(columns) * len(vectors)))
        parts = [term.sums(rows[k : k + step], vectors, columns) @ coef.T for k in range(0, len(rows), step)]
        return np.concatenate(parts)

    mean = contributions(background).mean(axis=0)
    return term.factor * term.g[1] * (contributions(X) - mean)


def _polynomial(term: Term, columns: list[int], X: Matrix, background: Matrix, vectors: Matrix, coef: Matrix) -> Matrix:
    """The values of a polynomial of an inner product."""
    assert term.total is not None
    weights = np.zeros(X.shape[1])
    np.add.at(weights, list(term.total.columns), term.total.weights)
    X, background, vectors = (rows[:, columns] for rows in (X, background, vectors))
    return monomial_values(term.factor * np.array(term.g), weights[columns], X, background, vectors, coef)


def _multiplicative(
    term: Term, columns: list[int], X: Matrix, background: Matrix, vectors: Matrix, coef: Matrix, n_threads: int
) -> Matrix:
    """The values of one term with factors or with powers of a sum, some support vectors at a time."""
    step = max(1, TABLE // (len(columns) * len(background)))
    out = np.zeros((len(X), len(columns), len(coef)))
    for first in range(0, len(vectors), step):
        some = slice(first, first + step)
        _add_vectors(term, columns, X, background, vectors[some], coef[:, some], n_threads, out)
    return out * (term.factor * (term.g[0] if term.total is None else 1.0) / len(background))


def _add_vectors(
    term: Term, columns: list[int], X: Matrix, background: Matrix, S: Matrix, coef: Matrix, n_threads: int, out: Matrix
) -> None:
    """Add the values of one term for some support vectors to ``out``, summed over background rows."""
    from mercer.explanation._shapley_loops import BLOCK, LANES, add_products, add_series

    plain, g = term.total is None, np.array(term.g)
    nodes, weights = quadrature(len(columns), None if term.exponents or term.own else len(g) - 1)
    d, size = len(columns), len(S)
    if plain:
        d, size = -(-d // BLOCK) * BLOCK, -(-size // LANES) * LANES

    def table(rows: Matrix) -> Matrix:
        """The factors, and factors of 1 for features and support vectors that fill up a block."""
        values = np.ones((len(rows), d, size))
        values[:, : len(columns), : len(S)] = term.weights(rows, S, columns)
        return values

    C, V = table(background), term.sums(background, S, columns)
    step = max(1, ROWS // (d * size))

    def explain_rows(start: int, stop: int) -> None:
        for begin in range(start, stop, step):
            rows = slice(begin, min(begin + step, stop))
            A = table(X[rows])
            found = np.zeros(A.shape)
            if plain:
                add_products(A, C, nodes, weights, found)
            else:
                add_series(A, C, term.sums(X[rows], S, columns), V, nodes, weights, g, found)
            out[rows] += found[:, : len(columns), : len(S)] @ coef.T

    run_shares(explain_rows, len(X), n_threads)


def quadrature(d: int, degree: int | None = None) -> tuple[Vector, Vector]:
    """An even number of nodes and weights on [0, 1], exact for products of d - 1 linear factors.

    For a polynomial of the given degree of a sum, the integrand has at most the degree - 1.
    """
    powers = d if degree is None else max(1, min(d, degree))
    nodes, weights = np.polynomial.legendre.leggauss(-(-powers // 2))
    odd = len(nodes) % 2 if degree is None else 0  # a node of weight 0 makes the number even
    return np.append(0.5 + 0.5 * nodes, [0.5] * odd), np.append(0.5 * weights, [0.0] * odd)
